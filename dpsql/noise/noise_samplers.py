"""The register of samplers of additive noise, by law."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.errors.exceptions import refuse
from dpsql.noise.randomness import Randomness, bernoulli_exp_unseen, guard, words
from dpsql.noise.samplers import (
    MOST_SIGMA,
    Integers,
    discrete_gaussian,
    discrete_laplace,
    first_kept,
    gaussian_of_variance,
    tails,
)
from dpsql.privacy.mechanisms.contract import Constant, Noise
from dpsql.privacy.mechanisms.correlated_laplace import STEPS, TIES, CorrelatedLaplace, wide_bits
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt
from dpsql.privacy.mechanisms.square_root import SquareRoot, unrolled
from dpsql.privacy.mechanisms.square_root import wide_bits as bits_of_sigma

# Exact draws of noise for running totals (`privacy.mechanisms.square_root`): Gaussians, and the noise they cause on the sums.


def running_vectors(noise: SquareRoot, vectors: int, cells: int, randomness: Randomness) -> Integers:
    """Return `vectors` independent draws of `cells` entries, shape (vectors, cells), in noise-grid units. The cells of a draw are
    runs of `noise.length` entries that are not independent. Raises Fault noise_guard when a guard fires."""
    count, wide = vectors * cells, bits_of_sigma(noise.sigma)
    square = (noise.sigma >> wide) ** 2
    drawn = wide_gaussian(count, square, wide, randomness) if wide else gaussian_of_variance(count, square, randomness)
    return unrolled(drawn.reshape(vectors, cells), noise.length)


# --- Exact draws of discrete Gaussians whose sigma is 2**k times one that `samplers` draws, k from 1 to 7 ---
# P(Z = z) is proportional to exp(-f(|z|)), f(y) = y**2 / (2 4**k square). A magnitude y = 2**k a + b has
#
#     f(y) = a**2 / (2 square) + x,    x = b (2**(k + 1) a + b) / (2**(2 k + 1) square) >= 0.
#
# So a is proposed with P(a) proportional to exp(-a**2 / (2 square)), b uniformly below 2**k, and y is accepted with probability
# exp(-x), by an exact coin; its sign is a fair bit, and one of the two signs of zero is rejected. Accepted numbers have P(z)
# proportional to exp(-f(|z|)) for every z, because each z != 0 has exactly one (sign, a, b), and so has zero.
#
# (sign, a) come from signed draws A with |A| = a: A = 0 is accepted with the sign of a fair bit, any other A only if that bit is
# 0. So (+, 0) and (-, 0) have half the mass of 0, and (sign, a) half that of A: each a mass proportional to
# exp(-a**2 / (2 square)).

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


FRACTION = 16
"""Number of fractional bits in a series of tied noise."""


# Exact draws of multivariate Laplace noise (`privacy.mechanisms.correlated_laplace`): V by inversion, then Gaussians.


def correlated_vectors(noise: CorrelatedLaplace, vectors: int, cells: int, randomness: Randomness) -> Integers:
    """Return `vectors` independent vectors of `cells` entries, shape (vectors, cells), in noise-grid units: one V per vector.

    Vectors with equal V are drawn together: given V, all entries are independent. Raises Fault noise_guard when a guard fires.
    """
    steps = tails(Fraction(1, STEPS), Fraction(0)).draw(words(vectors, randomness, 16), randomness).astype(np.int64) + 1
    drawn = np.empty((vectors, cells), dtype=np.int64)
    for step in np.unique(steps).tolist():
        alike = np.flatnonzero(steps == step)
        entries = _entries(alike.size * cells, step, noise.least_sigma, randomness)
        drawn[alike] = entries.reshape(alike.size, cells)
    return tied(drawn, noise.tie) if noise.tie else drawn


def _entries(count: int, step: int, least_sigma: int, randomness: Randomness) -> Integers:
    """Return `count` entries given that W is `step` / 64."""
    wide = wide_bits(least_sigma)
    square = step * (least_sigma >> wide) ** 2
    return wide_gaussian(count, square, wide, randomness) if wide else gaussian_of_variance(count, square, randomness)


def tied(drawn: Integers, tie: int) -> Integers:
    """Return the noise that `drawn` on B x leaves on x: e_1 = G_1 / s, e_i = (G_i + p e_(i-1)) / 64 in steps of 2**-16, rounded.

    `drawn` has a vector in each row, with entries below 2**32; p is `tie`. The time does not depend on the values.
    """
    series = np.empty_like(drawn)
    state = (drawn[:, 0] << FRACTION) // ceil_sqrt(TIES**2 - tie**2)
    for cell in range(drawn.shape[1]):
        if cell:
            state = ((drawn[:, cell] << FRACTION) + tie * state) // TIES
        series[:, cell] = (state + (1 << FRACTION - 1)) >> FRACTION
    return series


Sampler = Callable[[Any, int, Randomness], Integers | None]
"""A function of (law, count, randomness) that returns one vector of `count` values in noise-grid units, which are independent
unless the law is in `VECTOR_SAMPLERS`; None if the law adds nothing."""

SAMPLERS: dict[type[Any], Sampler] = {
    Laplace: lambda noise, count, randomness: discrete_laplace(count, noise.t, noise.s, randomness),
    Gaussian: lambda noise, count, randomness: discrete_gaussian(count, noise.sigma, randomness),
    CorrelatedLaplace: lambda noise, count, randomness: correlated_vectors(noise, 1, count, randomness).reshape(-1),
    SquareRoot: lambda noise, count, randomness: running_vectors(noise, 1, count, randomness).reshape(-1),
    Constant: lambda noise, count, randomness: None,
}
"""Samplers by the exact type of the law: a subclass of one of these may have another law, and has no sampler."""


# --- the register, by law ---


def sample(noise: Noise, count: int, randomness: Randomness) -> Integers | None:
    """Return one vector of `count` values with exactly the law `noise`, in noise-grid units; None for a constant.

    Raises InternalError noise_plan for a law without a sampler, Fault noise_guard when a sampler's guard fires.
    """
    sampler = SAMPLERS.get(type(noise))
    if sampler is None:
        raise refuse("noise_plan", charged=True, problem="unknown mechanism")
    return sampler(noise, count, randomness)


VectorSampler = Callable[[Any, int, int, Randomness], Integers]
"""A function of (law, vectors, cells, randomness) that returns an array of shape (vectors, cells) with independent rows."""

VECTOR_SAMPLERS: dict[type[Any], VectorSampler] = {CorrelatedLaplace: correlated_vectors, SquareRoot: running_vectors}
"""Samplers of laws under which the entries of one vector are not independent (`registry.Mechanism.shared`)."""


def sample_vectors(noise: Noise, vectors: int, cells: int, randomness: Randomness) -> Integers | None:
    """Return `vectors` independent vectors of `cells` values of `noise` each, shape (vectors, cells); None for a constant.

    Raises the errors of `sample`.
    """
    of_vectors = VECTOR_SAMPLERS.get(type(noise))
    if of_vectors is not None:
        return of_vectors(noise, vectors, cells, randomness)
    drawn = sample(noise, vectors * cells, randomness)
    return None if drawn is None else drawn.reshape(vectors, cells)
