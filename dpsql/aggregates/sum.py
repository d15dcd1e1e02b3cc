"""SUM."""

from __future__ import annotations

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, SharedPart
from dpsql.aggregates.registry import register
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import INT64, Facts, Type
from dpsql.plan.plan import Measure

_MOST_INTEGER = 2**31
"""A sum of integers of smaller size is an integer: it fits into 64 bits for fewer than 2**32 rows."""


def _sum(basis: Basis, measure: Measure) -> Formula:
    """Return the sum. Where the centred sum and the count are measured anyway, it is computed from them at no charge."""
    value = measure.arguments[0]
    if measure.distinct:
        return basis.distinct_sum(value, measure.filter, False)[0]
    clipped = basis.clipped_sum(value, measure.filter)
    return basis.total(value, measure.filter) if clipped is None else clipped


def _facts(measure: Measure) -> Facts:
    argument = measure.arguments[0].facts
    small = max(abs(argument.lower), abs(argument.upper)) < _MOST_INTEGER
    return Facts(Type.INTEGER if argument.type is Type.INTEGER and small else Type.REAL)


def _of_unit(measure: Measure, rows: int) -> Facts:
    facts = measure.arguments[0].facts
    nullable = measure.filter is not None or facts.nullable or facts.type is Type.REAL
    low, high = min(facts.lower * rows, facts.lower), max(facts.upper * rows, facts.upper)
    inside = facts.type is not Type.INTEGER or (INT64[0] <= low and high <= INT64[1])
    return Facts(facts.type, low if inside else None, high if inside else None, nullable=nullable or not inside)


register(
    Aggregate(
        "sum",
        {"Sum": Arguments.NUMBER},
        _sum,
        type=None,
        facts=_facts,
        distinct=True,
        shared=SharedPart.SUM,
        zero_without_rows=True,
        of_unit=_of_unit,
    )
)
