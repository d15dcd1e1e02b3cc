"""Laplace noise has the least scale that its price permits, the same price in both computations, and the errors of its law."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.laplace import (
    MOST_SCALE,
    MOST_SHIFT,
    Laplace,
    SummedLaplace,
    entry_moved,
    noise_for,
    noise_for_rho,
    steps_moved,
    vector_rho,
)
from dpsql.privacy.mechanisms.weighted_sums import weighted

LONE = Sensitivity(1, 1, 1, 1)
WIDE = Sensitivity(3, 3 << 52, 3 << 104, 1 << 52)
MOVES = [LONE, Sensitivity(5, 5, 5, 1), Sensitivity(3, 7, 19, 4), Sensitivity(2, 199, 19801, 100), WIDE]
CONFIDENCES = [0.5, 0.9, 0.95, 0.999]
UNIFORM = (np.arange(20_000) + 0.5) / 20_000


def laplace(noise: Noise) -> Laplace:
    assert isinstance(noise, Laplace)
    return noise


def summed(noise: Laplace, count: int) -> SummedLaplace:
    law = noise.summed(count, False)
    assert isinstance(law, SummedLaplace)
    return law


@pytest.mark.parametrize(
    ("shift", "t", "s"),
    [(0, 0, 1), (0, 1, 0), (0, MOST_SCALE + 1, 1), (0, 1, MOST_SCALE + 1), (-1, 1, 1), (MOST_SHIFT + 1, 1, 1)],
)
def test_scales_beyond_the_limits_are_refused(shift: int, t: int, s: int) -> None:
    with pytest.raises(ValueError, match=f"not a Laplace scale: t={t}, s={s}, shift={shift}"):
        Laplace(LONE, shift, t, s)


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
@pytest.mark.parametrize(("l0", "l1", "linf"), [(1, 3, 3), (2, 2, 1), (2, 5, 4), (3, 6, 4), (3, 7, 5)])
def test_floored_vectors_reach_the_claimed_steps_and_no_more(shift: int, l0: int, l1: int, linf: int) -> None:
    """Every vector with these norms from every position between grid lines; entries are alike, so one entry at a time is
    enough."""
    unit = 1 << shift
    most = [max((start + move) // unit - start // unit for start in range(unit)) for move in range(linf + 1)]
    moves = [move for move in product(range(linf + 1), repeat=l0) if sum(move) <= l1]
    sensitivity = Sensitivity(l0, l1, l1 * linf, linf)
    assert max(sum(most[entry] for entry in move) for move in moves) == steps_moved(sensitivity, shift)
    assert max(most[entry] for move in moves for entry in move) == entry_moved(sensitivity, shift)


def test_the_claim_covers_vectors_whose_largest_entry_is_small() -> None:
    """Three entries of 3, 3 and 1 cross three grid lines that are 4 apart, one each; the claim ignores the largest entry."""
    assert steps_moved(Sensitivity(3, 7, 21, 3), 2) == 4


def test_no_entry_moves_further_than_all_together() -> None:
    assert entry_moved(Sensitivity(4, 3, 9, 100), 0) == 3
    assert entry_moved(Sensitivity(1, 9, 81, 9), 3) == 2 == steps_moved(Sensitivity(1, 9, 81, 9), 3)


@pytest.mark.parametrize("moved", MOVES, ids=str)
@pytest.mark.parametrize(("shift", "t", "s"), [(0, 7, 3), (0, 1, 2), (1, 10, 1), (3, 5, 1), (50, 40, 3)])
def test_both_roads_have_one_price(moved: Sensitivity, shift: int, t: int, s: int) -> None:
    noise, rate = Laplace(moved, shift, t, s), Fraction(s, t)
    steps = steps_moved(moved, shift)
    assert noise.loss == noise.recomputed_loss()
    assert noise.loss == PrivacyLoss(steps * rate, Fraction(0), vector_rho(rate, steps, entry_moved(moved, shift)))


@pytest.mark.parametrize("moved", MOVES, ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**5), Fraction(1, 3), Fraction(1), Fraction(70)], ids=str)
def test_noise_is_the_least_on_the_finest_grid_that_holds_it(moved: Sensitivity, epsilon: Fraction) -> None:
    noise = laplace(noise_for(moved, epsilon))
    least = steps_moved(moved, noise.shift) / epsilon
    assert least <= noise.noise_scale <= least + Fraction(1, noise.s)
    assert noise.loss.epsilon is not None and noise.loss.epsilon <= epsilon
    assert noise.shift == 0 or steps_moved(moved, noise.shift - 1) / epsilon > MOST_SCALE


@pytest.mark.parametrize(
    ("epsilon", "noise"),
    [
        (Fraction(1, 10), Laplace(LONE, 0, 10, 1)),
        (Fraction(4, 6), Laplace(LONE, 0, 3, 2)),
        (Fraction(1, MOST_SCALE), Laplace(LONE, 0, MOST_SCALE, 1)),
        (Fraction(MOST_SCALE), Laplace(LONE, 0, 1, MOST_SCALE)),
        (Fraction(10**20), Laplace(LONE, 0, 1, MOST_SCALE)),
        (Fraction(MOST_SCALE + 1, 1), Laplace(LONE, 0, 1, MOST_SCALE)),
        (Fraction(MOST_SCALE + 1, MOST_SCALE), Laplace(LONE, 0, 1, 1)),
    ],
    ids=str,
)
def test_short_scales_are_exact_and_others_are_rounded_up(epsilon: Fraction, noise: Laplace) -> None:
    assert noise_for(LONE, epsilon) == noise


def test_long_scales_are_rounded_up_by_less_than_a_part_of_the_limit() -> None:
    epsilon = Fraction(10**15 + 37, 3 * 10**15)
    noise = laplace(noise_for(LONE, epsilon))
    assert 0 <= noise.noise_scale - 1 / epsilon < Fraction(3, MOST_SCALE)


@pytest.mark.parametrize("moved", MOVES, ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 10**5), Fraction(1, 3), Fraction(5)], ids=str)
def test_noise_for_rho_costs_at_most_that_and_hardly_less(moved: Sensitivity, rho: Fraction) -> None:
    noise = laplace(noise_for_rho(moved, rho))
    assert noise.loss.rho is not None and rho * (1 - Fraction(1, 10**6)) < noise.loss.rho <= rho
    assert noise.shift == 0 or noise.noise_scale > MOST_SCALE >> 2, "no coarser than the limit of scales asks for"


def test_no_grid_is_so_coarse_that_noise_is_any_size() -> None:
    """On the coarsest grid each touched entry moves by one step, so a limit on scales is a limit on entries."""
    crowd = Sensitivity(10**9, 10**9, 10**9, 1)
    with pytest.raises(Refusal) as caught:
        noise_for(crowd, Fraction(1, 10**9))
    assert caught.value.slug == "noise_too_large"
    with pytest.raises(Refusal) as caught:
        noise_for_rho(crowd, Fraction(1, 10**20))
    assert caught.value.slug == "noise_too_large"
    widest = MOST_SHIFT + 40
    assert laplace(noise_for(Sensitivity(1, 1 << widest, 1 << 2 * widest, 1 << widest), Fraction(1))).shift == 127
    with pytest.raises(Refusal):
        noise_for(Sensitivity(1, 2 << widest, 4 << 2 * widest, 2 << widest), Fraction(1))


def test_the_tail_is_rounded_up() -> None:
    """q**k / (1 + q) with q = exp(-1) between 36 and 37 hundredths, to 30 digits."""
    q = Fraction(367879441171442321595523770161, 10**30)
    exact = Laplace(LONE, 0, 1, 1).upper_tail(1)
    assert q / (1 + q) < exact < (q + Fraction(1, 10**30)) / (1 + q)


@pytest.mark.parametrize(("t", "s"), [(1, 3), (7, 3), (MOST_SCALE, 1)])
@pytest.mark.parametrize("probability", [Fraction(1, 10**40), Fraction(1, 1000), Fraction(2, 5), Fraction(1)], ids=str)
def test_the_tail_point_is_the_first_one_within_a_probability(t: int, s: int, probability: Fraction) -> None:
    noise = Laplace(LONE, 0, t, s)
    point = noise.tail_point(probability)
    assert noise.upper_tail(point) <= probability and (point == 1 or noise.upper_tail(point - 1) > probability)


WEIGHTS = [
    [1.0, 1.0], [1.0, 1.0 - 1e-7], [1.25, 0.25], [6.0, 5.0], [2.0, 1e-9],
    [1.0, 1.0, 1.0], [3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [2.0, 1.0, 1.0],
    [1.0] * 4, [2.0] * 5, [0.5] * 9, [3.0, 2.0, 1.0, 0.5], [4.0, 4.0, 4.0, 4.0, 1.0],
]  # fmt: skip


def transform(weights: list[float]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return midpoints of angles, the characteristic function of the weighted sum of Laplace variables of scale 1, and the step
    of angles."""
    step = 400 / max(weights) / 400_000
    angles = (np.arange(400_000) + 0.5) * step
    return angles, np.prod([1 / (1 + (weight * angles) ** 2) for weight in weights], axis=0), step


def tail_of(weights: list[float], height: float) -> float:
    """Return P(|weighted sum| > height) by the inversion formula."""
    angles, values, step = transform(weights)
    return 1 - 2 / np.pi * float(np.sum(values * np.sin(angles * height) / angles)) * step


def mean_of(weights: list[float]) -> float:
    """Return E|weighted sum|, which is 2 / pi times the integral of (1 - characteristic function) / angle**2."""
    angles, values, step = transform(weights)
    return 2 / np.pi * (float(np.sum((1 - values) / angles**2)) * step + 1 / (angles[-1] + step / 2))


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda weights: " ".join(f"{weight:g}" for weight in weights))
def test_weighted_sums_have_the_quantiles_and_the_error_of_their_characteristic_function(weights: list[float]) -> None:
    """The scale is so wide that the discrete law and its limit agree."""
    noise = Laplace(LONE, 2, 1 << 30, 1)
    scale = 4.0 * (1 << 30)
    law, factor = weighted(noise, weights)
    for confidence in (0.5, 0.95):
        height = factor * law.half_width(confidence) / scale
        assert tail_of(weights, height) == pytest.approx(1 - confidence, abs=2e-3)
    assert factor * law.expected_error() / scale == pytest.approx(mean_of(weights), rel=2e-3)


@pytest.mark.parametrize("count", [2, 7])
def test_wide_sums_are_tabled_coarsely_with_the_same_variance(count: int) -> None:
    """On a grid of a thousand steps per deviation, no figure is off by more than that."""
    scale = 1 << 30
    law = summed(Laplace(LONE, 0, scale, 1), count)
    deviation = sqrt(2 * count) * scale
    drawn = law.quantiles(UNIFORM)
    assert np.std(drawn) == pytest.approx(deviation, rel=5e-3) == pytest.approx(law.standard_deviation(), rel=5e-3)
    wide, _ = weighted(Laplace(LONE, 0, scale, 1), [1.0] * count)
    for confidence in CONFIDENCES:
        width = law.half_width(confidence)
        exact = wide.half_width(confidence)
        assert exact <= width <= exact + 3 * deviation / 1024
        tail = float(law.upper_tail(round(width)))
        assert (1 - confidence) / 2 * 0.98 - 1e-3 < tail <= (1 - confidence) / 2 + 1e-12
        point = law.tail_point(Fraction(1 - confidence) / 2)
        assert abs(point - exact) <= 3 * deviation / 1024
    assert law.expected_error() == pytest.approx(wide.expected_error(), rel=1e-3)
