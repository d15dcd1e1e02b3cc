"""Replicates of public noise laws, drawn again from a key: post-processing, so doubles are fine here.

The draws have nothing to do with the randomness of the release. They are a function of the released numbers alone, so
the same release always shows the same error bars.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpsql.errors.exceptions import refuse
from dpsql.privacy.mechanisms.noise_sums import SummedLaplace
from dpsql.release.remainder import NoisyTerm

Floats = npt.NDArray[np.float64]

_FINEST = 4096
"""A Gaussian of more steps than this is drawn on a coarser grid; that moves no quantile by more than sigma / 8192."""
_REACH = 9


def uniforms(key: str, count: int) -> Floats:
    """`count` numbers in (0, 1) from SHAKE-256 of `key`: 53 bits each."""
    words = np.frombuffer(hashlib.shake_256(key.encode()).digest(8 * count), dtype=np.uint64)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def stratified(key: str, count: int) -> Floats:
    """`count` numbers in (0, 1), one in each of `count` equal cells, in random order (Latin hypercube sampling:
    McKay, Beckman and Conover 1979), so that one dimension alone is integrated almost exactly."""
    drawn = uniforms(key, 2 * count)
    return (np.argsort(drawn[:count]) + drawn[count:]) / count


def known_law(term: NoisyTerm) -> bool:
    """Whether replicates of this term's noise can be drawn."""
    return term.noise.mechanism in ("laplace", "gaussian", "constant") or isinstance(term.noise, SummedLaplace)


def deviates(term: NoisyTerm, uniform: Floats) -> Floats:
    """Noise of `term` at the quantiles `uniform`, in the units of its values. Raises InternalError unless `known_law`."""
    scale = float(term.noise.noise_scale)
    if term.noise.mechanism == "laplace":
        steps = _laplace(scale, uniform)
    elif term.noise.mechanism == "gaussian":
        steps = _gaussian(scale, uniform)
    elif isinstance(term.noise, SummedLaplace):
        steps = term.noise.quantiles(uniform)
    elif term.noise.mechanism == "constant":
        steps = np.zeros_like(uniform)
    else:
        raise refuse("internal", what=f"noise of a law that cannot be drawn: {term.noise.mechanism}")
    noise = steps * term.noise_unit
    return np.rint(noise) if term.whole else noise


def _laplace(scale: float, uniform: Floats) -> Floats:
    """Inverse of P(|Z| >= k) = 2 q^k / (1 + q), q = exp(-1/scale): the discrete law, not its limit."""
    tail = 2 * np.minimum(uniform, 1 - uniform)
    size = np.floor(np.maximum(scale * (math.log(2) - np.log(tail) - math.log1p(math.exp(-1 / scale))), 0))
    return np.asarray(np.sign(uniform - 0.5) * size)


def _gaussian(sigma: float, uniform: Floats) -> Floats:
    """Inverse of the cumulated P(Z = k), proportional to exp(-k^2 / (2 sigma^2))."""
    step, points, cumulated = _gaussian_table(sigma)
    return np.asarray(step * points[np.minimum(np.searchsorted(cumulated, uniform), len(points) - 1)])


@lru_cache(maxsize=32)
def _gaussian_table(sigma: float) -> tuple[float, Floats, Floats]:
    step = math.ceil(sigma / _FINEST)
    reach = math.ceil(_REACH * sigma / step)
    points = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-0.5 * (points * step / sigma) ** 2)
    cumulated = np.cumsum(mass)
    return float(step), points, cumulated / cumulated[-1]
