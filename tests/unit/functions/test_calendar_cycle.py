"""Properties of expressions without a year, on any days, follow from fourteen years; on few days, from these days alone."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from dpsql.functions.calendar_cycle import MOST_DAYS, on_days, repeats
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Column, Expr, Literal

DAY = Column("d", Facts(Type.DATE))


def literal(value: object) -> Literal:
    return Literal(value, literal_facts(value))


def part(name: str) -> Expr:
    return call("date_part", literal(name), DAY)


PARTS = tuple(map(part, ("quarter", "month", "day", "isodow", "doy")))


def of_every_day(first: date, last: date) -> set[tuple[object, ...]]:
    days = (first + timedelta(days=offset) for offset in range((last - first).days + 1))
    return {tuple(evaluate(expression, {"d": day}) for expression in PARTS) for day in days}


@pytest.mark.slow
def test_fourteen_years_have_every_combination_of_four_hundred() -> None:
    """The calendar repeats after 400 years, which have 97 leap days and a whole number of weeks."""
    every = of_every_day(date(1900, 1, 1), date(2299, 12, 31))
    assert set(on_days(PARTS, "d", None, None)) == every
    assert set(on_days(PARTS, "d", date(2000, 1, 1), None)) == every
    assert set(on_days(PARTS, "d", date(2000, 1, 1), date(2000, 1, 1) + timedelta(days=MOST_DAYS + 1))) == every


def test_leap_days_are_on_each_day_of_the_week() -> None:
    every, week = on_days(PARTS, "d", None, None), {1, 2, 3, 4, 5, 6, 7}
    leap_days = {row for row in every if row[1:3] == (2, 29)}
    assert {row[3] for row in leap_days} == week and {row[4] for row in leap_days} == {60}
    assert {row[3] for row in every if row[1:3] == (12, 31) and row[4] == 366} == week


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (date(2024, 2, 27), date(2024, 3, 1)),
        (date(2023, 12, 31), date(2023, 12, 31)),
        (date(2024, 12, 30), date(2025, 1, 2)),
    ],
)
def test_few_days_have_their_own_combinations_alone(first: date, last: date) -> None:
    assert set(on_days(PARTS, "d", first, last)) == of_every_day(first, last)


def test_moments_have_the_days_on_which_they_are() -> None:
    ends = datetime(2024, 2, 28, 23, 59), datetime(2024, 3, 1, 0, 1)
    assert set(on_days(PARTS, "d", *ends)) == of_every_day(date(2024, 2, 28), date(2024, 3, 1))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (part("month"), True),
        (part("year"), False),
        (call("date_part", literal("hour"), Column("d", Facts(Type.TIMESTAMP))), False),
        (part("week"), False),
        (call("strftime", DAY, literal("%a %d. %B")), True),
        (call("strftime", DAY, literal("%Y-%m")), False),
        (call("strftime", DAY, literal("%d%%")), False),
        (call("add", part("day"), part("isodow")), True),
        (call("add", part("day"), part("year")), False),
        (DAY, False),
        (call("date_part", literal("month"), call("add_days", DAY, literal(1))), False),
    ],
)
def test_what_repeats_reads_no_year_and_no_time(expression: Expr, expected: bool) -> None:
    assert repeats(expression) is expected
