"""COPY (query) TO STDOUT: text, CSV and binary rows.

Source: PostgreSQL 16 documentation, COPY, section "File Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.commands import unquoted
from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.frontends.pgwire.messages import COPY_DONE, copy_data, copy_out
from dpsql.frontends.pgwire.rows import Rows, data_row, writers

_HEADER = b"PGCOPY\n\377\r\n\0" + struct.pack("!II", 0, 0)
_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})


@dataclass(frozen=True)
class CopyOptions:
    """The format of the rows. `delimiter` and `null` are texts; `header`: the column names come first."""

    form: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False


def read_options(words: Sequence[str]) -> CopyOptions:
    """Return the options after TO STDOUT, in brackets or in the old syntax. Raises copy_option."""
    plain = [word for word in words if word not in ("(", ")", ",") and word.upper() not in ("WITH", "AS")]
    options: dict[str, str] = {}
    index = 0
    while index < len(plain):
        word = plain[index].upper()
        if word in ("CSV", "BINARY"):
            options["FORMAT"], index = word, index + 1
        elif word in ("FORMAT", "DELIMITER", "NULL", "ENCODING", "QUOTE", "ESCAPE") and index + 1 < len(plain):
            options[word], index = unquoted(plain[index + 1]), index + 2
        elif word == "HEADER":
            given_value = unquoted(plain[index + 1]).upper() if index + 1 < len(plain) else ""
            has_value = given_value in ("TRUE", "FALSE", "ON", "OFF", "1", "0")
            options[word], index = given_value if has_value else "TRUE", index + 1 + has_value
        else:
            raise refuse("copy_option", option=plain[index])
    return _options(options)


def _options(options: dict[str, str]) -> CopyOptions:
    form = options.get("FORMAT", "text").lower()
    usual = CopyOptions(form, ",", "") if form == "csv" else CopyOptions(form)
    delimiter = options.get("DELIMITER", usual.delimiter)
    quotes = options.get("QUOTE", '"') + options.get("ESCAPE", '"')
    encoding = options.get("ENCODING", "UTF8").upper()
    if form not in ("text", "csv", "binary"):
        raise said("22023", f'COPY format "{form}" not recognized')
    if len(delimiter) != 1 or quotes != '""' or encoding not in ("UTF8", "UTF-8"):
        raise refuse("copy_option", option="delimiter, quote or encoding")
    null = options.get("NULL", usual.null)
    # PostgreSQL too refuses what would not be read back unchanged.
    taken = '"' if form == "csv" else "\\.abcdefghijklmnopqrstuvwxyz0123456789"
    if form != "binary" and (delimiter in taken + "\r\n" + null or any(end in null for end in "\r\n")):
        raise refuse("copy_option", option="delimiter or null")
    header = options.get("HEADER", "FALSE") in ("TRUE", "ON", "1")
    return CopyOptions(form, delimiter, null, header and form != "binary")


def copy_messages(rows: Rows, options: CopyOptions) -> Iterator[bytes]:
    """Yield the messages CopyOutResponse, CopyData for each row, and CopyDone."""
    binary = options.form == "binary"
    to_bytes = writers(rows.fields, (int(binary),) * len(rows.fields))
    start = copy_out(len(rows.fields), binary)
    if options.header:
        names = [field.name.encode("utf-8", "replace") for field in rows.fields]
        start += copy_data(_line(names, options))
    first = _HEADER if binary else b""
    for batch in rows.fetch(None):
        pieces = []
        for row in batch:
            data = data_row(row, to_bytes) if binary else _line(_cells(row, to_bytes), options)
            # Some drivers expect the header in the same message as the first row.
            pieces.append(copy_data(first + data))
            first = b""
        yield start + b"".join(pieces)
        start = b""
    yield start + (copy_data(first + b"\xff\xff") if binary else b"") + COPY_DONE


def _cells(row: Sequence[Any], to_bytes: Sequence[Any]) -> list[bytes | None]:
    return [None if value is None else write(value) for value, write in zip(row, to_bytes, strict=True)]


def _line(cells: Sequence[bytes | None], options: CopyOptions) -> bytes:
    written = [options.null if cell is None else _cell(cell.decode("utf-8", "replace"), options) for cell in cells]
    return (options.delimiter.join(written) + "\n").encode("utf-8", "replace")


def _cell(text: str, options: CopyOptions) -> str:
    if options.form == "text":
        escaped = text.translate(_ESCAPES)
        return escaped if options.delimiter == "\t" else escaped.replace(options.delimiter, "\\" + options.delimiter)
    if text in (options.null, "\\.") or any(c in text for c in (options.delimiter, '"', "\n", "\r")):
        return '"' + text.replace('"', '""') + '"'
    return text
