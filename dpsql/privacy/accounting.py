"""Accountants: how losses compose, how much loss a budget (epsilon, delta) allows.

An accountant is one class of this module and one entry of `ACCOUNTANTS`, by its name in the policy. The accountant of a ledger
account is fixed when the account is opened. Its composition must be valid for mechanisms and parameters that are chosen
adaptively (a filter), since an analyst chooses the next query after seeing answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from math import ceil, floor, inf, nextafter
from typing import Any, ClassVar, Protocol

from dpsql.errors.exceptions import refuse
from dpsql.privacy.conversions import MOST_EPSILON, epsilon_to_rho, rho_to_epsilon
from dpsql.privacy.loss import PrivacyLoss, plain_decimal, positive, pure_of_rho
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.registry import Mechanism

# --- losses as whole numbers of ledger units --------------------------------------------------------------------------
# Charges are rounded up and limits down, so sums in the ledger err on the safe side.

DECIMALS = {"epsilon": 18, "delta": 18, "rho": 36}
"""Dimensions that a ledger tracks, with d for ledger units of 10**-d: of a nat (epsilon, rho), or of a probability of one
(delta)."""
UNITS = {dimension: 10**digits for dimension, digits in DECIMALS.items()}


def charge_units(loss: Mapping[str, Fraction | None], accountant: str) -> dict[str, int]:
    """Return a loss by dimension in ledger units, rounded up. Raises Refusal loss_infinite if a dimension is None."""
    charge = {}
    for dimension, value in loss.items():
        if value is None:
            raise refuse("loss_infinite", accountant=accountant)
        charge[dimension] = ceil(value * UNITS[dimension])
    return charge


def limit_units(limits: Mapping[str, Fraction]) -> dict[str, int]:
    """Return the limits by dimension in ledger units, rounded down."""
    return {dimension: floor(value * UNITS[dimension]) for dimension, value in limits.items()}


def spent_amount(spent: Mapping[str, int], dimension: str) -> Fraction:
    """Return the `spent` ledger units of one dimension as an exact number; 0 if there are none."""
    return Fraction(spent.get(dimension, 0), UNITS[dimension])


def float_upper(value: Fraction) -> float:
    """Return the smallest float >= value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)


# --- windows of time --------------------------------------------------------------------------------------------------


# Budgets that are renewed: the calendar of their windows.
# A window is a part of the calendar (UTC) with its own limit. Each window's limit is a filter for adaptively chosen
# mechanisms, and the losses of windows add up in the ledger's dimensions: n windows lose at most n times the limit. So a
# window bounds what is learned in that time, and only a limit on all windows together (`lifetime`) bounds what is learned in
# total.


_CALENDAR: dict[str, tuple[Callable[[date], date], int]] = {
    "day": (lambda day: day, 365),
    "week": (lambda day: day - timedelta(days=day.weekday()), 52),
    "month": (lambda day: day.replace(day=1), 12),
    "quarter": (lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 4),
    "year": (lambda day: day.replace(month=1, day=1), 1),
}
EVERY = tuple(_CALENDAR)
"""Names of the window lengths; a week begins on Monday."""


def window_start(every: str, day: date) -> date:
    """Return the first day of the window of length `every` that contains `day`."""
    return _CALENDAR[every][0](day)


def next_start(every: str, day: date) -> date:
    """Return the first day of the window after the one that contains `day`."""
    start = later = window_start(every, day)
    while later == start:
        day += timedelta(days=1)
        later = window_start(every, day)
    return later


def windows_in_a_year(every: str) -> int:
    """Return how many whole windows a year has."""
    return _CALENDAR[every][1]


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
        """The epsilon (nats) and delta of the budget."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """Return epsilon and delta in ledger units, rounded up."""
        return charge_units({"epsilon": loss.epsilon, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        """Return the limit in ledger units, rounded down."""
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

    @property
    def delta_conversion(self) -> Fraction:
        """The half of delta with which rho is converted to epsilon."""
        return self.delta / 2

    @property
    def limits(self) -> dict[str, Fraction]:
        """The rho (nats) that converts to at most epsilon, and the other half of delta."""
        return {"rho": epsilon_to_rho(self.epsilon, self.delta_conversion), "delta": self.delta / 2}

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """Return rho and delta in ledger units, rounded up."""
        return charge_units({"rho": loss.rho, "delta": loss.delta}, self.kind)

    def limit_units(self) -> dict[str, int]:
        """Return the limit in ledger units, rounded down."""
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
        """Return noise calibrated by rho, or, for a mechanism that is calibrated only by epsilon, by the epsilon that costs this
        rho."""
        assert part.rho is not None
        if mechanism.calibrations and "rho" not in mechanism.calibrations:
            return mechanism.calibrated("epsilon", sensitivity, pure_of_rho(part.rho))
        return mechanism.calibrated("rho", sensitivity, part.rho)

    def charge(self, loss: PrivacyLoss, delta: Fraction) -> PrivacyLoss:
        """Return the loss unchanged."""
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
