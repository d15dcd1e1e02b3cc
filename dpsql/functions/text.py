"""Row functions of texts and of dates (see `dpsql.functions.numeric`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from dpsql.functions.calendar import bucket, difference, last_day, microseconds, moved_by_months, truncated
from dpsql.functions.date_formats import FINEST, unit_of
from dpsql.functions.regex import WrongPattern, checked, checked_replacement
from dpsql.functions.signatures import TEMPORAL, WrongArguments, any_nullable, function, literal_int, want
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Literal

MOST_TEXT = 10_000
"""Concatenated and replaced texts are cut here: doubled again and again, a person's text could fill the memory."""
MOST_PARTS = 20
MOST_SHORT = 20
"""Characters of a literal that is put into texts once or many times."""
MOST_WIDTH = 10**9
DATE_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DIFF_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PART_RANGE = {
    "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dow": (0, 6), "isodow": (1, 7),
    "doy": (1, 366), "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip


@function("like", "ilike")
def _like(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, Type.TEXT)
    if not isinstance(arguments[1], Literal):
        raise WrongArguments("takes a literal pattern")
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


@function("starts_with", "ends_with", "contains")
def _text_test(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, Type.TEXT)
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


@function("lower", "upper", "trim", "ltrim", "rtrim")
def _text_map(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT)
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("left", "right")
def _left(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, Type.INTEGER)
    literal_int(arguments[1], 0, 10_000)
    known, count = arguments[0].facts, arguments[1]
    # A list of values stays one, so that what is said of the values of a column holds for the part that is read.
    whole = (
        known.values is not None
        and isinstance(count, Literal)
        and all(len(v or "") <= count.value for v in known.values)
    )
    return Facts(Type.TEXT, values=known.values if whole else None, nullable=any_nullable(arguments))


@function("substr")
def _substr(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, *([Type.INTEGER] * (len(arguments) - 1)))
    if len(arguments) not in (2, 3):
        raise WrongArguments("takes 2 or 3 arguments")
    for argument in arguments[1:]:
        literal_int(argument, 1 if argument is arguments[1] else 0, 10_000)
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("concat")
def _concat(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, *([Type.TEXT] * len(arguments)))
    if not 1 <= len(arguments) <= MOST_PARTS:
        raise WrongArguments(f"takes 1 to {MOST_PARTS} texts")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("replace")
def _replace(arguments: tuple[Expr, ...]) -> Facts:
    """The two texts are literals: a replacement taken from a column could make a row's text grow without end."""
    want(arguments, Type.TEXT, Type.TEXT, Type.TEXT)
    if not all(
        isinstance(a, Literal) and isinstance(a.value, str) and len(a.value) <= MOST_SHORT for a in arguments[1:]
    ):
        raise WrongArguments(f"takes literal texts of at most {MOST_SHORT} characters to find and to put")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("length")
def _length(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT)
    values = arguments[0].facts.values
    upper = None if values is None else Fraction(max((len(v) for v in values if v is not None), default=0))
    return Facts(Type.INTEGER, Fraction(0), upper, nullable=any_nullable(arguments))


@function("date_trunc")
def _date_trunc(arguments: tuple[Expr, ...]) -> Facts:
    """First argument: a literal unit. Dates stay dates (units from day up), timestamps stay timestamps."""
    unit = _unit(arguments, TRUNC_UNITS)
    want(arguments, Type.TEXT, TEMPORAL)
    facts = arguments[1].facts
    if facts.type is Type.DATE and unit in ("hour", "minute", "second"):
        raise WrongArguments("takes a unit from day up for a date")
    lower, upper = (None if end is None else truncated(unit, end) for end in (facts.lower, facts.upper))
    return replace(facts.without_values(), lower=lower, upper=upper)


@function("date_part")
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


@function("date_diff")
def _date_diff(arguments: tuple[Expr, ...]) -> Facts:
    """date_diff(unit, start, end): unit boundaries crossed from start to end."""
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


@function("add_days")
def _add_days(arguments: tuple[Expr, ...]) -> Facts:
    """A date or timestamp and an integer number of days; NULL outside the calendar."""
    want(arguments, TEMPORAL, Type.INTEGER)
    facts, days = arguments[0].facts, arguments[1].facts
    if not (facts.bounded and days.bounded):
        return Facts(facts.type)
    try:
        lower, upper = (b + timedelta(days=int(d)) for b, d in ((facts.lower, days.lower), (facts.upper, days.upper)))
    except OverflowError:
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=any_nullable(arguments))


@function("add_months")
def _add_months(arguments: tuple[Expr, ...]) -> Facts:
    """A date or timestamp and an integer number of months (SQL's + INTERVAL); NULL outside the calendar."""
    want(arguments, TEMPORAL, Type.INTEGER)
    return _moved(arguments, moved_by_months)


def _moved(arguments: tuple[Expr, ...], move: Callable[[Any, int], Any]) -> Facts:
    """Facts of a date moved by a number of steps, where `move` is monotone in both."""
    facts, steps = arguments[0].facts, arguments[1].facts
    if not (facts.bounded and steps.bounded):
        return Facts(facts.type)
    try:
        lower, upper = move(facts.lower, int(steps.lower)), move(facts.upper, int(steps.upper))
    except (OverflowError, ValueError):
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=any_nullable(arguments))


@function("add_seconds")
def _add_seconds(arguments: tuple[Expr, ...]) -> Facts:
    """A timestamp and an integer number of seconds; NULL outside the calendar."""
    want(arguments, Type.TIMESTAMP, Type.INTEGER)
    return _moved(arguments, lambda value, seconds: value + timedelta(seconds=seconds))


@function("epoch")
def _epoch(arguments: tuple[Expr, ...]) -> Facts:
    """Seconds since 1970 as a real."""
    want(arguments, TEMPORAL)
    facts = arguments[0].facts
    low, high = (None if end is None else Fraction(microseconds(end), 10**6) for end in (facts.lower, facts.upper))
    return Facts(Type.REAL, low, high, nullable=facts.nullable)


@function("time_bucket")
def _time_bucket(arguments: tuple[Expr, ...]) -> Facts:
    """time_bucket(t, seconds, origin) with literal width and origin: NULL where a bucket begins before the year 1."""
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


@function("last_day")
def _last_day(arguments: tuple[Expr, ...]) -> Facts:
    """The last day of the month, a date."""
    want(arguments, TEMPORAL)
    facts = arguments[0].facts
    lower, upper = (None if end is None else last_day(end) for end in (facts.lower, facts.upper))
    return Facts(Type.DATE, lower, upper, nullable=facts.nullable)


@function("strftime")
def _strftime(arguments: tuple[Expr, ...]) -> Facts:
    """strftime(t, format) with a literal format."""
    want(arguments, TEMPORAL, Type.TEXT)
    if unit_of(_literal_text(arguments[1], "format")) is None:
        raise WrongArguments(f"takes a format of texts and %{', %'.join(FINEST)}")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("regexp_matches")
def _regexp_matches(arguments: tuple[Expr, ...]) -> Facts:
    """Whether a literal pattern is found anywhere in a text."""
    want(arguments, Type.TEXT, Type.TEXT)
    _pattern(arguments[1])
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


@function("regexp_replace")
def _regexp_replace(arguments: tuple[Expr, ...]) -> Facts:
    """regexp_replace(t, pattern, replacement, everywhere), all but t literals: the first match or all of them."""
    want(arguments, Type.TEXT, Type.TEXT, Type.TEXT, Type.BOOLEAN)
    pattern, replacement = _pattern(arguments[1]), _literal_text(arguments[2], "replacement")
    if len(replacement) > MOST_SHORT:
        raise WrongArguments(f"takes a replacement of at most {MOST_SHORT} characters")
    try:
        checked_replacement(pattern, replacement)
    except WrongPattern as wrong:
        raise WrongArguments(str(wrong)) from None
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("split_part")
def _split_part(arguments: tuple[Expr, ...]) -> Facts:
    """split_part(t, separator, n): the n-th part from 1, '' where there is none; literal separator and n."""
    want(arguments, Type.TEXT, Type.TEXT, Type.INTEGER)
    if not 1 <= len(_literal_text(arguments[1], "separator")) <= MOST_SHORT:
        raise WrongArguments(f"takes a separator of 1 to {MOST_SHORT} characters")
    literal_int(arguments[2], 1, 10_000)
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("strlen")
def _strlen(arguments: tuple[Expr, ...]) -> Facts:
    """Bytes of a text in UTF-8."""
    want(arguments, Type.TEXT)
    values = arguments[0].facts.values
    sizes = None if values is None else [len(value.encode()) for value in values if value is not None]
    upper = None if sizes is None else Fraction(max(sizes, default=0))
    return Facts(Type.INTEGER, Fraction(0), upper, nullable=any_nullable(arguments))


@function("strpos")
def _strpos(arguments: tuple[Expr, ...]) -> Facts:
    """strpos(t, u): where u is first found in t, counted in characters from 1; 0 where it is not."""
    want(arguments, Type.TEXT, Type.TEXT)
    return Facts(Type.INTEGER, Fraction(0), nullable=any_nullable(arguments))


@function("concat_ws")
def _concat_ws(arguments: tuple[Expr, ...]) -> Facts:
    """concat_ws(separator, t, ...) with a literal separator: the texts that are not NULL, joined."""
    want(arguments, *([Type.TEXT] * len(arguments)))
    if not 2 <= len(arguments) <= MOST_PARTS + 1:
        raise WrongArguments(f"takes a separator and 1 to {MOST_PARTS} texts")
    if len(_literal_text(arguments[0], "separator")) > MOST_SHORT:
        raise WrongArguments(f"takes a separator of at most {MOST_SHORT} characters")
    return Facts(Type.TEXT, nullable=False)


def _pattern(argument: Expr) -> str:
    try:
        return checked(_literal_text(argument, "pattern"))
    except WrongPattern as wrong:
        raise WrongArguments(str(wrong)) from None


def _literal_text(argument: Expr, what: str) -> str:
    value = argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, str):
        raise WrongArguments(f"takes a literal {what}")
    return value


def _unit(arguments: tuple[Expr, ...], units: tuple[str, ...]) -> str:
    unit = arguments[0].value if arguments and isinstance(arguments[0], Literal) else None
    if unit not in units:
        raise WrongArguments("takes one of these units as a literal: " + ", ".join(units))
    return str(unit)
