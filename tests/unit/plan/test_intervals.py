"""Facts of columns and interval arithmetic: domains are listed completely, and each interval is the hull of all its values."""

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from dpsql.plan.intervals import (
    Facts,
    Interval,
    Type,
    absolute,
    add,
    divide,
    hull,
    literal_facts,
    multiply,
    negate,
    square,
)

DAY = date(2024, 2, 28)
NOON = datetime(2024, 2, 28, 12)
INTEGER, REAL, TEXT, BOOLEAN, DATE, TIMESTAMP = (
    Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP,
)  # fmt: skip


# --- domains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "domain"),
    [
        (Facts(INTEGER, Fraction(-1), Fraction(2)), (-1, 0, 1, 2)),
        (Facts(INTEGER, Fraction(5), Fraction(5)), (5,)),
        (Facts(DATE, DAY, date(2024, 3, 1)), (DAY, date(2024, 2, 29), date(2024, 3, 1))),
        (Facts(DATE, DAY, DAY), (DAY,)),
        (Facts(BOOLEAN), (False, True)),
        (Facts(BOOLEAN, values=(True,)), (True,)),
        (Facts(TEXT, values=("b", None, "a")), ("b", None, "a")),
        (Facts(TEXT, values=()), ()),
        (Facts(INTEGER, Fraction(0), Fraction(9), (3, 1)), (3, 1)),
        (Facts(REAL, values=(Fraction(1, 2),)), (Fraction(1, 2),)),
        (Facts(TEXT), None),
        (Facts(REAL, Fraction(0), Fraction(1)), None),
        (Facts(TIMESTAMP, NOON, NOON), None),
        (Facts(INTEGER, Fraction(0)), None),
        (Facts(INTEGER, upper=Fraction(0)), None),
        (Facts(DATE, upper=DAY), None),
        (Facts(INTEGER), None),
        (Facts(Type.NULL), None),
    ],
)
def test_a_domain_is_listed_in_full_or_unknown(facts: Facts, domain: tuple[Any, ...] | None) -> None:
    assert facts.domain() == domain
    assert facts.size() == (None if domain is None else len(domain))


# --- constants --------------------------------------------------------------------------------------------------------


def test_null_has_a_type_of_its_own_and_other_values_have_none() -> None:
    assert literal_facts(None) == Facts(Type.NULL) and literal_facts(None).nullable
    for value in (1.5, b"x", [1]):
        with pytest.raises(TypeError, match=f"no SQL type for {type(value).__name__}"):
            literal_facts(value)


# --- one of several values --------------------------------------------------------------------------------------------

LOW = Facts(INTEGER, Fraction(0), Fraction(3), (0, 3), nullable=False)
HIGH = Facts(INTEGER, Fraction(2), Fraction(9), (2, 9, 3), nullable=False)
NULLABLE = Facts(INTEGER, Fraction(-1), Fraction(-1), (-1, None), nullable=True)
HALF_OPEN = Facts(INTEGER, Fraction(5), None, nullable=False)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([LOW], LOW),
        ([LOW, HIGH], Facts(INTEGER, Fraction(0), Fraction(9), (0, 3, 2, 9), False)),
        ([HIGH, LOW], Facts(INTEGER, Fraction(0), Fraction(9), (2, 9, 3, 0), False)),
        ([LOW, NULLABLE], Facts(INTEGER, Fraction(-1), Fraction(3), (0, 3, -1), True)),
        ([LOW, literal_facts(None)], Facts(INTEGER, Fraction(0), Fraction(3), (0, 3), True)),
        ([LOW, HALF_OPEN], Facts(INTEGER, Fraction(0), None, None, False)),
        ([HIGH, Facts(INTEGER, upper=Fraction(1), nullable=False)], Facts(INTEGER, None, Fraction(9), None, False)),
        ([LOW, LOW.without_values()], Facts(INTEGER, Fraction(0), Fraction(3), None, False)),
        ([literal_facts(None)], Facts(INTEGER)),
        ([], Facts(INTEGER, nullable=False)),
        ([Facts(INTEGER, values=(), nullable=False)], Facts(INTEGER, values=(), nullable=False)),
    ],
)
def test_one_of_several_values_lies_in_the_union_of_their_facts(parts: list[Facts], expected: Facts) -> None:
    assert hull(parts, INTEGER) == expected


# --- arithmetic -------------------------------------------------------------------------------------------------------

ENDS = (-3, -1, 0, 2)
INTERVALS: list[Interval] = [(Fraction(a), Fraction(b)) for a, b in product(ENDS, repeat=2) if a <= b]
OPEN: list[Interval] = [(None, None), (None, Fraction(2)), (Fraction(-1), None)]


def points(interval: Interval) -> list[Fraction]:
    """Return all quarters of an interval, including its ends."""
    return [Fraction(number, 4) for number in range(int(interval[0] * 4), int(interval[1] * 4) + 1)]


def image(values: list[Fraction]) -> Interval:
    return (min(values), max(values))


@pytest.mark.parametrize(
    ("operation", "exact"), [(add, lambda x, y: x + y), (multiply, lambda x, y: x * y)], ids=["add", "multiply"]
)
def test_an_interval_of_two_is_the_hull_of_all_results(
    operation: Callable[[Interval, Interval], Interval], exact: Callable[[Fraction, Fraction], Fraction]
) -> None:
    for a, b in product(INTERVALS, repeat=2):
        assert operation(a, b) == image([exact(x, y) for x in points(a) for y in points(b)]), (a, b)


def test_a_quotient_is_known_exactly_where_the_divisor_keeps_away_from_zero() -> None:
    for a, b in product(INTERVALS, repeat=2):
        divisors = points(b)
        is_apart = all(y != 0 for y in divisors)
        exact = image([x / y for x in points(a) for y in divisors]) if is_apart else (None, None)
        assert divide(a, b) == exact, (a, b)


@pytest.mark.parametrize(
    ("operation", "exact"),
    [(negate, lambda x: -x), (absolute, abs), (square, lambda x: x * x)],
    ids=["negate", "absolute", "square"],
)
@pytest.mark.parametrize("interval", INTERVALS, ids=str)
def test_an_interval_of_one_is_the_hull_of_all_results(
    operation: Callable[[Interval], Interval], exact: Callable[[Fraction], Fraction], interval: Interval
) -> None:
    assert operation(interval) == image([exact(x) for x in points(interval)])


def test_ends_of_integers_are_divided_exactly() -> None:
    assert divide((1, 1), (3, 3)) == (Fraction(1, 3), Fraction(1, 3))


@pytest.mark.parametrize("interval", OPEN, ids=str)
def test_an_unknown_end_leaves_unknown_what_depends_on_it(interval: Interval) -> None:
    lower, upper = interval
    unity = (Fraction(1), Fraction(1))
    assert add(interval, unity) == add(unity, interval)
    assert add(interval, unity) == (None if lower is None else lower + 1, None if upper is None else upper + 1)
    assert negate(interval) == (None if upper is None else -upper, None if lower is None else -lower)
    for operation in (multiply, divide):
        assert operation(interval, unity) == operation(unity, interval) == (None, None)
    assert absolute(interval) == square(interval) == (0, None)


# --- groups -----------------------------------------------------------------------------------------------------------
