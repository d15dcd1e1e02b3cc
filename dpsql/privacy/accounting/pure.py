"""Sequential composition of (epsilon, delta)-DP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsql.errors.exceptions import refuse
from dpsql.privacy.accounting.conversions import epsilon_to_rho, rho_to_epsilon
from dpsql.privacy.accounting.ledger_units import charge_units, float_upper, limit_units, spent_amount
from dpsql.privacy.loss import PrivacyLoss, positive
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.registry import Mechanism


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
