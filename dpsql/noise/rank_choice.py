"""The exact sampler of choices over rank histograms: for each group a cell near a target rank.

The law. A group has n rows in cells 0 to `cells` - 1: below(c) of them in cells before c, h(c) in c itself. With the target rank
t = a / b, cell c has the distance d(c) = max(0, below(c) - t, t - below(c) - h(c)). The exponential mechanism chooses c with
probability proportional to exp(-rate d(c)) (`privacy.mechanisms.exponential`); permute-and-flip chooses among the cells whose
coins show heads, each with probability exp(-rate d(c)) (`privacy.mechanisms.exponential`).

Empty cells between two nonempty cells have the same below, so the same distance: they form one run (`weighted_runs`). With
e_j = b (rows in the first j nonempty cells) - a, the run before the j-th nonempty cell has b d = |e_j|, and the cell itself
has b d = max(0, e_j, -e_(j+1)).

Spans. `choose_in_spans` treats adjacent cells with equally many rows as one span of a histogram, and has the same law. Only
spans near the target are split into cells. In any other span every cell is so far away that its run is omitted
(`weighted_runs`), and the same happens if the span is represented as one cell with all its rows, and a gap.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np

from dpsql.noise.coin_choice import CHOOSERS
from dpsql.noise.randomness import Randomness, guard
from dpsql.noise.weighted_runs import Integers, Run, Runs, check_shape, exp_tables, gaps, near_runs, portions

MOST_DENOMINATOR = 1 << 20
"""Largest denominator of targets, so that no product of ranks wraps."""
_MOST_TAKEN_APART = 1 << 21
"""Cells of spans at a time, which limits memory: groups that have more are processed one after the other."""


class RankLaw(Protocol):
    """The target rank of a choice, its mechanism, and how fast weights fall with the distance from the target."""

    @property
    def mechanism(self) -> str:
        """The mechanism that chooses a cell, given the distances of all cells: one of `exponential.CHOICE_MECHANISMS`."""

    @property
    def rate(self) -> Fraction:
        """The decrease of a log weight per row of distance; above 0."""

    @property
    def denominator(self) -> int:
        """The denominator b of the targets."""

    def targets(self, rows: Integers) -> Integers:
        """Return b times the target for groups with the numbers of rows `rows`: from 0 to b times `rows`."""


def choose(
    cells: int, start: Integers, cell: Integers, count: Integers, law: RankLaw, draws: int, randomness: Randomness
) -> Integers:
    """Return for each group the number of a cell, chosen independently by the law's mechanism.

    Group g has `count` rows (1 or more) in each of the cells `cell[start[g]:start[g + 1]]`, ascending, and none in the
    other cells from 0 to `cells` - 1. At least `draws` uniform numbers are read, whatever the number of groups. Raises Fault
    noise_guard for a histogram of another shape or a law outside its bounds.
    """
    groups = start.size - 1
    check_shape(cells, start, cell, count)
    guard(law.rate > 0 and 1 <= law.denominator <= MOST_DENOMINATOR and law.mechanism in CHOOSERS)
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    through, targets = _ranks(start, count, law)

    def runs_of(group: int) -> list[Run]:
        part = slice(int(start[group]), int(start[group + 1]))
        return exact_runs(cells, cell[part].tolist(), count[part].tolist(), int(targets[group]), law.denominator)

    runs = _near_runs(cells, start, cell, through, targets, law)
    return CHOOSERS[law.mechanism](cells, runs, runs_of, law.rate / law.denominator, draws, randomness)


def choose_in_spans(
    cells: int,
    start: Integers,
    first: Integers,
    width: Integers,
    count: Integers,
    law: RankLaw,
    draws: int,
    randomness: Randomness,
) -> Integers:
    """Return the choice of `choose` if group g has `count` rows in each of the `width` cells from `first[j]` on, for j from
    start[g] to start[g + 1]."""
    check_shape(cells, start, first, count)
    guard(width.size == first.size and bool((width >= 1).all() and (first + width <= cells).all()))
    guard(law.rate > 0 and 1 <= law.denominator <= MOST_DENOMINATOR and law.mechanism in CHOOSERS)
    chosen = np.empty(start.size - 1, dtype=np.int64)
    total = count * width
    through, targets = _ranks(start, total, law)
    near = _near_spans(start, through, targets, law)
    parts = np.where(near, width, 1)
    for groups in portions(start, parts, _MOST_TAKEN_APART):
        spans = slice(int(start[groups.start]), int(start[groups.stop]))
        of_span = np.repeat(np.arange(spans.start, spans.stop), parts[spans])
        ends = np.concatenate([[0], np.cumsum(parts[spans])])
        cell = first[of_span] + np.arange(of_span.size) - ends[of_span - spans.start]
        rows = np.where(near, count, total)[of_span]
        portion = ends[start[groups.start : groups.stop + 1] - spans.start]
        check_shape(cells, portion, cell, rows)
        sought = targets[groups]

        def runs_of(group: int, begin: int = groups.start) -> list[Run]:
            part = slice(int(start[begin + group]), int(start[begin + group + 1]))
            inside = np.repeat(np.arange(part.start, part.stop), width[part])
            starts = np.concatenate([[0], np.cumsum(width[part])])[inside - part.start]
            indexes = (first[inside] + np.arange(inside.size) - starts).tolist()
            return exact_runs(cells, indexes, count[inside].tolist(), int(targets[begin + group]), law.denominator)

        before = np.concatenate([[0], np.cumsum(rows)])
        runs = _near_runs(cells, portion, cell, before, sought, law)
        least = draws if groups.stop == chosen.size else 0
        chosen[groups] = CHOOSERS[law.mechanism](cells, runs, runs_of, law.rate / law.denominator, least, randomness)
    return chosen


def _ranks(start: Integers, count: Integers, law: RankLaw) -> tuple[Integers, Integers]:
    """Return the numbers of rows before each element of `count` and after the last one, over all groups together, and b times the
    target of each group."""
    through = np.concatenate([[0], np.cumsum(count)])  # over all groups; no data has 2**63 rows
    rows = through[start[1:]] - through[start[:-1]]
    targets = law.targets(rows)
    # Compare whole ranks, as a product with b could wrap.
    guard(bool((targets >= 0).all() and (targets // law.denominator <= rows).all()))
    return through, targets


def _near_spans(start: Integers, through: Integers, targets: Integers, law: RankLaw) -> Integers:
    """Return which spans may have a cell whose distance is within the tables."""
    farthest = exp_tables(law.rate / law.denominator).last // law.denominator + 2
    of_span = np.repeat(np.arange(start.size - 1), np.diff(start))
    target_ranks = (targets // law.denominator + through[start[:-1]])[of_span]
    return np.asarray((through[:-1] - target_ranks <= farthest) & (target_ranks - through[1:] <= farthest))


def _near_runs(cells: int, start: Integers, cell: Integers, through: Integers, targets: Integers, law: RankLaw) -> Runs:
    """Return the near runs. `through`: the rows of all groups before each element of `cell`, and after the last one."""
    b = law.denominator
    tables = exp_tables(law.rate / b)
    between = gaps(cells, start, cell)
    of_row = between.group
    before = through[np.arange(of_row.size) - of_row] - through[start[:-1]][of_row]
    whole, part = np.divmod(targets, b)
    farthest = tables.last // b + 2
    e = np.minimum(np.maximum(before - whole[of_row], -farthest), farthest) * b - part[of_row]
    distance = np.empty((of_row.size, 2), dtype=np.int64)
    distance[:, 0] = np.abs(e)
    distance[:-1, 1] = np.maximum(np.maximum(e[:-1], -e[1:]), 0)
    return near_runs(cells, start.size - 1, between, distance, tables)


def exact_runs(cells: int, cell: list[int], count: list[int], target: int, denominator: int) -> list[Run]:
    """Return all runs of one group in the order of cells: first cell, width, and b times the distance from `target` / b of
    each, b being `denominator`."""
    b = denominator
    left, e = -1, -target
    runs = []
    for index, rows in zip(cell, count, strict=True):
        runs.append((left + 1, index - left - 1, abs(e)))
        runs.append((index, 1, max(0, e, -(e + b * rows))))
        left, e = index, e + b * rows
    runs.append((left + 1, cells - left - 1, abs(e)))
    return [run for run in runs if run[1]]
