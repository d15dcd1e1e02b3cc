"""The exact sampler of permute-and-flip: each cell c shows heads with probability exp(-rate d(c)), and one cell with heads is
chosen uniformly (`privacy.mechanisms.exponential`).

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
In that case bits are read until their number is known, the U are assigned to random cells, and each of these coins is read on.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np

from dpsql.noise.randomness import Randomness, Words, guard, words
from dpsql.noise.weighted_runs import (
    EXACT_BITS,
    ONE_BITS,
    Integers,
    Run,
    Runs,
    drawn,
    exp_bounds,
    exp_tables,
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
