"""The smallest epsilon within a target: the one that bisection alone would find, with few price computations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.pricing.pricing import TargetSearch

LEAST, MOST = Fraction(1, 1000), Fraction(10)


def searched(width: Callable[[float], float], target: Fraction, most: Fraction = MOST) -> tuple[Fraction, int]:
    """Return the epsilon, and the number of prices computed, where bars at an epsilon are `width` wide."""
    asked: list[Fraction] = []

    def priced(epsilon: Fraction) -> Fraction:
        asked.append(epsilon)
        return epsilon

    return TargetSearch(priced, lambda epsilon: width(float(epsilon)), target).cheapest(LEAST, most), len(asked)


def halved(width: Callable[[float], float], target: Fraction) -> Fraction:
    low, high = LEAST, MOST
    while high - low > high / 1000:
        epsilon = Fraction(round((low + high) / 2 * 10**9), 10**9)
        low, high = (low, epsilon) if width(float(epsilon)) <= target else (epsilon, high)
    return high


@pytest.mark.parametrize("target", [Fraction(1, 3), Fraction(2), Fraction(70), Fraction(700)])
@pytest.mark.parametrize("power", [1.0, 0.98, 1.02], ids=["proportional", "slower", "faster"])
def test_few_prices_find_what_halving_finds(target: Fraction, power: float) -> None:
    def width(epsilon: float) -> float:
        return 3 * epsilon**-power

    epsilon, prices = searched(width, target)
    assert epsilon == halved(width, target) and width(float(epsilon)) <= target
    assert prices <= 12


@pytest.mark.parametrize("width", [lambda e: math.ceil(9 / e), lambda e: 5 * e**-0.5, lambda e: 3 / e + 0.1])
def test_bars_of_any_shape_take_more_prices_and_the_same_epsilon(width: Callable[[float], float]) -> None:
    epsilon, prices = searched(width, Fraction(7))
    assert epsilon == halved(width, Fraction(7)) and prices <= 30


def test_the_least_is_enough_for_a_wide_target() -> None:
    assert searched(lambda epsilon: 1 / epsilon, Fraction(5000)) == (LEAST, 1)


def test_a_target_out_of_reach_is_refused() -> None:
    with pytest.raises(Refusal, match="epsilon above 10"):
        searched(lambda epsilon: 1 / epsilon, Fraction(1, 11))
    with pytest.raises(Refusal, match="epsilon above 10"):
        searched(lambda epsilon: math.inf, Fraction(1))


def test_noise_that_rounds_to_nothing_is_passed_over() -> None:
    epsilon, _ = searched(lambda e: math.inf if e > 3 else 2 / e, Fraction(4))
    assert float(epsilon) == pytest.approx(0.5, rel=1e-3)
