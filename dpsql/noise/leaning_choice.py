"""The exact sampler of leaning choices: for each group a cell near a target rank, with lower cells preferred to higher ones.

The distance d(c) of cell c is the number of rows above it beyond the rank, plus lean c / b (`privacy.mechanisms.exponential`).
So cells need not have equal distances, and each is a run of its own; grids are short. The least distance in a group is subtracted
from all, because the probabilities of both mechanisms depend on differences alone.
"""

from __future__ import annotations

import numpy as np

from dpsql.noise.coin_choice import CHOOSERS
from dpsql.noise.fixed_point_exp import exp_tables
from dpsql.noise.randomness import Randomness, guard
from dpsql.noise.weighted_runs import Integers, Run, check_shape, gaps, near_runs
from dpsql.privacy.mechanisms.exponential import Choice

MOST_CELLS = 1 << 20
"""Largest number of cells in all groups together, because every cell is processed."""


def choose_leaning(
    cells: int, start: Integers, cell: Integers, count: Integers, law: Choice, draws: int, randomness: Randomness
) -> Integers:
    """Return for each group the number of a cell, chosen independently by the law's mechanism.

    Histograms, `draws` and Fault noise_guard are as for `rank_choice.choose`.
    """
    groups, b = start.size - 1, law.denominator
    check_shape(cells, start, cell, count)
    guard(law.rate > 0 and law.lean >= 1 and law.mechanism in CHOOSERS and groups * cells <= MOST_CELLS)
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    inside = np.zeros((groups, cells), dtype=np.int64)
    inside[np.repeat(np.arange(groups), np.diff(start)), cell] = count
    through = np.cumsum(inside, axis=1)
    target = law.targets(through[:, -1])[:, np.newaxis]
    distance = np.maximum(target - b * through, 0) + law.lean * np.arange(cells)
    distance -= distance.min(axis=1, keepdims=True)
    tables = exp_tables(law.rate / b)
    between = gaps(cells, np.arange(groups + 1) * cells, np.tile(np.arange(cells), groups))
    of_runs = np.full((between.group.size, 2), tables.last + 1, dtype=np.int64)
    inner = np.ones(between.group.size, dtype=bool)
    inner[between.closes] = False
    of_runs[inner, 1] = distance.ravel()

    def runs_of(group: int) -> list[Run]:
        return [(place, 1, int(far)) for place, far in enumerate(distance[group])]

    runs = near_runs(cells, groups, between, of_runs, tables)
    return CHOOSERS[law.mechanism](cells, runs, runs_of, law.rate / b, draws, randomness)
