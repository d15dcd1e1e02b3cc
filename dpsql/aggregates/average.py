"""AVG, kept between the bounds of its argument."""

from __future__ import annotations

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, SharedPart
from dpsql.aggregates.registry import register
from dpsql.plan.formulas import Formula, greatest, within
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Measure


def _average(basis: Basis, measure: Measure) -> Formula:
    """Under max_total the clipped sum over the count: a centred sum would be clipped toward the middle of the bounds,
    which is far from the values of most units; both carry the bias of clipping, in the same direction."""
    value, condition = measure.arguments[0], measure.filter
    low, high = float(value.facts.lower), float(value.facts.upper)
    if measure.distinct:
        total, centre = basis.distinct_sum(value, condition, True)
        return within(float(centre) + total / greatest(basis.distinct(value, condition), 1), low, high)
    clipped = basis.clipped_sum(value, condition)
    if clipped is not None:
        return within(clipped / greatest(basis.count(value, condition, clip=True), 1), low, high)
    total, centre = basis.sum(value, condition, True)
    return within(float(centre) + total / greatest(basis.count(value, condition), 1), low, high)


def _facts(measure: Measure) -> Facts:
    argument = measure.arguments[0].facts
    return Facts(Type.REAL, argument.lower, argument.upper)


def _of_unit(measure: Measure, rows: int) -> Facts:
    known = measure.arguments[0].facts
    nullable = measure.filter is not None or known.nullable or known.type is Type.REAL
    return Facts(Type.REAL, known.lower, known.upper, nullable=nullable)


register(
    Aggregate(
        "avg",
        {"Avg": Arguments.NUMBER, "mean": Arguments.NUMBER},
        _average,
        facts=_facts,
        distinct=True,
        centred=True,
        shared=SharedPart.SUM | SharedPart.COUNT,
        of_unit=_of_unit,
    )
)
