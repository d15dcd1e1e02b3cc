"""Exact samplers: discrete Laplace and discrete Gaussian noise from the operating system's randomness, vectorised.

Both are rejection samplers over blocks of equal width w. The target density of a magnitude y = j w + r is proportional to
exp(-f(y)), with f increasing. The block number j is drawn by inversion (`tails`) with P(J = j) proportional to exp(-e(j)),
where e(j) <= f(j w); r is uniform in [0, w); and y is accepted with probability exp(-(f(y) - e(j))). So y is returned with
a probability proportional to exp(-e(j)) (1 / w) exp(-(f(y) - e(j))), which is exp(-f(y)) times a constant. With 16 blocks
per scale, f(y) - e(j) is about j / 256 or below 1 / 16, so nearly all candidates are accepted and few need a second look.

Nothing is rounded: f(y) - e(j) is a fraction of integers, the coin with probability exp(-(f(y) - e(j))) is exact
(`randomness`), and each candidate is independent of all others. A sampler returns the first accepted values of an endless
stream of candidates, so drawing in batches does not change the law. The probabilities are those of Canonne, Kamath,
Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020, arXiv 2004.00010), Algorithms 2 and 3, which
propose with j alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from math import floor, gcd
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt, exp_lower, exp_upper
from dpsql.storage.records import dataclass

# --- uniform words from the operating system, and coins with exact probabilities --------------------------------------
# Every decision compares a uniform word with an integer; no probability is a float. A guard that fires raises (which
# has a probability far below 2**-128 if the source of randomness works); nothing ever wraps.

LOOK_BITS = 12
"""The probability of a first look at a coin is a multiple of 2**-12 (see `bernoulli_exp`)."""
_MOST_STEPS = 1 << 12
_TOP = np.uint64((1 << 64) - 1)

Words = NDArray[np.uint64]
Truths = NDArray[np.bool_]


class Randomness(Protocol):
    """A source of independent uniform bytes."""

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes."""


class KernelRandomness:
    """The kernel's generator for small draws, OpenSSL's (seeded and reseeded by the kernel) from `openssl_from` bytes on.

    Both are safe after fork. The kernel's generator is also safe after cloning a virtual machine; OpenSSL's is about 18 times
    faster, which only large draws need. `openssl_from=None` uses the kernel alone. Instances hold no state.
    """

    def __init__(self, openssl_from: int | None = 1 << 16) -> None:
        self._openssl_from = openssl_from

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes. Raises the errors of the operating system."""
        if self._openssl_from is not None and size >= self._openssl_from:
            from ssl import RAND_bytes  # it takes a hundredth of a second, and few processes draw so much

            return RAND_bytes(size)
        return os.urandom(size)


def guard(holds: bool) -> None:
    """Raise Fault noise_guard, with the charge kept, unless `holds`, a condition that always holds in correct operation."""
    if not holds:
        raise refuse("noise_guard", charged=True)


def words(count: int, randomness: Randomness, bits: int = 64) -> NDArray[Any]:
    """Return `count` independent uniform integers in [0, 2**bits), as unsigned integers of `bits` = 8, 16, 32 or 64 bits."""
    raw = randomness.read(bits // 8 * count)
    guard(len(raw) == bits // 8 * count)
    return np.frombuffer(raw, dtype=f"<u{bits // 8}")


def bernoulli(numerators: Words, bounds: Words | np.uint64, randomness: Randomness) -> Truths:
    """Return independent booleans that are True with probability numerator / bound; numerator <= bound, 1 <= bound <= 2**62.

    Words of at least share * bound are drawn again, so that each of 0..bound-1 owns exactly `share` words.
    """
    shares = _TOP // bounds
    drawn = words(numerators.size, randomness)
    outside = (drawn >= shares * bounds).nonzero()[0]
    if outside.size:
        drawn, ends = drawn.copy(), np.broadcast_to(shares * bounds, drawn.shape)
        while outside.size:
            drawn[outside] = words(outside.size, randomness)
            outside = outside[drawn[outside] >= ends[outside]]
    return drawn < numerators * shares


def bernoulli_exp(numerators: Words, denominator: int, looks: Words, randomness: Randomness) -> Truths:
    """Complete independent coins that are True with probability exp(-x), for those that a first look did not decide.

    x = numerator / denominator in [0, 1]. With A_k Bernoulli(x / k), the first k with A_k = 0 is odd with probability
    exp(-x) (Canonne, Kamath, Steinke, arXiv 2004.00010, Algorithm 1). A_1 is two coins that must both succeed: the look,
    Bernoulli(look / 2**12) for some look / 2**12 >= x, and one here, Bernoulli(x 2**12 / look). The caller has tossed the
    look: where it failed, A_1 = 0 and the result is True; the others are passed here with their `looks` (1 to 2**12).
    """
    bounds = looks * np.uint64(denominator)
    guard(denominator <= 1 << 62 - LOOK_BITS)
    on = bernoulli(numerators << np.uint64(LOOK_BITS), bounds, randomness)
    return _first_failure_is_odd(on, numerators, denominator, randomness)


def bernoulli_exp_unseen(numerators: Words, denominator: int, randomness: Randomness) -> Truths:
    """Return independent booleans that are True with probability exp(-x), x = numerator / denominator in [0, 1], without a first
    look.

    `denominator` is at most 2**55, so that A_1 to A_127 can be tossed; all of them succeed, so that a guard fires, with
    probability at most 1 / 127!.
    """
    guard(denominator <= 1 << 55 and bool((numerators <= np.uint64(denominator)).all()))
    on = bernoulli(numerators, np.uint64(denominator), randomness)
    return _first_failure_is_odd(on, numerators, denominator, randomness)


def _first_failure_is_odd(on: Truths, numerators: Words, denominator: int, randomness: Randomness) -> Truths:
    """Return for each coin whether the first k with A_k = 0 is odd, where `on` is A_1."""
    odd = ~on
    index, numerators = on.nonzero()[0], numerators[on]
    step = 2
    while index.size:
        guard(step < _MOST_STEPS and denominator * step <= 1 << 62)
        on = bernoulli(numerators, np.uint64(denominator * step), randomness)
        index, numerators = index[on], numerators[on]
        step += 1
        odd[index] = step % 2 == 1
    return odd


# --- inversion --------------------------------------------------------------------------------------------------------

# Exact draws of a number V = 0, 1, 2, ... by inversion: V is the number of P(V >= 1), P(V >= 2), ... that lie above a uniform
# U.
# U is read a few bits at a time. The first bits of U decide V unless one of these probabilities, which are irrational, begins
# with the same bits; then U is read further: 16 bits, 64, 192. Nothing is rounded at any precision.

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


# --- samplers ---------------------------------------------------------------------------------------------------------

LEAST_DRAW = 1024
"""Least number of values per call: the time to draw a single value would reveal its size (Jin et al. 2022)."""
MOST_LAPLACE_SCALE = 1 << 40
"""Upper bound of t and of s; there are at most 2,200 blocks of width t/16, so a magnitude stays below 2**48."""
MOST_SIGMA = 1 << 20
"""Upper bound of sigma; there are at most 300 blocks of width sigma/16, so (16 y)**2 stays below 2**57."""

_BLOCKS = 16
"""Blocks per scale."""
_FINE = 256
"""From this t on, a block of width ceil(t / 16) is hardly wider than t / 16."""
_BATCH = 1 << 16
_MOST_BARREN = 64

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Magnitudes:
    """Proposals for y >= 0 with target density exp(-f(y)): block numbers j from `blocks`, `width` values per block.

    excess(j, y) / denominator = f(y) - e(j). (`caps[j]` + 1) 2**-16 is a multiple of 2**-12 and at least the smaller of 1 and
    f(y) - e(j) for every y of block j; the last entry gives 1 and holds for all later blocks. About `tried` / `accepted`
    candidates are needed per value.
    """

    blocks: Tails
    width: int
    denominator: int
    excess: Callable[[Integers, Integers], Integers]
    caps: Shorts
    tried: int
    accepted: int


@lru_cache(maxsize=256)
def _geometric(t: int) -> _Magnitudes:
    """Return proposals for f(y) = y / t, e(j) = j / b, b blocks per t: f(y) - e(j) = (b y - t j) / (b t); b divides small t."""
    blocks = gcd(t, _BLOCKS) if t < _FINE else _BLOCKS
    width = -(-t // blocks)
    law = tails(Fraction(1, blocks), Fraction(0))

    def excess(j: Integers, y: Integers) -> Integers:
        return y * blocks - j * t

    caps = _caps(law, width, blocks * t, excess)
    return _Magnitudes(law, width, blocks * t, excess, caps, width * (12 * blocks + 7), 12 * t + 6)


@lru_cache(maxsize=256)
def _half_gaussian(sigma: int) -> _Magnitudes:
    """Return proposals for f(y) = y**2 / (2 sigma**2)."""
    return _half_gaussian_of(sigma * sigma)


@lru_cache(maxsize=1024)
def _half_gaussian_of(square: int) -> _Magnitudes:
    """Return proposals for f(y) = y**2 / (2 square) and e(j) = j**2 / (2 16**2), with `denominator` 2 16**2 square. The block
    width w is the least integer with (16 w)**2 >= square, so that e(j) <= f(j w)."""
    sigma = ceil_sqrt(square)
    width = -(-sigma // _BLOCKS)
    law = tails(Fraction(0), Fraction(1, 2 * _BLOCKS**2))
    denominator = 2 * _BLOCKS**2 * square

    def excess(j: Integers, y: Integers) -> Integers:
        return (y * _BLOCKS) ** 2 - j * j * square

    return _Magnitudes(law, width, denominator, excess, _caps(law, width, denominator, excess), 84 * width, 5 * sigma)


def _caps(law: Tails, width: int, denominator: int, excess: Callable[[Integers, Integers], Integers]) -> Shorts:
    """Return `_Magnitudes.caps`: the excess rises with y, so the last y of a block bounds all others."""
    j = np.arange(law.edges.size + 1)
    worst = np.minimum(excess(j, (j + 1) * width - 1), denominator)
    looks = np.maximum(1, -(-(worst << LOOK_BITS) // denominator))
    looks[-1] = 1 << LOOK_BITS
    caps: Shorts = ((looks << 16 - LOOK_BITS) - 1).astype(np.uint16)
    return caps


def discrete_laplace(count: int, t: int, s: int, randomness: Randomness) -> Integers:
    """Return `count` independent integers with P(Z = z) proportional to exp(-|z| s / t): |Z| is floor(geometric magnitude / s).

    1 <= t, s <= 2**40. At least `LEAST_DRAW` values are drawn. Raises Fault when a guard fires.
    """
    guard(1 <= t <= MOST_LAPLACE_SCALE and 1 <= s <= MOST_LAPLACE_SCALE)
    return _drawn(count, _geometric(t), s, randomness)


def discrete_gaussian(count: int, sigma: int, randomness: Randomness) -> Integers:
    """Return `count` independent integers with P(Z = z) proportional to exp(-z**2 / (2 sigma**2)).

    1 <= sigma <= 2**20. At least `LEAST_DRAW` values are drawn. Raises Fault when a guard fires.
    """
    guard(1 <= sigma <= MOST_SIGMA)
    return _drawn(count, _half_gaussian(sigma), 1, randomness)


def gaussian_of_variance(count: int, square: int, randomness: Randomness) -> Integers:
    """Return `count` independent integers with P(Z = z) proportional to exp(-z**2 / (2 square)); `square` may be any integer.

    1 <= square <= 2**40. At least `LEAST_DRAW` values are drawn. Raises Fault when a guard fires.
    """
    guard(1 <= square <= MOST_SIGMA**2)
    return _drawn(count, _half_gaussian_of(square), 1, randomness)


def _drawn(count: int, law: _Magnitudes, divisor: int, randomness: Randomness) -> Integers:
    """Return the first `count` values of the endless stream of signed floor(y / divisor)."""

    def enough(missing: int) -> int:
        likely = missing * law.tried // law.accepted
        return likely + likely // 64 + 64

    return first_kept(count, enough, lambda size: _candidates(size, law, divisor, randomness))


def first_kept(count: int, enough: Callable[[int], int], candidates: Callable[[int], Integers]) -> Integers:
    """Return the first `count` accepted values of an endless stream that is read in batches; at least `LEAST_DRAW` are drawn.

    `candidates(size)` draws `size` candidates and returns the accepted ones, in order; `enough(missing)` is a number of
    candidates that most likely yields `missing` values. Raises Fault noise_guard after `_MOST_BARREN` batches without a value.
    """
    needed = max(count, LEAST_DRAW)
    values = np.empty(needed, dtype=np.int64)
    filled = barren = 0
    while filled < needed:
        missing = needed - filled
        part = candidates(min(enough(missing), _BATCH))[:missing]
        values[filled : filled + part.size] = part
        filled += part.size
        barren = 0 if part.size else barren + 1
        guard(barren < _MOST_BARREN)
    return values[:count]


def _candidates(size: int, law: _Magnitudes, divisor: int, randomness: Randomness) -> Integers:
    """Return the values accepted among `size` candidates, in order. A candidate reads 16 bits for j, 16 bits for the first
    look at its coin, and 32 or 64 bits for r and the sign."""
    begins, looks = words(2 * size, randomness, 16).reshape(2, size)
    bits = 32 if 2 * law.width <= 1 << 17 else 64
    indexes: Any = words(size, randomness, bits)
    share = (1 << bits) // (2 * law.width)
    sided = indexes // indexes.dtype.type(share)
    j = law.blocks.draw(begins, randomness)
    y = j.astype(np.int64)
    y *= law.width
    y += (sided >> indexes.dtype.type(1)).view(np.dtype(f"i{bits // 8}"))
    # Discard words at the end of the range, which would make some r more likely than others.
    accepted = indexes <= indexes.dtype.type(share * 2 * law.width - 1)
    near = (accepted & (looks <= law.caps.take(j, mode="clip"))).nonzero()[0]
    accepted[near] = _survives(j[near], y[near], law, randomness)
    if divisor > 1:
        y //= divisor
    sign = -(sided & indexes.dtype.type(1)).astype(np.int64)
    # Zero has two signs: reject one of them, or zero would be drawn twice as often as it should.
    accepted &= (y != 0) | (sign == 0)
    y ^= sign
    y -= sign
    values: Integers = y[accepted]
    return values


def _survives(j: Shorts, y: Integers, law: _Magnitudes, randomness: Randomness) -> Truths:
    """Return the outcomes of coins with probability exp(-(f(y) - e(j))) whose first look, Bernoulli((caps[j] + 1) / 2**16), was
    True; where the look is False, the coin is True without this call."""
    looks = (law.caps.take(j, mode="clip").astype(np.uint64) + np.uint64(1)) >> np.uint64(16 - LOOK_BITS)
    whole, rest = np.divmod(law.excess(j.astype(np.int64), y), law.denominator)
    survives = bernoulli_exp(rest.view(np.uint64), law.denominator, looks, randomness)
    far = whole.nonzero()[0]
    if far.size:  # a run of length n or more has probability exp(-n); the look at an excess of 1 or more is always True
        survives[far] &= _runs(far.size, randomness) >= whole[far]
    return survives


def _runs(count: int, randomness: Randomness) -> Shorts:
    """Return `count` lengths V with P(V >= v) = exp(-v)."""
    return tails(Fraction(1), Fraction(0)).draw(words(count, randomness, 16), randomness)
