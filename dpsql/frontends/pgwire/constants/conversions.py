"""Conversions of values from one type to another."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from dpsql.frontends.pgwire.catalog.tables import counted_from, first_index
from dpsql.frontends.pgwire.constants.bounds import MOST_WORK
from dpsql.frontends.pgwire.constants.moments import EPOCH, ClockSpan, TimeTz, seconds_of
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, Large, said
from dpsql.frontends.pgwire.constants.types import (
    BITS,
    MOST_CHARACTERS,
    MOST_DIGITS,
    NUMBERS,
    TEXTS,
    WHOLE,
    Context,
    Json,
    Outside,
    category,
    element,
    json_text,
    numeric_text,
    read,
    read_json,
    read_numeric,
    single,
    sql_name,
    write,
)
from dpsql.frontends.pgwire.encodings import NAMED

_MOST_BITS = 83_886_080


def converter(source: str, target: str, context: Context, explicit: bool = True) -> Callable[[Any], Any]:
    """Return the function that converts values between two types between which there is a cast."""
    if target in (source, "any"):
        return lambda value: value
    if source in NUMBERS and target in NUMBERS:
        return lambda value: to_number(value, source, target)
    if {source, target} == {"char", "int4"}:
        return _letter if target == "char" else lambda value: ord(value or "\0")
    if target in TEXTS:
        return lambda value: _as_text(value, source, target, context)
    if element(source) and element(target):
        inner = converter(element(source), element(target), context)
        return lambda value: _each(inner, value)
    named = CONVERSIONS.get((source, target))
    if named is not None:
        return lambda value: named(value, context)
    if target in NAMED or source in NAMED or "oid" in (source, target):
        return lambda value: (
            context.number_of(target, value, None)
            if isinstance(value, str) and target in NAMED
            else _object_number(value, source, target)
        )
    if category(source) == "S":
        return lambda value: read(value, target, context)
    raise Elsewhere


def _object_number(value: Any, source: str, target: str) -> Any:
    """Return a number of an object, which has no sign, as another type; int4 has the same bits. Raises 22003."""
    if not isinstance(value, int) or target == "int8":
        return value
    if source == "int8" and not 0 <= value < 1 << 32:
        raise said("22003", "OID out of range")
    return (value + (1 << 31)) % (1 << 32) - (1 << 31) if target == "int4" else value % (1 << 32)


def _each(function: Callable[[Any], Any], value: Any) -> Any:
    items = (
        _each(function, item) if isinstance(item, list) else None if item is None else function(item) for item in value
    )
    return counted_from(first_index(value), items)


def _letter(value: int) -> str:
    if not -128 <= value < 128:
        raise said("22003", '"char" out of range')
    if value < 0:
        raise Elsewhere
    return chr(value) if value else ""


def _as_text(value: Any, source: str, target: str, context: Context) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = write(value, source, context)
    if source == "inet" and "/" not in text:
        text = f"{text}/{value.network.prefixlen}"
    if source == "bpchar" and target != "bpchar":
        text = text.rstrip(" ")
    return read(text, target, context) if target in ("name", "char") else text


def to_number(value: Any, source: str, target: str) -> Any:
    """Return a number as another type of numbers. Raises 22003 in PostgreSQL's words."""
    words = f"{sql_name(target)} out of range"
    if target in WHOLE:
        if isinstance(value, (float, Decimal)):
            if not math.isfinite(value):
                if isinstance(value, Decimal):
                    label = "NaN" if value.is_nan() else "infinity"
                    raise said("0A000", f"cannot convert {label} to {sql_name(target)}")
                raise said("22003", words)
            value = round(value) if isinstance(value, float) else int(value.to_integral_value("ROUND_HALF_UP"))
        return in_range(value, target)
    if target == "numeric":
        if isinstance(value, float):
            digits = 6 if source == "float4" else 15
            number = Decimal(f"{value:.{digits}g}") if math.isfinite(value) else Decimal(str(value))
            return read_numeric(format(number, "f")) if number.is_finite() else number
        return Decimal(value)
    try:
        number_ = float(value)
        finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
        if math.isinf(number_) and finite:
            raise Outside
        return single(number_) if target == "float4" else number_
    except (Outside, OverflowError):
        raise said(
            "22003",
            f'"{numeric_text(Decimal(value))}" is out of range for type {sql_name(target)}'
            if source == "numeric"
            else "value out of range: overflow",
        ) from None


def in_range(value: int, type_: str) -> int:
    """Return an integer that fits its type. Raises 22003."""
    if not -WHOLE[type_] <= value < WHOLE[type_]:
        raise said("22003", f"{sql_name(type_)} out of range")
    return value


def _to_zone(value: Any, context: Context) -> Any:

    return (
        value if isinstance(value, float) else value.replace(tzinfo=context.zone).astimezone(UTC).replace(tzinfo=None)
    )


def local(value: Any, context: Context) -> Any:
    """Return a timestamptz as the timestamp of the session's zone."""

    return (
        value if isinstance(value, float) else value.replace(tzinfo=UTC).astimezone(context.zone).replace(tzinfo=None)
    )


def midnight(value: Any) -> Any:
    """Return a date as a timestamp."""
    return value if isinstance(value, float) else datetime(value.year, value.month, value.day)


def micros_of(value: Any) -> int:
    """Return a time of day in microseconds."""
    return int(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)


def _time_of(micros: int) -> Any:
    return (EPOCH + timedelta(microseconds=micros % 86_400_000_000)).time()


CONVERSIONS: dict[tuple[str, str], Callable[[Any, Context], Any]] = {
    ("bool", "int4"): lambda v, c: int(v), ("int4", "bool"): lambda v, c: bool(v),
    ("date", "timestamp"): lambda v, c: midnight(v), ("date", "timestamptz"): lambda v, c: _to_zone(midnight(v), c),
    ("timestamp", "date"): lambda v, c: v if isinstance(v, float) else v.date(),
    ("timestamptz", "date"): lambda v, c: v if isinstance(v, float) else local(v, c).date(),
    ("timestamp", "timestamptz"): _to_zone, ("timestamptz", "timestamp"): local,
    ("timestamp", "time"): lambda v, c: None if isinstance(v, float) else v.time(),
    ("timestamptz", "time"): lambda v, c: None if isinstance(v, float) else local(v, c).time(),
    ("time", "interval"): lambda v, c: ClockSpan(0, 0, micros_of(v)),
    ("interval", "time"): lambda v, c: _time_of(v.micros),
    ("time", "timetz"): lambda v, c: TimeTz(micros_of(v), seconds_of(c.now.replace(tzinfo=UTC).astimezone(c.zone))),
    ("timetz", "time"): lambda v, c: _time_of(v.micros),
    ("json", "jsonb"): lambda v, c: Json(read_json(v)), ("jsonb", "json"): lambda v, c: json_text(v.value),
    ("inet", "cidr"): lambda v, c: ipaddress.ip_interface(str(v.network)), ("cidr", "inet"): lambda v, c: v,
    ("bit", "varbit"): lambda v, c: v, ("varbit", "bit"): lambda v, c: v,
    ("bit", "int4"): lambda v, c: _from_bits(v, 32), ("bit", "int8"): lambda v, c: _from_bits(v, 64),
    **{("jsonb", name): (lambda v, c, name=name: _from_json(v, name)) for name in (*NUMBERS, "bool")},  # type: ignore[misc]
}  # fmt: skip


def _from_bits(bits: str, size: int) -> int:
    if len(bits) > size:
        raise said("22003", f"{'integer' if size == 32 else 'bigint'} out of range")
    value = int(bits or "0", 2)
    return value - (1 << size) if len(bits) == size and bits.startswith("1") else value


def _from_json(value: Json, target: str) -> Any:
    inner, is_number = value.value, target != "bool"
    if isinstance(inner, bool if not is_number else Decimal):
        return to_number(inner, "numeric", target) if is_number else inner
    kind = json_kind(inner)
    raise said("22023", f"cannot cast jsonb {kind} to type {sql_name(target)}")


def json_kind(value: Any) -> str:
    """Return json_typeof of a value."""
    kinds = ((bool, "boolean"), (Decimal, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next((word for type_, word in kinds if isinstance(value, type_)), "null")


def sized(value: Any, type_: str, sizes: tuple[int, ...], explicit: bool = True) -> Any:
    """Return a value cut or rounded to the sizes of its type."""
    if value is None or not sizes:
        return value
    if type_ == "numeric":
        scale = sizes[1] if len(sizes) > 1 else 0
        if not value.is_finite():
            return value
        rounded = (
            value.quantize(Decimal(1).scaleb(-scale), "ROUND_HALF_UP")
            if len(value.as_tuple().digits) < MOST_DIGITS
            else value
        )
        if rounded and rounded.adjusted() >= sizes[0] - scale:
            raise said("22003", "numeric field overflow")
        return rounded
    if type_ in ("varchar", "bpchar"):
        return value[: sizes[0]].ljust(sizes[0] if type_ == "bpchar" else 0) if sizes[0] <= MOST_CHARACTERS else value
    if type_ in BITS:
        if sizes[0] > _MOST_BITS:
            raise said("22023", f"length for type {type_} cannot exceed {_MOST_BITS}")
        if type_ == "bit" and sizes[0] > MOST_WORK:
            raise Large
        return value[: sizes[0]].ljust(sizes[0] if type_ == "bit" else 0, "0")
    if type_ in ("timestamp", "timestamptz", "time") and not isinstance(value, float):
        return rounded_moment(value, min(max(sizes[0], 0), 6))
    if type_ == "interval":
        step = 10 ** (6 - min(max(sizes[0], 0), 6))
        return ClockSpan(value.months, value.days, (value.micros + step // 2) // step * step)
    return value


def rounded_moment(value: Any, digits: int) -> Any:
    """Return a timestamp or time rounded to some digits of a second."""

    step = 10 ** (6 - digits)
    micros = (value.microsecond + step // 2) // step * step
    if isinstance(value, datetime):
        return value.replace(microsecond=0) + timedelta(microseconds=micros)
    return _time_of(micros_of(value) - value.microsecond + micros)


# --- truth ------------------------------------------------------------------------------------------------------------


def all_true(values: Any) -> Any:
    """Return whether all values are true; None if that is unknown."""
    unknown = False
    for value in values:
        if value is False:
            return False
        unknown |= value is None
    return None if unknown else True


def opposite(value: Any) -> Any:
    """Return NOT of a value."""
    return None if value is None else not value


def signed(value: Any, negated: bool) -> Any:
    """Return a value, or NOT of it."""
    return opposite(value) if negated else value
