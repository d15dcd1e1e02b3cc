"""Gaussian noise has the least scale that its price permits, the same price in both computations, and the errors of its law."""

from fractions import Fraction
from math import pi, sqrt

import numpy as np
import pytest
from scipy import stats
from support.noise_laws import gaussian_cdf

from dpsql.errors.exceptions import Refusal
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import (
    FINEST,
    MOST_SHIFT,
    MOST_SIGMA,
    Gaussian,
    SummedGaussian,
    _quantiles,
    _table,
    noise_for,
    square_moved,
)
from dpsql.privacy.mechanisms.weighted_sums import weighted

LONE = Sensitivity(1, 1, 1, 1)
WIDE = Sensitivity(3, 3 << 52, 3 << 104, 1 << 52)


def gaussian(noise: Noise) -> Gaussian:
    assert isinstance(noise, Gaussian)
    return noise


def summed(noise: Gaussian, count: int, whole: bool = False) -> SummedGaussian:
    law = noise.summed(count, whole)
    assert isinstance(law, SummedGaussian)
    return law


@pytest.mark.parametrize(
    ("shift", "sigma"), [(0, 0), (0, -1), (0, MOST_SIGMA + 1), (FINEST - 1, 1), (MOST_SHIFT + 1, 1)]
)
def test_scales_beyond_the_limits_are_refused(shift: int, sigma: int) -> None:
    with pytest.raises(ValueError, match=f"not a Gaussian scale: sigma={sigma}, shift={shift}"):
        Gaussian(LONE, shift, sigma)


def test_what_no_unit_moves_has_no_scale() -> None:
    still = Sensitivity(3, 0, 0, 0)
    with pytest.raises(ValueError, match="zero sensitivity"):
        Gaussian(still, 0, 1)
    assert noise_for(still, Fraction(1)) == Constant(still)


@pytest.mark.parametrize(
    "moved", [LONE, Sensitivity(5, 5, 5, 1), Sensitivity(3, 7, 19, 4), Sensitivity(2, 199, 19801, 100), WIDE], ids=str
)
@pytest.mark.parametrize("shift", [-3, 0, 1, 2, 5, 60])
def test_the_square_moved_is_the_largest_whole_square_within_the_triangle_inequality(
    moved: Sensitivity, shift: int
) -> None:
    """sqrt(M) <= l2 / 2**shift + sqrt(l0) < sqrt(M + 1), compared as exact squares; there is no rounding on a finer grid."""
    square = square_moved(moved, shift)
    if shift <= 0:
        assert square == moved.l2_squared * 4**-shift
        return
    straight = Fraction(moved.l2_squared, 4**shift) + moved.l0
    crossed_squared = Fraction(4 * moved.l0 * moved.l2_squared, 4**shift)

    def allowed(n: int) -> bool:
        return n <= straight or (n - straight) ** 2 <= crossed_squared

    assert allowed(square) and not allowed(square + 1)


@pytest.mark.parametrize("moved", [LONE, Sensitivity(3, 7, 19, 4), WIDE], ids=str)
@pytest.mark.parametrize("shift", [-40, -1, 0, 1, 3, 50])
@pytest.mark.parametrize("sigma", [1, 3, MOST_SIGMA])
def test_both_roads_have_one_rho_and_no_pure_epsilon(moved: Sensitivity, shift: int, sigma: int) -> None:
    noise = Gaussian(moved, shift, sigma)
    expected = PrivacyLoss.concentrated(Fraction(square_moved(moved, shift), 2 * sigma**2))
    assert noise.loss == noise.recomputed_loss() == expected


@pytest.mark.parametrize("moved", [LONE, Sensitivity(3, 7, 19, 4), WIDE, Sensitivity(10**6, 10**9, 10**12, 1000)])
@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 200), Fraction(1), Fraction(1234, 7)], ids=str)
def test_noise_is_the_least_on_the_finest_grid_that_holds_it(moved: Sensitivity, rho: Fraction) -> None:
    noise = gaussian(noise_for(moved, rho))
    least = Fraction(square_moved(moved, noise.shift)) / (2 * rho)
    assert (noise.sigma - 1) ** 2 < least <= noise.sigma**2
    assert noise.loss.rho is not None and noise.loss.rho <= rho
    finer = Fraction(square_moved(moved, noise.shift - 1)) / (2 * rho)
    assert noise.shift == FINEST or finer > MOST_SIGMA**2


def test_no_grid_is_so_coarse_that_noise_is_any_size() -> None:
    """On a coarse grid each touched entry moves by about one step: a limit on sigma is a limit on entries."""
    crowd = Sensitivity(10**9, 10**9, 10**9, 1)
    with pytest.raises(Refusal) as caught:
        noise_for(crowd, Fraction(1, 10**9))
    assert caught.value.slug == "noise_too_large"
    huge = Sensitivity(1, 1 << 146, 1 << 292, 1 << 146)
    assert gaussian(noise_for(huge, Fraction(1, 2))).shift == MOST_SHIFT
    with pytest.raises(Refusal):
        noise_for(Sensitivity(1, 1 << 147, 1 << 294, 1 << 147), Fraction(1, 2))


@pytest.mark.parametrize("sigma", [1, 2, 5, 30])
def test_the_tail_is_that_of_the_normal_law_a_step_nearer_and_covers_the_exact_one(sigma: int) -> None:
    noise, exact = Gaussian(LONE, 0, sigma), gaussian_cdf(sigma)
    points = np.arange(1, 5 * sigma)
    tails = np.array([float(noise.upper_tail(int(k))) for k in points])
    np.testing.assert_allclose(tails, stats.norm.sf((points - 1) / sigma), rtol=1e-12)
    assert (tails >= [1 - exact(int(k) - 1) - 1e-12 for k in points]).all()


@pytest.mark.parametrize("sigma", [1, 3, 100, MOST_SIGMA])
@pytest.mark.parametrize("probability", [Fraction(1, 1000), Fraction(1, 20), Fraction(49, 100), Fraction(1, 10**40)])
def test_the_tail_point_is_the_first_one_within_a_probability(sigma: int, probability: Fraction) -> None:
    noise = Gaussian(LONE, 0, sigma)
    point = noise.tail_point(probability)
    assert noise.upper_tail(point) <= probability and (point == 1 or noise.upper_tail(point - 1) > probability)


def test_errors_of_weighted_sums_grow_with_the_norm_of_the_weights() -> None:
    noise = Gaussian(LONE, -2, 640)
    assert noise.expected_error() == pytest.approx(sqrt(2 / pi) * 160)
    assert weighted(noise, [4.0, 3.0]) == (noise, 5.0) and weighted(noise, [2.5]) == (noise, 2.5)


UNIFORM = (np.arange(20_000) + 0.5) / 20_000


@pytest.mark.parametrize("sigma", [1, 3, 40])
def test_quantiles_are_the_smallest_numbers_that_the_law_is_below_so_often(sigma: int) -> None:
    exact = gaussian_cdf(sigma)
    drawn = Gaussian(LONE, 0, sigma).quantiles(UNIFORM)
    assert (np.diff(drawn) >= 0).all() and (drawn == np.rint(drawn)).all()
    for number, uniform in zip(drawn[::997].astype(int).tolist(), UNIFORM[::997].tolist(), strict=True):
        assert exact(number - 1) < uniform <= exact(number)


def test_the_tail_of_a_sum_is_that_of_the_normal_law_from_half_a_step_nearer() -> None:
    law = summed(Gaussian(LONE, 0, 10), 9)
    for k in (1, 20, 60, 100):
        assert float(law.upper_tail(k)) == pytest.approx(stats.norm.sf((k - 0.5) / 30), rel=1e-9)
    for probability in (Fraction(1, 1000), Fraction(1, 20), Fraction(2, 5)):
        point = law.tail_point(probability)
        assert law.upper_tail(point) <= probability < law.upper_tail(point - 1)
    assert law.tail_point(Fraction(9, 10)) == 1


@pytest.mark.parametrize("sigma", [0.4, 1.3, 20.0, 900.0, 741_455.2])
def test_quantiles_are_those_of_a_search_of_the_whole_table(sigma: float) -> None:
    random = np.random.default_rng(1)
    tails = 2.0 ** -random.integers(1, 900, 500).astype(float)
    uniform = np.concatenate((random.random(40_000), tails, 1 - np.maximum(tails, 2.0**-53), [0.0, 0.5, 1.0]))
    step, points, cumulated, _ = _table(sigma)
    expected = step * points[np.minimum(np.searchsorted(cumulated, uniform), len(points) - 1)]
    assert (_quantiles(sigma, uniform) == expected).all()
    assert (_quantiles(sigma, uniform[:40_000].reshape(40, -1)) == expected[:40_000].reshape(40, -1)).all()
