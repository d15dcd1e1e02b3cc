"""Answers for a client: columns with PostgreSQL's types, rows of an Arrow table as messages, and COPY."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa

from dpsql.engine.memory_account import Held
from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.commands import unquoted
from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.frontends.pgwire.messages import COPY_DONE, copy_data, copy_out, message, row_description
from dpsql.plan.intervals import Type
from dpsql.storage.records import dataclass, field

BATCH = 1000
"""Largest number of rows that are converted to bytes at once."""
BATCH_BYTES = 1 << 18
"""Largest size of these rows, unless a single row is larger; it bounds the memory that a slow reader occupies."""
_CONVERTED_TIMES = 6
"""Number of copies of a large row that there are while it is sent: values of Python, bytes of each, the message, the socket's."""
_NULL = struct.pack("!i", -1)
_LENGTH, _COUNT = struct.Struct("!i").pack, struct.Struct("!h").pack

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
    modifier: int = -1
    table: int = 0
    number: int = 0
    """The OID of the relation from which the values come as they are, and the number of the column in it; 0 for others."""


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement: rows (None for a statement without any), notices (text and detail), and warnings (SQLSTATE and
    text).

    `tag` is the command tag; for rows it lacks the count, which is added when they have been sent. `held`: the memory of the
    rows, which whoever keeps them releases. `is_paid`: whether something was charged.
    """

    tag: str
    fields: tuple[ResultField, ...] = ()
    table: pa.Table | None = None
    notices: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    held: Held | None = None
    is_paid: bool = False


def formats_for(requested: Sequence[int], width: int, kind: str = "result") -> tuple[int, ...]:
    """Return one format for each column or parameter, from no format, one for all or one for each. Raises wire_formats and
    wire_format."""
    if len(requested) == width:
        formats = tuple(requested)
    elif len(requested) <= 1:
        formats = (requested[0] if requested else 0,) * width
    else:
        has = f"query has {width} columns" if kind == "result" else f"{width} parameters"
        raise refuse("wire_formats", got=len(requested), kind=kind, has=has)
    for form in formats:
        if form not in (0, 1):
            raise refuse("wire_format", code=form)
    return formats


def described(fields: Sequence[ResultField], formats: Sequence[int]) -> bytes:
    """Return the message RowDescription."""
    columns = [(c.name, c.table, c.number, c.oid, e.codec(c.oid).size, c.modifier) for c in fields]
    return row_description(columns, formats)


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
    send = kind.send
    if oid not in e.CODECS and oid not in e.ARRAYS:
        raise refuse("wire_binary", oid=oid)

    def sent(value: Any) -> bytes:
        try:
            return e.binary_of_text(oid, value) if isinstance(value, str) else send(value)
        except ValueError:
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
    """The row that was fetched last, from 1; 0 before the first one, and behind the last one a number more than there are."""
    scrolls: bool = False
    """Whether rows can be fetched again."""

    @property
    def left(self) -> int:
        """The number of rows not fetched yet."""
        return max(int(self.table.num_rows) - self.position, 0)

    def fetch(self, most: int | None, formats: Sequence[int]) -> Iterator[list[tuple[bytes | None, ...]]]:
        """Yield the next `most` rows (None: all that are left) in batches of values as bytes. Raises memory_full for a large row
        that there is no room to convert; it is not fetched then."""
        to_bytes = writers(self.fields, formats)
        end = self.position + (self.left if most is None else min(most, self.left))
        while self.position < end:
            part = self._next(end - self.position)
            with self._converting(part.nbytes):
                columns = [
                    [None if value is None else write(value) for value in column.to_pylist()]
                    for column, write in zip(part.columns, to_bytes, strict=True)
                ]
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

    def move(self, direction: str) -> int:
        """Pass the rows in the direction that MOVE names, and return their number. Raises cursor_forward."""
        chosen, self.position = self._chosen(direction)
        self.close_if_fetched()
        return len(chosen)

    def part(self, direction: str) -> StatementResult:
        """Fetch rows in the direction that FETCH names, as its result, which shares the memory of all, unless they are copied in
        the other order. Raises cursor_forward, and memory_full without room for a copy."""
        chosen, position = self._chosen(direction)
        start = min(chosen[0], chosen[-1]) - 1 if chosen else 0
        table, held = self.table.slice(start, len(chosen)), None
        if chosen.step < 0 and len(chosen) > 1:
            held = None if self.held is None else self.held.account.reserve(table.nbytes, "rows")
            table = table.take(list(range(len(chosen) - 1, -1, -1)))
        elif self.held is not None:
            held = self.held.share()
        self.position = position
        self.close_if_fetched()
        return StatementResult("FETCH", self.fields, table, held=held)

    def _chosen(self, direction: str) -> tuple[range, int]:
        """Return the numbers of the rows in a direction, and the position behind them. Raises cursor_forward."""
        word, count = direction.split()
        rows, before = int(self.table.num_rows), self.position
        limit = max(rows, before) + 1
        most = limit if count == "all" else min(abs(int(count)), limit) * (-1 if count[0] == "-" else 1)
        if word in ("absolute", "relative"):
            start = 0 if word == "absolute" else before
            end = rows + 1 + most if word == "absolute" and most < 0 else start + most
            chosen = range(end, end + 1)
        else:
            end = before + (most if word == "forward" else -most)
            chosen = range(before + 1, end + 1) if word == "forward" else range(before - 1, end - 1, -1)
            chosen = range(before, before + 1) if most == 0 else chosen
        is_on_row = 0 < before <= rows
        is_back = end < before or (end == before and is_on_row) or (word == "absolute" and most < 0)
        if is_back and not self.scrolls:
            raise refuse("cursor_forward")
        position = min(max(end, 0), max(rows + 1, before))
        if chosen.step < 0:
            return range(min(chosen.start, rows), max(chosen.stop, 0), -1), position
        return range(max(chosen.start, 1), min(chosen.stop, rows + 1)), position

    def close_if_fetched(self) -> None:
        """Release the rows if all have been fetched and there is no way back to them."""
        if not self.left and not self.scrolls:
            self.close()

    def close(self) -> None:
        """Release the rows if their memory is held."""
        if self.held is not None:
            self.position, self.table = int(self.table.num_rows) + 1, self.table.schema.empty_table()
            self.held.release()
            self.held = None

    def messages(self, most: int | None, formats: Sequence[int]) -> Iterator[bytes]:
        """Yield the next `most` rows as DataRow messages, many in each piece of bytes."""
        for batch in self.fetch(most, formats):
            yield b"".join([message(b"D", data_row(row)) for row in batch])


def data_row(row: Sequence[bytes | None]) -> bytes:
    """Return the body of a DataRow message, which is a row of binary COPY as well."""
    cells = [_NULL if data is None else _LENGTH(len(data)) + data for data in row]
    return _COUNT(len(row)) + b"".join(cells)


# --- COPY (query) TO STDOUT -------------------------------------------------------------------------------------------
# Text, CSV and binary rows.
#
# Source: PostgreSQL 16 documentation, COPY, section "File Formats".

_HEADER = b"PGCOPY\n\377\r\n\0" + struct.pack("!II", 0, 0)
_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})


@dataclass(frozen=True)
class CopyOptions:
    """The format of the rows. `delimiter`, `null`, `quote` and `escape` are texts; `header`: the column names come first;
    `forced`: the columns that are quoted always, `*` for all."""

    form: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    forced: tuple[str, ...] = ()


_TRUE, _FALSE = ("TRUE", "ON", "1"), ("FALSE", "OFF", "0")
_FOR_INPUT = ("FORCE_NOT_NULL", "FORCE_NULL", "FREEZE")


def read_options(words: Sequence[str]) -> CopyOptions:
    """Return the options after TO STDOUT, in brackets or in the old syntax. Raises what PostgreSQL says of others."""
    plain = [word for word in words if word not in ("(", ")", ",") and word.upper() not in ("WITH", "AS")]
    options, forced, index = dict[str, str](), list[str](), 0
    while index < len(plain):
        word, further = plain[index].upper(), plain[index + 1 :]
        if word == "FORCE":
            word, further, index = f"FORCE_{plain[index + 1].upper()}", further[1:], index + 1
        if word in ("CSV", "BINARY"):
            options["FORMAT"], index = word, index + 1
        elif word == "FORCE_QUOTE":
            count = next((k for k, other in enumerate(further) if other.upper() in _OPTION_WORDS), len(further))
            forced, index = [unquoted(name) for name in further[:count]], index + 1 + count
        elif word in ("FORMAT", "DELIMITER", "NULL", "ENCODING", "QUOTE", "ESCAPE") and further:
            if word in options:
                raise said("42601", "conflicting or redundant options")
            options[word], index = unquoted(further[0]), index + 2
        elif word == "HEADER":
            given_value = unquoted(further[0]).upper() if further else ""
            if given_value == "MATCH":
                raise said("0A000", 'cannot use "match" with HEADER in COPY TO')
            has_value = given_value in (*_TRUE, *_FALSE)
            options[word], index = given_value if has_value else "TRUE", index + 1 + has_value
        elif word in _FOR_INPUT:
            raise said("0A000", f"COPY {word.lower().replace('_', ' ')} only available using COPY FROM")
        else:
            raise said("42601", f'option "{plain[index].lower()}" not recognized')
    return _options(options, tuple(forced))


_OPTION_WORDS = {"FORMAT", "DELIMITER", "NULL", "ENCODING", "QUOTE", "ESCAPE", "HEADER", "CSV", "BINARY"}


def _options(options: dict[str, str], forced: tuple[str, ...]) -> CopyOptions:
    form = options.get("FORMAT", "text").lower()
    is_csv = form == "csv"
    usual = CopyOptions(form, ",", "") if is_csv else CopyOptions(form)
    delimiter, null = options.get("DELIMITER", usual.delimiter), options.get("NULL", usual.null)
    quote, header = options.get("QUOTE", '"'), options.get("HEADER", "FALSE") in _TRUE
    escape, encoding = options.get("ESCAPE", quote), options.get("ENCODING", "UTF8").upper()
    if form not in ("text", "csv", "binary"):
        raise said("22023", f'COPY format "{form}" not recognized')
    if encoding not in ("UTF8", "UTF-8", "SQL_ASCII"):
        raise refuse("copy_option", option="encoding")
    taken = f"\r\n{null}" + ("" if is_csv else "\\.abcdefghijklmnopqrstuvwxyz0123456789")
    wrong = (
        (form == "binary" and "DELIMITER" in options, "42601", "cannot specify DELIMITER in BINARY mode"),
        (form == "binary" and "NULL" in options, "42601", "cannot specify NULL in BINARY mode"),
        (form == "binary" and header, "0A000", "cannot specify HEADER in BINARY mode"),
        (len(delimiter.encode()) != 1, "0A000", "COPY delimiter must be a single one-byte character"),
        (delimiter in "\r\n", "22023", "COPY delimiter cannot be newline or carriage return"),
        ("\r" in null or "\n" in null, "22023", "COPY null representation cannot use newline or carriage return"),
        (form == "text" and delimiter in taken, "22023", f'COPY delimiter cannot be "{delimiter}"'),
        (not is_csv and "QUOTE" in options, "0A000", "COPY quote available only in CSV mode"),
        (len(quote.encode()) != 1, "0A000", "COPY quote must be a single one-byte character"),
        (is_csv and delimiter == quote, "22023", "COPY delimiter and quote must be different"),
        (not is_csv and "ESCAPE" in options, "0A000", "COPY escape available only in CSV mode"),
        (len(escape.encode()) != 1, "0A000", "COPY escape must be a single one-byte character"),
        (not is_csv and bool(forced), "0A000", "COPY force quote available only in CSV mode"),
        (delimiter in null, "0A000", "COPY delimiter must not appear in the NULL specification"),
        (is_csv and quote in null, "0A000", "CSV quote character must not appear in the NULL specification"),
    )
    for is_wrong, state, words in wrong:
        if is_wrong:
            raise said(state, words)
    return CopyOptions(form, delimiter, null, header, quote, escape, forced)


def copy_messages(rows: Rows, options: CopyOptions) -> Iterator[bytes]:
    """Yield the messages CopyOutResponse, CopyData for each row, and CopyDone."""
    binary = options.form == "binary"
    names = [field.name for field in rows.fields]
    for name in options.forced:
        if name not in (*names, "*"):
            raise said("42703", f'column "{name}" does not exist')
    forced = [name in options.forced or "*" in options.forced for name in names]
    start = copy_out(len(rows.fields), binary)
    if options.header:
        start += copy_data(_line([name.encode("utf-8", "replace") for name in names], options))
    first = _HEADER if binary else b""
    for batch in rows.fetch(None, (int(binary),) * len(rows.fields)):
        pieces = []
        for row in batch:
            data = data_row(row) if binary else _line(row, options, forced)
            # Some drivers expect the header in the same message as the first row.
            pieces.append(copy_data(first + data))
            first = b""
        yield start + b"".join(pieces)
        start = b""
    yield start + (copy_data(first + b"\xff\xff") if binary else b"") + COPY_DONE


def _line(cells: Sequence[bytes | None], options: CopyOptions, forced: Sequence[bool] = ()) -> bytes:
    if options.form == "text":
        written = [
            options.null if cell is None else _escaped(cell.decode("utf-8", "replace"), options) for cell in cells
        ]
    else:
        alone = len(cells) == 1
        pairs = zip(cells, forced or [False] * len(cells), strict=True)
        written = [
            options.null if cell is None else _cell(cell.decode("utf-8", "replace"), options, alone, is_forced)
            for cell, is_forced in pairs
        ]
    return (options.delimiter.join(written) + "\n").encode("utf-8", "replace")


def _escaped(text: str, options: CopyOptions) -> str:
    escaped = text.translate(_ESCAPES)
    return escaped if options.delimiter == "\t" else escaped.replace(options.delimiter, "\\" + options.delimiter)


def _cell(text: str, options: CopyOptions, alone: bool, is_forced: bool) -> str:
    """Return a cell of CSV, with quotes where it would not be read back without them."""
    quote, escape = options.quote, options.escape
    is_special = text == options.null or (alone and text == "\\.")
    if is_forced or is_special or any(c in text for c in (options.delimiter, quote, "\n", "\r")):
        inner = text if escape == quote else text.replace(escape, escape * 2)
        return quote + inner.replace(quote, escape + quote) + quote
    return text
