"""PostgreSQL constants carry their types, and casts of source columns are guarded by the conditions under which they have
values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.postgresql.literals import (
    LARGEST,
    LEAST,
    MOST,
    READABLE,
    SMALLEST,
    binary,
    cast_column,
    constant,
    in_calendar,
    number_to_integer,
    number_to_real,
    quoted,
    real,
    real_to_integer,
)
from dpsql.errors.exceptions import Refusal
from dpsql.plan.intervals import Type


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (False, "false"),
        (0, "CAST(0 AS bigint)"),
        (-(2**63), "CAST(-9223372036854775808 AS bigint)"),
        (1.5, "CAST('1.5' AS double precision)"),
        (5e-324, "CAST('5e-324' AS double precision)"),
        (-0.0, "CAST('-0.0' AS double precision)"),
        (inf, "CAST('inf' AS double precision)"),
        (nan, "CAST('nan' AS double precision)"),
        (Fraction(1, 3), "CAST('0.3333333333333333' AS double precision)"),
        (date(1, 1, 1), "(DATE '0001-01-01')"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), "(TIMESTAMP '9999-12-31 23:59:59.999999')"),
        (datetime(2024, 2, 29), "(TIMESTAMP '2024-02-29 00:00:00')"),
        ("it's", "(CAST('it''s' AS text) COLLATE \"C\")"),
        ("", "(CAST('' AS text) COLLATE \"C\")"),
        ("a\\n", "(CAST('a\\n' AS text) COLLATE \"C\")"),
    ],
)
def test_constants_have_types(value: Any, text: str) -> None:
    assert constant(value) == text


@pytest.mark.parametrize("text", ["\0", "a\0", "'\0'"])
def test_a_text_with_nul_is_refused(text: str) -> None:
    for write in (quoted, constant):
        with pytest.raises(Refusal) as refused:
            write(text)
        assert refused.value.slug == "engine_literal"


@pytest.mark.parametrize("text", ["", "'", "''", "a'b''c", "\\'", "é\n"])
def test_quotes_are_doubled(text: str) -> None:
    assert plain_duckdb().execute(f"SELECT {quoted(text)}").fetchall() == [(text,)]


def test_texts_are_compared_byte_by_byte() -> None:
    assert binary("x") == '(x COLLATE "C")'
    assert real("7") == "CAST('7' AS double precision)"


def test_the_limits_of_doubles_and_integers() -> None:
    """Half of the smallest double rounds to even, which is zero; the text is slightly greater."""
    assert float(LARGEST) * 1 == 2.0**1023 * (2 - 2.0**-52)
    half = Fraction(1, 2**1075)
    assert half < Fraction(SMALLEST) < half * (1 + Fraction(1, 10**15)) and float(SMALLEST) == 5e-324
    assert (LEAST, MOST) == (-(2**63), 2**63 - 1)


# --- guarded casts: their conditions mean the same to DuckDB ------------------------------------------------------------


def computed(expression: str, values: list[str]) -> list[Any]:
    rows = ", ".join(f"({place}, {value})" for place, value in enumerate(values))
    sql = f"SELECT {expression} FROM (VALUES {rows}) AS t(place, x) ORDER BY place"
    return [row[0] for row in plain_duckdb().execute(sql).fetchall()]


def test_days_outside_the_calendar_are_null() -> None:
    values = ["0001-01-01", "0001-12-31 (BC)", "9999-12-31", "10000-01-01", "infinity", "-infinity"]
    dates = computed(in_calendar(Type.DATE, "x"), [f"'{value}'::DATE" for value in values])
    assert dates == [date.min, None, date.max, None, None, None]


def test_times_outside_the_calendar_are_null() -> None:
    values = ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "infinity"]
    times = computed(in_calendar(Type.TIMESTAMP, "x"), [f"'{value}'::TIMESTAMP" for value in values])
    assert times == [datetime.min, datetime.max, None, None]


def test_doubles_beyond_64_bits_are_null() -> None:
    values = [
        "0.5",
        "1.5",
        "-2.5",
        repr(2.0**63),
        repr(-(2.0**63)),
        "9223372036854774784",
        "-9223372036854777856",
        "nan",
        "inf",
    ]
    integers = computed(real_to_integer("x"), [f"'{value}'::DOUBLE" for value in values])
    assert integers == [0, 2, -2, None, -(2**63), 9223372036854774784, None, None, None]


def test_numbers_beyond_64_bits_are_null() -> None:
    """Numbers are rounded first: a number that rounds to a 64-bit integer is inside."""
    values = [
        "7.4",
        "-7.5",
        "9223372036854775807.4",
        "9223372036854775807.5",
        "-9223372036854775808.4",
        "-9223372036854775808.5",
    ]
    integers = computed(number_to_integer("x"), [f"{Decimal(value)}::DECIMAL(38, 1)" for value in values])
    assert integers == [7, -8, 2**63 - 1, None, -(2**63), None]


def test_numbers_are_the_nearest_doubles_and_never_an_error() -> None:
    """The order of the cases matters: NaN is greater than every number, so it is tested first."""
    assert number_to_real("x") == (
        "(CASE WHEN x IN ('NaN', 'Infinity', '-Infinity') THEN CAST(x AS double precision) "
        "WHEN x > 1.7976931348623157e308 THEN CAST('Infinity' AS double precision) "
        "WHEN x < -1.7976931348623157e308 THEN CAST('-Infinity' AS double precision) "
        "WHEN abs(x) < 2.4703282292062329e-324 THEN CAST('0' AS double precision) "
        "ELSE CAST(x AS double precision) END)"
    )


# --- columns ----------------------------------------------------------------------------------------------------------

COLUMNS = [
    ("text", Type.TEXT, '(CAST(s AS text) COLLATE "C")'),
    ("character", Type.TEXT, '(CAST(s AS text) COLLATE "C")'),
    ("enum", Type.TEXT, '(CAST(s AS text) COLLATE "C")'),
    ("bigint", Type.TEXT, '(CAST(s AS text) COLLATE "C")'),
    ("smallint", Type.INTEGER, "CAST(s AS bigint)"),
    ("numeric", Type.INTEGER, number_to_integer("s")),
    ("real", Type.INTEGER, real_to_integer("s")),
    ("double precision", Type.INTEGER, real_to_integer("s")),
    ("integer", Type.REAL, "CAST(s AS double precision)"),
    ("real", Type.REAL, "CAST(s AS double precision)"),
    ("numeric", Type.REAL, number_to_real("s")),
    ("boolean", Type.BOOLEAN, "s"),
    ("date", Type.DATE, f"CAST({in_calendar(Type.DATE, 's')} AS date)"),
    ("date", Type.TIMESTAMP, f"CAST({in_calendar(Type.DATE, 's')} AS timestamp without time zone)"),
    ("timestamp without time zone", Type.DATE, f"CAST({in_calendar(Type.TIMESTAMP, 's')} AS date)"),
    (
        "timestamp with time zone",
        Type.TIMESTAMP,
        f"CAST({in_calendar(Type.TIMESTAMP, '(s AT TIME ZONE ' + repr('UTC') + ')')} AS timestamp without time zone)",
    ),
]


@pytest.mark.parametrize(("engine_type", "type_", "text"), COLUMNS)
def test_a_column_is_read_in_the_type_of_the_policy(engine_type: str, type_: Type, text: str) -> None:
    assert cast_column("s", type_, engine_type) == text


@pytest.mark.parametrize(
    ("engine_type", "type_"),
    [("text", Type.INTEGER), ("boolean", Type.INTEGER), ("numeric", Type.TEXT), ("integer", Type.BOOLEAN),
     ("text", Type.DATE), ("bytea", Type.TEXT), ("date", Type.REAL)],
)  # fmt: skip
def test_a_column_of_another_type_is_not_read(engine_type: str, type_: Type) -> None:
    with pytest.raises(ValueError, match=f"{engine_type} is not read as"):
        cast_column("s", type_, engine_type)


def test_every_readable_type_is_read() -> None:
    pairs = [(type_, engine_type) for type_, readable in READABLE.items() for engine_type in readable]
    assert len(pairs) == 6 + 6 + 11 + 1 + 3 + 3
    assert all("s" in cast_column("s", type_, engine_type) for type_, engine_type in pairs)
