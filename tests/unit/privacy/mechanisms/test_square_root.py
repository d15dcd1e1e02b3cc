"""The law of noise for running totals: its limits, its price, and its errors as derived from the matrix itself.

Its integers and their cost are tested with its sampler, in `tests/unit/noise/test_square_root.py`.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, pi, sqrt

import numpy as np
import pytest
from scipy import stats

from dpsql.errors.exceptions import Refusal
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Sensitivity
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

LONE = Sensitivity(1, 1, 1, 1)
MOVES = [
    LONE,
    Sensitivity(2, 3, 5, 2),
    Sensitivity(5, 5, 5, 1),
    Sensitivity(4, 37, 500, 16),
    Sensitivity(5, 500, 10**4, 100),
]


def inverse(length: int) -> np.ndarray:
    """Return 2**8 T**-1, from T itself."""
    numbers = factors(length)
    whole = [[numbers[row - column] if row >= column else 0 for column in range(length)] for row in range(length)]
    return np.linalg.inv(np.array(whole, dtype=float) / ONE)


@pytest.mark.parametrize(
    ("shift", "sigma", "length"),
    [(FINEST, ONE, 1), (MOST_SHIFT, MOST_WIDE, MOST_LENGTH), (0, MOST_SIGMA, 5), (0, MOST_SIGMA - 1, 5)],
)
def test_scales_up_to_the_limits_are_laws(shift: int, sigma: int, length: int) -> None:
    law = SquareRoot(LONE, shift, sigma, length)
    assert law.noise_scale == Fraction(sigma, ONE) and (law.mechanism, law.normal) == ("square_root", True)


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


def test_what_no_unit_moves_has_no_scale() -> None:
    still = Sensitivity(3, 0, 0, 0)
    with pytest.raises(ValueError, match="zero sensitivity"):
        SquareRoot(still, 0, ONE, 3)
    assert noise_for(still, Fraction(1), 3) == Constant(still)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), 1, 0.5, None])
def test_a_price_that_is_no_fraction_above_zero_is_refused(rho: object) -> None:
    with pytest.raises(ValueError, match="rho must be a Fraction > 0"):
        noise_for(LONE, rho, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sigma", "bits"),
    [(ONE, 0), (MOST_SIGMA, 0), (MOST_SIGMA + 1, 1), (2 * MOST_SIGMA, 1), (2 * MOST_SIGMA + 1, 2), (MOST_WIDE, 7)],
)
def test_wide_deviations_are_multiples_of_a_power_of_two(sigma: int, bits: int) -> None:
    assert wide_bits(sigma) == bits


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


def test_a_coarser_grid_comes_after_wide_noise() -> None:
    """One entry, T = 2**8 and rho 1/2: sigma is 2**8 times the entry's change, which a step of two halves."""
    wide = noise_for(Sensitivity(1, 1 << 17, 1 << 34, 1 << 17), Fraction(1, 2), 1, 0)
    assert wide == SquareRoot(Sensitivity(1, 1 << 17, 1 << 34, 1 << 17), 0, 1 << 25, 1)
    coarse = noise_for(Sensitivity(1, 1 << 20, 1 << 40, 1 << 20), Fraction(1, 2), 1, 0)
    assert coarse == SquareRoot(Sensitivity(1, 1 << 20, 1 << 40, 1 << 20), 1, MOST_WIDE, 1)
    with pytest.raises(Refusal) as caught:
        noise_for(Sensitivity(1, 1 << 150, 1 << 300, 1 << 150), Fraction(1, 2), 1)
    assert caught.value.slug == "noise_too_large"


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


def test_errors_are_in_row_units() -> None:
    coarse = SquareRoot(LONE, 3, 20 * ONE, 30)
    assert coarse.standard_deviation() == 8 * LAW.standard_deviation()
    assert coarse.running_deviation() == 8 * LAW.running_deviation()
    assert coarse.half_width(0.9) == 8 * LAW.half_width(0.9) + 7


def test_running_totals_have_the_mean_variance_of_summed_rows() -> None:
    rows = np.tri(30) @ inverse(30)
    assert LAW.running_deviation() == pytest.approx(sqrt(np.mean(np.sum(rows**2, axis=1)) * CELL))


@pytest.mark.parametrize("cells", [1, 30, 47, 60])
def test_weighted_sums_of_cells_have_the_variance_of_their_covariance(cells: int) -> None:
    """Vectors are independent; the last one may be shorter."""
    weights = np.random.default_rng(3).normal(size=(4, cells))
    whole = np.kron(np.eye(2), inverse(30))[:cells, :]
    expected = np.sum((weights @ whole) ** 2, axis=1) * CELL
    np.testing.assert_allclose(LAW.variances(weights), expected, rtol=1e-9)


def test_cells_of_different_vectors_add_up_in_squares_and_sums_of_cells_have_no_law() -> None:
    assert LAW.weighted_expected_error([4.0, 3.0]) == pytest.approx(5 * LAW.expected_error())
    assert LAW.weighted_half_width([4.0, 3.0], 0.9) == pytest.approx(5 * LAW.half_width(0.9))
    assert LAW.summed(1, False) is None and LAW.summed(2, True) is None


UNIFORM = (np.arange(1_000) + 0.5) / 1_000


def test_quantiles_are_those_of_the_last_cell_and_of_vectors_unrolled() -> None:
    spread = sqrt(float(np.sum(inverse(30)[-1] ** 2) * CELL) - 1 / 12)
    exact = stats.norm.ppf(UNIFORM)
    assert np.abs(LAW.quantiles(UNIFORM) - exact * spread).max() < 0.51
    cells = UNIFORM[:60].reshape(2, 30)
    joint = LAW.joint_quantiles(np.zeros((2, 1)), cells)
    drawn = np.rint(stats.norm.ppf(cells) * 20 * ONE)
    assert np.abs(joint - unrolled(drawn, 30)).max() <= 1


@pytest.mark.parametrize(("length", "cells"), [(1, 3), (2, 5), (64, 64), (65, 130), (130, 131)])
def test_unrolling_is_division_by_the_matrix_step_by_step(length: int, cells: int) -> None:
    drawn = np.random.default_rng(length).integers(-(1 << 20), 1 << 20, (2, cells))
    numbers, expected = factors(length), np.zeros((2, cells), dtype=np.int64)
    for draw, cell in np.ndindex(2, cells):
        first = cell - cell % length
        rest = int(drawn[draw, cell]) - sum(numbers[cell - j] * int(expected[draw, j]) for j in range(first, cell))
        expected[draw, cell] = (rest + ONE // 2) // ONE
    assert (unrolled(drawn, length) == expected).all()
