"""Exact draws of noise for running totals (`privacy.mechanisms.square_root`): Gaussians, and the noise they cause on the sums."""

from __future__ import annotations

from dpsql.noise.randomness import Randomness
from dpsql.noise.samplers import Integers, gaussian_of_variance
from dpsql.noise.wide_gaussian import wide_gaussian
from dpsql.privacy.mechanisms.square_root import SquareRoot, unrolled, wide_bits


def running_vectors(noise: SquareRoot, vectors: int, cells: int, randomness: Randomness) -> Integers:
    """Return `vectors` independent draws of `cells` entries, shape (vectors, cells), in noise-grid units. The cells of a draw are
    runs of `noise.length` entries that are not independent. Raises Fault noise_guard when a guard fires."""
    count, wide = vectors * cells, wide_bits(noise.sigma)
    square = (noise.sigma >> wide) ** 2
    drawn = wide_gaussian(count, square, wide, randomness) if wide else gaussian_of_variance(count, square, randomness)
    return unrolled(drawn.reshape(vectors, cells), noise.length)
