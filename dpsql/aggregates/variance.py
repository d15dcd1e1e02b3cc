"""Variance and standard deviation, of a sample and of a population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, SharedPart
from dpsql.aggregates.distances import distance
from dpsql.aggregates.estimates import Bound, assumed_variance, leaning, nearer, row_count
from dpsql.aggregates.registry import register
from dpsql.functions.numeric import call, constant
from dpsql.plan.formulas import Deviation, Estimate, Formula, greatest, square_root, within
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Measure


@dataclass(frozen=True)
class _Sums:
    """Noisy sums of one argument: `count`, `total` of the distances from a centre, and `squares` of d^2 - `middle`, where d is
    the distance from `point`. `offset`: the centre minus `point`."""

    count: Formula
    total: Formula
    squares: Formula
    middle: float | int
    point: Bound
    offset: float


def _sums(basis: Basis, measure: Measure) -> _Sums:
    """Return the sums of a variance. With d = x - centre and h = max |d|: n, sum d and sum (d^2 - h^2 / 2) are measured (the
    centring halves the sensitivity of the squares), or n, sum d and sum d^2 follow from sums that share each row
    (`pricing.joint_sums`).

    For distinct values, the squares are those of x - L: around the midpoint, two different values would have equal squares."""
    value, condition = measure.arguments[0], measure.filter
    low, high = value.facts.lower, value.facts.upper
    inside = call("clamp", value, constant(low, value), constant(high, value))
    if measure.distinct:
        total, centre = basis.distinct_sum(value, condition, True)
        count = basis.distinct(value, condition)
        d = distance(inside, low)  # different values have different squared distances from the lower end
        squares, middle = basis.distinct_sum(call("mul", d, d), condition, True)
        return _Sums(count, total, squares, middle, low, float(Fraction(centre) - Fraction(low)))
    shared = basis.squares(value, condition)
    if shared is not None:
        return _Sums(shared.count, shared.total, shared.squares, 0, shared.centre, 0.0)
    total, centre = basis.sum(value, condition, True)
    count = basis.count(value, condition)
    d = distance(inside, centre)
    squares, middle = basis.sum(call("mul", d, d), condition, True)
    return _Sums(count, total, squares, middle, centre, 0.0)


def _variance(sample: bool, root: bool) -> Callable[[Basis, Measure], Formula]:
    """Return the rule of a variance (or its `root`): h^2 / 2 + S2 / n - (S1 / n)^2, kept in [0, (U - L)^2 / 4] (Popoviciu)."""
    least = 2 if sample else 1

    def variance(sums: _Sums, most: float, rows: Formula) -> Formula:
        mean = sums.offset + sums.total / rows if sums.offset else sums.total / rows
        return within(float(sums.middle) + sums.squares / rows - mean * mean, 0, most)

    def estimate(sums: _Sums, bounds: Facts, rows: Formula) -> Formula:
        """Return a variance in [0, (m - L)(U - m)] with the mean m (Bhatia and Davis 2000), drawn toward the assumed one."""
        lower, upper = (float(Fraction(end) - Fraction(sums.point)) for end in (bounds.lower, bounds.upper))
        mean = sums.offset + sums.total / rows if sums.offset else sums.total / rows
        inside = within(mean, lower, upper)
        most = (inside - lower) * (-inside + upper)
        value = within(float(sums.middle) + sums.squares / rows - mean * mean, 0, most)
        of_mean = greatest(inside, -inside) * Deviation(sums.total) * 2.0
        noise = greatest(Deviation(sums.squares), of_mean) / rows  # no squares: they may exceed the doubles
        return within(nearer(value, assumed_variance(bounds.lower, bounds.upper), noise), 0, most)

    def corrected(value: Formula, rows: Formula) -> Formula:
        unbiased = value * rows / (rows - 1) if sample else value
        return square_root(unbiased) if root else unbiased

    def formula(basis: Basis, measure: Measure) -> Formula:
        sums, facts = _sums(basis, measure), measure.arguments[0].facts
        most = float(Fraction(facts.upper - facts.lower) ** 2 / 4)
        few, (rows, real) = greatest(sums.count, least), row_count(sums.count, least)
        shrunk = leaning(estimate(sums, facts, rows), assumed_variance(facts.lower, facts.upper), real)
        return Estimate(corrected(variance(sums, most, few), few), corrected(shrunk, rows))

    return formula


for _word, _nodes, _sample, _root in (
    ("var_pop", ("VariancePop",), False, False),
    ("var_samp", ("Variance",), True, False),
    ("stddev_pop", ("StddevPop",), False, True),
    ("stddev_samp", ("Stddev", "StddevSamp"), True, True),
):
    register(
        Aggregate(
            _word,
            dict.fromkeys(_nodes, Arguments.NUMBER),
            _variance(_sample, _root),
            distinct=True,
            centred=True,
            shared=SharedPart.SQUARES,
        )
    )
