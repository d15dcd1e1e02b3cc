"""BOOL_AND and BOOL_OR: comparisons of a noisy count with one half."""

from __future__ import annotations

from dpsql.aggregates.contract import Aggregate, Arguments, Basis
from dpsql.aggregates.registry import register
from dpsql.functions.numeric import both, call
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Measure


def _any(basis: Basis, measure: Measure) -> Formula:
    """Return whether the noisy count of rows where the argument is true is at least one half."""
    return basis.count(None, both(measure.filter, measure.arguments[0])).at_least(0.5)


def _all(basis: Basis, measure: Measure) -> Formula:
    """Return whether the noisy count of rows where the argument is false is below one half."""
    return basis.count(None, both(measure.filter, call("not", measure.arguments[0]))).below(0.5)


register(Aggregate("bool_or", {"LogicalOr": Arguments.CONDITION}, _any, Type.BOOLEAN))
register(Aggregate("bool_and", {"LogicalAnd": Arguments.CONDITION}, _all, Type.BOOLEAN))
