"""Exact sums, conversions that err on the safe side, and refusal of infinite losses."""

import math
from fractions import Fraction

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from support.accountant_contract import AccountantContract

from dpsql.errors.exceptions import PolicyRefusal, Refusal
from dpsql.privacy import accounting
from dpsql.privacy.accounting import Pure, Zcdp, advanced_composition, epsilon_to_rho, make_accountant, rho_to_epsilon
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian as gaussians
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.registry import MECHANISMS

MILLIONTH = Fraction(1, 10**6)
rhos = st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**12)
deltas = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(1, 2), max_denominator=10**12)


def best_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of CKS20, Corollary 13, by numeric search over log(alpha - 1)."""

    def bound(u: float) -> float:
        x = math.exp(u)
        return rho * (1 + x) + u - math.log1p(x) + (-math.log(delta) - math.log1p(x)) / x

    starts = [optimize.minimize_scalar(bound, bracket=(u, u + 1)).fun for u in (-6, -2, 0, 2, 5)]
    return max(0.0, min(starts))


@settings(max_examples=60, deadline=None)
@given(rhos, deltas)
def test_conversion_is_the_optimum_rounded_up(rho: Fraction, delta: Fraction) -> None:
    best = best_epsilon(float(rho), float(delta))
    ours = float(rho_to_epsilon(rho, delta))
    assert best * (1 - 1e-9) - 1e-9 <= ours <= best * (1 + 1e-6) + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**9), deltas)
def test_the_way_back_is_safe_and_tight(epsilon: Fraction, delta: Fraction) -> None:
    rho = epsilon_to_rho(epsilon, delta)
    assert rho > 0
    assert rho_to_epsilon(rho, delta) <= epsilon
    assert rho_to_epsilon(rho * Fraction(1_000_001, 1_000_000), delta) > epsilon
    assert rho_to_epsilon(rho, delta) >= epsilon * (1 - Fraction(1, 10**6))


def test_epsilon_for_a_rho_equals_published_values() -> None:
    # opendp's cdp_epsilon(1/32, 1e-3), and sigma = 10 at 1e-6.
    assert float(rho_to_epsilon(Fraction(1, 32), Fraction(1, 1000))) == pytest.approx(0.6880024554878, rel=1e-9)
    assert float(rho_to_epsilon(Fraction(1, 200), MILLIONTH)) == pytest.approx(0.42994, rel=1e-4)
    assert rho_to_epsilon(Fraction(0), MILLIONTH) == 0
    loose = 1 / 200 + 2 * math.sqrt(math.log(1e6) / 200)
    assert float(rho_to_epsilon(Fraction(1, 200), MILLIONTH)) < 0.85 * loose
    assert rho_to_epsilon(Fraction(10**12), MILLIONTH) > 10**12


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), 0.1, float("nan")])
def test_conversions_refuse_deltas_out_of_range(delta: object) -> None:
    with pytest.raises(ValueError):
        rho_to_epsilon(Fraction(1), delta)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        epsilon_to_rho(Fraction(1), delta)  # type: ignore[arg-type]


def test_compositions_are_priced_no_lower_than_by_tighter_accounting() -> None:
    """k Gaussians of sigma 10: dpsql's filter is above the privacy loss distribution, by at most 10 % at 100 of them."""
    for count in (1, 10, 100):
        event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(10.0), count)
        ours = float(rho_to_epsilon(Fraction(count, 200), MILLIONTH))
        for other in (PLDAccountant(value_discretization_interval=1e-3), RdpAccountant()):
            assert other.compose(event).get_epsilon(1e-6) <= ours * (1 + 1e-3)
    assert ours <= 1.1 * PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(1e-6)


ACCOUNTANTS = [make_accountant("pure", Fraction(10), MILLIONTH), make_accountant("zcdp", Fraction(10), MILLIONTH)]


class TestPure(AccountantContract):
    word = "pure"


class TestZcdp(AccountantContract):
    word = "zcdp"


def test_every_accountant_has_a_suite() -> None:
    suites = {suite.word for suite in AccountantContract.__subclasses__() if suite.__module__ == __name__}
    assert suites == set(accounting.ACCOUNTANTS)


def test_laplace_noise_costs_what_was_asked_under_every_accountant() -> None:
    pure, zcdp = ACCOUNTANTS
    asked = [one.request(Fraction(1, 10)) for one in ACCOUNTANTS]
    noises = [
        one.noise_for(MECHANISMS["laplace"], Sensitivity(1, 1, 1, 1), part, Fraction(0))
        for one, part in zip(ACCOUNTANTS, asked, strict=True)
    ]
    assert noises[0].loss.epsilon == Fraction(1, 10) and pure.units(noises[0].loss) == {"epsilon": 10**17, "delta": 0}
    assert zcdp.units(noises[1].loss)["rho"] == pytest.approx(5 * 10**33, rel=1e-9)
    assert zcdp.units(noises[1].loss)["rho"] <= 5 * 10**33
    assert noises[1].noise_scale < noises[0].noise_scale


def test_a_tenth_ten_times_is_one() -> None:
    tenth = make_accountant("pure", Fraction(1), Fraction(0))
    spent = sum(tenth.units(PrivacyLoss.pure(Fraction(1, 10)))["epsilon"] for _ in range(10))
    assert spent == tenth.limit_units()["epsilon"]


def test_limits_are_rounded_down() -> None:
    accountant = make_accountant("pure", Fraction(1, 3), Fraction(2, 3))
    assert accountant.limit_units() == {"epsilon": 10**18 // 3, "delta": 2 * 10**18 // 3}


def test_unknown_costs_infinity_and_is_refused() -> None:
    pure, zcdp = ACCOUNTANTS
    gauss = gaussians.noise_for(Sensitivity(1, 1, 1, 1), Fraction(1, 200))
    for accountant, loss in ((pure, gauss.loss), (zcdp, PrivacyLoss(Fraction(1), Fraction(0), None))):
        with pytest.raises(Refusal) as caught:
            accountant.units(loss)
        assert caught.value.slug == "loss_infinite" and not caught.value.charged
    assert zcdp.units(gauss.loss)["rho"] == 5 * 10**33


def test_gaussian_noise_is_charged_epsilon_and_delta_under_sequential_accounting() -> None:
    delta = Fraction(1, 10**7)
    rho = epsilon_to_rho(Fraction(1, 2), delta)
    pure = ACCOUNTANTS[0]
    loss = pure.charge(gaussians.noise_for(Sensitivity(2, 2, 2, 1), rho).loss, delta)
    assert loss.epsilon is not None and loss.rho is not None and loss.delta == delta
    assert Fraction(499, 1000) < loss.epsilon <= Fraction(1, 2) and loss.rho <= rho
    assert pure.units(loss)["delta"] == 10**11
    plain = laplaces.noise_for(Sensitivity(2, 2, 2, 1), Fraction(1, 2))
    assert pure.charge(plain.loss, delta) == plain.loss


def test_delta_of_zcdp_is_split_once() -> None:
    accountant = make_accountant("zcdp", Fraction(1), MILLIONTH)
    assert isinstance(accountant, Zcdp)
    assert accountant.limits["delta"] + accountant.delta_conversion == MILLIONTH
    assert accountant.limits["rho"] == epsilon_to_rho(Fraction(1), MILLIONTH / 2)
    assert isinstance(make_accountant("pure", Fraction(1), Fraction(0)), Pure)


@pytest.mark.parametrize(
    ("kind", "epsilon", "delta"),
    [
        ("zcdp", Fraction(1), Fraction(0)),
        ("pure", Fraction(0), Fraction(0)),
        ("pure", Fraction(-1), Fraction(0)),
        ("pure", Fraction(10**7), Fraction(0)),
        ("pure", Fraction(1), Fraction(1)),
        ("pure", Fraction(1), Fraction(-1)),
        ("pld", Fraction(1), Fraction(0)),
        ("pure", 1.0, Fraction(0)),
    ],
)
def test_impossible_budgets_refuse_the_policy(kind: str, epsilon: Fraction, delta: Fraction) -> None:
    with pytest.raises(PolicyRefusal):
        make_accountant(kind, epsilon, delta)


def test_advanced_composition_reports_the_better_sum() -> None:
    epsilon, delta = advanced_composition([(0.01, 0.0)] * 10_000, 1e-6)
    drift = 10_000 * 0.01 * math.tanh(0.005)
    assert epsilon == pytest.approx(drift + math.sqrt(2 * math.log(1e6) * 1.0))
    assert delta == 1e-6 and epsilon < 10
    assert advanced_composition([(1.0, 1e-9)] * 2, 1e-6) == (2.0, 2e-9)
