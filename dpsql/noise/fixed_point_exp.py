"""Integers that enclose exp(-rate d) for whole numbers d >= 0: in vectors, and more precisely for single undecided numbers.

d is split into digits of `_DIGIT_BITS` bits; each digit has a table of the powers of its base, computed in integers that bound
the true numbers on both sides, and the factors of the digits are multiplied. There are no floats here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.randomness import Words, guard
from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper

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

Integers = NDArray[np.int64]


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
        for place, table in enumerate(self.digits[1:], 1):
            value = product(value, table[(distances >> (place * _DIGIT_BITS)) & mask])
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
            for place, (lows, highs) in enumerate(digits):
                digit = distance >> (place * _DIGIT_BITS) & mask
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
    places = max(1, -(-last.bit_length() // _DIGIT_BITS))
    sizes = [min(1 << _DIGIT_BITS, (last >> (place * _DIGIT_BITS)) + 1) for place in range(places)]
    return last, [_powers(rate * (1 << (place * _DIGIT_BITS)), size, bits) for place, size in enumerate(sizes)]


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
