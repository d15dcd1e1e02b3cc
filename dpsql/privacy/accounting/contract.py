"""Composition behind one contract: what losses add up to, and how much of them a budget (epsilon, delta) allows.

Two filters, valid for adaptively chosen mechanisms and parameters: exact sums of (epsilon, delta) (Rogers, Roth,
Ullman, Vadhan 2016, arXiv 1605.08294), and exact sums of rho with delta summed apart (Whitehouse, Ramdas, Rogers, Wu
2023, arXiv 2203.05481: approximate zCDP). The accountant of a ledger account is fixed when the account is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, nextafter, sqrt
from typing import Protocol

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.privacy.mechanisms.rational_bounds import ln_lower, ln_upper

UNITS = {"epsilon": 10**18, "delta": 10**18, "rho": 10**36}
"""Ledger units in one nat (epsilon, rho) or in probability one (delta)."""
_MOST_EPSILON = 10**6


class Accountant(Protocol):
    """One composition rule with the limits of one account; holds no state."""

    @property
    def kind(self) -> str:
        """The word of the policy: "pure" or "zcdp"."""

    @property
    def limits(self) -> dict[str, Fraction]:
        """What may be spent, by dimension."""

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """What a mechanism is charged, in ledger units rounded up. Raises Refusal loss_infinite."""

    def limit_units(self) -> dict[str, int]:
        """`limits` in ledger units, rounded down."""

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """An upper bound of the epsilon that `spent` ledger units amount to, with the delta of the budget."""

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """The loss a question that asks `epsilon` may spend; None: not what this accountant counts."""


@dataclass(frozen=True)
class Pure:
    """Sequential composition of (epsilon, delta)-DP: both add up (Dwork and Roth 2014, Theorem 3.16)."""

    epsilon: Fraction
    delta: Fraction

    kind = "pure"

    @property
    def limits(self) -> dict[str, Fraction]:
        """epsilon (nats) and delta of the budget."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """epsilon and delta in 10**-18, rounded up."""
        return _units({"epsilon": loss.epsilon, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        """Rounded down."""
        return _limit_units(self.limits)

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """The sum itself."""
        return _float_upper(Fraction(spent.get("epsilon", 0), UNITS["epsilon"]))

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """epsilon; rho is not counted. delta is asked for apart, by what needs it."""
        return PrivacyLoss(_positive(epsilon), Fraction(0), None)


@dataclass(frozen=True)
class Zcdp:
    """delta-approximate rho-zCDP: both add up (Bun and Steinke 2016, arXiv 1605.02065, Lemma 8.2).

    The delta of the budget is halved when the account is opened: one half converts rho to epsilon, the other is what
    key selections may spend. If everything is spent, all answers together are rho-zCDP but for an event of
    probability delta/2, so (epsilon, delta/2 + delta/2)-DP.
    """

    epsilon: Fraction
    delta: Fraction

    kind = "zcdp"

    @property
    def delta_conversion(self) -> Fraction:
        """The half of delta that turns rho into epsilon."""
        return self.delta / 2

    @property
    def limits(self) -> dict[str, Fraction]:
        """rho (nats) that converts to at most epsilon, and the other half of delta."""
        return {"rho": epsilon_to_rho(self.epsilon, self.delta_conversion), "delta": self.delta / 2}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """rho in 10**-36, delta in 10**-18, rounded up."""
        return _units({"rho": loss.rho, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        """Rounded down."""
        return _limit_units(self.limits)

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """rho converted with `delta_conversion`; within the limit never more than the budget's epsilon."""
        rho = Fraction(spent.get("rho", 0), UNITS["rho"])
        converted = rho_to_epsilon(rho, self.delta_conversion)
        return _float_upper(min(converted, self.epsilon) if rho <= self.limits["rho"] else converted)

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """rho = epsilon**2 / 2, which a pure epsilon-DP mechanism costs; epsilon is not counted."""
        return PrivacyLoss(None, Fraction(0), _positive(epsilon) ** 2 / 2)


def make_accountant(kind: str, epsilon: Fraction, delta: Fraction) -> Accountant:
    """The accountant `kind` ("pure", "zcdp") of a budget of epsilon (nats) and delta.

    Raises PolicyRefusal accountant_budget for an unknown kind, epsilon outside (0, 10**6], delta outside [0, 1), or
    zCDP without delta (rho-zCDP has no finite epsilon at delta = 0).
    """
    problem = ""
    if not (isinstance(epsilon, Fraction) and isinstance(delta, Fraction)):
        problem = "epsilon and delta are exact numbers"
    elif not 0 < epsilon <= _MOST_EPSILON:
        problem = f"epsilon must be above 0 and at most {_MOST_EPSILON}"
    elif not 0 <= delta < 1:
        problem = "delta must be at least 0 and below 1"
    elif kind == "zcdp" and delta < Fraction(1, 10**15):
        problem = "it needs delta of at least 1e-15"
    elif kind not in ("pure", "zcdp"):
        problem = "there are pure and zcdp"
    if problem:
        raise refuse("accountant_budget", accountant=kind, problem=problem)
    return Zcdp(epsilon, delta) if kind == "zcdp" else Pure(epsilon, delta)


def _positive(epsilon: Fraction) -> Fraction:
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise ValueError(f"epsilon must be a Fraction > 0, not {epsilon!r}")
    return epsilon


def _units(loss: Mapping[str, Fraction | None], accountant: str) -> dict[str, int]:
    charge = {}
    for dimension, value in loss.items():
        if value is None:
            raise refuse("loss_infinite", accountant=accountant)
        charge[dimension] = ceil(value * UNITS[dimension])
    return charge


def _limit_units(limits: Mapping[str, Fraction]) -> dict[str, int]:
    return {dimension: floor(value * UNITS[dimension]) for dimension, value in limits.items()}


def _float_upper(value: Fraction) -> float:
    """The smallest float >= value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)


@lru_cache(maxsize=256)
def rho_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon (nats) such that rho-zCDP implies (epsilon, delta)-DP; 0 < delta < 1; rounded up.

    epsilon = inf over alpha > 1 of  rho alpha + ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1)
    (CKS20, arXiv 2004.00010, Proposition 12 and Corollary 13, solved for epsilon). Every alpha gives a true bound: the
    best one is looked for in floats, the formula is evaluated in rationals that err upward. Never below 0.
    """
    _check_delta(delta)
    if rho == 0:
        return Fraction(0)
    alpha = _best_alpha(rho, delta)
    epsilon = rho * alpha + _fixed_cost(alpha, delta)
    return max(Fraction(0), Fraction(ceil(epsilon * 10**30), 10**30))


@lru_cache(maxsize=256)
def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho such that rho-zCDP implies (epsilon, delta)-DP; the largest but for rounding down (below 10**-9 of it).

    For a fixed alpha the bound of `rho_to_epsilon` is linear in rho, so rho = (epsilon - its constant part) / alpha.
    0 < delta < 1, 0 < epsilon <= 10**6. `rho_to_epsilon` of the result is never above epsilon.
    """
    _check_delta(delta)
    if not 0 < epsilon <= _MOST_EPSILON:
        raise ValueError("epsilon out of range")
    low, high = 0.0, 2 * float(epsilon) + 100  # a large delta alone allows some rho, whatever epsilon is
    for _ in range(120):
        middle = (low + high) / 2
        x = float(_best_alpha(Fraction(middle), delta)) - 1 if middle > 0 else inf
        low, high = (middle, high) if _epsilon_float(middle, x, delta) <= float(epsilon) else (low, middle)
    rho = Fraction(low)
    if rho > 0:
        alpha = _best_alpha(rho, delta)
        rho = max(Fraction(0), (epsilon - _fixed_cost(alpha, delta)) / alpha)
    rho = Fraction(floor(rho * 10**36), 10**36)
    while rho > 0 and rho_to_epsilon(rho, delta) > epsilon:
        rho = Fraction(floor(rho * (10**12 - 1) * 10**24), 10**36)
    return rho


def _check_delta(delta: Fraction) -> None:
    if not isinstance(delta, Fraction) or not Fraction(1, 10**100) <= delta < 1:
        raise ValueError(f"delta must be a Fraction in (0, 1), not {delta!r}")


def _fixed_cost(alpha: Fraction, delta: Fraction) -> Fraction:
    """ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1), rounded up."""
    return ln_upper(1 - 1 / alpha) + (ln_upper(1 / delta) - ln_lower(alpha)) / (alpha - 1)


def _best_alpha(rho: Fraction, delta: Fraction) -> Fraction:
    """Near the root of d epsilon / d alpha = rho - (ln(1/delta) - ln alpha) / (alpha - 1)**2, which is unique."""
    most = -log(float(delta))
    small = min(max(float(min(rho, Fraction(10**9))), 1e-300), 1e9)
    low, high = 0.0, min(sqrt(most / small), expm1(most))
    for _ in range(80):
        middle = (low + high) / 2
        below = small * middle * middle + log1p(middle) < most
        low, high = (middle, high) if below else (low, middle)
    return 1 + Fraction(max(high, 1e-9))


def _epsilon_float(rho: float, x: float, delta: Fraction) -> float:
    """The bound at alpha = 1 + x in floats, to steer the search only."""
    if rho <= 0:
        return 0.0
    return rho * (1 + x) + log(x) - log1p(x) + (-log(float(delta)) - log1p(x)) / x


def gaussian_as_pure(noise: Noise, delta: Fraction) -> PrivacyLoss:
    """What `noise` costs under (epsilon, delta) accounting when `delta` is spent on it.

    Its exact rho stays beside the converted epsilon. Noise that has a pure epsilon is charged that, and no delta.
    """
    loss = noise.loss
    if loss.epsilon is not None:
        return loss
    if loss.rho is None:
        raise refuse("loss_infinite", accountant="pure")
    return PrivacyLoss(rho_to_epsilon(loss.rho, delta), loss.delta + delta, loss.rho)


def advanced_composition(losses: Iterable[tuple[float, float]], delta: float) -> tuple[float, float]:
    """(epsilon, delta) of all `losses` (epsilon_i, delta_i) together when `delta` > 0 more is spent; for reports only.

    The better of the plain sum and  sum epsilon_i tanh(epsilon_i / 2) + sqrt(2 ln(1/delta) sum epsilon_i**2)
    (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776, Theorem 3.5; (e**x - 1) / (e**x + 1) = tanh(x / 2)). It holds for
    parameters fixed in advance, which those of a session are not: it never decides whether a charge fits.
    """
    pairs = list(losses)
    plain = sum(epsilon for epsilon, _ in pairs)
    drift = sum(epsilon * -expm1(-epsilon) / (1 + exp(-epsilon)) for epsilon, _ in pairs)
    spread = sqrt(2 * -log(delta) * sum(epsilon * epsilon for epsilon, _ in pairs))
    spent = sum(of for _, of in pairs)
    return (plain, spent) if plain <= drift + spread else (drift + spread, spent + delta)
