"""The exact sampler of choices over counts: for each group one of its most frequent cells, or keys at an end.

A group has h(c) rows in cell c, which has the distance d(c) = max h - h(c) (`privacy.mechanisms.most_frequent`). The
exponential mechanism chooses cell c with probability proportional to exp(-rate d(c)); permute-and-flip chooses among the cells
whose coins show heads, each with probability exp(-rate d(c)) (`privacy.mechanisms.permute_and_flip`). All empty cells have the
distance max h: adjacent ones form one run (`weighted_runs`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np

from dpsql.noise.coin_choice import CHOOSERS
from dpsql.noise.fixed_point_exp import exp_tables
from dpsql.noise.randomness import Randomness, guard
from dpsql.noise.weighted_runs import Integers, Run, check_shape, gaps, near_runs
from dpsql.privacy.mechanisms.most_frequent import EndKey


class CountLaw(Protocol):
    """The mechanism of a choice, and how fast weights fall with the distance of a cell."""

    @property
    def mechanism(self) -> str:
        """The mechanism that chooses a cell, given the distances of all cells: one of `permute_and_flip.CHOICE_MECHANISMS`."""

    @property
    def rate(self) -> Fraction:
        """The decrease of a log weight per row; above 0."""


def choose_most(
    cells: int, start: Integers, cell: Integers, count: Integers, law: CountLaw, draws: int, randomness: Randomness
) -> Integers:
    """Return for each group the number of a cell, chosen independently by the law's mechanism.

    Histograms, `draws` and Fault noise_guard are as for `rank_choice.choose`.
    """
    groups = start.size - 1
    check_shape(cells, start, cell, count)
    guard(law.rate > 0 and law.mechanism in CHOOSERS)
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    tables, between = exp_tables(law.rate), gaps(cells, start, cell)
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

    runs = near_runs(cells, groups, between, distance, tables)
    return CHOOSERS[law.mechanism](cells, runs, runs_of, law.rate, draws, randomness)


def end_keys(start: Integers, cell: Integers, count: Integers, law: EndKey) -> tuple[Integers, Integers, Integers]:
    """Return the histogram of the keys of the end rows of each group, as `choose_most` reads it: starts of groups, keys, rows.

    Cells ascend within a group, and cell c has key c modulo `law.keys`.
    """
    groups = start.size - 1
    through = np.concatenate([[0], np.cumsum(count)])  # over all groups; no data has 2**63 rows
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
    """Return all runs of one group in the order of cells: first cell, width and distance of each."""
    most, left = max(count, default=0), -1
    runs = []
    for place, rows in zip(cell, count, strict=True):
        runs.append((left + 1, place - left - 1, most))
        runs.append((place, 1, most - rows))
        left = place
    runs.append((left + 1, cells - left - 1, most))
    return [run for run in runs if run[1]]
