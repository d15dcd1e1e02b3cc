"""Conversion of Arrow columns so that DuckDB can read every value; values without a counterpart become NULL.

Measured with DuckDB 2.0: its Arrow and Parquet readers raise at timestamps in seconds or milliseconds and
intervals beyond 64 bits of microseconds, at times outside a day, and at texts that are not UTF-8, before any of our
expressions sees the value. So such values are replaced here; the decision depends only on the bits of the value itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MOST = 2**63 - 1
_DAY_SECONDS = 86_400


def total_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column after `total`."""
    if pa.types.is_dictionary(type_):
        return total_type(type_.value_type)
    if pa.types.is_timestamp(type_) and type_.unit in ("s", "ms"):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_duration(type_) and type_.unit in ("s", "ms"):
        return pa.duration("us")
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal256(type_) or (pa.types.is_nested(type_) and _holds_times(type_)):
        return pa.string()
    return type_


def total(column: Any) -> Any:
    """Return the column with NULL for every value that DuckDB cannot read."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        # A dictionary may hold texts that are not UTF-8; decoding copies their bytes unread.
        return total(_decoded(column))
    if pa.types.is_nested(type_) and _holds_times(type_):
        return pa.nulls(len(column), pa.string())
    target = total_type(type_)
    if (pa.types.is_timestamp(type_) or pa.types.is_duration(type_)) and target != type_:
        factor = 10**6 // _PER_SECOND[type_.unit]
        numbers = _within(pc.cast(column, pa.int64()), -(_MOST // factor), _MOST // factor)
        return pc.cast(pc.multiply(numbers, factor), target)
    if pa.types.is_time(type_):
        numbers = pc.cast(column, pa.int32() if pa.types.is_time32(type_) else pa.int64())
        return pc.cast(_within(numbers, 0, _DAY_SECONDS * _PER_SECOND[type_.unit]), type_)
    if target != type_:
        return pc.cast(column, target)
    return column if _is_valid(column) else _valid_rows(column)


def total_table(table: pa.Table) -> pa.Table:
    """Return a table with `total` applied to every column."""
    return pa.table([total(column) for column in table.columns], names=table.column_names)


class TotalParquet(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """Parquet files read by pyarrow, with `total` applied to every column. DuckDB scans it like any dataset."""

    def __init__(self, paths: list[Path], columns: tuple[str, ...]) -> None:
        """`columns`: names of the columns that may be read, in any case."""
        self._files = pyarrow.dataset.dataset([str(path) for path in paths], format="parquet", partitioning="hive")
        readable = {name.lower() for name in columns}
        self._names = [name for name in self._files.schema.names if name.lower() in readable]

    @property
    def schema(self) -> pa.Schema:
        """The columns that may be read, with their types after `total`."""
        return pa.schema([(name, total_type(self._files.schema.field(name).type)) for name in self._names])

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> Any:
        """Return a scan of `columns` over the rows for which `filter` (a pyarrow expression) is true."""
        said = "" if filter is None else str(filter)
        read = [name for name in self._names if columns is None or name in columns or name in said]
        schema = pa.schema([self.schema.field(name) for name in read])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._files.scanner(columns=read, use_threads=True).to_batches():
                yield pa.RecordBatch.from_arrays([total(column) for column in batch.columns], schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return pyarrow.dataset.Scanner.from_batches(reader, columns=read if columns is None else columns, filter=filter)


def is_risky(type_: pa.DataType) -> bool:
    """Return whether DuckDB's Parquet reader may raise at a value of this type; False for texts, the most frequent
    type."""
    return bool(pa.types.is_time(type_) or (pa.types.is_timestamp(type_) and type_.unit in ("s", "ms")))


def _holds_times(type_: pa.DataType) -> bool:
    parts = [type_.field(index).type for index in range(type_.num_fields)]
    return any(pa.types.is_temporal(part) or (pa.types.is_nested(part) and _holds_times(part)) for part in parts)


def _within(numbers: Any, low: int, high: int) -> Any:
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(fits, numbers, pa.scalar(None, numbers.type))


def _decoded(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column.dictionary_decode()


def _is_valid(column: Any) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _valid_rows(column: Any) -> Any:
    """Return the column with NULL for every text that is not UTF-8."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    are_valid = [[_is_valid(chunk.slice(row, 1)) for row in range(len(chunk))] for chunk in chunks]
    # Rows are taken by index, so that the bytes of a row that is left out are not copied.
    readable = [
        chunk.take(pa.array([row if good else None for row, good in enumerate(rows)], pa.int64()))
        for chunk, rows in zip(chunks, are_valid, strict=True)
    ]
    return pa.chunked_array(readable, column.type) if isinstance(column, pa.ChunkedArray) else readable[0]
