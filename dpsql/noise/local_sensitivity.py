"""Medians and means with noise in proportion to their local sensitivity: from exact histograms to released numbers.

The proofs, and every symbol, are in `privacy.mechanisms.local_sensitivity`. All is computed in integers.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups
from dpsql.noise.randomness import Randomness
from dpsql.noise.rank_histograms import Chooser, Histograms, laid_out
from dpsql.noise.rounded_laplace import rounded_laplace
from dpsql.privacy.mechanisms.local_sensitivity import (
    REFUSED,
    LocalSensitivityPlan,
    ProposeTestRelease,
    SmoothSensitivity,
    ends_of,
)

Integers = NDArray[np.int64]


class Ranks:
    """The rows of one group by rank: x_j, which is 0 for j <= 0 and the last cell for j > n."""

    def __init__(self, cell: Integers, count: Integers, last: int) -> None:
        """`cell`: ascending, with `count` rows each; `last`: the number of the last cell of the grid, m."""
        self._cell = np.append(cell, last)
        self._through = np.cumsum(count)
        self.last = last
        self.rows = int(self._through[-1]) if count.size else 0
        self.total = sum(place * rows for place, rows in zip(cell.tolist(), count.tolist(), strict=True))

    def cells_at(self, steps: Integers) -> Integers:
        """F_D(t) for each of `steps`."""
        rank = (self.rows + steps + 1) // 2
        return np.asarray(np.where(rank <= 0, 0, self._cell[np.searchsorted(self._through, rank)]))

    def spread(self, distance: Integers, rows: int) -> Integers:
        """W_D(k) for each k of `distance`, where a unit moves so many `rows`."""
        reach = (distance + 1) * rows
        return np.asarray(self.cells_at(reach) - self.cells_at(-reach))


def released_local(
    table: Any, plan: LocalSensitivityPlan, groups: Groups, gate: Chooser
) -> dict[str, NDArray[np.int64]]:
    """The number of each group, `REFUSED` where its test was not passed, and both ends of its error bar. Raises Fault
    noise_answer for a table of the wrong shape."""
    histograms = laid_out(table, plan.cells, groups)
    number = gate.release_local(plan.name, histograms, plan.law, groups)
    if plan.width is None:
        return {plan.name: number}
    assert isinstance(plan.law, ProposeTestRelease)
    last = (plan.cells - 1) << plan.law.finer
    # SQL's median lies between two middle values, of which this is the lower one: they are at most `bound` apart. A mean was
    # rounded down.
    above = plan.width + (1 if plan.law.mean else plan.law.bound)
    low, high = np.maximum(number - plan.width, 0), np.minimum(number + above, last)
    ends = zip(ends_of(plan.name), (low, high), strict=True)
    return {plan.name: number} | {name: np.where(number == REFUSED, REFUSED, end) for name, end in ends}


def smooth_medians(histograms: Histograms, law: SmoothSensitivity, draws: int, randomness: Randomness) -> Integers:
    """The median of every group with its noise, clamped to the grid. `draws`: how many values to draw at least."""
    last = histograms.cells - 1
    medians, scales = [], []
    for ranks in _groups(histograms):
        medians.append(int(ranks.cells_at(np.zeros(1, dtype=np.int64))[0]))
        scales.append(largest_spread(ranks, law))
    padded = np.array([*scales, *[last + 1] * max(0, draws - len(scales))], dtype=np.int64)
    noise = rounded_laplace(law.alpha, padded, randomness)[: len(scales)]
    return np.asarray(np.clip(np.array(medians, dtype=np.int64) + noise, 0, last))


def largest_spread(ranks: Ranks, law: SmoothSensitivity) -> int:
    """The largest g_k W_D(k) over all k: from the last weight on, W_D(k) reaches the whole grid."""
    weights, rows = law.weights, law.sensitivity.linf
    near = np.arange(min(weights.size, ranks.rows // rows + 2))
    return max(int((weights[near] * ranks.spread(near, rows)).max()), int(weights[-1]) * ranks.last)


def tested_numbers(histograms: Histograms, law: ProposeTestRelease, test: Integers, noise: Integers) -> Integers:
    """The number of every group with its noise, clamped to the grid, or `REFUSED`. `test` and `noise` were drawn of these laws, a
    value or more for each group."""
    groups = histograms.start.size - 1
    exact, distances = [], []
    for ranks in _groups(histograms):
        exact.append(_mean(ranks, law.finer) if law.mean else int(ranks.cells_at(np.zeros(1, dtype=np.int64))[0]))
        distances.append(distance(ranks, law))
    passed = np.array(distances, dtype=np.int64) + test[:groups] > law.threshold
    noisy = np.clip(np.array(exact, dtype=np.int64) + noise[:groups], 0, (histograms.cells - 1) << law.finer)
    return np.where(passed, noisy, REFUSED)


def distance(ranks: Ranks, law: ProposeTestRelease) -> int:
    """d(D): the smallest k for which W_D(k) is above the bound."""
    rows = law.sensitivity.linf
    if law.mean:
        least = -(-(ranks.last << law.finer) * rows // law.bound)
        return max(0, (ranks.rows - least) // rows)

    def spread(k: int) -> int:
        return int(ranks.spread(np.array([k]), rows)[0])

    distances: range = range(ranks.rows // rows + 2)
    return bisect_right(distances, law.bound, key=spread)


def _mean(ranks: Ranks, finer: int) -> int:
    return (ranks.total << finer) // ranks.rows if ranks.rows else (ranks.last << finer) // 2


def _groups(histograms: Histograms) -> list[Ranks]:
    histograms = histograms.taken_apart()
    ends = zip(histograms.start[:-1].tolist(), histograms.start[1:].tolist(), strict=True)
    return [Ranks(histograms.cell[start:end], histograms.count[start:end], histograms.cells - 1) for start, end in ends]
