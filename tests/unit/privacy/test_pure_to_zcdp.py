"""Pure privacy in zCDP: the exact rate of a randomised bit, of discrete Laplace noise, and of several entries of it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.laplace import Laplace, entry_moved, steps_moved
from dpsql.privacy.mechanisms.partition_selection import optimal
from dpsql.privacy.pure_to_zcdp import pure_of_rho, recomputed_rho_of_pure, rho_of_pure

EPSILONS = [Fraction(1, 10**20), Fraction(1, 10**6), Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(12), Fraction(159),
            Fraction(160), Fraction(5000)]  # fmt: skip
ORDERS = [1.0001, 1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 40.0, 200.0]


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Renyi divergence of two laws given by logarithms."""
    terms = order * p + (1 - order) * q
    return float((terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1))


def bit(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the two laws of a randomised bit."""
    both = np.array([0.0, -epsilon]) - math.log1p(math.exp(-epsilon))
    return both, both[::-1]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_both_roads_round_up_the_same_number(epsilon: Fraction) -> None:
    told = rho_of_pure(epsilon)
    assert told == recomputed_rho_of_pure(epsilon)
    with mpmath.workdps(120):
        exact = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        exact *= mpmath.tanh(exact / 2)
        assert exact <= mpmath.mpf(told.numerator) / told.denominator <= exact * (1 + mpmath.mpf(10) ** -15)
    assert told <= epsilon**2 / 2


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_no_order_of_a_randomised_bit_costs_more_and_order_one_costs_as_much(epsilon: float) -> None:
    rho = float(rho_of_pure(Fraction(epsilon)))
    for order in ORDERS:
        assert divergence(*bit(epsilon), order) <= order * rho * (1 + 1e-9)
    assert divergence(*bit(epsilon), 1.0001) >= 0.9998 * rho * 1.0001 - 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_the_way_back_stays_below_and_is_tight(epsilon: Fraction) -> None:
    rho = rho_of_pure(epsilon)
    found = pure_of_rho(rho)
    assert rho_of_pure(found) <= rho
    assert found >= epsilon * (1 - Fraction(1, 10**9)) or epsilon == Fraction(1, 10**20)
    assert rho_of_pure(found * Fraction(1_000_001, 1_000_000)) > rho


def shifted(noise: Laplace, moved: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the law of discrete Laplace noise and of the same law `moved` steps away."""
    reach = math.ceil(60 * float(noise.noise_scale)) + 40
    z = np.arange(-reach, reach + moved + 1)
    rate = noise.s / noise.t
    normal = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
    return normal - rate * np.abs(z), normal - rate * np.abs(z - moved)


@pytest.mark.parametrize(("t", "s"), [(1, 2), (1, 1), (3, 1), (10, 1)])
@pytest.mark.parametrize("moved", [1, 2, 5])
def test_laplace_noise_costs_no_more_at_any_order_and_exactly_that_at_one_step(t: int, s: int, moved: int) -> None:
    noise = Laplace(Sensitivity(1, moved, moved**2, moved), 0, t, s)
    rho = float(noise.loss.rho or 0)
    for order in ORDERS:
        assert divergence(*shifted(noise, moved), order) <= order * rho * (1 + 1e-8)
    if moved == 1:
        assert divergence(*shifted(noise, 1), 1.0001) >= 0.9997 * rho


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_entries_together_cost_no_more_than_is_charged_however_they_move(shift: int) -> None:
    """Every way in which up to three entries may move within the norms, on the grid of the noise."""
    unit = 1 << shift
    for linf, l1 in ((1, 3), (2, 3), (3, 3), (4, 7), (5, 12)):
        noise = Laplace(Sensitivity(3, l1, 3 * linf * linf, linf), shift, 5, 3)
        worst = Fraction(0)
        for moves in product(range(linf + 1), repeat=3):
            if sum(moves) <= l1:
                steps = [-(-move // unit) for move in moves]  # from just below a grid line
                worst = max(worst, sum(rho_of_pure(Fraction(3, 5) * step) for step in steps))
        told = noise.loss.rho
        assert told is not None and worst <= told
        assert told == noise.recomputed_loss().rho
        if shift == 0 and l1 % linf == 0:
            assert told - worst < Fraction(1, 10**50), "the charge is reached"


def test_entries_that_move_little_are_charged_for_themselves() -> None:
    """Twenty groups of one row: twenty times one group, not four hundred times."""
    one, many = (Laplace(Sensitivity(n, n, n, 1), 0, 10, 1).loss.rho for n in (1, 20))
    assert one is not None and many == 20 * one


@pytest.mark.parametrize(
    "moved",
    [
        Sensitivity(1, 1, 1, 1),
        Sensitivity(20, 20, 20, 1),
        Sensitivity(3, 7, 19, 4),
        Sensitivity(2, 1 << 50, 1 << 99, 1 << 49),
    ],
)
@pytest.mark.parametrize("rho", [Fraction(1, 10**9), Fraction(1, 200), Fraction(1), Fraction(40)])
def test_noise_for_rho_spends_it_and_no_more(moved: Sensitivity, rho: Fraction) -> None:
    noise = laplace.noise_for_rho(moved, rho)
    assert isinstance(noise, Laplace) and noise.loss == noise.recomputed_loss()
    assert noise.loss.rho is not None and rho * Fraction(999, 1000) < noise.loss.rho <= rho
    plain = laplace.noise_for(moved, noise.loss.epsilon or Fraction(1))
    assert plain.noise_scale * Fraction(2) ** plain.shift <= noise.noise_scale * Fraction(2) ** noise.shift * Fraction(
        1001, 1000
    )
    for wrong in (Fraction(0), Fraction(-1), 1.0):
        with pytest.raises(ValueError):
            laplace.noise_for_rho(moved, wrong)  # type: ignore[arg-type]


def test_entries_move_no_further_than_all_together() -> None:
    for shift in range(5):
        moved = Sensitivity(7, 9, 20, 5)
        assert entry_moved(moved, shift) == -(-5 // (1 << shift)) <= steps_moved(moved, shift)
    assert entry_moved(Sensitivity(3, 2, 4, 9), 0) == 2


def test_partition_selection_uses_all_of_its_rho() -> None:
    rho = Fraction(1, 10)
    rule = optimal("n", 4, PrivacyLoss(None, Fraction(1, 10**6), rho))
    assert rho * Fraction(999, 1000) < (rule.loss.rho or 0) <= rho
    assert rule.recomputed_loss().rho == rule.loss.rho
    assert rule.epsilon_per_key**2 / 2 * 4 > rho, "more epsilon than epsilon**2 / 2 would allow"
