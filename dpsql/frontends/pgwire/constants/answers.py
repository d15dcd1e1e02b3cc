"""A question without tables as columns and rows of texts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import pyarrow as pa

from dpsql.frontends.pgwire.catalog.kinds import struct_of
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext
from dpsql.frontends.pgwire.constants import (  # noqa: F401
    clocks,
    collections_of_values,
    documents,
    formats,
    numbers,
    session_values,
    texts,
)
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Compiler
from dpsql.frontends.pgwire.constants.syntax import Node, Parser, Select
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.frontends.pgwire.encodings import NAMED

MOST_ROWS = 100_000
_GAPS = (ArithmeticError, LookupError, ValueError, TypeError, RecursionError)
"""What Python raises where a value is beyond what is computed here: a year after 9999, a number of too many digits."""
MOST_TEXT = 20_000
"""Limit on the length of a question that is read here."""


@dataclass(frozen=True)
class Answerable:
    """A question that is answered here: its columns, as name and type's OID, and a function that computes its rows."""

    columns: tuple[tuple[str, int], ...]
    rows: Callable[[], list[tuple[Any, ...]]]

    def table(self) -> pa.Table:
        """Return the rows as a table of PostgreSQL's texts, and of numbers with their texts for the names of objects."""
        rows = self.rows()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
        arrays = [
            pa.array(column, _STRUCTS.get(oid, pa.string()))
            for column, (_, oid) in zip(columns, self.columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])


_STRUCTS = {oid: struct_of(kind) for kind, oid in NAMED.items()}


def parsed(text: str) -> Select | None:
    """Return a question that may be answered here; None for others. Raises PostgreSQL's syntax errors."""
    if len(text) > MOST_TEXT:
        return None
    try:
        return Parser(text).select()
    except (Elsewhere, *_GAPS):
        return None


def answerable(select: Select, catalog: CatalogContext) -> Answerable | None:
    """Return a parsed question with its columns; None if it is not answered here. Raises PostgreSQL's errors."""
    context = t.Context(catalog, datetime.now(UTC).replace(tzinfo=None))
    try:
        return _Question(select, context).answerable()
    except (Elsewhere, *_GAPS):
        return None


class _Question:
    def __init__(self, select: Select, context: t.Context) -> None:
        self.select, self.context, self.compiler = select, context, Compiler(context)

    def answerable(self) -> Answerable:
        source = self._source(self.select.source) if self.select.source is not None else lambda: [()]
        if not self.select.outputs:
            outputs = self._columns()
        else:
            outputs = []
            for node, label in self.select.outputs:
                if node.kind == "star":
                    if self.select.source is None:
                        raise said("42601", "SELECT * with no tables specified is not valid", node.position)
                    outputs += self._columns()
                else:
                    outputs.append((label or named(node)[0], self._output(node)))
        where = None if self.select.where is None else self.compiler.truth(self.select.where, "WHERE").run
        limit = None if self.select.limit is None else self._limit(self.select.limit)
        columns = tuple((name, t.oid(item.type)) for name, item in outputs)
        compiled = [item for _, item in outputs]
        return Answerable(columns, lambda: self._rows(source, where, compiled, limit))

    def _columns(self) -> list[tuple[str, Compiled]]:
        return [(name, Compiled(type_, itemgetter(k), 0)) for k, (name, type_) in enumerate(self.compiler.columns)]

    def _output(self, node: Node) -> Compiled:
        item = self.compiler.compile(node)
        if item.type.startswith("record:"):
            raise said("0A000", f"{node.value} stands in FROM only here", node.position)
        if item.type == "unknown":
            return self.compiler.coerced(item, "text")
        if ":" in item.type or not t.exists(item.type):
            raise Elsewhere
        return item

    def _limit(self, node: Node) -> int | None:
        if node.kind not in ("number", "truth"):
            raise Elsewhere
        value = self.compiler.compile(node).run(())
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            raise said("2201W", "LIMIT must not be negative")
        return None if value is None else int(value)

    def _rows(
        self, source: Any, where: Any, outputs: list[Compiled], limit: int | None
    ) -> list[tuple[str | None, ...]]:
        try:
            gathered = list[tuple[Any, ...]]()
            for row in source():
                if where is not None and where(row) is not True:
                    continue
                values = self.context.spent([item.run(row) for item in outputs])
                if any(item.rows for item in outputs):
                    listed = [
                        value if item.rows else itertools.repeat(value)
                        for item, value in zip(outputs, values, strict=True)
                    ]
                    count = max(len(value) for item, value in zip(outputs, values, strict=True) if item.rows)
                    gathered += itertools.islice(
                        zip(*(itertools.chain(v, itertools.repeat(None)) for v in listed), strict=False), count
                    )  # fmt: skip
                else:
                    gathered.append(tuple(values))
                if len(gathered) > MOST_ROWS:
                    raise Elsewhere
            gathered = gathered if limit is None else gathered[:limit]
            kinds = [item.type for item in outputs]
            return [
                tuple(None if v is None else self._written(v, type_) for v, type_ in zip(row, kinds, strict=True))
                for row in gathered
            ]
        except _GAPS as error:
            raise Elsewhere from error

    def _written(self, value: Any, type_: str) -> Any:
        text = self.context.spent(t.write(value, type_, self.context))
        return {type_: int(value), "text": text} if type_ in NAMED else text

    # --- sources ------------------------------------------------------------------------------------------------------

    def _source(self, node: Node) -> Callable[[], Any]:
        (alias, columns, ordinality), inner = node.value, node.items[0]
        names = [name for name, _ in columns]
        if any(type_ is not None for _, type_ in columns):
            raise Elsewhere
        if inner.kind == "values":
            return self._values(inner, alias, names)
        call = (
            self.compiler.compile(inner)
            if not (inner.kind == "call" and inner.value == "unnest" and len(inner.items) > 1)
            else None
        )
        label = alias or named(inner)[0]
        if call is None:
            parts = [self.compiler.compile(Node("call", inner.position, "unnest", [item])) for item in inner.items]
            gathered = [("unnest", part.type) for part in parts]

            def rows() -> list[Any]:
                return list(itertools.zip_longest(*(part.run(()) for part in parts)))
        elif call.type.startswith("record:"):
            key, value = call.type.removeprefix("record:").split("/")
            gathered = [(key, "text"), ("value", value)]

            def rows() -> list[Any]:
                return list(call.run(()))
        else:
            gathered = [(_RESULT_NAMES.get(named(inner)[0], label), "text" if call.type == "unknown" else call.type)]
            if call.type == "record":
                raise Elsewhere

            def rows() -> list[Any]:
                value = call.run(())
                return [(item,) for item in value] if call.rows else [(value,)]

        if ordinality:
            gathered.append(("ordinality", "int8"))
        if len(names) > len(gathered):
            raise said(
                "42P10",
                f'table "{label}" has {len(gathered)} columns available but {len(names)} columns specified',
                node.position,
            )
        self.compiler.alias = label
        self.compiler.columns = [
            (name, type_) for name, (_, type_) in itertools.zip_longest(names, gathered) if name
        ] + gathered[len(names) :]
        return (lambda: [(*row, k) for k, row in enumerate(rows(), 1)]) if ordinality else rows

    def _values(self, node: Node, alias: str, names: list[str]) -> Callable[[], Any]:
        rows = [[self.compiler.value(item) for item in row] for row in node.items]
        kinds, typed = list[str](), list[list[Compiled]]()
        for column in zip(*rows, strict=True):
            items, common = self.compiler.matched(column, "VALUES")
            kinds.append(common)
            typed.append(items)
        if len(names) > len(kinds):
            raise said(
                "42P10",
                f'table "{alias}" has {len(kinds)} columns available but {len(names)} columns specified',
                node.position,
            )
        labels = names + [f"column{k}" for k in range(len(names) + 1, len(kinds) + 1)]
        self.compiler.columns, self.compiler.alias = list(zip(labels, kinds, strict=True)), alias
        return lambda: [tuple(column[k].run(()) for column in typed) for k in range(len(rows))]


_RESULT_NAMES = {
    **dict.fromkeys(("json_array_elements", "json_array_elements_text", "jsonb_array_elements",
    "jsonb_array_elements_text"), "value"),
    "user": "current_user", "current_role": "current_role",
}  # fmt: skip
"""Names of the columns of functions in FROM that are not those of the functions."""


def named(node: Node) -> tuple[str, int]:
    """Return the name that PostgreSQL gives to an output, and how strong it is: 2 that of a column or function, 1 of a type."""
    kind = node.kind
    if kind == "column":
        return node.value[-1], 2
    if kind in ("call", "coalesce", "constant"):
        return node.value, 2
    if kind in ("bracket", "collate", "subscript"):
        return named(node.items[0])
    if kind == "cast":
        inner = named(node.items[0])
        return inner if inner[1] == 2 else (node.value.name.strip('"').removeprefix("_"), 1)
    if kind == "case":
        default = node.value[1]
        inner = ("", 0) if default is None else named(default)
        return inner if inner[1] == 2 else ("case", 1)
    return (kind, 2) if kind in ("array", "row") else ("?column?", 0)
