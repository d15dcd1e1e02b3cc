"""Exact draws of multivariate Laplace noise (`privacy.mechanisms.correlated_laplace`): V by inversion, then Gaussians."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsql.noise.inversion import tails
from dpsql.noise.randomness import Randomness, words
from dpsql.noise.samplers import Integers, gaussian_of_variance
from dpsql.noise.wide_gaussian import wide_gaussian
from dpsql.privacy.mechanisms.correlated_laplace import STEPS, TIES, CorrelatedLaplace, wide_bits
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt

FRACTION = 16
"""Number of fractional bits in a series of tied noise."""


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
