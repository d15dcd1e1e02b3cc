"""Row functions of texts and of dates (see `dpsql.functions`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

from dpsql.moments import difference, moved_by_months, truncated
from dpsql.plan import Expr, Literal
from dpsql.ranges import Facts, Type
from dpsql.signatures import TEMPORAL, WrongArguments, any_nullable, function, literal_int, want

MOST_TEXT = 10_000
"""Concatenated and replaced texts are cut here: doubled again and again, a person's text could fill the memory."""
MOST_PARTS = 20
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
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


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
    if not all(isinstance(a, Literal) and isinstance(a.value, str) and len(a.value) <= 20 for a in arguments[1:]):
        raise WrongArguments("takes literal texts of at most 20 characters to find and to put")
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
    """A date or timestamp and a literal number of months (SQL's + INTERVAL)."""
    want(arguments, TEMPORAL, Type.INTEGER)
    literal_int(arguments[1], -(10**6), 10**6)
    return _moved(arguments, moved_by_months)


def _moved(arguments: tuple[Expr, ...], move: Callable[[Any, int], Any]) -> Facts:
    """Facts of a date moved by a literal number of steps, where `move` is monotone in the date."""
    facts, steps = arguments[0].facts, arguments[1]
    if not facts.bounded or not isinstance(steps, Literal):
        return Facts(facts.type)
    try:
        lower, upper = (move(end, steps.value) for end in (facts.lower, facts.upper))
    except (OverflowError, ValueError):
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=facts.nullable)


@function("add_seconds")
def _add_seconds(arguments: tuple[Expr, ...]) -> Facts:
    """A timestamp and a literal number of seconds."""
    want(arguments, Type.TIMESTAMP, Type.INTEGER)
    literal_int(arguments[1], -(10**6), 10**6)
    return _moved(arguments, lambda value, seconds: value + timedelta(seconds=seconds))


def _unit(arguments: tuple[Expr, ...], units: tuple[str, ...]) -> str:
    unit = arguments[0].value if arguments and isinstance(arguments[0], Literal) else None
    if unit not in units:
        raise WrongArguments("takes one of these units as a literal: " + ", ".join(units))
    return str(unit)
