"""Exact samplers: discrete Laplace and discrete Gaussian noise from the operating system's randomness.

Algorithms 1 to 3 of Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020, arXiv
2004.00010), vectorised. Every decision compares a uniform 64-bit word with an integer; no float touches a probability.
Each sampler reads an endless stream of independent candidates and keeps the first accepted ones, so drawing in batches
changes no law. A guard that fires raises (its chance is far below 2**-128); nothing ever wraps.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import floor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.errors import refuse
from dpsql.mechanisms.rational import exp_lower, exp_upper

LEAST_DRAW = 1024
"""Fewer values are never drawn at a time: the time of one draw would tell its size (Jin et al. 2022)."""
MOST_LAPLACE_SCALE = 1 << 40
"""Bound of t and of s; runs are shorter than 134, so that a value stays below 2**48."""
MOST_SIGMA = 1 << 20
"""Bound of sigma: squares in the rejection step stay below 2**62."""

_MOST_STEPS = 1 << 12
_BATCH = 1 << 16
_WORD = 1 << 64

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]


class Randomness(Protocol):
    """A source of independent uniform bytes."""

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes."""


class KernelRandomness:
    """The kernel's generator for small draws, OpenSSL's (seeded and reseeded by the kernel) from `openssl_from` bytes.

    Both are safe after fork. The kernel's also survives the cloning of a virtual machine; OpenSSL's is about 18 times
    faster, which only large draws need. `openssl_from=None` uses the kernel alone. Holds no state.
    """

    def __init__(self, openssl_from: int | None = 1 << 16) -> None:
        self._openssl_from = openssl_from

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes; raises what the operating system raises."""
        if self._openssl_from is not None and size >= self._openssl_from:
            return ssl.RAND_bytes(size)
        return os.urandom(size)


def words(count: int, randomness: Randomness) -> Words:
    """`count` independent uniform integers in [0, 2**64)."""
    raw = randomness.read(8 * count)
    _guard(len(raw) == 8 * count)
    return np.frombuffer(raw, dtype="<u8")


def _coins(count: int, randomness: Randomness) -> NDArray[np.bool_]:
    """`count` fair coins, a bit each."""
    size = (count + 7) // 8
    raw = randomness.read(size)
    _guard(len(raw) == size)
    return np.unpackbits(np.frombuffer(raw, dtype=np.uint8), count=count).view(np.bool_)


def discrete_laplace(count: int, t: int, s: int, randomness: Randomness) -> Integers:
    """`count` independent integers, P(Z = z) proportional to exp(-|z| s / t) (CKS20, Algorithm 2).

    1 <= t, s <= 2**40. At least `LEAST_DRAW` values are drawn. Raises Fault when a guard fires.
    """
    _guard(1 <= t <= MOST_LAPLACE_SCALE and 1 <= s <= MOST_LAPLACE_SCALE)

    def candidates(size: int) -> Integers:
        rest = _below(t, size, randomness)
        rest = rest[_bernoulli_exp(rest, t, randomness)]
        runs = _runs(rest.size, randomness)
        magnitude = (rest.astype(np.int64) + runs * t) // s
        negative = _coins(magnitude.size, randomness)
        # Zero has two signs: one of them is rejected, or zero would come twice as often as it should.
        kept: Integers = np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))]
        return kept

    return _first(count, candidates, share=10)


def discrete_gaussian(count: int, sigma: int, randomness: Randomness) -> Integers:
    """`count` independent integers, P(Z = z) proportional to exp(-z**2 / (2 sigma**2)) (CKS20, Algorithm 3).

    1 <= sigma <= 2**20. The proposal has scale t = sigma, where Algorithm 3 takes floor(sigma) + 1 for real sigmas: any
    t is right as long as acceptance is exp(-(|z| - sigma**2/t)**2 / (2 sigma**2)), which here is over the integers.
    """
    _guard(1 <= sigma <= MOST_SIGMA)
    denominator = np.uint64(2 * sigma * sigma)

    def candidates(size: int) -> Integers:
        proposal = discrete_laplace(size, sigma, 1, randomness)
        off = np.abs(np.abs(proposal) - sigma)
        _guard(bool((off < 1 << 31).all()))
        whole, rest = np.divmod((off * off).astype(np.uint64), denominator)
        accepted = _bernoulli_exp(rest, int(denominator), randomness)
        far = np.flatnonzero(whole)
        # A run of at least n successes of Bernoulli(exp(-1)) has probability exp(-n).
        accepted[far] &= _runs(far.size, randomness).astype(np.uint64) >= whole[far]
        return proposal[accepted]

    return _first(count, candidates, share=12)


def _guard(holds: bool) -> None:
    if not holds:
        raise refuse("noise_guard", charged=True)


def _first(count: int, candidates: Callable[[int], Integers], share: int) -> Integers:
    """The first `count` values of the endless stream that `candidates(size)` reads in batches.

    About `share` sixteenths of the candidates are accepted: batches are that much longer, which changes no law.
    """
    needed = max(count, LEAST_DRAW)
    parts: list[Integers] = []
    while needed > 0:
        part = candidates(min(needed * 16 // share + 128, _BATCH))
        parts.append(part[:needed])
        needed -= part.size
    return np.concatenate(parts)[:count]


def _fair(bound: int, count: int, randomness: Randomness) -> tuple[Words, int]:
    """`count` words uniform on [0, q * bound), and q = floor(2**64 / bound); 2 <= bound <= 2**62."""
    _guard(2 <= bound <= 1 << 62)
    share = _WORD // bound
    last = np.uint64(share * bound - 1)
    drawn = words(count, randomness)
    outside = (drawn > last).nonzero()[0]
    if outside.size:
        drawn = drawn.copy()
    while outside.size:
        drawn[outside] = words(outside.size, randomness)
        outside = outside[drawn[outside] > last]
    return drawn, share


def _below(bound: int, count: int, randomness: Randomness) -> Words:
    """`count` uniform integers in [0, bound)."""
    if bound == 1:
        return np.zeros(count, dtype=np.uint64)
    drawn, share = _fair(bound, count, randomness)
    return drawn // np.uint64(share)


def _bernoulli(numerators: Words, denominator: int, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability numerator / denominator, each for itself; numerators < denominator."""
    drawn, share = _fair(denominator, numerators.size, randomness)
    return drawn < numerators * np.uint64(share)


def _bernoulli_exp(numerators: Words, denominator: int, randomness: Randomness) -> NDArray[np.bool_]:
    """True with probability exp(-numerator / denominator), each for itself (CKS20, Algorithm 1).

    0 <= numerator < denominator, or numerator = denominator = 1. With A_k Bernoulli(x / k), the first k with A_k = 0
    is odd with probability exp(-x).
    """
    odd = np.ones(numerators.size, dtype=bool)
    index = np.arange(numerators.size)
    step = 1
    if denominator == 1:
        # x = 1: A_1 always succeeds (x = 0 never does), and 1/1 is no comparison of a word.
        index = np.flatnonzero(numerators)
        numerators = numerators[index]
        odd[index] = False
        step = 2
    while index.size:
        _guard(step < _MOST_STEPS)
        on = _bernoulli(numerators, denominator * step, randomness)
        index, numerators = index[on], numerators[on]
        step += 1
        odd[index] = step % 2 == 1
    return odd


def _runs(count: int, randomness: Randomness) -> Integers:
    """`count` lengths of runs of successes of Bernoulli(exp(-1)) before a failure: P(V >= v) = exp(-v).

    V is how many exp(-v), v = 1, 2, ..., are above a uniform U in [0, 1). One word is where U begins, which tells unless
    an exp(-v) begins with the same word: then (chance below 2**-58 for each) U is read further.
    """
    drawn = words(count, randomness)
    edges = _edges()
    at = edges.searchsorted(drawn, side="right")
    lengths: Integers = (edges.size - at).astype(np.int64, copy=False)
    for open_end in (edges[at - 1] == drawn).nonzero()[0]:
        lengths[open_end] = _longer(int(drawn[open_end]), randomness)
    return lengths


def _longer(start: int, randomness: Randomness) -> int:
    """One run whose U begins with the word `start`, read to 192 bits; it still ends like an exp(-v) below 2**-184."""
    second, third = words(2, randomness).tolist()
    drawn = start << 128 | second << 64 | third
    edges = _powers(192)
    _guard(drawn not in edges)
    return sum(drawn < edge for edge in edges)


@cache
def _edges() -> Words:
    return np.array(_powers(64), dtype=np.uint64)


@cache
def _powers(bits: int) -> tuple[int, ...]:
    """floor(2**bits exp(-v)) ascending, from the first v where it is 0 to v = 1."""
    found = [1]
    while found[-1]:
        below, above = (floor(bound(Fraction(-len(found))) * (1 << bits)) for bound in (exp_lower, exp_upper))
        _guard(below == above)
        found.append(below)
    return tuple(reversed(found[1:]))
