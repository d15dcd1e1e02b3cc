"""The register of samplers of additive noise, by law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.noise.correlated_laplace import correlated_vectors
from dpsql.noise.randomness import Randomness
from dpsql.noise.samplers import Integers, discrete_gaussian, discrete_laplace
from dpsql.noise.square_root import running_vectors
from dpsql.privacy.mechanisms.contract import Constant, Noise
from dpsql.privacy.mechanisms.correlated_laplace import CorrelatedLaplace
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.square_root import SquareRoot

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
