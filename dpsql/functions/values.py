"""Meaning of functions of numbers, texts and dates, of comparisons and of casts in Python, value by value."""

from __future__ import annotations

import calendar
import hashlib
import math
import re
import unicodedata
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import cache
from itertools import dropwhile
from typing import Any

# --- functions of single dates and timestamps -------------------------------------------------------------------------
# Starts of units, differences, months. They are also applied to policy bounds.


def midnight(value: Any) -> Any:
    """Return the midnight of a date; a timestamp unchanged."""
    return datetime.combine(value, datetime.min.time()) if type(value) is date else value


def truncated(unit: str, value: Any) -> Any:
    """Return the start of the year, quarter, ... or second in which a date or timestamp lies; weeks start on Monday."""
    day = value.date() if isinstance(value, datetime) else value
    if unit in ("hour", "minute", "second"):
        fields = {"hour": (0, 0), "minute": (value.minute, 0), "second": (value.minute, value.second)}[unit]
        return value.replace(minute=fields[0], second=fields[1], microsecond=0)
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    back = {"day": 0, "week": day.weekday()}.get(unit)
    start = day.replace(month=month, day=1) if back is None else day - timedelta(days=back)
    return midnight(start) if isinstance(value, datetime) else start


MONTHS_OF = {"year": 12, "quarter": 3, "month": 1}
TIMES_OF = {
    "week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}  # fmt: skip


def next_start(unit: str, start: Any) -> Any:
    """Return the start of the period that follows the one beginning at `start`. Raises OverflowError or ValueError after 9999."""
    return moved_by_months(start, MONTHS_OF[unit]) if unit in MONTHS_OF else start + TIMES_OF[unit]


def difference(unit: str, start: Any, end: Any) -> int:
    """Return the boundaries of `unit` from start to end, two dates or timestamps. Weeks are periods of 7 days, as in DuckDB."""
    if (months := MONTHS_OF.get(unit)) is not None:
        return int((end.year * 12 + end.month - 1) // months - (start.year * 12 + start.month - 1) // months)
    if unit == "week":
        days: timedelta = truncated("day", midnight(end)) - truncated("day", midnight(start))
        return math.trunc(days / timedelta(weeks=1))
    apart: timedelta = truncated(unit, midnight(end)) - truncated(unit, midnight(start))
    return apart // TIMES_OF[unit]


def moved_by_months(value: Any, months: int) -> Any:
    """Return the same day `months` later, or that month's last day. Raises ValueError outside the years 1 to 9999."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1] if 1 <= year <= 9999 else value.day
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def around_month_ends(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return ends that include all timestamps of an interval after it has been moved by months, given its moved ends.

    The last days of a long month become the last day of a short one and keep their times of day: 30 March 04:00 less one month
    is before 29 March 23:00 less one month. So an end on the last day of a month is widened to the whole day.
    """
    if isinstance(lower, datetime) and lower.date() == last_day(lower):
        lower = datetime.combine(lower.date(), time.min)
    if isinstance(upper, datetime) and upper.date() == last_day(upper):
        upper = datetime.combine(upper.date(), time.max)
    return lower, upper


EPOCH = datetime(1970, 1, 1)
BUCKETS = datetime(2000, 1, 3)
"""Default origin of time buckets: a Monday, as in DuckDB."""


def microseconds(value: Any) -> int:
    return int((midnight(value) - EPOCH) // timedelta(microseconds=1))


def bucket(value: Any, seconds: int, origin: datetime) -> Any:
    """Return the start of the bucket of `seconds` in which a date or timestamp lies. Raises OverflowError before the year 1."""
    width = timedelta(seconds=seconds)
    start = origin + (midnight(value) - origin) // width * width
    return start if isinstance(value, datetime) else start.date()


def last_day(value: Any) -> date:
    """Return the last day of the month of a date or timestamp."""
    return date(value.year, value.month, calendar.monthrange(value.year, value.month)[1])


# --- meaning of text functions in Python, value by value --------------------------------------------------------------

MOST_TEXT = 10_000
"""Concatenated and replaced texts are cut at this length: doubled repeatedly, one unit's text could fill the memory."""


def like(text: str, pattern: str) -> bool:
    """Return whether `text` is LIKE `pattern` (%: any text, _: any character), without an escape; linear in each of both."""
    position = pattern_position = 0
    star, retry = -1, 0
    while position < len(text):
        if pattern_position < len(pattern) and pattern[pattern_position] == "%":
            star, retry, pattern_position = pattern_position, position, pattern_position + 1
        elif pattern_position < len(pattern) and pattern[pattern_position] in ("_", text[position]):
            position, pattern_position = position + 1, pattern_position + 1
        elif star >= 0:
            retry += 1
            position, pattern_position = retry, star + 1
        else:
            return False
    return not pattern[pattern_position:].strip("%")


def lower(text: str) -> str:
    """Return the text in lower case, character by character as the engine does: of the same length, whatever is beside it."""
    return "".join("i" if c == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else c.lower() for c in text)


def upper(text: str) -> str:
    """Return the text in upper case, character by character as in `lower`; the sharp s becomes a capital sharp s."""

    def capital(character: str) -> str:
        if character == "\N{LATIN SMALL LETTER SHARP S}":
            return "\N{LATIN CAPITAL LETTER SHARP S}"
        single_characters = [cased for cased in (character.upper(), character.title()) if len(cased) == 1]
        return single_characters[0] if single_characters else character

    return "".join(map(capital, text))


@cache
def case_pairs(word: str) -> tuple[str, str]:
    """Return every letter that `word` (lower, upper) changes, and the letters that they become."""
    function = {"lower": lower, "upper": upper}[word]
    letters = [c for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and function(c) != c]
    return "".join(letters), "".join(map(function, letters))


def left_trim(text: str) -> str:
    return "".join(dropwhile(lambda character: unicodedata.category(character) == "Zs", text))


def right_trim(text: str) -> str:
    return left_trim(text[::-1])[::-1]


def trimmed(text: str) -> str:
    return right_trim(left_trim(text))


def replaced_text(text: str, old: str, new: str) -> str:
    """Return the first `MOST_TEXT` characters with `new` for every `old` (never empty), cut to `MOST_TEXT` again."""
    text = text[:MOST_TEXT]
    return text.replace(old, new)[:MOST_TEXT] if old else text


def split_part(text: str, separator: str, number: int) -> str:
    """Return the part between separators with this number (from 1, or from -1 at the end); empty if there is none."""
    parts = text.split(separator)
    return parts[number - 1 if number > 0 else number] if abs(number) <= len(parts) else ""


def translated(text: str, old: str, new: str) -> str:
    """Return the text with each character of `old` replaced by that of `new` at its first place in `old`, or left out."""
    return "".join(c if (index := old.find(c)) < 0 else new[index : index + 1] for c in text)


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# --- meaning of number functions, comparisons and casts in Python, value by value -------------------------------------


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
    """Return the number, from 1, of the bucket of equal width; 0 below `low`, `buckets` + 1 from `high` on, None for NaN."""
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
