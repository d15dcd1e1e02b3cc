"""Values on the wire compared with a second implementation (psycopg's), and invalid parameters."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.rows import ResultField, writers

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    e.BOOL: st.booleans(),
    e.INT2: st.integers(-(2**15), 2**15 - 1),
    e.INT4: st.integers(-(2**31), 2**31 - 1),
    e.INT8: st.integers(-(2**63), 2**63 - 1),
    e.OID: st.integers(0, 2**32 - 1),
    e.FLOAT8: st.floats(allow_nan=False),
    e.NUMERIC: st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=7),
    e.TEXT: TEXTS,
    e.BYTEA: st.binary(max_size=20),
    e.DATE: st.dates(),
    e.TIME: st.times(),
    e.TIMESTAMP: st.datetimes(),
    e.INTERVAL: st.timedeltas(timedelta(days=-(10**5)), timedelta(days=10**5)),
}
CASES = st.one_of([st.tuples(st.just(oid), values) for oid, values in SCALARS.items()])
LISTS = st.one_of(
    [
        st.tuples(st.just(e.ARRAY_OF[oid]), st.lists(st.one_of(st.none(), values), max_size=4))
        for oid, values in SCALARS.items() if oid in e.ARRAY_OF
    ]
)  # fmt: skip


def _loaded(oid: int, form: Format, data: bytes) -> Any:
    """Return psycopg's reading of an answer's bytes."""
    return Transformer().get_loader(oid, form).load(data)


@settings(max_examples=400, deadline=None)
@given(st.one_of(CASES, LISTS))
def test_clients_read_what_is_written(case: tuple[int, Any]) -> None:
    oid, value = case
    kind = e.codec(oid)
    assert _loaded(oid, Format.TEXT, kind.write(value).encode()) == value
    assert _loaded(oid, Format.BINARY, kind.send(value)) == value


@settings(max_examples=300, deadline=None)
@given(st.one_of(CASES, LISTS))
def test_parameters_come_back_in_text_and_binary(case: tuple[int, Any]) -> None:
    oid, value = case
    if oid in (e.INTERVAL, e.ARRAY_OF[e.INTERVAL]):
        return
    kind = e.codec(oid)
    assert e.read_parameter(oid, 1, kind.send(value), 1) == value
    assert e.read_parameter(oid, 0, kind.write(value).encode(), 1) == value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*e.CODECS, *e.ARRAYS]), st.sampled_from([0, 1]), st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_refusal(oid: int, form: int, data: bytes) -> None:
    try:
        e.read_parameter(oid, form, data, 3)
    except Error as error:
        assert (error.sqlstate == "22P02" and "$3" in error.message) or error.sqlstate == "22021"


def test_psycopgs_own_parameters_are_read() -> None:
    dumper = Transformer()
    for value in (
        7,
        1.5,
        "x",
        True,
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3),
        time(4),
        Decimal("1.50"),
        b"\0x",
        ["a", None],
    ):
        one = dumper.get_dumper(value, PyFormat.BINARY)
        assert e.read_parameter(one.oid, 1, bytes(one.dump(value) or b""), 1) == value
    assert psycopg.__version__


@pytest.mark.parametrize(
    ("oid", "text", "sent"),
    [  # as PostgreSQL 15 sends them
        (600, "(1,-2.5)", "3ff0000000000000c004000000000000"),
        (601, "[(1,2),(3,4)]", "3ff0000000000000400000000000000040080000000000004010000000000000"),
        (602, "[(1,2),(3,4)]", "00000000023ff0000000000000400000000000000040080000000000004010000000000000"),
        (602, "((1,2),(3,4))", "01000000023ff0000000000000400000000000000040080000000000004010000000000000"),
        (603, "(3,4),(1,2)", "400800000000000040100000000000003ff00000000000004000000000000000"),
        (
            604,
            "((1,2),(3,4),(Infinity,NaN))",
            "000000033ff00000000000004000000000000000400800000000000040100000000000007ff00000000000007ff8000000000000",
        ),
        (628, "{1,2,-3}", "3ff00000000000004000000000000000c008000000000000"),
        (718, "<(1,2),3>", "3ff000000000000040000000000000004008000000000000"),
        (790, "-$1,234.50", "fffffffffffe1dc6"),
        (
            1017,
            '{"(1,2)",NULL}',
            "0000000100000001000002580000000200000001000000103ff00000000000004000000000000000ffffffff",
        ),
    ],
)
def test_shapes_and_money_have_the_binary_form_of_postgresql(oid: int, text: str, sent: str) -> None:
    (send,) = writers([ResultField("x", oid)], [1])
    assert send(text).hex() == sent
    again = e.read_parameter(oid, 1, bytes.fromhex(sent), 1)
    if oid in e.ARRAYS:
        assert again == ["(1,2)", None]
    else:
        assert e.binary_of_text(oid, again) == send(text)


def test_a_sum_beyond_64_bits_does_not_wrap() -> None:
    for write in (e.codec(e.INT8).write, e.codec(e.INT8).send):
        with pytest.raises(Error) as caught:
            write(1e19)
        assert caught.value.sqlstate == "22003"


@pytest.mark.parametrize("form", ["3 days", "1 year 2 mons -2 days +03:00:00.5", "-00:00:01"])
def test_the_text_of_an_interval_is_sent_as_the_interval(form: str) -> None:
    (send,) = writers([ResultField("i", e.INTERVAL)], [1])
    assert e.codec(e.INTERVAL).receive(send(form)).replace("+", "") == form.replace("+", "")


@pytest.mark.parametrize(
    ("oid", "text"),
    [(e.DATE, "01.02.2024"), (e.ARRAY_OF[e.INT4], "{{1},{2}"), (e.RECORD, {"record": None, "text": "(1,a)"})],
)
def test_a_text_without_a_binary_form_is_refused(oid: int, text: object) -> None:
    (send,) = writers([ResultField("x", oid)], [1])
    with pytest.raises(Error, match="wire_binary"):
        send(text)


@given(st.lists(st.one_of(st.none(), st.sampled_from(["null", "NULL", "", " a", "b c", "{", "\\"]), TEXTS), min_size=1))
def test_arrays_of_texts_are_read_back_by_psycopg(items: list[str | None]) -> None:
    load = Transformer().get_loader(1009, Format.TEXT).load
    for value in (items, [items, items]):
        assert load(e.write_array(e.TEXT, value).encode()) == value
