"""Rows of questions: what a source is, orders, equal rows, and the names of outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Row
from dpsql.frontends.pgwire.constants.query_syntax import Select, WrittenQuery
from dpsql.frontends.pgwire.constants.syntax import Node
from dpsql.frontends.pgwire.constants.tokens import Large

MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column of a source."""

    source: str
    name: str
    type: str


@dataclass(slots=True)
class RowSource:
    """What a question answers: its columns by name, each as a function of one of its rows, and the rows for a row around it."""

    columns: list[tuple[str, Compiled]]
    rows: Callable[[Row], list[tuple[Any, ...]]]


Key = tuple[Callable[[Row], Any], Callable[[Any], Any], bool, bool]
"""A key of an order: its value for a row, the form in which values are compared, whether it descends and NULLs come first."""


def identity(value: Any) -> Any:
    """Return what is the same for equal values, and can be looked up."""
    if isinstance(value, list):
        return tuple(map(identity, value))
    if isinstance(value, t.Json):
        return ("json", t.json_text(value.value))
    if isinstance(value, float) and value != value:
        return "NaN"
    return getattr(value, "order", value)


def ordered(rows: Iterable[Any], keys: Sequence[Key]) -> list[Any]:
    """Return rows in an order."""
    listed = list(rows)
    for value, form, descending, first in reversed(keys):
        nulls = [row for row in listed if value(row) is None]
        rest = sorted(
            (row for row in listed if value(row) is not None), key=lambda row: form(value(row)), reverse=descending
        )
        listed = nulls + rest if first else rest + nulls
    return listed


def distinct(rows: Iterable[Any]) -> list[Any]:
    """Return each row once."""
    return list({identity(list(row)): row for row in rows}.values())


def inner_nodes(thing: Any) -> Iterator[Node]:
    """Yield the nodes of an expression that are not within a question inside of it."""
    if isinstance(thing, Node):
        yield thing
        yield from inner_nodes(thing.value)
        yield from inner_nodes(thing.items)
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from inner_nodes(part)


def named(node: Node) -> tuple[str, int]:
    """Return the name that PostgreSQL gives to an output, and how strong it is: 2 that of a column or function, 1 of a type."""
    kind = node.kind
    if kind == "column":
        return node.value[-1], 2
    if kind in ("call", "coalesce", "constant"):
        return node.value, 2
    if kind in ("bracket", "collate", "subscript", "window"):
        return named(node.items[0])
    if kind == "cast":
        inner = named(node.items[0])
        return inner if inner[1] == 2 else (node.value.name.strip('"').removeprefix("_"), 1)
    if kind == "case":
        default = node.value[1]
        inner = ("", 0) if default is None else named(default)
        return inner if inner[1] == 2 else ("case", 1)
    if kind == "subquery":
        return first_name(node.items[0]), 2
    results = {
        "aggregate": node.value[0] if isinstance(node.value, tuple) else "",
        "field": node.value,
        "gathered": "array",
    }
    return (results.get(kind, kind), 2) if kind in ("array", "row", "exists", *results) else ("?column?", 0)


def first_name(query: WrittenQuery) -> str:
    """Return the name of the first column of a question."""
    body: Any = query.body
    while isinstance(body, WrittenQuery) or (isinstance(body, Node) and body.kind == "set"):
        body = body.body if isinstance(body, WrittenQuery) else body.items[0]
    return body.outputs[0][1] or named(body.outputs[0][0])[0] if isinstance(body, Select) else "column1"


def limited(rows: list[Any]) -> list[Any]:
    """Return rows if there are not too many for this process. Raises Large."""
    t.step()
    if len(rows) > MOST_ROWS:
        raise Large
    return rows


def lengthened(rows: Iterable[Row], source: Callable[[Row], list[Row]]) -> list[Row]:
    """Return each row with those of a source behind it. Raises Large."""
    longer = list[Row]()
    for row in rows:
        longer += source(row)
        limited(longer)
    return longer
