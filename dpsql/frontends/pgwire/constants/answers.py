"""A question without tables as columns and rows of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from dpsql.frontends.pgwire.catalog.kinds import struct_of
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext
from dpsql.frontends.pgwire.constants import (  # noqa: F401
    aggregates,
    clocks,
    collections_of_values,
    documents,
    formats,
    numbers,
    texts,
)
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.queries import relation
from dpsql.frontends.pgwire.constants.query_syntax import QueryParser, RowSource, WrittenQuery
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.frontends.pgwire.encodings import NAMED, UNKNOWN

_GAPS = (ArithmeticError, LookupError, ValueError, TypeError, RecursionError)
"""What Python raises where a value is beyond what is computed here: a year after 9999, a number of too many digits."""
MOST_TEXT = 20_000
"""Limit on the length of a question that is read here."""


@dataclass(frozen=True)
class Answerable:
    """A question that is answered here: its columns, as name and type's OID, the OIDs of its parameters, and a function that
    computes its rows."""

    columns: tuple[tuple[str, int], ...]
    parameters: tuple[int, ...]
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


def parsed(text: str) -> WrittenQuery | None:
    """Return a question that may be answered here; None for others. Raises PostgreSQL's syntax errors."""
    if len(text) > MOST_TEXT:
        return None
    try:
        return QueryParser(text).statement()
    except (Elsewhere, *_GAPS):
        return None


def answerable(
    query: WrittenQuery, catalog: CatalogContext, oids: Sequence[int] = (), values: Sequence[str | None] | None = None
) -> Answerable | None:
    """Return a parsed question with its columns; None if it is not answered here. `oids`: the types of its parameters, as far as
    they are declared; `values`: their texts, once they are known. Raises PostgreSQL's errors."""
    try:
        declared = {k: t.named(oid) for k, oid in enumerate(oids, 1) if oid not in (0, UNKNOWN)}
        context = t.Context(catalog, datetime.now(UTC).replace(tzinfo=None), declared, values, query.size)
        part = relation(context, query, None, {})
        types = [
            context.parameters.get(k, "unknown") for k in range(1, max([*context.parameters, len(oids)], default=0) + 1)
        ]
        if "unknown" in types:
            raise said("42P18", f"could not determine data type of parameter ${types.index('unknown') + 1}")
        columns = tuple((name, t.oid(item.type)) for name, item in part.columns)
        return Answerable(columns, tuple(map(t.oid, types)), lambda: _rows(part, context))
    except (Elsewhere, *_GAPS):
        return None


def _rows(part: RowSource, context: t.Context) -> list[tuple[Any, ...]]:
    kinds = [item.type for _, item in part.columns]
    try:
        return [
            tuple(None if v is None else _written(v, type_, context) for v, type_ in zip(row, kinds, strict=True))
            for row in part.rows(())
        ]
    except _GAPS as error:
        raise Elsewhere from error


def _written(value: Any, type_: str, context: t.Context) -> Any:
    text = context.spent(t.write(value, type_, context))
    return {type_: int(value), "text": text} if type_ in NAMED else text
