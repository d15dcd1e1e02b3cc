"""Zero-concentrated differential privacy with delta summed separately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsql.privacy.accounting.conversions import epsilon_to_rho, rho_to_epsilon
from dpsql.privacy.accounting.ledger_units import charge_units, float_upper, limit_units, spent_amount
from dpsql.privacy.loss import PrivacyLoss, positive, pure_of_rho
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.registry import Mechanism


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
