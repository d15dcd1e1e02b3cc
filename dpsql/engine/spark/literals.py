"""Spark's constants with their types, and source columns read in the types of the policy.

Texts are valid UTF-8 or NULL, and have the collation UTF8_BINARY, so that they are equal if their bytes are and ordered by
code point, whatever collation a column has. A timestamp is Spark's TIMESTAMP, in a session whose time zone is UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dpsql.engine.dialect import constant_of, in_calendar, time_constant
from dpsql.engine.query import stored_as
from dpsql.engine.shared_texts import boolean_of
from dpsql.plan.intervals import Type

TYPES: Mapping[Type, str] = {
    Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "STRING", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP", Type.NULL: "INT",
}  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("date", "timestamp", "timestamp_ntz")
READABLE: Mapping[Type, tuple[str, ...]] = {
    Type.INTEGER: (*_WHOLE, "decimal", "float", "double"),
    Type.REAL: (*_WHOLE, "decimal", "float", "double"),
    Type.TEXT: ("string", "char", "varchar", *_WHOLE),
    Type.BOOLEAN: ("boolean", *_WHOLE, "string", "char", "varchar"),
    Type.DATE: _TIMES,
    Type.TIMESTAMP: _TIMES,
}
"""The source types, without lengths and collations, from which a column of each policy type can be read."""


def kind(engine_type: str) -> str:
    """Return a type without its length, precision or collation: decimal(10,2) is a decimal."""
    return re.split(r"[(<\s]", engine_type, maxsplit=1)[0].lower()


def real(value: float) -> str:
    """Return a double."""
    if not math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    return f"({value!r}D)"


def quoted(text: str) -> str:
    """Return a text between quotes. Every character that could have a meaning for the lexer or the substitution of variables is
    written as its number."""
    return "'" + "".join(c if c.isalnum() or c in " _-.,:%/" else _numbered(c) for c in text) + "'"


def _numbered(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def whole_text(shape: str) -> str:
    """Return a regular expression, as a constant, that must match a whole text."""
    return quoted(rf"\A(?:{shape})\z")


def constant(value: Any) -> str:
    """Return a constant with its type."""
    return constant_of(value, lambda whole: f"({whole}L)", real, quoted)


def real_to_integer(value: str) -> str:
    """Return a double rounded half to even, NULL beyond 64 bits and for NaN (which is greater than every number).

    The bound is tested first, because the engine's cast turns 2**63, which is beyond 64 bits, into the greatest integer.
    """
    inside = f"{value} >= {real(-(2.0**63))} AND {value} < {real(2.0**63)}"
    return f"(CASE WHEN {inside} THEN CAST(rint({value}) AS BIGINT) END)"


def cast_column(source: str, type_: Type, engine_type: str) -> str:
    """Return a source column in our type; a value that does not fit is NULL. Raises ValueError for an engine type not in
    `READABLE`.

    Texts that are not UTF-8 are NULL. A padded text (char(n)) loses its padding; points of time are read by the clock of the
    column's zone, or in UTC.
    """
    engine_type, zone = stored_as(engine_type)
    source_kind = kind(engine_type)
    if source_kind not in READABLE[type_]:
        raise ValueError(f"{engine_type} is not read as {type_.value}")
    if type_ is Type.TEXT:
        text = f"CAST({source} AS STRING)"
        if source_kind in _WHOLE:
            return text
        return f"try_validate_utf8({f'rtrim({text})' if source_kind == 'char' else text})"
    if type_ is Type.INTEGER:
        if source_kind in _WHOLE:
            return f"CAST({source} AS BIGINT)"
        if source_kind == "decimal":
            return f"try_cast(round({source}, 0) AS BIGINT)"
        return real_to_integer(f"CAST({source} AS DOUBLE)")
    if type_ is Type.REAL:
        return f"CAST({source} AS DOUBLE)"
    if type_ is Type.BOOLEAN:
        if source_kind in _WHOLE:
            return f"({source} <> 0)"
        if source_kind == "boolean":
            return source
        return boolean_of(f"lower({cast_column(source, Type.TEXT, engine_type)})", constant)
    time = f"CAST({source} AS TIMESTAMP)" if source_kind == "timestamp_ntz" else source
    inside = in_calendar(Type.DATE if source_kind == "date" else Type.TIMESTAMP, time)
    if zone is not None:
        first, last = time_constant(datetime(1, 1, 3)), time_constant(datetime(9999, 12, 29))
        inside = f"(CASE WHEN {time} BETWEEN {first} AND {last} THEN from_utc_timestamp({time}, {quoted(zone)}) END)"
    return f"CAST({inside} AS {TYPES[type_]})"
