"""The error of weighted sums of noisy terms, from the laws of their noise.

An error depends on laws and weights alone, not on released numbers, so half widths that have to be drawn are drawn once for each
combination of laws, weights and confidence (`_drawn`), with public draws of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, reduce
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from dpsql.release.error_bars.draws import Floats, TermLaw, deviates, stratified
from dpsql.release.formulas import Linear, Part
from dpsql.release.remainder import ReleasedTerm

_DRAWS = 20_000
_MOST_WEIGHTINGS = 64


class Weighed(NamedTuple):
    """A part of a sum with the same weights in every row: pairs of a position in a tuple of laws and a weight."""

    weights: tuple[tuple[int, float], ...]
    factor: float
    rounded: bool


def laws_of(form: Linear, terms: Mapping[str, ReleasedTerm]) -> dict[str, TermLaw]:
    """Return the laws of the terms in a sum, by name in alphabetical order."""
    names = sorted({name for part in form for name in part.weights})
    return {name: TermLaw(terms[name].noise, terms[name].noise_unit, terms[name].whole) for name in names}


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
    laws = laws_of(form, terms)
    places = {name: place for place, name in enumerate(laws)}
    widths = []
    for weighting in weightings:
        row = iter(weighting.tolist())
        weighed = []
        for part in form:
            factor = next(row)
            weighed.append(Weighed(tuple((places[name], next(row)) for name in part.weights), factor, part.rounded))
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


def deviation_of(term: ReleasedTerm | TermLaw) -> float:
    """Return the standard deviation of the error of a released term; rounding adds at most 1/12 to the variance of noise on a
    fine grid."""
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
        for place, weight in part.weights:
            inner = inner + weight * _noise(laws[place], place, draws)
        error = error + part.factor * (np.rint(inner) if part.rounded else inner)
    return error


@lru_cache(maxsize=64)
def _noise(law: TermLaw, place: int, draws: int) -> Floats:
    """Return draws of the noise of the term at `place` of a sum, independent of those at other places."""
    return deviates(law, stratified(f"half width/{place}", draws))
