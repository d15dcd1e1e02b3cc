"""Comparisons of times that are written as texts, in plainer words: `strftime(d, '%Y-%m') = '2024-05'` is one of the start of the
month, `dayname(d) = 'Monday'` one of the number of the day. Both are true, false and NULL for the same rows. Days of moments are
in plainer words, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal, literal

_FORMATS = {"%Y": "year", "%Y-%m": "month", "%Y%m": "month", "%m/%Y": "month", "%Y-%m-%d": "day", "%Y%m%d": "day"}
_WRITTEN_PARTS = {
    "%A": "isodow", "%a": "isodow", "%B": "month", "%b": "month", "%m": "month", "%d": "day", "%H": "hour", "%M": "minute",
}  # fmt: skip
_TIMES_OF_DAY = ("%H", "%M")
PARTS = {
    "quarter": (1, 5), "month": (1, 13), "day": (1, 32), "dow": (0, 7), "isodow": (1, 8), "hour": (0, 24), "minute": (0, 60),
}  # fmt: skip
"""The least number of a part of a time, and that after the largest."""


def of_strftime(word: str, text: Call, values: Sequence[Any]) -> Expr | None:
    """Return a comparison of the text that `strftime` writes with texts; None where it is none of a time."""
    moment, form = text.arguments
    written_as = str(form.value) if isinstance(form, Literal) else ""
    if written_as in _WRITTEN_PARTS and not (written_as in _TIMES_OF_DAY and moment.facts.type is Type.DATE):
        return _of_written_part(word, moment, written_as, values)
    return of_written_time(word, moment, written_as, values)


def _of_written_part(word: str, moment: Expr, written_as: str, values: Sequence[Any]) -> Expr | None:
    """Return `dayname(d) = 'Monday'` as a comparison of the number of the day."""
    numbers = _numbers_of_texts(written_as)
    if not numbers.keys() >= set(values):
        return None
    unit = literal(_WRITTEN_PARTS[written_as])
    return call(word, call("date_part", unit, moment), *(literal(numbers[value]) for value in values))


@cache
def _numbers_of_texts(written_as: str) -> dict[str, int]:
    """Return the numbers of a part of a time by the texts that `strftime` writes for them."""
    unit = _WRITTEN_PARTS[written_as]
    start, part = datetime(2024, 1, 1), "day" if unit == "isodow" else unit  # a Monday
    moments = {number: start.replace(**{part: number}) for number in range(*PARTS[unit])}  # type: ignore[arg-type]
    texts = {number: call("strftime", literal(moment), literal(written_as)) for number, moment in moments.items()}
    return {evaluate(text, {}): number for number, text in texts.items()}


def of_written_time(word: str, moment: Expr, written_as: str, values: Sequence[Any]) -> Expr | None:
    """Return `strftime(d, '%Y-%m') = '2024-05'` as a comparison of the start of the month."""
    unit = _FORMATS.get(written_as)
    if unit is None:
        return None
    starts: list[Any] = []
    for value in values:
        try:
            start = datetime.strptime(value, written_as)
        except ValueError:
            return None
        if start.year < 1000 or start.strftime(written_as) != value:
            return None
        starts.append(start if moment.facts.type is Type.TIMESTAMP else start.date())
    return call(word, call("date_trunc", literal(unit), moment), *map(literal, starts))


_OF_CLOCK = tuple(map(literal, ("hour", "minute", "second")))


def day_of_moment(value: Call) -> Expr:
    """Return the form of a cast to a date: a day that became a moment is itself, that of a truncated moment is truncated."""
    (inner,) = value.arguments
    if not isinstance(inner, Call) or inner.function not in ("to_timestamp", "date_trunc"):
        return value
    moment = inner.arguments[-1]
    if inner.function == "to_timestamp":
        return moment if moment.facts.type is Type.DATE else value
    day = day_of_moment(call("to_date", moment))
    unit = inner.arguments[0]
    return day if unit in (literal("day"), *_OF_CLOCK) else call("date_trunc", unit, day)


def part_of_day(value: Call) -> Expr:
    """Return the form of a part of a date: in the calendar, a moment and its day have the same parts."""
    part, inner = value.arguments
    if not isinstance(inner, Call) or inner.function not in ("to_date", "to_timestamp"):
        return value
    moment = inner.arguments[0]
    is_same = moment.facts.type in (Type.DATE, Type.TIMESTAMP) and part not in _OF_CLOCK
    return call("date_part", part, moment) if is_same else value
