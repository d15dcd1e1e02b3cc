"""Spark constants carry their types and hide nothing from its lexer; casts of source columns never overflow."""

from __future__ import annotations

import re
from datetime import date, datetime
from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.spark.literals import (
    READABLE,
    cast_column,
    constant,
    in_calendar,
    kind,
    quoted,
    real,
    real_to_integer,
    whole_text,
)
from dpsql.plan.intervals import Type


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (False, "false"),
        (0, "(0L)"),
        (-(2**63), "(-9223372036854775808L)"),
        (1.5, "(1.5D)"),
        (-0.0, "(-0.0D)"),
        (5e-324, "(5e-324D)"),
        (inf, "CAST('inf' AS DOUBLE)"),
        (-inf, "CAST('-inf' AS DOUBLE)"),
        (nan, "CAST('nan' AS DOUBLE)"),
        (Fraction(1, 3), "(0.3333333333333333D)"),
        (date(1, 1, 1), "(DATE '0001-01-01')"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), "(TIMESTAMP '9999-12-31 23:59:59.999999')"),
        ("abc", "'abc'"),
    ],
)
def test_constants_have_types(value: Any, text: str) -> None:
    assert constant(value) == text


def read_back(literal: str) -> str:
    """Return Spark's reading of a literal: only numbered characters are escaped."""
    assert literal[0] == literal[-1] == "'"
    numbers = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
    return numbers.sub(lambda match: chr(int(match.group(1) or match.group(2), 16)), literal[1:-1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "it's",
        '"q"',
        "a\\b",
        "${x}",
        "\0",
        "\n",
        "tab\t",
        "%_-.,:/ ",
        "éß日本",
        "😀",
        "\uffff",
        "\U00010000",
        "a`b;--",
    ],
)
def test_a_text_is_read_back_as_it_was(text: str) -> None:
    literal = quoted(text)
    assert read_back(literal) == text
    plain = re.sub(r"\\u[0-9a-f]{4}|\\U[0-9a-f]{8}", "", literal[1:-1])
    assert all(character.isalnum() or character in " _-.,:%/" for character in plain)


@pytest.mark.parametrize(
    ("text", "literal"),
    [("'", r"'\u0027'"), ("\\", r"'\u005c'"), ("$", r"'\u0024'"), ("\uffff", r"'\uffff'"), ("😀", r"'\U0001f600'")],
)
def test_other_characters_are_written_by_their_number(text: str, literal: str) -> None:
    assert quoted(text) == literal


def test_a_regular_expression_is_met_as_a_whole() -> None:
    assert read_back(whole_text("a|b")) == r"\A(?:a|b)\z"


@pytest.mark.parametrize(
    ("engine_type", "name"),
    [("decimal(10,2)", "decimal"), ("string collate UTF8_LCASE", "string"), ("BIGINT", "bigint"), ("array<int>", "array"),
     ("char(3)", "char"), ("timestamp_ntz", "timestamp_ntz"), ("", "")],
)  # fmt: skip
def test_a_type_is_told_without_its_length(engine_type: str, name: str) -> None:
    assert kind(engine_type) == name


# --- guarded casts: their conditions mean the same to DuckDB ------------------------------------------------------------


def computed(expression: str, values: list[str], type_: str) -> list[Any]:
    rows = ", ".join(f"({place}, '{value}'::{type_})" for place, value in enumerate(values))
    # DuckDB writes doubles without a suffix, and has another name for rounding half to even.
    text = re.sub(r"(?<=\d)D\)", ")", expression).replace("rint(x)", "round_even(x, 0)")
    sql = f"SELECT {text} FROM (VALUES {rows}) AS t(place, x) ORDER BY place"
    return [row[0] for row in plain_duckdb().execute(sql).fetchall()]


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
    integers = computed(real_to_integer("x"), values, "DOUBLE")
    assert integers == [0, 2, -2, None, -(2**63), 9223372036854774784, None, None, None]


def test_days_outside_the_calendar_are_null() -> None:
    values = ["0001-01-01", "0001-12-31 (BC)", "9999-12-31", "10000-01-01"]
    assert computed(in_calendar(Type.DATE, "x"), values, "DATE") == [date.min, None, date.max, None]


def test_times_outside_the_calendar_are_null() -> None:
    values = ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00"]
    assert computed(in_calendar(Type.TIMESTAMP, "x"), values, "TIMESTAMP") == [datetime.min, datetime.max, None]


# --- columns ----------------------------------------------------------------------------------------------------------

COLUMNS = [
    ("string", Type.TEXT, "try_validate_utf8(CAST(s AS STRING))"),
    ("varchar(9)", Type.TEXT, "try_validate_utf8(CAST(s AS STRING))"),
    ("char(3)", Type.TEXT, "try_validate_utf8(rtrim(CAST(s AS STRING)))"),
    ("bigint", Type.TEXT, "CAST(s AS STRING)"),
    ("tinyint", Type.INTEGER, "CAST(s AS BIGINT)"),
    ("decimal(38,2)", Type.INTEGER, "try_cast(round(s, 0) AS BIGINT)"),
    ("float", Type.INTEGER, real_to_integer("CAST(s AS DOUBLE)")),
    ("double", Type.INTEGER, real_to_integer("CAST(s AS DOUBLE)")),
    ("decimal(38,2)", Type.REAL, "CAST(s AS DOUBLE)"),
    ("int", Type.REAL, "CAST(s AS DOUBLE)"),
    ("boolean", Type.BOOLEAN, "s"),
    ("date", Type.DATE, f"CAST({in_calendar(Type.DATE, 's')} AS DATE)"),
    ("date", Type.TIMESTAMP, f"CAST({in_calendar(Type.DATE, 's')} AS TIMESTAMP)"),
    ("timestamp", Type.DATE, f"CAST({in_calendar(Type.TIMESTAMP, 's')} AS DATE)"),
    ("timestamp_ntz", Type.TIMESTAMP, f"CAST({in_calendar(Type.TIMESTAMP, 'CAST(s AS TIMESTAMP)')} AS TIMESTAMP)"),
]


@pytest.mark.parametrize(("engine_type", "type_", "text"), COLUMNS)
def test_a_column_is_read_in_the_type_of_the_policy(engine_type: str, type_: Type, text: str) -> None:
    assert cast_column("s", type_, engine_type) == text


@pytest.mark.parametrize(
    ("engine_type", "type_"),
    [("string", Type.INTEGER), ("boolean", Type.INTEGER), ("decimal(5,2)", Type.TEXT), ("int", Type.BOOLEAN),
     ("string", Type.DATE), ("binary", Type.TEXT), ("array<int>", Type.INTEGER)],
)  # fmt: skip
def test_a_column_of_another_type_is_not_read(engine_type: str, type_: Type) -> None:
    with pytest.raises(ValueError, match="is not read as"):
        cast_column("s", type_, engine_type)


def test_every_readable_type_is_read() -> None:
    pairs = [(type_, engine_type) for type_, readable in READABLE.items() for engine_type in readable]
    assert len(pairs) == 7 + 7 + 7 + 1 + 3 + 3
    assert all("s" in cast_column("s", type_, engine_type) for type_, engine_type in pairs)


@pytest.mark.parametrize(("value", "text"), [(1e308, "(1e+308D)"), (0.1, "(0.1D)"), (nan, "CAST('nan' AS DOUBLE)")])
def test_reals_are_read_back_as_they_were(value: float, text: str) -> None:
    assert real(value) == text
