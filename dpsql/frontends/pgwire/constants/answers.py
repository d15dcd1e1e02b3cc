"""A question about the catalogs, or without tables, as columns and rows of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.kinds import struct_of
from dpsql.frontends.pgwire.catalog.tables import CatalogContext
from dpsql.frontends.pgwire.constants import (  # noqa: F401
    aggregates,
    catalog_functions,
    clocks,
    collections_of_values,
    counters,
    documents,
    formats,
    geometry,
    json_paths,
    numbers,
    object_functions,
    patterns,
    texts,
)
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.from_clause import kind_of
from dpsql.frontends.pgwire.constants.queries import relation
from dpsql.frontends.pgwire.constants.query_syntax import QueryParser, RowSource, Select, WrittenQuery, inner_nodes
from dpsql.frontends.pgwire.constants.resolve import REGISTER
from dpsql.frontends.pgwire.constants.syntax import MOST_DEPTH, Node, TypeName
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, Large, said
from dpsql.frontends.pgwire.encodings import NAMED, RECORD, UNKNOWN, binary_of_text, codec, send_array, send_record
from dpsql.storage.records import dataclass

__all__ = ["REGISTER", "Answerable", "answerable", "parsed"]

_GAPS = (ArithmeticError, AttributeError, LookupError, ValueError, TypeError, RecursionError)
"""What Python raises where a value is beyond what is computed here: a year after 9999, a number of too many digits."""
MOST_TEXT = 100_000
"""Limit on the length of a question that is read here."""


@dataclass(frozen=True)
class Answerable:
    """A question that is answered here: its columns (as `ResultField` has them), the OIDs of its parameters, and a function
    that computes its rows."""

    columns: tuple[tuple[str, int, int, int, int], ...]
    parameters: tuple[int, ...]
    rows: Callable[[], list[tuple[Any, ...]]]

    def table(self) -> pa.Table:
        """Return the rows as a table of PostgreSQL's texts, and of numbers with their texts for the names of objects."""
        rows = self.rows()
        if rows and not self.columns:
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))])
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
        arrays = [
            pa.array(column, _STRUCTS.get(oid, pa.string()))
            for column, (_, oid, *_) in zip(columns, self.columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])


_STRUCTS: dict[int, pa.DataType] = {oid: struct_of(kind) for kind, oid in NAMED.items()}
_STRUCTS |= dict.fromkeys(
    (RECORD, *(t.oid(f"_{kind}") for kind in ("record", *NAMED))),
    pa.struct([("record", pa.binary()), ("text", pa.string())]),
)


def parsed(text: str, read: Callable[[QueryParser], WrittenQuery] = QueryParser.statement) -> WrittenQuery | None:
    """Return a question that may be answered here; None for others. Raises PostgreSQL's syntax errors."""
    if len(text) > MOST_TEXT:
        return None
    try:
        return read(QueryParser(text))
    except (Elsewhere, *_GAPS):
        return None


def parameters_of(parser: QueryParser, oids: Sequence[int]) -> WrittenQuery:
    """Read the values of EXECUTE as a question of one row, in the types of the parameters if they are as many. Raises what
    PostgreSQL says of what no value may be."""
    outputs = [parser.expression()]
    while parser.take(","):
        outputs.append(parser.expression())
    if parser.token.kind != "end":
        raise parser.problem()
    for node in inner_nodes(outputs):
        name = node.value if node.kind == "call" else ""
        if any(isinstance(item, WrittenQuery) for item in node.items):
            raise said("0A000", "cannot use subquery in EXECUTE parameter", node.position)
        for kind, state, is_one in (
            ("window", "42P20", node.kind == "window"),
            ("aggregate", "42803", node.kind == "aggregate" or kind_of(name) == "aggregate"),
            ("set-returning", "0A000", any(signature.rows for signature in REGISTER.get(name, ()))),
        ):
            if is_one:
                raise said(state, f"{kind} functions are not allowed in EXECUTE parameters", node.position)
    if len(outputs) == len(oids):
        outputs = [
            value
            if oid in (0, UNKNOWN)
            else Node("cast", value.position, TypeName(t.named(oid), value.position, parameter=number), [value])
            for number, (value, oid) in enumerate(zip(outputs, oids, strict=True), 1)
        ]
    return WrittenQuery(Select([(value, "") for value in outputs]))


def answerable(
    query: WrittenQuery, catalog: CatalogContext, oids: Sequence[int] = (), values: Sequence[str | None] | None = None
) -> Answerable:
    """Return a parsed question with its columns. `oids`: the types of its parameters, as far as they are declared; `values`:
    their texts, once they are known. Raises PostgreSQL's errors, and catalog_query for what is not computed here."""
    try:
        declared = {k: t.named(oid) for k, oid in enumerate(oids, 1) if oid not in (0, UNKNOWN)}
        context = t.Context(catalog, datetime.now(UTC).replace(tzinfo=None), declared, values)
        part = relation(context, query, None, {})
        types = [
            context.parameters.get(k, "unknown") for k in range(1, max([*context.parameters, len(oids)], default=0) + 1)
        ]
        if "unknown" in types:
            raise said("42P18", f"could not determine data type of parameter ${types.index('unknown') + 1}")
        columns = tuple((name, t.oid(item.type), item.modifier, *item.origin) for name, item in part.columns)
        return Answerable(columns, tuple(map(t.oid, types)), lambda: _rows(part, context))
    except RecursionError:
        raise refuse("too_deep", most=MOST_DEPTH) from None
    except Elsewhere as missing:
        raise refuse("catalog_query", hint=str(missing)) from None
    except _GAPS:
        raise refuse("catalog_query") from None


def check_values(catalog: CatalogContext, oids: Sequence[int], values: Sequence[str | None]) -> None:
    """Raise what PostgreSQL says of the texts of parameters that are no values of their types."""
    context = t.Context(catalog, datetime.now(UTC).replace(tzinfo=None))
    for oid, text in zip(oids, values, strict=True):
        try:
            if text is not None:
                t.read(text, t.named(oid), context)
        except (Elsewhere, *_GAPS):
            continue  # it is refused where it is computed


def _rows(part: RowSource, context: t.Context) -> list[tuple[Any, ...]]:
    kinds = [item.type for _, item in part.columns]
    try:
        return [
            tuple(None if v is None else _written(v, type_, context) for v, type_ in zip(row, kinds, strict=True))
            for row in part.rows(())
        ]
    except Large:
        raise refuse("sandbox_memory") from None
    except RecursionError:
        raise refuse("too_deep", most=MOST_DEPTH) from None
    except (Elsewhere, *_GAPS):
        raise said("0A000", "a value of this question is beyond what is computed here") from None


def _written(value: Any, type_: str, context: t.Context) -> Any:
    """Return a value as it is kept: a text, with the number of an object or the binary form of a row beside it."""
    text = context.spent(t.write(value, type_, context))
    if type_.removeprefix("_") in (*NAMED, "record") and isinstance(value, list):
        return {"record": _array(value, type_[1:], context), "text": text}
    if type_ == "record":
        return {"record": _record(value, context), "text": text}
    return {type_: int(value), "text": text} if type_ in NAMED else text


def _array(values: list[Any], kind: str, context: t.Context) -> bytes | None:
    """Return the binary form of an array of rows or of numbers of objects; None if one of the rows has none."""

    def forms(items: list[Any]) -> list[Any]:
        return [forms(v) if isinstance(v, list) else None if v is None else _written(v, kind, context) for v in items]

    try:
        return send_array(t.oid(kind), forms(values), lows=[low for low, _ in t.bounds_of(values)])
    except ValueError:
        return None


def _record(value: t.Record, context: t.Context) -> bytes | None:
    """Return the binary form of a row; None if one of its values has none here."""
    items = list[tuple[int, bytes | None]]()
    try:
        for item, type_ in zip(value.values, value.types, strict=True):
            form = None if item is None else _written(item, type_, context)
            oid = t.oid(type_)
            items.append((oid, binary_of_text(oid, form) if isinstance(form, str) else form and codec(oid).send(form)))
        return send_record(items)
    except (ValueError, KeyError):
        return None
