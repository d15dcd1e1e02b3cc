"""The error of the quantity that each measured term represents in the answer, known before anything is measured.

Most terms are shown as they are. Where terms share each row (`joint_sums`), COUNT and SUM are weighted sums of them, with a
different error and unit: the sum around the lower bound represents SUM, the sum around the upper bound the number of rows that
contribute to both, and the count of rows without a value the number of all rows. Among shared squares, the first term represents
the number of rows with a value, the second SUM, and the last itself, the sum of (x - L)^2. Among shared products and squares of
pairs, the first term represents the number of rows with both values, the others themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from dpsql.plan.formulas import Formula, Operation, Operator, weights_of
from dpsql.plan.plan import BoundedBlock, Term, TermKind
from dpsql.privacy.mechanisms.contract import TermNoise
from dpsql.privacy.mechanisms.registry import registered


@dataclass(frozen=True)
class TermError:
    """Unit and error of a term. `unit`: size of one step of the term's integers in the answer. `half_width` (at the requested
    confidence) is in the unit of the answer, without rounding to integers and to the row grid."""

    unit: float
    half_width: float


def term_errors(block: BoundedBlock, noises: Sequence[TermNoise], confidence: float) -> dict[str, TermError]:
    """Return the error of each term by name. `confidence` in [0, 1)."""
    named = {term.name: term for term in block.terms}
    return {noise.name: _error(named.get(noise.name), noise, confidence) for noise in noises}


def _error(term: Term | None, noisy: TermNoise, confidence: float) -> TermError:
    unit, weights = _stands_for(term, 2.0**-noisy.grid)
    return TermError(unit, registered(noisy.noise).weighted_half_width(weights, confidence) * unit)


def expected_error(term: Term, noisy: TermNoise) -> float:
    """Return the expected absolute error of the quantity that a term represents, in the unit of the answer, as in `TermError`."""
    unit, weights = _stands_for(term, 2.0**-noisy.grid)
    return registered(noisy.noise).weighted_expected_error(weights) * unit


def measure_half_width(measure: Formula, noises: Sequence[TermNoise], confidence: float) -> float:
    """Return the half width, in the unit of the answer, of a COUNT or SUM that is a weighted sum of terms of one set,
    `noises`."""
    if isinstance(measure, Operation) and measure.operator is Operator.WHOLE:
        (measure,) = measure.operands
    weights = weights_of(measure)
    read = [noise for noise in noises if weights.get(noise.name)]
    sizes = sorted((abs(weights[noise.name]) for noise in read), reverse=True)
    return registered(read[0].noise).weighted_half_width(sizes, confidence) * 2.0 ** -read[0].grid if read else 0.0


def _of_squares(term: Term, step: float) -> tuple[float, list[float]]:
    width = isqrt(term.magnitude)
    if term.place == 0:
        return 1 / term.magnitude, [1.0, 1.0, 1.0]
    if term.place == 2:
        return step, [1.0]
    lowest = float(Fraction(term.lower) * Fraction(2) ** (term.grid // 2) / width)
    values = sorted((abs(lowest + above) for above in (0.0, 0.5, 1.0)), reverse=True)
    return 2.0 ** -(term.grid // 2) / width, [value for value in values if value]


def _stands_for(term: Term | None, step: float) -> tuple[float, list[float]]:
    """Return the unit, and the weights, largest first, of independent noises of one law. SUM is low + L (low - high) / W; with
    squares it is the sum of the parts times the values L, L + W / 2 and L + W, over W^2."""
    if term is None or not term.shares:
        return step, [1.0]
    if term.kind is TermKind.PRODUCT_PART:
        return (step, [1.0]) if term.place else (1 / term.magnitude, [1.0] * 4)
    if term.kind is TermKind.PAIR_PART:
        return (step, [1.0]) if term.place else (1 / term.magnitude, [1.0] * 9)
    if term.kind is TermKind.SQUARE_PART:
        return _of_squares(term, step)
    if term.kind is not TermKind.SUM:
        return 1 / term.magnitude, [1.0] * (4 if term.place else 3)
    if term.centre != term.lower:
        return 1 / term.magnitude, [1.0, 1.0]
    moved = float(Fraction(term.lower) * Fraction(2) ** term.grid / term.magnitude)
    return step, sorted((abs(weight) for weight in (1 + moved, moved) if weight), reverse=True)
