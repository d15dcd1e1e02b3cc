"""Pure privacy in zCDP: the exact rate of a randomised bit, and the inverse."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpsql.privacy.loss import PrivacyLoss, pure_of_rho, recomputed_rho_of_pure, rho_of_pure
from dpsql.privacy.mechanisms.partition_selection import optimal

EPSILONS = [Fraction(1, 10**20), Fraction(1, 10**6), Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(12), Fraction(159),
            Fraction(160), Fraction(5000)]  # fmt: skip
ORDERS = [1.0001, 1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 40.0, 200.0]


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Return the Renyi divergence of two laws given by logarithms."""
    terms = order * p + (1 - order) * q
    return float((terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1))


def bit(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return logarithms of the two laws of a randomised bit."""
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


def test_partition_selection_uses_all_of_its_rho() -> None:
    rho = Fraction(1, 10)
    rule = optimal("n", 4, PrivacyLoss(None, Fraction(1, 10**6), rho))
    assert rho * Fraction(999, 1000) < (rule.loss.rho or 0) <= rho
    assert rule.recomputed_loss().rho == rule.loss.rho
    assert rule.epsilon_per_key**2 / 2 * 4 > rho, "more epsilon than epsilon**2 / 2 would allow"
