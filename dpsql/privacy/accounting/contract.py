"""Composition behind one contract: what losses add up to, and how much of them a budget (epsilon, delta) allows.

An accountant is one file of this package and one entry of `registry.ACCOUNTANTS`. The accountant of a ledger account is
fixed when the account is opened. Its composition must be valid for mechanisms and parameters that are chosen adaptively
(a filter), since an analyst chooses the next question after seeing answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Protocol

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.registry import Mechanism


class Accountant(Protocol):
    """One composition rule with the limits of one account; holds no state. Made of a budget's epsilon and delta."""

    least_delta: ClassVar[Fraction]
    """The least delta of a budget that it can keep; 0: none is needed."""

    @property
    def kind(self) -> str:
        """The word of the policy."""

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of the budget (nats)."""

    @property
    def limits(self) -> dict[str, Fraction]:
        """The limits of the account, by dimension."""

    def units(self, loss: PrivacyLoss) -> dict[str, int]:
        """Return the charge of a loss in ledger units, rounded up. Raises Refusal loss_infinite."""

    def limit_units(self) -> dict[str, int]:
        """`limits` in ledger units, rounded down."""

    def epsilon_of(self, spent: Mapping[str, int]) -> float:
        """Return an upper bound of the epsilon that `spent` ledger units amount to, with the delta of the budget."""

    def repeated(self, times: int) -> tuple[float, Fraction]:
        """Return epsilon (an upper bound) and delta of `times` budgets like this one, each spent whole."""

    def request(self, epsilon: Fraction) -> PrivacyLoss:
        """Return the loss a question that asks `epsilon` may spend; None: not what this accountant counts.

        It is split evenly (`PrivacyLoss.divided`) over what the question measures.
        """

    def spends_delta(self, mechanism: Mechanism) -> bool:
        """Return whether noise of `mechanism` is counted only with a part of the question's delta spent on it."""

    def noise_for(self, mechanism: Mechanism, sensitivity: Sensitivity, part: PrivacyLoss, delta: Fraction) -> Noise:
        """Return the least noise of `mechanism` whose `charge` is at most `part` (of a request) and `delta`.

        `delta` is spent only where `spends_delta`; there it is above 0.
        """

    def charge(self, loss: PrivacyLoss, delta: Fraction) -> PrivacyLoss:
        """Return the loss that this accountant counts for one noise law of loss `loss`; `delta` is spent where it needs some.

        Raises Refusal loss_infinite for a loss that this accountant cannot count.
        """
