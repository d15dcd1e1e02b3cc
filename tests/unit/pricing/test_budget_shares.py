"""Tiles share a budget: never more than they have, and with the errors that theory predicts for known shapes."""

from itertools import combinations

import numpy as np
import pytest

from dpsql.pricing.workloads import LEAST_SHARE, STEPS, Marginals, Objective, _value_and_slope, objective_of, shares

KEYS = (5, 10, 12)
CUBE = Marginals(KEYS, tuple(tile for count in range(4) for tile in combinations(range(3), count)))
ROLLUP = Marginals(KEYS, ((0, 1, 2), (0, 1), (0,), ()))
PAIRS = Marginals((2, 5, 8, 12, 50), (*((key,) for key in range(5)), *list(combinations(range(5), 2))[:7]))


def after(marginals: Marginals, power: int, objective: Objective) -> np.ndarray:
    """Return the variance of a cell of each tile; 1 if measured separately."""
    count = len(marginals.tiles)
    chosen = shares(marginals, (1.0,) * count, power, objective)
    assert sum(chosen) <= count and min(chosen) >= LEAST_SHARE - 1 / STEPS
    return marginals.variances_after(1 / np.array([float(share) for share in chosen]) ** power)


@pytest.mark.parametrize(
    ("marginals", "power", "gain"),
    [(CUBE, 1, 2.8), (CUBE, 2, 7.5), (ROLLUP, 1, 1.95), (ROLLUP, 2, 3.8), (PAIRS, 1, 2.0), (PAIRS, 2, 3.2)],
    ids=["cube rho", "cube epsilon", "rollup rho", "rollup epsilon", "pairs rho", "pairs epsilon"],
)
def test_the_largest_relative_error_falls_as_expected(marginals: Marginals, power: int, gain: float) -> None:
    apart = objective_of(marginals, np.ones(len(marginals.tiles)), Objective.RELATIVE)
    assert apart / objective_of(marginals, after(marginals, power, Objective.RELATIVE), Objective.RELATIVE) >= gain


@pytest.mark.parametrize(
    ("marginals", "power", "gain"),
    [(CUBE, 1, 1.19), (CUBE, 2, 1.4), (ROLLUP, 1, 1.09), (ROLLUP, 2, 1.14), (PAIRS, 1, 1.3), (PAIRS, 2, 1.6)],
    ids=["cube rho", "cube epsilon", "rollup rho", "rollup epsilon", "pairs rho", "pairs epsilon"],
)
def test_the_mean_error_falls_as_expected(marginals: Marginals, power: int, gain: float) -> None:
    apart = objective_of(marginals, np.ones(len(marginals.tiles)), Objective.ABSOLUTE)
    assert apart / objective_of(marginals, after(marginals, power, Objective.ABSOLUTE), Objective.ABSOLUTE) >= gain


@pytest.mark.parametrize("objective", [Objective.RELATIVE, Objective.ABSOLUTE])
@pytest.mark.parametrize("power", [1, 2])
def test_no_share_of_a_grid_is_better_for_two_tiles(power: int, objective: Objective) -> None:
    marginals = Marginals((6,), ((0,), ()))
    chosen = objective_of(marginals, after(marginals, power, objective), objective)
    for first in np.linspace(LEAST_SHARE, 2 - LEAST_SHARE, 60):
        other = marginals.variances_after(1 / np.array([first, 2 - first]) ** power)
        assert chosen <= objective_of(marginals, other, objective) * 1.01


@pytest.mark.parametrize("sharpness", [0.0, 8.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_is_that_of_the_value(sharpness: float, weighted: bool) -> None:
    generator = np.random.default_rng(2)
    even, start = generator.uniform(1, 3, 8), generator.normal(size=8)
    weights = generator.uniform(0.5, 4, 8) if weighted else np.ones(8)
    _, slope = _value_and_slope(CUBE, even, 2, sharpness, start, weights)
    for place in range(8):
        step = np.zeros(8)
        step[place] = 1e-5
        more, less = (_value_and_slope(CUBE, even, 2, sharpness, start + sign * step, weights)[0] for sign in (1, -1))
        assert slope[place] == pytest.approx((more - less) / 2e-5, rel=1e-4, abs=1e-7)
