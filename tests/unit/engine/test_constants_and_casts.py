"""Constants and guarded casts of the texts for PostgreSQL and Spark: DuckDB reads the same value, and a value outside of a type is
NULL and no error. Their own servers read them in `test_functions` and `test_engine` of each engine."""

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.postgresql import literals as postgresql
from dpsql.engine.spark import dialect as spark
from dpsql.errors.exceptions import Refusal
from dpsql.plan.intervals import Type

NUMBERED = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


def of_spark(text: str) -> str:
    """Return a text of Spark as DuckDB writes it: numbers without a suffix, characters themselves, and another name for rounding
    half to even."""
    text = re.sub(r"\((-?\d+)L\)", r"CAST(\1 AS BIGINT)", text)
    text = re.sub(r"\((-?\d[\d.e+-]*)D\)", r"CAST('\1' AS DOUBLE)", text).replace("rint(x)", "round_even(x, 0)")
    return NUMBERED.sub(lambda match: chr(int(match[1] or match[2], 16)).replace("'", "''"), text)


ENGINES: dict[str, tuple[ModuleType, Callable[[str], str]]] = {
    "postgresql": (postgresql, str),
    "spark": (spark, of_spark),
}
VALUES = [
    None, True, False, 0, -1, -(2**63), 2**63 - 1, 1.5, -0.0, 5e-324, 1e308, 0.1, math.inf, -math.inf, math.nan, date(1, 1, 1), date(9999, 12, 31),
    datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29), "abc", "", "'", "''", "it's", '"q"', "a\\n", "\\'",
    "${x}", "\n", "tab\t", "%_-.,:/ ", "éß日本", "😀", "\uffff", "a`b;--",
]  # fmt: skip


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> tuple[ModuleType, Callable[[str], str]]:
    return ENGINES[request.param]


Engine = tuple[ModuleType, Callable[[str], str]]


def test_constants_are_read_as_their_values(engine: Engine) -> None:
    literals, translated = engine
    for value in VALUES:
        ((read,),) = plain_duckdb().execute(f"SELECT {translated(literals.constant(value))}").fetchall()
        assert (type(read), repr(read)) == (type(value), repr(value))
    third = translated(literals.constant(Fraction(1, 3)))
    assert plain_duckdb().execute(f"SELECT {third}, typeof({third})").fetchall() == [(1 / 3, "DOUBLE")]


def test_texts_hide_nothing_and_are_compared_byte_by_byte() -> None:
    assert postgresql.binary("x") == '(x COLLATE "C")' and postgresql.constant("x").endswith(' COLLATE "C")')
    for text in ("\0", "a\0"):
        with pytest.raises(Refusal, match="engine_literal"):
            postgresql.constant(text)
    for text in ("it's", "a\\b", "${x}", "\0", "😀", "a`b;--"):
        plain = NUMBERED.sub("", spark.quoted(text)[1:-1])
        assert all(character.isalnum() or character in " _-.,:%/" for character in plain)
    assert spark.quoted("abc") == "'abc'"
    assert of_spark(spark.whole_text("a|b")) == r"'\A(?:a|b)\z'"
    kinds = {"decimal(10,2)": "decimal", "string collate UTF8_LCASE": "string", "BIGINT": "bigint", "": ""}
    assert {type_: spark.kind(type_) for type_ in kinds} == kinds


def computed(engine: Engine, expression: str, values: list[str], type_: str) -> list[Any]:
    rows = ", ".join(f"({place}, '{value}'::{type_})" for place, value in enumerate(values))
    sql = f"SELECT {engine[1](expression)} FROM (VALUES {rows}) AS t(place, x) ORDER BY place"
    return [row[0] for row in plain_duckdb().execute(sql).fetchall()]


def test_days_and_times_outside_the_calendar_are_null(engine: Engine) -> None:
    days = ["0001-01-01", "0001-12-31 (BC)", "9999-12-31", "10000-01-01"]
    assert computed(engine, engine[0].in_calendar(Type.DATE, "x"), days, "DATE") == [date.min, None, date.max, None]
    assert "TIMESTAMP" not in engine[0].in_calendar(Type.DATE, "x")
    times = ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00"]
    expected = [datetime.min, datetime.max, None]
    assert computed(engine, engine[0].in_calendar(Type.TIMESTAMP, "x"), times, "TIMESTAMP") == expected


def test_numbers_beyond_64_bits_are_null_and_others_are_rounded(engine: Engine) -> None:
    ends = [repr(2.0**63), repr(-(2.0**63)), "9223372036854774784", "-9223372036854777856", "nan", "inf"]
    integers = computed(engine, engine[0].real_to_integer("x"), ["0.5", "1.5", "-2.5", *ends], "DOUBLE")
    assert integers == [0, 2, -2, None, -(2**63), 9223372036854774784, None, None, None]


def test_decimals_of_postgresql_are_rounded_before_they_are_compared() -> None:
    ends = {"9223372036854775807.4": 2**63 - 1, "9223372036854775807.5": None, "-9223372036854775808.4": -(2**63)}
    values = {"7.4": 7, "-7.5": -8, **ends, "-9223372036854775808.5": None}
    written = [str(Decimal(value)) for value in values]
    engine = ENGINES["postgresql"]
    assert computed(engine, postgresql.number_to_integer("x"), written, "DECIMAL(38, 1)") == list(values.values())


def test_decimals_of_postgresql_are_the_nearest_doubles() -> None:
    """NaN is greater than every number there, so it is asked for first; half of the smallest double rounds to zero."""
    text = postgresql.number_to_real("x")
    assert (
        text.index("NaN")
        < text.index(f"> {postgresql.LARGEST} THEN CAST('Infinity'")
        < text.index(f"< -{postgresql.LARGEST}")
    )
    assert f"abs(x) < {postgresql.SMALLEST} THEN CAST('0' AS double precision)" in text
    assert float(postgresql.LARGEST) == 2.0**1023 * (2 - 2.0**-52) and float(postgresql.SMALLEST) == 5e-324
    assert Fraction(1, 2**1075) < Fraction(postgresql.SMALLEST) < Fraction(1, 2**1075) * (1 + Fraction(1, 10**15))


READ_AS = {
    "postgresql": {
        Type.TEXT: ("text character enum bigint", 'COLLATE "C")'), Type.INTEGER: ("smallint numeric real", "bigint"),
        Type.REAL: ("integer real numeric", "double precision"), Type.BOOLEAN: ("boolean smallint", "s"),
        Type.DATE: ("date", "AS date)"), Type.TIMESTAMP: ("date", "timestamp without time zone)"),
    },
    "spark": {
        Type.TEXT: ("string varchar(9)", "try_validate_utf8(CAST(s AS STRING))"), Type.INTEGER: ("tinyint float double decimal(38,2)", "BIGINT"),
        Type.REAL: ("int decimal(38,2)", "AS DOUBLE)"), Type.BOOLEAN: ("boolean smallint", "s"),
        Type.DATE: ("date timestamp", "AS DATE)"), Type.TIMESTAMP: ("date timestamp_ntz", "AS TIMESTAMP)"),
    },
}  # fmt: skip
NOT_READ_AS = {
    Type.INTEGER: "text string boolean", Type.TEXT: "numeric bytea binary decimal(5,2)", Type.BOOLEAN: "numeric double",
    Type.DATE: "text string", Type.REAL: "date",
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
def test_a_column_is_read_in_the_type_of_the_policy_or_not_at_all(name: str) -> None:
    literals, _ = ENGINES[name]
    for type_, (engine_types, ending) in READ_AS[name].items():
        for engine_type in engine_types.split():
            assert ending in literals.cast_column("s", type_, engine_type), (type_, engine_type)
    for type_, engine_types in NOT_READ_AS.items():
        for engine_type in engine_types.split():
            with pytest.raises(ValueError, match="is not read as"):
                literals.cast_column("s", type_, engine_type)
    assert all("s" in literals.cast_column("s", t, e) for t, readable in literals.READABLE.items() for e in readable)
    guarded = literals.in_calendar(Type.TIMESTAMP, "s")
    assert guarded.count("s") and literals.in_calendar(Type.DATE, "s") in literals.cast_column(
        "s", Type.TIMESTAMP, "date"
    )


def test_some_columns_are_changed_before_they_are_read() -> None:
    assert "rtrim(CAST(s AS STRING))" in spark.cast_column("s", Type.TEXT, "char(3)")
    assert spark.cast_column("s", Type.INTEGER, "decimal(38,2)") == "try_cast(round(s, 0) AS BIGINT)"
    unzoned = spark.cast_column("s", Type.TIMESTAMP, "timestamp_ntz")
    assert spark.in_calendar(Type.TIMESTAMP, "CAST(s AS TIMESTAMP)") in unzoned
    zoned = postgresql.cast_column("s", Type.TIMESTAMP, "timestamp with time zone")
    assert postgresql.in_calendar(Type.TIMESTAMP, "(s AT TIME ZONE 'UTC')") in zoned
    for type_, text in ((Type.INTEGER, postgresql.number_to_integer("s")), (Type.REAL, postgresql.number_to_real("s"))):
        assert postgresql.cast_column("s", type_, "numeric") == text
