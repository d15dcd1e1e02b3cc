"""Accountants: how losses compose, how much loss a budget (epsilon, delta) allows.

An accountant is one class of this module and one entry of `ACCOUNTANTS`, by its name in the policy. The accountant of a ledger
account is fixed when the account is opened. Its composition must be valid for mechanisms and parameters that are chosen
adaptively (a filter), since an analyst chooses the next query after seeing answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, sqrt
from typing import Any, ClassVar, Protocol

from dpsql.errors.exceptions import refuse
from dpsql.privacy.ledger_units import charge_units, float_upper, limit_units, spent_amount
from dpsql.privacy.loss import PrivacyLoss, plain_decimal, positive, pure_of_rho, rho_of_pure
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.rational_bounds import ln_lower, ln_upper
from dpsql.privacy.mechanisms.registry import Mechanism
from dpsql.storage.records import dataclass

# --- conversion from zCDP to (epsilon, delta) and back, each rounded to the safe side ---------------------------------
# Advanced composition for reports.
#
# Comparison of composition rules over the same charges, for an owner's report.
#
# Only two of the rules may decide whether a charge fits a budget, because they hold when an analyst chooses each query
# after seeing answers (privacy filters: Rogers, Roth, Ullman and Vadhan 2016; for Renyi divergences of one order, so
# also for zCDP, Feldman and Zrnic 2021). The others require all parameters to be fixed in advance, which a report about
# the past cannot know.
#
# A charge to an account of epsilon belongs to some (epsilon, delta)-DP mechanism. The one with the largest loss is
# randomised response (Kairouz, Oh and Viswanath 2015), whose Renyi divergences and loss distribution are used. A charge
# to an account of rho means only that its Renyi divergences are at most rho alpha: no loss distribution follows from
# that.

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


# --- accountants ------------------------------------------------------------------------------------------------------


class Accountant(Protocol):
    """One composition rule with the limits of one account, constructed from a budget's epsilon and delta; it holds no state."""

    least_delta: ClassVar[Fraction]
    """The least delta that a budget must have; 0: no delta is needed."""

    @property
    def kind(self) -> str:
        """The accountant's name in the policy."""

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the budget (nats)."""

    @property
    def limits(self) -> dict[str, Fraction]:
        """The limits of the account, by dimension."""

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """Return the charge of a loss in ledger units, rounded up. Raises Refusal loss_infinite."""

    def limit_units(self) -> dict[str, int]:
        """Return `limits` in ledger units, rounded down."""

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """Return an upper bound of the epsilon that corresponds to `spent` ledger units, at the delta of the budget."""

    def repeated(self, times: int) -> tuple[float, Fraction]:
        """Return epsilon (an upper bound) and delta of `times` budgets like this one, each fully spent."""

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """Return the loss allowed for a query that asks for `epsilon`; dimensions that this accountant does not track are None.

        The loss is split evenly (`PrivacyLoss.divided`) over the measurements of the query.
        """

    def spends_delta(self, mechanism: Mechanism) -> bool:
        """Return whether noise of `mechanism` can be charged only by spending a part of the query's delta."""

    def noise_for(self, mechanism: Mechanism, sensitivity: Sensitivity, part: PrivacyLoss, delta: Fraction) -> Noise:
        """Return the least noise of `mechanism` whose `charge` is at most `part` (of a request) and `delta`.

        `delta` is spent only if `spends_delta`; then it is above 0.
        """

    def charge(self, loss: PrivacyLoss, delta: Fraction) -> PrivacyLoss:
        """Return the loss that this accountant charges for a noise law of loss `loss`; `delta` is spent if the law needs it.

        Raises Refusal loss_infinite for a loss that this accountant cannot count.
        """


@dataclass(frozen=True)
class Pure:
    """The accountant under which both epsilon and delta add up (Dwork and Roth 2014, Theorem 3.16).

    Exact sums are a filter for adaptively chosen mechanisms (Rogers, Roth, Ullman, Vadhan 2016, arXiv 1605.08294).
    """

    epsilon: Fraction
    delta: Fraction

    kind = "pure"
    least_delta = Fraction(0)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"epsilon": self.epsilon, "delta": self.delta}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """Return epsilon and delta in ledger units, rounded up."""
        return charge_units({"epsilon": loss.epsilon, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        return limit_units(self.limits)

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """Return the sum of epsilon itself."""
        return float_upper(spent_amount(spent, "epsilon"))

    def repeated(self, times: int) -> tuple[float, Fraction]:
        """Return the sums (Dwork and Roth 2014, Theorem 3.16)."""
        return float_upper(times * self.epsilon), times * self.delta

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """Return a loss of `epsilon`; rho is not tracked. Delta is requested separately where it is needed."""
        return PrivacyLoss(positive(epsilon), Fraction(0), None)

    def spends_delta(self, mechanism: Mechanism) -> bool:
        """Return True for noise without a pure epsilon, whose rho is converted with delta."""
        return not mechanism.pure

    def noise_for(self, mechanism: Mechanism, sensitivity: Sensitivity, part: PrivacyLoss, delta: Fraction) -> Noise:
        """Return the least noise with the allowed epsilon, or with the rho that converts to at most (epsilon, delta)."""
        assert part.epsilon is not None
        if mechanism.pure:
            return mechanism.calibrated("epsilon", sensitivity, part.epsilon)
        return mechanism.calibrated("rho", sensitivity, epsilon_to_rho(part.epsilon, delta))

    def charge(self, loss: PrivacyLoss, delta: Fraction) -> PrivacyLoss:
        """Return a loss with pure epsilon unchanged, without spending `delta`; else convert rho with `delta` and keep the exact
        rho as well. Raises Refusal loss_infinite for a loss that has neither."""
        if loss.epsilon is not None:
            return loss
        if loss.rho is None:
            raise refuse("loss_infinite", accountant=self.kind)
        return PrivacyLoss(rho_to_epsilon(loss.rho, delta), loss.delta + delta, loss.rho)


@dataclass(frozen=True)
class Zcdp:
    """The accountant of delta-approximate rho-zCDP: both add up (Bun and Steinke 2016, arXiv 1605.02065, Lemma 8.2).

    Exact sums of rho with delta summed separately are a filter for adaptively chosen mechanisms (Whitehouse, Ramdas, Rogers,
    Wu 2023, arXiv 2203.05481: approximate zCDP).

    The delta of the budget is halved when the account is opened: one half converts rho to epsilon, the other may be spent by
    key selections. If everything is spent, all answers together are rho-zCDP except for an event of probability delta/2, so
    (epsilon, delta/2 + delta/2)-DP.
    """

    epsilon: Fraction
    delta: Fraction

    kind = "zcdp"
    least_delta = Fraction(1, 10**15)

    @cached_property
    def delta_conversion(self) -> Fraction:
        """The half of delta with which rho is converted to epsilon."""
        return self.delta / 2

    @cached_property
    def limits(self) -> dict[str, Fraction]:
        """The rho (nats) that converts to at most epsilon, and the other half of delta."""
        return {"rho": epsilon_to_rho(self.epsilon, self.delta_conversion), "delta": self.delta / 2}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """Return rho and delta in ledger units, rounded up."""
        return charge_units({"rho": loss.rho, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        return limit_units(self.limits)

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """Return the spent rho converted with `delta_conversion`; within the limit at most the budget's epsilon."""
        rho = spent_amount(spent, "rho")
        converted = rho_to_epsilon(rho, self.delta_conversion)
        return float_upper(min(converted, self.epsilon) if rho <= self.limits["rho"] else converted)

    def repeated(self, times: int) -> tuple[float, Fraction]:
        """Return the sum of rho converted with half of the sum of delta, and the whole sum of delta; the other half is spent
        separately.

        rho and delta of approximate zCDP add up (Bun and Steinke 2016, Lemma 8.2), and the amount spent of one budget does not
        exceed its limits, so the sums over all budgets do not exceed `times` the limits.
        """
        return float_upper(
            rho_to_epsilon(times * self.limits["rho"], times * self.delta_conversion)
        ), times * self.delta

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """Return rho = epsilon**2 / 2 for any mechanism; epsilon is not tracked. Noise that is epsilon-DP costs less
        (`loss`), so the query gets noise with a larger epsilon."""
        return PrivacyLoss(None, Fraction(0), positive(epsilon) ** 2 / 2)

    def spends_delta(self, mechanism: Mechanism) -> bool:
        """Return False: rho is charged without conversion."""
        return False

    def noise_for(self, mechanism: Mechanism, sensitivity: Sensitivity, part: PrivacyLoss, delta: Fraction) -> Noise:
        """Return noise calibrated by rho, or, where a mechanism only has an epsilon, by the epsilon that costs this rho."""
        assert part.rho is not None
        if mechanism.calibrations and "rho" not in mechanism.calibrations:
            return mechanism.calibrated("epsilon", sensitivity, pure_of_rho(part.rho))
        return mechanism.calibrated("rho", sensitivity, part.rho)

    def charge(self, loss: PrivacyLoss, delta: Fraction) -> PrivacyLoss:
        return loss


ACCOUNTANTS: dict[str, type[Any]] = {accountant.kind: accountant for accountant in (Pure, Zcdp)}
"""Implementations of `Accountant`, which are constructed from a budget's epsilon and delta."""


def make_accountant(kind: str, epsilon: Fraction, delta: Fraction) -> Accountant:
    """Return an accountant of `kind` for a budget of epsilon (nats) and delta.

    Raises PolicyRefusal accountant_budget for an unknown kind, epsilon outside (0, 10**6], delta outside [0, 1), or less
    delta than the accountant needs.
    """
    accountant_type = ACCOUNTANTS.get(kind)
    problem = ""
    if not (isinstance(epsilon, Fraction) and isinstance(delta, Fraction)):
        problem = "epsilon and delta are exact numbers"
    elif not 0 < epsilon <= MOST_EPSILON:
        problem = f"epsilon must be above 0 and at most {MOST_EPSILON}"
    elif not 0 <= delta < 1:
        problem = "delta must be at least 0 and below 1"
    elif accountant_type is None:
        problem = f"there are {' and '.join(ACCOUNTANTS)}"
    elif delta < accountant_type.least_delta:
        problem = f"it needs delta of at least {plain_decimal(accountant_type.least_delta)}"
    if problem or accountant_type is None:
        raise refuse("accountant_budget", accountant=kind, problem=problem)
    accountant: Accountant = accountant_type(epsilon, delta)
    return accountant


def needs_delta(kind: str) -> bool:
    """Return whether a budget with an accountant of this kind must have a delta."""
    return kind in ACCOUNTANTS and bool(ACCOUNTANTS[kind].least_delta > 0)
