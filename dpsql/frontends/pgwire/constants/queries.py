"""Questions as functions of rows: groups, windows, sets, and the questions inside of others.

A row is a tuple: the values of the questions around a question, then those of its tail sources, then one tuple of its aggregates
and one of its windows. So a question inside reads the columns around it where they stand.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from operator import itemgetter
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Row
from dpsql.frontends.pgwire.constants.conversions import all_true
from dpsql.frontends.pgwire.constants.from_clause import SourceCompiler, around, kind_of, within
from dpsql.frontends.pgwire.constants.measures import MeasureCompiler
from dpsql.frontends.pgwire.constants.query_syntax import (
    Key,
    RowSource,
    Select,
    WrittenQuery,
    beginning,
    distinct,
    identity,
    inner_nodes,
    limited,
    named,
    ordered,
    tables_in,
    tied,
)
from dpsql.frontends.pgwire.constants.recursion import recursive
from dpsql.frontends.pgwire.constants.syntax import Node, Order
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said


class QueryCompiler(MeasureCompiler):
    """Compiles the expressions of one question."""

    def relation(self, query: WrittenQuery, outer: SourceCompiler | None) -> RowSource:
        return relation(self.context, query, outer, self.ctes)

    def compile(self, node: Node) -> Compiled:
        if self.keys and self.clause is None and (key := self.keys.get(self._form(node))) is not None:
            return key
        return super().compile(node)

    def _form(self, thing: Any) -> Any:
        """Return what equal expressions have in common."""
        if isinstance(thing, Node):
            if thing.kind == "bracket":
                return self._form(thing.items[0])
            results = self._find(thing.value[-3:]) if thing.kind == "column" else None
            return (thing.kind, results[1] if results else self._form(thing.value), self._form(thing.items))
        if isinstance(thing, (list, tuple)):
            return tuple(map(self._form, thing))
        if is_dataclass(thing) and not isinstance(thing, (WrittenQuery, Select)):
            return tuple(getattr(thing, part.name) for part in fields(thing) if part.name != "position")
        return (type(thing), id(thing) if isinstance(thing, (WrittenQuery, Select)) else thing)

    # --- questions inside ---------------------------------------------------------------------------------------------

    def _inside(self, node: Node) -> tuple[RowSource, Callable[[Row], list[tuple[Any, ...]]]]:
        """Return a question inside of an expression, and its rows, which are computed once if they depend on no row."""
        part, reads, outer = self._reading(lambda: relation(self.context, node.items[0], self, self.ctes))
        return part, within(part, self.width) if reads or outer else _once(part.rows, (None,) * self.width)

    def _one_column(self, node: Node, position: int = 0) -> tuple[str, Callable[[Row], list[tuple[Any, ...]]]]:
        """Return the type of the only column of a question, and its rows. `position`: of what compares it."""
        part, rows = self._inside(node)
        if len(part.columns) != 1:
            words = "subquery has too many columns" if position else "subquery must return only one column"
            raise said("42601", words, position or node.position)
        return part.columns[0][1].type, rows

    def _subquery(self, node: Node) -> Compiled:
        type_, rows = self._one_column(node)

        def run(row: Row) -> Any:
            results = rows(row)
            if len(results) > 1:
                raise said("21000", "more than one row returned by a subquery used as an expression")
            return results[0][0] if results else None

        return Compiled(type_, run, node.position)

    def _gathered(self, node: Node) -> Compiled:
        type_, rows = self._one_column(node, node.value or 0)
        if not t.exists("_" + type_):
            raise Elsewhere
        last: tuple[Any, list[Any]] = (None, [])

        def run(row: Row) -> list[Any]:
            nonlocal last
            if (tails := rows(row)) is not last[0]:
                last = tails, [tail[0] for tail in tails]
            return last[1]

        return Compiled("_" + type_, run, node.position)

    def _rows_compared(self, name: str, node: Node) -> Compiled:
        left, right = node.items
        if right.kind != "subquery":
            return super()._rows_compared(name, node)
        part, rows = self._inside(right)
        if len(part.columns) != len(left.items):
            count = "few" if len(part.columns) < len(left.items) else "many"
            raise said("42601", f"subquery has too {count} columns", node.position)
        present: list[Any] = [None]
        columns = [
            Compiled(column.type, lambda row, k=k: present[0][k], right.position)  # type: ignore[misc]
            for k, (_, column) in enumerate(part.columns)
        ]
        test = self._rows_compared(name, replace(node, items=[left, Node("row", right.position, None, columns)])).run

        def run(row: Row) -> Any:
            results = rows(row)
            if len(results) > 1:
                raise said("21000", "more than one row returned by a subquery used as an expression")
            present[0] = results[0] if results else (None,) * len(columns)
            return test(row)

        return Compiled("bool", run, node.position)

    def _row_tests(self, node: Node, element: list[Any]) -> tuple[Callable[[Row], Any], Callable[[Row], Any]]:
        left, right = node.items
        part, rows = self._inside(right)
        if len(part.columns) != len(left.items):
            count = "few" if len(part.columns) < len(left.items) else "many"
            raise said("42601", f"subquery has too {count} columns", node.position)
        tests = list[Callable[[Row], Any]]()
        for k, (item, (_, column)) in enumerate(zip(left.items, part.columns, strict=True)):
            other = Compiled(column.type, lambda row, k=k: element[0][k], right.position)  # type: ignore[misc]
            tests.append(self._operated("=", [self.value(item), other], node.position).run)
        return rows, lambda row: all_true(test(row) for test in tests)

    def _exists(self, node: Node) -> Compiled:
        _, rows = self._inside(node)
        return Compiled("bool", lambda row: bool(rows(row)), node.position)

    def _is_grouped(self, select: Select, order: list[Order]) -> bool:
        if select.groups is not None or select.having is not None:
            return True
        inside = {id(node.items[0]) for node in inner_nodes([select.outputs, order]) if node.kind == "window"}
        return any(
            node.kind == "aggregate" or (node.kind == "call" and kind_of(node.value) == "aggregate")
            for node in inner_nodes([select.outputs, order])
            if id(node) not in inside
        )

    # --- SELECT -------------------------------------------------------------------------------------------------------

    def select(self, select: Select, order: list[Order], keeps: bool) -> RowSource:
        """Return what SELECT answers, in an order. `keeps`: literals without a type keep none."""
        steps = [step for node in select.sources for step in self.steps(node)]
        self.clause = "WHERE"
        where = [] if select.where is None else self.tests(select.where, "WHERE")
        join = self.joined(steps, where)
        self.named_windows, self.has_sets = select.windows, bool(select.sets)
        keys = self._grouped(select) if self._is_grouped(select, order) else None
        self.clause = None
        outputs = list[tuple[str, Compiled]]()
        for node, label in select.outputs:
            outputs += (
                self._stars(node) if node.kind == "star" else [(label or named(node)[0], self._output(node, keeps))]
            )
        having = None if select.having is None else self.truth(select.having, "HAVING").run
        items, sort, sorted_items = [item for _, item in outputs], list[Key](), list[int]()
        sorted_by = dict[Any, int]()
        for node, descending, first in order:
            index = self._index(node, select, [name for name, _ in outputs], "ORDER BY")
            if index is None:
                if select.distinct:
                    raise said(
                        "42P10",
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                        beginning(node),
                    )
                items, index = [*items, self.compile(node)], len(items)
            sort.append((itemgetter(index), self.comparable(items[index].type), descending, first))
            sorted_items.append(index)
            if select.distinct_on:
                sorted_by.setdefault(self._form(node), index)
        ons = list[int]()
        for node in select.distinct_on:
            number = self._index(node, select, [name for name, _ in outputs], "DISTINCT ON")
            number = sorted_by.get(self._form(node)) if number is None else number
            items, number = (items, number) if number is not None else ([*items, self.value(node)], len(items))
            ons.append(number)
        _check_distinct_on(ons, sorted_items, select.distinct_on)
        self.clause = "further"
        width, blank = len(outputs), (None,) * len(self.columns)

        def rows(outer: Row, most: int | None = None) -> list[tuple[Any, ...]]:
            results: list[Any] = join((*outer, *blank))
            if keys is not None:
                results = self._by_group(results, keys, select.groups, (*outer, *blank), select.sets)
                results = results if having is None else [r for r in bounds.counted(results) if having(r) is True]
            elif self.windows:
                results = [(*row, ()) for row in results]
            results = self.windowed(results) if self.windows else results
            built = self._built(results, items)
            built = distinct(built) if select.distinct else built
            built = ordered(built, sort) if sort else built
            if ons:
                rest = bounds.counted(reversed(built))
                built = list({identity([row[k] for k in ons]): row for row in rest}.values())[::-1]
            built = built if most is None else tied(built, sort, most)
            return [row[:width] for row in built]

        columns = [(name, replace(item, run=itemgetter(k), rows=False)) for k, (name, item) in enumerate(outputs)]
        return RowSource(columns, rows, ties=rows if sort else None)

    def _output(self, node: Node, keeps: bool) -> Compiled:
        item = self.compile(node)
        if item.type == "unknown":
            return item if keeps else self.coerced(item, "text")
        if ":" in item.type or not t.exists(item.type):
            raise Elsewhere
        return item

    def _index(self, node: Node, select: Select, names: list[str], clause: str) -> int | None:
        """Return the number of the output that an expression of ORDER BY or GROUP BY means."""
        if node.kind == "bracket":
            node = node.items[0]
        if node.kind == "number":
            if not node.value.isdecimal():
                raise said("42601", f"non-integer constant in {clause}", node.position)
            if not 0 < int(node.value[:9]) <= len(names):
                raise said("42P10", f"{clause} position {node.value} is not in select list", node.position)
            return int(node.value) - 1
        if node.kind == "string":
            raise said("42601", f"non-integer constant in {clause}", node.position)
        if node.kind == "column" and len(node.value) == 1 and node.value[0] in names:
            if names.count(node.value[0]) > 1:
                raise said("42702", f'{clause} "{node.value[0]}" is ambiguous', node.position)
            return names.index(node.value[0])
        form, outputs = self._form(node), select.outputs
        if any(output.kind == "star" for output, _ in outputs):
            return None
        return next((k for k, (output, _) in enumerate(outputs) if self._form(output) == form), None)

    def _grouped(self, select: Select) -> list[Compiled]:
        """Return the keys of GROUP BY, which expressions behind it may use."""
        self.clause, keys = "GROUP BY", dict[Any, Compiled]()
        for node in select.groups or ():
            labels = [label or named(output)[0] for output, label in select.outputs]
            tail = node.kind == "column" and self._find(node.value) is not None
            index = (
                None
                if tail or any(o.kind == "star" for o, _ in select.outputs)
                else self._index(node, select, labels, self.clause)
            )
            key = node if index is None else select.outputs[index][0]
            keys[self._form(key)] = self.coerced(item, "text") if (item := self.value(key)).type == "unknown" else item
            self.comparable(keys[self._form(key)].type)
        listed = list(keys.values())
        if select.sets:
            if len(keys) < len(select.groups or ()):
                raise Elsewhere
            keys = {form: self._if_in_set(item, number) for number, (form, item) in enumerate(keys.items())}
        self.keys = keys
        return listed

    def _if_in_set(self, item: Compiled, number: int) -> Compiled:
        """Return a key which is NULL in the rows of sets that it is not in; these stand behind the aggregates."""
        run, width = item.run, self.width
        return replace(item, run=lambda row: run(row) if number in row[width][-1] else None)

    def _grouping(self, node: Node) -> Compiled:
        forms = list(self.keys or {})
        if any(self._form(item) not in forms for item in node.items):
            words = "arguments to GROUPING must be grouping expressions of the associated query level"
            raise said("42803", words, node.position)
        numbers, width, has_sets = [forms.index(self._form(item)) for item in node.items], self.width, self.has_sets

        def run(row: Row) -> int:
            return sum((has_sets and number not in row[width][-1]) << k for k, number in enumerate(reversed(numbers)))

        return Compiled("int4", run, node.position)

    def _by_group(
        self, rows: list[Row], keys: list[Compiled], none: Any, blank: tuple[Any, ...], sets: list[tuple[int, ...]]
    ) -> list[Row]:
        results = list[Row]()
        for chosen in sets or [tuple(range(len(keys)))]:
            runs = [keys[number].run for number in chosen]
            groups: dict[Any, list[Row]] = {} if runs or (none is not None and not sets) else {(): []}
            for row in rows:
                groups.setdefault(self.context.spent(tuple(identity(run(row)) for run in runs)), []).append(row)
            results += [
                (*(members[0] if members else blank), (*(slot(members) for slot in self.slots), chosen))
                for members in groups.values()
            ]
        return results

    def _built(self, rows: list[Row], items: list[Compiled]) -> list[tuple[Any, ...]]:
        """Return the outputs of each row; what functions of an output return in rows stands beside each other."""
        built, makes_rows = list[tuple[Any, ...]](), any(item.rows for item in items)
        for row in rows:
            values = self.context.counted([item.run(row) for item in items])
            if makes_rows:
                listed = [v if item.rows else itertools.repeat(v) for item, v in zip(items, values, strict=True)]
                count = max(len(v) for item, v in zip(items, values, strict=True) if item.rows)
                padded = (itertools.chain(v, itertools.repeat(None)) for v in listed)
                built += itertools.islice(zip(*padded, strict=False), count)
            else:
                built.append(tuple(values))
            limited(built)
        return built


def _check_distinct_on(ons: list[int], sorted_items: list[int], nodes: list[Node]) -> None:
    """Raise PostgreSQL's refusal of an order that does not begin with the expressions of DISTINCT ON."""
    misfit = next((k for k, index in enumerate(sorted_items) if index not in ons), len(sorted_items))
    late = [index for index in sorted_items[misfit:] if index in ons] or [on for on in ons if on not in sorted_items]
    if ons and misfit < len(sorted_items) and late:
        words = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
        raise said("42P10", words, nodes[ons.index(late[0])].position)


def _once(rows: Callable[[Row], list[tuple[Any, ...]]], row: Row) -> Callable[[Row], list[tuple[Any, ...]]]:
    """Return a function that computes rows at its first call."""
    memo = list[list[tuple[Any, ...]]]()

    def computed(_: Row) -> list[tuple[Any, ...]]:
        if not memo:
            memo.append(rows(row))
        return memo[0]

    return computed


# --- questions --------------------------------------------------------------------------------------------------------


def relation(
    context: t.Context,
    query: WrittenQuery,
    outer: SourceCompiler | None,
    ctes: dict[str, RowSource],
    keeps: bool = False,
) -> RowSource:
    """Return what a question answers. `keeps`: literals without a type keep none, because a question around it gives them one."""
    ctes, base = dict(ctes), 0 if outer is None else outer.width
    if query.locks and tables_in(query):
        raise refuse("read_only", word=query.locks)
    for name, columns, inner in query.named:
        before, context.columns_read = context.columns_read, set()
        part = (
            recursive(relation, QueryCompiler(context, outer, ctes), name, columns, inner) if query.recursive else None
        )
        is_plain, part = part is None, relation(context, inner, outer, ctes) if part is None else part
        if is_plain and (inner.search or inner.cycle):
            raise said("42601", "WITH query is not recursive", inner.marked)
        if len(columns) > len(part.columns):
            counts = f"has {len(part.columns)} columns available but {len(columns)} columns specified"
            raise said("42P10", f'WITH query "{name}" {counts}')
        labels = columns + [label for label, _ in part.columns[len(columns) :]]
        items = [(label, item) for label, (_, item) in zip(labels, part.columns, strict=False)]
        fixed = not {scope for scope, _ in context.columns_read} & around(outer)
        context.columns_read |= before
        ctes[name] = RowSource(items, _once(part.rows, (None,) * base) if fixed else within(part, base), fixed)
    scope = QueryCompiler(context, outer, ctes)
    if isinstance(query.body, Select):
        part = scope.select(query.body, query.order, keeps)
    elif isinstance(query.body, WrittenQuery):
        part = relation(context, query.body, outer, ctes, keeps)
    else:
        part = _values(scope, query.body) if query.body.kind == "values" else _joined(scope, query.body)
    if not isinstance(query.body, Select) and query.order:
        part = _sorted(scope, part, query.order)
    if query.limit is None and query.offset is None:
        return part
    limit, offset = _count(scope, query.limit, "LIMIT"), _count(scope, query.offset, "OFFSET")
    rows, ties = part.rows, part.ties if query.ties else None
    if query.ties and ties is None:
        raise said("42601", "WITH TIES cannot be specified without ORDER BY clause")

    def page(row: Row) -> list[tuple[Any, ...]]:
        start, most = offset(row) or 0, limit(row)
        if ties is not None and most is not None:
            return ties(row, start + most)[start:]
        return rows(row)[start : None if most is None else start + most]

    return RowSource(part.columns, page)


def _count(scope: QueryCompiler, node: Node | None, clause: str) -> Callable[[Row], Any]:
    if node is None:
        return lambda row: None
    scope.clause = clause
    run = scope.coerced(scope.value(node), "int8").run

    def checked(row: Row) -> Any:
        if (count := run(row)) is not None and count < 0:
            raise said("2201W" if clause == "LIMIT" else "2201X", f"{clause} must not be negative")
        return count

    return checked


def _sorted(scope: QueryCompiler, part: RowSource, order: list[Order]) -> RowSource:
    names, keys = [name for name, _ in part.columns], list[Key]()
    for node, descending, first in order:
        index = (
            scope._index(node, Select([]), names, "ORDER BY")
            if node.kind in ("number", "column", "string", "bracket")
            else None
        )
        if index is None:
            if node.kind == "column":
                raise said("42703", f'column "{node.value[-1]}" does not exist', node.position)
            raise said("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause", beginning(node))
        keys.append((itemgetter(index), scope.comparable(part.columns[index][1].type), descending, first))
    return RowSource(
        part.columns,
        lambda row: ordered(part.rows(row), keys),
        ties=lambda row, most: tied(ordered(part.rows(row), keys), keys, most),
    )


def _values(scope: QueryCompiler, node: Node) -> RowSource:
    rows = [[scope.value(item) for item in row] for row in node.items]
    columns = [scope.matched(column, "VALUES") for column in zip(*rows, strict=True)]
    runs = [[item.run for item in row] for row in zip(*(items for items, _ in columns), strict=True)]
    items = [(f"column{k + 1}", Compiled(type_, itemgetter(k), node.position)) for k, (_, type_) in enumerate(columns)]
    return RowSource(items, lambda row: [tuple(run(row) for run in line) for line in runs])


def _joined(scope: QueryCompiler, node: Node) -> RowSource:
    """Return the answer of UNION, INTERSECT or EXCEPT."""
    word, keeps_all = node.value
    parts = [relation(scope.context, WrittenQuery(side), scope.parent, scope.ctes, keeps=True) for side in node.items]
    if len(parts[0].columns) != len(parts[1].columns):
        raise said("42601", f"each {word.upper()} query must have the same number of columns", beginning(node.items[1]))
    matched = [
        scope.matched([a[1], b[1]], word.upper()) for a, b in zip(parts[0].columns, parts[1].columns, strict=True)
    ]
    left, right = ([items[side].run for items, _ in matched] for side in (0, 1))
    sort = [(itemgetter(k), scope.comparable(type_), False, False) for k, (_, type_) in enumerate(matched)]

    def rows(row: Row) -> list[tuple[Any, ...]]:
        first = [tuple(run(tail) for run in left) for tail in parts[0].rows(row)]
        second = [tuple(run(tail) for run in right) for tail in parts[1].rows(row)]
        if word == "union":
            return limited(first + second if keeps_all else ordered(distinct(first + second), sort))
        counts = Counter(identity(list(tail)) for tail in bounds.counted(second))
        remaining = list[tuple[Any, ...]]()
        for tail in bounds.counted(first if keeps_all else distinct(first)):
            is_there = counts[identity(list(tail))] > 0
            counts[identity(list(tail))] -= keeps_all
            if is_there == (word == "intersect"):
                remaining.append(tail)
        return remaining

    names = [name for name, _ in parts[0].columns]
    items = [Compiled(type_, itemgetter(k), node.position) for k, (_, type_) in enumerate(matched)]
    return RowSource(list(zip(names, items, strict=True)), rows)
