"""Laplace noise has the least scale that its price permits, the same price in both computations, and the errors of its law."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from dpsql.errors.exceptions import Refusal
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


@pytest.mark.parametrize(("t", "s"), [(1, 3), (7, 3), (MOST_SCALE, 1)])
@pytest.mark.parametrize("probability", [Fraction(1, 10**40), Fraction(1, 1000), Fraction(2, 5), Fraction(1)], ids=str)
def test_the_tail_point_is_the_first_one_within_a_probability(t: int, s: int, probability: Fraction) -> None:
    noise = Laplace(LONE, 0, t, s)
    point = noise.tail_point(probability)
    assert noise.upper_tail(point) <= probability and (point == 1 or noise.upper_tail(point - 1) > probability)


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
