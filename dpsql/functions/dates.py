"""Row functions of dates and timestamps, with one entry each (see `dpsql.functions.numeric`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from dpsql.functions.signatures import TEMPORAL, WrongArguments, any_nullable, function, literal_int, literal_text, want
from dpsql.functions.values import (
    around_month_ends,
    bucket,
    difference,
    last_day,
    microseconds,
    moved_by_months,
    truncated,
)
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Literal
from dpsql.storage.records import replace

# --- dates as text with a literal format ------------------------------------------------------------------------------
# strftime's letters, and PostgreSQL's to_char words translated to these letters.
#
# Only letters are supported whose text is the same in every engine and in every locale; names are English.

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
FINEST = {
    "Y": "year", "y": "year", "m": "month", "B": "month", "b": "month", "d": "day", "j": "day", "A": "day", "a": "day",
    "H": "hour", "I": "hour", "p": "hour", "M": "minute", "S": "second", "%": "year",
}  # fmt: skip
"""Supported letters, and the finest unit of time on which each depends."""
_UNITS = ("year", "month", "day", "hour", "minute", "second")
MOST_FORMAT = 100
_WORDS = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M",
    "SS": "%S", "AM": "%p", "PM": "%p", "Mon": "%b", "FMMonth": "%B", "Dy": "%a", "FMDay": "%A",
}  # fmt: skip
_WORD = re.compile("|".join(_WORDS) + r'|"([^"]*)"|[^A-Za-z"\\]')
_OTHER_WORD = re.compile("SSSS")
"""Words that begin with a supported one and mean something else: SSSS is the number of seconds past midnight."""


def unit_of(form: str) -> str | None:
    """Return the finest unit of time on which a format depends, None for an unsupported format."""
    letters = re.findall(r"%(.?)", form, re.DOTALL)
    if not 0 < len(form) <= MOST_FORMAT or any(letter not in FINEST for letter in letters):
        return None
    return max((FINEST[letter] for letter in letters), key=_UNITS.index, default="year")


def of_words(form: str) -> str | None:
    """Return a format of PostgreSQL's words in strftime's letters, None for unsupported words."""
    parts = []
    position = 0
    while position < len(form):
        match = _WORD.match(form, position)
        if match is None or _OTHER_WORD.match(form, position):
            return None
        word = match[0]
        parts.append(_WORDS.get(word) or (match[1] if word[0] == '"' else word).replace("%", "%%"))
        position = match.end()
    return "".join(parts)


def written(value: Any, form: str) -> str:
    """Return a date or timestamp as text in a format that `unit_of` supports."""
    time = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
    parts = {
        "Y": f"{time.year:04d}", "y": f"{time.year % 100:02d}", "m": f"{time.month:02d}", "B": MONTHS[time.month - 1],
        "b": MONTHS[time.month - 1][:3], "d": f"{time.day:02d}", "j": f"{time.timetuple().tm_yday:03d}",
        "A": _DAYS[time.weekday()], "a": _DAYS[time.weekday()][:3], "H": f"{time.hour:02d}",
        "I": f"{(time.hour + 11) % 12 + 1:02d}", "p": "PM" if time.hour >= 12 else "AM", "M": f"{time.minute:02d}",
        "S": f"{time.second:02d}", "%": "%",
    }  # fmt: skip
    return re.sub("%(.)", lambda letter: parts[letter[1]], form)


# --- row functions of dates and timestamps, with one entry each (see `dpsql.functions.numeric`) -----------------------

MOST_WIDTH = 10**9
DATE_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DIFF_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PART_RANGE = {
    "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dow": (0, 6), "isodow": (1, 7),
    "doy": (1, 366), "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip


def _part_of(part: str, value: Any) -> int:
    week, weekday = value.isocalendar()[1], value.isoweekday()
    by_name = {"quarter": (value.month - 1) // 3 + 1, "week": week, "dow": weekday % 7, "isodow": weekday}
    by_name["doy"] = value.timetuple().tm_yday
    return int(by_name[part] if part in by_name else getattr(value, part))


@function("date_trunc", meaning=truncated, cost=200, coarse=True)
def _date_trunc(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of date_trunc(unit, t) with a literal unit. Dates (units from day up) and timestamps keep their type."""
    unit = _unit(arguments, TRUNC_UNITS)
    want(arguments, Type.TEXT, TEMPORAL)
    facts = arguments[1].facts
    if facts.type is Type.DATE and unit in ("hour", "minute", "second"):
        raise WrongArguments("takes a unit from day up for a date")
    lower, upper = (None if end is None else truncated(unit, end) for end in (facts.lower, facts.upper))
    return replace(facts.without_values(), lower=lower, upper=upper)


@function("date_part", meaning=_part_of, cost=200, coarse=True)
def _date_part(arguments: tuple[Expr, ...]) -> Facts:
    part = _unit(arguments, DATE_PARTS)
    want(arguments, Type.TEXT, TEMPORAL)
    facts = arguments[1].facts
    if part == "year":
        low = None if facts.lower is None else Fraction(facts.lower.year)
        high = None if facts.upper is None else Fraction(facts.upper.year)
        return Facts(Type.INTEGER, low, high, nullable=facts.nullable)
    if facts.type is Type.DATE and part in ("hour", "minute", "second"):
        raise WrongArguments("a date has no time of day")
    least, most = _PART_RANGE[part]
    return Facts(Type.INTEGER, Fraction(least), Fraction(most), nullable=facts.nullable)


@function("date_diff", meaning=difference, cost=200, coarse=True)
def _date_diff(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of date_diff(unit, start, end): the number of unit boundaries from start to end."""
    unit = _unit(arguments, DIFF_UNITS)
    want(arguments, Type.TEXT, TEMPORAL, TEMPORAL)
    start, end = arguments[1].facts, arguments[2].facts
    if len({start.type, end.type} - {Type.NULL}) > 1:
        raise WrongArguments("takes two dates or two timestamps")
    low = high = None
    if start.bounded and end.bounded:
        low = Fraction(difference(unit, start.upper, end.lower))
        high = Fraction(difference(unit, start.lower, end.upper))
    return Facts(Type.INTEGER, low, high, nullable=any_nullable(arguments))


@function("add_days", meaning=lambda d, n: d + timedelta(days=n), repeated=2, cost=200)
def _add_days(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of a date or timestamp plus an integer number of days, which is NULL outside the calendar."""
    want(arguments, TEMPORAL, Type.INTEGER)
    return _moved(arguments, lambda value, days: value + timedelta(days=days))


@function("add_months", meaning=moved_by_months, repeated=2, cost=200)
def _add_months(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of a date or timestamp plus an integer number of months (SQL's + INTERVAL), NULL outside the calendar."""
    want(arguments, TEMPORAL, Type.INTEGER)
    facts = _moved(arguments, moved_by_months)
    lower, upper = around_month_ends(facts.lower, facts.upper)
    return replace(facts, lower=lower, upper=upper)


def _moved(arguments: tuple[Expr, ...], move: Callable[[Any, int], Any]) -> Facts:
    """Return the facts of a date or timestamp moved by a number of steps; `move` must be monotone in both."""
    facts, steps = arguments[0].facts, arguments[1].facts
    if not (facts.bounded and steps.bounded):
        return Facts(facts.type)
    try:
        lower, upper = move(facts.lower, int(steps.lower)), move(facts.upper, int(steps.upper))
    except (OverflowError, ValueError):
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=any_nullable(arguments))


@function("add_seconds", meaning=lambda t, n: t + timedelta(seconds=n), repeated=2, cost=200)
def _add_seconds(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of a timestamp plus an integer number of seconds, which is NULL outside the calendar."""
    want(arguments, Type.TIMESTAMP, Type.INTEGER)
    return _moved(arguments, lambda value, seconds: value + timedelta(seconds=seconds))


@function("epoch", meaning=lambda t: float(microseconds(t)) / 1e6, nodes=("TimeToUnix",))
def _epoch(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of epoch(t): the seconds since 1970 as a real."""
    want(arguments, TEMPORAL)
    facts = arguments[0].facts
    low, high = (None if end is None else Fraction(microseconds(end), 10**6) for end in (facts.lower, facts.upper))
    return Facts(Type.REAL, low, high, nullable=facts.nullable)


@function("time_bucket", meaning=bucket, repeated=4, cost=300, coarse=True)
def _time_bucket(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of time_bucket(t, seconds, origin), both literals: NULL for a bucket that begins before the year 1."""
    want(arguments, TEMPORAL, Type.INTEGER, Type.TIMESTAMP)
    literal_int(arguments[1], 1, MOST_WIDTH)
    width, origin = arguments[1:]
    if not isinstance(width, Literal) or not isinstance(origin, Literal) or origin.value is None:
        raise WrongArguments("takes a literal origin")
    facts = arguments[0].facts
    whole_days = width.value % 86400 == 0 and origin.value.time() == datetime.min.time()
    if facts.type is Type.DATE and not whole_days:
        raise WrongArguments("takes a width of whole days for a date")
    if not facts.bounded:
        return Facts(facts.type)
    try:
        lower, upper = (bucket(end, width.value, origin.value) for end in (facts.lower, facts.upper))
    except OverflowError:
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=facts.nullable)


@function("last_day", meaning=last_day, nodes=("LastDay",), cost=200, coarse=True)
def _last_day(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of last_day(t): the last day of the month, a date."""
    want(arguments, TEMPORAL)
    facts = arguments[0].facts
    lower, upper = (None if end is None else last_day(end) for end in (facts.lower, facts.upper))
    return Facts(Type.DATE, lower, upper, nullable=facts.nullable)


@function("strftime", meaning=written, cost=1000, coarse=True)
def _strftime(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of strftime(t, format) with a literal format."""
    want(arguments, TEMPORAL, Type.TEXT)
    if unit_of(literal_text(arguments[1], "format")) is None:
        raise WrongArguments(f"takes a format of texts and %{', %'.join(FINEST)}")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


def _unit(arguments: tuple[Expr, ...], units: tuple[str, ...]) -> str:
    unit = arguments[0].value if arguments and isinstance(arguments[0], Literal) else None
    if unit not in units:
        raise WrongArguments("takes one of these units as a literal: " + ", ".join(units))
    return str(unit)
