"""The error of what each measured term stands for in the answer, known before anything is measured.

A term mostly is what is shown. Where terms share each row (`sharing`), COUNT and SUM are weighted sums of them, with an error
and a unit of their own: the sum around the lower end stands for SUM, that around the upper end for the number of rows that
both have a part of, and the count of rows without a value for the number of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.errors.exceptions import refuse
from dpsql.plan.plan import BoundedBlock, Term, TermKind
from dpsql.privacy.mechanisms.contract import Noise, TermNoise

_OF_DEVIATION = {"laplace": math.sqrt(0.5), "gaussian": math.sqrt(2 / math.pi), "constant": 0.0}
"""E|noise| beside its deviation, for every law that is known."""
_ALIKE = 1e-6
"""Weights as near as this to each other are taken for equal: the general formula divides by their difference."""


@dataclass(frozen=True)
class TermError:
    """`unit`: of the answer, for one step of the term's integers. `half_width` (at the confidence asked for) and `expected`
    (E of the absolute error) are in that unit, rounding to integers and the row grid not included."""

    unit: float
    half_width: float
    expected: float


def term_errors(block: BoundedBlock, noises: Sequence[TermNoise], confidence: float) -> dict[str, TermError]:
    """For each term by name. `confidence` in [0, 1)."""
    named = {term.name: term for term in block.terms}
    return {one.name: _error(named.get(one.name), one, confidence) for one in noises}


def expected_error(noise: Noise) -> float:
    """E|noise|: scale for Laplace (its deviation over sqrt 2), sqrt(2 / pi) sigma for Gauss. Raises InternalError for a law
    that is not known, as every function here does: another law's error would be too small or too large."""
    return noise.standard_deviation() * _OF_DEVIATION[_law(noise)]


def _law(noise: Noise) -> str:
    if noise.mechanism not in _OF_DEVIATION:
        raise refuse("internal", what=f"noise of a law whose error is not known: {noise.mechanism}")
    return noise.mechanism


def _error(term: Term | None, one: TermNoise, confidence: float) -> TermError:
    unit, weights = 2.0**-one.grid, [1.0]
    if term is not None and term.shares:
        unit, weights = _stands_for(term, unit)
    wide = _half_width(one.noise, weights, confidence)
    return TermError(unit, wide * unit, expected_error(one.noise) * _expected(one.noise, weights) * unit)


def _stands_for(term: Term, step: float) -> tuple[float, list[float]]:
    """The unit, and the weights of independent noise of one law, largest first: SUM is low + L (low - high) / W."""
    if term.kind is not TermKind.SUM:
        return 1 / term.magnitude, [1.0, 1.0, 1.0]
    if term.centre != term.lower:
        return 1 / term.magnitude, [1.0, 1.0]
    moved = float(Fraction(term.lower) * Fraction(2) ** term.grid / term.magnitude)
    return step, sorted((abs(weight) for weight in (1 + moved, moved) if weight), reverse=True)


def _half_width(noise: Noise, weights: list[float], confidence: float) -> float:
    """h with P(|weighted sum of independent noise| <= h) = confidence, in steps of the term's integers."""
    law = _law(noise)
    if len(weights) == 1:
        return weights[0] * noise.half_width(confidence)
    if law != "laplace":
        return noise.half_width(confidence) * math.sqrt(sum(weight * weight for weight in weights))
    low, high = 0.0, 1.0
    while _laplace_tail(high, weights) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _laplace_tail(middle, weights) > 1 - confidence else (low, middle)
    return high * expected_error(noise)


def _laplace_tail(h: float, weights: list[float]) -> float:
    """P(|weighted sum of Laplace variables of scale 1| > h), of two, or of three with equal weights.

    The characteristic function of two is 1 / ((1 + a^2 t^2)(1 + b^2 t^2)), by partial fractions a^2 / (a^2 - b^2) of one
    of scale a less b^2 / (a^2 - b^2) of one of scale b. Three equal ones have the density exp(-u)(3 + 3 u + u^2) / 16.
    """
    a, b = weights[:2]
    if len(weights) == 3:
        return math.exp(-h / a) * (1 + 5 * h / (8 * a) + h * h / (8 * a * a))
    if a - b <= _ALIKE * a:
        return math.exp(-h / a) * (1 + h / (2 * a))
    return (a * a * math.exp(-h / a) - b * b * math.exp(-h / b)) / (a * a - b * b)


def _expected(noise: Noise, weights: list[float]) -> float:
    """E of the absolute weighted sum beside that of one: the integral of the tail."""
    if _law(noise) != "laplace":
        return math.sqrt(sum(weight * weight for weight in weights))
    if len(weights) == 3:
        return weights[0] * 15 / 8
    a, b = [*weights, 0.0][:2]
    return (a * a + a * b + b * b) / (a + b)
