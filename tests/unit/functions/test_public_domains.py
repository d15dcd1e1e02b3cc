"""Public keys of GROUP BY: which values an expression can take, in which order, and where there are too many to list."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from dpsql.functions.evaluate import evaluate
from dpsql.functions.public_domains import MOST_LABELLED, MOST_STEPS, MOST_VALUES, as_key, domain_of
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Column, Expr, Literal, ReleasedValue

INT, R, T, B, D, S = Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP


def literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


def integers(lower: int, upper: int, *, nullable: bool = False, outside: int | None = None, name: str = "i") -> Column:
    return Column(name, Facts(INT, Fraction(lower), Fraction(upper), None, nullable, None, outside))


def listed(*values: Any, type_: Type = T, nullable: bool = False, outside: Any = None, name: str = "t") -> Column:
    return Column(name, Facts(type_, None, None, values, nullable, None, outside))


def moments(lower: Any, upper: Any, *, nullable: bool = False) -> Column:
    return Column("d", Facts(S if isinstance(lower, datetime) else D, lower, upper, nullable=nullable))


# --- columns --------------------------------------------------------------------------------------------------------

COLUMNS: list[tuple[Expr, tuple[Any, ...] | None]] = [
    (integers(-1, 2), (-1, 0, 1, 2)),
    (integers(-1, 1, nullable=True), (-1, 0, 1, None)),
    (listed("b", "a", ""), ("b", "a", "")),
    (listed("b", None, "a", nullable=True), ("b", None, "a")),
    (listed("b", None, "a"), ("b", None, "a")),
    (listed("b", "a", nullable=True), ("b", "a", None)),
    (Column("b", Facts(B, nullable=False)), (False, True)),
    (Column("b", Facts(B)), (False, True, None)),
    (moments(date(2024, 2, 28), date(2024, 3, 1)), (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1))),
    (Column("t", Facts(T)), None),
    (Column("i", Facts(INT)), None),
    (Column("i", Facts(INT, Fraction(0), None)), None),
    (Column("r", Facts(R, Fraction(0), Fraction(1))), None),
    (moments(datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 1)), None),
    (literal(7), (7,)),
    (literal(None), (None,)),
    (ReleasedValue("v", Facts(INT, Fraction(1), Fraction(2), nullable=False)), (1, 2)),
]


@pytest.mark.parametrize(("expression", "values"), COLUMNS)
def test_a_column_has_its_list_or_all_values_between_its_bounds(
    expression: Expr, values: tuple[Any, ...] | None
) -> None:
    """In the order of the list, NULL where the list has it and last where it has not."""
    assert domain_of(expression) == values


def test_more_values_than_can_be_listed_are_private_keys() -> None:
    assert len(domain_of(integers(1, MOST_VALUES)) or ()) == MOST_VALUES
    assert domain_of(integers(0, MOST_VALUES)) is None


# --- labels of values outside ---------------------------------------------------------------------------------------


def test_values_outside_become_their_label_and_null_stays() -> None:
    text, number = listed("a", "b", nullable=True, outside="rest"), integers(1, 3, nullable=True, outside=99)
    for column, cases in (
        (text, {"a": "a", "b": "b", "c": "rest", "rest": "rest", "": "rest"}),
        (number, {1: 1, 3: 3, 0: 99, 4: 99, 99: 99, -(2**62): 99}),
    ):
        key = as_key(column)
        assert {value: evaluate(key, {column.name: value}) for value in cases} == cases
        assert evaluate(key, {column.name: None}) is None
    assert as_key(integers(1, 3)) == integers(1, 3), "without a label a value outside belongs to no group"


def test_a_column_with_a_label_has_it_as_one_more_value() -> None:
    assert domain_of(as_key(listed("b", "a", outside="x"))) == ("b", "a", "x")
    assert domain_of(as_key(integers(1, 3, outside=9))) == (1, 2, 3, 9)
    assert domain_of(as_key(integers(1, 3, outside=-9))) == (-9, 1, 2, 3)
    assert domain_of(as_key(integers(1, 3, nullable=True, outside=9))) == (1, 2, 3, 9, None)
    assert domain_of(as_key(listed(None, outside="x"))) == (None, "x")
    keyed = call("add", as_key(integers(1, 3, outside=9)), literal(1))
    assert domain_of(keyed) == (2, 3, 4, 10)


def test_bounds_of_a_key_reach_to_the_label_of_what_is_outside() -> None:
    facts = as_key(integers(1, 3, outside=9)).facts
    assert (facts.lower, facts.upper, facts.values) == (1, 9, (1, 2, 3, 9))
    facts = as_key(integers(1, 3, outside=-9)).facts
    assert (facts.lower, facts.upper) == (-9, 3)
    most = as_key(integers(1, MOST_LABELLED, outside=-5)).facts
    assert most.values is not None and len(most.values) == MOST_LABELLED + 1 and most.values[0] == -5
    wider = as_key(integers(1, MOST_LABELLED + 1, outside=-5)).facts
    assert wider.values is None and wider.lower == -5


# --- images ---------------------------------------------------------------------------------------------------------


def case(*parts: Expr) -> Call:
    return call("case", *parts)


YEAR = moments(date(2023, 11, 5), date(2024, 2, 3))
LONG = moments(date(1900, 1, 1), date(2100, 12, 31))
IMAGES: list[tuple[Expr, tuple[Any, ...] | None]] = [
    (call("mod", integers(0, 9), literal(3)), (0, 1, 2)),
    (call("neg", integers(0, 2)), (-2, -1, 0)),
    (call("add", integers(0, 1), integers(10, 11, name="j")), (10, 11, 12)),
    (call("sub", integers(0, 5), integers(0, 5)), (0,)),
    (call("div", literal(6), integers(0, 2)), (3.0, 6.0, None)),
    (call("upper", listed("b", "B", "a")), ("A", "B")),
    (call("upper", listed("b", None, "a", nullable=True)), ("A", "B", None)),
    (call("gt", integers(0, 9), literal(4)), (False, True)),
    (call("gt", integers(0, 9, nullable=True), literal(4)), (False, True, None)),
    (call("starts_with", Column("t", Facts(T, nullable=False)), literal("a")), (False, True)),
    (
        call("date_trunc", literal("month"), YEAR),
        (date(2023, 11, 1), date(2023, 12, 1), date(2024, 1, 1), date(2024, 2, 1)),
    ),
    (call("date_part", literal("month"), YEAR), (1, 2, 11, 12)),
    (call("date_part", literal("isodow"), LONG), (1, 2, 3, 4, 5, 6, 7)),
    (call("last_day", YEAR), (date(2023, 11, 30), date(2023, 12, 31), date(2024, 1, 31), date(2024, 2, 29))),
    (call("strftime", YEAR, literal("%Y-%m")), ("2023-11", "2023-12", "2024-01", "2024-02")),
    (case(call("gt", integers(0, 9), literal(4)), literal("high"), literal("low")), ("high", "low")),
    (case(call("gt", integers(0, 9), literal(4)), literal("high"), literal(None)), ("high", None)),
    (call("coalesce", listed("b", nullable=True), literal("none")), ("b", "none")),
    (call("upper", Column("t", Facts(T))), None),
    (call("add", Column("i", Facts(INT)), literal(1)), None),
]


@pytest.mark.parametrize(("expression", "values"), IMAGES)
def test_an_expression_has_the_values_that_it_takes_ascending_and_null_last(
    expression: Expr, values: tuple[Any, ...] | None
) -> None:
    assert domain_of(expression) == values


def test_results_of_a_case_are_listed_although_its_condition_reads_anything() -> None:
    anything = call("starts_with", Column("u", Facts(T)), literal("a"))
    assert domain_of(case(anything, literal("x"), literal("y"))) == ("x", "y")
    assert domain_of(case(anything, listed("b", "a"), literal("y"))) == ("a", "b", "y")
    assert domain_of(case(anything, literal(1), literal(Fraction(5, 2)))) == (1.0, 2.5)
    assert domain_of(case(anything, Column("t", Facts(T)), literal("y"))) is None
    x_or_null = case(anything, literal("x"), literal(None))
    assert domain_of(x_or_null) == ("x", None)
    assert domain_of(call("coalesce", x_or_null, literal("y"))) == ("x", "y"), "where a NULL is replaced none is left"
    half = integers(1, MOST_VALUES // 2)
    assert len(domain_of(case(anything, half, literal(0))) or ()) == MOST_VALUES // 2 + 1
    other = integers(MOST_VALUES, MOST_VALUES + MOST_VALUES // 2, name="j")
    assert domain_of(case(anything, half, other)) is None, "both together are too many"


def test_a_wide_argument_is_not_evaluated_and_the_range_of_the_result_is_listed() -> None:
    narrow, wide = integers(0, MOST_STEPS - 1), integers(0, MOST_STEPS)
    assert domain_of(call("mod", narrow, literal(3))) == (0, 1, 2)
    assert domain_of(call("mul", narrow, literal(2))) == tuple(range(0, 2 * MOST_STEPS, 2))
    assert domain_of(call("mul", wide, literal(2))) == tuple(range(2 * MOST_STEPS + 1))
    assert domain_of(call("add", call("add", narrow, literal(1)), literal(1))) == tuple(range(2, MOST_STEPS + 2))
    assert domain_of(call("mul", integers(0, MOST_VALUES), literal(2))) is None


def test_what_is_evaluated_is_counted_in_calls() -> None:
    """Both arguments are the same number, which the list of each by itself does not say."""
    for size, count in ((MOST_STEPS // 2, 1), (MOST_STEPS // 2 + 1, MOST_STEPS + 1)):
        number = integers(1, size)
        assert len(domain_of(call("sub", call("add", number, literal(0)), number)) or ()) == count


def test_a_condition_is_true_or_false_even_where_its_bounds_decide_it() -> None:
    """A value outside the bounds may be there."""
    assert domain_of(call("gt", integers(5, 9), literal(4))) == (False, True)


# --- time -----------------------------------------------------------------------------------------------------------

START, END = datetime(2024, 2, 28, 22, 30), datetime(2024, 3, 1, 1, 15)
UNITS: list[tuple[str, int]] = [
    ("hour", 28),
    ("minute", 1606),
    ("day", 3),
    ("week", 1),
    ("month", 2),
    ("quarter", 1),
    ("year", 1),
]


@pytest.mark.parametrize(("unit", "count"), UNITS)
def test_starts_of_a_unit_follow_each_other_from_that_of_one_bound_to_that_of_the_other(unit: str, count: int) -> None:
    moment = moments(START, END)
    expression = call("date_trunc", literal(unit), moment)
    found = domain_of(expression)
    seconds = int((END - START).total_seconds())
    every = {evaluate(expression, {"d": START + timedelta(seconds=n)}) for n in range(0, seconds + 1, 15)}
    assert found == tuple(sorted(every)) and len(found) == count


def test_quarters_and_months_of_several_years_are_their_starts() -> None:
    known = moments(datetime(2022, 11, 30, 7), datetime(2024, 2, 1, 1), nullable=True)
    quarters = [datetime(2022, 10, 1), *(datetime(2023, n, 1) for n in (1, 4, 7, 10)), datetime(2024, 1, 1), None]
    assert domain_of(call("date_trunc", literal("quarter"), known)) == tuple(quarters)
    months = domain_of(call("date_trunc", literal("month"), known))
    assert months is not None and len(months) == 17
    assert (months[0], months[-2:]) == (datetime(2022, 11, 1), (datetime(2024, 2, 1), None))


def test_buckets_follow_each_other_from_that_of_one_bound_to_that_of_the_other() -> None:
    origin = literal(datetime(2000, 1, 3))
    expression = call("time_bucket", moments(START, END), literal(7200), origin)
    every = {evaluate(expression, {"d": START + timedelta(seconds=n)}) for n in range(0, 96_301, 15)}
    assert domain_of(expression) == tuple(sorted(every))
    days = call("time_bucket", LONG, literal(30 * 86400), origin)
    found = domain_of(days)
    assert found is not None and found[0] <= date(1900, 1, 1) < found[1] and found[-1] <= date(2100, 12, 31)


def test_units_that_are_too_many_are_private_keys() -> None:
    years = moments(datetime(2000, 1, 1), datetime(2024, 1, 1))
    assert domain_of(call("date_trunc", literal("second"), years)) is None
    assert domain_of(call("time_bucket", years, literal(60), literal(datetime(2000, 1, 3)))) is None
    assert len(domain_of(call("date_trunc", literal("day"), years)) or ()) == 8767
    for seconds, count in ((MOST_VALUES - 1, MOST_VALUES), (MOST_VALUES, 0)):
        known = moments(START, START + timedelta(seconds=seconds))
        assert len(domain_of(call("date_trunc", literal("second"), known)) or ()) == count
    no_end = Column("d", Facts(S, datetime(2000, 1, 1), None))
    assert domain_of(call("date_trunc", literal("year"), no_end)) is None


def test_texts_of_times_are_those_of_the_finest_unit_that_they_show() -> None:
    moment = moments(START, END)
    assert domain_of(call("strftime", moment, literal("%H"))) == tuple(f"{hour:02d}" for hour in range(24))
    assert domain_of(call("strftime", moment, literal("%d.%m."))) == ("01.03.", "28.02.", "29.02.")
    assert domain_of(call("strftime", moment, literal("always"))) == ("always",)


def test_whole_reals_between_two_bounds_are_listed_where_a_real_is_rounded() -> None:
    real = Column("r", Facts(R, Fraction(-3, 2), Fraction(5, 2), nullable=False))
    for name, values in (("floor", (-2.0, -1.0, 0.0, 1.0, 2.0)), ("ceil", (-1.0, 0.0, 1.0, 2.0, 3.0))):
        found = domain_of(call(name, real))
        assert found == values and all(type(value) is float for value in found)
        assert {evaluate(call(name, real), {"r": n / 8}) for n in range(-12, 21)} == set(values)


def test_nan_is_never_a_key_and_null_is_one_where_a_result_may_be_missing() -> None:
    root = call("sqrt", integers(-1, 4))
    found = domain_of(root)
    assert found is not None and found[-1] is None and found[0] == 0.0 and found[-2] == 2.0
    powers = call("power", integers(-1, 1), literal(Fraction(1, 2)))
    assert evaluate(powers, {"i": -1}) != evaluate(powers, {"i": -1}), "a root of a negative"
    assert domain_of(powers) == (0.0, 1.0)


def test_zero_is_one_key_whatever_its_sign() -> None:
    """The engine groups both zeros as 0.0, and -0.0 among the values would be a group without rows."""
    halves = call("mul", integers(0, 1), literal(Fraction(-1, 2)))
    listed_zero = Column("r", Facts(R, values=(-0.0, 1.5), nullable=False))
    for expression, values in ((halves, (-0.5, 0.0)), (listed_zero, (0.0, 1.5))):
        found = domain_of(expression)
        assert found == values and not any(math.copysign(1, value) < 0 for value in found if value == 0)
