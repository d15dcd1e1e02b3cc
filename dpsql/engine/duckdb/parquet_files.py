"""Parquet files of one table, in groups that store the columns of the policy in the same types.

A reader that takes the types of one file for the values of another raises at a value that does not fit, and a common type of
both raises at values of either: whether a question is answered would depend on one row. So each file is read in its own types,
and each cell is converted to the policy's type on its own. Everything here follows from the schemas in the footers of the files;
no value and no statistic of a column is read. A type at whose values a reader might fail is not read at all.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

from dpsql.errors.exceptions import refuse
from dpsql.policy.types import PolicyColumn
from dpsql.storage.records import dataclass

# --- Arrow columns ----------------------------------------------------------------------------------------------------

# Conversion of Arrow columns so that DuckDB can read every value; values without a counterpart become NULL.
# Measured with DuckDB 2.0: its Arrow and Parquet readers raise at timestamps in seconds or milliseconds and intervals beyond
# 64 bits of microseconds, at times outside a day, and at texts that are not UTF-8, before any of our expressions sees the
# value. So such values are replaced here; the decision depends only on the bits of the value itself.

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
    """Return the column with NULL for every value that DuckDB cannot read. Nested columns, which no policy has, stay."""
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
    indexes = [index for index, name in enumerate(table.column_names) if name.lower() in readable]
    return pa.table(
        [total(table.column(index)) for index in indexes], names=[table.column_names[index] for index in indexes]
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


# --- parquet files ----------------------------------------------------------------------------------------------------

_log = logging.getLogger("dpsql.custodian")
_DECIMAL_BYTES = {4: 2, 9: 4, 18: 8, 38: 16}
"""The bytes in which DuckDB holds decimals with so many digits. Its reader raises at a value that needs more, and reads decimals
with more digits as inexact numbers."""
_ARROW_BYTES = {38: 16, 76: 32}
"""The same for pyarrow."""

_TOTAL_IN_DUCKDB = frozenset({
    "BOOLEAN NONE", "FLOAT NONE", "DOUBLE NONE",
    "INT32 NONE", "INT32 INT", "INT32 DATE", "INT32 DECIMAL", "INT32 UNKNOWN",
    "INT64 NONE", "INT64 INT", "INT64 DECIMAL", "INT64 TIMESTAMP microseconds", "INT64 TIMESTAMP nanoseconds",
    "BYTE_ARRAY NONE", "BYTE_ARRAY STRING", "BYTE_ARRAY ENUM",
    "FIXED_LEN_BYTE_ARRAY NONE", "FIXED_LEN_BYTE_ARRAY DECIMAL", "FIXED_LEN_BYTE_ARRAY UUID",
})  # fmt: skip
"""Physical and logical types of which DuckDB's reader reads every value (but for texts that are not UTF-8: privacy.md 9)."""

_TOTAL_IN_ARROW = frozenset({
    "INT32 TIME milliseconds", "INT64 TIME microseconds", "INT64 TIME nanoseconds", "INT64 TIMESTAMP milliseconds", "INT96 NONE",
    "BYTE_ARRAY JSON", "FIXED_LEN_BYTE_ARRAY DECIMAL roomy", "FIXED_LEN_BYTE_ARRAY FLOAT16",
})  # fmt: skip
"""Further types of which pyarrow reads every value, and DuckDB's reader raises at some or rounds them."""

_MEANINGS = {
    "BYTE_ARRAY STRING": pa.string(), "BYTE_ARRAY ENUM": pa.string(), "BYTE_ARRAY JSON": pa.string(),
    "FIXED_LEN_BYTE_ARRAY UUID": pa.uuid(), "INT64 NONE": pa.int64(),
}  # fmt: skip
"""The types of values that pyarrow may read in others: texts as bytes, and plain integers as durations."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of the policy as a file stores it. `name`: its name in the file; `kind`: physical and logical type, as in the
    lists above; `details`: what else distinguishes its type; `arrow`: the type in which pyarrow reads it."""

    column: str
    name: str
    kind: str
    details: str
    arrow: pa.DataType


@dataclass(frozen=True)
class FileGroup:
    """Files with equal types. `by_arrow`: pyarrow reads them; `keys`: columns that are only in the files' paths, as they are
    spelled there (`region=north/`); `absent`: columns that are NULL in all rows of these files."""

    paths: tuple[Path, ...]
    stored: tuple[StoredColumn, ...]
    by_arrow: bool
    keys: tuple[str, ...]
    absent: tuple[str, ...] = ()

    def dataset(self) -> TotalParquet:
        """Return the files as pyarrow reads them. Raises OSError, pyarrow.ArrowException."""
        return TotalParquet(self.paths, {stored.name: _MEANINGS.get(stored.kind) for stored in self.stored}, self.keys)


def grouped(
    table: str,
    paths: Sequence[Path],
    columns: Collection[PolicyColumn],
    may_lack: Collection[str] = (),
    *,
    total: bool = False,
) -> list[FileGroup]:
    """Return the files of a table in groups, in the order of their first files. `may_lack`: names in the source, in lower case,
    of columns that are NULL in files without them. `total`: pyarrow reads every file, so that texts that are not UTF-8 are NULL.

    Raises Fault source_column_missing, source_column_twice, source_column_type, source_files_differ; OSError, UnicodeDecodeError
    and pyarrow.ArrowException if a footer cannot be read.
    """
    metadata = {path: pq.read_metadata(path) for path in paths}
    files = {path: _stored(table, path, columns, metadata[path]) for path in paths}
    in_files = {stored.column for columns_of_file in files.values() for stored in columns_of_file}
    optional = {column.name: column.source_name for column in columns if column.source_name.lower() in may_lack}
    for path, columns_of_file in files.items():
        absent = in_files - {stored.column for stored in columns_of_file} - set(optional)
        if absent:
            column = min(absent)
            _log.error("column %s of table %s is not in %s", column, table, path)
            raise refuse("source_files_differ", table=table, what=f"column {column}, which is not in all of them")
    in_files |= set(optional)
    keys = _keys(table, paths, [column for column in columns if column.name not in in_files])
    # DuckDB reads every key of a path if it reads one, in place of a column of the files that has its name.
    hidden = {key.lower() for path in (paths if keys else ()) for key in _KEY.findall(path.as_posix())}
    groups: dict[Any, list[Path]] = {}
    for path, columns_of_file in files.items():
        by_arrow = total or any(stored.kind in _TOTAL_IN_ARROW for stored in columns_of_file)
        by_arrow = by_arrow or _is_misnamed(metadata[path], [column.source_name for column in columns])
        by_arrow = by_arrow or any(stored.name.lower() in hidden for stored in columns_of_file)
        # How pyarrow reads a type depends on more than the type.
        types = tuple((s.name, s.kind, s.details, s.arrow if by_arrow else None) for s in columns_of_file)
        groups.setdefault((by_arrow, types), []).append(path)
    return [
        FileGroup(tuple(group), stored := files[group[0]], by_arrow, keys, _absent_columns(optional, stored))
        for (by_arrow, _), group in groups.items()
    ]


def _absent_columns(optional: Mapping[str, str], stored: Iterable[StoredColumn]) -> tuple[str, ...]:
    """Return the names in the source of those optional columns that a file does not have."""
    present = {column.column for column in stored}
    return tuple(in_source for column, in_source in optional.items() if column not in present)


def _is_misnamed(metadata: Any, columns: Iterable[str]) -> bool:
    """Return whether DuckDB may read another column of a file in place of one of `columns`. Of columns whose names differ in
    upper and lower case alone, it calls the later ones `age_1`, `age_2`, and renames the columns that have these names."""
    names = Counter(field.name.lower() for field in metadata.schema.to_arrow_schema())
    repeated = tuple(f"{name}_" for name, times in names.items() if times > 1)
    return any(column.lower().startswith(repeated) for column in columns)


def _stored(table: str, path: Path, columns: Collection[PolicyColumn], metadata: Any) -> tuple[StoredColumn, ...]:
    """Return the columns of the policy that are in a file."""
    fields, leaf = metadata.schema.to_arrow_schema(), 0
    geometries = _geometries(metadata)
    by_name: dict[str, list[PolicyColumn]] = {}
    for column in columns:
        by_name.setdefault(column.source_name.lower(), []).append(column)
    in_file: dict[str, StoredColumn] = {}
    for field in fields:
        for column in by_name.get(field.name.lower(), ()):
            if column.name in in_file:
                raise refuse("source_column_twice", table=table, column=column.name)
            kind, details = _kind(metadata.schema.column(leaf), field.type)
            if field.name in geometries:
                kind = "geometry"
            if kind not in _TOTAL_IN_DUCKDB | _TOTAL_IN_ARROW:
                _log.error("column %s of table %s is %s in %s", column.name, table, field.type, path)
                raise refuse("source_column_type", table=table, column=column.name, given=kind, wanted=column.type)
            in_file[column.name] = StoredColumn(column.name, field.name, kind, details, field.type)
        leaf += _leaves(field.type)
    return tuple(in_file[column.name] for column in columns if column.name in in_file)


def _kind(leaf: Any, type_: pa.DataType) -> tuple[str, str]:
    """Return the kind of a column without parts, and the details of its type; for other columns the word for their type.
    `leaf`: the first part of the column in the file's schema."""
    if pa.types.is_nested(_storage(type_)):
        return re.match(r"\w*", str(_storage(type_)))[0], ""  # type: ignore[index]
    logical = json.loads(leaf.logical_type.to_json())
    kind = f"{leaf.physical_type} {leaf.logical_type.type}"
    if "timeUnit" in logical:
        kind += f" {logical['timeUnit']}"
    if kind == "FIXED_LEN_BYTE_ARRAY DECIMAL" and not _fits(_DECIMAL_BYTES, leaf):
        kind += " roomy" if _fits(_ARROW_BYTES, leaf) else f" of {leaf.length} bytes"
    details = [leaf.length, leaf.precision, leaf.scale]
    details += [logical.get(name) for name in ("bitWidth", "isSigned", "isAdjustedToUTC")]
    return kind, str(details)


def _fits(bytes_by_digits: Mapping[int, int], leaf: Any) -> bool:
    """Return whether every value of a column of decimals fits the bytes that a reader has for so many digits."""
    return bool(leaf.length <= next((size for digits, size in bytes_by_digits.items() if leaf.precision <= digits), 0))


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _leaves(type_: pa.DataType) -> int:
    """Return the number of a field's columns in the file's schema."""
    stored = _storage(type_)
    if not pa.types.is_nested(stored):
        return 1
    return sum(_leaves(stored.field(index).type) for index in range(stored.num_fields))


def _geometries(metadata: Any) -> Iterable[str]:
    """Return the names of the columns that a GeoParquet file says to be geometries, which DuckDB then validates."""
    description = (metadata.metadata or {}).get(b"geo")
    if description is None:
        return ()
    try:
        return frozenset(json.loads(description)["columns"])
    except (ValueError, KeyError, TypeError) as error:
        raise pa.ArrowInvalid("its description of geometries cannot be read") from error


_KEY = re.compile(r"(?<=/)([^/=]+)=[^/=]*(?=/)")


def _keys(table: str, paths: Sequence[Path], columns: Sequence[PolicyColumn]) -> tuple[str, ...]:
    """Return the spellings of `columns`, which are in no file, as keys in the paths of all files."""
    spelled = [tuple(_KEY.findall(path.as_posix())) for path in paths]
    keys = {key.lower(): key for key in spelled[0]} if len(set(spelled)) == 1 else {}
    for column in columns:
        if column.source_name.lower() not in keys:
            raise refuse("source_column_missing", table=table, column=column.name)
        if [key.lower() for key in spelled[0]].count(column.source_name.lower()) > 1:
            raise refuse("source_column_twice", table=table, column=column.name)
    return tuple(keys[column.source_name.lower()] for column in columns)
