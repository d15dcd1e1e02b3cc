"""Rows between PostgreSQL and Arrow: groups are returned by COPY, and released tables are sent as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv

from dpsql.engine.postgresql.literals import binary, quoted

PIECE_BYTES = 1 << 22
"""Bytes of CSV that are converted to Arrow at once."""
_ARROW: Mapping[int, pa.DataType] = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int64(), 23: pa.int64(), 25: pa.string(), 701: pa.float64(),
    1082: pa.date32(), 1114: pa.timestamp("us"), 1700: pa.decimal128(38, 0),
}  # fmt: skip
"""Arrow's types by the oid of PostgreSQL's types; sums of integers are numeric, with at most 38 digits."""
_OURS = (
    (pa.types.is_boolean, "boolean"), (pa.types.is_integer, "bigint"), (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal, "numeric"), (pa.types.is_date, "date"), (pa.types.is_timestamp, "timestamp"),
)  # fmt: skip


def copied(connection: psycopg.Connection[Any], sql: str) -> pa.Table:
    """Return the rows of one SELECT, which the server sends as it computes them. At most one piece of their text is in memory
    at a time (`PIECE_BYTES` and one message of the server). Raises psycopg.Error, pa.ArrowException."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM ({sql}) AS "#answer" LIMIT 0')
        schema = pa.schema([(column.name, _ARROW[column.type_code]) for column in cursor.description or ()])
        with cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copy:
            pieces = [_parsed(piece, schema) for piece in _pieces(copy)]
    return pa.concat_tables(pieces) if pieces else schema.empty_table()


def _pieces(blocks: Iterable[Any]) -> Iterator[bytes]:
    """Yield the text of blocks of CSV in pieces of whole records: a record ends at the end of a line if every quote is closed.
    A quote inside quotes is doubled, so all quotes are closed if their number is even."""
    piece, quotes = bytearray(), 0
    for block in blocks:
        piece += block
        quotes += bytes(block).count(b'"')
        if len(piece) >= PIECE_BYTES and quotes % 2 == 0 and piece.endswith(b"\n"):
            yield bytes(piece)
            piece, quotes = bytearray(), 0
    if piece:
        yield bytes(piece)


def _parsed(piece: bytes, schema: pa.Schema) -> pa.Table:
    """Return the records of a piece of CSV in the columns of `schema`. Raises pa.ArrowException."""
    names = [str(place) for place in range(len(schema))]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(piece),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(piece) + 1, column_names=names),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=dict(zip(names, schema.types, strict=True)),
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["t"], false_values=["f"],
        ),
    )  # fmt: skip
    return pa.table(list(table.columns), schema=schema)


def with_released(sql: str, released: Mapping[str, pa.Table]) -> str:
    """Return a SELECT whose own text contains the released tables under their names."""
    if not released:
        return sql
    tables = [f"{_name(name)} AS MATERIALIZED ({_table(table)})" for name, table in released.items()]
    return f'WITH {", ".join(tables)} SELECT * FROM ({sql}) AS "#over"'


def _table(table: pa.Table) -> str:
    names = [_name(name) for name in table.column_names]
    types = [next((word for test, word in _OURS if test(field.type)), "text") for field in table.schema]
    arrays = [
        f"CAST({quoted(_array(column.to_pylist()))} AS {type_}[])"
        for column, type_ in zip(table.columns, types, strict=True)
    ]
    items = [f"{binary(name) if type_ == 'text' else name} AS {name}" for name, type_ in zip(names, types, strict=True)]
    return f'SELECT {", ".join(items)} FROM unnest({", ".join(arrays)}) AS "#released" ({", ".join(names)})'


def _array(values: list[Any]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
