"""Conversion from zCDP to (epsilon, delta) and back, each rounded to the safe side; advanced composition for reports.

Comparison of composition rules over the same charges, for an owner's report.

Only two of the rules may decide whether a charge fits a budget, because they hold when an analyst chooses each query after
seeing answers (privacy filters: Rogers, Roth, Ullman and Vadhan 2016; for Renyi divergences of one order, so also for zCDP,
Feldman and Zrnic 2021). The others require all parameters to be fixed in advance, which a report about the past cannot know.

A charge to an account of epsilon belongs to some (epsilon, delta)-DP mechanism. The one with the largest loss is randomised
response (Kairouz, Oh and Viswanath 2015), whose Renyi divergences and loss distribution are used. A charge to an account of rho
means only that its Renyi divergences are at most rho alpha: no loss distribution follows from that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, sqrt
from typing import Any

from dpsql.privacy.loss import rho_of_pure
from dpsql.privacy.mechanisms.rational_bounds import ln_lower, ln_upper

MOST_EPSILON = 10**6
"""The largest epsilon (nats) of a budget."""


@lru_cache(maxsize=256)
def rho_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon (nats) such that rho-zCDP implies (epsilon, delta)-DP; 0 < delta < 1; rounded up.

    epsilon = inf over alpha > 1 of  rho alpha + ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1)
    (CKS20, arXiv 2004.00010, Proposition 12 and Corollary 13, solved for epsilon). Every alpha gives a valid bound: the
    best one is searched in floats, then the formula is evaluated in rationals that err upward. The result is at least 0.
    """
    _check_delta(delta)
    if rho == 0:
        return Fraction(0)
    alpha = _best_alpha(rho, delta)
    epsilon = rho * alpha + _fixed_cost(alpha, delta)
    return max(Fraction(0), Fraction(ceil(epsilon * 10**30), 10**30))


@lru_cache(maxsize=256)
def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho such that rho-zCDP implies (epsilon, delta)-DP, rounded down by less than 10**-9 of it.

    For a fixed alpha the bound of `rho_to_epsilon` is linear in rho, so rho = (epsilon - its constant part) / alpha.
    0 < delta < 1, 0 < epsilon <= 10**6. `rho_to_epsilon` of the result is never above epsilon.
    """
    _check_delta(delta)
    if not 0 < epsilon <= MOST_EPSILON:
        raise ValueError("epsilon out of range")
    low, high = 0.0, 2 * float(epsilon) + 100  # a large delta allows some rho by itself, whatever epsilon is
    for _ in range(120):
        middle = (low + high) / 2
        if middle in (low, high):  # no number lies between
            break
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
    """Return ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1), rounded up."""
    return ln_upper(1 - 1 / alpha) + (ln_upper(1 / delta) - ln_lower(alpha)) / (alpha - 1)


def _best_alpha(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an alpha near the root of d epsilon / d alpha = rho - (ln(1/delta) - ln alpha) / (alpha - 1)**2, which is unique."""
    most = -log(float(delta))
    small = min(max(float(min(rho, Fraction(10**9))), 1e-300), 1e9)
    low, high = 0.0, min(sqrt(most / small), expm1(most))
    for _ in range(80):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        below = small * middle * middle + log1p(middle) < most
        low, high = (middle, high) if below else (low, middle)
    return 1 + Fraction(max(high, 1e-9))


def _epsilon_float(rho: float, x: float, delta: Fraction) -> float:
    """Return the bound at alpha = 1 + x in floats, only to guide the search."""
    if rho <= 0:
        return 0.0
    return rho * (1 + x) + log(x) - log1p(x) + (-log(float(delta)) - log1p(x)) / x


def advanced_composition(losses: Iterable[tuple[float, float]], delta: float) -> tuple[float, float]:
    """Return (epsilon, delta) of all `losses` (epsilon_i, delta_i) together if `delta` > 0 more is spent; for reports only.

    The result is the smaller of the plain sum and  sum epsilon_i tanh(epsilon_i / 2) + sqrt(2 ln(1/delta) sum epsilon_i**2)
    (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776, Theorem 3.5; (e**x - 1) / (e**x + 1) = tanh(x / 2)). It holds for
    parameters fixed in advance, which those of a session are not: it never decides whether a charge fits.
    """
    pairs = list(losses)
    plain = sum(epsilon for epsilon, _ in pairs)
    drift = sum(epsilon * -expm1(-epsilon) / (1 + exp(-epsilon)) for epsilon, _ in pairs)
    spread = sqrt(2 * -log(delta) * sum(epsilon * epsilon for epsilon, _ in pairs))
    spent = sum(spent_delta for _, spent_delta in pairs)
    return (plain, spent) if plain <= drift + spread else (drift + spread, spent + delta)


# --- comparison -------------------------------------------------------------------------------------------------------


Charges = Sequence[Mapping[str, Fraction]]
"""For each charge "epsilon" or "rho", and "delta"."""
_FEWEST_STEPS, _STEP = 1000, 1e-3
"""Discretisation of loss distributions: a step is at most `_STEP`, and the smallest epsilon is at least `_FEWEST_STEPS` steps."""


@dataclass(frozen=True)
class Composition:
    """One rule's bound: all charges together are (`epsilon`, `delta`)-DP; `epsilon` is None if the rule gives no bound.

    `gates`: the rule holds for queries chosen after seeing answers, so it may decide whether a charge fits. `why`: the reason, in
    one sentence.
    """

    accountant: str
    epsilon: float | None
    delta: float
    gates: bool
    why: str


def compared(charges: Charges, delta: Fraction, rules: Collection[str] | None = None) -> list[Composition]:
    """Return the bounds of `rules` (None: all) at one total `delta` > 0, which includes the deltas of the charges: epsilon is
    infinite if these leave nothing of it."""
    return [rule(charges, delta) for name, rule in RULES.items() if rules is None or name in rules]


def _sequential(charges: Charges, delta: Fraction) -> Composition:
    share = _left(charges, delta) / max(len(charges), 1)
    epsilon = sum((_epsilon(charge, share) for charge in charges), Fraction(0))
    why = "losses are added; holds however questions are chosen"
    return Composition("sequential", _rounded(epsilon), float(delta), True, why)


def _advanced(charges: Charges, delta: Fraction) -> Composition:
    left = _left(charges, delta)
    share = left / 2 / max(len(charges), 1) if any("rho" in charge for charge in charges) else Fraction(0)
    spare = left - share * len(charges)
    why = "Kairouz, Oh and Viswanath 2015; needs parameters that are fixed before the first answer"
    losses = [(float(_epsilon(charge, share)), 0.0) for charge in charges]
    epsilon = advanced_composition(losses, float(spare))[0] if spare > 0 and losses else sum(loss for loss, _ in losses)
    return Composition("advanced", min(epsilon, _sequential(charges, delta).epsilon or 0.0), float(delta), False, why)


def _zcdp(charges: Charges, delta: Fraction) -> Composition:
    rho = sum((charge["rho"] if "rho" in charge else rho_of_pure(charge["epsilon"]) for charge in charges), Fraction(0))
    left = _left(charges, delta)
    epsilon = rho_to_epsilon(rho, left) if left > 0 else None if rho else Fraction(0)
    why = "concentrated DP (Bun and Steinke 2016); holds however questions are chosen"
    return Composition("zcdp", inf if epsilon is None else _rounded(epsilon), float(delta), True, why)


def _renyi(charges: Charges, delta: Fraction) -> Composition:
    why = "the best order of Renyi divergence; may gate only where the order is fixed in advance"
    left = float(_left(charges, delta))
    if not any(charge.get("epsilon") or charge.get("rho") for charge in charges):
        return Composition("renyi", 0.0, float(delta), False, why)
    if left <= 0:
        return Composition("renyi", inf, float(delta), False, why)
    kinds = Counter((float(charge.get("epsilon", 0)), float(charge.get("rho", 0))) for charge in charges)
    orders = [1 + 1.05**power for power in range(-160, 200)]
    bounds = [
        sum(number * (_divergence(epsilon, order) + rho * order) for (epsilon, rho), number in kinds.items())
        + log1p(-1 / order) - (log(left) + log(order)) / (order - 1)
        for order in orders
    ]  # fmt: skip
    return Composition("renyi", max(0.0, min(bounds)) * (1 + 1e-9), float(delta), False, why)


def _loss_distribution(charges: Charges, delta: Fraction) -> Composition:
    why = "privacy loss distributions of the worst mechanisms, composed numerically; needs parameters that are fixed in advance"
    if any("rho" in charge for charge in charges):
        why = "rho bounds Renyi divergences alone: no loss distribution follows from it"
        return Composition("pld", None, float(delta), False, why)
    kinds = Counter((float(charge["epsilon"]), float(charge.get("delta", 0))) for charge in charges)
    kinds = Counter({kind: number for kind, number in kinds.items() if any(kind)})
    if not kinds:
        return Composition("pld", 0.0, float(delta), False, why)
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        return Composition("pld", None, float(delta), False, "needs dp-accounting: pip install 'dpsql[accounting]'")
    step = (
        min(_STEP, min(epsilon for epsilon, _ in kinds if epsilon) / _FEWEST_STEPS)
        if any(e for e, _ in kinds)
        else _STEP
    )
    whole: Any = None
    for (epsilon, part), number in kinds.items():
        one_charge = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, part), value_discretization_interval=step
        )
        composed = one_charge.self_compose(number)
        whole = composed if whole is None else whole.compose(composed)
    return Composition("pld", float(whole.get_epsilon_for_delta(float(delta))), float(delta), False, why)


RULES = {
    "sequential": _sequential,
    "advanced": _advanced,
    "renyi": _renyi,
    "zcdp": _zcdp,
    "pld": _loss_distribution,
}
"""Composition rules by name: functions of charges and delta."""


def _left(charges: Charges, delta: Fraction) -> Fraction:
    """Return `delta` minus the deltas of the charges."""
    return delta - sum((charge.get("delta", Fraction(0)) for charge in charges), Fraction(0))


def _epsilon(charge: Mapping[str, Fraction], delta: Fraction) -> Fraction:
    """Return the epsilon of one charge; a rho is converted with an additional `delta`."""
    return rho_to_epsilon(charge["rho"], delta) if "rho" in charge else charge["epsilon"]


def _rounded(epsilon: Fraction) -> float:
    nearest = float(epsilon)
    return nearest if Fraction(nearest) >= epsilon else nearest * (1 + 1e-15)


def _divergence(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of randomised response with `epsilon`, which no epsilon-DP mechanism exceeds.

    With p = e^epsilon / (1 + e^epsilon): ln(p^a (1 - p)^(1 - a) + (1 - p)^a p^(1 - a)) / (a - 1).
    """
    # Factor the first summand out of the logarithm, so that no power overflows. Rounding must not lower the result where epsilon
    # is tiny: there the bound epsilon^2 a / 2 (Bun and Steinke 2016, Proposition 3.3) is as good.
    rest = log1p(exp(-(2 * order - 1) * epsilon)) - log1p(exp(-epsilon))
    bound = order * epsilon * epsilon / 2
    return bound if order * epsilon < 1e-4 else min(epsilon + rest / (order - 1), bound, epsilon)
