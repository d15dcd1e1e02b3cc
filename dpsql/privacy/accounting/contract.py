"""The interface of accountants: how losses compose, and how much loss a budget (epsilon, delta) allows.

An accountant is one file of this package and one entry of `registry.ACCOUNTANTS`. The accountant of a ledger account is
fixed when the account is opened. Its composition must be valid for mechanisms and parameters that are chosen adaptively
(a filter), since an analyst chooses the next query after seeing answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Protocol

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.registry import Mechanism


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
