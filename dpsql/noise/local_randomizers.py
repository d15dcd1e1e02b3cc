"""Exact samplers of window laws (`privacy.mechanisms.local_randomizers`), vectorised over rows.

An output owns as many consecutive integers as its weight says, and a uniform integer below their sum chooses it: nothing is
rounded, and no float decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.randomness import Randomness, guard, words
from dpsql.privacy.mechanisms.local_randomizers import STEPS, CategoryLaw, NumberLaw, WindowWeights

Integers = NDArray[np.int64]
_TOP = (1 << 64) - 1
_MOST_BARREN = 64
_SUBSET_CELLS = 1 << 24
"""Rows times categories that are looked at together."""


def below(count: int, bound: int, randomness: Randomness) -> Integers:
    """`count` independent uniform integers in [0, bound), 1 <= bound <= 2**62.

    Words from share * bound on are drawn again, so that each integer owns exactly `share` words.
    """
    guard(1 <= bound <= 1 << 62)
    share = np.uint64(_TOP // bound)
    end = np.uint64(int(share) * bound)
    drawn = words(count, randomness)
    outside = (drawn >= end).nonzero()[0]
    if outside.size:
        drawn = drawn.copy()
    barren = 0
    while outside.size:
        drawn[outside] = words(outside.size, randomness)
        outside = outside[drawn[outside] >= end]
        barren += 1
        guard(barren < _MOST_BARREN)
    numbers: Integers = (drawn // share).view(np.int64)
    return numbers


def in_windows(starts: Integers, weights: WindowWeights, randomness: Randomness) -> Integers:
    """For each window, which begins at `starts` among outputs 0, 1, ..., an output of its law."""
    drawn = below(starts.size, weights.total, randomness)
    drawn -= weights.inside_weight * weights.inside
    inside = (drawn < 0).nonzero()[0]
    chosen = drawn >> weights.outside_bits
    chosen += (chosen >= starts) * np.int64(weights.inside)
    chosen[inside] = starts[inside] if weights.inside == 1 else starts[inside] + ~drawn[inside] // weights.inside_weight
    return chosen


def rounded_at_random(values: Integers, most: int, steps: int, randomness: Randomness) -> Integers:
    """For each of `values` in [0, most] a whole number in [0, steps] whose mean is value * steps / most.

    `most` * `steps` stays below 2**62.
    """
    whole, rest = np.divmod(values * steps, most)
    return whole + (below(values.size, most, randomness) < rest)


def draw_categories(codes: Integers, law: CategoryLaw, randomness: Randomness) -> Integers:
    """For each code in [0, size) one output: a code where sets have one value, else a row of ascending codes."""
    if law.subset == 1:
        return in_windows(codes, law.weights, randomness)
    included = below(codes.size, law.weights.total, randomness) < law.weights.inside_weight * law.weights.inside
    return _in_parts(codes.size, law, lambda rows: _subsets(codes[rows], included[rows], law, randomness))


def padding_categories(count: int, law: CategoryLaw, randomness: Randomness) -> Integers:
    """`count` outputs, each uniform among all of the law."""
    if law.subset == 1:
        return below(count, law.size, randomness)
    # Of a uniform set of d out of k values, the first value is in it with chance d / k.
    codes = np.zeros(count, dtype=np.int64)
    included = below(count, law.size, randomness) < law.subset
    return _in_parts(count, law, lambda rows: _subsets(codes[rows], included[rows], law, randomness))


def _in_parts(count: int, law: CategoryLaw, drawn: Any) -> Integers:
    """Sets of values of all rows, as many at a time as `_SUBSET_CELLS` allows."""
    size = max(1, _SUBSET_CELLS // law.size)
    parts = [drawn(slice(start, min(start + size, count))) for start in range(0, count, size)]
    return np.concatenate(parts) if parts else np.empty((0, law.subset), dtype=np.int64)


def _subsets(codes: Integers, included: NDArray[np.bool_], law: CategoryLaw, randomness: Randomness) -> Integers:
    """Ascending sets of law.subset values, those `included` with their code, all others without, else uniform.

    Floyd's algorithm (Bentley and Floyd 1987) among the size - 1 other values: for j = n - d, ..., n - 1 a uniform number
    up to j is taken, or j where that is taken already. For sets with their own value the first step, j = n - d, is left
    out, which leaves a uniform set of d - 1.
    """
    choices, rows = law.size - 1, np.arange(codes.size)
    taken = np.zeros((codes.size, law.size), dtype=bool)
    for step, j in enumerate(range(choices - law.subset, choices)):
        number = below(codes.size, j + 1, randomness)
        number = np.where(taken[rows, number], j, number)
        active = ~included if step == 0 else slice(None)
        taken[rows[active], number[active]] = True
    # Others were numbered without the own value: those from it on move up by one.
    moved = np.zeros_like(taken)
    places, numbers = taken[:, :choices].nonzero()
    moved[places, numbers + (numbers >= codes[places])] = True
    moved[rows, codes] = included
    sets: Integers = moved.nonzero()[1].reshape(codes.size, law.subset)
    return sets


def draw_numbers(
    values: Integers, missing: NDArray[np.bool_], most: int, law: NumberLaw, randomness: Randomness
) -> tuple[Integers, NDArray[np.bool_]]:
    """For each value in [0, most] (or `missing`) an output, and whether it is of the piecewise law.

    Outputs of the piecewise law are 0 to places - 1, those of the ends 0 and 1; larger ones are NULL.
    """
    interval = _interval_coins(values.size, law, randomness)
    drawn = np.empty(values.size, dtype=np.int64)
    for chosen, steps, weights, null in (
        (interval.nonzero()[0], STEPS, law.interval, law.places),
        ((~interval).nonzero()[0], 1, law.ends, 2),
    ):
        starts = rounded_at_random(values[chosen], most, steps, randomness)
        if law.missing:
            starts[missing[chosen]] = null
        drawn[chosen] = in_windows(starts, weights, randomness)
    return drawn, interval


def _interval_coins(count: int, law: NumberLaw, randomness: Randomness) -> NDArray[np.bool_]:
    """Draw which of `count` rows the piecewise law takes: as many of the 2**16 short words as its share says."""
    return words(count, randomness, 16) < law.interval_coin


def padding_numbers(count: int, law: NumberLaw, randomness: Randomness) -> tuple[Integers, NDArray[np.bool_]]:
    """`count` outputs, each uniform among all of the law that its coin chose; the second as of `draw_numbers`."""
    interval = _interval_coins(count, law, randomness)
    ends = below(count, law.ends.inside + law.ends.outside, randomness)
    places = below(count, law.interval.inside + law.interval.outside, randomness)
    return np.where(interval, places, ends), interval


def random_order(count: int, randomness: Randomness) -> Integers:
    """A uniform permutation of 0, ..., count - 1: the order of words, drawn again if two of them are equal."""
    barren = 0
    while True:
        drawn = words(count, randomness)
        order: Integers = np.argsort(drawn)
        ascending = drawn[order]
        if not (ascending[1:] == ascending[:-1]).any():
            return order
        barren += 1
        guard(barren < _MOST_BARREN)
