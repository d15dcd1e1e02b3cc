"""Each aggregate over noisy basis terms: free post-processing (privacy.md 4).

A rule asks the basis for the terms it needs and returns the formula of the measure and its type. Terms are doubles in
the unit of the column; results are kept in the range that the bounds imply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.functions.numeric import both, call, clamped, constant
from dpsql.plan.formulas import Formula, greatest, least, null_if, square_root, whole, within
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr, Literal, Measure
from dpsql.pricing.basis import Basis
from dpsql.pricing.rank_histograms import cell_value, measured

Rule = Callable[[Basis, Measure], tuple[Formula, Type]]
FORMULAS: dict[str, Rule] = {}


def _formula(*words: str) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        for word in words:
            FORMULAS[word] = rule
        return rule

    return enter


def _whole(value: Formula) -> tuple[Formula, Type]:
    return whole(value), Type.INTEGER


@_formula("count")
def _count(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    return _whole(basis.count(measure.arguments[0] if measure.arguments else None, measure.filter, clip=True))


@_formula("count_units")
def _units(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    return _whole(basis.units(measure.filter))


@_formula("count_distinct")
def _distinct(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    return _whole(basis.distinct(measure.arguments[0], measure.filter))


@_formula("sum")
def _sum(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    """Where the centred sum and the count are measured anyway, the sum follows from them at no charge."""
    value = measure.arguments[0]
    formula = None if measure.distinct else basis.clipped_sum(value, measure.filter)
    if measure.distinct:
        formula, _ = basis.distinct_sum(value, measure.filter, False)
    elif formula is None:
        centred, shared = ((value, measure.filter) in known for known in (basis.centred, basis.shared))
        term, centre = basis.sum(value, measure.filter, centred)
        around = centre != 0 if shared else centred
        formula = term + float(centre) * basis.count(value, measure.filter) if around else term
    if value.facts.type is Type.INTEGER and max(abs(value.facts.lower), abs(value.facts.upper)) < 2**31:
        return _whole(formula)
    return formula, Type.REAL


@_formula("avg")
def _avg(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    """Under max_total the clipped sum over the count: a centred sum would be clipped toward the middle of the bounds,
    which is far from the values of most units; both carry the bias of clipping, in the same direction."""
    value = measure.arguments[0]
    low, high = float(value.facts.lower), float(value.facts.upper)
    if measure.distinct:
        term, centre = basis.distinct_sum(value, measure.filter, True)
        count = basis.distinct(value, measure.filter)
        return within(float(centre) + term / greatest(count, 1), low, high), Type.REAL
    total = basis.clipped_sum(value, measure.filter)
    if total is not None:
        count = basis.count(value, measure.filter, clip=True)
        return within(total / greatest(count, 1), low, high), Type.REAL
    term, centre = basis.sum(value, measure.filter, True)
    count = basis.count(value, measure.filter)
    return within(float(centre) + term / greatest(count, 1), low, high), Type.REAL


_MOST_DISTANCE = 2**31
"""Products of two smaller integers have 64 bits."""


def _distance(value: Expr, centre: float | int) -> Expr:
    """value - centre, as a real where products of integers could pass 64 bits (or the centre is none)."""
    low, high = Fraction(value.facts.lower) - Fraction(centre), Fraction(value.facts.upper) - Fraction(centre)
    if value.facts.type is Type.INTEGER and max(abs(low), abs(high)) >= _MOST_DISTANCE:
        value = call("to_real", value)
    return call("sub", value, constant(centre, value))


def _variance(sample: bool, root: bool) -> Rule:
    """With d = x - centre and h = max |d|: n, sum d and sum (d^2 - h^2 / 2) are measured (the centring halves the
    sensitivity of the squares); Var = h^2 / 2 + S2 / n - (S1 / n)^2, kept in [0, (U - L)^2 / 4] (Popoviciu).

    Of distinct values the squares are those of x - L: those around the middle would be equal for two values."""

    def rule(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
        value = measure.arguments[0]
        low, high = value.facts.lower, value.facts.upper
        inside = call("clamp", value, constant(low, value), constant(high, value))
        if measure.distinct:
            s1, middle_1 = basis.distinct_sum(value, measure.filter, True)
            n = greatest(basis.distinct(value, measure.filter), 2 if sample else 1)
            distance = _distance(inside, low)  # squares from the lower end are as different as the values
            s2, middle = basis.distinct_sum(call("mul", distance, distance), measure.filter, True)
            mean = float(Fraction(middle_1) - Fraction(low)) + s1 / n
        else:
            s1, centre = basis.sum(value, measure.filter, True)
            n = greatest(basis.count(value, measure.filter), 2 if sample else 1)
            distance = _distance(inside, centre)
            s2, middle = basis.sum(call("mul", distance, distance), measure.filter, True)
            mean = s1 / n
        variance = within(float(middle) + s2 / n - mean * mean, 0, float(Fraction(high - low) ** 2 / 4))
        if sample:
            variance = variance * n / (n - 1)
        return (square_root(variance) if root else variance), Type.REAL

    return rule


for _word, _sample, _root in (
    ("var_pop", False, False), ("var_samp", True, False), ("stddev_pop", False, True), ("stddev_samp", True, True),
):  # fmt: skip
    FORMULAS[_word] = _variance(_sample, _root)


def _quantile(interpolated: bool) -> Rule:
    def rule(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
        value, quantile = measure.arguments
        assert isinstance(quantile, Literal)
        name, term = measured(basis, value, measure.filter, Fraction(quantile.value))
        return cell_value(value, term, name, interpolated)

    return rule


FORMULAS["quantile_cont"] = _quantile(True)
FORMULAS["quantile_disc"] = _quantile(False)


@_formula("bool_or")
def _bool_or(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    """Whether the noisy number of rows that are true is nearer to one or more than to none."""
    return basis.count(None, both(measure.filter, measure.arguments[0])).at_least(0.5), Type.BOOLEAN


@_formula("bool_and")
def _bool_and(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    """Whether the noisy number of rows that are false is nearer to none."""
    wrong = call("not", measure.arguments[0])
    return basis.count(None, both(measure.filter, wrong)).below(0.5), Type.BOOLEAN


# --- two columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """Means and spreads of y and x over the rows where both are there, over noisy terms.

    n, sums of dx and dy (centred), of dx^2 and dy^2 (centred again) and of dx dy, which lies in [-hx hy, hx hy].
    """

    n: Formula
    mean_y: Formula
    mean_x: Formula
    var_y: Formula
    var_x: Formula
    covariance: Formula


def _pair(basis: Basis, measure: Measure) -> _Pair:
    y, x = (clamped(argument) for argument in measure.arguments)
    there = call("and", call("not", call("is_null", y)), call("not", call("is_null", x)))
    condition = both(measure.filter, there)
    count = greatest(basis.count(None, condition), 1)
    parts = []
    for value in (y, x):
        total, centre = basis.sum(value, condition, True)
        distance = _distance(value, centre)
        squares, middle = basis.sum(call("mul", distance, distance), condition, True)
        low, high = value.facts.lower, value.facts.upper
        mean = within(float(centre) + total / count, float(low), float(high))
        spread = float(middle) + squares / count - (total / count) * (total / count)
        parts.append((distance, total, mean, within(spread, 0, float(Fraction(high - low) ** 2 / 4))))
    (dy, sum_y, mean_y, var_y), (dx, sum_x, mean_x, var_x) = parts
    product, _ = basis.sum(call("mul", dy, dx), condition, False)
    covariance = product / count - (sum_y / count) * (sum_x / count)
    limit = square_root(var_y * var_x)
    return _Pair(count, mean_y, mean_x, var_y, var_x, within(covariance, -limit, limit))


_PAIRED: dict[str, Callable[[_Pair], Formula]] = {
    "covar_pop": lambda p: p.covariance,
    "covar_samp": lambda p: p.covariance * p.n / greatest(p.n - 1, 1),
    "corr": lambda p: within(p.covariance / null_if(square_root(p.var_y * p.var_x), 0), -1, 1),
    "regr_slope": lambda p: p.covariance / null_if(p.var_x, 0),
    "regr_intercept": lambda p: p.mean_y - p.covariance / null_if(p.var_x, 0) * p.mean_x,
    "regr_r2": lambda p: least(p.covariance * p.covariance / null_if(p.var_y * p.var_x, 0), 1),
    "regr_avgx": lambda p: p.mean_x,
    "regr_avgy": lambda p: p.mean_y,
}


def _paired(formula: Callable[[_Pair], Formula]) -> Rule:
    return lambda basis, measure: (formula(_pair(basis, measure)), Type.REAL)


for _word, _over_pair in _PAIRED.items():
    FORMULAS[_word] = _paired(_over_pair)


@_formula("regr_count")
def _regr_count(basis: Basis, measure: Measure) -> tuple[Formula, Type]:
    y, x = measure.arguments
    there = call("and", call("not", call("is_null", clamped(y))), call("not", call("is_null", clamped(x))))
    return _whole(basis.count(None, both(measure.filter, there)))
