"""Common properties of the noise of a sum of released cells, for any law of the cells; for error bars.

Nothing is drawn from these laws for a release. They describe noise that was added and charged before, so they are
post-processing of public facts, and doubles are allowed here.
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
        """The sensitivity to which one summand was calibrated."""
        return self.summand.sensitivity

    @property
    def shift(self) -> int:
        """The shift of one summand."""
        return self.summand.shift

    @property
    def loss(self) -> PrivacyLoss:
        """Zero loss: the cells were charged when they were measured."""
        return PrivacyLoss.nothing()

    def recomputed_loss(self) -> PrivacyLoss:
        """Return zero loss."""
        return PrivacyLoss.nothing()

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Return None: only measured cells are summed, not sums of them."""
        return None

    def weighted_half_width(self, weights: Sequence[float], confidence: float) -> float:
        """Raise InternalError: only noise of measured cells is weighted."""
        raise refuse("internal", what="a weighted sum of summed noise")

    def weighted_expected_error(self, weights: Sequence[float]) -> float:
        """Raise InternalError: only noise of measured cells is weighted."""
        raise refuse("internal", what="a weighted sum of summed noise")

    def _half_width(self, steps: float) -> float:
        """Return `steps` of the noise grid in row-grid units, plus what flooring each cell to a coarser grid may have lost."""
        rounding = self.count * ((1 << self.shift) - 1) if self.shift > 0 else 0
        return float(steps * 2.0**self.shift + rounding)
