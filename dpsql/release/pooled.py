"""Sums of released cells whose noise is not independent, derived from a table that was measured for running totals.

They read only released numbers, so they are post-processing. A sum of cells has normal noise, whose standard deviation follows
from the covariance of the whole vector (`SeriesNoise.variances`). Sums of different groups share noise, so their replicates and
covariances are computed by summing those of the vector in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.mechanisms.contract import Floats, SeriesNoise
from dpsql.privacy.mechanisms.weighted_sums import Cells, WeightedSum

MOST_WEIGHTS = 4_000_000
"""Largest number of groups times cells."""


@dataclass(frozen=True, eq=False)
class PooledTerm:
    """One sum of cells of a released vector for each group. `law`: of the vector, with noise steps of size `unit`; `group`: for
    each cell the number of its group, or -1 if it is in none.

    `noise` is the law of the sum with the largest error, just as the law of a single cell is that of the last cell: bars of the
    other sums may be wider than necessary, but not narrower.
    """

    name: str
    values: npt.NDArray[Any]
    law: SeriesNoise
    unit: float
    group: npt.NDArray[np.int64]
    noise: WeightedSum
    noise_unit: float
    whole: bool

    def half_width(self, confidence: float) -> float:
        """Return h with P(|value - exact value| <= h) >= confidence, in the units of `values`."""
        width = self.noise.half_width(confidence) * self.noise_unit
        return float(floor(width + 0.5)) if self.whole else width

    def standard_deviation(self) -> float:
        """Return the largest standard deviation of the error of a group, in the units of `values`."""
        return self.noise.standard_deviation() * self.noise_unit

    def of_cells(self, weights: Floats) -> Floats:
        """Return the weights of cells, shape (sums, cells), from `weights` of groups, shape (sums, groups)."""
        return np.where(self.group >= 0, weights[:, self.group], 0.0)

    def variances(self, weights: Floats) -> Floats:
        """Return the variances of sums of groups with `weights` of shape (sums, groups), in squares of the units of `values`."""
        return np.asarray(self.law.variances(self.of_cells(weights)) * self.unit**2)

    def summed(self, noise: Floats) -> Floats:
        """Return `noise` of cells, shape (draws, cells), summed by group."""
        cells = np.flatnonzero(self.group >= 0)
        total = np.zeros((len(self.values), len(noise)))
        np.add.at(total, self.group[cells], noise[:, cells].T)
        return np.asarray(total.T)


def pooled(
    name: str, values: npt.NDArray[Any], group: npt.NDArray[np.int64], law: SeriesNoise, grid: int, whole: bool
) -> PooledTerm:
    """Return the term of sums of a vector's cells by group; `values` are the sums, one per group."""
    unit = 2.0 ** (law.shift - grid)
    weights = (group[None, :] == np.arange(len(values))[:, None]).astype(np.float64)
    deviation = sqrt(float(law.variances(weights).max())) * 2.0**law.shift
    share = deviation / law.standard_deviation()
    noise = WeightedSum((Cells(law, share, 1),), law.sensitivity)
    return PooledTerm(name, values, law, unit, group, noise, 2.0**-grid, whole)
