"""COUNT of rows, of values, of distinct values, and of privacy units; SUM; and AVG, kept within the bounds of its argument."""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, SharedPart, register
from dpsql.aggregates.moments import mean, row_count
from dpsql.functions.numeric import both, call
from dpsql.plan.formulas import Estimate, Formula, greatest, within
from dpsql.plan.intervals import INT64, Facts, Type, in_decimals
from dpsql.plan.plan import Expr, Measure


def _rows(basis: Basis, measure: Measure) -> Formula:
    return basis.count(measure.arguments[0] if measure.arguments else None, measure.filter, clip=True)


def _units(basis: Basis, measure: Measure) -> Formula:
    return basis.units(measure.filter)


def _distinct(basis: Basis, measure: Measure) -> Formula:
    return basis.distinct(measure.arguments[0], measure.filter, bounded=True)


def _count_of_unit(measure: Measure, rows: int) -> Facts:
    always = not measure.arguments and measure.filter is None
    return Facts(Type.INTEGER, Fraction(1 if always else 0), Fraction(rows), nullable=False)


register(
    Aggregate(
        "count",
        {"Count": Arguments.ROWS, "CountIf": Arguments.COUNTED_CONDITION},
        _rows,
        Type.INTEGER,
        shared=SharedPart.COUNT,
        zero_without_rows=True,
        counts=True,
        of_unit=_count_of_unit,
    )
)
register(Aggregate("count_units", {}, _units, Type.INTEGER, distinct=True, zero_without_rows=True, counts=True))
register(
    Aggregate(
        "count_distinct",
        {},
        _distinct,
        Type.INTEGER,
        distinct=True,
        zero_without_rows=True,
        counts=True,
        of_unit=_count_of_unit,
    )
)


# --- booleans ---------------------------------------------------------------------------------------------------------

# BOOL_AND and BOOL_OR: comparisons of a noisy count with one half.


def _any(basis: Basis, measure: Measure) -> Formula:
    """Return whether the noisy count of rows where the argument is true is at least one half."""
    return basis.count(None, both(measure.filter, measure.arguments[0])).at_least(0.5)


def _all(basis: Basis, measure: Measure) -> Formula:
    """Return whether the noisy count of rows where the argument is false is below one half."""
    return basis.count(None, both(measure.filter, call("not", measure.arguments[0]))).below(0.5)


register(Aggregate("bool_or", {"LogicalOr": Arguments.CONDITION}, _any, Type.BOOLEAN))
register(Aggregate("bool_and", {"LogicalAnd": Arguments.CONDITION}, _all, Type.BOOLEAN))

_MOST_INTEGER = 2**31
"""A sum of integers of smaller size is an integer: it fits into 64 bits for fewer than 2**32 rows."""


def _sum(basis: Basis, measure: Measure) -> Formula:
    """Return the sum. Where the centred sum and the count are measured anyway, it is computed from them at no charge."""
    value = measure.arguments[0]
    if measure.distinct:
        return basis.distinct_sum(value, measure.filter, False)[0]
    clipped = basis.clipped_sum(value, measure.filter)
    return basis.total(value, measure.filter) if clipped is None else clipped


def _sum_facts(measure: Measure) -> Facts:
    argument = measure.arguments[0].facts
    small = max(abs(argument.lower), abs(argument.upper)) < _MOST_INTEGER
    return Facts(Type.INTEGER if argument.type is Type.INTEGER and small else Type.REAL)


def _sum_of_unit(measure: Measure, rows: int) -> Facts:
    facts = measure.arguments[0].facts
    nullable = measure.filter is not None or facts.nullable or facts.type is Type.REAL
    low, high = min(facts.lower * rows, facts.lower), max(facts.upper * rows, facts.upper)
    inside = facts.type is not Type.INTEGER or (INT64[0] <= low and high <= INT64[1])
    total = Facts(facts.type, low if inside else None, high if inside else None, nullable=nullable or not inside)
    return in_decimals(total, [facts])


register(
    Aggregate(
        "sum",
        {"Sum": Arguments.NUMBER},
        _sum,
        type=None,
        facts=_sum_facts,
        distinct=True,
        shared=SharedPart.SUM,
        zero_without_rows=True,
        of_unit=_sum_of_unit,
    )
)


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


def _mean_facts(measure: Measure) -> Facts:
    argument = measure.arguments[0].facts
    return Facts(Type.REAL, argument.lower, argument.upper)


def _mean_of_unit(measure: Measure, rows: int) -> Facts:
    facts = measure.arguments[0].facts
    nullable = measure.filter is not None or facts.nullable or facts.type is Type.REAL
    return Facts(Type.REAL, facts.lower, facts.upper, nullable=nullable)


register(
    Aggregate(
        "avg",
        {"Avg": Arguments.NUMBER, "mean": Arguments.NUMBER},
        _average,
        facts=_mean_facts,
        distinct=True,
        centred=True,
        shared=SharedPart.SUM | SharedPart.COUNT,
        of_unit=_mean_of_unit,
    )
)
