"""Ends of bars are order statistics of draws, limited to the possible range of an output, and always enclose the displayed
value."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from dpsql.release.error_bars.intervals import Interval, hull_of, number_of_draws, percentiles

NUMBERS = (3999, 1999, 999, 399, 199)


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)


def interval(value: float, low: float, high: float, *, unknown: bool = False) -> Interval:
    return Interval(floats(value), floats(low), floats(high), np.array([unknown]))


def same(left: Interval, right: Interval) -> None:
    for name in ("value", "low", "high", "unknown"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


# --- number of draws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", NUMBERS)
def test_as_many_draws_are_made_as_cells_allow(draws: int) -> None:
    assert number_of_draws(10, draws * 10) == draws
    less = max((number for number in NUMBERS if number < draws), default=199)
    assert number_of_draws(10, draws * 10 - 1) == less
    assert number_of_draws(10, 10**9, draws) == draws


# --- percentiles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draws", "confidence", "rank"),
    [(39, 0.95, 1), (79, 0.95, 2), (199, 0.99, 1), (399, 0.99, 2), (3999, 0.99, 20), (199, 0.9, 10), (19, 0.99, 1),
     (199, 0.5, 50)],
)  # fmt: skip
def test_each_end_leaves_the_same_number_of_draws_outside(draws: int, confidence: float, rank: int) -> None:
    """The next draw is below the r-th of K with probability r / (K + 1)."""
    cells = np.random.default_rng(1).permuted(np.tile(np.arange(1.0, draws + 1), (2, 1)), axis=1)
    low, high = percentiles(cells * floats(1, -10)[:, None], confidence)
    assert low.tolist() == [rank, -10 * (draws + 1 - rank)]
    assert high.tolist() == [draws + 1 - rank, -10 * rank]


@pytest.mark.parametrize(("lost", "expected"), [(0, (10, 190)), (9, (1, 199)), (10, (-inf, inf))])
def test_a_draw_without_a_value_counts_at_both_ends(lost: int, expected: tuple[float, float]) -> None:
    """In 199 draws and 90 % bars, the tenth from each end decides. The lost draws are those in the middle."""
    row = np.arange(1.0, 200)
    row[100 : 100 + lost] = nan
    low, high = percentiles(np.stack([row, np.arange(1.0, 200)]), 0.9)
    assert (low[0], high[0]) == expected
    assert (low[1], high[1]) == (10, 190)


# --- intervals --------------------------------------------------------------------------------------------------------


def test_an_interval_that_is_not_computed_has_no_numbers() -> None:
    nan_rows = np.full(3, nan)
    same(Interval.nothing(3), Interval(nan_rows, nan_rows, nan_rows, np.zeros(3, dtype=bool)))
    assert Interval.nothing(0).value.size == 0


@pytest.mark.parametrize(
    ("displayed", "low", "high"),
    [(5.5, 3, 8), (2, 2, 8), (9, 3, 9), (nan, 3, 8)],
    ids=["inside", "below", "above", "nothing displayed"],
)
def test_an_interval_holds_what_is_displayed(displayed: float, low: float, high: float) -> None:
    same(
        interval(5, 3, 8, unknown=True).around_displayed(floats(displayed)),
        interval(displayed, low, high, unknown=True),
    )


def test_an_end_that_nothing_bounds_is_not_made_by_what_is_displayed() -> None:
    same(interval(5, nan, 8).around_displayed(floats(9)), interval(9, nan, 9))
    same(interval(5, 3, nan).around_displayed(floats(2)), interval(2, 2, nan))


@pytest.mark.parametrize(
    ("low", "high", "unknown"),
    [(0, 10, True), (-1, 11, True), (1, 10, False), (0, 9, False), (1, 9, False), (nan, 9, True), (nan, nan, True)],
)
def test_an_interval_that_is_no_less_than_the_extent_is_unknown(low: float, high: float, unknown: bool) -> None:
    bounded = np.isfinite(low) and np.isfinite(high)
    made_up = Interval.of(floats(5), floats(low), floats(high), (0.0, 10.0))
    same(made_up, interval(5, low if bounded else nan, high if bounded else nan, unknown=unknown))


# --- hulls ------------------------------------------------------------------------------------------------------------


def test_a_hull_is_around_all_ends_and_within_the_extent() -> None:
    ends = [(floats(1, -5, nan, nan), floats(4, 3, 6, nan)), (floats(2, 2, 2, nan), floats(5, 30, 6, nan))]
    low, high = hull_of(ends, (0.0, 10.0))
    assert low.tolist() == [1, 0, 2, 0] and high.tolist() == [5, 10, 6, 10]


def test_a_hull_of_what_lies_outside_is_the_extent() -> None:
    low, high = hull_of([(floats(-20), floats(20))], (0.0, 10.0))
    assert (low.tolist(), high.tolist()) == ([0], [10])
