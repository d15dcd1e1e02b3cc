"""Meaning of number functions, comparisons and casts in Python, value by value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any

from dpsql.functions.calendar import midnight
from dpsql.functions.text_values import lower, trimmed


def compare(left: Any, right: Any, test: Callable[[Any, Any], bool]) -> bool:
    """Compare as SQL does: NaN equals itself and is greater than every number; an integer is compared with a real as a real."""
    if isinstance(left, (float, Fraction)) or isinstance(right, (float, Fraction)):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return test(math.isnan(left), math.isnan(right))
    elif isinstance(left, datetime) or isinstance(right, datetime):
        left, right = to_timestamp(left), to_timestamp(right)
    return test(left, right)


def clamped_value(value: Any, lower: Any, upper: Any) -> Any:
    """Return a value clamped to [lower, upper]; None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else max(min(value, upper), lower)


def power(base: Any, exponent: Any) -> float:
    """Return C's pow: where Python raises, C returns infinity (overflow, division by zero) or NaN (a root of a negative)."""
    base, exponent = float(base), float(exponent)
    odd = exponent.is_integer() and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.nan if base else math.copysign(math.inf, base) if odd else math.inf


def remainder(left: int, right: int) -> int:
    """Return the exact remainder, with the sign of the dividend."""
    return abs(left) % abs(right) * (1 if left >= 0 else -1)


def rounded(value: Any, digits: int = 0) -> Any:
    """Round half away from zero, as SQL does; with digits, multiply, round and divide in doubles, as the engine does."""
    if isinstance(value, int):
        return value
    scaled = value * 10.0**digits
    if not math.isfinite(scaled):
        return value
    whole = math.floor(abs(scaled))
    return math.copysign(float(whole + (abs(scaled) - whole >= 0.5)), scaled) / 10.0**digits


def integral(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """Return floor or ceil with the result of a real as a real; integers, NaN and infinities are returned unchanged."""

    def run(value: Any) -> Any:
        return value if isinstance(value, int) or not math.isfinite(value) else float(function(value))

    return run


def numbered_bucket(value: Any, low: Any, high: Any, buckets: int) -> Any:
    """Return the number, from 1, of the bucket among `buckets` of equal width; 0 below `low`, `buckets` + 1 from `high` on, None
    for NaN."""
    value, low, high = float(value), float(low), float(high)
    if math.isnan(value):
        return None
    if value < low:
        return 0
    if value >= high:
        return buckets + 1
    return min(buckets, math.floor((value - low) / (high - low) * buckets) + 1)


WHOLE_TEXT = r" *[+-]?[0-9]{1,19} *"
NUMBER_TEXT = r" *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})? *"
TIME_TEXT = (
    r" *([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
    r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?)? *"
)
"""Texts that casts read, as regular expressions that mean the same in Python and in the engines; every other text is NULL.

Engines read more than that (1_000, 0x10, 1e3 as an integer, infinity, epoch), but do not agree with each other.
"""
TRUE_TEXTS = ("true", "t", "yes", "y", "1")
FALSE_TEXTS = ("false", "f", "no", "n", "0")


def to_integer(value: Any) -> int | None:
    """Return the integer of a value: a real is rounded half to even; None for other texts, NaN and infinities."""
    if isinstance(value, str):
        return int(value) if re.fullmatch(WHOLE_TEXT, value) else None
    if isinstance(value, float):
        return None if not math.isfinite(value) else round(value)
    return int(value)


def to_real(value: Any) -> float | None:
    """Return the real of a value; None for a text that is not a number."""
    if isinstance(value, str):
        return float(value) if re.fullmatch(NUMBER_TEXT, value) else None
    return float(value)


def to_text(value: Any) -> str:
    """Return the text of a value as SQL writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def to_boolean(value: Any) -> bool | None:
    """Return the boolean of a value; None for a text that is neither true nor false."""
    if isinstance(value, str):
        word = trimmed(lower(value))
        return word in TRUE_TEXTS if word in TRUE_TEXTS + FALSE_TEXTS else None
    return bool(value)


def to_date(value: Any) -> Any:
    """Return the date of a value, without its time of day; None for a text that is not a time."""
    value = to_timestamp(value) if isinstance(value, str) else value
    return value.date() if isinstance(value, datetime) else value


def to_timestamp(value: Any) -> Any:
    """Return the timestamp of a value, for a date its midnight; None for a text that is not a time."""
    if isinstance(value, str):
        return datetime.fromisoformat(value.strip()) if re.fullmatch(TIME_TEXT, value) else None
    return midnight(value)
