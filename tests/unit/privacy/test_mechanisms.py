"""Prices of the additive mechanisms compared with those that other systems compute for the same noise."""

import sys
from fractions import Fraction
from math import comb, exp, inf, log

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from dpsql.privacy.accounting import RULES, compared, rho_to_epsilon
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace

dp.enable_features("contrib")


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


# --- Results of several composition rules for the same charges, compared with the exact optimum -----------------------


DELTA = Fraction(1, 10**6)


def optimal_epsilon(epsilon: float, charges: int, delta: float) -> float:
    """Return the least epsilon of `charges` epsilon-DP mechanisms under adaptive composition with fixed parameters, by bisection
    of the exact delta of as many randomised responses (Kairouz, Oh and Viswanath 2015, Theorem 3.3)."""

    def exact_delta(level: float) -> float:
        weights = ((comb(charges, low), (charges - low) * epsilon, low * epsilon) for low in range(charges + 1))
        return sum(n * max(0.0, exp(up) - exp(level + down)) for n, up, down in weights) / (1 + exp(epsilon)) ** charges

    low, high = 0.0, charges * epsilon
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if exact_delta(middle) <= delta else (middle, high)
    return high


def epsilons(charges: list[dict[str, Fraction]], delta: Fraction = DELTA) -> dict[str, float | None]:
    return {bound.accountant: bound.epsilon for bound in compared(charges, delta)}


@pytest.mark.parametrize(("epsilon", "charges"), [("0.1", 100), ("0.01", 400), ("1", 12), ("3", 2), ("0.5", 1)])
def test_no_rule_is_below_the_exact_optimum_and_the_loss_distribution_reaches_it(epsilon: str, charges: int) -> None:
    bounds = epsilons([{"epsilon": Fraction(epsilon), "delta": Fraction(0)}] * charges)
    exact = optimal_epsilon(float(epsilon), charges, float(DELTA))
    assert all(bound is not None and bound >= exact * (1 - 1e-9) for bound in bounds.values()), (bounds, exact)
    assert bounds["pld"] == pytest.approx(exact, rel=0.02)
    assert bounds["sequential"] == pytest.approx(charges * float(epsilon))
    assert bounds["renyi"] <= bounds["zcdp"] * (1 + 1e-3), "its curve is below that of zCDP at every order"
    assert bounds["advanced"] <= bounds["sequential"]


def test_many_small_charges_are_far_below_their_sum() -> None:
    bounds = epsilons([{"epsilon": Fraction(1, 100), "delta": Fraction(0)}] * 400)
    assert max(bounds["advanced"], bounds["renyi"], bounds["zcdp"], bounds["pld"]) < 0.4 * bounds["sequential"]


def test_charges_of_rho_are_added_and_converted_once() -> None:
    charges = [{"rho": Fraction(n, 1000), "delta": Fraction(0)} for n in (1, 5, 20)]
    bounds = epsilons(charges)
    once = rho_to_epsilon(Fraction(26, 1000), DELTA)
    each = sum(rho_to_epsilon(charge["rho"], DELTA / 3) for charge in charges)
    assert bounds["zcdp"] == pytest.approx(float(once)) and bounds["sequential"] == pytest.approx(float(each))
    assert bounds["zcdp"] <= bounds["renyi"] <= bounds["zcdp"] * 1.01
    assert bounds["pld"] is None


def test_deltas_of_charges_are_taken_from_the_delta_of_the_bound() -> None:
    charges = [{"epsilon": Fraction(1, 10), "delta": Fraction(4, 10**7)}] * 2
    wide, narrow = epsilons(charges), epsilons([{**charge, "delta": Fraction(0)} for charge in charges])
    assert wide["zcdp"] > narrow["zcdp"] and wide["renyi"] > narrow["renyi"]
    spent = epsilons(charges * 2)
    assert spent["zcdp"] == spent["renyi"] == inf


def test_nothing_spent_is_nothing_lost() -> None:
    assert set(epsilons([]).values()) == {0.0}
    assert set(epsilons([{"epsilon": Fraction(0), "delta": Fraction(0)}]).values()) == {0.0}


def test_only_rules_that_hold_for_chosen_questions_may_gate() -> None:
    assert {bound.accountant for bound in compared([], DELTA) if bound.gates} == {"sequential", "zcdp"}
    assert [bound.accountant for bound in compared([], DELTA, {"pld", "zcdp"})] == ["zcdp", "pld"]
    assert list(RULES) == ["sequential", "advanced", "renyi", "zcdp", "pld"]


@pytest.mark.parametrize("order", [1.001, 1.5, 2, 7.25, 64, 5000])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 2.0, 30.0])
def test_the_divergence_is_that_of_randomised_response(epsilon: float, order: float) -> None:
    from mpmath import mp, mpf

    from dpsql.privacy.accounting import _divergence

    with mp.workdps(60):
        p = mp.e ** mpf(epsilon) / (1 + mp.e ** mpf(epsilon))
        a = mpf(order)
        exact = float(mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1))
    found = _divergence(epsilon, order)
    assert exact - 1e-12 <= found <= exact * 1.001 + 1e-9
    assert found <= min(epsilon, order * epsilon**2 / 2) * (1 + 1e-12)


def test_without_the_extra_the_report_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    (bound,) = compared([{"epsilon": Fraction(1), "delta": Fraction(0)}], DELTA, {"pld"})
    assert bound.epsilon is None and "pip install" in bound.why


def test_the_optimum_of_one_charge_is_its_own() -> None:
    """This checks the reference itself: ln(e^epsilon - delta (1 + e^epsilon))."""
    assert optimal_epsilon(1.0, 1, 1e-3) == pytest.approx(log(exp(1) - 1e-3 * (1 + exp(1))))
