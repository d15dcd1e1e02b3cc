"""Quantiles from noisy counts of values, computed by hand: which value is chosen, where bars end, and the stated error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest

from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.measurements import Quantile, QuantileEnd, RankHistogram
from dpsql.plan.plan import Column, Literal, Term, TermKind
from dpsql.privacy.mechanisms import laplace, square_root
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.rank_histogram import QuantileChoice, RankHistogramPlan, Search
from dpsql.reuse.disjoint_sums import Impossible
from dpsql.reuse.ranked_counts import RankedCounts, cells_of, counted_numbers, ranked_counts
from dpsql.reuse.record import StoredTerm

ONE = Sensitivity(1, 1, 1, 1)
NOISE = laplace.noise_for(ONE, Fraction(1))
HALF = Fraction(1, 2)
X = Column("x", Facts(Type.INTEGER, Fraction(0), Fraction(9)))
TERM = Term("", TermKind.SUM, X, None, 9, 0, 0, 9, 0)


def stored(noise: Noise = NOISE) -> StoredTerm:
    return StoredTerm("n", "count", "", frozenset(), Fraction(0), noise, 0, True)


def counts(*groups: Sequence[float], summands: int = 1, noise: Noise = NOISE) -> RankedCounts:
    rows = np.array(groups, dtype=float)
    return RankedCounts(rows, np.arange(rows.shape[1]) * 10, stored(noise), summands)


def half_width(summands: int, missed: float) -> float:
    """Return the half width of the noise of a sum of counts."""
    noise = NOISE.summed(summands, True)
    assert noise is not None
    return float(int(noise.half_width(1 - missed) + 0.5))


def test_counts_on_a_coarser_grid_or_of_no_value_answer_nothing() -> None:
    coarse = laplace.noise_for(Sensitivity(1, 1 << 60, 1 << 120, 1 << 60), Fraction(1, 1000))
    with pytest.raises(Impossible):
        counts([1], noise=coarse)
    with pytest.raises(Impossible):
        RankedCounts(np.zeros((1, 0)), np.zeros(0, np.int64), stored(), 1)


def test_noise_whose_sums_have_no_known_law_answers_nothing() -> None:
    running = square_root.noise_for(ONE, Fraction(1, 8), 4)
    with pytest.raises(Impossible):
        counts([1, 2], noise=running).most_off(HALF, 0.05)


@pytest.mark.parametrize("quantile", [Fraction(0), Fraction(1)])
def test_the_ends_are_off_by_the_total_noise_from_either_side(quantile: Fraction) -> None:
    assert counts([3, 4, 5], summands=6).most_off(quantile, 0.2) == half_width(6, 0.2 / 4)


@pytest.mark.parametrize(("quantile", "share"), [(HALF, 0.5), (Fraction(1, 10), 0.9), (Fraction(3, 4), 0.75)])
@pytest.mark.parametrize("values", [1, 4, 400])
def test_a_quantile_is_off_by_the_smaller_of_two_bounds(quantile: Fraction, share: float, values: int) -> None:
    """With many values there are many cuts, so the bound for all cuts at once is the smaller one."""
    bounds = (half_width(8, 0.1 / 4), share * half_width(8, 0.1 / (2 * (values + 1))))
    assert counts([1.0] * values, summands=8).most_off(quantile, 0.1) == min(bounds)


def test_both_bounds_decide_somewhere() -> None:
    few, many = (counts([1.0] * values, summands=8).most_off(Fraction(1, 10), 0.1) for values in (1, 4000))
    assert few < many == half_width(8, 0.1 / 4)


NOISY = [
    [3, 0, 4, 2, 1],
    [-2, 5, -1, 0, 3],
    [0, 0, 0, 0, 7],
    [9, -4, 2, 2, -1],
    [-1, -2, 0, -3, -1],
]


@pytest.mark.parametrize("quantile", [HALF, Fraction(1, 10), Fraction(9, 10), Fraction(1, 3)], ids=str)
def test_a_value_is_chosen_where_the_sums_before_it_are_least(quantile: Fraction) -> None:
    """The sum over i < k of F(i) = (noisy rows up to i) - q (noisy rows), by definition."""
    expected = []
    for rows in NOISY:
        before = [sum(rows[: i + 1]) - float(quantile) * sum(rows) for i in range(len(rows))]
        sums = [sum(before[:k]) for k in range(len(rows))]
        expected.append(sums.index(min(sums)))
    assert counts(*NOISY).chosen(quantile, 0).tolist() == expected


@pytest.mark.parametrize("quantile", [HALF, Fraction(1, 10), Fraction(9, 10), Fraction(1, 3)], ids=str)
@pytest.mark.parametrize("rows", [(3, 1, 4, 2, 1), (1, 0, 0, 0, 2), (0, 5, 0, 0, 0), (2, 2, 2, 2, 3)], ids=str)
def test_without_noise_it_is_the_discrete_quantile(quantile: Fraction, rows: tuple[int, ...]) -> None:
    values = [value for value, times in enumerate(rows) for _ in range(times)]
    assert counts(rows).chosen(quantile, 0).tolist() == [values[max(1, ceil(quantile * len(values))) - 1]]


@pytest.mark.parametrize(
    ("quantile", "rank", "place"),
    [
        *((Fraction(0), rank, place) for rank, place in ((1, 0), (2, 0), (3, 1), (6, 1))),
        *((Fraction(1), rank, place) for rank, place in ((1, 3), (2, 3), (3, 2), (4, 2), (5, 2), (6, 1))),
        (Fraction(0), 99, 1),
        (Fraction(1), 99, 1),  # never beyond the median
    ],
)
def test_the_ends_are_the_value_of_the_ranked_row_from_either_side(quantile: Fraction, rank: int, place: int) -> None:
    """Rows 0 0 | 1 1 1 1 1 | 2 2 2 | 3 3, minus one of the second value."""
    assert counts([2, 5, 3, 2]).chosen(quantile, rank).tolist() == [place]


@pytest.mark.parametrize("quantile", [HALF, Fraction(1, 5), Fraction(4, 5)], ids=str)
def test_bars_end_at_the_last_values_that_noise_and_one_row_allow(quantile: Fraction) -> None:
    groups = [[30, 20, 0, 25, 40, 5, 1], [1, 0, 0, 2, 0, 0, 1], [90, -80, 3, 0, 60, -9, 7], [-50, -50, 1, 0, 2, 1, 0]]
    ranked = counts(*groups)
    off = ranked.most_off(quantile, 0.1) + 1
    low, high = [], []
    for rows in groups:
        sought = float(quantile) * sum(rows)
        through = [sum(rows[: i + 1]) for i in range(len(rows))]
        reached = [i for i, total in enumerate(through) if total - sought >= -off]
        low.append(reached[0] if reached else len(rows) - 1)
        high.append(max([0, *(i for i in range(1, len(rows)) if through[i - 1] - sought <= off)]))
    assert ranked.ends(quantile, True, Fraction(1, 10)).tolist() == low
    assert ranked.ends(quantile, False, Fraction(1, 10)).tolist() == high


def test_a_bar_whose_low_end_no_value_reaches_ends_at_the_last_one() -> None:
    rows = [-500.0, -500.0, 0.0]
    assert counts(rows).ends(Fraction(0), True, Fraction(1, 10)).tolist() == [2]
    assert counts(rows).ends(Fraction(0), False, Fraction(1, 10)).tolist() == [2]
    assert counts([500.0, 0.0, 500.0]).ends(HALF, False, Fraction(1, 10)).tolist() == [2]


def test_a_bar_holds_values_at_exactly_the_distance_that_is_allowed() -> None:
    """With V = 2 and q = 1/2 the allowed distance is a multiple of 1/2, so rows can be placed exactly on it."""
    off = counts([1, 1, 1]).most_off(HALF, 0.1) + 1
    middle = 2 * off  # rows of 0 | n | 0: the median is `off` rows from either side
    ranked = counts([0.0, middle, 0.0], [0.0, middle + 1, 0.0])
    assert ranked.ends(HALF, True, Fraction(1, 10)).tolist() == [0, 1]
    assert ranked.ends(HALF, False, Fraction(1, 10)).tolist() == [2, 1]


# --- all numbers of a measurement -------------------------------------------------------------------------------------


def histogram(*quantiles: tuple[str, Fraction], ends: tuple[QuantileEnd, ...] = ()) -> RankHistogram:
    return RankHistogram("h", X, TERM, tuple(Quantile(*named) for named in quantiles), 1, ends)


def fresh(measurement: RankHistogram) -> RankHistogramPlan:
    choices = []
    for level, requested in enumerate(measurement.quantiles):
        rank = 3 if requested.quantile in (0, 1) else 0
        law = Choice(ONE, requested.quantile, Fraction(1, 10), rank)
        choices.append(QuantileChoice(requested.name, Search(requested.quantile, level), law))
    return RankHistogramPlan("h", 10, tuple(choices))


BIG = [40.0, 900.0, 800.0, 30.0]


def test_each_number_is_the_cell_of_its_value_with_its_error_and_how_much_larger_that_is() -> None:
    measurement = histogram(("max", Fraction(1)), ("half", HALF), ("min", Fraction(0)))
    plan, ranked = fresh(measurement), counts(BIG, summands=4)
    numbers = counted_numbers(measurement, plan, ranked, 0.9)
    assert [(number.name, number.values.tolist()) for number in numbers] == [
        ("min", [0]),
        ("half", [10]),
        ("max", [30]),
    ]
    of_end, of_half = (ranked.most_off(quantile, 1 - 0.9) for quantile in (Fraction(0), HALF))
    ranks = ceil(of_end) + 1
    worst = [ranks + of_end, of_half, ranks + of_end]
    assert [number.worst_error for number in numbers] == pytest.approx(worst)
    laws = {choice.name: choice.law for choice in plan.quantiles}
    anew = [laws[number.name].rank + laws[number.name].rank_error(10, 0.1) for number in numbers]
    assert [number.error_ratio for number in numbers] == pytest.approx(np.divide(worst, anew))
    assert numbers[1].error == (
        "quantile 0.5 of x from the noisy counts of its values: "
        f"rank error of at most {of_half:.4g} rows in 90% of cases"
    )


def test_the_smallest_value_is_sought_so_many_rows_inside_as_counts_may_be_off() -> None:
    """A first value with fewer rows than that is not inside."""
    ranked = counts(BIG)
    rank = ceil(ranked.most_off(Fraction(0), 0.1)) + 1
    for rows, place in ((rank, 0), (rank - 1, 1)):
        (number,) = counted_numbers(
            measurement := histogram(("min", Fraction(0))), fresh(measurement), counts([rows, *BIG]), 0.9
        )
        assert number.values.tolist() == [10 * place]


def test_a_number_is_read_as_a_chosen_one() -> None:
    measurement = histogram(("half", HALF))
    (number,) = counted_numbers(measurement, fresh(measurement), counts(BIG), 0.9)
    assert number.placed.name == "half" and number.placed.values is number.values


def test_quantiles_ascend_in_each_group_however_large_the_noise_is() -> None:
    """A negative noisy total would choose places in the opposite order."""
    measurement = histogram(("most", Fraction(9, 10)), ("few", Fraction(1, 10)))
    upside_down = counts(NOISY[4], NOISY[0])
    apart = [upside_down.chosen(quantile, 0).tolist() for quantile in (Fraction(1, 10), Fraction(9, 10))]
    few, most = (number.values // 10 for number in counted_numbers(measurement, fresh(measurement), upside_down, 0.9))
    assert (few <= most).all()
    assert [sorted(pair) for pair in zip(*apart, strict=True)] == [list(pair) for pair in zip(few, most, strict=True)]


@pytest.mark.parametrize("low", [True, False])
def test_an_end_of_a_bar_is_never_on_the_other_side_of_its_quantile(low: bool) -> None:
    end = QuantileEnd("end", HALF, low, Fraction(1, 10))
    measurement = histogram(("half", HALF), ends=(end,))
    groups = [BIG, [-500.0, -500.0, 0.0, 0.0], [0.0, 0.0, -500.0, -500.0], [1.0, 1.0, 1.0, 1.0]]
    ranked = counts(*groups)
    half, number = counted_numbers(measurement, fresh(measurement), ranked, 0.9)
    places, reached = half.values // 10, ranked.ends(HALF, low, end.missed)
    expected = [min(pair) if low else max(pair) for pair in zip(places, reached, strict=True)]
    assert (number.values // 10).tolist() == expected
    assert number.error == f"{'low' if low else 'high'} end of the error bar from the same counts"
    assert (number.name, number.worst_error, number.error_ratio) == ("end", 0.0, 0.0)


# --- which counts and cells -------------------------------------------------------------------------------------------


def test_counts_of_one_cell_and_group_are_added_up_and_those_of_no_cell_left_out() -> None:
    released = np.array([5.0, 7.0, 1.0, 100.0, 2.0, 4.0])
    cells, group = np.array([3, 1, 3, -1, 0, 3]), np.array([0, 0, 0, 0, 1, 1])
    ranked = ranked_counts(stored(), released, cells, group, 3)
    assert ranked.cells.tolist() == [0, 1, 3]
    assert ranked.rows.tolist() == [[0, 7, 6], [2, 0, 4], [0, 0, 0]]
    assert ranked.summands == 3  # summands of the first group


def test_counts_of_no_cell_at_all_answer_nothing() -> None:
    with pytest.raises(Impossible):
        ranked_counts(stored(), np.array([5.0]), np.array([-1]), np.array([0]), 1)


def literal(value: object) -> Literal:
    return Literal(value, literal_facts(value))


def ranking(value: Any, **changed: Any) -> RankHistogram:
    return RankHistogram("h", X, replace(TERM, value=value, **changed), ())


def test_a_value_has_the_cell_that_its_clamped_number_has_and_null_has_none() -> None:
    values = [3, 0, None, 9, 99, -5, 2]
    assert cells_of(ranking(X, lower=2, upper=8), "k0", values).tolist() == [1, 0, -1, 6, 6, 0, 0]
    assert cells_of(ranking(call("add", X, literal(10)), lower=10, upper=19), "k0", values[:4]).tolist() == [
        3,
        0,
        -1,
        9,
    ]


def test_no_values_have_no_cells() -> None:
    assert cells_of(ranking(X), "k0", []).tolist() == []


@pytest.mark.parametrize(
    "measurement",
    [
        ranking(X, lower=0.0),
        ranking(None),
        ranking(Column("y", X.facts)),
        ranking(call("add", X, Column("y", X.facts))),
        ranking(call("to_real", X)),
        ranking(call("gt", X, literal(3))),
    ],
    ids=["a grid of reals", "no value", "another column", "two columns", "a real", "a truth value"],
)
def test_cells_that_are_no_whole_values_of_the_key_answer_nothing(measurement: RankHistogram) -> None:
    with pytest.raises(Impossible):
        cells_of(measurement, "k0", [1, 2])
