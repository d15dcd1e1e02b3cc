"""Laws of released noise: replicates of it, derived from a key, and the error of weighted sums of noisy terms.

This is post-processing of what is public, so doubles are allowed.

The draws are independent of the randomness of the release. They are a function of the released numbers alone, so the same
release always has the same error bars.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpsql.noise.perturb import NoisyNumbers, ReleasedTerm
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.privacy.mechanisms.registry import is_registered, is_shared, registered, vector_law
from dpsql.release.formulas import Linear, Part
from dpsql.release.remainder import ConsistentTerm, PooledTerm, measured_again
from dpsql.storage.records import dataclass, hashed_once

Floats = npt.NDArray[np.float64]
_LEAST_SHOWN = 1.0
"""The least exact count of a key that is shown."""
_POINTS = 4096
_REACH = 36
"""Number of standard deviations beyond which every law here has a probability of less than 1e-19."""


def uniforms(key: str, count: int) -> Floats:
    """Return `count` numbers in (0, 1) with 53 bits each, from SHAKE-256 of `key`."""
    words = np.frombuffer(hashlib.shake_256(key.encode()).digest(8 * count), dtype=np.uint64)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def stratified(key: str, count: int) -> Floats:
    """Return `count` numbers in (0, 1), one in each of `count` equal subintervals, in random order (Latin hypercube sampling:
    McKay, Beckman and Conover 1979), so that integrals over a single dimension are almost exact."""
    drawn = uniforms(key, 2 * count)
    return (np.argsort(drawn[:count]) + drawn[count:]) / count


def known_law(term: ReleasedTerm) -> bool:
    return is_registered(term.noise)


@hashed_once
@dataclass(frozen=True)
class TermLaw(NoisyNumbers):
    """The law of the error of one released term (`ReleasedTerm`)."""

    noise: Noise
    noise_unit: float
    whole: bool


def deviates(term: NoisyNumbers, uniform: Floats) -> Floats:
    """Return noise of `term` at the probabilities `uniform`, in units of its values. Raises InternalError unless `known_law`."""
    noise = registered(term.noise).quantiles(uniform) * term.noise_unit
    return np.rint(noise) if term.whole else noise


def replicates(term: ReleasedTerm, seed: str, block: str, draws: int) -> Floats:
    """Return two independent sets of noise for all cells of `term`: shape (2, draws, cells), in the units of its values.

    Cells of measured tables are independent, or have the joint law of their mechanism's vectors; cells of consistent tiles have
    the joint law that results from least squares.
    """
    if isinstance(term, PooledTerm):
        key = f"{seed}/{block}/{term.name}"
        return term.summed(_of_vectors(term.law, term.unit, key, (2 * draws, len(term.group)))).reshape(2, draws, -1)
    if isinstance(term, ConsistentTerm):
        return measured_again(term.joint, _independent, seed, 2 * draws)[term.tile].reshape(2, draws, -1)
    return _independent(term, f"{seed}/{block}/{term.name}", 2 * draws).reshape(2, draws, -1)


def _independent(term: ReleasedTerm, key: str, draws: int) -> Floats:
    cells = len(term.values)
    if is_shared(term.noise):
        noise = _of_vectors(term.noise, term.noise_unit, key, (draws, cells))
        return np.rint(noise) if term.whole else noise
    return deviates(term, uniforms(key, draws * cells)).reshape(draws, cells)


def _of_vectors(law: Noise, unit: float, key: str, shape: tuple[int, int]) -> Floats:
    """Return noise of `shape` (draws, cells) for vectors whose cells are not independent; `unit` is the size of one noise step.
    Raises InternalError for a law that is not a law of vectors."""
    draws, cells = shape
    shared, uniform = uniforms(f"{key}/shared", draws)[:, None], uniforms(key, draws * cells).reshape(draws, cells)
    return np.asarray(vector_law(law).joint_quantiles(shared, uniform) * unit)


@lru_cache(maxsize=64)
def tabled(noise: Noise) -> tuple[int, Floats]:
    """Return a table of a noise law: a width in noise-grid steps, and the probabilities of -n, ..., 0, ..., n widths.

    P(Z <= -k) is the probability at which the quantiles pass -k, found by bisection of its logarithm; the law is symmetric.
    """
    deviation = noise.standard_deviation() / 2.0**noise.shift
    width = max(1, math.ceil(deviation * _REACH / _POINTS))
    points = np.arange(1, math.ceil(_REACH * deviation / width) + 2, dtype=np.float64) * width
    law = registered(noise)
    low, high = np.full(len(points), -700.0), np.full(len(points), math.log(0.5))
    for _ in range(60):
        middle = (low + high) / 2
        within = law.quantiles(np.exp(middle)) <= -points + width / 2
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    tail = np.concatenate((np.exp(low), [0.0]))  # P(Z <= -k) by k, cut in the middle between two points
    side = np.maximum(tail[:-1] - tail[1:], 0.0)
    return width, np.concatenate((side[::-1], [max(0.0, 1 - 2 * side.sum())], side))


def values_given_shown(term: ReleasedTerm, released: Floats, shown_from: float, uniform: Floats) -> Floats:
    """Return draws of the exact counts at the probabilities `uniform`, shape (rows, draws), for noisy counts that are shown only
    because they are large. `released` and `shown_from` (the threshold) are in the unit of the term.

    A private key appears when its noisy count is at least a threshold, so the noise of counts that are shown is biased upward.
    With Z the noise, t the count shown, c the threshold and b the exact count, F(b) = P(b + Z <= t given b + Z >= c) falls from
    1 to 0 as b rises, and F at the exact count is uniform in (0, 1), given that the key is shown. So the b with F(b) = u for
    uniform u are a confidence distribution of the exact count (for truncated normal laws Lee, Sun, Sun and Taylor 2016), exact
    for the counts that are shown. Well above the threshold it is t - Z. A key is shown only if the data has it, so b >= 1.
    """
    step, mass = tabled(term.noise)
    reach = (len(mass) - 1) // 2
    unit = step * term.noise_unit
    below = np.concatenate(([0.0], np.cumsum(mass)))  # below[i] = P(noise < (i - reach) steps)
    above = np.concatenate((np.cumsum(mass[::-1])[::-1], [0.0]))  # above[i] = P(noise >= (i - reach) steps)
    offsets = np.maximum(np.rint((released - shown_from) / unit), 0).astype(np.int64)
    exact = np.empty((len(released), len(uniform)))
    for offset in np.unique(offsets):
        rows = offsets == offset
        if offset > 2 * reach:
            noise = np.searchsorted(below[1:], uniform) - reach
            exact[rows] = released[rows, None] - noise * unit
            continue
        most = max(reach, offset) + 1
        steps = np.arange(-reach, most + 1)  # candidates for the noise t - b
        first = np.clip(steps - offset + reach, 0, len(mass))  # index of the least noise with which the key is shown
        last = np.clip(steps + reach + 1, 0, len(mass))
        # Take the mass between from the tail where it is small, or it would be lost in rounding.
        between = np.where(steps > 0, above[first] - above[last], below[last] - below[first])
        admitted = above[first]
        share = np.where(admitted > 0, between / np.where(admitted > 0, admitted, 1.0), 1.0)
        share = np.maximum.accumulate(np.nan_to_num(share, nan=0.0))
        index = np.searchsorted(share, uniform)
        noise = np.where(index < len(steps), steps[np.minimum(index, len(steps) - 1)], math.inf)
        exact[rows] = released[rows, None] - noise * unit
    return np.maximum(exact, _LEAST_SHOWN)


# --- the error of weighted sums ---------------------------------------------------------------------------------------

# An error depends on laws and weights alone, not on released numbers, so half widths that have to be drawn are drawn once for
# each combination of laws, weights and confidence (`_drawn`), with public draws of their own.

_DRAWS = 20_000
_MOST_WEIGHTINGS = 64


class Weighed(NamedTuple):
    """A part of a sum with the same weights in every row: pairs of a position in a tuple of laws and a weight."""

    weights: tuple[tuple[int, float], ...]
    factor: float
    rounded: bool


def laws_of(names: Iterable[str], terms: Mapping[str, NoisyNumbers]) -> dict[str, TermLaw]:
    """Return the laws of the errors of terms, by name in alphabetical order."""
    return {name: TermLaw(terms[name].noise, terms[name].noise_unit, terms[name].whole) for name in sorted(names)}


def half_widths(form: Linear, terms: Mapping[str, ReleasedTerm], confidence: float) -> Floats | None:
    """Return for each row (or for all) h with P(|error| <= h) >= confidence, in the units of the expression; 0 without noise.

    For one term, h is exact (the quantile of its law). For sums of Gaussian noise it is the normal quantile (a sum of
    independent normal laws is normal). Otherwise it is the quantile of a sum of drawn noise, and the result is None when the
    rows have too many different weights.
    """
    if not form:
        return np.zeros(1)
    if len(form) == 1:
        inner = _closed(form[0], terms, confidence)
        if inner is not None:
            if form[0].rounded:  # the exact number is an integer: |round(e)| <= h if |e| < h + 1/2
                inner = np.floor(inner + 0.5)
            return np.asarray(np.abs(form[0].factor) * inner)
    numbers = [number for part in form for number in (part.factor, *part.weights.values())]
    table = np.stack(np.broadcast_arrays(*map(np.atleast_1d, numbers)), axis=1)
    weightings, of_row = np.unique(table, axis=0, return_inverse=True)
    if len(weightings) > _MOST_WEIGHTINGS:
        return None
    laws = laws_of({name for part in form for name in part.weights}, terms)
    indexes = {name: index for index, name in enumerate(laws)}
    widths = []
    for weighting in weightings:
        row = iter(weighting.tolist())
        weighed = []
        for part in form:
            factor = next(row)
            weighed.append(Weighed(tuple((indexes[name], next(row)) for name in part.weights), factor, part.rounded))
        widths.append(_drawn(tuple(weighed), tuple(laws.values()), confidence))
    return np.asarray(widths)[of_row.reshape(-1)]


def _closed(part: Part, terms: Mapping[str, ReleasedTerm], confidence: float) -> Any:
    if len(part.weights) == 1:
        ((name, weight),) = part.weights.items()
        return np.abs(weight) * terms[name].half_width(confidence)
    if not all(terms[name].noise.normal for name in part.weights):
        return None
    deviations = [weight * deviation_of(terms[name]) for name, weight in part.weights.items()]
    return normal_quantile(confidence) * reduce(np.hypot, deviations)  # no square overflows


def normal_quantile(confidence: float) -> float:
    """Return z with P(|Z| <= z) = confidence for standard normal Z."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def deviation_of(term: NoisyNumbers) -> float:
    """Return the standard deviation of a released term's error; rounding on a fine grid adds at most 1/12 to the variance."""
    spread = term.standard_deviation()
    return math.hypot(spread, math.sqrt(1 / 12)) if term.whole and spread > 0 else spread


@lru_cache(maxsize=4096)
def _drawn(weighed: tuple[Weighed, ...], laws: tuple[TermLaw, ...], confidence: float) -> float:
    rank = min(math.ceil(confidence * (_DRAWS + 1)), _DRAWS) - 1
    return float(np.partition(np.abs(drawn_error(weighed, laws, _DRAWS)), rank)[rank])


def drawn_error(weighed: tuple[Weighed, ...], laws: tuple[TermLaw, ...], draws: int) -> Floats:
    """Return draws of the error of a sum. The error of a rounded part is its rounded noise: its exact sum is whole."""
    error = np.zeros(draws)
    for part in weighed:
        inner = np.zeros(draws)
        for index, weight in part.weights:
            inner = inner + weight * _noise(laws[index], index, draws)
        error = error + part.factor * (np.rint(inner) if part.rounded else inner)
    return error


@lru_cache(maxsize=64)
def _noise(law: TermLaw, index: int, draws: int) -> Floats:
    """Return draws of the noise of the term at `index` of a sum, independent of those at other places."""
    return deviates(law, stratified(f"half width/{index}", draws))
