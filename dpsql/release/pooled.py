"""Sums of released cells whose noise is not independent: what is derived from a table that was measured for running totals.

They read nothing but released numbers: post-processing. A sum of cells has normal noise, whose deviation follows from the
covariance of the whole vector (`SeriesNoise.variances`); sums of several groups have noise in common, so that replicates and
covariances are those of the vector, summed up alike.
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
"""Groups times cells."""


@dataclass(frozen=True, eq=False)
class PooledTerm:
    """One sum of cells of a released vector for each group. `law`: of the vector, of `unit` a step; `group`: for each cell the
    number of its group, -1 for one that is in none.

    `noise` is the law of the sum that errs most, as that of one cell is of the last one: bars of the others are wider than they
    need to be, never narrower.
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
        """Return the weights of cells in weighted sums of groups; of shape (sums, groups), then (sums, cells)."""
        return np.where(self.group >= 0, weights[:, self.group], 0.0)

    def variances(self, weights: Floats) -> Floats:
        """Return the variances of weighted sums of groups, of shape (sums, groups), in squares of the units of `values`."""
        return np.asarray(self.law.variances(self.of_cells(weights)) * self.unit**2)

    def summed(self, noise: Floats) -> Floats:
        """Return noise of cells, of shape (draws, cells), summed by group."""
        cells = np.flatnonzero(self.group >= 0)
        total = np.zeros((len(self.values), len(noise)))
        np.add.at(total, self.group[cells], noise[:, cells].T)
        return np.asarray(total.T)


def pooled(
    name: str, values: npt.NDArray[Any], group: npt.NDArray[np.int64], law: SeriesNoise, grid: int, whole: bool
) -> PooledTerm:
    """Return the sums of the cells of a vector whose totals are `values`, one for each group."""
    unit = 2.0 ** (law.shift - grid)
    weights = (group[None, :] == np.arange(len(values))[:, None]).astype(np.float64)
    deviation = sqrt(float(law.variances(weights).max())) * 2.0**law.shift
    share = deviation / law.standard_deviation()
    noise = WeightedSum((Cells(law, share, 1),), law.sensitivity)
    return PooledTerm(name, values, law, unit, group, noise, 2.0**-grid, whole)
