"""The exact sampler of the exponential mechanism over counts: for each group one of its most frequent cells, or keys at an end.

A group has h(c) rows in cell c. Cell c is chosen with probability proportional to exp(-rate d(c)), d(c) = max h - h(c)
(`privacy.mechanisms.most_frequent`). Empty cells all have the distance max h: those beside each other are one run
(`weighted_runs`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsql.noise.fixed_point_exp import exp_tables
from dpsql.noise.randomness import Randomness, guard
from dpsql.noise.weighted_runs import Integers, Run, check_shape, drawn, gaps, near_runs
from dpsql.privacy.mechanisms.end_rows import EndKey


def choose_most(
    cells: int, start: Integers, cell: Integers, count: Integers, rate: Fraction, draws: int, randomness: Randomness
) -> Integers:
    """For each group the number of a cell, chosen independently with probability proportional to exp(-rate d(c)).

    Histograms, `draws` and Fault noise_guard as for `rank_choice.choose`.
    """
    groups = start.size - 1
    check_shape(cells, start, cell, count)
    guard(rate > 0)
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    tables, between = exp_tables(rate), gaps(cells, start, cell)
    most = np.zeros(groups, dtype=np.int64)
    np.maximum.at(most, np.repeat(np.arange(groups), np.diff(start)), count)
    distance = np.empty((between.group.size, 2), dtype=np.int64)
    distance[:, 0] = most[between.group]
    inner = np.ones(between.group.size, dtype=bool)
    inner[between.closes] = False
    distance[inner, 1] = distance[inner, 0] - count

    def runs_of(group: int) -> list[Run]:
        part = slice(int(start[group]), int(start[group + 1]))
        return exact_runs(cells, cell[part].tolist(), count[part].tolist())

    return drawn(cells, near_runs(cells, groups, between, distance, tables), runs_of, rate, draws, randomness)


def end_keys(start: Integers, cell: Integers, count: Integers, law: EndKey) -> tuple[Integers, Integers, Integers]:
    """The histogram of the keys of the end rows of each group, as `choose_most` reads one: where groups start, keys, rows.

    Cells ascend within a group, and cell c has the key c modulo `law.keys`.
    """
    groups = start.size - 1
    through = np.concatenate([[0], np.cumsum(count)])  # of all groups: 2**63 rows do not exist
    of_cell = np.repeat(np.arange(groups), np.diff(start))
    first, last = through[start[:-1]][of_cell], through[start[1:]][of_cell]
    rows = law.end_counts(count, through[:-1] - first, last - first)
    inside = rows > 0
    place = of_cell[inside] * law.keys + cell[inside] % law.keys
    places, index = np.unique(place, return_inverse=True)
    totals = np.zeros(places.size, dtype=np.int64)
    np.add.at(totals, index, rows[inside])
    starts = np.searchsorted(places, np.arange(groups + 1) * law.keys)
    return starts.astype(np.int64), places % law.keys, totals


def exact_runs(cells: int, cell: list[int], count: list[int]) -> list[Run]:
    """All runs of one group in the order of cells: its first cell, its width, and its distance."""
    most, left = max(count, default=0), -1
    runs = []
    for place, rows in zip(cell, count, strict=True):
        runs.append((left + 1, place - left - 1, most))
        runs.append((place, 1, most - rows))
        left = place
    runs.append((left + 1, cells - left - 1, most))
    return [run for run in runs if run[1]]
