"""PostgreSQL's constants with their types, and source columns read in the types of the policy.

There is no TRY_CAST: a value is cast only under a condition for which the cast succeeds. Every text has the collation
"C", so that texts are equal if their bytes are and ordered by code point, whatever collation the database, a column or
a domain has.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type

TYPES: Mapping[Type, str] = {
    Type.INTEGER: "bigint", Type.REAL: "double precision", Type.TEXT: "text", Type.BOOLEAN: "boolean",
    Type.DATE: "date", Type.TIMESTAMP: "timestamp without time zone", Type.NULL: "integer",
}  # fmt: skip
ENUM = "enum"
"""Represents every enumerated type among the engine types of columns."""
_WHOLE = ("smallint", "integer", "bigint")
_TEXTS = ("text", "character varying", "character", "name", "uuid", "json", "jsonb", ENUM)
READABLE: Mapping[Type, tuple[str, ...]] = {
    Type.INTEGER: (*_WHOLE, "numeric", "real", "double precision"),
    Type.REAL: (*_WHOLE, "numeric", "real", "double precision"),
    Type.TEXT: (*_TEXTS, *_WHOLE),
    Type.BOOLEAN: ("boolean",),
    Type.DATE: ("date", "timestamp without time zone", "timestamp with time zone"),
    Type.TIMESTAMP: ("date", "timestamp without time zone", "timestamp with time zone"),
}
"""The source types from which a column of each policy type can be read."""
LEAST, MOST = -(2**63), 2**63 - 1
LARGEST = "1.7976931348623157e308"
"""The largest double."""
SMALLEST = "2.4703282292062329e-324"
"""A number above half of the smallest double: numbers nearer to zero are read as zero, because the engine would raise."""


def real(text: str) -> str:
    """Return a double from its text."""
    return f"CAST('{text}' AS double precision)"


NAN, INFINITY = real("NaN"), real("Infinity")


def binary(text: str) -> str:
    """Return a text that is compared byte by byte."""
    return f'({text} COLLATE "C")'


def quoted(text: str) -> str:
    """Return a text between quotes; `standard_conforming_strings` is on in our transactions. Raises Refusal engine_literal."""
    if "\0" in text:
        raise refuse("engine_literal", engine="PostgreSQL", what="a text with the character NUL")
    return "'" + text.replace("'", "''") + "'"


def constant(value: Any) -> str:
    """Return a constant with its type. Raises Refusal engine_literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"CAST({value} AS bigint)"
    if isinstance(value, (Fraction, float)):
        return real(repr(float(value)))
    if isinstance(value, datetime):
        return f"(TIMESTAMP '{value.isoformat(' ')}')"
    if isinstance(value, date):
        return f"(DATE '{value.isoformat()}')"
    return binary(f"CAST({quoted(str(value))} AS text)")


def in_calendar(type_: Type, value: str) -> str:
    """Return a date or timestamp in the years 1 to 9999; others (BC, infinity) are NULL, so that no function overflows."""
    first, last = (date.min, date.max) if type_ is Type.DATE else (datetime.min, datetime.max)
    return f"(CASE WHEN {value} BETWEEN {constant(first)} AND {constant(last)} THEN {value} END)"


def number_to_real(value: str) -> str:
    """Return a numeric as the nearest double, infinite beyond the doubles; NaN and infinities stay."""
    return (
        f"(CASE WHEN {value} IN ('NaN', 'Infinity', '-Infinity') THEN CAST({value} AS double precision) "
        f"WHEN {value} > {LARGEST} THEN {INFINITY} WHEN {value} < -{LARGEST} THEN {real('-Infinity')} "
        f"WHEN abs({value}) < {SMALLEST} THEN {real('0')} ELSE CAST({value} AS double precision) END)"
    )


def number_to_integer(value: str) -> str:
    """Return a numeric rounded half away from zero, NULL beyond 64 bits and for NaN."""
    return f"(CASE WHEN round({value}) BETWEEN {LEAST} AND {MOST} THEN CAST({value} AS bigint) END)"


def real_to_integer(value: str) -> str:
    """Return a double rounded half to even, NULL beyond 64 bits and for NaN (which is greater than every number)."""
    return (
        f"(CASE WHEN {value} >= {real(str(-(2.0**63)))} AND {value} < {real(str(2.0**63))} "
        f"THEN CAST({value} AS bigint) END)"
    )


def cast_column(source: str, type_: Type, engine_type: str) -> str:
    """Return a source column in our type; a value that does not fit is NULL. Raises ValueError for an engine type not in
    `READABLE`.

    A padded text (character(n)) loses its padding, which has no meaning in PostgreSQL; times with a zone are read in UTC.
    """
    if engine_type not in READABLE[type_]:
        raise ValueError(f"{engine_type} is not read as {type_.value}")
    if type_ is Type.TEXT:
        return binary(f"CAST({source} AS text)")
    if type_ is Type.INTEGER:
        if engine_type in _WHOLE:
            return f"CAST({source} AS bigint)"
        return number_to_integer(source) if engine_type == "numeric" else real_to_integer(source)
    if type_ is Type.REAL:
        return number_to_real(source) if engine_type == "numeric" else f"CAST({source} AS double precision)"
    if type_ is Type.BOOLEAN:
        return source
    # The calendar is checked before the cast, because a date may lie beyond the timestamps.
    if engine_type == "timestamp with time zone":
        source = f"({source} AT TIME ZONE 'UTC')"
    inside = in_calendar(Type.DATE if engine_type == "date" else Type.TIMESTAMP, source)
    return f"CAST({inside} AS {TYPES[type_]})"
