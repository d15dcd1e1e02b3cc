"""Conversion of Arrow columns so that DuckDB can read every value; values without a counterpart become NULL.

Measured with DuckDB 2.0: its Arrow and Parquet readers raise at timestamps in seconds or milliseconds and
intervals beyond 64 bits of microseconds, at times outside a day, and at texts that are not UTF-8, before any of our
expressions sees the value. So such values are replaced here; the decision depends only on the bits of the value itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    if isinstance(type_, pa.BaseExtensionType):
        return type_ if _is_uuid(type_) else total_type(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return total_type(type_.value_type)
    if pa.types.is_timestamp(type_) and type_.unit in ("s", "ms"):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_duration(type_) and type_.unit in ("s", "ms"):
        return pa.duration("us")
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal256(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    return type_


def total(column: Any) -> Any:
    """Return the column with NULL for every value that DuckDB cannot read. Nested columns are returned as they are: a policy
    has none."""
    type_ = column.type
    if pa.types.is_nested(total_type(type_)):
        return column
    if isinstance(type_, pa.BaseExtensionType):
        return column if _is_uuid(type_) else total(_in_chunks(column, lambda chunk: chunk.storage, type_.storage_type))
    if pa.types.is_dictionary(type_):
        # A dictionary may hold texts that are not UTF-8; decoding copies their bytes unread.
        return total(_in_chunks(column, lambda chunk: chunk.dictionary_decode(), type_.value_type))
    if pa.types.is_run_end_encoded(type_):
        return total(_in_chunks(column, pc.run_end_decode, type_.value_type))
    target = total_type(type_)
    if (pa.types.is_timestamp(type_) or pa.types.is_duration(type_)) and target != type_:
        factor = 10**6 // _PER_SECOND[type_.unit]
        numbers = _within(pc.cast(column, pa.int64()), -(_MOST // factor), _MOST // factor)
        return pc.cast(pc.multiply(numbers, factor), target)
    if pa.types.is_time(type_):
        numbers = pc.cast(column, pa.int32() if pa.types.is_time32(type_) else pa.int64())
        return pc.cast(_within(numbers, 0, _DAY_SECONDS * _PER_SECOND[type_.unit]), type_)
    if target != type_:
        return total(pc.cast(column, options=pc.CastOptions(target, allow_invalid_utf8=True)))
    return column if _is_valid(column) else _valid_rows(column)


def total_table(table: pa.Table, columns: Collection[str]) -> pa.Table:
    """Return the columns of a table that are in `columns`, in any case, with `total` applied to them."""
    readable = {name.lower() for name in columns}
    places = [place for place, name in enumerate(table.column_names) if name.lower() in readable]
    return pa.table(
        [total(table.column(place)) for place in places], names=[table.column_names[place] for place in places]
    )


class TotalParquet(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """Parquet files with equal types, read by pyarrow. A value means what it means to DuckDB's own reader, and is NULL where that
    one fails. DuckDB scans this like any dataset."""

    def __init__(
        self, paths: Sequence[Path], columns: Mapping[str, pa.DataType | None], keys: Sequence[str] = ()
    ) -> None:
        """`columns`: the columns that may be read, by their names in the files, with the type that their values have, None for
        the type in which pyarrow reads them. `keys`: columns that are in the files' paths."""
        self._columns = {**columns, **dict.fromkeys(keys)}
        self._files = pyarrow.dataset.dataset(
            [str(path) for path in paths],
            # Nanoseconds have no room for the values of INT96 outside the years 1677 to 2262.
            format=pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us"),
            partitioning=pyarrow.dataset.partitioning(pa.schema([(key, pa.string()) for key in keys]), flavor="hive"),
        )
        fields = ((name, self._meaning(name)) for name in self._files.schema.names if name in self._columns)
        self._schema = pa.schema([(name, total_type(type_)) for name, type_ in fields])

    def _meaning(self, name: str) -> pa.DataType:
        return self._columns[name] or self._files.schema.field(name).type

    @property
    def schema(self) -> pa.Schema:
        """The columns that may be read, with their types after `total`."""
        return self._schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> Any:
        """Return a scan of `columns` over the rows for which `filter` (a pyarrow expression) is true."""
        said = "" if filter is None else str(filter)
        read = [name for name in self._schema.names if columns is None or name in columns or name in said]
        schema = pa.schema([self._schema.field(name) for name in read])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._files.scanner(columns=read, use_threads=True).to_batches():
                arrays = [
                    total(_meant(column, self._columns[name])) for name, column in zip(read, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return pyarrow.dataset.Scanner.from_batches(reader, columns=read if columns is None else columns, filter=filter)


def _meant(column: Any, type_: pa.DataType | None) -> Any:
    """Return an array in the type that its values have; texts are not validated."""
    if type_ is None or type_ == column.type:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    elif isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, column)
    return pc.cast(column, options=pc.CastOptions(type_, allow_invalid_utf8=True))


def _is_uuid(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.UuidType)


def _within(numbers: Any, low: int, high: int) -> Any:
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(fits, numbers, pa.scalar(None, numbers.type))


def _in_chunks(column: Any, change: Callable[[Any], Any], type_: pa.DataType) -> Any:
    """Return an array or a chunked array whose chunks are changed to arrays of a type."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([change(chunk) for chunk in column.chunks], type_)
    return change(column)


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
