"""Expressions that repeat with the calendar: months, days and weekdays of a date, without its year.

Every combination of their values occurs in one of fourteen years: those that begin on each of the seven weekdays, with and
without a leap day.
"""

from __future__ import annotations

from calendar import isleap
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.plan.plan import Call, Column, Expr, Literal

MOST_DAYS = 2_000
_PARTS = ("quarter", "month", "day", "dow", "isodow", "doy")
_LETTERS = "mBbdjAa%"
"""Letters of formats that depend neither on the year nor on the time of day."""


def repeats(expression: Expr) -> bool:
    """Return whether an expression reads only parts of dates that repeat."""
    if isinstance(expression, Literal):
        return True
    if not isinstance(expression, Call):
        return False
    if expression.function == "date_part":
        part, moment = expression.arguments
        return isinstance(part, Literal) and part.value in _PARTS and isinstance(moment, Column)
    if expression.function == "strftime":
        moment, form = expression.arguments
        letters = form.value.split("%")[1:] if isinstance(form, Literal) else [""]
        plain = all(letter[:1] in _LETTERS and letter for letter in letters) and "%%" not in str(
            getattr(form, "value", "")
        )
        return plain and isinstance(moment, Column)
    return all(map(repeats, expression.arguments))


def on_days(expressions: tuple[Expr, ...], name: str, first: Any, last: Any) -> Iterable[tuple[Any, ...]]:
    """Return the combinations of values of periodic expressions on the days from `first` to `last` (None: unbounded). For long
    intervals, these are the combinations on all days."""
    if first is None or last is None or (last - first).days > MOST_DAYS:
        return _cycle(expressions, name)
    start = first.date() if isinstance(first, datetime) else first
    days = (start + timedelta(days=offset) for offset in range((last - first).days + 2))
    end = last.date() if isinstance(last, datetime) else last
    return {tuple(evaluate(expression, {name: day}) for expression in expressions) for day in days if day <= end}


@lru_cache(maxsize=64)
def _cycle(expressions: tuple[Expr, ...], name: str) -> frozenset[tuple[Any, ...]]:
    """Return the combinations of values of periodic expressions on all days."""
    return frozenset(tuple(evaluate(expression, {name: day}) for expression in expressions) for day in _days())


@lru_cache(maxsize=1)
def _days() -> tuple[date, ...]:
    years = {(date(year, 1, 1).weekday(), isleap(year)): year for year in range(2000, 2028)}
    return tuple(
        date(year, 1, 1) + timedelta(days=offset)
        for year in sorted(years.values())
        for offset in range(365 + isleap(year))
    )
