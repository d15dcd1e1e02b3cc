"""Scales, prices and error bars of the additive mechanisms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.noise_laws import gaussian_cdf

from dpsql.errors.exceptions import Refusal
from dpsql.privacy.accounting.conversions import rho_to_epsilon
from dpsql.privacy.mechanisms import gaussian as gaussians
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.rational_bounds import (
    exp_lower,
    exp_upper,
    ln_lower,
    ln_upper,
    normal_tail_upper,
    sqrt_lower,
)

dp.enable_features("contrib")
ONE = Sensitivity(1, 1, 1, 1)


@st.composite
def sensitivities(draw: st.DrawFn) -> Sensitivity:
    """Draw a sensitivity with any l0 entries, each moved by up to b."""
    l0 = draw(st.integers(1, 10**6))
    b = draw(st.one_of(st.integers(1, 50), st.integers(1, 2**52)))
    return Sensitivity(l0, l0 * b, l0 * b * b, b)


fractions = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**9)


@settings(max_examples=200, deadline=None)
@given(sensitivities(), fractions)
def test_laplace_costs_at_most_what_was_asked_and_hardly_less(sensitivity: Sensitivity, epsilon: Fraction) -> None:
    noise = laplaces.noise_for(sensitivity, epsilon)
    assert isinstance(noise, Laplace)
    assert noise.loss.epsilon is not None and noise.loss.epsilon <= epsilon
    assert noise.loss == noise.recomputed_loss()
    moved = Fraction(sensitivity.l1, 2**noise.shift)
    assert noise.noise_scale >= moved / epsilon
    # Rounding up costs little unless the scale is absurdly small (2**40 steps are enough for all).
    rounding = Fraction(sensitivity.l0, 1) if noise.shift else 0
    assert noise.noise_scale <= (moved + rounding) / epsilon * (1 + Fraction(1, 2**10)) + Fraction(1, 2**39)


@settings(max_examples=200, deadline=None)
@given(sensitivities(), fractions)
def test_gaussian_costs_at_most_what_was_asked_and_hardly_less(sensitivity: Sensitivity, rho: Fraction) -> None:
    noise = gaussians.noise_for(sensitivity, rho)
    assert isinstance(noise, Gaussian)
    assert noise.loss.rho is not None and noise.loss.rho <= rho and noise.loss.epsilon is None
    assert noise.loss == noise.recomputed_loss()
    if noise.shift > gaussians.FINEST:
        assert noise.sigma > 2**18
    if noise.shift <= 0:
        assert noise.loss.rho >= rho * (1 - Fraction(1, 2**17)) or noise.shift == gaussians.FINEST
        exact_sigma = math.sqrt(sensitivity.l2_squared / (2 * float(rho)))
        assert noise.standard_deviation() >= exact_sigma * (1 - 1e-12)


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_flooring_moves_no_further_than_claimed(shift: int) -> None:
    """Every pair of vectors of two entries in a box: L1 and squared L2 after flooring, compared with the claim."""
    unit = 1 << shift
    worst: dict[tuple[int, int, int], tuple[int, int]] = {}
    for start in itertools.product(range(unit), repeat=2):
        for move in itertools.product(range(-4, 5), repeat=2):
            steps = [abs((s + m) // unit - s // unit) for s, m in zip(start, move, strict=True)]
            l0 = sum(m != 0 for m in move)
            key = (l0, sum(map(abs, move)), sum(m * m for m in move))
            l1, l2 = worst.get(key, (0, 0))
            worst[key] = (max(l1, sum(steps)), max(l2, sum(n * n for n in steps)))
    for (l0, l1, l2_squared), (reached_l1, reached_l2) in worst.items():
        if l0:
            sensitivity = Sensitivity(l0, l1, l2_squared, l1)
            assert reached_l1 <= laplaces.steps_moved(sensitivity, shift)
            assert reached_l2 <= gaussians.square_moved(sensitivity, shift)
    assert any(
        reached == laplaces.steps_moved(Sensitivity(l0, l1, l2, l1), shift) > l1 >> shift or shift == 0
        for (l0, l1, l2), (reached, _) in worst.items()
        if l0
    )


def test_coarsening_counts_the_rounding() -> None:
    """One more step for each touched entry; without it these vectors move further than is paid for."""
    sensitivity = Sensitivity(5, 5, 5, 1)
    assert laplaces.steps_moved(sensitivity, 3) == 5  # five entries, each over a grid line
    assert gaussians.square_moved(sensitivity, 3) >= 5
    big = Sensitivity(3, 3 << 52, 3 << 104, 1 << 52)
    noise = laplaces.noise_for(big, Fraction(1, 10))
    assert isinstance(noise, Laplace) and noise.shift > 0
    assert laplaces.steps_moved(big, noise.shift) == (3 << 52 >> noise.shift) + 2
    wide = gaussians.noise_for(big, Fraction(1, 200))
    assert isinstance(wide, Gaussian) and wide.shift > 0
    assert gaussians.square_moved(big, wide.shift) > big.l2_squared >> (2 * wide.shift)


def test_a_smaller_scale_costs_more_on_both_roads() -> None:
    noise = laplaces.noise_for(ONE, Fraction(1, 10))
    assert noise == Laplace(ONE, 0, 10, 1)
    halved = Laplace(ONE, 0, 5, 1)
    assert halved.loss.epsilon == halved.recomputed_loss().epsilon == Fraction(1, 5)
    gauss = gaussians.noise_for(ONE, Fraction(1, 200))
    assert gauss == Gaussian(ONE, -16, 10 << 16)
    narrow = Gaussian(ONE, -16, 5 << 16)
    assert narrow.loss.rho == narrow.recomputed_loss().rho == Fraction(1, 50)


def test_what_no_unit_moves_is_a_constant() -> None:
    for noise in (
        laplaces.noise_for(Sensitivity(3, 0, 0, 0), Fraction(1)),
        gaussians.noise_for(Sensitivity(0, 0, 0, 0), Fraction(1)),
    ):
        assert isinstance(noise, Constant)
        assert noise.loss == noise.recomputed_loss()
        assert (noise.loss.epsilon, noise.loss.delta, noise.loss.rho) == (0, 0, 0)
        assert noise.half_width(0.95) == noise.standard_deviation() == 0
    with pytest.raises(ValueError):
        Constant(ONE)
    for make in (lambda: Laplace(Sensitivity(3, 0, 0, 0), 0, 1, 1), lambda: Gaussian(Sensitivity(3, 0, 0, 0), 0, 1)):
        with pytest.raises(ValueError):
            make()


@pytest.mark.parametrize(
    "norms", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0), (1, -1, 1, 1), (1, 1.0, 1, 1)]
)
def test_sensitivities_that_contradict_each_other_are_refused(norms: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError):
        Sensitivity(*norms)


@pytest.mark.parametrize("price", [Fraction(0), Fraction(-1), 0.1, float("nan"), 1, None])
def test_unknown_prices_are_refused(price: object) -> None:
    for make in (laplaces.noise_for, gaussians.noise_for):
        with pytest.raises(ValueError):
            make(ONE, price)  # type: ignore[arg-type]


def test_scales_out_of_range() -> None:
    for make in (
        lambda: Laplace(ONE, 0, 0, 1),
        lambda: Laplace(ONE, 0, 1, 0),
        lambda: Laplace(ONE, -1, 1, 1),
        lambda: Gaussian(ONE, 0, 0),
        lambda: Gaussian(ONE, -41, 5),
        lambda: Gaussian(ONE, 0, (1 << 20) + 1),
    ):
        with pytest.raises(ValueError):
            make()
    crowd = Sensitivity(10**9, 10**9, 10**9, 1)
    for make_noise in (laplaces.noise_for, gaussians.noise_for):
        with pytest.raises(Refusal) as caught:
            make_noise(crowd, Fraction(1, 10**9))
        assert caught.value.slug == "noise_too_large"


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999999])
@pytest.mark.parametrize(("t", "s"), [(1, 3), (1, 1), (10, 1), (7, 3), (12345, 11)])
def test_laplace_half_width_is_the_exact_quantile(t: int, s: int, confidence: float) -> None:
    noise = Laplace(Sensitivity(1, 1, 1, 1), 0, t, s)
    law = stats.dlaplace(s / t)
    width = round(noise.half_width(confidence))
    assert law.cdf(width) - law.cdf(-width - 1) >= confidence - 1e-12
    assert width == 0 or law.cdf(width - 1) - law.cdf(-width) < confidence
    assert noise.standard_deviation() == pytest.approx(law.std(), rel=1e-9)


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9, 0.95, 0.999999])
@pytest.mark.parametrize("sigma", [1, 3, 10, 100])
def test_gaussian_half_width_is_the_quantile_or_one_step_more(sigma: int, confidence: float) -> None:
    noise = Gaussian(ONE, 0, sigma)
    cdf = gaussian_cdf(sigma)
    width = round(noise.half_width(confidence))
    assert cdf(width) - cdf(-width - 1) >= confidence
    assert width <= 1 or cdf(width - 2) - cdf(-width + 1) < confidence


def test_half_widths_are_in_units_of_a_row() -> None:
    fine = gaussians.noise_for(ONE, Fraction(1, 200))
    assert fine.half_width(0.95) == pytest.approx(19.59964, rel=1e-5)
    coarse = Laplace(Sensitivity(1, 1 << 50, 1 << 100, 1 << 50), 10, 1 << 40, 1)
    assert coarse.half_width(0.95) == pytest.approx(2**50 * math.log(20), rel=1e-9)
    assert coarse.half_width(0.0) >= 2**10 - 1
    for bad in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError):
            fine.half_width(bad)


@pytest.mark.parametrize("sigma", [1, 2, 5, 30])
def test_gaussian_tail_bound_covers_the_exact_tail(sigma: int) -> None:
    noise, cdf = Gaussian(ONE, 0, sigma), gaussian_cdf(sigma)
    for k in range(1, 8 * sigma):
        assert float(noise.upper_tail(k)) >= (1 - cdf(k - 1)) * (1 - 1e-9)
    point = noise.tail_point(Fraction(1, 1000))
    assert noise.upper_tail(point) <= Fraction(1, 1000) < noise.upper_tail(point - 1)


def test_rational_bounds_enclose_exp_and_ln() -> None:
    for x in (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(-7, 2), Fraction(40), Fraction(-999)):
        assert exp_lower(x) < exp_upper(x)
        assert float(exp_lower(x)) == pytest.approx(math.exp(x), rel=1e-14)
    for x in (Fraction(1, 10**9), Fraction(1, 2), Fraction(1), Fraction(10**20)):
        assert ln_lower(x) < ln_upper(x)
        assert float(ln_upper(x)) == pytest.approx(math.log(x), rel=1e-14, abs=1e-60)
    series = sum(Fraction(1, math.factorial(k)) for k in range(80))
    assert exp_lower(Fraction(1)) < series < exp_upper(Fraction(1)) < series * (1 + Fraction(1, 10**79))
    assert exp_lower(Fraction(-2000)) == 0 < exp_upper(Fraction(-2000))
    for x in (Fraction(2), Fraction(9, 4), Fraction(1, 10**12), Fraction(0)):
        root, step = sqrt_lower(x), Fraction(1, x.denominator << 128)
        assert root**2 <= x < (root + step) ** 2
        assert float(root) == pytest.approx(math.sqrt(x), rel=1e-14)
    assert sqrt_lower(Fraction(9, 4)) == Fraction(3, 2)
    for x in (0.0, 0.5, 1.0, 3.0, 9.0, 13.9, 14.0, 30.0):
        upper, exact = float(normal_tail_upper(Fraction(x))), float(stats.norm.sf(x))
        assert exact * (1 - 1e-12) <= upper <= exact * 1.01


def losses_of_others(noise: Noise, delta: float) -> float:
    """Return epsilon at `delta` by privacy loss distributions, for one entry."""
    moved = noise.sensitivity.l1
    if isinstance(noise, Laplace):
        law = pld.from_discrete_laplace_mechanism(noise.s / noise.t, moved, value_discretization_interval=1e-4)
    else:
        law = pld.from_discrete_gaussian_mechanism(float(noise.noise_scale), moved, value_discretization_interval=1e-4)
    return float(law.get_epsilon_for_delta(delta))


def test_no_noise_is_priced_below_its_privacy_loss_distribution() -> None:
    for t, s, moved in ((10, 1, 1), (3, 2, 1), (20, 1, 4)):
        noise = Laplace(Sensitivity(1, moved, moved**2, moved), 0, t, s)
        assert noise.loss.epsilon is not None
        assert losses_of_others(noise, 1e-12) <= float(noise.loss.epsilon) + 2e-4
        assert losses_of_others(noise, 1e-12) >= float(noise.loss.epsilon) * 0.99
    for sigma, moved in ((1, 1), (2, 1), (10, 1), (10, 3)):
        gauss = Gaussian(Sensitivity(1, moved, moved**2, moved), 0, sigma)
        assert gauss.loss.rho is not None
        ours = float(rho_to_epsilon(gauss.loss.rho, Fraction(1, 10**6)))
        assert losses_of_others(gauss, 1e-6) <= ours
        assert losses_of_others(gauss, 1e-6) >= ours * 0.8


def test_opendp_charges_the_same() -> None:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    for moved, epsilon in ((1, Fraction(1, 10)), (7, Fraction(1, 3)), (120, Fraction(2))):
        noise = laplaces.noise_for(Sensitivity(1, moved, moved**2, moved), epsilon)
        theirs = dp.m.make_laplace(*space, scale=float(noise.noise_scale)).map(moved)
        assert float(noise.loss.epsilon or 0) == pytest.approx(theirs, rel=1e-9)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gauss = Gaussian(Sensitivity(1, 3, 9, 3), 0, 40)
    assert float(gauss.loss.rho or 0) == pytest.approx(dp.m.make_gaussian(*space, scale=40.0).map(3.0), rel=1e-9)


def test_laplace_price_is_the_largest_ratio_of_the_mass() -> None:
    noise = Laplace(Sensitivity(1, 3, 9, 3), 0, 7, 2)
    mass = stats.dlaplace(2 / 7).pmf(np.arange(-60, 61))
    ratios = np.log(mass[3:] / mass[:-3])
    assert float(noise.loss.epsilon or 0) == pytest.approx(np.abs(ratios).max(), rel=1e-9)
