"""Exact draws of a number V = 0, 1, 2, ... by inversion: V is the number of P(V >= 1), P(V >= 2), ... that lie above a uniform U.

U is read a few bits at a time. The first bits of U decide V unless one of these probabilities, which are irrational,
begins with the same bits; then U is read further: 16 bits, 64, 192. Nothing is rounded at any precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.randomness import Randomness, Words, guard, words
from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper

Shorts = NDArray[np.uint16]

_OPEN = (1 << 16) - 1
"""Stands for a V that 16 bits do not decide."""
_SPARE_BITS = 64
"""Number of additional bits to which sums are computed."""


@dataclass(frozen=True, eq=False)
class Tails:
    """The law P(V = v) proportional to exp(-(linear v + square v**2)).

    `edges`: floor(2**64 P(V >= v)), ascending, from the first v where it is 0 to v = 1. `first`: V for each value of the first
    16 bits of U, or `_OPEN`.
    """

    linear: Fraction
    square: Fraction
    edges: Words
    first: Shorts

    def draw(self, begins: Shorts, randomness: Randomness) -> Shorts:
        """Return one V for each element of `begins`, the uniform first 16 bits of its U."""
        drawn: Shorts = self.first.take(begins)
        further = (drawn == _OPEN).nonzero()[0]
        if further.size:
            rest = words(further.size, randomness) >> np.uint64(16)
            read = (begins[further].astype(np.uint64) << np.uint64(48)) | rest
            edge = self.edges.searchsorted(read, side="right")
            drawn[further] = self.edges.size - edge
            for still in (self.edges[edge - 1] == read).nonzero()[0]:
                drawn[further[still]] = self._longer(int(read[still]), randomness)
        return drawn

    def _longer(self, start: int, randomness: Randomness) -> int:
        """Return one V whose U begins with the word `start`, reading U to 192 bits. Raises Fault noise_guard if these do not
        decide V, which has a probability below 2**-180."""
        second, third = words(2, randomness).tolist()
        drawn = start << 128 | second << 64 | third
        edges = tail_edges(self.linear, self.square, 192)
        guard(drawn not in edges)
        return sum(drawn < edge for edge in edges)


@cache
def tails(linear: Fraction, square: Fraction) -> Tails:
    """Return the law with these exponents; `linear` + `square` is at least 1/512 and at most 1, and neither is below 0."""
    edges = np.array(tail_edges(linear, square, 64), dtype=np.uint64)
    begins = (edges >> np.uint64(48)).astype(np.int64)
    above = edges.size - np.bincount(begins, minlength=1 << 16).cumsum()
    above[begins] = _OPEN
    return Tails(linear, square, edges, above.astype(np.uint16))


@cache
def tail_edges(linear: Fraction, square: Fraction, bits: int) -> tuple[int, ...]:
    """Return floor(2**bits P(V >= v)), ascending, from the first v where it is 0 to v = 1.

    Consecutive weights have ratios a(v) that never rise, w(v + 1) = w(v) a(v) and a(v + 1) = a(v) exp(-2 square), so the weights
    omitted from some v on sum to at most w(v) / (1 - a(v)). All numbers are integers that bound the true numbers on both sides;
    if the two sides do not agree on a floor, the guard fires, at the first use of the law and not in a draw.
    """
    unit = 1 << bits + _SPARE_BITS
    lows, highs = [unit], [unit]
    low, high = _scaled_exp(-(linear + square), unit)
    falls = _scaled_exp(-2 * square, unit)
    while lows[-1]:
        lows.append(lows[-1] * low // unit)
        highs.append(highs[-1] * high // unit + 1)
        low, high = low * falls[0] // unit, high * falls[1] // unit + 1
    rest = highs[-1] * unit // (unit - high) + 1
    below, above = sum(lows), sum(highs) + rest
    tail_low, tail_high = 0, rest
    edges = []
    for less, more in zip(lows[:0:-1], highs[:0:-1], strict=True):
        tail_low, tail_high = tail_low + less, tail_high + more
        edge = (tail_low << bits) // above
        guard(edge == (tail_high << bits) // below)
        edges.append(edge)
    return tuple(edges[max(0, edges.count(0) - 1) :])


def _scaled_exp(x: Fraction, unit: int) -> tuple[int, int]:
    return floor(exp_lower(x) * unit), floor(exp_upper(x) * unit) + 1
