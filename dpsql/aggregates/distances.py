"""Distances from a centre, whose squares and products are summed; conditions that a row has a value, or both of a pair."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from dpsql.functions.numeric import both, call, clamped, constant
from dpsql.functions.signatures import REGISTRY, WrongArguments
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr

_MOST_DISTANCE = 2**31
"""Products of two integers of smaller size fit into 64 bits."""
_USUAL_INTEGERS = Fraction(2**31)
"""Assumed largest size of a column's integers where the policy has narrower bounds."""


def distance(value: Expr, centre: float | int) -> Expr:
    """Return value - centre, as a real if products of such integers could exceed 64 bits (or if the centre is not an integer)."""
    low, high = Fraction(value.facts.lower) - Fraction(centre), Fraction(value.facts.upper) - Fraction(centre)
    if value.facts.type is Type.INTEGER and max(abs(low), abs(high)) >= _MOST_DISTANCE:
        value = call("to_real", value)
    return call("sub", value, constant(centre, value))


def can_be_missing(value: Expr) -> bool:
    """Return whether some row may have no value: NULL, or NaN, which counts as NULL.

    A column's bounds and list are not guaranteed: 100 // y with y in [1, 9] is NULL in a row where y is 0. Integers of more than
    32 bits where the policy has narrower bounds are not considered: for their sake, each product would cost a separate count.
    That a column is never NULL is guaranteed by the policy. A row that violates this is in no sum of the column's values, and the
    bounds on a unit hold for it as well: it makes numbers of rows wrong, but privacy does not depend on it (privacy.md 4).
    """
    return value.facts.nullable or value.facts.type is Type.REAL or _over_usual_values(value).facts.nullable


@lru_cache(maxsize=1024)
def _over_usual_values(value: Expr) -> Expr:
    """Return the expression with the facts that follow if its columns may hold any usual values of their types."""
    if isinstance(value, Column):
        return replace(value, facts=_usual(value.facts))
    if not isinstance(value, Call):
        return value
    arguments = tuple(map(_over_usual_values, value.arguments))
    try:
        return replace(value, arguments=arguments, facts=REGISTRY[value.function].infer(arguments))
    except WrongArguments:  # it needs narrower bounds
        return replace(value, facts=replace(value.facts, nullable=True))


def _usual(facts: Facts) -> Facts:
    if facts.type is Type.INTEGER and facts.bounded:
        ends = {"lower": min(facts.lower, -_USUAL_INTEGERS), "upper": max(facts.upper, _USUAL_INTEGERS)}
        return replace(facts.without_values(), **ends)
    return facts.without_values() if facts.type is Type.TEXT else facts


def presence(value: Expr) -> Expr:
    """Return the condition that a row has a value: x IS NOT NULL, and not NaN for reals with bounds, whose sums leave NaN out."""
    return call(
        "not", call("is_null", clamped(value) if value.facts.type is Type.REAL and value.facts.bounded else value)
    )


def present(values: tuple[Expr, Expr], condition: Expr | None) -> Expr | None:
    """Return the condition of the rows that satisfy `condition` (the FILTER) and have both values; None if all rows do."""
    for value in values:
        if can_be_missing(value):
            condition = both(condition, presence(value))
    return condition
