"""Bars of quotients of two sums of noisy terms, by test inversion (Fieller 1954): exact for any size of the denominator.

Let A = a + X and B = b + Y be released, where X and Y are noise of known laws and may share terms, and theta = a / b. Then
A - theta B = X - theta Y, whose law is known for every theta. So the set of all theta with

    |A - theta B| <= q(theta),    q(theta) the quantile of |X - theta Y| at the confidence,

contains a / b with exactly that probability, whatever a and b != 0 are. In angles, theta = tan(phi) s_X / s_Y with the standard
deviations s: with u = A / s_X and v = B / s_Y the condition is r |sin(phi - phi_0)| <= Q(phi), where phi_0 = atan(u / v),
r = hypot(u, v), and Q does not depend on the released numbers (`_quantiles`; sqrt(1 - c sin 2 phi) times the normal quantile for
normal noise with the correlation c). The set is an arc around phi_0. Between the bounds of the quotient (-pi/2 and pi/2 for one
without bounds), a bound belongs to the bar if the condition holds there; if not, the end lies where the arc ends: known for
normal noise (`_arc`), found by false position otherwise. A quotient without bounds whose denominator cannot be distinguished from
0 is unknown.

AVG is such a quotient, moved by a constant and clamped to the bounds of its argument, with a denominator of at least 1: a group
with rows has a count of at least 1, and the test is the same. If the quotient was released outside of the bounds, the bound is
shown in its place; the bar then also contains the set for a quotient at the bound, or it would have no width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dpsql.plan.formulas import Formula, NoisyValue, Number, Operation, Operator, substituted, terms_of
from dpsql.release.error_bars.laws import Floats, TermLaw, Weighed, deviation_of, drawn_error, laws_of, normal_quantile
from dpsql.release.formulas import EVERYTHING, Extent, Linear, clamped, linear, numbers
from dpsql.storage.records import dataclass, replace

_DRAWS = 3_999
_ANGLES = 129
"""Number of angles at which the Q of drawn noise is tabled."""
_STEPS, _CLOSE = 48, 1e-14
"""Most steps to an end, and the change of an angle at which it is known to the last digits of a double."""
_FINE = 20
"""Least deviation, in steps of its noise, of a whole numerator: the quantile of a difference of two whole numbers jumps by a step
from one theta to the next, which is little beside such a deviation."""


@dataclass(frozen=True)
class Quotient:
    """`offset` + `factor` * `above` / `below`, clamped to `bounds`: both sides as formulas over terms and as sums of terms."""

    above: Formula
    below: Formula
    sums: tuple[tuple[Weighed, ...], tuple[Weighed, ...]]
    laws: Mapping[str, TermLaw]
    factor: float = 1.0
    offset: float = 0.0
    bounds: Extent = EVERYTHING

    def within(self, low: float, high: float) -> Quotient:
        first, last = (min(max(end, low), high) for end in self.bounds)
        return replace(self, bounds=(first, last))


Inverse = tuple[Formula, Formula, Linear]
"""An exact number by a sum of noisy terms: both as formulas, and the sum."""
Recognised = tuple[Linear | None, Quotient | None, Inverse | None]
"""A formula as a weighted sum, as a quotient of two, or as an exact number by a sum: at most one of the three."""
Named = tuple[tuple[str, Any], ...]


class Reader:
    """Recognises quotients among formulas over the measures (plug-in formulas `measures` over `terms`) and exact columns of a
    block."""

    def __init__(
        self, measures: Mapping[str, Formula], terms: Mapping[str, TermLaw], exact: Mapping[str, Floats]
    ) -> None:
        self.measures, self.terms, self.exact = measures, terms, exact
        self.meanings = {**measures, **{name: NoisyValue(name) for name in exact}}

    def over_terms(self, formula: Formula) -> Formula:
        return substituted(formula, self.meanings)

    def linear(self, formula: Formula) -> Linear | None:
        """Return a formula over terms and exact columns as a sum of terms."""
        whole = frozenset(name for name, term in self.terms.items() if term.whole)
        return linear(formula, frozenset(self.terms), whole, self.exact)

    def quotient(self, formula: Formula, in_measure: bool = False) -> Quotient | None:
        """Return `formula` as a quotient of two sums of terms, else None; also None for quotients of whole numbers with a small
        numerator. NULL_IF(sum, 0) counts as the sum, and inside of a measure GREATEST(sum, 1): AVG divides by a count, which is
        at least 1."""
        if isinstance(formula, NoisyValue) and formula.term in self.measures and not in_measure:
            return self.quotient(self.measures[formula.term], True)
        if not isinstance(formula, Operation):
            return None
        inner, low, high = clamped(formula)
        if in_measure and isinstance(low, Number) and isinstance(high, Number) and formula.operator is Operator.LEAST:
            unbounded = self.quotient(inner, in_measure)
            return None if unbounded is None else unbounded.within(low.value, high.value)
        operands = formula.operands
        constants = [_constant(operand) for operand in operands]
        if formula.operator is Operator.NEGATE:
            return _mapped(self.quotient(operands[0], in_measure), -1.0, 0.0)
        if len(operands) == 2 and constants[0] is None and constants[1] is None and formula.operator is Operator.DIVIDE:
            return self._of_sums(operands[0], _without_guard(operands[1], in_measure), in_measure)
        if len(operands) != 2 or (constants[0] is None) is (constants[1] is None):
            return None
        index = 0 if constants[0] is None else 1
        map_ = _MAPS.get((formula.operator, index))
        number = constants[1 - index]
        if map_ is None or number is None:
            return None
        return _mapped(self.quotient(operands[index], in_measure), *map_(number))

    def inverse(self, formula: Formula) -> Inverse | None:
        """Return `formula` as an exact number by a sum of terms, else None. NULL_IF(sum, 0) counts as the sum."""
        if not isinstance(formula, Operation) or formula.operator is not Operator.DIVIDE:
            return None
        above, below = formula.operands[0], self.over_terms(_without_guard(formula.operands[1], False))
        form = self.linear(below)
        is_exact = all(name in self.exact for name in terms_of(above))
        return (above, below, form) if form and is_exact and any(part.weights for part in form) else None

    def _of_sums(self, above: Formula, below: Formula, in_measure: bool) -> Quotient | None:
        sides = (above, below) if in_measure else (self.over_terms(above), self.over_terms(below))
        first, second = (self.linear(side) for side in sides)
        if not first or not second:
            return None
        laws = laws_of({name for part in (*first, *second) for name in part.weights}, self.terms)
        sums = [_weighed(form, laws) for form in (first, second)]
        if sums[0] is None or sums[1] is None:
            return None
        fraction = Quotient(*sides, (sums[0], sums[1]), laws)
        return None if _is_coarse(fraction, self.terms) else fraction


def recognise(formula: Formula, measures: Named, laws: Named, exact: Mapping[str, Floats]) -> Recognised:
    """Return what a formula over `measures` (names and plug-in formulas) of terms with `laws`, and `exact` columns is."""
    reader = Reader(dict(measures), dict(laws), exact)
    form = reader.linear(reader.over_terms(formula))
    quotient = reader.quotient(formula) if form is None else None
    return form, quotient, reader.inverse(formula) if form is None and quotient is None else None


@lru_cache(maxsize=512)
def recognised(formula: Formula, measures: Named, laws: Named) -> Recognised:
    """Return what a formula without exact columns is. Questions that differ in their rows alone share it."""
    return recognise(formula, measures, laws, {})


_MAPS: dict[tuple[Operator, int], Callable[[float], tuple[float, float]]] = {
    (Operator.MULTIPLY, 0): lambda number: (number, 0.0),
    (Operator.MULTIPLY, 1): lambda number: (number, 0.0),
    (Operator.DIVIDE, 0): lambda number: (1 / number if number else 0.0, 0.0),
    (Operator.ADD, 0): lambda number: (1.0, number),
    (Operator.ADD, 1): lambda number: (1.0, number),
    (Operator.SUBTRACT, 0): lambda number: (1.0, -number),
    (Operator.SUBTRACT, 1): lambda number: (-1.0, number),
}
"""The factor and the offset by which an operation with a number moves its other operand, by the position of that operand."""


def _mapped(inner: Quotient | None, factor: float, offset: float) -> Quotient | None:
    """Return `offset` + `factor` times a quotient."""
    if inner is None or factor == 0 or not np.isfinite(factor) or not np.isfinite(offset):
        return None
    first, last = sorted(offset + factor * end for end in inner.bounds)
    return replace(inner, factor=inner.factor * factor, offset=offset + factor * inner.offset, bounds=(first, last))


def _constant(formula: Formula) -> float | None:
    return None if terms_of(formula) else float(numbers(formula, {}))


def _without_guard(below: Formula, in_measure: bool) -> Formula:
    if not isinstance(below, Operation) or len(below.operands) != 2:
        return below
    number = _constant(below.operands[1])
    guarded = below.operator is Operator.NULL_IF and number == 0
    guarded = guarded or (in_measure and below.operator is Operator.GREATEST and number == 1)
    return below.operands[0] if guarded else below


def _weighed(form: Linear, laws: Mapping[str, TermLaw]) -> tuple[Weighed, ...] | None:
    """Return a sum with the positions of its laws; None if its weights differ between rows."""
    indexes = {name: index for index, name in enumerate(laws)}
    if any(np.ndim(number) for part in form for number in (part.factor, *part.weights.values())):
        return None
    return tuple(
        Weighed(
            tuple((indexes[name], float(weight)) for name, weight in part.weights.items()),
            float(part.factor),
            part.rounded,
        )
        for part in form
    )


def _is_coarse(fraction: Quotient, terms: Mapping[str, TermLaw]) -> bool:
    """Return whether both sides are whole numbers and the deviation of the numerator is less than `_FINE` steps."""
    names = list(fraction.laws)
    if not all(
        part.rounded or all(terms[names[p]].whole for p, _ in part.weights) for side in fraction.sums for part in side
    ):
        return False
    steps = [
        abs(part.factor) * (1.0 if part.rounded else max(abs(weight) for _, weight in part.weights))
        for part in fraction.sums[0]
    ]
    variance = sum(
        (part.factor * weight * terms[names[p]].standard_deviation()) ** 2
        for part in fraction.sums[0]
        for p, weight in part.weights
    )
    return bool(variance < (_FINE * max(steps)) ** 2)


# --- ends -------------------------------------------------------------------------------------------------------------


@np.errstate(all="ignore")  # rows without finite sums have no bar, whatever is computed for them
def quotient_ends(fraction: Quotient, above: Floats, below: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of the bar of each row, infinite where the denominator of a quotient without bounds cannot be distinguished
    from 0. `above` and `below` are the released sums."""
    across, down, angles, quantiles = _quantiles(*fraction.sums, tuple(fraction.laws.values()), confidence)
    limits = sorted((end - fraction.offset) / fraction.factor for end in fraction.bounds)
    last = np.arctan(np.array(limits)[:, None] * (down / across))
    u, v = above / across, below / down
    radius, centre = np.hypot(u, v), np.nan_to_num(np.arctan(u / v))
    start = np.clip(centre, last[0], last[1])

    def slack(angle: Floats, middle: Floats) -> Floats:
        """Return by how much the condition holds at angles, negative where it does not."""
        distance = radius * np.abs(np.sin(angle - middle))
        if isinstance(angles, float):  # normal noise with this correlation
            return np.asarray(quantiles * np.sqrt(np.maximum(1 - angles * np.sin(2 * angle), 0.0)) - distance)
        return np.asarray(np.interp(angle, angles, quantiles) - distance)

    def ends(middle: Floats) -> Floats:
        """Return where the condition ceases to hold on either side of `start`."""
        first, at_bound = slack(start, middle), slack(last, middle)
        if isinstance(angles, float):
            reached = _arc(start, middle, radius, angles, float(quantiles))
        else:
            reached = _by_false_position(partial(slack, middle=middle), start, last, first, at_bound)
        return np.where(at_bound >= 0, last, np.where(first >= 0, reached, start))

    reached = ends(centre)
    if (start != centre).any():
        moved = ends(start)
        reached = np.stack((np.minimum(reached[0], moved[0]), np.maximum(reached[1], moved[1])))
    theta = np.where(reached == last, np.array(limits)[:, None], np.tan(reached) * (across / down))
    first, second = np.sort(fraction.offset + fraction.factor * theta, axis=0)
    finite = np.isfinite(above) & np.isfinite(below)
    return np.where(finite, first, -np.inf), np.where(finite, second, np.inf)


def _arc(start: Floats, middle: Floats, radius: Floats, correlation: float, quantile: float) -> Floats:
    """Return the ends, below and above `start`, of r |sin(phi - middle)| <= z sqrt(1 - c sin 2 phi): both sides squared, that is
    cos(2 phi - psi) >= k with the numbers below, an arc in every half turn."""
    half, least = radius**2 / 2, quantile**2
    across, along = half * np.cos(2 * middle), half * np.sin(2 * middle) - least * correlation
    size = np.hypot(across, along)
    # 1 - k without the cancellation of numbers near r**2.
    beyond = least * (1 + correlation * (least * correlation - 2 * half * np.sin(2 * middle)) / (size + half)) / size
    width, turned = np.arcsin(np.sqrt(np.clip(beyond / 2, 0.0, 1.0))), np.arctan2(along, across) / 2
    return np.stack((start - (start - turned + width) % np.pi, start + (turned + width - start) % np.pi))


def _by_false_position(
    slack: Callable[[Floats], Floats], start: Floats, last: Floats, first: Floats, at_bound: Floats
) -> Floats:
    """Return where `slack` turns negative between `start`, where it is `first`, and each of `last`, where it is `at_bound` (the
    Illinois method)."""
    inside, outside = np.broadcast_arrays(start, last)
    above, below, before, held = first, at_bound, outside, np.zeros(inside.shape, dtype=bool)
    for step in range(_STEPS):
        between = (inside * below - outside * above) / (below - above)
        value = slack(between)
        holds = value >= 0
        below, above = (
            np.where(holds, np.where(held & (step > 0), below / 2, below), value),
            np.where(holds, value, np.where(held | (step == 0), above, above / 2)),
        )
        inside, outside = np.where(holds, between, inside), np.where(holds, outside, between)
        moved, before, held = np.abs(between - before), between, holds
        if not (moved > _CLOSE).any():
            break
    return np.where(np.isnan(before), inside, before)


@np.errstate(all="ignore")
def inverse_ends(above: Floats, below: Floats, half: Floats | float) -> tuple[Floats, Floats]:
    """Return the ends of the bar of `above` / `below` in each row, where `below` has the bar of half width `half`: 1 / x falls on
    either side of 0, so the ends are those of the denominator; infinite where it cannot be distinguished from 0."""
    first, last = below - half, below + half
    ends = np.sort(np.stack(np.broadcast_arrays(above / first, above / last)), axis=0)
    finite = np.isfinite(above) & np.isfinite(below) & (first * last > 0)
    return np.where(finite, ends[0], -np.inf), np.where(finite, ends[1], np.inf)


@lru_cache(maxsize=256)
def _quantiles(
    above: tuple[Weighed, ...], below: tuple[Weighed, ...], laws: tuple[TermLaw, ...], confidence: float
) -> tuple[float, float, Floats | float, Floats | float]:
    """Return the deviations of both sides' errors, angles, and the quantile Q at each (see the module); for normal noise the
    correlation and the normal quantile."""
    sides = (above, below)
    tiny = float(np.finfo(float).tiny)
    if all(law.noise.normal for law in laws) and not any(part.rounded for side in sides for part in side):
        spreads = [deviation_of(law) for law in laws]
        weights = np.zeros((2, len(laws)))
        for number, side in enumerate(sides):
            for part in side:
                for index, weight in part.weights:
                    weights[number, index] += part.factor * weight * spreads[index]
        deviations = [max(float(size), tiny) for size in np.hypot.reduce(weights, axis=1)]
        correlation = float(np.prod(weights / np.array(deviations)[:, None], axis=0).sum())
        return deviations[0], deviations[1], correlation, normal_quantile(confidence)
    x, y = (drawn_error(side, laws, _DRAWS) for side in sides)
    largest = [max(float(np.abs(error).max()), tiny) for error in (x, y)]  # no square overflows
    deviations = [max(float((e / size).std()) * size, tiny) for e, size in zip((x, y), largest, strict=True)]
    angles = np.linspace(-np.pi / 2, np.pi / 2, _ANGLES)
    errors = np.abs(np.outer(np.cos(angles), x / deviations[0]) - np.outer(np.sin(angles), y / deviations[1]))
    rank = min(int(np.ceil(confidence * (_DRAWS + 1) - 1e-9)), _DRAWS) - 1
    return deviations[0], deviations[1], angles, np.partition(errors, rank, axis=1)[:, rank]
