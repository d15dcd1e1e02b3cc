"""Exact draws of discrete Gaussians whose sigma is 2**k times one that `samplers` draws, k from 1 to 7.

P(Z = z) is proportional to exp(-f(|z|)), f(y) = y**2 / (2 4**k square). A magnitude y = 2**k a + b has

    f(y) = a**2 / (2 square) + x,    x = b (2**(k + 1) a + b) / (2**(2 k + 1) square) >= 0.

So a is proposed with P(a) proportional to exp(-a**2 / (2 square)), b uniformly below 2**k, and y is accepted with probability
exp(-x), by an exact coin; its sign is a fair bit, and one of the two signs of zero is rejected. Accepted numbers have P(z)
proportional to exp(-f(|z|)) for every z, because each z != 0 has exactly one (sign, a, b), and so has zero.

(sign, a) come from signed draws A with |A| = a: A = 0 is accepted with the sign of a fair bit, any other A only if that bit is 0.
So (+, 0) and (-, 0) have half the mass of 0, and (sign, a) half that of A: each a mass proportional to exp(-a**2 / (2 square)).
"""

from __future__ import annotations

import numpy as np

from dpsql.noise.randomness import Randomness, bernoulli_exp_unseen, guard, words
from dpsql.noise.samplers import MOST_SIGMA, Integers, first_kept, gaussian_of_variance

MOST_BITS = 7
LEAST_SQUARE = 1 << 12
"""From this square on, x is at most (a + 1) / square < 1 for each of the at most 262 blocks of a that 192 bits can yield."""


def wide_gaussian(count: int, square: int, bits: int, randomness: Randomness) -> Integers:
    """Return `count` independent integers with P(Z = z) proportional to exp(-z**2 / (2 square 4**bits)).

    2**12 <= square <= 2**40, 1 <= bits <= 7. Raises Fault noise_guard when a guard fires.
    """
    guard(LEAST_SQUARE <= square <= MOST_SIGMA**2 and 1 <= bits <= MOST_BITS)

    def candidates(size: int) -> Integers:
        return wide_candidates(gaussian_of_variance(size, square, randomness), square, bits, randomness)

    return first_kept(count, lambda missing: 2 * missing * 33 // 32 + 256, candidates)


def wide_candidates(coarse: Integers, square: int, bits: int, randomness: Randomness) -> Integers:
    """Return the accepted numbers of candidates with the signed draws `coarse` as A, in order. Each candidate reads a word of 8
    bits: b, and the bit of the sign."""
    drawn = words(coarse.size, randomness, 8).astype(np.int64)
    minus, b = drawn >> 7, drawn & ((1 << bits) - 1)
    halved = (coarse == 0) | (minus == 0)
    a, b, sign = np.abs(coarse)[halved], b[halved], np.where(coarse == 0, minus, coarse < 0)[halved]
    numerators = (b * ((a << bits + 1) + b)).astype(np.uint64)
    survives = bernoulli_exp_unseen(numerators, square << 2 * bits + 1, randomness)
    y = (a << bits) + b
    survives &= (y != 0) | (sign == 0)
    return np.asarray(np.where(sign == 1, -y, y)[survives])
