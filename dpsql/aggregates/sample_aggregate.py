"""SAMPLE_AGGREGATE: any expression over aggregates of a sample of units, as the median or the mean of many disjoint samples."""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis
from dpsql.aggregates.registry import register
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Literal, Measure

MEAN, MEDIAN = "mean", "median"
"""How the values of samples are combined. Only MEAN is an argument of the measure: without it, it is the median."""


def _numbers(measure: Measure) -> tuple[Fraction, ...]:
    """Return the bounds of the value, and the number of samples."""
    literals = [argument for argument in measure.arguments[1:4] if isinstance(argument, Literal)]
    return tuple(Fraction(literal.value) for literal in literals)


def _formula(basis: Basis, measure: Measure) -> Formula:
    low, high, samples = _numbers(measure)
    combined = basis.sample_mean if len(measure.arguments) > 4 else basis.sample_median
    return combined(measure.arguments[0], (low, high), int(samples))


def _facts(measure: Measure) -> Facts:
    low, high, _ = _numbers(measure)
    return Facts(Type.REAL, low, high)


register(
    Aggregate("sample_aggregate", {"sample_aggregate": Arguments.SAMPLES}, _formula, facts=_facts, over_results=False)
)
