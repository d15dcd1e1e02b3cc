"""Exact samplers of choices among the cells of histograms: for each group a cell near a target rank.

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

Permute-and-flip. Each cell c shows heads with probability exp(-rate d(c)), and one cell with heads is chosen uniformly
(`privacy.mechanisms.exponential`).

The coin of a cell is its own uniform U in [0, 1) and shows heads where U < p = exp(-rate d). p is irrational unless d = 0, so
it is enclosed by integers (`weighted_runs`), and U is read a few bits at a time: 62 bits decide the coin unless they lie
within the enclosure; then U is read to 254 bits and p is computed to 240. Nothing is rounded at any precision; a coin that
these bits leave undecided, which has a probability below 2**-150, raises.

Runs. The cells of a run (`weighted_runs`) have the same p and are equally likely to be chosen, so it is enough to know how
many of them show heads. The first bits of all their U are read together: among n coins that agree with p so far, the number
with next bit 1 is that among n random bits, and the coins that now differ from p are decided. After some bits few coins are
left, and each of these is read separately.

Cells so far away that p < 2**-64 show heads only where U begins with 64 zeros. The number of such U follows a binomial law
that does not depend on p, and one word tells for a whole group that there are none, except with probability below 2**-34.
In that case bits are read until their number is known, the U are assigned to random cells, and each of these coins is read on."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Protocol

import numpy as np

from dpsql.noise.samplers import Integers, Randomness, Words, guard, words
from dpsql.noise.weighted_runs import (
    EXACT_BITS,
    ONE_BITS,
    Run,
    Runs,
    check_shape,
    drawn,
    exp_bounds,
    exp_tables,
    gaps,
    near_runs,
    portions,
    uniform_below,
)
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL, PERMUTE_AND_FLIP

_COMMON_BITS = 32
"""Largest number of bits of U that are read for all coins of a run together."""
_FEW = 4
"""Average number of coins per run up to which they are read separately."""
_MOST_WORDS = 1 << 21
"""Random words at a time, which limits memory: groups that need more words are processed one after the other."""
_FAR_BITS = 64
_LONG_BITS = 256
_TERMS = 10
_WORD = (1 << 64) - 1


def flipped(
    cells: int,
    runs: Runs,
    runs_of: Callable[[int], list[Run]],
    rate: Fraction,
    draws: int,
    randomness: Randomness,
) -> Integers:
    """Return for each group the number of a cell, chosen independently. `runs_of` returns all runs of a group with their exact
    distances; it is called where a far cell may show heads. At least `draws` uniform numbers are read. Raises Fault
    noise_guard."""
    groups = runs.end.size
    begin = np.concatenate([[0], runs.end])
    guard(bool((np.diff(begin) > 0).all()))
    chosen = np.empty(groups, dtype=np.int64)
    for part in portions(begin, 1 + runs.width // 64, _MOST_WORDS):
        inside = slice(int(begin[part.start]), int(begin[part.stop]))
        heads = _heads(runs, inside, rate, randomness)
        through = np.concatenate([[0], np.cumsum(heads)])  # below 2**63, as the cells of all groups fit into memory
        ends = begin[part.start : part.stop + 1] - inside.start
        near = np.diff(through[ends])
        guard(bool((near > 0).all()))  # a cell of distance 0 shows heads
        begins = words(max(draws, near.size), randomness)[: near.size]
        far = {
            group: cells_there
            for group in (begins > np.uint64(_WORD - cells)).nonzero()[0].tolist()
            if (cells_there := _far_heads(runs_of(part.start + group), rate, int(begins[group]), randomness))
        }
        total = near.copy()
        for group, cells_there in far.items():
            total[group] += len(cells_there)
        index = uniform_below(total, draws, randomness)
        run = np.searchsorted(through, through[ends[:-1]] + np.minimum(index, near - 1), side="right") - 1
        chosen[part] = runs.first[inside][run] + uniform_below(runs.width[inside][run], draws, randomness)
        for group, cells_there in far.items():
            if index[group] >= near[group]:
                chosen[part.start + group] = cells_there[int(index[group] - near[group])]
    return chosen


def _heads(runs: Runs, inside: slice, rate: Fraction, randomness: Randomness) -> Integers:
    """Return for each run of a slice how many of its cells show heads; all do if the distance is 0."""
    heads = runs.width[inside].copy()
    unsettled = (runs.distance[inside] > 0).nonzero()[0]
    if not unsettled.size:
        return heads
    value, distance = runs.value[inside][unsettled], runs.distance[inside][unsettled]
    left, won = heads[unsettled], np.zeros(unsettled.size, dtype=np.int64)
    prefix = _prefixes(value, distance, runs.error, rate)
    read = 0
    while read < _COMMON_BITS and int(left.sum()) > _FEW * left.size:
        read += 1
        next_is_one = prefix >> np.uint64(_COMMON_BITS - read) & np.uint64(1) == 1
        ones = _ones(left, randomness)
        won += np.where(next_is_one, left - ones, 0)
        left = np.where(next_is_one, ones, left - ones)
    won += _single_heads(left, value, distance, prefix, read, runs.error, rate, randomness)
    heads[unsettled] = won
    return heads


def _prefixes(value: Words, distance: Integers, error: int, rate: Fraction) -> Words:
    """Return the first 32 bits of p for each run."""
    shift = np.uint64(ONE_BITS - _COMMON_BITS)
    prefix = value >> shift
    for run in ((value + np.uint64(error)) >> shift != prefix).nonzero()[0].tolist():
        ((low, high),) = exp_bounds(rate, [int(distance[run])])
        exact = low >> EXACT_BITS - _COMMON_BITS
        guard(exact == high >> EXACT_BITS - _COMMON_BITS)
        prefix[run] = exact
    return prefix


def _ones(counts: Integers, randomness: Randomness) -> Integers:
    """Return for each number in `counts` how many of that many random bits are 1."""
    ones = np.zeros(counts.size, dtype=np.int64)
    some = counts.nonzero()[0]
    if not some.size:
        return ones
    ends = np.cumsum(-(-counts[some] // 64))
    bits = words(int(ends[-1]), randomness).copy()
    spare = (-counts[some] % 64).astype(np.uint64)
    bits[ends - 1] >>= spare
    starts = np.concatenate([[0], ends[:-1]])
    ones[some] = np.add.reduceat(np.bitwise_count(bits), starts, dtype=np.int64)
    return ones


def _single_heads(
    counts: Integers,
    value: Words,
    distance: Integers,
    prefix: Words,
    read: int,
    error: int,
    rate: Fraction,
    randomness: Randomness,
) -> Integers:
    """Return for each run how many of its `counts` coins, whose first `read` bits are those of p, show heads."""
    run = np.repeat(np.arange(counts.size), counts)
    if not run.size:
        return np.zeros(counts.size, dtype=np.int64)
    begins = words(run.size, randomness) >> np.uint64(64 - ONE_BITS + read)
    if read:
        begins |= (prefix >> np.uint64(_COMMON_BITS - read) << np.uint64(ONE_BITS - read))[run]
    low = value[run]
    shows = begins < low
    for coin in (~shows & (begins < low + np.uint64(error))).nonzero()[0].tolist():
        bits = 3 * 64
        further = _long_word(3, randomness)
        bounds = exp_bounds(rate, [int(distance[run[coin]])])[0]
        shows[coin] = _is_below(int(begins[coin]) << bits | further, ONE_BITS + bits, bounds, EXACT_BITS)
    return np.bincount(run[shows], minlength=counts.size)


def _is_below(drawn: int, bits: int, bounds: tuple[int, int], bound_bits: int) -> bool:
    """Return whether a U whose first `bits` bits are `drawn` is below a number between `bounds`, in units of 2**-bound_bits.
    Raises Fault noise_guard if these bits do not decide."""
    shift = bits - bound_bits
    if drawn + 1 <= bounds[0] << shift:
        return True
    guard(drawn >= bounds[1] << shift)
    return False


def _long_word(count: int, randomness: Randomness) -> int:
    """Return a uniform integer of `count` words."""
    drawn = 0
    for word in words(count, randomness).tolist():
        drawn = drawn << 64 | word
    return drawn


def _far_heads(runs: list[Run], rate: Fraction, begin: int, randomness: Randomness) -> list[int]:
    """Return the cells beyond the tables that show heads, among all `runs` of a group. `begin`: the first word of the U that
    determines how many of these cells have a coin that begins with 64 zeros."""
    last = exp_tables(rate).last
    far = [run for run in runs if run[2] > last]
    count = sum(width for _, width, _ in far)
    zeros = _number_of_zeros(count, begin << _LONG_BITS - 64 | _long_word(_LONG_BITS // 64 - 1, randomness))
    dealt: set[int] = set()
    while len(dealt) < zeros:
        dealt.add(int(uniform_below(np.array([count]), 1, randomness)[0]))
    heads = []
    for index in sorted(dealt):
        first, distance = _far_cell(far, index)
        ((low, high),) = exp_bounds(rate, [distance])
        if _is_below(_long_word(3, randomness), 3 * 64, (low, high), EXACT_BITS - _FAR_BITS):
            heads.append(first)
    return heads


def _far_cell(far: list[Run], index: int) -> tuple[int, int]:
    """Return the `index`-th cell of the runs `far`, counted from 0, and its distance."""
    for first, width, distance in far:
        if index < width:
            return first + index, distance
        index -= width
    raise AssertionError


def _number_of_zeros(count: int, drawn: int) -> int:
    """Return how many of `count` coins begin with 64 zeros, by inversion of a U whose first 256 bits are `drawn`: the largest k
    with 1 - U <= P(at least k of them do). Raises Fault noise_guard if these bits do not decide."""
    number, whole = 0, 1 << _LONG_BITS
    while number < count:
        low, high = _at_least(number + 1, count)
        if whole - drawn > low * whole:
            guard(whole - drawn - 1 >= high * whole)
            break
        number += 1
    return number


def _at_least(k: int, count: int) -> tuple[Fraction, Fraction]:
    """Return bounds of the probability that at least k >= 1 of `count` independent events of probability 2**-64 happen: partial
    sums over j >= k of (-1)**(j - k) comb(j - 1, k - 1) comb(count, j) 2**(-64 j), which are alternately above and below
    (Bonferroni)."""
    total, bounds = Fraction(0), []
    for j in range(k, k + _TERMS):
        total += Fraction((-1) ** (j - k) * comb(j - 1, k - 1) * comb(count, j), 1 << _FAR_BITS * j)
        bounds.append(total)
    return min(bounds[-2:]), max(bounds[-2:])


CHOOSERS = {EXPONENTIAL: drawn, PERMUTE_AND_FLIP: flipped}
"""Functions that draw a cell for each group, by the name of the mechanism."""

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
    """Return the numbers of rows before each element of `count` and after the last, over all groups, and b times each target."""
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
    """Return all runs of one group in order: first cell, width, and b times the distance from `target` / b (`denominator`)."""
    b = denominator
    left, e = -1, -target
    runs = []
    for index, rows in zip(cell, count, strict=True):
        runs.append((left + 1, index - left - 1, abs(e)))
        runs.append((index, 1, max(0, e, -(e + b * rows))))
        left, e = index, e + b * rows
    runs.append((left + 1, cells - left - 1, abs(e)))
    return [run for run in runs if run[1]]
