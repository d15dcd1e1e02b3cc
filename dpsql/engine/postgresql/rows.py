"""Rows between PostgreSQL and Arrow: groups that come back by COPY, and released tables that go there as arrays."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv

from dpsql.engine.postgresql.literals import binary, quoted

_ARROW: Mapping[int, pa.DataType] = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int64(), 23: pa.int64(), 25: pa.string(), 701: pa.float64(),
    1082: pa.date32(), 1114: pa.timestamp("us"), 1700: pa.decimal128(38, 0),
}  # fmt: skip
"""Arrow's types by the oid of PostgreSQL's; sums of integers are numeric, of at most 38 digits."""
_OURS = (
    (pa.types.is_boolean, "boolean"), (pa.types.is_integer, "bigint"), (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal, "numeric"), (pa.types.is_date, "date"), (pa.types.is_timestamp, "timestamp"),
)  # fmt: skip


def copied(connection: psycopg.Connection[Any], sql: str) -> pa.Table:
    """The rows of one SELECT, which the server sends as it makes them. Raises psycopg.Error, pa.ArrowException."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM ({sql}) AS "#answer" LIMIT 0')
        columns = [(column.name, _ARROW[column.type_code]) for column in cursor.description or ()]
        buffer = io.BytesIO()
        with cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copy:
            for block in copy:
                buffer.write(block)
    schema = pa.schema(columns)
    if not buffer.tell():
        return schema.empty_table()
    names = [str(place) for place in range(len(columns))]
    size = buffer.tell()
    buffer.seek(0)
    table = pyarrow.csv.read_csv(
        buffer,
        pyarrow.csv.ReadOptions(use_threads=False, block_size=size + 1, column_names=names),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types={name: type_ for name, (_, type_) in zip(names, columns, strict=True)},
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["t"], false_values=["f"],
        ),
    )  # fmt: skip
    return pa.table(list(table.columns), schema=schema)


def with_released(sql: str, released: Mapping[str, pa.Table]) -> str:
    """A SELECT that reads released tables, under their names, from its own text."""
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
