"""Which sampler draws which law: the noise floor's part of every mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.noise.randomness import Randomness
from dpsql.noise.samplers import Integers, discrete_gaussian, discrete_laplace
from dpsql.privacy.mechanisms.contract import Constant, Noise
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace

Sampler = Callable[[Any, int, Randomness], Integers | None]
"""(law, count, randomness): `count` independent values in noise-grid units; None where nothing is added."""

SAMPLERS: dict[type[Any], Sampler] = {
    Laplace: lambda noise, count, randomness: discrete_laplace(count, noise.t, noise.s, randomness),
    Gaussian: lambda noise, count, randomness: discrete_gaussian(count, noise.sigma, randomness),
    Constant: lambda noise, count, randomness: None,
}
"""By the law itself: a class derived from one of these may have another law, and is not drawn."""


def sample(noise: Noise, count: int, randomness: Randomness) -> Integers | None:
    """`count` independent values of `noise`, exactly of its law, in noise-grid units; None for a constant.

    Raises InternalError noise_plan for a law without a sampler, Fault noise_guard when a sampler's guard fires.
    """
    sampler = SAMPLERS.get(type(noise))
    if sampler is None:
        raise refuse("noise_plan", charged=True, problem="unknown mechanism")
    return sampler(noise, count, randomness)
