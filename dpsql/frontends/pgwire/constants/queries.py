"""Questions as functions of rows: FROM and its joins, groups, windows, sets, and the questions inside of others.

A row is a tuple: the values of the questions around a question, then those of its tail sources, then one tuple of its aggregates
and one of its windows. So a question inside reads the columns around it where they stand.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cmp_to_key
from operator import itemgetter
from typing import Any

from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Compiler, Row
from dpsql.frontends.pgwire.constants.documents import record_values
from dpsql.frontends.pgwire.constants.query_syntax import (
    Key,
    RowSource,
    ScopeColumn,
    Select,
    WrittenQuery,
    distinct,
    identity,
    inner_nodes,
    lengthened,
    limited,
    named,
    ordered,
)
from dpsql.frontends.pgwire.constants.resolve import REGISTER, choose
from dpsql.frontends.pgwire.constants.syntax import Node, Order
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

_RECORDS = {"json_to_record", "jsonb_to_record", "json_to_recordset", "jsonb_to_recordset"}
_RESULT_NAMES = {
    **dict.fromkeys(("json_array_elements", "json_array_elements_text", "jsonb_array_elements",
    "jsonb_array_elements_text"), "value"),
    "user": "current_user", "current_role": "current_role",
}  # fmt: skip
"""Names of the columns of functions in FROM that are not those of the functions."""


class QueryCompiler(Compiler):
    """Compiles the expressions of one question. `parent`: the question around it; `ctes`: questions that WITH names."""

    def __init__(
        self, context: t.Context, parent: QueryCompiler | None = None, ctes: dict[str, RowSource] | None = None
    ) -> None:
        super().__init__(context)
        self.parent, self.ctes = parent, ctes or {}
        self.base = 0 if parent is None else parent.width
        self.columns, self.visible = list[ScopeColumn](), list[int]()
        self.clause: str | None = "FROM"  # in which there are no aggregates; None where there may be some
        self.keys: dict[Any, Compiled] | None = None
        self.slots, self.windows = list[Callable[[list[Row]], Any]](), list[Callable[[list[Row]], list[Any]]]()

    @property
    def width(self) -> int:
        """The number of values of a row before its aggregates."""
        return self.base + len(self.columns)

    def compile(self, node: Node) -> Compiled:
        if self.keys and self.clause is None and (key := self.keys.get(self._form(node))) is not None:
            return key
        return super().compile(node)

    def _form(self, thing: Any) -> Any:
        """Return what equal expressions have in common."""
        if isinstance(thing, Node):
            if thing.kind == "bracket":
                return self._form(thing.items[0])
            results = self._find(thing.value) if thing.kind == "column" else None
            return (thing.kind, results[1] if results else self._form(thing.value), self._form(thing.items))
        if isinstance(thing, (list, tuple)):
            return tuple(map(self._form, thing))
        if is_dataclass(thing) and not isinstance(thing, (WrittenQuery, Select)):
            return tuple(getattr(thing, part.name) for part in fields(thing) if part.name != "position")
        return (type(thing), id(thing) if isinstance(thing, (WrittenQuery, Select)) else thing)

    # --- columns ------------------------------------------------------------------------------------------------------

    def _find(self, names: list[str]) -> tuple[QueryCompiler, int] | None:
        """Return the question and the number of the column with this name, and the name of its source before it."""
        indexes = self.visible if len(names) == 1 else range(len(self.columns))
        results = [
            k
            for k in indexes
            if self.columns[k].name == names[-1] and (len(names) == 1 or self.columns[k].source == names[0])
        ]
        if len(results) > 1:
            raise said("42702", f'column reference "{names[-1]}" is ambiguous')
        return (self, results[0]) if results else self.parent._find(names) if self.parent is not None else None

    def _column(self, node: Node) -> Compiled:
        names = node.value
        if len(names) > 4:
            raise said("42601", f"improper qualified name (too many dotted names): {'.'.join(names)}", node.position)
        if len(names) > 2:
            raise Elsewhere
        results = self._find(names)
        if results is None:
            return self._whole_row(names, node)
        scope, index = results
        column, index = scope.columns[index], scope.base + index
        if scope is self and self.keys is not None and self.clause is None:
            written = f"{column.source}.{column.name}" if column.source else column.name
            words = f'column "{written}" must appear in the GROUP BY clause or be used in an aggregate function'
            raise said("42803", words, node.position)
        return Compiled(column.type, itemgetter(index), node.position)

    def _whole_row(self, names: list[str], node: Node) -> Compiled:
        indexes = [(k, column) for k, column in enumerate(self.columns) if column.source == names[0]]
        if len(names) == 1 and indexes and (self.keys is None or self.clause == "aggregate"):
            types, labels = tuple(c.type for _, c in indexes), tuple(c.name for _, c in indexes)
            take = [self.base + k for k, _ in indexes]
            return Compiled("record", lambda row: t.Record(tuple(row[k] for k in take), types, labels), node.position)
        scope: QueryCompiler | None = self
        while scope is not None and len(names) == 2:
            if any(column.source == names[0] for column in scope.columns):
                break
            scope = scope.parent
        else:
            if len(names) == 2:
                raise said("42P01", f'missing FROM-clause entry for table "{names[0]}"', node.position)
        words = f"column {names[0]}.{names[1]}" if len(names) == 2 else f'column "{names[0]}"'
        raise said("42703", f"{words} does not exist", node.position)

    def _stars(self, node: Node) -> list[tuple[str, Compiled]]:
        if node.value is None and not self.columns:
            raise said("42601", "SELECT * with no tables specified is not valid", node.position)
        of_source = [k for k, column in enumerate(self.columns) if column.source == node.value]
        indexes = self.visible if node.value is None else of_source
        if not indexes:
            raise said("42P01", f'missing FROM-clause entry for table "{node.value}"', node.position)
        if self.keys is None:  # two columns of a subquery may have one name
            columns = [(self.columns[k], itemgetter(self.base + k)) for k in indexes]
            return [(column.name, Compiled(column.type, read, node.position)) for column, read in columns]
        names = [(self.columns[k].source, self.columns[k].name) for k in indexes]
        return [
            (name[1], self.compile(Node("column", node.position, list(name if name[0] else name[1:]))))
            for name in names
        ]

    # --- sources ------------------------------------------------------------------------------------------------------

    def source(self, node: Node) -> Callable[[Row], list[Row]]:
        """Add the columns of a source, and return the function that lengthens a row by each of its rows."""
        if node.kind == "join":
            return self._join(node)
        alias, columns, rows = self._source(node)
        if any(column.source == alias for column in self.columns):
            raise said("42712", f'table name "{alias}" specified more than once', node.position)
        self.visible += range(len(self.columns), len(self.columns) + len(columns))
        self.columns += [ScopeColumn(alias, name, type_) for name, type_ in columns]
        t.widen(len(self.columns))

        def longer(row: Row) -> list[Row]:
            return [(*row, *tail) for tail in limited(list(rows(row)))]

        return longer

    def _join(self, node: Node) -> Callable[[Row], list[Row]]:
        (kind, common, natural), (first, second, condition) = node.value, node.items
        visible, start = len(self.visible), len(self.columns)
        left, middle = self.source(first), len(self.columns)
        right, names = self.source(second), [column.name for column in self.columns]
        if natural:
            common = [name for name in names[start:middle] if name in names[middle:]]
        if common and kind in ("right", "full"):
            raise Elsewhere
        tests = [] if condition is None else [self.truth(condition, "JOIN/ON").run]
        pairs = list[tuple[int, int]]()
        for name in common or ():
            sides = [[k for k in range(*part) if names[k] == name] for part in ((start, middle), (middle, len(names)))]
            if [] in sides:
                side = "left" if not sides[0] else "right"
                raise said("42703", f'column "{name}" specified in USING clause does not exist in {side} table')
            pairs.append((sides[0][0], sides[1][0]))
            values = [Compiled(self.columns[k].type, itemgetter(self.base + k), node.position) for k in pairs[-1]]
            tests.append(self._operated("=", values, node.position).run)
        hidden = {k for pair in pairs for k in pair}
        self.visible[visible:] = [k for k, _ in pairs] + [k for k in self.visible[visible:] if k not in hidden]
        blank_left, blank_right = (None,) * (middle - start), (None,) * (len(names) - middle)
        context = self.context

        def matching(row: Row) -> list[Row]:
            results, used = list[Row](), set[int]()
            lone: list[Row] | None = None
            if kind in ("right", "full"):
                lone = [whole[-len(blank_right) :] for whole in right((*row, *blank_left))]
            for begun in left(row):
                wholes = right(begun) if lone is None else [(*begun, *tail) for tail in lone]
                hits = [k for k, whole in enumerate(wholes) if all(test(whole) is True for test in tests)]
                used.update(hits)
                results += [wholes[k] for k in hits] or ([(*begun, *blank_right)] if kind in ("left", "full") else [])
                limited(results)
                context.spent(None)
            return results + [(*row, *blank_left, *tail) for k, tail in enumerate(lone or ()) if k not in used]

        return matching

    def _source(self, node: Node) -> tuple[str, list[tuple[str, str]], Callable[[Row], Iterable[tuple[Any, ...]]]]:
        (alias, columns, ordinality), inner = node.value, node.items[0]
        names = [name for name, _ in columns]
        if any(type_ is not None for _, type_ in columns):
            return (alias or named(inner)[0], *self._records(columns, inner))
        if inner.kind == "subquery":
            outer = self if inner.value else self.parent
            part, width = (
                relation(self.context, inner.items[0], outer, self.ctes),
                self.width if inner.value else self.base,
            )
            gathered = _typed(part)
            rows: Callable[[Row], Iterable[tuple[Any, ...]]] = _within(part, width)
        elif inner.kind == "column":
            if len(inner.value) > 1 or inner.value[0] not in self.ctes:
                raise Elsewhere  # a table
            part = self.ctes[inner.value[0]]
            gathered, rows = _typed(part), _within(part, None)
        else:
            gathered, rows = self._function(inner, alias)
        label = alias or ("" if inner.kind == "subquery" else named(inner)[0])
        if ordinality:
            gathered = [*gathered, ("ordinality", "int8")]
        if len(names) > len(gathered):
            words = f'table "{label}" has {len(gathered)} columns available but {len(names)} columns specified'
            raise said("42P10", words, node.position)
        listed = list(zip(names, (type_ for _, type_ in gathered), strict=False)) + gathered[len(names) :]
        if not ordinality:
            return label, listed, rows
        return label, listed, lambda row: [(*tail, k) for k, tail in enumerate(rows(row), 1)]

    def _function(
        self, node: Node, alias: str
    ) -> tuple[list[tuple[str, str]], Callable[[Row], Iterable[tuple[Any, ...]]]]:
        if node.kind == "call" and node.value == "unnest" and len(node.items) > 1:
            parts = [self.compile(Node("call", node.position, "unnest", [item])) for item in node.items]
            return [("unnest", part.type) for part in parts], lambda row: itertools.zip_longest(
                *(p.run(row) for p in parts)
            )
        call = self.compile(node)
        if call.type.startswith("record:"):
            key, value = call.type.removeprefix("record:").split("/")
            return [(key, "text"), ("value", value)], call.run
        if call.type == "record":
            raise Elsewhere
        name = _RESULT_NAMES.get(named(node)[0], alias or named(node)[0])
        return [
            (name, "text" if call.type == "unknown" else call.type)
        ], lambda row: [(item,) for item in call.run(row)] if call.rows else [(call.run(row),)]

    def _records(
        self, columns: list[Any], node: Node
    ) -> tuple[list[tuple[str, str]], Callable[[Row], list[tuple[Any, ...]]]]:
        """Return the columns that a list after AS gives to a JSON value in FROM, and its rows."""
        if node.kind != "call" or node.value not in _RECORDS or len(node.items) != 1:
            words = 'a column definition list is only allowed for functions returning "record"'
            raise said("42601", words, node.position)
        listed = [(name, self._type(type_)) for name, type_ in columns]
        value = self.coerced(self.value(node.items[0]), node.value.split("_")[0])
        many = node.value.endswith("set")
        return listed, lambda row: record_values(value.run(row), listed, many, self.context)

    # --- questions inside ---------------------------------------------------------------------------------------------

    def _inside(self, node: Node) -> tuple[RowSource, Callable[[Row], list[tuple[Any, ...]]]]:
        part = relation(self.context, node.items[0], self, self.ctes)
        return part, _within(part, self.width)

    def _one_column(self, node: Node) -> tuple[str, Callable[[Row], list[tuple[Any, ...]]]]:
        part, rows = self._inside(node)
        if len(part.columns) != 1:
            raise said("42601", "subquery must return only one column", node.position)
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
        type_, rows = self._one_column(node)
        if not t.exists("_" + type_):
            raise Elsewhere
        return Compiled("_" + type_, lambda row: [tail[0] for tail in rows(row)], node.position)

    def _exists(self, node: Node) -> Compiled:
        _, rows = self._inside(node)
        return Compiled("bool", lambda row: bool(rows(row)), node.position)

    # --- aggregates and windows ---------------------------------------------------------------------------------------

    def _aggregate(self, node: Node) -> Compiled:
        if self.clause is not None:
            nested = self.clause == "aggregate"
            words = (
                "aggregate function calls cannot be nested"
                if nested
                else f"aggregate functions are not allowed in {self.clause}"
            )
            raise said("42803", words, node.position)
        result, values = self._measured(node)
        self.slots.append(values)
        index, width = len(self.slots) - 1, self.width
        return Compiled(result, lambda row: row[width][index], node.position)

    def _measured(
        self, node: Node, kind: str = "aggregate", clause: str | None = "aggregate"
    ) -> tuple[str, Callable[..., Any]]:
        """Return the type of an aggregate or window function, and its value for rows. Its arguments read rows of the sources."""
        name, is_distinct, order, within, condition = (
            node.value if node.kind == "aggregate" else (node.value, False, [], [], None)
        )
        self.clause, before = clause, self.clause
        items = [self.value(item) for item in [*node.items, *(key for key, _, _ in within)]]
        test = None if condition is None else self.truth(condition, "FILTER").run
        keys = self.ordering(order or within)
        self.clause = before
        signature, expected, result = choose(name, [item.type for item in items], node.position, is_operator=False)
        if bool(within) != signature.within or signature.kind != kind:
            words = (
                "is not an aggregate function" if signature.kind == "function" else "is not an ordered-set aggregate"
            )
            raise said("42809", f"{name} {words}", node.position) if kind == "aggregate" else Elsewhere()
        converted = [self.coerced(item, type_) for item, type_ in zip(items, expected, strict=True)]
        runs, context, types = [item.run for item in converted], self.context, tuple(item.type for item in converted)
        if signature.sorted_:
            keys = [(converted[0].run, self.comparable(types[0]), False, False)]
        if is_distinct:
            keys = [(itemgetter(k), self.comparable(type_), False, False) for k, type_ in enumerate(types)]

        def values(rows: list[Row], *further: Any) -> Any:
            remaining = [row for row in rows if test is None or test(row) is True]
            arguments = [
                tuple(run(row) for run in runs) for row in (remaining if is_distinct else ordered(remaining, keys))
            ]
            if signature.strict:
                arguments = [part for part in arguments if None not in part]
            if is_distinct:
                arguments = ordered(distinct(arguments), keys)
            context.spent(arguments)
            if signature.strict and not arguments:
                return None
            return context.spent(signature.call(context, types, arguments, *further))

        return result, values

    def _window(self, node: Node) -> Compiled:
        if self.clause is not None:
            raise said("42P20", f"window functions are not allowed in {self.clause}", node.position)
        (parts, order), call = node.value, node.items[0]
        name = call.value if call.kind == "call" else call.value[0]
        if name not in REGISTER:
            raise Elsewhere
        is_window = REGISTER[name][0].kind == "window"
        result, measure = self._measured(call, "window" if is_window else "aggregate", clause=None)
        split, keys = [self.value(part) for part in parts], self.ordering(order)

        def values(rows: list[Row]) -> list[Any]:
            results, groups = dict[int, Any](), dict[Any, list[int]]()
            for number, row in enumerate(rows):
                groups.setdefault(tuple(identity(part.run(row)) for part in split), []).append(number)
            for group in groups.values():
                numbers = ordered(group, [(lambda k, value=value: value(rows[k]), *rest) for value, *rest in keys])  # type: ignore[misc]
                members = [rows[k] for k in numbers]
                peers = [tuple(identity(key[0](row)) for key in keys) for row in members]
                ends = {peer: k for k, peer in enumerate(peers, 1)}
                whole = measure(members, peers) if is_window else []
                for k, number in enumerate(numbers):
                    is_peer = k > 0 and peers[k] == peers[k - 1]
                    results[number] = (
                        whole[k] if is_window else whole[-1] if is_peer else measure(members[: ends[peers[k]]])
                    )
                    whole = whole if is_window else [results[number]]
            return [results[k] for k in range(len(rows))]

        self.windows.append(values)
        index, width = len(self.windows) - 1, self.width
        return Compiled(result, lambda row: row[width + 1][index], node.position)

    def _is_grouped(self, select: Select, order: list[Order]) -> bool:
        if select.groups is not None or select.having is not None:
            return True
        inside = {id(node.items[0]) for node in inner_nodes([select.outputs, order]) if node.kind == "window"}
        return any(
            node.kind == "aggregate" or (node.kind == "call" and _kind(node.value) == "aggregate")
            for node in inner_nodes([select.outputs, order])
            if id(node) not in inside
        )

    # --- orders -------------------------------------------------------------------------------------------------------

    def comparable(self, type_: str) -> Callable[[Any], Any]:
        """Return the function by whose results the values of a type are sorted. Raises 42883 for types without an order."""
        type_ = "text" if type_ == "unknown" else type_
        if type_ in ("int2", "int4", "int8", "text", "bool", "varchar"):
            return lambda value: value
        sides = [Compiled(type_, itemgetter(k), 0) for k in (0, 1)]
        less = self._operated("<", sides, 0).run
        return cmp_to_key(lambda a, b: -1 if less((a, b)) else int(bool(less((b, a)))))

    def ordering(self, order: list[Order]) -> list[Key]:
        """Return the keys of an order."""
        keys = list[Key]()
        for node, descending, first in order:
            item = self.value(node)
            keys.append((item.run, self.comparable(item.type), descending, first))
        return keys

    # --- SELECT -------------------------------------------------------------------------------------------------------

    def select(self, select: Select, order: list[Order], keeps: bool) -> RowSource:
        """Return what SELECT answers, in an order. `keeps`: literals without a type keep none."""
        sources = [self.source(node) for node in select.sources]
        self.clause = "WHERE"
        where = None if select.where is None else self.truth(select.where, "WHERE").run
        keys = self._grouped(select) if self._is_grouped(select, order) else None
        self.clause = None
        outputs = list[tuple[str, Compiled]]()
        for node, label in select.outputs:
            outputs += (
                self._stars(node) if node.kind == "star" else [(label or named(node)[0], self._output(node, keeps))]
            )
        having = None if select.having is None else self.truth(select.having, "HAVING").run
        items, sort = [item for _, item in outputs], list[Key]()
        for node, descending, first in order:
            index = self._index(node, select, [name for name, _ in outputs], "ORDER BY")
            if index is None:
                if select.distinct:
                    raise said(
                        "42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list", node.position
                    )
                items, index = [*items, self.compile(node)], len(items)
            sort.append((itemgetter(index), self.comparable(items[index].type), descending, first))
        self.clause = "further"
        width, blank = len(outputs), (None,) * len(self.columns)

        def rows(outer: Row) -> list[tuple[Any, ...]]:
            results: list[Any] = [tuple(outer)]
            for source in sources:
                results = lengthened(results, source)
            if where is not None:
                results = [row for row in results if where(row) is True]
            if keys is not None:
                results = self._by_group(
                    results, keys, None if select.groups is None else (*outer, *blank), (*outer, *blank)
                )
                results = results if having is None else [row for row in results if having(row) is True]
            elif self.windows:
                results = [(*row, ()) for row in results]
            if self.windows:
                columns = [values(results) for values in self.windows]
                results = [(*row, tuple(column[k] for column in columns)) for k, row in enumerate(results)]
            built = self._built(results, items)
            built = distinct(built) if select.distinct else built
            return [row[:width] for row in ordered(built, sort)] if sort else built

        return RowSource(
            [(name, replace(item, run=itemgetter(k), rows=False)) for k, (name, item) in enumerate(outputs)], rows
        )

    def _output(self, node: Node, keeps: bool) -> Compiled:
        item = self.compile(node)
        if item.type.startswith("record:"):
            raise said("0A000", f"{node.value} stands in FROM only here", node.position)
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
                raise Elsewhere
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
        self.keys = keys
        return list(keys.values())

    def _by_group(self, rows: list[Row], keys: list[Compiled], none: Any, blank: tuple[Any, ...]) -> list[Row]:
        groups: dict[Any, list[Row]] = {} if none is not None else {(): []}
        for row in rows:
            groups.setdefault(self.context.spent(tuple(identity(key.run(row)) for key in keys)), []).append(row)
        return [
            (*(members[0] if members else blank), tuple(slot(members) for slot in self.slots))
            for members in groups.values()
        ]

    def _built(self, rows: list[Row], items: list[Compiled]) -> list[tuple[Any, ...]]:
        """Return the outputs of each row; what functions of an output return in rows stands beside each other."""
        built, makes_rows = list[tuple[Any, ...]](), any(item.rows for item in items)
        for row in rows:
            values = self.context.spent([item.run(row) for item in items])
            if makes_rows:
                listed = [v if item.rows else itertools.repeat(v) for item, v in zip(items, values, strict=True)]
                count = max(len(v) for item, v in zip(items, values, strict=True) if item.rows)
                padded = (itertools.chain(v, itertools.repeat(None)) for v in listed)
                built += itertools.islice(zip(*padded, strict=False), count)
            else:
                built.append(tuple(values))
            limited(built)
        return built


def _kind(name: str) -> str:
    return REGISTER[name][0].kind if name in REGISTER else ""


def _typed(part: RowSource) -> list[tuple[str, str]]:
    return [(name, item.type) for name, item in part.columns]


def _within(part: RowSource, width: int | None) -> Callable[[Row], list[tuple[Any, ...]]]:
    return lambda row: part.rows(row[:width])


# --- questions --------------------------------------------------------------------------------------------------------


def relation(
    context: t.Context,
    query: WrittenQuery,
    outer: QueryCompiler | None,
    ctes: dict[str, RowSource],
    keeps: bool = False,
) -> RowSource:
    """Return what a question answers. `keeps`: literals without a type keep none, because a question around it gives them one."""
    ctes, base = dict(ctes), 0 if outer is None else outer.width
    for name, columns, inner in query.named:
        part = _recursive(context, name, columns, inner, outer, ctes) if query.recursive else None
        part = relation(context, inner, outer, ctes) if part is None else part
        labels = columns + [label for label, _ in part.columns[len(columns) :]]
        items = [(label, item) for label, (_, item) in zip(labels, part.columns, strict=False)]
        ctes[name] = RowSource(items, _within(part, base))
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
    rows = part.rows

    def page(row: Row) -> list[tuple[Any, ...]]:
        start, most = offset(row) or 0, limit(row)
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
            raise Elsewhere
        keys.append((itemgetter(index), scope.comparable(part.columns[index][1].type), descending, first))
    return RowSource(part.columns, lambda row: ordered(part.rows(row), keys))


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
        raise said("42601", f"each {word.upper()} query must have the same number of columns", node.position)
    matched = [
        scope.matched([a[1], b[1]], word.upper()) for a, b in zip(parts[0].columns, parts[1].columns, strict=True)
    ]
    left, right = ([items[side].run for items, _ in matched] for side in (0, 1))

    def rows(row: Row) -> list[tuple[Any, ...]]:
        first = [tuple(run(tail) for run in left) for tail in parts[0].rows(row)]
        second = [tuple(run(tail) for run in right) for tail in parts[1].rows(row)]
        if word == "union":
            return limited(first + second if keeps_all else distinct(first + second))
        counts = Counter(identity(list(tail)) for tail in second)
        remaining = list[tuple[Any, ...]]()
        for tail in first if keeps_all else distinct(first):
            is_there = counts[identity(list(tail))] > 0
            counts[identity(list(tail))] -= keeps_all
            if is_there == (word == "intersect"):
                remaining.append(tail)
        return remaining

    names = [name for name, _ in parts[0].columns]
    items = [Compiled(type_, itemgetter(k), node.position) for k, (_, type_) in enumerate(matched)]
    return RowSource(list(zip(names, items, strict=True)), rows)


def _recursive(
    context: t.Context,
    name: str,
    columns: list[str],
    query: WrittenQuery,
    outer: QueryCompiler | None,
    ctes: dict[str, RowSource],
) -> RowSource | None:
    """Return what WITH RECURSIVE answers; None for a question that does not name itself."""
    body = query.body
    if not isinstance(body, Node) or body.kind != "set" or body.value[0] != "union" or query.order or query.limit:
        return None
    first = relation(context, WrittenQuery(body.items[0]), outer, ctes)
    labels = columns + [label for label, _ in first.columns[len(columns) :]]
    items = [(label, item) for label, (_, item) in zip(labels, first.columns, strict=False)]
    present = list[tuple[Any, ...]]()
    further = relation(
        context, WrittenQuery(body.items[1]), outer, {**ctes, name: RowSource(items, lambda row: present)}
    )
    if len(further.columns) != len(first.columns):
        raise said("42601", "each UNION query must have the same number of columns", body.position)
    for k, ((_, left), (_, right)) in enumerate(zip(first.columns, further.columns, strict=True), 1):
        if left.type != right.type:
            types = f"type {t.sql_name(left.type)} in non-recursive term but type {t.sql_name(right.type)} overall"
            raise said("42804", f'recursive query "{name}" column {k} has {types}', right.position)

    def rows(row: Row) -> list[tuple[Any, ...]]:
        results, past = list[tuple[Any, ...]](), set[Any]()
        fresh = first.rows(row)
        while fresh:
            if not body.value[1]:
                fresh = [tail for tail in distinct(fresh) if identity(list(tail)) not in past]
                past.update(identity(list(tail)) for tail in fresh)
            limited(results).extend(fresh)
            present[:] = context.spent(fresh)
            fresh = further.rows(row)
        return results

    return RowSource(items, rows)
