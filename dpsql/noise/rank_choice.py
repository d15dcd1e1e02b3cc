"""The exact sampler of the exponential mechanism over rank histograms: for each group a cell near a target rank.

The law. A group has n rows in cells 0 to `cells` - 1: below(c) of them in cells before c, h(c) in c itself. With the target
t = a / b, a rank, cell c is chosen with probability proportional to exp(-rate d(c)), d(c) = max(0, below(c) - t, t - below(c) -
h(c)) (`privacy.mechanisms.exponential`).

Runs. Empty cells between two that are not have the same below, so the same distance: they are one run, as wide as they are
many. With e_j = b (rows in the first j cells that are not empty) - a, the run before the j-th such cell has b d = |e_j|, and the
cell itself has b d = max(0, e_j, -e_(j+1)). So the work follows the cells that are not empty. A run is chosen, then one of its
cells uniformly.

The choice of a run is inversion: the first run at which the sum C of weights so far exceeds U T, U uniform in [0, 1), T the
sum of all weights. Weights are irrational, so they are enclosed by integers (`fixed_point_exp`), and U is read a few bits at a
time: 62 bits of U, and weights to some 40 bits, decide it unless U T lies within the enclosure of one of the sums. Then U is read
to 240 bits and the weights are computed to as many. Nothing is rounded, whatever is read; what 240 bits
leave undecided, with a chance below 2**-150, raises.

Runs so far away that exp(-rate d) < 2**-64 are not computed one by one: all of them together weigh less than a unit, by which
every sum may be larger than it is said to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.fixed_point_exp import ONE_BITS, exp_bounds, exp_tables, product
from dpsql.noise.randomness import Randomness, Words, guard, words

MOST_CELLS = (1 << 29) - 1
MOST_DENOMINATOR = 1 << 20
"""Of targets, so that no product of ranks wraps."""
_TOP = np.uint64((1 << 64) - 1)
_HALF_BITS = 31

Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]


class RankLaw(Protocol):
    """Which rank is looked for, and how fast chances fall with the distance from it."""

    @property
    def rate(self) -> Fraction:
        """By how much the logarithm of a weight falls for each row of distance; above 0."""

    @property
    def denominator(self) -> int:
        """Of the targets: b."""

    def targets(self, rows: Integers) -> Integers:
        """b times the target of groups with so many rows: from 0 to b times `rows`."""


def choose(
    cells: int, start: Integers, cell: Integers, count: Integers, law: RankLaw, draws: int, randomness: Randomness
) -> Integers:
    """For each group the number of a cell, chosen independently with probability proportional to exp(-rate d(c)).

    Group g has `count` rows (1 or more) in each of the cells `cell[start[g]:start[g + 1]]`, ascending, and none in all
    other cells from 0 to `cells` - 1. At least `draws` uniform numbers are read, whatever the number of groups. Raises Fault
    noise_guard for a histogram of another shape or a law beyond its bounds.
    """
    groups = start.size - 1
    guard(1 <= cells <= MOST_CELLS and law.rate > 0 and 1 <= law.denominator <= MOST_DENOMINATOR)
    guard(start[0] == 0 and start[-1] == cell.size == count.size and bool((count >= 1).all()))
    guard(not cell.size or bool((cell >= 0).all() and (cell < cells).all()))
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    through = np.concatenate([[0], np.cumsum(count)])  # of all groups: 2**63 rows do not exist
    rows = through[start[1:]] - through[start[:-1]]
    targets = law.targets(rows)
    # In whole ranks, no product could wrap.
    guard(bool((targets >= 0).all() and (targets // law.denominator <= rows).all()))
    runs = _near_runs(cells, start, cell, through, targets, law)
    begins = words(max(draws, groups), randomness)[:groups] >> np.uint64(64 - ONE_BITS)
    run, certain = _inverted(runs, begins, cells)
    first, width = runs.first[run], runs.width[run]
    for group in (~certain).nonzero()[0].tolist():
        part = slice(int(start[group]), int(start[group + 1]))
        target = int(targets[group])
        all_runs = exact_runs(cells, cell[part].tolist(), count[part].tolist(), target, law.denominator)
        rate = law.rate / law.denominator
        first[group], width[group] = _longer(all_runs, rate, int(begins[group]), randomness)
    return first + _uniform(width, draws, randomness)


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs near the quantile, all groups one after the other, in the order of cells. `group` has run i; its cells are the
    `width[i]` from `first[i]` on; `weight` is a lower bound of width exp(-rate d) in units of 2**(bits - 62), by less than
    `error` units too low; `end[g]` is the number of runs of groups up to g."""

    group: Integers
    first: Integers
    width: Integers
    weight: Words
    error: int
    end: Integers


def _near_runs(
    cells: int, start: Integers, cell: Integers, through: Integers, targets: Integers, law: RankLaw
) -> _Runs:
    """`through`: the rows of all groups before each element of `cell`, and after the last one."""
    b = law.denominator
    tables = exp_tables(law.rate / b)
    groups, sizes = start.size - 1, np.diff(start)
    # Row j of group g stands for its gap before the j-th cell that is not empty, and for that cell.
    of_row = np.repeat(np.arange(groups), sizes + 1)
    opens = start[:-1] + np.arange(groups)
    closes = opens + sizes
    left, right = np.empty(of_row.size, dtype=np.int64), np.empty(of_row.size, dtype=np.int64)
    inner = np.ones(of_row.size, dtype=bool)
    inner[closes] = False
    right[inner], right[closes] = cell, cells
    inner[closes], inner[opens] = True, False
    left[inner], left[opens] = cell, -1
    before = through[np.arange(of_row.size) - of_row] - through[start[:-1]][of_row]
    whole, part = np.divmod(targets, b)
    farthest = tables.last // b + 2
    e = np.minimum(np.maximum(before - whole[of_row], -farthest), farthest) * b - part[of_row]
    distance = np.empty((of_row.size, 2), dtype=np.int64)
    distance[:, 0] = np.abs(e)
    distance[:-1, 1] = np.maximum(np.maximum(e[:-1], -e[1:]), 0)
    distance[closes, 1] = tables.last + 1
    first = np.stack([left + 1, right], axis=1)
    width = np.stack([right - left - 1, np.ones(of_row.size, dtype=np.int64)], axis=1)
    guard(bool((width[:, 0] >= 0).all()))
    near = ((distance <= tables.last) & (width > 0)).ravel().nonzero()[0]
    width, first, group = width.ravel()[near], first.ravel()[near], of_row[near >> 1]
    value = tables.lower(distance.ravel()[near])
    bits = cells.bit_length() + 1
    wide = width.view(np.uint64)
    weight = (wide * (value >> np.uint64(_HALF_BITS))) << np.uint64(_HALF_BITS - bits)
    weight += (wide * (value & np.uint64((1 << _HALF_BITS) - 1))) >> np.uint64(bits)
    end = np.searchsorted(group, np.arange(groups), side="right")
    return _Runs(group, first, width, weight, tables.error + 1, end)


def _inverted(runs: _Runs, begins: Words, cells: int) -> tuple[Integers, Truths]:
    """For each group the run that the first bits of its U choose, and whether no further bit could choose another.

    C_i lies in [sums_i, sums_i + error k_i + 1] after k_i runs, the runs left out weighing less than 1 in all: `cells` of them
    at most, each below 2**-64. U T lies in [least, most), of T and of U alike. Every group has a run of distance 0, whose weight
    is 2**(62 - bits) or more, so T is not 0.
    """
    begin = np.concatenate([[0], runs.end[:-1]])
    sums = np.cumsum(runs.weight)  # modulo 2**64, which differences within a group do not notice: they are below 2**61
    sums -= np.where(begin > 0, sums[begin - 1], np.uint64(0))[runs.group]
    passed_over = (np.arange(runs.group.size) - begin[runs.group] + 1).astype(np.uint64)
    doubt = passed_over * np.uint64(runs.error) + np.uint64(1)
    total = sums[runs.end - 1]
    guard(bool((runs.end > begin).all() and (total >= np.uint64(1 << ONE_BITS - cells.bit_length() - 1)).all()))
    least = product(begins, total)
    most = product(begins + np.uint64(1), total + doubt[runs.end - 1]) + np.uint64(1)
    below = np.add.reduceat(sums <= least[runs.group], begin, dtype=np.int64)
    run = np.minimum(begin + below, runs.end - 1)
    before = np.where(run > begin, sums[run - 1] + doubt[run - 1], np.uint64(1))
    before = np.where((run == begin) & (runs.first[begin] == 0), np.uint64(0), before)
    return run, (before <= least) & (most <= sums[run])


def exact_runs(
    cells: int, cell: list[int], count: list[int], target: int, denominator: int
) -> list[tuple[int, int, int]]:
    """All runs of one group in the order of cells: its first cell, its width, and b times its distance from `target` / b."""
    b = denominator
    left, e = -1, -target
    found = []
    for place, rows in zip(cell, count, strict=True):
        found.append((left + 1, place - left - 1, abs(e)))
        found.append((place, 1, max(0, e, -(e + b * rows))))
        left, e = place, e + b * rows
    found.append((left + 1, cells - left - 1, abs(e)))
    return [run for run in found if run[1]]


def _longer(runs: list[tuple[int, int, int]], rate: Fraction, begin: int, randomness: Randomness) -> tuple[int, int]:
    """First cell and width of the run that a U chooses whose first 62 bits are `begin`, read to 240 bits."""
    drawn = begin
    for word in words(3, randomness).tolist():
        drawn = drawn << 64 | word
    bits = ONE_BITS + 3 * 64
    bounds = exp_bounds(rate, (distance for _, _, distance in runs))
    weights = [(width * low, width * high) for (_, width, _), (low, high) in zip(runs, bounds, strict=True)]
    total_low, total_high = sum(low for low, _ in weights), sum(high for _, high in weights)
    low = high = 0
    for place, (less, more) in enumerate(weights):
        low, high = low + less, high + more
        if (drawn + 1) * total_high <= low << bits or place == len(runs) - 1:
            return runs[place][:2]
        guard(high << bits <= drawn * total_low)
    raise AssertionError


def _uniform(widths: Integers, draws: int, randomness: Randomness) -> Integers:
    """Uniform integers in [0, width), each for itself: words from share * width on are drawn again."""
    bounds = widths.view(np.uint64)
    shares = _TOP // bounds
    drawn = words(max(draws, widths.size), randomness)[: widths.size].copy()
    outside = (drawn >= shares * bounds).nonzero()[0]
    while outside.size:
        drawn[outside] = words(outside.size, randomness)
        outside = outside[drawn[outside] >= (shares * bounds)[outside]]
    found: Integers = (drawn // shares).view(np.int64)
    return found
