"""Replicates of public noise laws, drawn again from a key: post-processing, so doubles are fine here.

The draws have nothing to do with the randomness of the release. They are a function of the released numbers alone, so
the same release always shows the same error bars.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from dpsql.privacy.mechanisms.registry import is_registered, registered
from dpsql.release.remainder import NoisyTerm

Floats = npt.NDArray[np.float64]


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
    return is_registered(term.noise)


def deviates(term: NoisyTerm, uniform: Floats) -> Floats:
    """Noise of `term` at the quantiles `uniform`, in the units of its values. Raises InternalError unless `known_law`."""
    noise = registered(term.noise).quantiles(uniform) * term.noise_unit
    return np.rint(noise) if term.whole else noise
