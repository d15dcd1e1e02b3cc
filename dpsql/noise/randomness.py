"""Uniform words from the operating system, and coins with exact probabilities.

Every decision compares a uniform word with an integer; no probability is a float. A guard that fires raises (which has a
probability far below 2**-128 if the source of randomness works); nothing ever wraps.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse

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
