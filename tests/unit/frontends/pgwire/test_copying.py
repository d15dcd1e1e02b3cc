"""COPY TO STDOUT writes rows in PostgreSQL's text, CSV and binary formats so that they read back as the same values."""

import csv
import io
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.rows import CopyOptions, ResultField, Rows, copy_messages, writers

TEXT, CSV, BINARY = CopyOptions(), CopyOptions("csv", ",", ""), CopyOptions("binary")


def rows_of(values: dict[str, list[Any]], oid: int = e.TEXT) -> Rows:
    type_ = pa.string() if oid == e.TEXT else pa.int32()
    table = pa.table({name: pa.array(column, type_) for name, column in values.items()})
    return Rows(tuple(ResultField(name, oid) for name in values), table)


def parsed(pieces: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the types and bodies of messages."""
    data, messages, position = b"".join(pieces), list[tuple[bytes, bytes]](), 0
    while position < len(data):
        (length,) = struct.unpack("!I", data[position + 1 : position + 5])
        messages.append((data[position : position + 1], data[position + 5 : position + 1 + length]))
        position += 1 + length
    return messages


def copied(rows: Rows, options: CopyOptions) -> list[bytes]:
    """Return the bodies of CopyData between CopyOutResponse and CopyDone."""
    (first, response), *data, (last, nothing) = parsed(list(copy_messages(rows, options)))
    binary, width = int(options.form == "binary"), len(rows.fields)
    assert (first, response) == (b"H", struct.pack(f"!bH{width}h", binary, width, *[binary] * width))
    assert (last, nothing) == (b"c", b"") and all(kind == b"d" for kind, _ in data)
    return [body for _, body in data]


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"), ("", ""), (None, "\\N"), ("\\N", "\\\\N"), ("\\.", "\\\\."), ("a\tb", "a\\tb"),
        ("a\nb\rc", "a\\nb\\rc"), ("\b\f\v", "\\b\\f\\v"), ("back\\slash", "back\\\\slash"), ('"q",\'', '"q",\''),
        ("é", "é"),
    ],
)  # fmt: skip
def test_text_escapes_what_would_end_a_cell(value: str | None, written: str) -> None:
    assert copied(rows_of({"a": [value], "b": [value]}), TEXT) == [f"{written}\t{written}\n".encode()]


def test_a_text_that_utf8_cannot_hold_does_not_stop_the_rows() -> None:
    class Surrogates(Rows):
        def fetch(self, most: int | None, formats: Sequence[int]) -> Any:
            (write,) = writers(self.fields, formats)
            yield [(write("a\ud800"),)]

    rows = Surrogates((ResultField("n\ud800", e.TEXT),), pa.table({"n": ["x"]}))
    assert copied(rows, CopyOptions(header=True)) == [b"n?\n", b"a?\n"]


# --- CSV --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"), (None, ""), ("", '""'), ("a,b", '"a,b"'), ('say "x"', '"say ""x"""'), ("a\nb", '"a\nb"'),
        ("a\rb", '"a\rb"'), ("\\.", '"\\."'), ("\\", "\\"), ("a;b\tc", "a;b\tc"), (" ", " "),
    ],
)  # fmt: skip
def test_csv_quotes_what_would_be_read_as_something_else(value: str | None, written: str) -> None:
    rows = rows_of({"a": [value], "b": ["x"]})
    (line,) = copied(rows, CSV)
    assert line == f"{written},x\n".encode()
    assert next(csv.reader(io.StringIO(line.decode(), newline=""))) == [value or "", "x"]
