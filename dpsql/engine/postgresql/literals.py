"""PostgreSQL's constants with their types, and source columns read in the types of the policy.

There is no TRY_CAST: a value is cast only under a condition for which the cast succeeds. Every text has the collation
"C", so that texts are equal if their bytes are and ordered by code point, whatever collation the database, a column or
a domain has.

Arithmetic of doubles in PostgreSQL without its errors.

PostgreSQL computes doubles by IEEE 754, but raises if a finite operation overflows, or if one whose operands are not zero
underflows to zero. IEEE 754 (and so DuckDB and Python) gives an infinity or a zero in these cases. Each text below first tests
whether that would happen, with operands scaled by powers of two, which is exact; then it computes the value or returns that
infinity or zero. Between half of the smallest double and one unit in the last place above it, the result is zero, although the
nearest double would be the smallest one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dpsql.engine.dialect import constant_of, in_calendar
from dpsql.engine.query import stored_as
from dpsql.engine.shared_texts import boolean_of
from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type

TYPES: Mapping[Type, str] = {
    Type.INTEGER: "bigint", Type.REAL: "double precision", Type.TEXT: "text", Type.BOOLEAN: "boolean",
    Type.DATE: "date", Type.TIMESTAMP: "timestamp without time zone", Type.NULL: "integer",
}  # fmt: skip
ENUM = "enum"
"""Represents every enumerated type among the engine types of columns."""
_WHOLE = ("smallint", "integer", "bigint")
_WORDS = ("text", "character varying", "character", ENUM)
_TEXTS = (*_WORDS, "name", "uuid", "json", "jsonb")
TIME_OF_DAY = "time without time zone"
READABLE: Mapping[Type, tuple[str, ...]] = {
    Type.INTEGER: (*_WHOLE, "numeric", "real", "double precision", TIME_OF_DAY),
    Type.REAL: (*_WHOLE, "numeric", "real", "double precision"),
    Type.TEXT: (*_TEXTS, *_WHOLE, TIME_OF_DAY),
    Type.BOOLEAN: ("boolean", *_WHOLE, *_WORDS),
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
    return constant_of(
        value,
        lambda whole: f"CAST({whole} AS bigint)",
        lambda number: real(repr(number)),
        lambda text: binary(f"CAST({quoted(text)} AS text)"),
    )


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

    A padded text (character(n)) loses its padding, which has no meaning in PostgreSQL; points of time are read by the clock of
    the column's zone, or in UTC.
    """
    engine_type, zone = stored_as(engine_type)
    if engine_type not in READABLE[type_]:
        raise ValueError(f"{engine_type} is not read as {type_.value}")
    if type_ is Type.TEXT:
        return binary(f"CAST({source} AS text)")
    if type_ is Type.INTEGER:
        if engine_type in _WHOLE:
            return f"CAST({source} AS bigint)"
        if engine_type == TIME_OF_DAY:  # seconds since midnight
            return f"CAST(floor(extract(epoch FROM {source})) AS bigint)"
        return number_to_integer(source) if engine_type == "numeric" else real_to_integer(source)
    if type_ is Type.REAL:
        return number_to_real(source) if engine_type == "numeric" else f"CAST({source} AS double precision)"
    if type_ is Type.BOOLEAN:
        if engine_type in _WHOLE:
            return f"({source} <> 0)"
        return (
            source if engine_type == "boolean" else boolean_of(f"lower({binary(f'CAST({source} AS text)')})", constant)
        )
    # The calendar is checked before the cast, because a date may lie beyond the timestamps.
    if zone is not None:
        first, last = (f"CAST('{day} 00:00:00+00' AS timestamp with time zone)" for day in ("0001-01-03", "9999-12-29"))
        source = f"(CASE WHEN {source} BETWEEN {first} AND {last} THEN {source} AT TIME ZONE {quoted(zone)} END)"
    elif engine_type == "timestamp with time zone":
        source = f"({source} AT TIME ZONE 'UTC')"
    inside = in_calendar(Type.DATE if engine_type == "date" else Type.TIMESTAMP, source)
    return f"CAST({inside} AS {TYPES[type_]})"


# --- reals ------------------------------------------------------------------------------------------------------------

_SIMPLE = re.compile(r"""(s[0-9]+\.)?"[^"]*"|[a-z]+|CAST\('?[-+.\w]*'? AS [a-z ]+\)""")
_ZERO, _ONE, _HALF = real("0"), real("1"), real("0.5")


def let(values: Mapping[str, str], body: str) -> str:
    """Return `body`, in which names represent texts: each text is computed once, however often the body names it.

    The names are columns of a subquery of one row. A text that is a column or a number replaces its name instead. `body`
    itself must not contain any text of a question.
    """
    simple = {name: text for name, text in values.items() if _SIMPLE.fullmatch(text)}
    rest = {name: text for name, text in values.items() if name not in simple}
    if simple:
        names = "|".join(simple)
        body = re.sub(rf"(?<![\w.\"'#])({names})(?![\w.\"'#(])", lambda match: simple[match[1]], body)
    if not rest:
        return body
    items = ", ".join(f"{text} AS {name}" for name, text in rest.items())
    # OFFSET 0 keeps the planner from inlining the texts.
    return f'(SELECT {body} FROM (SELECT {items} OFFSET 0) AS "#let")'


def _power(exponent: int) -> str:
    return constant(2.0**exponent)


def _special(*names: str) -> str:
    """Return the condition that an operand is NaN or infinite, in which case no operation raises."""
    return " OR ".join(f"{name} IN ({NAN}, {INFINITY}, {real('-Infinity')})" for name in names)


def _moderate(*names: str) -> str:
    return " AND ".join(f"abs({name}) BETWEEN {real('1e-150')} AND {real('1e150')}" for name in names)


def _infinite(negative: str) -> str:
    return f"CASE WHEN {negative} THEN {real('-Infinity')} ELSE {INFINITY} END"


def _zero(negative: str) -> str:
    return f"CASE WHEN {negative} THEN {real('-0')} ELSE {_ZERO} END"


def sum_of(left: str, right: str, operator: str) -> str:
    """Return left + right or left - right. Halves of large numbers are exact, and numbers below 1 change no overflow."""
    halves = f" {operator} ".join(
        f"CASE WHEN abs({name}) < {_ONE} THEN {_ZERO} ELSE {name} * {_HALF} END" for name in "ab"
    )
    small = " AND ".join(f"abs({name}) <= {_power(1022)}" for name in "ab")
    checked = let(
        {"h": f"({halves})"},
        f"(CASE WHEN abs(h) > {constant(2.0**1023 - 2.0**970)} THEN {_infinite(f'h < {_ZERO}')} ELSE a {operator} b END)",
    )
    text = f"(CASE WHEN {small} THEN a {operator} b WHEN {_special(*'ab')} THEN a {operator} b ELSE {checked} END)"
    return let({"a": left, "b": right}, text)


def product_of(left: str, right: str) -> str:
    """Return left * right. For two factors above 1, the scaled product is 1 or more exactly if the product overflows; for two
    factors below 1, one of them far below, it is at most one half if the product underflows to zero."""
    opposite = f"(a < {_ZERO}) <> (b < {_ZERO})"
    large = f"abs((a * {_power(-512)}) * (b * {_power(-512)})) >= {_ONE}"
    tiny = f"abs((a * {_power(537)}) * (b * {_power(537)})) <= {_HALF}"
    text = (
        f"(CASE WHEN {_moderate(*'ab')} THEN a * b WHEN a = {_ZERO} OR b = {_ZERO} OR {_special(*'ab')} THEN a * b "
        f"WHEN abs(a) > {_ONE} AND abs(b) > {_ONE} THEN CASE WHEN {large} THEN {_infinite(opposite)} ELSE a * b END "
        f"WHEN abs(a) < {_ONE} AND abs(b) < {_ONE} THEN CASE WHEN {tiny} THEN {_zero(opposite)} ELSE a * b END "
        "ELSE a * b END)"
    )
    return let({"a": left, "b": right}, text)


def quotient_of(left: str, right: str) -> str:
    """Return left / right, NULL if the divisor is zero."""
    opposite = f"(a < {_ZERO}) <> (b < {_ZERO})"
    # 2**-50 is 2**1024 in the scale of this quotient, and 2**-51 / 2**-1074 does not overflow.
    large = f"abs((a * {_power(-512)}) / (b * {_power(562)})) >= {_power(-50)}"
    tiny = f"abs((a * {_power(537)}) / (b * {_power(-537)})) <= {_HALF}"
    text = (
        f"(CASE WHEN b = {_ZERO} THEN NULL WHEN {_moderate(*'ab')} THEN a / b "
        f"WHEN a = {_ZERO} OR {_special(*'ab')} THEN a / b "
        f"WHEN abs(b) < {_ONE} AND abs(a) > {_power(-51)} THEN "
        f"CASE WHEN {large} THEN {_infinite(opposite)} ELSE a / b END "
        f"WHEN abs(b) > {_ONE} AND abs(a) < {_power(-50)} THEN CASE WHEN {tiny} THEN {_zero(opposite)} ELSE a / b END "
        "ELSE a / b END)"
    )
    return let({"a": left, "b": right}, text)


def rounded(value: str) -> str:
    """Return a real rounded half away from zero. (The engine's own round of doubles rounds half to even.)"""
    whole = f"(floor(abs(r)) + CASE WHEN abs(r) - floor(abs(r)) >= {_HALF} THEN {_ONE} ELSE {_ZERO} END)"
    text = f"(CASE WHEN abs(r) < {_power(52)} THEN CASE WHEN r < {_ZERO} THEN -{whole} ELSE {whole} END ELSE r END)"
    return let({"r": value}, text)
