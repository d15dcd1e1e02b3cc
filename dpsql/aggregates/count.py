"""COUNT of rows, of values, of distinct values, and of privacy units."""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, SharedPart
from dpsql.aggregates.registry import register
from dpsql.functions.numeric import both, call
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Measure


def _rows(basis: Basis, measure: Measure) -> Formula:
    return basis.count(measure.arguments[0] if measure.arguments else None, measure.filter, clip=True)


def _units(basis: Basis, measure: Measure) -> Formula:
    return basis.units(measure.filter)


def _distinct(basis: Basis, measure: Measure) -> Formula:
    return basis.distinct(measure.arguments[0], measure.filter, bounded=True)


def _of_unit(measure: Measure, rows: int) -> Facts:
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
        of_unit=_of_unit,
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
        of_unit=_of_unit,
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
