"""What is known of the results of functions of dates and timestamps before any row is read, and what they refuse.

`test_facts` tries random trees; here are the ends of each function by itself, over all values within the bounds of a column.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from dpsql.functions.dates import DATE_PARTS, DIFF_UNITS, MOST_WIDTH, TRUNC_UNITS
from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import WrongArguments, call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Column, Expr, Literal

FIRST, LAST = date(2023, 11, 28), date(2024, 3, 2)
DAYS = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
FROM, UNTIL = datetime(2024, 2, 28, 22, 58, 57, 5), datetime(2024, 3, 1, 1, 2, 3)
MOMENTS = [FROM, *(FROM + timedelta(seconds=61 * n) for n in range(int((UNTIL - FROM).total_seconds()) // 61)), UNTIL]
MOMENTS_OF: dict[Type, list[Any]] = {Type.DATE: DAYS, Type.TIMESTAMP: MOMENTS}


def column(low: Any, high: Any, *, nullable: bool = False, name: str = "t") -> Column:
    type_ = Type.INTEGER if isinstance(low, int) else Type.TIMESTAMP if isinstance(low, datetime) else Type.DATE
    if type_ is Type.INTEGER:
        low, high = Fraction(low), Fraction(high)
    return Column(name, Facts(type_, low, high, nullable=nullable))


def unbounded(type_: Type, name: str = "t") -> Column:
    return Column(name, Facts(type_, nullable=False))


def literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


DAY, MOMENT = column(FIRST, LAST), column(FROM, UNTIL)
WITHOUT_BOUNDS = {Type.DATE: unbounded(Type.DATE), Type.TIMESTAMP: unbounded(Type.TIMESTAMP)}


def refused(name: str, *arguments: Expr) -> str:
    with pytest.raises(WrongArguments) as caught:
        call(name, *arguments)
    return str(caught.value)


def ends(name: str, *arguments: Expr) -> tuple[Any, Any]:
    facts = call(name, *arguments).facts
    return facts.lower, facts.upper


def images(name: str, *arguments: Expr) -> list[Any]:
    """Return the values of a function over all values of its column."""
    (varying,) = (argument for argument in arguments if isinstance(argument, Column))
    expression = call(name, *arguments)
    return [evaluate(expression, {"t": value}) for value in MOMENTS_OF[varying.facts.type]]


# --- units of time --------------------------------------------------------------------------------------------------

SUB_DAY = ("hour", "minute", "second")


@pytest.mark.parametrize("argument", [DAY, MOMENT], ids=["date", "timestamp"])
@pytest.mark.parametrize("unit", TRUNC_UNITS)
def test_the_start_of_a_unit_lies_between_those_of_both_bounds(unit: str, argument: Column) -> None:
    if argument is DAY and unit in SUB_DAY:
        assert refused("date_trunc", literal(unit), argument) == "takes a unit from day up for a date"
        return
    values = images("date_trunc", literal(unit), argument)
    facts = call("date_trunc", literal(unit), argument).facts
    assert (facts.lower, facts.upper) == (min(values), max(values)) and facts.type is argument.facts.type
    assert facts.values is None and not facts.nullable


RANGES = {
    "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dow": (0, 6), "isodow": (1, 7), "doy": (1, 366),
}  # fmt: skip


def test_parts_of_all_days_of_four_years_are_exactly_those_between_the_ends() -> None:
    """Years with 366 days and with 53 weeks are among them."""
    days = [date(2020, 1, 1) + timedelta(days=n) for n in range(1461)]
    known = column(days[0], days[-1])
    for part, (least, most) in {**RANGES, "year": (2020, 2023)}.items():
        expression = call("date_part", literal(part), known)
        assert {evaluate(expression, {"t": day}) for day in days} == set(range(least, most + 1)), part
        assert (expression.facts.lower, expression.facts.upper) == (least, most), part


def test_parts_of_a_time_of_day_are_exactly_those_between_the_ends_and_a_date_has_none() -> None:
    moments = [datetime(2024, 1, 1) + timedelta(seconds=n) for n in range(0, 86400, 59)]
    for part, most in (("hour", 23), ("minute", 59), ("second", 59)):
        expression = call("date_part", literal(part), MOMENT)
        assert {evaluate(expression, {"t": moment}) for moment in moments} == set(range(most + 1))
        assert (expression.facts.lower, expression.facts.upper) == (0, most)
        assert refused("date_part", literal(part), DAY) == "a date has no time of day"


def test_a_year_has_the_bounds_that_the_column_has() -> None:
    assert ends("date_part", literal("year"), DAY) == (2023, 2024)
    assert ends("date_part", literal("year"), unbounded(Type.DATE)) == (None, None)
    assert ends("date_part", literal("month"), unbounded(Type.DATE)) == (1, 12)


@pytest.mark.parametrize("unit", DIFF_UNITS)
def test_a_difference_lies_between_those_of_the_bounds_that_are_furthest_apart(unit: str) -> None:
    later = {Type.DATE: column(date(2024, 1, 31), date(2025, 1, 1), name="u")}
    later[Type.TIMESTAMP] = column(datetime(2024, 2, 29, 12), datetime(2025, 1, 1, 3), name="u")
    for known in (DAY, MOMENT):
        other = later[known.facts.type]
        expression = call("date_diff", literal(unit), known, other)
        pairs = [(t, u) for t in (known.facts.lower, known.facts.upper) for u in (other.facts.lower, other.facts.upper)]
        values = [evaluate(expression, {"t": t, "u": u}) for t, u in pairs]
        assert (expression.facts.lower, expression.facts.upper) == (min(values), max(values)), known.facts.type
        assert ends("date_diff", literal(unit), known, unbounded(known.facts.type)) == (None, None)
        assert ends("date_diff", literal(unit), unbounded(known.facts.type), known) == (None, None)


@pytest.mark.parametrize(
    ("name", "units"), [("date_trunc", TRUNC_UNITS), ("date_part", DATE_PARTS), ("date_diff", DIFF_UNITS)]
)
def test_a_unit_is_a_literal_of_the_list(name: str, units: tuple[str, ...]) -> None:
    arguments = [DAY] * (2 if name == "date_diff" else 1)
    sentence = "takes one of these units as a literal: " + ", ".join(units)
    for unit in (
        literal("century"),
        literal(""),
        literal("Day"),
        literal(1),
        literal(None),
        Column("u", Facts(Type.TEXT)),
    ):
        assert refused(name, unit, *arguments) == sentence
    assert refused(name) == sentence


def test_a_difference_is_of_two_dates_or_of_two_timestamps() -> None:
    assert refused("date_diff", literal("day"), DAY, MOMENT) == "takes two dates or two timestamps"
    assert refused("date_diff", literal("day"), MOMENT, DAY) == "takes two dates or two timestamps"
    assert call("date_diff", literal("day"), DAY, literal(None)).facts.type is Type.INTEGER


# --- moving ---------------------------------------------------------------------------------------------------------

MOVES: list[tuple[str, Column, Callable[[Any], int]]] = [
    ("add_days", DAY, lambda steps: steps),
    ("add_days", MOMENT, lambda steps: steps),
    ("add_months", DAY, lambda steps: steps),
    ("add_months", MOMENT, lambda steps: steps),
    ("add_seconds", MOMENT, lambda steps: 3600 * steps),
]


@pytest.mark.parametrize(("name", "moved", "steps"), MOVES)
@pytest.mark.parametrize("least", [-2, 0, 1])
def test_a_moved_date_lies_between_the_moved_bounds(
    name: str, moved: Column, steps: Callable[[Any], int], least: int
) -> None:
    counts = column(steps(least), steps(least + 1), name="n")
    expression = call(name, moved, counts)
    values = [
        evaluate(expression, {"t": value, "n": steps(least + more)})
        for value in MOMENTS_OF[moved.facts.type]
        for more in (0, 1)
    ]
    facts = expression.facts
    assert facts.type is moved.facts.type and not facts.nullable
    assert facts.lower <= min(values) and max(values) <= facts.upper
    day_of_month_end = timedelta(days=1) if name == "add_months" and moved is MOMENT else timedelta()
    assert min(values) - facts.lower <= day_of_month_end and facts.upper - max(values) <= day_of_month_end


@pytest.mark.parametrize(
    ("first", "last", "months", "lower", "upper"),
    [
        (datetime(2024, 3, 30, 4), datetime(2024, 3, 31, 1), -1, datetime(2024, 2, 29), datetime(2024, 3, 1)),
        (datetime(2024, 1, 28, 7), datetime(2024, 1, 29, 8), 1, datetime(2024, 2, 28, 7), datetime(2024, 3, 1)),
        (datetime(2024, 1, 27, 7), datetime(2024, 1, 28, 8), 1, datetime(2024, 2, 27, 7), datetime(2024, 2, 28, 8)),
    ],
)
def test_a_bound_that_moves_to_the_last_day_of_a_month_becomes_the_whole_day(
    first: datetime, last: datetime, months: int, lower: datetime, upper: datetime
) -> None:
    """Several days become that one, and keep their times: an earlier day may become a later moment."""
    last_moment = upper - timedelta(microseconds=1) if upper == datetime(2024, 3, 1) else upper
    assert ends("add_months", column(first, last), literal(months)) == (lower, last_moment)


EDGES: list[tuple[str, Column, int]] = [
    ("add_days", column(date(9999, 12, 30), date(9999, 12, 31)), 1),
    ("add_days", column(date.min, date.max), -1),
    ("add_days", DAY, 10**10),
    ("add_months", column(date(9999, 12, 1), date(9999, 12, 31)), 1),
    ("add_months", column(datetime(1, 1, 31), datetime(1, 2, 1)), -1),
    ("add_seconds", column(datetime(9999, 12, 31), datetime.max), 1),
    ("add_seconds", column(datetime.min, datetime(1, 1, 2)), -1),
    ("add_seconds", MOMENT, 10**15),
]


@pytest.mark.parametrize(("name", "moved", "count"), EDGES)
def test_what_may_leave_the_calendar_has_no_bounds_and_may_be_null(name: str, moved: Column, count: int) -> None:
    facts = call(name, moved, literal(count)).facts
    assert facts == Facts(moved.facts.type) and facts.nullable


@pytest.mark.parametrize("name", ["add_days", "add_months", "add_seconds"])
def test_moving_by_or_from_what_has_no_bounds_has_none_and_may_be_null(name: str) -> None:
    steps = Column("n", Facts(Type.INTEGER, nullable=False))
    for moved, count in ((MOMENT, steps), (unbounded(Type.TIMESTAMP), literal(1)), (unbounded(Type.TIMESTAMP), steps)):
        assert call(name, moved, count).facts == Facts(Type.TIMESTAMP)


# --- one value of one moment ----------------------------------------------------------------------------------------


def test_seconds_since_1970_are_those_of_the_bounds_to_the_microsecond() -> None:
    assert ends("epoch", column(datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1, 0, 0, 1, 500_000))) == (
        Fraction(-1, 10**6), Fraction(3, 2),
    )  # fmt: skip
    assert ends("epoch", column(date(1970, 1, 1), date(1970, 1, 3))) == (0, 2 * 86400)
    assert ends("epoch", unbounded(Type.DATE)) == (None, None)
    assert call("epoch", DAY).facts.type is Type.REAL


def test_the_last_day_of_a_month_is_a_date_between_those_of_the_bounds() -> None:
    for known in (DAY, MOMENT):
        values, facts = images("last_day", known), call("last_day", known).facts
        assert (facts.lower, facts.upper) == (min(values), max(values)) and facts.type is Type.DATE
    assert ends("last_day", DAY) == (date(2023, 11, 30), date(2024, 3, 31))
    assert ends("last_day", unbounded(Type.TIMESTAMP)) == (None, None)


ORIGIN = literal(datetime(2000, 1, 3))
WEEK = 7 * 86400


def test_a_bucket_lies_between_those_of_both_bounds() -> None:
    cases = ((DAY, literal(WEEK), ORIGIN), (MOMENT, literal(3600), ORIGIN), (MOMENT, literal(7), literal(FROM)))
    for known, width, origin in cases:
        values, facts = images("time_bucket", known, width, origin), call("time_bucket", known, width, origin).facts
        assert (facts.lower, facts.upper) == (min(values), max(values))
        assert facts.type is known.facts.type and not facts.nullable


def test_a_bucket_before_the_calendar_has_no_bounds_and_may_be_null() -> None:
    known = column(date.min, date(1, 2, 1))
    assert call("time_bucket", known, literal(WEEK), literal(datetime(2000, 1, 4))).facts == Facts(Type.DATE)
    assert call("time_bucket", unbounded(Type.DATE), literal(WEEK), ORIGIN).facts == Facts(Type.DATE)


@pytest.mark.parametrize("width", [0, -1, MOST_WIDTH + 1, None])
def test_the_width_of_a_bucket_is_a_literal_from_one_second_up(width: int | None) -> None:
    assert refused("time_bucket", MOMENT, literal(width), ORIGIN) == "takes a literal integer from 1 to 1000000000"
    assert call("time_bucket", MOMENT, literal(MOST_WIDTH), ORIGIN).facts.bounded


def test_the_origin_of_a_bucket_is_a_literal_moment() -> None:
    no_moment = Literal(None, Facts(Type.TIMESTAMP))
    for origin in (no_moment, unbounded(Type.TIMESTAMP)):
        assert refused("time_bucket", MOMENT, literal(WEEK), origin) == "takes a literal origin"
    width = Column("w", Facts(Type.INTEGER, Fraction(1), Fraction(1), nullable=False))
    assert refused("time_bucket", MOMENT, width, ORIGIN).startswith("takes a literal integer")


@pytest.mark.parametrize(
    ("width", "origin"),
    [(WEEK + 1, datetime(2000, 1, 3)), (3600, datetime(2000, 1, 3)), (WEEK, datetime(2000, 1, 3, 1))],
)
def test_buckets_of_dates_begin_at_midnight(width: int, origin: datetime) -> None:
    assert refused("time_bucket", DAY, literal(width), literal(origin)) == "takes a width of whole days for a date"
    assert call("time_bucket", MOMENT, literal(width), literal(origin)).facts.bounded


def test_a_format_is_a_literal_of_letters_that_every_engine_writes_alike() -> None:
    assert call("strftime", MOMENT, literal("%Y-%m")).facts == Facts(Type.TEXT, nullable=False)
    for form in ("%Q", "%", "", "%Y%Z", "x" * 101):
        assert refused("strftime", MOMENT, literal(form)).startswith("takes a format of texts and %Y, %y, %m")
    for argument in (literal(None), Column("f", Facts(Type.TEXT))):
        assert refused("strftime", MOMENT, argument) == "takes a literal format"


# --- types and NULL -------------------------------------------------------------------------------------------------

WRONG_TYPES: list[tuple[str, tuple[Expr, ...], str]] = [
    ("date_trunc", (literal("day"), literal("x")), "argument 2 must be date or timestamp, not text"),
    ("date_part", (literal("day"), literal(1)), "argument 2 must be date or timestamp, not integer"),
    ("date_part", (literal("day"), DAY, DAY), "takes 2 arguments, got 3"),
    ("date_diff", (literal("day"), DAY), "takes 3 arguments, got 2"),
    ("add_days", (DAY, literal(Fraction(1, 2))), "argument 2 must be integer, not real"),
    ("add_months", (literal(1), literal(1)), "argument 1 must be date or timestamp, not integer"),
    ("add_seconds", (DAY, literal(1)), "argument 1 must be timestamp, not date"),
    ("epoch", (literal("x"),), "argument 1 must be date or timestamp, not text"),
    ("last_day", (), "takes 1 argument, got 0"),
    ("time_bucket", (DAY, literal(WEEK), literal(FIRST)), "argument 3 must be timestamp, not date"),
    ("strftime", (literal("x"), literal("%Y")), "argument 1 must be date or timestamp, not text"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), WRONG_TYPES)
def test_other_types_are_refused_with_those_that_fit(name: str, arguments: tuple[Expr, ...], words: str) -> None:
    assert refused(name, *arguments) == words


OF_ONE_MOMENT: list[tuple[str, tuple[Expr, ...], tuple[Expr, ...]]] = [
    ("date_trunc", (literal("day"),), ()),
    ("date_part", (literal("year"),), ()),
    ("date_part", (literal("month"),), ()),
    ("date_diff", (literal("day"), MOMENT), ()),
    ("add_days", (), (literal(1),)),
    ("add_months", (), (literal(1),)),
    ("add_seconds", (), (literal(1),)),
    ("epoch", (), ()),
    ("last_day", (), ()),
    ("time_bucket", (), (literal(WEEK), ORIGIN)),
    ("strftime", (), (literal("%Y"),)),
]


@pytest.mark.parametrize(("name", "before", "after"), OF_ONE_MOMENT)
def test_a_result_may_be_null_where_its_moment_may(
    name: str, before: tuple[Expr, ...], after: tuple[Expr, ...]
) -> None:
    for nullable in (True, False):
        known = column(FROM, UNTIL, nullable=nullable)
        assert call(name, *before, known, *after).facts.nullable is nullable
