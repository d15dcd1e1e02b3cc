"""Quantiles as measurements: the grid that bounds and groups give, what the number of a cell stands for, and the price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
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
from dpsql.plan.measurements import Quantile, RankHistogram
from dpsql.plan.plan import Call, Caps, Column, Expr, Literal, Term
from dpsql.pricing.rank_histograms import (
    LEAST_CELLS,
    RankHistogramPricing,
    cell_term,
    cell_value,
    chosen_of,
    end_values,
    leaning,
    measured,
    periods,
    steps_of,
    with_ends,
)
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.exponential import Choice, Lean
from dpsql.privacy.mechanisms.rank_histogram import RankHistogramPlan
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


# --- what is entered ------------------------------------------------------------------------------------------------


def test_equal_histograms_are_measured_once_and_so_are_equal_quantiles() -> None:
    entered: list[Any] = []
    value, other = integers(0, 9), reals("0", "1")
    names = [measured(entered, 1, value, None, quantile)[0] for quantile in (HALF, Fraction(1, 4), HALF)]
    assert names == ["h0q0", "h0q1", "h0q0"]
    assert measured(entered, 1, other, None, HALF)[0] == "h1q0"
    assert measured(entered, 1, value, CONDITION, HALF)[0] == "h2q0"
    assert measured(entered, 1, value, None, HIGH)[0] == "h0q2"
    assert [(histogram.name, histogram.term.name) for histogram in entered] == [(f"h{n}", f"h{n}") for n in range(3)]
    assert [quantile.quantile for quantile in entered[0].quantiles] == [HALF, Fraction(1, 4), HIGH]
    assert measured(entered, 1, value, None, HALF)[1] == entered[0].term


def test_a_bar_has_two_ends_that_are_entered_once_and_share_what_may_be_missed() -> None:
    entered: list[Any] = []
    number, _ = measured(entered, 1, integers(0, 9), None, Fraction(1, 4))
    measured(entered, 1, integers(0, 9), None, HALF)
    measured(entered, 1, reals("0", "1"), None, HALF)
    for _ in range(2):
        assert with_ends(entered, number, Fraction(95, 100)) == ("h0q0low", "h0q0high")
    assert [(end.name, end.quantile, end.low, end.missed) for end in entered[0].ends] == [
        ("h0q0low", Fraction(1, 4), True, Fraction(1, 40)),
        ("h0q0high", Fraction(1, 4), False, Fraction(1, 40)),
    ]
    assert entered[1].ends == ()
    assert measured(entered, 1, integers(0, 9), None, Fraction(1, 4))[0] == number, (
        "a histogram with ends is found again"
    )
    assert len(entered) == 2


def test_a_leaning_choice_is_another_number_than_the_largest_value() -> None:
    entered: list[Any] = []
    lean = Lean(3, Fraction(1, 8))
    name, term = leaning(entered, integers(0, 9), None, lean)
    assert (name, term.magnitude) == ("h0q0", 9)
    assert entered[0].quantiles == (Quantile("h0q0", HIGH, lean),) and entered[0].slices == 1
    assert leaning(entered, integers(0, 9), None, lean)[0] == "h0q0"
    bare = replace(entered[0], name="", quantiles=(), term=replace(term, name=""))
    assert chosen_of(entered, bare, HIGH)[0] == "h0q1"


@pytest.mark.parametrize(("groups", "slices"), [(0, 64), (1, 64), (16, 64), (17, 16), (1024, 16), (1025, 4)])
def test_more_groups_have_fewer_slices(groups: int, slices: int) -> None:
    entered: list[Any] = []
    measured(entered, groups, integers(0, 9), None, HALF)
    assert entered[0].slices == slices


# --- price ----------------------------------------------------------------------------------------------------------

PRICING = RankHistogramPricing()
ONE_ROW = Caps(1, 1)
PURE, ZCDP = PrivacyLoss.pure(Fraction(1, 2), Fraction(0)), PrivacyLoss(None, Fraction(0), Fraction(1, 50))


def histogram(*quantiles: Fraction, slices: int = 64, ends: bool = False) -> RankHistogram:
    entered: list[Any] = []
    for quantile in quantiles:
        number, _ = measured(entered, 1, integers(0, 9), None, quantile)
        if ends:
            with_ends(entered, number, Fraction(9, 10))
    (found,) = entered
    assert isinstance(found, RankHistogram)
    return replace(found, slices=slices)


def planned(measurement: RankHistogram, part: PrivacyLoss = PURE, caps: Caps = ONE_ROW) -> RankHistogramPlan:
    plan = PRICING.planned(measurement, caps, part, Neighbours.ADD_REMOVE)
    assert isinstance(plan, RankHistogramPlan)
    return plan


EIGHTHS = [Fraction(n, 8) for n in range(1, 8)]


@pytest.mark.parametrize(
    ("quantiles", "ends", "parts"),
    [
        ([HALF], False, 1),
        ([HALF], True, 3),
        ([LOW, HIGH], False, 2),
        ([Fraction(1, 4), Fraction(3, 4)], False, 2),
        (EIGHTHS[:3], False, 2),
        (EIGHTHS, False, 3),
        (EIGHTHS, True, 3 + 14),
    ],
)
def test_each_level_of_choices_and_each_end_takes_one_part_and_no_delta(
    quantiles: list[Fraction], ends: bool, parts: int
) -> None:
    """Quantiles between others share a level: seven of them take three."""
    measurement = histogram(*quantiles, ends=ends)
    assert (PRICING.parts(measurement), PRICING.deltas(measurement)) == (parts, 0)


@pytest.mark.parametrize("quantiles", [[HALF], [LOW, HIGH], [LOW, HALF, HIGH], EIGHTHS])
def test_all_numbers_together_cost_no_more_than_the_parts_that_are_paid_for(quantiles: list[Fraction]) -> None:
    measurement = histogram(*quantiles, ends=True)
    parts = PRICING.parts(measurement)
    for part in (PURE, ZCDP):
        for caps in (ONE_ROW, Caps(6, 3)):
            plan = planned(measurement, part, caps)
            spent = sum((law.loss for law in plan.charged), start=PrivacyLoss.pure(Fraction(0), Fraction(0)))
            assert len(plan.charged) == parts
            if part.epsilon is not None:
                assert spent.epsilon == part.epsilon * parts
            else:
                assert part.rho is not None and spent.rho is not None
                assert spent.rho <= part.rho * parts
                assert float(spent.rho) == pytest.approx(float(part.rho) * parts, rel=1e-9)


@pytest.mark.parametrize(
    ("caps", "neighbours", "rows"),
    [
        (ONE_ROW, Neighbours.ADD_REMOVE, 1),
        (ONE_ROW, Neighbours.CHANGE_ONE, 2),
        (Caps(5, 1), Neighbours.ADD_REMOVE, 5),
        (Caps(6, 3), Neighbours.CHANGE_ONE, 12),
    ],
)
def test_a_unit_moves_a_histogram_by_its_rows(caps: Caps, neighbours: Neighbours, rows: int) -> None:
    measurement = histogram(HALF)
    assert PRICING.moved(measurement, caps, neighbours).l1 == rows
    law = PRICING.planned(measurement, caps, PURE, neighbours).quantiles[0].law
    assert isinstance(law, Choice) and law.epsilon_0 * rows == PURE.epsilon


def test_each_number_has_the_law_of_its_own_quantile() -> None:
    measurement = histogram(Fraction(3, 4), LOW, HALF, ends=True)
    plan = planned(measurement)
    assert {choice.name: choice.quantile for choice in plan.quantiles} == {
        quantile.name: quantile.quantile for quantile in measurement.quantiles
    }
    assert {name for name, _ in plan.laws} == set(measurement.numbers)
    paddings = {end.name: end.law.padding for end in plan.ends if isinstance(end.law, Choice)}
    assert len(paddings) == 6
    assert all((padding < 0) is name.endswith("low") for name, padding in paddings.items())
    assert plan.cells == measurement.cells == 10


def test_cells_are_sliced_only_where_quantiles_are_searched_between_others() -> None:
    assert planned(histogram(HALF)).slices == 1
    for together in ((LOW, HIGH), (Fraction(1, 4), Fraction(3, 4))):
        plan = planned(histogram(*together))
        assert plan.slices == 1 and {choice.search.low for choice in plan.quantiles} == {None}, (
            "nothing is saved by an order"
        )
    assert planned(histogram(*EIGHTHS)).slices == 64


# --- what is said of the error --------------------------------------------------------------------------------------


def explained(measurement: RankHistogram, number: str, confidence: float = 0.95) -> tuple[str, str]:
    found = PRICING.explained(measurement, planned(measurement), number, confidence)
    return found.aggregate, found.error


def test_explain_names_each_number_and_says_how_far_it_may_be_off() -> None:
    measurement = histogram(HALF, ends=True)
    aggregate, error = explained(measurement, "h0q0")
    assert aggregate == "quantile 0.5 of v"
    worst = PRICING.worst_error(measurement, planned(measurement), "h0q0", 0.95)
    assert error == f"rank error of at most {worst:.4g} rows in 95% of cases in the worst case, over 10 cells"
    low, high = explained(measurement, "h0q0low"), explained(measurement, "h0q0high")
    assert low[0] == "low end of the error bar of quantile 0.5 of v"
    assert high[0] == "high end of the error bar of quantile 0.5 of v"
    assert (
        low[1] == high[1] and low[1].startswith("sought ") and low[1].endswith(" rows from the quantile, over 10 cells")
    )
    filtered: list[Any] = []
    measured(filtered, 1, integers(0, 9), CONDITION, HALF)
    assert explained(filtered[0], "h0q0")[0] == "quantile 0.5 of v filter (where c)"


def test_explain_says_at_which_step_a_quantile_is_chosen_and_which_value_is_released_as_an_end() -> None:
    measurement = histogram(*EIGHTHS)
    by_level = [explained(measurement, f"h0q{index}")[1] for index in (3, 1, 0)]
    assert "(step 1 of 3)" in by_level[0]
    assert "(step 2 of 3, whose price 2 quantiles share)" in by_level[1]
    assert "(step 3 of 3, whose price 4 quantiles share)" in by_level[2]
    for quantile, side in ((LOW, "smallest"), (HIGH, "largest")):
        alone = histogram(quantile)
        law = planned(alone).quantiles[0].law
        assert isinstance(law, Choice)
        words = f"the {side} value number {law.rank}, so that it lies inside the data; rank error of at most"
        assert explained(alone, "h0q0")[1].startswith(words)


def test_the_scale_of_explain_is_in_rows_and_its_grid_in_the_unit_of_the_answer() -> None:
    found = PRICING.explained(histogram(HALF), planned(histogram(HALF)), "h0q0", 0.95)
    law = planned(histogram(HALF)).quantiles[0].law
    assert isinstance(law, Choice)
    assert found.scale == pytest.approx(1 / float(law.rate)) and found.grid == 1.0
    entered: list[Any] = []
    measured(entered, 1, reals("0", "1"), None, HALF)
    assert PRICING.explained(entered[0], planned(entered[0]), "h0q0", 0.95).grid == 2.0**-15
    sliced = histogram(*EIGHTHS)
    inner = next(choice.law for choice in planned(sliced).quantiles if choice.name == "h0q0")
    assert isinstance(inner, Choice)
    assert PRICING.explained(sliced, planned(sliced), "h0q0", 0.95).scale == pytest.approx(1 / float(inner.rate * 64))


def test_the_worst_error_of_a_quantile_between_others_adds_theirs() -> None:
    measurement = histogram(*EIGHTHS)
    plan = planned(measurement)
    laws = {choice.name: choice.law for choice in plan.quantiles}

    def alone(name: str, levels: int) -> float:
        law = laws[name]
        assert isinstance(law, Choice)
        return law.rank_error(plan.cells, 0.05 / levels)

    found = [PRICING.worst_error(measurement, plan, f"h0q{index}", 0.95) for index in (3, 1, 0)]
    assert found[0] == pytest.approx(alone("h0q3", 1))
    assert found[1] == pytest.approx(alone("h0q1", 2) + alone("h0q3", 2))
    assert found[2] == pytest.approx(alone("h0q0", 3) + alone("h0q1", 3) + alone("h0q3", 3))
    assert found == sorted(found) and found[0] > 0


def test_the_worst_error_of_an_end_value_counts_its_rank_and_bars_have_none() -> None:
    measurement = histogram(LOW)
    plan = planned(measurement)
    law = plan.quantiles[0].law
    assert isinstance(law, Choice) and law.rank >= 1
    expected = law.rank + law.rank_error(10, 1 - 0.95)
    assert PRICING.worst_error(measurement, plan, "h0q0", 0.95) == pytest.approx(expected)
    bars = histogram(HALF, ends=True)
    assert [PRICING.worst_error(bars, planned(bars), f"h0q0{end}", 0.95) for end in ("low", "high")] == [0.0, 0.0]
    assert not math.isinf(expected)


def test_a_leaning_choice_says_which_value_it_is_about() -> None:
    entered: list[Any] = []
    leaning(entered, integers(0, 9), None, Lean(3, Fraction(1, 8)))
    law = planned(entered[0]).quantiles[0].law
    assert isinstance(law, Choice) and law.lean > 0
    aggregate, error = explained(entered[0], "h0q0")
    assert aggregate == "quantile 1 of v"
    assert error == f"about the largest value number {law.rank}, lower ones before higher ones, over 10 cells"
