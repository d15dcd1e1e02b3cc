"""Variance and standard deviation, of a sample and of a population."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis
from dpsql.aggregates.distances import distance
from dpsql.aggregates.registry import register
from dpsql.functions.numeric import call, constant
from dpsql.plan.formulas import Formula, greatest, square_root, within
from dpsql.plan.plan import Measure


def _variance(sample: bool, root: bool) -> Callable[[Basis, Measure], Formula]:
    """With d = x - centre and h = max |d|: n, sum d and sum (d^2 - h^2 / 2) are measured (the centring halves the
    sensitivity of the squares); Var = h^2 / 2 + S2 / n - (S1 / n)^2, kept in [0, (U - L)^2 / 4] (Popoviciu).

    Of distinct values the squares are those of x - L: those around the middle would be equal for two values."""

    def formula(basis: Basis, measure: Measure) -> Formula:
        value, condition = measure.arguments[0], measure.filter
        low, high = value.facts.lower, value.facts.upper
        inside = call("clamp", value, constant(low, value), constant(high, value))
        if measure.distinct:
            s1, centre = basis.distinct_sum(value, condition, True)
            n = greatest(basis.distinct(value, condition), 2 if sample else 1)
            d = distance(inside, low)  # squares from the lower end are as different as the values
            s2, middle = basis.distinct_sum(call("mul", d, d), condition, True)
            mean: Formula = float(Fraction(centre) - Fraction(low)) + s1 / n
        else:
            s1, centre = basis.sum(value, condition, True)
            n = greatest(basis.count(value, condition), 2 if sample else 1)
            d = distance(inside, centre)
            s2, middle = basis.sum(call("mul", d, d), condition, True)
            mean = s1 / n
        variance: Formula = within(float(middle) + s2 / n - mean * mean, 0, float(Fraction(high - low) ** 2 / 4))
        if sample:
            variance = variance * n / (n - 1)
        return square_root(variance) if root else variance

    return formula


for _word, _nodes, _sample, _root in (
    ("var_pop", ("VariancePop",), False, False),
    ("var_samp", ("Variance",), True, False),
    ("stddev_pop", ("StddevPop",), False, True),
    ("stddev_samp", ("Stddev", "StddevSamp"), True, True),
):
    register(
        Aggregate(
            _word, dict.fromkeys(_nodes, Arguments.NUMBER), _variance(_sample, _root), distinct=True, centred=True
        )
    )
