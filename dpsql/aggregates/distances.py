"""Distances of values from a centre, whose squares and products are summed, and the rows that have both values of a product."""

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


def present(values: tuple[Expr, Expr], condition: Expr | None) -> Expr:
    """Return the rows that pass the FILTER and have both values."""
    first, second = (call("not", call("is_null", clamped(value))) for value in values)
    return both(condition, call("and", first, second))
