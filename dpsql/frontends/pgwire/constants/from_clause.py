"""FROM: sources with their columns and rows, and the conditions of their joins."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.catalog.shape import namespaces, quoted
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.collections_of_values import flat
from dpsql.frontends.pgwire.constants.compile import HASHED, Compiled, Compiler, Row, constant
from dpsql.frontends.pgwire.constants.documents import record_values
from dpsql.frontends.pgwire.constants.joins import JoinStep, Rows, Test, ordered_steps
from dpsql.frontends.pgwire.constants.query_syntax import (
    QueryParser,
    RowSource,
    ScopeColumn,
    WrittenQuery,
    limited,
    named,
)
from dpsql.frontends.pgwire.constants.resolve import REGISTER, choose
from dpsql.frontends.pgwire.constants.syntax import Node
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

_RECORDS = {"json_to_record", "jsonb_to_record", "json_to_recordset", "jsonb_to_recordset"}
_RESULT_NAMES = {
    **dict.fromkeys(("json_array_elements", "json_array_elements_text", "jsonb_array_elements",
    "jsonb_array_elements_text"), "value"),
    "pg_partition_ancestors": "relid", "user": "current_user", "current_role": "current_role",
}  # fmt: skip
"""Names of the columns of functions in FROM that are not those of the functions."""
_SYSTEM = {"tableoid": "oid", "xmin": "xid", "cmin": "cid", "xmax": "xid", "cmax": "cid", "ctid": "tid"}
_MARK = "\0"
"""Before the name of a source: the column that is NULL where an outer join fills its row."""

_Columns = list[Any]
"""Columns as name, type and what else is known of one."""


class SourceCompiler(Compiler):
    """Compiles FROM, columns and conditions. `parent`: the question around this one; `ctes`: questions that WITH names."""

    def __init__(self, context: t.Context, parent: SourceCompiler | None, ctes: dict[str, RowSource] | None) -> None:
        super().__init__(context)
        self.parent, self.ctes = parent, ctes or {}
        self.base = 0 if parent is None else parent.width
        self.columns, self.visible = list[ScopeColumn](), list[int]()
        self.is_filled = False  # whether an outer join fills the rows of the present sources with NULL
        self.clause: str | None = "FROM"  # in which there are no aggregates; None where there may be some
        self.keys: dict[Any, Compiled] | None = None

    @property
    def width(self) -> int:
        """The number of values of a row before its aggregates."""
        return self.base + len(self.columns)

    def _form(self, thing: Any) -> Any:
        """Return what equal expressions have in common."""
        raise Elsewhere

    def relation(self, query: WrittenQuery, outer: SourceCompiler | None) -> RowSource:
        """Return what a question inside of this one answers."""
        raise Elsewhere

    # --- columns ------------------------------------------------------------------------------------------------------

    def _find(self, names: list[str]) -> tuple[SourceCompiler, int] | None:
        """Return the question and the number of the column with this name, and the name of its source before it."""
        indexes = self.visible if len(names) == 1 else range(len(self.columns))
        results = [k for k in indexes if self.columns[k].is_called(names)]
        if len(results) > 1:
            raise said("42702", f'column reference "{names[-1]}" is ambiguous')
        return (self, results[0]) if results else self.parent._find(names) if self.parent is not None else None

    def _column(self, node: Node) -> Compiled:
        names = node.value
        if len(names) > 4:
            raise said("42601", f"improper qualified name (too many dotted names): {'.'.join(names)}", node.position)
        names = self._within_database(names, node.position)
        try:
            results = self._find(names)
        except Exception as error:
            error.position = node.position  # type: ignore[attr-defined]
            raise
        if results is None:
            return self._system_column(names, node)
        scope, index = results
        self.context.columns_read.add((id(scope), index))
        column, slot = scope.columns[index], scope.base + index
        if scope is self and self.keys is not None and self.clause is None and not self._is_decided(column):
            written = f"{column.source}.{column.name}" if column.source else column.name
            words = f'column "{written}" must appear in the GROUP BY clause or be used in an aggregate function'
            raise said("42803", words, node.position)
        return Compiled(column.type, itemgetter(slot), node.position, shape=column.shape, origin=column.origin)

    def _within_database(self, names: list[str], position: int) -> list[str]:
        """Return a name without that of the database before it. Raises PostgreSQL's refusal of another database."""
        if len(names) == 4 and names[0] != self.context.catalog.database:
            raise said("0A000", f"cross-database references are not implemented: {'.'.join(names)}", position)
        return names[-3:]

    def _unseen(self, name: str, position: int) -> Error:
        """Return what is said of a source that a name means and that cannot be named so here."""
        scope: SourceCompiler | None = self
        while scope is not None:
            for column in scope.columns:
                if column.schema and column.source != name and column.origin[0]:
                    oid, catalog = column.origin[0], self.context.catalog
                    if catalog.names.text("regclass", oid, (*namespaces(), *catalog.path)) == quoted(name):
                        return _invalid_reference(name, position, f'reference the table alias "{column.source}"')
            scope = scope.parent
        return said("42P01", f'missing FROM-clause entry for table "{name}"', position)

    def _is_decided(self, column: ScopeColumn) -> bool:
        """Return whether GROUP BY has the OID of a relation's rows, which decides their other columns."""
        label = ["oid"] if not column.source else [column.source, "oid"]
        return bool(column.oid and self.keys) and self._form(Node("column", 0, label)) in (self.keys or {})

    def _system_column(self, names: list[str], node: Node) -> Compiled:
        """Return tableoid, xmin and the like of a relation: no row is ever changed here."""
        if names[-1] in _SYSTEM:
            columns = (c for c in self.columns if c.oid and (len(names) == 1 or c.source == names[-2]))
            if (column := next(columns, None)) is not None:
                value = {"tableoid": column.oid, "ctid": "(0,1)", "xmin": 1}.get(names[-1], 0)
                return constant(value, _SYSTEM[names[-1]], node.position)
            if self.parent is not None:
                return self.parent._system_column(names, node)
        return self._whole_row(names, node)

    def _whole_row(self, names: list[str], node: Node) -> Compiled:
        indexes = [(k, column) for k, column in enumerate(self.columns) if column.source == names[0]]
        if len(names) == 1 and [column.is_scalar for _, column in indexes] == [True]:
            return self._indexed(Node("indexed", node.position, indexes[0][0]))
        if len(names) == 1 and indexes and (self.keys is None or self.clause in ("aggregate", "FILTER")):
            shape = tuple((c.name, c.type) for _, c in indexes)
            types, labels = tuple(type_ for _, type_ in shape), tuple(name for name, _ in shape)
            take = [self.base + k for k, _ in indexes]
            marks = [k for k, column in enumerate(self.columns) if column.source == _MARK + names[0]]
            self.context.columns_read.update((id(self), k) for k in (*(k for k, _ in indexes), *marks))

            def read(row: Row) -> t.Record | None:
                is_blank = any(row[self.base + k] is None for k in marks)
                return None if is_blank else t.Record(tuple(row[k] for k in take), types, labels)

            return Compiled("record", read, node.position, shape=shape)
        if len(names) == 1 and self.parent is not None and any(c.source == names[0] for c in self.parent.columns):
            return self.parent._whole_row(names, node)
        scope: SourceCompiler | None = self
        while scope is not None and len(names) > 1:
            if any(column.source == names[-2] for column in scope.columns):
                break
            scope = scope.parent
        else:
            if len(names) > 1:
                raise self._unseen(names[-2], node.position)
        words = f"column {names[-2]}.{names[-1]}" if len(names) > 1 else f'column "{names[0]}"'
        raise said("42703", f"{words} does not exist", node.position)

    def _star(self, node: Node) -> Compiled:
        """Return a row that is written `source.*` as the argument of a function."""
        return self._whole_row([node.value], node) if isinstance(node.value, str) else super()._star(node)

    def _stars(self, node: Node) -> list[tuple[str, Compiled]]:
        if isinstance(node.value, Node):
            item = self.compile(node.value)
            if item.type != "record":
                raise said("42809", f"type {t.sql_name(item.type)} is not composite", node.position)
            if node.value.kind == "row":
                return [(f"f{k}", self.value(part)) for k, part in enumerate(node.value.items, 1)]
            if not item.shape:
                raise Elsewhere
            return [(name, self._of_record(item, name, node.position)) for name, _ in item.shape]
        if node.value is None and not self.columns:
            raise said("42601", "SELECT * with no tables specified is not valid", node.position)
        of_source = [k for k, column in enumerate(self.columns) if column.source == node.value]
        indexes = self.visible if node.value is None else of_source
        if not indexes:
            raise self._unseen(node.value, node.position)
        self.context.columns_read.update((id(self), k) for k in indexes)
        if self.keys is None:  # two columns of a subquery may have one name
            columns = [(self.columns[k], itemgetter(self.base + k)) for k in indexes]
            return [
                (c.name, Compiled(c.type, read, node.position, shape=c.shape, origin=c.origin)) for c, read in columns
            ]
        names = [(self.columns[k].source, self.columns[k].name) for k in indexes]
        return [
            (name[1], self.compile(Node("column", node.position, list(name if name[0] else name[1:]))))
            for name in names
        ]

    def _spread(self, name: str, arguments: list[Node], position: int) -> Compiled:
        """Return a call whose last argument is the array of those of which there may be any number."""
        items, array = [self.value(argument) for argument in arguments[:-1]], self.value(arguments[-1].items[0])
        variadic = [s for s in REGISTER[name] if s.variadic and len(s.arguments) == len(arguments)]
        if not variadic:
            types = ", ".join(t.sql_name(item.type) for item in (*items, array))
            raise said("42883", f"function {name}({types}) does not exist", position)
        if array.type == "unknown":
            array = self.coerced(
                array, "_" + ("text" if variadic[0].arguments[-1] == "any" else variadic[0].arguments[-1])
            )
        if not t.element(array.type):
            raise said("42804", "VARIADIC argument must be an array", array.position)
        supplied = [*(item.type for item in items), t.element(array.type)]
        signature, expected, result = choose(name, supplied, position, is_operator=False)
        runs = [self.coerced(item, type_).run for item, type_ in zip(items, expected, strict=False)]
        context, last = self.context, self.coerced(array, "_" + expected[-1]).run

        def run(row: Row) -> Any:
            values, listed = [inner(row) for inner in runs], last(row)
            if listed is None or (signature.strict and not signature.typed and None in values):
                return None
            further = context.spent(list(flat(listed)))
            head: tuple[Any, ...] = (context,) if signature.context or signature.typed else ()
            if signature.typed:
                head = (context, (*expected[:-1], *[expected[-1]] * len(further)))
            return context.spent(signature.call(*head, *values, *further))

        return Compiled(result, run, position)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _reading(self, compile_: Callable[[], Any]) -> tuple[Any, frozenset[int], bool]:
        """Return what is compiled, the columns of this question that it reads, and whether it reads those of questions around."""
        before, self.context.columns_read = self.context.columns_read, set()
        compiled = compile_()
        columns_read, self.context.columns_read = self.context.columns_read, before | self.context.columns_read
        reads = frozenset(index for scope, index in columns_read if scope == id(self))
        return compiled, reads, bool({scope for scope, _ in columns_read} & around(self.parent))

    def tests(self, node: Node, clause: str) -> list[Test]:
        """Return the conditions of which a condition consists, all of which must be true."""
        if node.kind == "and":
            return [test for item in node.items for test in self.tests(item, "AND")]
        if node.kind == "operator" and node.value == "=" and not any(item.kind == "row" for item in node.items):
            sides = [self._reading(lambda item=item: self.value(item)) for item in node.items]  # type: ignore[misc]
            items = [item for item, _, _ in sides]
            run = self._operated("=", items, node.position).run
            _, expected, _ = choose("=", [item.type for item in items], node.position, is_operator=True)
            reads, outer = sides[0][1] | sides[1][1], sides[0][2] or sides[1][2]
            if not set(expected) <= HASHED:
                return [Test(run, reads, outer)]
            runs = [self.coerced(item, type_).run for item, type_ in zip(items, expected, strict=True)]
            return [Test(run, reads, outer, tuple((r, s[1], s[2]) for r, s in zip(runs, sides, strict=True)))]
        item, reads, outer = self._reading(lambda: self.truth(node, clause))
        return [Test(item.run, reads, outer)]

    # --- sources ------------------------------------------------------------------------------------------------------

    def steps(self, node: Node) -> list[JoinStep]:
        """Add the columns of a source, and return it, or the sources of which a join consists."""
        if node.kind == "join":
            return self._join(node)
        start = len(self.columns)
        (alias, columns, rows, facts), reads, outer = self._reading(lambda: self._source(node))
        if any(column.source == alias != "" for column in self.columns):
            raise said("42712", f'table name "{alias}" specified more than once')
        self.visible += range(start, start + len(columns))
        self.columns += [ScopeColumn(alias, name, type_, **facts, **more) for name, type_, more in columns]
        marked = rows
        if self.is_filled:
            self.columns.append(ScopeColumn(_MARK + alias, _MARK, "bool"))
            marked = lambda row: [(*tail, True) for tail in rows(row)]  # noqa: E731
        bounds.widen(len(self.columns))
        return [JoinStep(marked, start, len(self.columns), not reads and not outer, reads)]

    def _join(self, node: Node) -> list[JoinStep]:
        (kind, common, natural), (first, second, condition) = node.value, node.items
        visible, is_filled = len(self.visible), self.is_filled
        self.is_filled = is_filled or kind in ("right", "full")
        left, middle = self.steps(first), len(self.columns)
        self.is_filled = is_filled or kind in ("left", "full")
        right = self.steps(second)
        self.is_filled, names = is_filled, [column.name for column in self.columns]
        if natural:
            seen_left = [names[k] for k in self.visible[visible:] if k < middle]
            common = [name for name in seen_left if name in names[middle:]]
        tests = [] if condition is None else self.tests(condition, "JOIN/ON")
        pairs = list[tuple[int, int]]()
        for name in common or ():
            sides = [
                [k for k in self.visible[visible:] if (k < middle) == is_left and names[k] == name]
                for is_left in (True, False)
            ]
            if [] in sides:
                side = "left" if not sides[0] else "right"
                raise said("42703", f'column "{name}" specified in USING clause does not exist in {side} table')
            pairs.append((sides[0][0], sides[1][0]))
            both = [Node("indexed", node.position, k) for k in pairs[-1]]
            tests += self.tests(Node("operator", node.position, "=", both), "")
        hidden = {k for pair in pairs for k in pair}
        prepared = [k for _, k in pairs] if kind == "right" else [k for k, _ in pairs]
        merged = [self._merged(*pair, node.position) for pair in pairs] if kind == "full" else []
        prepared = list(range(len(names), len(self.columns))) if merged else prepared
        self.visible[visible:] = prepared + [k for k in self.visible[visible:] if k not in hidden]
        if kind == "right":
            left, right, kind = right, left, "left"
        if kind == "full":
            return [self._full(self._whole(left), self._whole(right), tests, merged)]
        if kind == "left":
            right = [self._whole(right)]
            right[0].kind = "left"
        (right if kind == "left" else left)[0].tests += tests
        return left + right

    def _indexed(self, node: Node) -> Compiled:
        self.context.columns_read.add((id(self), node.value))
        column = self.columns[node.value]
        return Compiled(
            column.type, itemgetter(self.base + node.value), node.position, shape=column.shape, origin=column.origin
        )

    def _merged(self, first: int, second: int, position: int) -> Callable[[Row], Any]:
        """Add the common column of a FULL JOIN, and return its value: that of the left side, or else of the right one."""
        sides = [self._indexed(Node("indexed", position, k)) for k in (first, second)]
        (left, right), type_ = self.matched(sides, "JOIN/USING")
        self.columns.append(ScopeColumn("", self.columns[first].name, type_))
        bounds.widen(len(self.columns))
        return lambda row: right.run(row) if (value := left.run(row)) is None else value

    def _whole(self, steps: list[JoinStep]) -> JoinStep:
        """Return a join as one source."""
        if len(steps) == 1 and steps[0].kind == "inner" and not steps[0].tests:
            return steps[0]
        start, stop = min(step.start for step in steps), max(step.stop for step in steps)
        joined, base = self.joined(steps, []), self.base
        reads = frozenset().union(*(step.reads for step in steps)) - frozenset(range(start, stop))
        tested = [test for step in steps for test in step.tests]
        reads |= frozenset(k for test in tested for k in test.reads if not start <= k < stop)
        fixed = not reads and all(step.fixed for step in steps) and not any(test.outer for test in tested)
        width = stop

        def rows(row: Row) -> list[tuple[Any, ...]]:
            wide = (*row, *(None,) * (base + width - len(row)))
            return [tuple(whole[base + start : base + stop]) for whole in joined(wide)]

        return JoinStep(rows, start, stop, fixed, reads)

    def _full(self, left: JoinStep, right: JoinStep, tests: list[Test], merged: list[Callable[[Row], Any]]) -> JoinStep:
        """Return FULL JOIN as one source, whose common columns stand behind those of both sides."""
        base, (a, b, c, d) = self.base, (left.start, left.stop, right.start, right.stop)
        blank_left, blank_right = (None,) * (b - a), (None,) * (d - c)

        def rows(row: Row) -> list[tuple[Any, ...]]:
            head, results, used = row[: base + a], list[tuple[Any, ...]](), set[int]()
            seconds = list(right.rows((*head, *blank_left, *blank_right)))
            for tail in left.rows((*head, *blank_left, *blank_right)):
                hits = [
                    k
                    for k, other in enumerate(bounds.counted(seconds))
                    if all(test.run((*head, *tail, *other)) is True for test in tests)
                ]
                used.update(hits)
                results += [(*tail, *seconds[k]) for k in hits] or [(*tail, *blank_right)]
                limited(results)
                self.context.spent(None)
            results += [(*blank_left, *other) for k, other in enumerate(seconds) if k not in used]
            limited(results)
            if not merged:
                return results
            wholes = ((tail, (*head, *tail)) for tail in bounds.counted(results))
            return [(*tail, *(value(whole) for value in merged)) for tail, whole in wholes]

        fixed = left.fixed and right.fixed and not any(test.outer for test in tests)
        return JoinStep(rows, a, d + len(merged), fixed, left.reads | right.reads)

    def joined(self, steps: list[JoinStep], where: list[Test]) -> Callable[[Row], list[Row]]:
        """Return the rows of sources for a row as wide as all of them, whose conditions are true."""
        if not steps:
            return lambda row: [row] if all(test.run(row) is True for test in where) else []
        free = list(where)
        for step in steps:
            if step.kind == "inner":
                free += step.tests
        plan = list[Any]()

        def rows(row: Row) -> list[Row]:
            if not plan:
                plan.extend(ordered_steps(steps, free, self.base))
            results = [row]
            for extend in plan:
                results = extend(results)
                if not results:
                    break
            return results

        return rows

    def _source(self, node: Node) -> tuple[str, _Columns, Rows, dict[str, Any]]:
        """Return the name of a source, its columns, its rows for a row, and what else is known of all its columns."""
        (alias, columns, ordinality), inner = node.value, node.items[0]
        names, facts = [name for name, _ in columns], dict[str, Any]()
        rows: Rows
        gathered: _Columns
        if any(type_ is not None for _, type_ in columns):
            typed, rows = self._records(columns, inner)
            return alias or named(inner)[0], [(*column, {}) for column in typed], rows, facts
        label = alias or ("" if inner.kind == "subquery" else named(inner)[0])
        if inner.kind == "subquery":
            outer = self if inner.value else self.parent
            width = self.width if inner.value else self.base
            part = self._beside_others(inner, outer)
            gathered, rows = _typed(part), within(part, width)
        elif inner.kind == "column":
            gathered, rows, facts = self._table(inner)
        else:
            gathered, rows = self._function(inner, alias)
        if ordinality:
            gathered = [*((*column, {}) for *column, _ in gathered), ("ordinality", "int8", {})]
            plain = rows
            rows = lambda row: [(*tail, k) for k, tail in enumerate(plain(row), 1)]  # noqa: E731
        if len(names) > len(gathered):
            words = f'table "{label}" has {len(gathered)} columns available but {len(names)} columns specified'
            raise said("42P10", words)
        listed = [(name, *rest) for name, (_, *rest) in zip(names, gathered, strict=False)] + gathered[len(names) :]
        return label, listed, rows, facts

    def _beside_others(self, inner: Node, outer: SourceCompiler | None) -> RowSource:
        """Return a question in FROM. Without LATERAL it cannot name the sources before it, which it is told if it does."""
        try:
            return self.relation(inner.items[0], outer)
        except Error as error:
            named_one = error.message.rpartition("table ")[2].strip('"')
            if error.sqlstate != "42P01" or inner.value or named_one not in {c.source for c in self.columns}:
                raise
            raise _invalid_reference(named_one, error.position, "") from None

    def _table(self, node: Node) -> tuple[_Columns, Rows, dict[str, Any]]:
        """Return a question that WITH names, or a relation of the catalogs."""
        names = node.value
        if len(names) > 3:
            dotted = ".".join(names)
            raise said("42601", f"improper qualified name (too many dotted names): {dotted}", node.position)
        if len(names) == 3 and names[0] != self.context.catalog.database:
            dotted = ".".join(names)
            raise said("0A000", f'cross-database references are not implemented: "{dotted}"', node.position)
        if len(names) == 1 and names[0] in self.ctes:
            part = self.ctes[names[0]]
            if not part.fixed:
                self.context.columns_read.add((0, id(part.columns)))
            return _typed(part), within(part, None), {}
        database = self.context.catalog.tables
        schema = names[-2] if len(names) > 1 else ""
        listing = database.find(schema, names[-1], self.context.catalog.path)
        if listing is None:
            raise refuse("unknown_table", name=".".join(names[-2:]), position=node.position)
        if listing.denied:
            raise refuse("catalog_denied", name=listing.denied)
        if listing.view:
            part = self.relation(_view(listing.view), None)
            computed = enumerate(_typed(part), 1)
            typed = [(name, type_, {**more, "origin": (listing.oid, k)}) for k, (name, type_, more) in computed]
            return typed, within(part, 0), {"schema": listing.schema}
        stored = listing.rows
        columns: _Columns = [
            (name, type_, {"origin": (listing.oid, k) if listing.oid else (0, 0)})
            for k, (name, type_) in enumerate(listing.columns, 1)
        ]
        return columns, lambda row: stored(), {"schema": listing.schema, "oid": listing.oid}

    def _function(self, node: Node, alias: str) -> tuple[_Columns, Rows]:
        if node.kind == "rows_from" or (node.kind == "call" and node.value == "unnest" and len(node.items) > 1):
            is_list = node.kind == "rows_from"
            calls = [item if is_list else Node("call", node.position, "unnest", [item]) for item in node.items]
            parts = [self._function(call, "") for call in calls]
            blanks = [(None,) * len(columns) for columns, _ in parts]
            return [column for columns, _ in parts for column in columns], lambda row: [
                tuple(itertools.chain(*(tail or blank for tail, blank in zip(tails, blanks, strict=True))))
                for tails in itertools.zip_longest(*(rows(row) for _, rows in parts))
            ]
        call = self.compile(node)
        if call.type == "record":
            if not call.shape:
                raise Elsewhere
            listed: _Columns = [(name, type_, {}) for name, type_ in call.shape]
            if call.rows:
                return listed, lambda row: [record.values for record in call.run(row)]
            return listed, lambda row: [record.values if (record := call.run(row)) else (None,) * len(listed)]
        name = _RESULT_NAMES.get(named(node)[0], alias or named(node)[0])
        return [
            (name, "text" if call.type == "unknown" else call.type, {"is_scalar": True})
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


def _invalid_reference(name: str, position: int | None, hint: str) -> Error:
    advice = (
        f"Perhaps you meant to {hint}."
        if hint
        else "To reference that table, you must mark this subquery with LATERAL."
    )
    return said("42P01", f'invalid reference to FROM-clause entry for table "{name}"', position, advice)


def around(scope: SourceCompiler | None) -> set[int]:
    """Return by what the columns of a question and of those around it are known, and the rows of recursion."""
    ids = {0}
    while scope is not None:
        ids.add(id(scope))
        scope = scope.parent
    return ids


def _typed(part: RowSource) -> list[Any]:
    return [(name, item.type, {"shape": item.shape, "origin": item.origin}) for name, item in part.columns]


def within(part: RowSource, width: int | None) -> Callable[[Row], list[tuple[Any, ...]]]:
    """Return the rows of a question inside of others, whose row is as wide as their sources, of which some may not be joined
    yet."""
    return lambda row: part.rows((*row[:width], *(None,) * ((width or 0) - len(row))))


@cache
def _view(text: str) -> WrittenQuery:
    return QueryParser(text).statement()


def kind_of(name: str) -> str:
    return REGISTER[name][0].kind if name in REGISTER else ""
