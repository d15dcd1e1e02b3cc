"""Distances of values from a centre, whose squares and products are summed, and the rows that have a value, or both of a pair."""

from __future__ import annotations

from fractions import Fraction

from dpsql.functions.numeric import both, call, clamped, constant
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr

_MOST_DISTANCE = 2**31
"""Products of two smaller integers have 64 bits."""


def distance(value: Expr, centre: float | int) -> Expr:
    """value - centre, as a real where products of integers could pass 64 bits (or the centre is none)."""
    low, high = Fraction(value.facts.lower) - Fraction(centre), Fraction(value.facts.upper) - Fraction(centre)
    if value.facts.type is Type.INTEGER and max(abs(low), abs(high)) >= _MOST_DISTANCE:
        value = call("to_real", value)
    return call("sub", value, constant(centre, value))


def can_be_missing(value: Expr) -> bool:
    """Return whether some row may have no value: NULL, or NaN, which counts as NULL.

    That a column is never NULL is the policy's promise. A row that breaks it is in no sum of its values, whose bounds on a unit
    hold for it as well: numbers of rows are wrong by it, and privacy does not depend on it (privacy.md 4).
    """
    return value.facts.nullable or value.facts.type is Type.REAL


def presence(value: Expr) -> Expr:
    """Return the condition that a row has a value: x IS NOT NULL, and for reals with bounds, whose sums leave NaN out, no NaN."""
    return call(
        "not", call("is_null", clamped(value) if value.facts.type is Type.REAL and value.facts.bounded else value)
    )


def present(values: tuple[Expr, Expr], condition: Expr | None) -> Expr | None:
    """Return the condition of the rows that pass the FILTER and have both values; None where all rows do."""
    for value in values:
        if can_be_missing(value):
            condition = both(condition, presence(value))
    return condition
