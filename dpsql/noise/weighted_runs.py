"""The choice of one cell of each group with probability proportional to exp(-rate d(c)) for whole distances d(c) of cells c.

Runs. Adjacent cells with equal distances form one *run*, whose width is their number: above all the empty cells between two
nonempty ones. So the work depends on the nonempty cells. A run is chosen, then one of its cells uniformly.

A run is chosen by inversion: it is the first run at which the sum C of weights so far exceeds U T, U uniform in [0, 1), T the
sum of all weights. Weights are irrational, so they are enclosed by integers (`weighted_runs`), and U is read a few bits at a
time: 62 bits of U, and weights to some 40 bits, decide the run unless U T lies within the enclosure of one of the sums. Then U
is read to 254 bits and the weights are computed to 240. Nothing is rounded at any precision; a choice that these leave
undecided, which has a probability below 2**-150, raises.

Runs so far away that exp(-rate d) < 2**-64 are not computed individually: all of them together weigh less than one unit, by
which every true sum may exceed the computed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.samplers import Integers, Randomness, Words, guard, words
from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper
from dpsql.storage.records import dataclass

# --- bounds of exp ----------------------------------------------------------------------------------------------------

# Integers that enclose exp(-rate d) for whole numbers d >= 0: in vectors, and more precisely for single undecided numbers.
# d is split into digits of `_DIGIT_BITS` bits; each digit has a table of the powers of its base, computed in integers that
# bound the true numbers on both sides, and the factors of the digits are multiplied. There are no floats here.

ONE_BITS = 62
"""Values in vectors are in units of 2**-62."""
_DIGIT_BITS = 12
_SPARE_BITS = 64
_LN_2 = Fraction(7, 10)
"""A number above ln 2."""
_HALF = np.uint64(31)
_LOW = np.uint64((1 << 31) - 1)
EXACT_BITS = 240
"""Bounds of single numbers are in units of 2**-240."""
_MOST_DISTANCE = 1 << 60


def product(x: Words, y: Words) -> Words:
    """Return floor(x y / 2**62); x, y <= 2**62.

    In halves of 31 bits, x = x1 2**31 + x0 and y likewise: the product is x1 y1 2**62 + (x1 y0 + x0 y1) 2**31 + x0 y0, whose
    middle part is below 2**63 + 2**31, so nothing wraps. Flooring x0 y0 / 2**31 first does not change the floor of the whole.
    """
    x1, x0, y1, y0 = x >> _HALF, x & _LOW, y >> _HALF, y & _LOW
    middle = x1 * y0
    middle += x0 * y1
    middle += (x0 * y0) >> _HALF
    middle >>= _HALF
    middle += x1 * y1
    return middle


@dataclass(frozen=True, eq=False)
class ExpTables:
    """Tables of exp(-rate d) for d up to `last`; for larger d it is below 2**-64."""

    rate: Fraction
    last: int
    digits: tuple[Words, ...]

    @property
    def error(self) -> int:
        """The largest number of units by which `lower` is below the true number.

        The true number of an entry x is within [x, x + 2). With v in [x, x + e] and w in [y, y + 2] for x, y <= 2**62 and
        e < 2**60, v w / 2**62 is at most x y / 2**62 + 2 x / 2**62 + e y / 2**62 + 2 e / 2**62, so below
        floor(x y / 2**62) + e + 4.
        """
        return 4 * len(self.digits) - 2

    def lower(self, distances: Integers) -> Words:
        """Return exp(-rate d) for d in [0, `last`] in units of 2**-62, rounded down by at most `error`; exact for d = 0."""
        mask = (1 << _DIGIT_BITS) - 1
        value: Words = self.digits[0][distances & mask]
        for index, table in enumerate(self.digits[1:], 1):
            value = product(value, table[(distances >> (index * _DIGIT_BITS)) & mask])
        return value


@lru_cache(maxsize=64)
def exp_tables(rate: Fraction) -> ExpTables:
    """Return the tables of a public `rate` > 0. Raises Fault noise_guard for a rate so small that distances overflow."""
    last, digits = _digits(rate, ONE_BITS)
    guard(all(high - low <= 2 for lows, highs in digits for low, high in zip(lows, highs, strict=True)))
    return ExpTables(rate, last, tuple(np.array(lows, dtype=np.uint64) for lows, _ in digits))


def exp_bounds(rate: Fraction, distances: Iterable[int]) -> list[tuple[int, int]]:
    """Return integers low <= 2**240 exp(-rate d) <= high for each d >= 0; they differ by at most 2 units and 2**-50."""
    last, digits = _exact_digits(rate)
    mask, spare = (1 << _DIGIT_BITS) - 1, 1 << EXACT_BITS + _SPARE_BITS
    bounds = []
    for distance in distances:
        low = high = spare
        if distance > last:
            low, high = 0, 1 << _SPARE_BITS
        else:
            for index, (lows, highs) in enumerate(digits):
                digit = distance >> (index * _DIGIT_BITS) & mask
                low, high = low * lows[digit] // spare, -(-high * highs[digit] // spare)
        bounds.append((low >> _SPARE_BITS, -(-high >> _SPARE_BITS)))
    return bounds


@lru_cache(maxsize=16)
def _exact_digits(rate: Fraction) -> tuple[int, list[tuple[list[int], list[int]]]]:
    return _digits(rate, EXACT_BITS + _SPARE_BITS)


def _digits(rate: Fraction, bits: int) -> tuple[int, list[tuple[list[int], list[int]]]]:
    """Return the last d within the tables, beyond which exp(-rate d) < 2**-bits, and for each digit the bounds of its factors."""
    last = ceil((bits + 2) * _LN_2 / rate)
    guard(last < _MOST_DISTANCE)
    indexes = max(1, -(-last.bit_length() // _DIGIT_BITS))
    sizes = [min(1 << _DIGIT_BITS, (last >> (index * _DIGIT_BITS)) + 1) for index in range(indexes)]
    return last, [_powers(rate * (1 << (index * _DIGIT_BITS)), size, bits) for index, size in enumerate(sizes)]


def _powers(rate: Fraction, count: int, bits: int) -> tuple[list[int], list[int]]:
    """Return exp(-rate d) for d < `count` in units of 2**-bits, rounded down and up."""
    unit = 1 << bits + _SPARE_BITS
    factor_low, factor_high = floor(exp_lower(-rate) * unit), floor(exp_upper(-rate) * unit) + 1
    low = high = unit
    lows, highs = [], []
    for _ in range(count):
        lows.append(low >> _SPARE_BITS)
        highs.append(-(-high >> _SPARE_BITS))
        low, high = low * factor_low // unit, high * factor_high // unit + 1
    return lows, highs


# --- weighted runs ----------------------------------------------------------------------------------------------------

MOST_CELLS = (1 << 29) - 1
_TOP = np.uint64((1 << 64) - 1)
_HALF_BITS = 31

Truths = NDArray[np.bool_]
Run = tuple[int, int, int]
"""First cell, width, distance."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """The places of runs in histograms. Row j of group g stands for the gap before the j-th nonempty cell and for that cell; the
    last row of a group (`closes`) only for the gap after its last nonempty cell. `group`: the group of each row; its gap lies
    between the cells `left` and `right`."""

    group: Integers
    closes: Integers
    left: Integers
    right: Integers


def check_shape(cells: int, start: Integers, cell: Integers, count: Integers) -> None:
    """Raise Fault noise_guard unless the arguments are histograms: group g has `count` rows (1 or more) in each of the cells
    `cell[start[g]:start[g + 1]]`, from 0 to `cells` - 1."""
    guard(1 <= cells <= MOST_CELLS)
    guard(start[0] == 0 and start[-1] == cell.size == count.size and bool((count >= 1).all()))
    guard(not cell.size or bool((cell >= 0).all() and (cell < cells).all()))


def gaps(cells: int, start: Integers, cell: Integers) -> Gaps:
    """Return the gaps of histograms whose nonempty cells ascend in every group."""
    sizes = np.diff(start)
    groups = sizes.size
    of_row = np.repeat(np.arange(groups), sizes + 1)
    opens = start[:-1] + np.arange(groups)
    closes = opens + sizes
    left, right = np.empty(of_row.size, dtype=np.int64), np.empty(of_row.size, dtype=np.int64)
    inner = np.ones(of_row.size, dtype=bool)
    inner[closes] = False
    right[inner], right[closes] = cell, cells
    inner[closes], inner[opens] = True, False
    left[inner], left[opens] = cell, -1
    return Gaps(of_row, closes, left, right)


@dataclass(frozen=True, eq=False)
class Runs:
    """The near runs of all groups, one group after the other, in the order of cells. Run i belongs to `group[i]` and has
    `width[i]` cells from `first[i]` on. `weight` is a lower bound of width exp(-rate d) in units of 2**(bits - 62), less than
    `error` units too low; `value` is a lower bound of exp(-rate d) in units of 2**-62, also less than `error` units too low;
    `distance` is d; `end[g]` is the number of runs in groups up to g."""

    group: Integers
    first: Integers
    width: Integers
    weight: Words
    value: Words
    distance: Integers
    error: int
    end: Integers


def near_runs(cells: int, groups: int, rows: Gaps, distance: Integers, tables: ExpTables) -> Runs:
    """Return the near runs. `distance`: for each row of `rows` the distances of its gap and of its cell; the second is
    overwritten for rows that close a group, which have no cell."""
    distance[rows.closes, 1] = tables.last + 1
    first = np.stack([rows.left + 1, rows.right], axis=1)
    width = np.stack([rows.right - rows.left - 1, np.ones(rows.left.size, dtype=np.int64)], axis=1)
    guard(bool((width[:, 0] >= 0).all()))
    near = ((distance <= tables.last) & (width > 0)).ravel().nonzero()[0]
    width, first, group = width.ravel()[near], first.ravel()[near], rows.group[near >> 1]
    distance = distance.ravel()[near]
    value = tables.lower(distance)
    bits = cells.bit_length() + 1
    wide = width.view(np.uint64)
    weight = (wide * (value >> np.uint64(_HALF_BITS))) << np.uint64(_HALF_BITS - bits)
    weight += (wide * (value & np.uint64((1 << _HALF_BITS) - 1))) >> np.uint64(bits)
    end = np.searchsorted(group, np.arange(groups), side="right")
    return Runs(group, first, width, weight, value, distance, tables.error + 1, end)


def drawn(
    cells: int,
    runs: Runs,
    runs_of: Callable[[int], list[Run]],
    rate: Fraction,
    draws: int,
    randomness: Randomness,
) -> Integers:
    """Return for each group the number of a cell, chosen independently. `runs_of` returns all runs of a group with their exact
    distances; it is called where the first bits of the group's U do not decide. At least `draws` uniform numbers are read."""
    groups = runs.end.size
    begins = words(max(draws, groups), randomness)[:groups] >> np.uint64(64 - ONE_BITS)
    run, certain = _inverted(runs, begins, cells)
    first, width = runs.first[run], runs.width[run]
    for group in (~certain).nonzero()[0].tolist():
        first[group], width[group] = _longer(runs_of(group), rate, int(begins[group]), randomness)
    return first + uniform_below(width, draws, randomness)


def portions(start: Integers, parts: Integers, most: int) -> Iterator[slice]:
    """Yield slices of groups in order, each with at most `most` parts or one group alone. `parts`: the number of parts of each
    element; group g has the elements from `start[g]` to `start[g + 1]`."""
    ends = np.concatenate([[0], np.cumsum(parts)])[start]
    begin, groups = 0, start.size - 1
    while begin < groups:
        stop = int(np.searchsorted(ends, ends[begin] + most, side="right")) - 1
        stop = min(max(stop, begin + 1), groups)
        yield slice(begin, stop)
        begin = stop


def _inverted(runs: Runs, begins: Words, cells: int) -> tuple[Integers, Truths]:
    """Return for each group the run that the first bits of its U choose, and whether no further bit could choose another run.

    C_i lies in [sums_i, sums_i + error k_i + 1] after k_i runs, because the omitted runs weigh less than 1 in total: they have at
    most `cells` cells, each below 2**-64. U T lies in [least, most), which covers the enclosures of both T and U. Every group has
    a run of distance 0, whose weight is at least 2**(62 - bits), so T is not 0.
    """
    begin = np.concatenate([[0], runs.end[:-1]])
    sums = np.cumsum(runs.weight)  # modulo 2**64, which no difference within a group notices: all are below 2**61
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


def _longer(runs: list[Run], rate: Fraction, begin: int, randomness: Randomness) -> tuple[int, int]:
    """Return first cell and width of the run that is chosen by a U whose first 62 bits are `begin`, read to 254 bits."""
    drawn = begin
    for word in words(3, randomness).tolist():
        drawn = drawn << 64 | word
    bits = ONE_BITS + 3 * 64
    bounds = exp_bounds(rate, (distance for _, _, distance in runs))
    weights = [(width * low, width * high) for (_, width, _), (low, high) in zip(runs, bounds, strict=True)]
    total_low, total_high = sum(low for low, _ in weights), sum(high for _, high in weights)
    low = high = 0
    for index, (less, more) in enumerate(weights):
        low, high = low + less, high + more
        if (drawn + 1) * total_high <= low << bits or index == len(runs) - 1:
            return runs[index][:2]
        guard(high << bits <= drawn * total_low)
    raise AssertionError


def uniform_below(widths: Integers, draws: int, randomness: Randomness) -> Integers:
    """Return independent uniform integers in [0, width), one per width; words of at least share * width are drawn again."""
    bounds = widths.view(np.uint64)
    shares = _TOP // bounds
    drawn = words(max(draws, widths.size), randomness)[: widths.size].copy()
    outside = (drawn >= shares * bounds).nonzero()[0]
    while outside.size:
        drawn[outside] = words(outside.size, randomness)
        outside = outside[drawn[outside] >= (shares * bounds)[outside]]
    uniform: Integers = (drawn // shares).view(np.int64)
    return uniform
