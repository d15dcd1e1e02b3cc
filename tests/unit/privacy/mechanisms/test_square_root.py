"""The law of noise for running totals: its limits, its price, and its errors as derived from the matrix itself.

Its integers and their cost are tested with its sampler, in `tests/unit/noise/test_square_root.py`.
"""

from fractions import Fraction
from math import comb, pi, sqrt

import numpy as np
import pytest
from scipy import stats

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.gaussian import FINEST, MOST_SHIFT, MOST_SIGMA
from dpsql.privacy.mechanisms.square_root import (
    MOST_LENGTH,
    MOST_WIDE,
    ONE,
    SquareRoot,
    factors,
    inverse_factors,
    noise_for,
    square_moved,
    unrolled,
    wide_bits,
)
from dpsql.privacy.mechanisms.weighted_sums import weighted

LONE = Sensitivity(1, 1, 1, 1)
MOVES = [
    LONE, Sensitivity(2, 3, 5, 2), Sensitivity(5, 5, 5, 1), Sensitivity(4, 37, 500, 16),
    Sensitivity(5, 500, 10**4, 100),
]  # fmt: skip


def inverse(length: int) -> np.ndarray:
    """Return 2**8 T**-1, from T itself."""
    numbers = factors(length)
    whole = [[numbers[row - column] if row >= column else 0 for column in range(length)] for row in range(length)]
    return np.linalg.inv(np.array(whole, dtype=float) / ONE)


@pytest.mark.parametrize(
    ("shift", "sigma", "length"),
    [
        (FINEST - 1, ONE, 1), (MOST_SHIFT + 1, ONE, 1), (0, ONE - 1, 1), (0, MOST_WIDE + 128, 1),
        (0, MOST_SIGMA + 1, 1), (0, MOST_WIDE - 64, 1), (0, ONE, 0), (0, ONE, MOST_LENGTH + 1),
    ],
)  # fmt: skip
def test_scales_beyond_the_limits_are_refused(shift: int, sigma: int, length: int) -> None:
    with pytest.raises(ValueError, match=r"not a (scale|length)"):
        SquareRoot(LONE, shift, sigma, length)


def test_factors_are_rounded_binomials() -> None:
    exact = [Fraction(ONE * comb(2 * place, place), 4**place) for place in range(200)]
    assert factors(200) == tuple(int(number + Fraction(1, 2)) for number in exact)
    assert factors(1) == (ONE,) and inverse_factors(200) == pytest.approx(inverse(200)[:, 0])


@pytest.mark.parametrize("moved", MOVES, ids=str)
@pytest.mark.parametrize("shift", [-2, 0, 1, 4])
@pytest.mark.parametrize("length", [1, 2, 5, 70])
def test_both_roads_have_one_rho_and_no_pure_epsilon(moved: Sensitivity, shift: int, length: int) -> None:
    law = SquareRoot(moved, shift, 3 * ONE, length)
    square = square_moved(moved, shift, length)
    assert law.loss == law.recomputed_loss() == PrivacyLoss.concentrated(Fraction(square, 2 * (3 * ONE) ** 2))


def test_vectors_of_a_single_cell_move_as_in_plain_noise_scaled() -> None:
    """By hand: T is 2**8, so that two entries of 2 and 1 move it by at most 2**16 times their squared norm."""
    assert square_moved(LONE, 0, 1) == ONE**2
    assert square_moved(Sensitivity(2, 3, 5, 2), 0, 1) == 5 * ONE**2
    assert square_moved(LONE, -3, 1) == 64 * ONE**2
    assert square_moved(LONE, 3, 1) == ONE**2, "an entry on a grid line moves by a step"


@pytest.mark.parametrize("moved", MOVES, ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 10**4), Fraction(1, 3)], ids=str)
@pytest.mark.parametrize("finest", [FINEST, -3, 0])
def test_noise_is_the_least_on_the_finest_grid_that_holds_it(moved: Sensitivity, rho: Fraction, finest: int) -> None:
    law = noise_for(moved, rho, 6, finest)
    assert isinstance(law, SquareRoot) and (law.length, law.sensitivity) == (6, moved) and law.shift >= finest
    least = square_moved(moved, law.shift, 6) / (2 * rho)
    step = 1 << wide_bits(law.sigma)
    assert law.sigma == ONE or (law.sigma - step) ** 2 < least
    assert least <= law.sigma**2 and law.sigma % step == 0
    finer = square_moved(moved, law.shift - 1, 6) / (2 * rho)
    assert law.shift == finest or finer > MOST_SIGMA**2


LAW = SquareRoot(LONE, 0, 20 * ONE, 30)
CELL = 20.0**2 + 1 / 12
"""The variance of a measured number plus that of its rounding."""


def test_errors_of_the_last_cell_follow_from_the_inverse_matrix() -> None:
    spread = float(np.sum(inverse(30)[-1] ** 2) * CELL)
    assert LAW.standard_deviation() == pytest.approx(sqrt(spread))
    assert LAW.expected_error() == pytest.approx(sqrt(2 / pi * spread))
    for k in (1, 10, 50):
        assert float(LAW.upper_tail(k)) == pytest.approx(stats.norm.sf((k - 0.5) / sqrt(spread - 1 / 12)), rel=1e-9)
    for probability in (Fraction(1, 1000), Fraction(1, 20), Fraction(2, 5)):
        point = LAW.tail_point(probability)
        assert LAW.upper_tail(point) <= probability < LAW.upper_tail(point - 1)
    assert LAW.tail_point(Fraction(1, 2)) == LAW.tail_point(Fraction(1)) == 1
    assert LAW.half_width(0.9) == LAW.tail_point((1 - Fraction(0.9)) / 2) - 1


def test_running_totals_have_the_mean_variance_of_summed_rows() -> None:
    rows = np.tri(30) @ inverse(30)
    assert LAW.running_deviation() == pytest.approx(sqrt(np.mean(np.sum(rows**2, axis=1)) * CELL))


def test_cells_of_different_vectors_add_up_in_squares_and_sums_of_cells_have_no_law() -> None:
    assert weighted(LAW, [4.0, 3.0]) == (LAW, 5.0)
    assert LAW.summed(1, False) is None and LAW.summed(2, True) is None


@pytest.mark.parametrize(("length", "cells"), [(1, 3), (2, 5), (64, 64), (65, 130), (130, 131)])
def test_unrolling_is_division_by_the_matrix_step_by_step(length: int, cells: int) -> None:
    drawn = np.random.default_rng(length).integers(-(1 << 20), 1 << 20, (2, cells))
    numbers, expected = factors(length), np.zeros((2, cells), dtype=np.int64)
    for draw, cell in np.ndindex(2, cells):
        first = cell - cell % length
        rest = int(drawn[draw, cell]) - sum(numbers[cell - j] * int(expected[draw, j]) for j in range(first, cell))
        expected[draw, cell] = (rest + ONE // 2) // ONE
    assert (unrolled(drawn, length) == expected).all()
