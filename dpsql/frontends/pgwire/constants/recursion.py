"""WITH RECURSIVE: the rows of a question that names itself, with the order of SEARCH and the marks of CYCLE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Row
from dpsql.frontends.pgwire.constants.from_clause import SourceCompiler
from dpsql.frontends.pgwire.constants.query_syntax import (
    RowSource,
    WrittenQuery,
    beginning,
    distinct,
    identity,
    limited,
    tables_in,
)
from dpsql.frontends.pgwire.constants.syntax import Node
from dpsql.frontends.pgwire.constants.tokens import said

_Tail = tuple[Any, ...]


def recursive(
    relation: Callable[..., RowSource], scope: SourceCompiler, name: str, columns: list[str], query: WrittenQuery
) -> RowSource | None:
    """Return what a question of WITH RECURSIVE answers; None for a question that does not name itself. `relation`: what computes
    questions; `scope`: where this one stands."""
    body = query.body
    if not isinstance(body, Node) or body.kind != "set" or body.value[0] != "union" or query.order or query.limit:
        return None
    if [name] not in tables_in(WrittenQuery(body.items[1])):
        return None
    context, outer, ctes = scope.context, scope.parent, scope.ctes
    first = relation(context, WrittenQuery(body.items[0]), outer, ctes)
    labels = columns + [label for label, _ in first.columns[len(columns) :]]
    items = [(label, item) for label, (_, item) in zip(labels, first.columns, strict=False)]
    present = list[_Tail]()
    itself = RowSource(items, lambda row: present, fixed=False)
    further = relation(context, WrittenQuery(body.items[1]), outer, {**ctes, name: itself}, keeps=True)
    context.columns_read.discard((0, id(items)))
    runs, trail = _converted(name, first, further, scope, beginning(body.items[1])), _Trail(query, items, scope)

    def following(parents: list[_Tail], row: Row) -> list[_Tail]:
        present[:] = context.spent([tail[: len(items)] for tail in parents])
        before = parents[0][len(items) :]
        read = (tuple(run(tail) for run in runs) for tail in further.rows(row))
        return [(*tail, *trail.behind(tail, before)) for tail in read]

    def rows(row: Row) -> list[_Tail]:
        results, past = list[_Tail](), set[Any]()
        fresh = [(*tail, *trail.behind(tail, None)) for tail in first.rows(row)]
        while fresh:
            if not body.value[1]:
                fresh = [tail for tail in distinct(fresh) if identity(list(tail)) not in past]
                past.update(identity(list(tail)) for tail in fresh)
            limited(results).extend(fresh)
            groups = [[tail] for tail in fresh if trail.goes_on(tail)] if trail.columns else [fresh] * bool(fresh)
            fresh = [tail for group in groups for tail in limited(following(group, row))]
        return results

    start = len(items)
    more = [
        (label, Compiled(type_, itemgetter(start + k), query.marked)) for k, (label, type_) in enumerate(trail.columns)
    ]
    return RowSource([*items, *more], rows)


def _converted(
    name: str, first: RowSource, further: RowSource, scope: SourceCompiler, position: int
) -> list[Callable[[Row], Any]]:
    """Return the columns of the part that names the question, in the types of the part that does not. Raises 42601, 42804."""
    if len(further.columns) != len(first.columns):
        raise said(
            "42601",
            "each UNION query must have the same number of columns",
            position,
        )
    runs = list[Callable[[Row], Any]]()
    for k, ((_, left), (_, right)) in enumerate(zip(first.columns, further.columns, strict=True), 1):
        both, common = scope.matched([left, right], "UNION")
        if left.type != common:
            types = f"type {t.sql_name(left.type)} in non-recursive term but type {t.sql_name(common)} overall"
            raise said("42804", f'recursive query "{name}" column {k} has {types}', left.position)
        runs.append(both[1].run)
    return runs


@dataclass(slots=True)
class _Cycle:
    key: Callable[[_Tail], t.Record]
    mark: Any
    none: Any


class _Trail:
    """The columns behind those of the question: what SEARCH orders by, the mark of CYCLE and the rows on the way to a row."""

    def __init__(self, query: WrittenQuery, items: list[tuple[str, Compiled]], scope: SourceCompiler) -> None:
        self.columns = list[tuple[str, str]]()
        self._order: Callable[[_Tail], t.Record] | None = None
        self._cycle: _Cycle | None = None
        self._is_by_breadth = False
        if query.search is not None:
            self._is_by_breadth, names, label = query.search
            self._order = _key(names, items, "search", query.marked)
            self.columns.append((label, "record" if self._is_by_breadth else "_record"))
        if query.cycle is not None:
            names, mark, values, label = query.cycle
            key = _key(names, items, "cycle", query.marked)
            (marked, plain), type_ = scope.matched([scope.compile(value) for value in values], "CYCLE")
            self._cycle = _Cycle(key, marked.run(()), plain.run(()))
            self.columns += [(mark, type_), (label, "_record")]

    def behind(self, tail: _Tail, before: _Tail | None) -> _Tail:
        """Return the further values of a row. `before`: those of the row that it follows; None for a first row."""
        values: _Tail = ()
        if self._order is not None:
            key = self._order(tail)
            if self._is_by_breadth:
                depth = 0 if before is None else before[0].values[0] + 1
                values = (t.Record((depth, *key.values), ("int4", *key.types)),)
            else:
                values = ([*(before[0] if before else ()), key],)
        if self._cycle is not None:
            key, path = self._cycle.key(tail), before[-1] if before else []
            is_met = identity(key) in map(identity, path)
            values = (*values, self._cycle.mark if is_met else self._cycle.none, [*path, key])
        return values

    def goes_on(self, tail: _Tail) -> bool:
        """Return whether rows may follow a row: it closes no cycle."""
        return self._cycle is None or bool(tail[-2] != self._cycle.mark)


def _key(names: list[str], items: list[tuple[str, Compiled]], word: str, position: int) -> Callable[[_Tail], t.Record]:
    """Return some columns of a row as a row of its own. Raises 42601 for one that the question lacks."""
    labels = [label for label, _ in items]
    for name in names:
        if name not in labels:
            raise said("42601", f'{word} column "{name}" not in WITH query column list', position)
    indexes = [labels.index(name) for name in names]
    types = tuple(items[k][1].type for k in indexes)
    return lambda tail: t.Record(tuple(tail[k] for k in indexes), types)
