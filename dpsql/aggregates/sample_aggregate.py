"""SAMPLE_AGGREGATE: the median or mean, over many disjoint samples of units, of an expression over a sample's aggregates."""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, register
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Literal, Measure
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES

MEAN, MEDIAN = "mean", "median"
"""Ways of combining the values of samples. Only MEAN is an argument of the measure; without it, the median is meant."""


def bounds_and_samples(measure: Measure) -> tuple[tuple[Fraction, Fraction], int]:
    low, high, samples = [argument for argument in measure.arguments[1:4] if isinstance(argument, Literal)]
    return (Fraction(low.value), Fraction(high.value)), int(samples.value)


def _formula(basis: Basis, measure: Measure) -> Formula:
    return basis.number(SAMPLE_MEAN if len(measure.arguments) > 4 else SAMPLE_VALUES, measure)


def _facts(measure: Measure) -> Facts:
    (low, high), _ = bounds_and_samples(measure)
    return Facts(Type.REAL, low, high)


register(
    Aggregate("sample_aggregate", {"sample_aggregate": Arguments.SAMPLES}, _formula, facts=_facts, over_results=False)
)
