"""How the quantiles of a rank histogram are released: each by the exponential mechanism over the cells of its grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.privacy.mechanisms.contract import Law

RANK_HISTOGRAM = "rank histogram"
"""The word of the measurement (`dpsql.plan.measurements`)."""


@dataclass(frozen=True)
class QuantileChoice:
    """The released number called `name`: a cell near the quantile `quantile`, chosen by `law`."""

    name: str
    quantile: Fraction
    law: Law


@dataclass(frozen=True)
class RankHistogramPlan:
    """The quantiles of one histogram with `cells` cells for each group."""

    name: str
    cells: int
    quantiles: tuple[QuantileChoice, ...]

    word = RANK_HISTOGRAM

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """Name and law of each quantile: the cells of all groups are one release, charged once for each quantile."""
        return tuple((quantile.name, quantile.law) for quantile in self.quantiles)
