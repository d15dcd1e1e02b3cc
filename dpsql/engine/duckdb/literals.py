"""DuckDB's names, constants with their types, and source columns read in the types of the policy."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from dpsql.engine.dialect import constant_of, in_calendar
from dpsql.engine.query import DAYS, DECIMAL_COMMA, WRITTEN_DAY, stored_as
from dpsql.plan.intervals import Type

TYPES = {
    Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP", Type.NULL: "INTEGER",
}  # fmt: skip

BINARY = "C"
"""The collation under which texts are equal exactly if their bytes are."""


def constant(value: Any) -> str:
    """Return a constant with its type, so that the engine promotes no operand by its own rules."""
    return constant_of(value, lambda whole: f"CAST({whole} AS BIGINT)", _real, _text)


def _real(number: float) -> str:
    text = repr(number)
    if not isfinite(number):
        return f"CAST('{text}' AS DOUBLE)"
    return f"CAST({text if 'e' in text else text + 'e0'} AS DOUBLE)"


def _text(value: str) -> str:
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    # A released key may contain any character; before DuckDB 2 a text ended at its first NUL.
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_NARROWER = {Type.INTEGER: _INTEGERS, Type.REAL: _INTEGERS | {"BIGINT", "FLOAT"}}
"""Types of which every value has one in ours: no cast from them can fail."""


def cast_column(source: str, type_: Type, engine_type: str) -> str:
    """Return a source column in our type; a value that does not fit (a text that is not a number, a date beyond 9999) is NULL.

    A column that is cast is also read without the cast: DuckDB pushes a lone TRY_CAST into the reader of CSV files, where it
    raises (duckdb/duckdb issue 23818). The resulting texts are compared byte by byte: under a collation of the column (which
    the engine's type does not show), rows of one unit could decide to which group the rows of other units belong.
    """
    target = TYPES[type_]
    engine_type, rule = stored_as(engine_type)
    if rule == DECIMAL_COMMA:
        return _with_decimal_comma(source, target)
    days, of_days, zone = (rule or "").partition(":")
    if of_days:
        source, rule = f"regexp_replace({source}, '{WRITTEN_DAY}', '{DAYS[days]}')", zone or None
    if rule is not None:
        return _local_time(source, type_, engine_type, rule)
    if engine_type.upper() in _NARROWER.get(type_, ()):
        return f"CAST({source} AS {target})"
    same = engine_type.upper() == target
    castable = _castable(source, type_, engine_type)
    if type_ is Type.INTEGER and engine_type == "TIME":  # seconds since midnight
        castable = f"floor(date_part('epoch', {castable}))"
    value = source if same else f"TRY_CAST({castable} AS {target})"
    if type_ is Type.TIMESTAMP and engine_type == "VARCHAR":  # a cast takes PM for the name of a zone
        of_halves = f"try_strptime(trim({source}), {_HALVES_OF_DAYS})"
        has_m = f"(contains({source}, 'M') OR contains({source}, 'm'))"  # few texts have one: the search is dearer
        in_halves = f"{has_m} AND regexp_matches(left({source}, 1000), '[AaPp][Mm]\\s*$')"
        value = f"(CASE WHEN {in_halves} THEN {of_halves} ELSE {value} END)"
    value = f"({value} COLLATE {BINARY})" if type_ is Type.TEXT else value
    value = in_calendar(type_, value) if type_.temporal else value
    if type_.temporal and engine_type == "VARCHAR":
        # 1/2/24 and 24-01-02 are no days of the years 1 and 24. Few texts are matched: years have four digits since 1000.
        value = (
            f"(CASE WHEN {value} >= DATE '1000-01-01' OR regexp_matches({source}, '^\\s*[0-9]{{4}}') THEN {value} END)"
        )
    return value if same else f"(CASE WHEN {source} IS NOT NULL THEN {value} END)"


_HALVES_OF_DAYS = [f"%Y-%m-%d %I:%M{seconds}{space}%p" for seconds in (":%S", "") for space in (" ", "")]
"""The forms of times with AM and PM."""

OFFSET = r"^\s*[0-9]{4}.*[0-9]:[0-9]{2}.*([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
"""Texts with a time and an offset from UTC."""
POINTS_OF_TIME = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS", "VARCHAR")
"""The types of columns whose values may be points of time, which a clock in some zone shows."""

_COMMA = r"\s*[+-]?([0-9]+|[0-9]{1,3}([.][0-9]{3})+)?(,[0-9]*)?([eE][+-]?[0-9]+)?\s*"


def _with_decimal_comma(source: str, target: str) -> str:
    """Return numbers from texts with a comma before the tenths, and perhaps points between thousands."""
    number = f"replace(replace({source}, '.', ''), ',', '.')"
    return f"(CASE WHEN regexp_full_match({source}, '{_COMMA}') THEN TRY_CAST({number} AS {target}) END)"


def _local_time(source: str, type_: Type, engine_type: str, zone: str) -> str:
    """Return points of time by the clock of a zone. Texts without an offset are what a clock has shown already."""
    moment = f"TRY_CAST({source} AS TIMESTAMP WITH TIME ZONE)"
    first, last = (f"CAST('{day} 00:00:00+00' AS TIMESTAMP WITH TIME ZONE)" for day in ("0001-01-03", "9999-12-29"))
    local = f"(CASE WHEN {moment} BETWEEN {first} AND {last} THEN timezone('{zone}', {moment}) END)"
    local = f"CAST({local} AS DATE)" if type_ is Type.DATE else local
    if engine_type == "VARCHAR":
        text = cast_column(source, type_, engine_type)
        return f"(CASE WHEN regexp_matches({source}, '{OFFSET}') THEN {local} ELSE {text} END)"
    return f"(CASE WHEN {source} IS NOT NULL THEN {local} END)"


_READABLE = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|BIGNUM|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|VARCHAR|JSON|BLOB|BIT|UUID|"
    r"ENUM\(.*\)|DATE|TIME(_NS)?|TIME WITH TIME ZONE|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE|TIMESTAMPTZ_NS|"
    r"INTERVAL|\"NULL\"",
    re.DOTALL,
)
"""The types of columns that `cast_column` reads, whatever their values. Types with parts are none of them: their values may hold
parts at which a conversion raises (a map with a repeated key, times outside a day)."""


def is_readable(engine_type: str) -> bool:
    """Return whether columns of a type of DuckDB are read."""
    return _READABLE.fullmatch(engine_type) is not None


_CASTABLE = {
    "TIMESTAMP_S": ("0001-01-01", "9999-12-31 23:59:59"), "TIMESTAMP_MS": ("0001-01-01", "9999-12-31 23:59:59.999"),
    "TIME": ("00:00:00", "24:00:00"), "TIME_NS": ("00:00:00", "24:00:00"),
}  # fmt: skip
"""Types of which files and connections may hold values at which even TRY_CAST to text raises, with the least and the greatest
value at which it does not. So may decimals (with more digits than their type has), for which `_castable` computes them."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")

_LONG = {
    "BIT": "(CASE WHEN bit_length({0}) < 64 THEN TRY_CAST({0} AS BIGINT) END)", "BIGNUM": "CAST({0} AS VARCHAR)",
}  # fmt: skip
"""How values of any length are read as others than texts: before DuckDB 2, TRY_CAST raises at those that are too long. (And it
makes a double of 64 bits as if they were its own.)"""


def _castable(source: str, type_: Type, engine_type: str) -> str:
    if engine_type.upper() == "JSON" and type_ is not Type.TEXT:  # read from Arrow, it may be no JSON
        return f"(CASE WHEN json_valid({source}) THEN {source} END)"
    if engine_type.upper() in _LONG and type_ is not Type.TEXT:
        return _LONG[engine_type.upper()].format(source)
    ends = _CASTABLE.get(engine_type.upper())
    if decimal := _DECIMAL.fullmatch(engine_type.upper()):
        digits, scale = map(int, decimal.groups())
        most = f"{'9' * (digits - scale)}.{'9' * scale}"
        ends = (f"-{most}", most)
    if ends is None:
        return source
    least, most = (f"CAST('{end}' AS {engine_type})" for end in ends)
    return f"(CASE WHEN {source} BETWEEN {least} AND {most} THEN {source} END)"
