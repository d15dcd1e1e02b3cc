"""Rows of answers are sent in the formats that the client requests, in pieces, each row once, with NULL distinct from empty
values."""

from __future__ import annotations

import struct
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.rows import (
    BATCH,
    OIDS,
    ResultField,
    Rows,
    StatementResult,
    data_row,
    described,
    formats_for,
    oid_of,
    writers,
)
from dpsql.plan.intervals import Type

NUMBER, TEXT = ResultField("n", e.INT4), ResultField("t", e.TEXT)


def numbers(count: int) -> Rows:
    return Rows((NUMBER,), pa.table({"n": pa.array(range(count), pa.int32())}))


@pytest.mark.parametrize(
    ("type_", "oid"),
    [
        (pa.bool_(), e.BOOL), (pa.int8(), e.INT2), (pa.uint8(), e.INT2), (pa.int16(), e.INT2), (pa.uint16(), e.INT2),
        (pa.int32(), e.INT4), (pa.uint32(), e.OID), (pa.int64(), e.INT8), (pa.uint64(), e.OID),
        (pa.decimal128(38, 6), e.NUMERIC), (pa.float16(), e.FLOAT8), (pa.float32(), e.FLOAT4), (pa.float64(), e.FLOAT8),
        (pa.date32(), e.DATE), (pa.date64(), e.DATE), (pa.time64("us"), e.TIME), (pa.timestamp("us"), e.TIMESTAMP),
        (pa.timestamp("us", "UTC"), e.TIMESTAMPTZ), (pa.month_day_nano_interval(), e.INTERVAL),
        (pa.duration("us"), e.INTERVAL), (pa.binary(), e.BYTEA), (pa.string(), e.TEXT), (pa.null(), e.TEXT),
        (pa.struct([("a", pa.int32())]), e.RECORD), (pa.list_(pa.int64()), e.ARRAY_OF[e.INT8]),
        (pa.list_(pa.timestamp("us")), e.ARRAY_OF[e.TIMESTAMP]), (pa.list_(pa.list_(pa.int8())), e.ARRAY_OF[e.INT2]),
        (pa.list_(pa.string()), e.ARRAY_OF[e.TEXT]),
    ],
    ids=str,
)  # fmt: skip
def test_types_of_columns_have_oids(type_: pa.DataType, oid: int) -> None:
    assert oid_of(type_) == oid


def test_every_type_of_an_answer_has_an_oid() -> None:
    assert set(OIDS) == set(Type)
    scalars = {type_: oid for type_, oid in OIDS.items() if not type_.name.endswith("_LIST")}
    for type_, oid in scalars.items():
        if f"{type_.name}_LIST" in Type.__members__:
            assert OIDS[Type[f"{type_.name}_LIST"]] == e.ARRAY_OF[oid]


@pytest.mark.parametrize(
    ("requested", "width", "formats"),
    [
        ((), 0, ()), ((), 3, (0, 0, 0)), ((1,), 3, (1, 1, 1)), ((0,), 2, (0, 0)), ((1,), 1, (1,)), ((1,), 0, ()),
        ((1, 0, 1), 3, (1, 0, 1)),
    ],
)  # fmt: skip
def test_no_format_is_text_and_a_single_one_is_for_all(
    requested: tuple[int, ...], width: int, formats: tuple[int, ...]
) -> None:
    assert formats_for(requested, width) == formats


@pytest.mark.parametrize(
    ("requested", "width", "slug"),
    [
        ((0, 0), 1, "wire_formats"), ((0, 0), 3, "wire_formats"), ((0, 0), 0, "wire_formats"), ((2,), 3, "wire_format"),
        ((-1,), 1, "wire_format"), ((0, 7), 2, "wire_format"), ((7, 7), 3, "wire_formats"),
    ],
)  # fmt: skip
def test_formats_that_cannot_be_are_refused(requested: tuple[int, ...], width: int, slug: str) -> None:
    with pytest.raises(Error) as caught:
        formats_for(requested, width)
    assert caught.value.slug == slug
    if slug == "wire_formats":
        assert f"{len(requested)} result formats but query has {width} columns" in caught.value.message


def test_columns_are_described_with_the_sizes_of_their_types() -> None:
    columns = [struct.pack("!IhIhih", 0, 0, *column) for column in ((23, 4, -1, 1), (25, -1, -1, 0))]
    body = b"\0\2n\0" + columns[0] + b"t\0" + columns[1]
    assert described((NUMBER, TEXT), (1, 0)) == b"T" + struct.pack("!I", len(body) + 4) + body


def test_values_are_written_as_text_or_binary() -> None:
    assert [write(258) for write in writers((NUMBER, NUMBER), (0, 1))] == [b"258", b"\0\0\1\2"]
    assert [write("é") for write in writers((TEXT, TEXT), (0, 1))] == ["é".encode()] * 2
    assert writers((TEXT,), (0,))[0]("a\ud800") == b"a?", "a text that UTF-8 cannot hold does not stop the answer"
    with pytest.raises(ValueError, match="zip"):
        writers((TEXT,), (0, 0))


def test_a_row_holds_lengths_and_values_and_null_is_not_empty() -> None:
    write = writers((TEXT, TEXT, NUMBER), (0, 0, 1))
    assert data_row(("ab", "", 1), write) == b"\0\3" + b"\0\0\0\2ab" + b"\0\0\0\0" + b"\0\0\0\4\0\0\0\1"
    assert data_row((None, "x", None), write) == b"\0\3" + b"\xff" * 4 + b"\0\0\0\1x" + b"\xff" * 4
    assert data_row((), []) == b"\0\0"
    with pytest.raises(ValueError, match="zip"):
        data_row((1,), [])


# --- fetching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 100])
def test_rows_come_in_order_and_each_once(most: int) -> None:
    rows, fetched = numbers(7), list[Any]()
    while rows.left:
        expected = min(most, rows.left)
        before = rows.left
        piece = [row for batch in rows.fetch(most) for row in batch]
        assert (len(piece), before - rows.left) == (expected, expected)
        fetched += piece
    assert fetched == [(number,) for number in range(7)]
    assert list(rows.fetch(most)) == list(rows.fetch(None)) == [] and rows.left == 0


def test_the_rest_is_fetched_without_a_number() -> None:
    rows = numbers(5)
    assert list(rows.fetch(2)) == [[(0,), (1,)]]
    assert list(rows.fetch(0)) == [] and rows.left == 3
    assert list(rows.fetch(None)) == [[(2,), (3,), (4,)]]


def test_a_long_answer_comes_in_batches() -> None:
    rows = numbers(2 * BATCH + 3)
    assert [len(batch) for batch in rows.fetch(None)] == [BATCH, BATCH, 3]
    rows = numbers(2 * BATCH)
    assert [len(batch) for batch in rows.fetch(BATCH + 1)] == [BATCH, 1]
    assert [len(batch) for batch in rows.fetch(None)] == [BATCH - 1]


def test_a_batch_counts_as_fetched_when_it_is_handed_out() -> None:
    """A client that disconnects in the middle has not fetched rows that were not produced yet."""
    rows = numbers(2 * BATCH)
    assert len(next(rows.fetch(None))) == BATCH
    assert (rows.left, rows.position) == (BATCH, BATCH)


def test_an_answer_without_columns_has_rows_all_the_same() -> None:
    table = pa.table({"n": [1, 2, 3]}).select([])
    assert table.num_rows == 3
    assert list(Rows((), table).fetch(None)) == [[(), (), ()]]
    assert list(Rows((), table).messages(2, ())) == [b"D\0\0\0\6\0\0" * 2]


def test_rows_are_messages_many_in_a_piece() -> None:
    table = pa.table({"n": pa.array([7, None], pa.int32()), "t": ["x", "yz"]})
    rows = Rows((NUMBER, TEXT), table)
    first = b"D\0\0\0\x13" + b"\0\2" + b"\0\0\0\4\0\0\0\7" + b"\0\0\0\1x"
    second = b"D\0\0\0\x10" + b"\0\2" + b"\xff\xff\xff\xff" + b"\0\0\0\2yz"
    assert list(rows.messages(None, (1, 0))) == [first + second]
    assert list(rows.messages(None, (1, 0))) == []
    rows.position = 0
    assert list(rows.messages(1, (1, 0))) == [first] and list(rows.messages(1, (1, 0))) == [second]


def test_values_of_other_types_go_through_their_codecs() -> None:
    fields = (ResultField("d", e.DATE), ResultField("l", e.ARRAY_OF[e.INT8]), ResultField("b", e.BOOL))
    rows = Rows(fields, pa.table({"d": [date(2000, 1, 3)], "l": [[1, None]], "b": [True]}))
    assert list(rows.fetch(None)) == [[(date(2000, 1, 3), [1, None], True)]]
    rows.position = 0
    text = b"\0\0\0\x0a2000-01-03" + b"\0\0\0\x08{1,NULL}" + b"\0\0\0\1t"
    assert b"".join(rows.messages(None, (0, 0, 0)))[5:] == b"\0\3" + text
    rows.position = 0
    assert b"".join(rows.messages(None, (1, 1, 1)))[7:15] == b"\0\0\0\4\0\0\0\2", "days since 2000-01-01"


def test_a_statement_without_rows_has_no_table() -> None:
    result = StatementResult("SET")
    assert (result.fields, result.table, result.notices, result.statuses) == ((), None, (), ())
