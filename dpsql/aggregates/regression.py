"""Aggregates of two columns: covariance, correlation, and the line of least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis
from dpsql.aggregates.distances import distance
from dpsql.aggregates.registry import register
from dpsql.functions.numeric import both, call, clamped
from dpsql.plan.formulas import Formula, greatest, null_if, square_root, within
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr, Measure


@dataclass(frozen=True)
class _Pair:
    """Means and spreads of y and x over the rows where both are there, over noisy sums.

    n, sums of dx and dy (centred), of dx^2 and dy^2 (centred again) and of dx dy, which lies in [-hx hy, hx hy].
    """

    n: Formula
    mean_y: Formula
    mean_x: Formula
    var_y: Formula
    var_x: Formula
    covariance: Formula


def _rows(measure: Measure) -> Expr:
    """The rows that pass the FILTER and have both values."""
    y, x = (clamped(argument) for argument in measure.arguments)
    return both(measure.filter, call("and", call("not", call("is_null", y)), call("not", call("is_null", x))))


def _pair(basis: Basis, measure: Measure) -> _Pair:
    condition = _rows(measure)
    count = greatest(basis.count(None, condition), 1)
    parts = []
    for value in (clamped(argument) for argument in measure.arguments):
        total, centre = basis.sum(value, condition, True)
        d = distance(value, centre)
        squares, middle = basis.sum(call("mul", d, d), condition, True)
        low, high = value.facts.lower, value.facts.upper
        mean = within(float(centre) + total / count, float(low), float(high))
        spread = float(middle) + squares / count - (total / count) * (total / count)
        parts.append((d, total, mean, within(spread, 0, float(Fraction(high - low) ** 2 / 4))))
    (dy, sum_y, mean_y, var_y), (dx, sum_x, mean_x, var_x) = parts
    product, _ = basis.sum(call("mul", dy, dx), condition, False)
    covariance = product / count - (sum_y / count) * (sum_x / count)
    limit = square_root(var_y * var_x)
    return _Pair(count, mean_y, mean_x, var_y, var_x, within(covariance, -limit, limit))


def _correlation(pair: _Pair) -> Formula:
    """NULL without a spread, as in SQL. The covariance is kept within the root it is divided by, so the ratio is in [-1, 1]
    as it stands; LEAST and GREATEST around it would skip the NULL and say 1 or -1."""
    return pair.covariance / null_if(square_root(pair.var_y * pair.var_x), 0)


def _over(formula: Callable[[_Pair], Formula]) -> Callable[[Basis, Measure], Formula]:
    return lambda basis, measure: formula(_pair(basis, measure))


for _word, _node, _over_results, _of_pair in (
    ("covar_pop", "CovarPop", True, lambda p: p.covariance),
    ("covar_samp", "CovarSamp", True, lambda p: p.covariance * p.n / greatest(p.n - 1, 1)),
    ("corr", "Corr", True, _correlation),
    ("regr_slope", "RegrSlope", True, lambda p: p.covariance / null_if(p.var_x, 0)),
    ("regr_intercept", "RegrIntercept", True, lambda p: p.mean_y - p.covariance / null_if(p.var_x, 0) * p.mean_x),
    ("regr_r2", "RegrR2", False, lambda p: _correlation(p) * _correlation(p)),
    ("regr_avgx", "RegrAvgx", False, lambda p: p.mean_x),
    ("regr_avgy", "RegrAvgy", False, lambda p: p.mean_y),
):
    register(Aggregate(_word, {_node: Arguments.PAIR}, _over(_of_pair), over_results=_over_results))

register(
    Aggregate(
        "regr_count",
        {"RegrCount": Arguments.PAIR},
        lambda basis, measure: basis.count(None, _rows(measure)),
        Type.INTEGER,
        zero_without_rows=True,
        counts=True,
        over_results=False,
    )
)
