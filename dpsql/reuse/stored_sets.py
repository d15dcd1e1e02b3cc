"""Counts and sums that follow, as weighted sums, from stored sets of joint sums, which share each row (`pricing.joint_sums`).

A set around both ends sums q and q - W of each row, and the difference of its sums is W times the number of rows. A set of
squares sums (W - q)^2, 2 q (W - q) and q^2: all three add up to W^2 times the number of rows, and the last plus half of the
second is W times the sum of q. Because q (q + W - q) is W q, products of pairs follow from the squares of pairs in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt

from dpsql.aggregates.distances import can_be_missing
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Term, TermKind
from dpsql.pricing.joint_sums import factors_of, pair_parts, square_parts
from dpsql.pricing.sum_terms import summed
from dpsql.reuse.record import StoredFactor, StoredTerm, measure_of, value_mark

Weighted = list[tuple[Fraction, StoredTerm]]


def counts_of_sets(stored: Sequence[StoredTerm], term: Term) -> Iterator[Weighted]:
    """Yield, for each set from which it follows, the number of rows that `term` counts, ignoring its conditions: all rows, or
    those with a value. A count that shares rows with sums is in steps of these sums."""
    if term.shares:
        yield from _missing(stored, term)
        return
    for name in dict.fromkeys(t.shares for t in stored if t.shares):
        members = [t for t in stored if t.shares == name]
        parts = [t for t in members if t.kind == TermKind.SQUARE_PART.value]
        weights = _squared_count(parts) if parts else _ends_count(members, term.value)
        missing = [(weights[0][0], t) for t in members if t.kind == TermKind.COUNT.value] if weights else []
        if weights and term.value is None and (weights[0][1].everything or missing):
            yield weights + missing
        if weights and term.value is not None and _measures(weights[0][1], term.value):
            yield weights


def sum_of_squares(stored: Sequence[StoredTerm], term: Term) -> Weighted:
    """Return a SUM around any centre from a set of squares of its value; empty if none is stored, and for other kinds."""
    absent = term.absent and term.value is not None and can_be_missing(term.value)
    if term.kind is not TermKind.SUM or term.clip is not None or absent or term.value is None:
        return []
    parts = _parts_of(stored, term.value)
    width = parts[0].width if parts else None
    if not width:
        return []
    rows = (parts[0].centre - Fraction(term.centre)) / width**2
    weights = [(rows, parts[0]), (rows + 1 / (2 * width), parts[1]), (rows + 1 / width, parts[2])]
    return [(weight, part) for weight, part in weights if weight]


def product_of_squares(stored: Sequence[StoredTerm], term: Term) -> Weighted:
    """Return a part of the products of a pair from the stored squares of the pair; empty if none are stored, and for other
    kinds."""
    if term.kind is not TermKind.PRODUCT_PART or not isinstance(term.value, Call):
        return []
    first, second = term.value.arguments
    parts = pair_parts((first, second), None)
    by_measure = {t.measure: t for t in stored if t.kind == TermKind.PAIR_PART.value}
    if not parts or any(measure_of(part) not in by_measure for part in parts):
        return []
    width, other = (Fraction(factor.magnitude) / Fraction(2) ** factor.grid for factor in factors_of(parts[0]))
    below, above = (Fraction(1), Fraction(1, 2), Fraction(0)), (Fraction(0), Fraction(1, 2), Fraction(1))
    of_first, of_second = (above if term.place & bit else below for bit in (1, 2))
    weights = [a * b / (width * other) for a in of_first for b in of_second]
    return [(weight, by_measure[measure_of(part)]) for weight, part in zip(weights, parts, strict=True) if weight]


def parts_of_pairs(stored: Sequence[StoredTerm], term: Term) -> Iterator[Weighted]:
    """Yield, for each set of products or squares of pairs from which it follows, a COUNT, a SUM around any centre, or a part of
    the squares of one number, over the rows that have both numbers.

    With q in [0, V] the powers of degree d (1 or 2) add up to V^d: so 1 is their sum / V^d, and q is (0, 1), or (0, 1/2, 1) / V.
    The weights for one number are multiplied by the weights of 1 for the other.
    """
    mark = value_mark(term.value) if term.value is not None and _adds_up(term.value) else None
    if term.clip is not None or (term.value is not None and mark is None) or (term.shares and term.value is None):
        return
    for name in dict.fromkeys(t.shares for t in stored if t.factors):
        parts = {t.place: t for t in stored if t.shares == name}
        degree = 2 if len(parts) == 9 else 1
        factors = parts[0].factors
        indexes = range(2) if term.value is None else [i for i in range(2) if factors[i].value == mark]
        said = _of_factor(term, factors[indexes[0]], degree) if indexes else []
        if not said:
            continue
        by_factor = [[1 / factor.width**degree] * (degree + 1) for factor in factors]
        by_factor[indexes[0]] = said
        weights = [
            (a * b, parts[3 * first + second if degree == 2 else first + 2 * second])
            for first, a in enumerate(by_factor[0])
            for second, b in enumerate(by_factor[1])
        ]
        yield [(weight, part) for weight, part in weights if weight]


def _of_factor(term: Term, factor: StoredFactor, degree: int) -> list[Fraction]:
    """Return the weights with which a term sums the parts of one number, by their power; empty for other kinds.

    A real has fewer bits in a pair than alone, so its width differs by a rounding: squares are scaled to the requested width.
    """
    rows = [1 / factor.width**degree] * (degree + 1)
    if term.kind is TermKind.COUNT:
        return rows
    if term.kind is TermKind.SUM and not (term.absent and term.value is not None and can_be_missing(term.value)):
        powers = [Fraction(power) / degree / factor.width ** (degree - 1) for power in range(degree + 1)]
        moved = factor.lower - Fraction(term.centre)
        return [power + moved * row for power, row in zip(powers, rows, strict=True)]
    if term.kind is TermKind.SQUARE_PART and degree == 2:
        width = Fraction(isqrt(term.magnitude)) / Fraction(2) ** (term.grid // 2)
        return [(width / factor.width) ** 2 if index == term.place else Fraction(0) for index in range(3)]
    return []


def _missing(stored: Sequence[StoredTerm], term: Term) -> Iterator[Weighted]:
    """Yield the count of rows without a value in steps of W, from one in steps of W^2. The caller compares conditions."""
    measure = measure_of(replace(term, magnitude=term.magnitude**2, grid=2 * term.grid))
    for other in stored:
        if other.measure == measure:
            yield [(Fraction(2) ** term.grid / term.magnitude, other)]


def _ends_count(members: Sequence[StoredTerm], value: Expr | None) -> Weighted:
    sums = [t for t in members if t.kind == TermKind.SUM.value]
    if len(sums) != 2 or (value is not None and sums[0].absent):
        return []
    low, high = sums
    weight = 1 / (high.centre - low.centre)
    return [(weight, low), (-weight, high)]


def _squared_count(parts: Sequence[StoredTerm]) -> Weighted:
    return [(1 / part.width**2, part) for part in parts if part.width]


def _adds_up(value: Expr) -> bool:
    """Return whether values are bounded numbers, which are summed; dates and times are only counted."""
    return value.facts.bounded and value.facts.type in (Type.INTEGER, Type.REAL)


def _measures(stored: StoredTerm, value: Expr) -> bool:
    """Return whether a stored term of a set measures this value."""
    if not _adds_up(value):
        return False
    if stored.kind == TermKind.SQUARE_PART.value:
        return stored.measure in {measure_of(part) for part in square_parts(value, None)}
    return stored.measure == measure_of(summed(value, None, False)[0])


def _parts_of(stored: Sequence[StoredTerm], value: Expr) -> list[StoredTerm]:
    """Return the stored squares of a value, by place; empty if any of them is missing."""
    if not _adds_up(value):
        return []
    by_measure = {t.measure: t for t in stored if t.kind == TermKind.SQUARE_PART.value}
    parts = [by_measure[measure] for part in square_parts(value, None) if (measure := measure_of(part)) in by_measure]
    return parts if len(parts) == 3 else []
