"""What the noise of a sum of released cells has in common, whichever law each cell got; for error bars.

Nothing is drawn from these laws for a release. They describe noise that was added and paid for before, so they are
post-processing of public facts, and doubles are fine here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity


@dataclass(frozen=True)
class SummedNoise:
    """The law of `count` independent draws of the noise `summand`. Units as in `contract.Noise`."""

    summand: Noise
    count: int

    mechanism = "summed"

    @property
    def sensitivity(self) -> Sensitivity:
        """Return the sensitivity of one summand, which is what was calibrated."""
        return self.summand.sensitivity

    @property
    def shift(self) -> int:
        """Return the shift of one summand."""
        return self.summand.shift

    @property
    def loss(self) -> PrivacyLoss:
        """Return no loss: the cells were charged when they were measured."""
        return PrivacyLoss.nothing()

    def recomputed_loss(self) -> PrivacyLoss:
        """Return no loss."""
        return PrivacyLoss.nothing()

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Not known: sums are made of measured cells."""
        return None

    def weighted_half_width(self, weights: Sequence[float], confidence: float) -> float:
        """Raise InternalError: only measured noise is weighted so."""
        raise refuse("internal", what="a weighted sum of summed noise")

    def weighted_expected_error(self, weights: Sequence[float]) -> float:
        """Raise InternalError: only measured noise is weighted so."""
        raise refuse("internal", what="a weighted sum of summed noise")

    def _half_width(self, steps: float) -> float:
        """Return `steps` of the noise grid in row-grid units, and what flooring each cell to a coarser grid may have lost."""
        rounding = self.count * ((1 << self.shift) - 1) if self.shift > 0 else 0
        return float(steps * 2.0**self.shift + rounding)
