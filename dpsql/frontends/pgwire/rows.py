"""Answers for a client: columns with PostgreSQL's types, and rows of an Arrow table as messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dpsql.engine.memory_account import Held
from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.messages import message, row_description
from dpsql.plan.intervals import Type

BATCH = 1000
"""Largest number of rows that are converted to bytes at once."""
BATCH_BYTES = 1 << 18
"""Largest size of these rows, unless a single row is larger; it bounds the memory that a slow reader occupies."""
_CONVERTED_TIMES = 6
"""Number of copies of a large row that there are while it is sent: values of Python, bytes of each, the message, the socket's."""
_NULL = struct.pack("!i", -1)
_LENGTH = struct.Struct("!i")

OIDS = {
    Type.INTEGER: e.INT8, Type.REAL: e.FLOAT8, Type.TEXT: e.TEXT, Type.BOOLEAN: e.BOOL, Type.DATE: e.DATE,
    Type.TIMESTAMP: e.TIMESTAMP, Type.NULL: e.TEXT, Type.INTEGER_LIST: e.ARRAY_OF[e.INT8],
    Type.REAL_LIST: e.ARRAY_OF[e.FLOAT8], Type.DATE_LIST: e.ARRAY_OF[e.DATE],
    Type.TEXT_LIST: e.ARRAY_OF[e.TEXT], Type.BOOLEAN_LIST: e.ARRAY_OF[e.BOOL],
    Type.TIMESTAMP_LIST: e.ARRAY_OF[e.TIMESTAMP],
}  # fmt: skip


@dataclass(frozen=True)
class ResultField:
    """One column as a client sees it."""

    name: str
    oid: int


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement: rows (None for a statement without any), notices, and changed settings.

    `tag` is the command tag; for rows it lacks the count, which is added when they have been sent. `held`: the memory of the
    rows, which whoever keeps them releases. `is_paid`: whether something was charged.
    """

    tag: str
    fields: tuple[ResultField, ...] = ()
    table: pa.Table | None = None
    notices: tuple[tuple[str, str], ...] = ()
    statuses: tuple[tuple[str, str], ...] = ()
    held: Held | None = None
    is_paid: bool = False


def oid_of(type_: pa.DataType) -> int:
    """Return the OID for an Arrow type; an unsigned integer of 32 bits is an oid of the catalog."""
    kinds = (
        (pa.types.is_boolean, e.BOOL), (pa.types.is_uint32, e.OID), (pa.types.is_int8, e.INT2), (pa.types.is_int16,
        e.INT2),
        (pa.types.is_uint8, e.INT2), (pa.types.is_int32, e.INT4), (pa.types.is_uint16, e.INT2), (pa.types.is_int64,
        e.INT8), (pa.types.is_uint64, e.OID),
        (pa.types.is_integer, e.NUMERIC), (pa.types.is_decimal, e.NUMERIC), (pa.types.is_float32, e.FLOAT4),
        (pa.types.is_floating, e.FLOAT8), (pa.types.is_date, e.DATE), (pa.types.is_time, e.TIME),
        (pa.types.is_interval, e.INTERVAL), (pa.types.is_duration, e.INTERVAL), (pa.types.is_binary, e.BYTEA),
    )  # fmt: skip
    if pa.types.is_timestamp(type_):
        return e.TIMESTAMP if type_.tz is None else e.TIMESTAMPTZ
    if pa.types.is_list(type_):
        element = type_.value_type
        if pa.types.is_uint16(element) or pa.types.is_uint64(element):
            return e.INT2VECTOR if pa.types.is_uint16(element) else e.OIDVECTOR
        return oid_of(element) if pa.types.is_list(element) else e.ARRAY_OF.get(oid_of(element), e.ARRAY_OF[e.TEXT])
    if pa.types.is_struct(type_):
        return e.NAMED.get(type_.field(0).name, e.RECORD)
    return next((oid for holds, oid in kinds if holds(type_)), e.TEXT)


def formats_for(requested: Sequence[int], width: int) -> tuple[int, ...]:
    """Return one format for each column, from no format, one for all or one for each. Raises wire_formats."""
    if len(requested) == width:
        formats = tuple(requested)
    elif len(requested) <= 1:
        formats = (requested[0] if requested else 0,) * width
    else:
        raise refuse("wire_formats", got=len(requested), want=width)
    if any(form not in (0, 1) for form in formats):
        raise refuse("wire_format")
    return formats


def described(fields: Sequence[ResultField], formats: Sequence[int]) -> bytes:
    """Return the message RowDescription."""
    return row_description([(column.name, column.oid, e.codec(column.oid).size) for column in fields], formats)


def writers(fields: Sequence[ResultField], formats: Sequence[int]) -> list[Any]:
    """Return, for each column, a function that converts a value other than NULL to bytes."""
    senders: list[Any] = []
    for column, form in zip(fields, formats, strict=True):
        kind = e.codec(column.oid)
        senders.append(_binary(column.oid, kind) if form else _texts(kind))
    return senders


def _texts(kind: e.Codec) -> Any:
    """Return a function that writes values as texts; a str is one already, as PostgreSQL writes it."""
    write = kind.write
    return lambda value: (value if isinstance(value, str) else write(value)).encode("utf-8", "replace")


def _binary(oid: int, kind: e.Codec) -> Any:
    send, read = kind.send, kind.read
    if oid not in e.CODECS and oid not in e.ARRAYS:
        raise refuse("wire_binary", oid=oid)

    def sent(value: Any) -> bytes:
        if not isinstance(value, str):
            return send(value)
        if oid == e.RECORD:
            raise refuse("wire_binary", oid=oid)
        try:
            return send(read(value))
        except ValueError:  # infinity, and arrays of arrays
            raise refuse("wire_binary", oid=oid) from None

    return sent


@dataclass
class Rows:
    """The rows of an answer, and how many have been fetched; fetching never asks again. Their memory (`held`) is released with
    the last of them, or by `close`."""

    fields: tuple[ResultField, ...]
    table: pa.Table
    held: Held | None = None
    position: int = field(default=0)

    @property
    def left(self) -> int:
        """The number of rows not fetched yet."""
        return int(self.table.num_rows) - self.position

    def fetch(self, most: int | None) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the next `most` rows (None: all that are left) in batches of Python values. Raises memory_full for a large row
        that there is no room to convert; it is not fetched then."""
        end = self.position + (self.left if most is None else min(most, self.left))
        while self.position < end:
            part = self._next(end - self.position)
            with self._converting(part.nbytes):
                columns = [column.to_pylist() for column in part.columns]
                self.position += part.num_rows
                yield list(zip(*columns, strict=True)) if columns else [()] * part.num_rows
        self.close_if_fetched()

    def _converting(self, size: int) -> AbstractContextManager[object]:
        """Return a context in which a single row of `size` bytes is converted and sent."""
        if self.held is None or size <= BATCH_BYTES:
            return nullcontext()
        return self.held.account.reserve(_CONVERTED_TIMES * size, "sent")

    def _next(self, most: int) -> pa.Table:
        """Return the next rows, at most `most`, and as many as are converted at once."""
        size = min(BATCH, most)
        while (part := self.table.slice(self.position, size)).nbytes > BATCH_BYTES and size > 1:
            size //= 2
        return part

    def part(self, most: int | None) -> StatementResult:
        """Fetch the next `most` rows (None: all that are left) as the result of FETCH, which shares the memory of all."""
        size = self.left if most is None else min(most, self.left)
        held = None if self.held is None else self.held.share()
        result = StatementResult("FETCH", self.fields, self.table.slice(self.position, size), held=held)
        self.position += size
        self.close_if_fetched()
        return result

    def close_if_fetched(self) -> None:
        """Release the rows if all have been fetched: there is no way back to them."""
        if not self.left:
            self.close()

    def close(self) -> None:
        """Release the rows if their memory is held."""
        if self.held is not None:
            self.table, self.position = self.table.schema.empty_table(), 0
            self.held.release()
            self.held = None

    def messages(self, most: int | None, formats: Sequence[int]) -> Iterator[bytes]:
        """Yield the next `most` rows as DataRow messages, many in each piece of bytes."""
        to_bytes = writers(self.fields, formats)
        for batch in self.fetch(most):
            yield b"".join(message(b"D", data_row(row, to_bytes)) for row in batch)


def data_row(row: Sequence[Any], to_bytes: Sequence[Any]) -> bytes:
    """Return the body of a DataRow message, which is a row of binary COPY as well."""
    parts = [struct.pack("!h", len(row))]
    for value, write in zip(row, to_bytes, strict=True):
        if value is None:
            parts.append(_NULL)
        else:
            data = write(value)
            parts += (_LENGTH.pack(len(data)), data)
    return b"".join(parts)
