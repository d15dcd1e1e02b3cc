"""AVG, kept within the bounds of its argument."""

from __future__ import annotations

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, SharedPart
from dpsql.aggregates.estimates import mean, row_count
from dpsql.aggregates.registry import register
from dpsql.plan.formulas import Estimate, Formula, greatest, within
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Measure


def _average(basis: Basis, measure: Measure) -> Formula:
    """Return the mean. With max_total it is the clipped sum over the count (both biased by clipping, in the same direction): a
    centred sum would be clipped toward the midpoint of the bounds, which is far from the values of most units."""
    value, condition = measure.arguments[0], measure.filter
    if measure.distinct:
        return _mean(value, *basis.distinct_sum(value, condition, True), basis.distinct(value, condition))
    clipped = basis.clipped_sum(value, condition)
    if clipped is not None:
        return _clipped_mean(value, clipped, basis.count(value, condition, clip=True))
    total, centre = basis.sum(value, condition, True)
    return _mean(value, total, centre, basis.count(value, condition))


def _mean(value: Expr, total: Formula, centre: float | int, count: Formula) -> Formula:
    """Return the mean of `count` values whose distances from `centre` add up to `total`; kept within the bounds."""
    low, high = float(value.facts.lower), float(value.facts.upper)
    plug_in = within(float(centre) + total / greatest(count, 1), low, high)
    return Estimate(plug_in, mean(total, centre, count, value.facts))


def _clipped_mean(value: Expr, total: Formula, count: Formula) -> Formula:
    """Return the clipped sum over the count. Clipping draws the mean toward 0, and so do the assumed rows."""
    low, high = float(value.facts.lower), float(value.facts.upper)
    rows, _ = row_count(count, 1)
    return Estimate(within(total / greatest(count, 1), low, high), within(total / rows, low, high))


def _facts(measure: Measure) -> Facts:
    argument = measure.arguments[0].facts
    return Facts(Type.REAL, argument.lower, argument.upper)


def _of_unit(measure: Measure, rows: int) -> Facts:
    facts = measure.arguments[0].facts
    nullable = measure.filter is not None or facts.nullable or facts.type is Type.REAL
    return Facts(Type.REAL, facts.lower, facts.upper, nullable=nullable)


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
