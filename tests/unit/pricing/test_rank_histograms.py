"""Quantiles as measurements: the grid that bounds and groups give, and what the number of a cell stands for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.formulas import Element, Formula
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Column, Expr, Literal, Term
from dpsql.pricing.rank_histograms import (
    LEAST_CELLS,
    cell_term,
    cell_value,
    end_values,
    periods,
    steps_of,
)
from dpsql.release.formulas import numbers

HALF, LOW, HIGH = Fraction(1, 2), Fraction(0), Fraction(1)
CONDITION = Column("c", Facts(Type.BOOLEAN))


def integers(lower: int, upper: int) -> Column:
    return Column("v", Facts(Type.INTEGER, Fraction(lower), Fraction(upper)))


def reals(lower: str, upper: str) -> Column:
    return Column("v", Facts(Type.REAL, Fraction(lower), Fraction(upper)))


def moments(lower: Any, upper: Any) -> Column:
    return Column("v", Facts(Type.TIMESTAMP if isinstance(lower, datetime) else Type.DATE, lower, upper))


def truncated(unit: str, value: Column) -> Call:
    return call("date_trunc", Literal(unit, literal_facts(unit)), value)


def cell(term: Term, row: Mapping[str, Any]) -> float:
    """Return the grid integer of a row before rounding."""
    assert term.value is not None
    value = evaluate(term.value, row)
    return float((min(max(value, term.lower), term.upper) - term.centre) * 2**term.grid)


def shown(value: Expr, term: Term, number: int, *, interpolated: bool = False) -> Any:
    """Return what is shown for the number of a cell, as a number or as an element of a list."""
    formula, _ = cell_value(value, term, "q", interpolated)
    if isinstance(formula, Element):
        return formula.values[number]
    return plain(formula, number)


def plain(formula: Formula, number: int) -> float:
    return float(np.broadcast_to(numbers(formula, {"q": np.array([float(number)])}), 1)[0])


# --- grids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "groups"),
    [(0, 9, 1), (-3, 4, 1), (5, 5, 1), (10**15, 10**15 + 3, 7), (0, (1 << 17) - 1, 1), (0, 255, 1 << 16), (-9, 0, 0)],
)
def test_few_integers_have_a_cell_each_from_the_lower_bound_on(lower: int, upper: int, groups: int) -> None:
    value = integers(lower, upper)
    term = cell_term(value, CONDITION, groups)
    assert term.filter == CONDITION and term.magnitude == upper - lower
    for number in (lower, (lower + upper) // 2, upper):
        assert cell(term, {"v": number}) == number - lower
        assert shown(value, term, number - lower) == number
    assert (cell(term, {"v": lower - 1}), cell(term, {"v": upper + 1})) == (0, upper - lower)


GRIDS = [
    (integers(0, 1 << 17), 1, 1 << 16),
    (integers(0, 256), 1 << 16, 256),
    (reals("0", "1"), 1, 1 << 16),
    (reals("0", "1"), 4, 1 << 16),
    (reals("0", "1"), 5, 1 << 15),
    (reals("0", "1"), 16, 1 << 14),
    (reals("0", "1"), 64, 1 << 12),
    (reals("0", "1"), 100, 1 << 12),
    (reals("0", "1"), 1 << 12, 1 << 12),
    (reals("0", "1"), 1 << 14, 1 << 10),
    (reals("0", "1"), 1 << 16, 1 << 8),
    (reals("-1000", "1000"), 1, 1 << 16),
]
"""A value, the number of groups, and between how many cells and half as many its bounds are divided."""


@pytest.mark.parametrize(("value", "groups", "cells"), GRIDS)
def test_many_values_share_cells_of_a_width_that_is_a_power_of_two(value: Column, groups: int, cells: int) -> None:
    term = cell_term(value, None, groups)
    low, high = value.facts.lower, value.facts.upper
    assert cells // 2 <= term.magnitude <= cells, "as many as groups leave, to within a factor of two"
    for share in (0, Fraction(1, 3), Fraction(7, 8), 1):
        number = float(low + share * (high - low))
        here = cell(term, {"v": int(number) if value.facts.type is Type.INTEGER else number})
        assert abs(here - float((Fraction(number) - low) * Fraction(2) ** term.grid)) <= 1
    assert round(cell(term, {"v": int(high) if value.facts.type is Type.INTEGER else float(high)})) <= term.magnitude


def test_groups_that_leave_too_few_cells_are_refused() -> None:
    assert cell_term(reals("0", "1"), None, 1 << 16).magnitude <= LEAST_CELLS
    for value in (reals("0", "1"), integers(0, 3)):
        with pytest.raises(Refusal) as caught:
            cell_term(value, None, (1 << 16) + 1)
        assert caught.value.slug == "many_cells"


LISTED = Column("v", Facts(Type.TEXT, values=("z", "", None, "m")))
TRUTH = Column("v", Facts(Type.BOOLEAN))


def test_listed_values_have_a_cell_each_in_their_order() -> None:
    for value, values in ((LISTED, ["", "m", "z"]), (TRUTH, [False, True])):
        term = cell_term(value, None, 1)
        assert term.magnitude == len(values) - 1
        for place, element in enumerate(values):
            assert cell(term, {"v": element}) == place
            assert shown(value, term, place) == element
        assert cell_value(value, term, "q", True)[1] is value.facts.type
    assert cell_term(LISTED, None, (1 << 24) // 3).magnitude == 2
    with pytest.raises(Refusal):
        cell_term(LISTED, None, (1 << 24) // 3 + 1)


# --- dates and times ------------------------------------------------------------------------------------------------

DAYS = moments(date(2024, 2, 27), date(2024, 3, 2))
HOURS = moments(datetime(2024, 2, 28, 22, 30), datetime(2024, 2, 29, 3, 15))
WHOLE_UNITS: list[tuple[Expr, str, Any, timedelta, int]] = [
    (DAYS, "day", date(2024, 2, 27), timedelta(days=1), 5),
    (HOURS, "second", datetime(2024, 2, 28, 22, 30), timedelta(seconds=1), 17101),
    (truncated("hour", HOURS), "hour", datetime(2024, 2, 28, 22), timedelta(hours=1), 6),
    (truncated("minute", HOURS), "minute", datetime(2024, 2, 28, 22, 30), timedelta(minutes=1), 286),
    (truncated("second", HOURS), "second", datetime(2024, 2, 28, 22, 30), timedelta(seconds=1), 17101),
    (
        truncated("week", moments(date(2023, 1, 1), date(2026, 1, 1))),
        "week",
        date(2022, 12, 26),
        timedelta(weeks=1),
        158,
    ),
    (
        truncated("week", moments(date(2023, 1, 1), date(2023, 3, 1))),
        "week",
        date(2022, 12, 26),
        timedelta(weeks=1),
        10,
    ),
]
"""A value, the unit in which it is counted, its first moment, the unit's length, and how many cells there are."""


@pytest.mark.parametrize(("value", "unit", "first", "step", "count"), WHOLE_UNITS)
def test_dates_and_times_are_counted_in_whole_units_from_the_lower_bound(
    value: Expr, unit: str, first: Any, step: timedelta, count: int
) -> None:
    counted = steps_of(value)
    assert isinstance(counted, Call) and counted.function == "date_diff"
    assert counted.arguments[0] == Literal(unit, literal_facts(unit))
    term = cell_term(value, None, 1)
    assert term.magnitude == count - 1
    for place in (0, 1, count // 2, count - 1):
        assert cell(term, {"v": first + place * step}) == place
        number = shown(value, term, place)
        if isinstance(number, float):
            epoch = datetime(1970, 1, 1) + timedelta(days=number) if value.facts.type is Type.DATE else None
            number = epoch.date() if epoch else datetime(1970, 1, 1) + timedelta(microseconds=number)
        assert number == first + place * step


def test_months_and_quarters_are_chosen_among_their_starts() -> None:
    """They have different lengths, so the number of a cell is a place in a list; rows outside the bounds count at its ends."""
    known = moments(date(2024, 1, 15), date(2024, 6, 30))
    for unit, starts in (
        ("month", [date(2024, n, 1) for n in range(1, 7)]),
        ("quarter", [date(2024, 1, 1), date(2024, 4, 1)]),
    ):
        value = truncated(unit, known)
        term = cell_term(value, None, 1)
        assert list(periods(value)) == starts and term.magnitude == len(starts) - 1
        assert [cell(term, {"v": start}) for start in starts] == list(range(len(starts)))
        assert [shown(value, term, place) for place in range(len(starts))] == starts
        assert cell(term, {"v": date(1999, 1, 1)}) == 0 and cell(term, {"v": date(2030, 1, 1)}) == len(starts) - 1
        kept = cell_value(value, term, "q", False)
        midnights = cell_value(value, term, "q", True)
        assert (kept[1], midnights[1]) == (Type.DATE, Type.TIMESTAMP)
        assert isinstance(midnights[0], Element) and midnights[0].values[0] == datetime(2024, 1, 1)


def test_only_computed_moments_that_are_few_are_periods() -> None:
    months = [truncated("month", moments(date(2000, 1, 1), date(2000 + years, 8, 1))) for years in (10, 11)]
    assert len(periods(months[0])) == 128 and periods(months[1]) == ()
    assert periods(moments(date(2024, 1, 1), date(2024, 1, 9))) == ()
    assert periods(integers(0, 3)) == () and periods(LISTED) == ()


def test_a_number_is_its_own_count_of_steps() -> None:
    for value in (integers(0, 3), reals("0", "1")):
        assert steps_of(value) is value


# --- what a cell stands for -----------------------------------------------------------------------------------------


def test_a_shown_value_lies_within_the_bounds() -> None:
    value = reals("-10", "0.1")
    term = cell_term(value, None, 1)
    assert shown(value, term, 0) == -10 and shown(value, term, term.magnitude + 9) == 0.1
    assert shown(value, term, 1) == -10 + 2.0**-term.grid


@pytest.mark.parametrize(
    ("value", "interpolated", "type_"),
    [
        (integers(0, 9), False, Type.INTEGER),
        (integers(0, 9), True, Type.REAL),
        (integers(0, 2**53 - 1), False, Type.INTEGER),
        (integers(0, 2**53), False, Type.REAL),
        (integers(-(2**53), 0), False, Type.REAL),
        (reals("0", "9"), False, Type.REAL),
        (DAYS, False, Type.DATE),
        (DAYS, True, Type.TIMESTAMP),
        (HOURS, False, Type.TIMESTAMP),
        (HOURS, True, Type.TIMESTAMP),
    ],
)
def test_the_type_is_that_of_the_value_or_of_a_value_between_two(
    value: Column, interpolated: bool, type_: Type
) -> None:
    assert cell_value(value, cell_term(value, None, 1), "q", interpolated)[1] is type_


def test_the_ends_of_a_bar_are_those_of_the_cells_and_within_the_bounds() -> None:
    """One step further for values that share cells, and none for integers that have their own."""
    whole, real = integers(0, 9), reals("0", "1")
    for value, step in ((whole, 0.0), (real, 2.0**-15)):
        term = cell_term(value, None, 1)
        low, high = end_values(value, term, ("q", "q"))
        assert (plain(low, 5), plain(high, 5)) == (5 * 2.0**-term.grid - step, 5 * 2.0**-term.grid + step)
        assert plain(low, 0) == float(value.facts.lower) and plain(high, term.magnitude) == float(value.facts.upper)
