"""Variance, standard deviation, and of two columns: covariance, correlation, the line of least squares; their estimates."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, PairSquares, Products, SharedPart, register
from dpsql.functions.numeric import both, call, clamped, constant
from dpsql.functions.signatures import REGISTRY, WrongArguments
from dpsql.plan.formulas import (
    Deviation,
    Estimate,
    Formula,
    Number,
    formula,
    greatest,
    least,
    null_if,
    square_root,
    within,
)
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Measure
from dpsql.storage.records import dataclass, replace

# --- estimates shown where a denominator is mostly noise --------------------------------------------------------------
# They are shrunk toward values that follow from the public bounds.
#
# AVG is a sum over a count. With n rows, and noise of standard deviation s in the count, the plain ratio is useless
# unless n is several times s: the noisy count comes near 0, and the ratio goes to one of the bounds. So up to k = 1.5 s
# a denominator n is replaced by
#
# h(n) = (m^2 + k^2) / 2 k, m = n kept in [0, k]; h(n) = n from k on,
#
# which is continuous with a continuous slope, never less than n, and k / 2 at n <= 0. The difference h(n) - n counts
# *assumed rows*, whose distribution follows from the bounds alone: their mean is half-way between the midpoint of the
# bounds and the value in the bounds nearest to 0 (amounts with a generous upper bound lie near the lower one; for [-a,
# a] it is the midpoint), their standard deviation is an eighth of the width, and they have no correlation. Shrinkage
# toward prior knowledge: Stein 1956; a ratio with a denominator kept from being small: ridge regression (Hoerl and
# Kennard 1970), with a ridge that ends where noise is small.
#
# A mean also uses the joint distribution of its sums. With values in [L, U], a = sum(x - L) and b = sum(U - x) are not
# negative, and (a + b) / (U - L) is n. The noisy numbers are made to satisfy the same, which gives more information on
# n than the count.
#
# A variance is a difference of two noisy numbers. It is mostly noise even at counts that are well above their noise, so
# its distance from the assumed variance is shrunk while it is below 1.5 s' (`nearer`), with s' the deviation of its
# noise. It is also at most (m - L)(U - m) for the released mean m, which no values in [L, U] exceed (Bhatia and Davis
# 2000).
#
# A covariance from products that share each row has no measured variances that would keep it small. The covariances of
# most columns are far smaller than the bounds allow, so one within 2 to 5 deviations of its noise is shrunk
# (`beyond_noise`).
#
# Where h(n) = n and nothing is cut, an estimate is the plug-in formula up to rounding. Below, its bias is toward the
# assumed values, and its mean squared error is smaller, except for values near the bound far from 0 and for points on a
# line (docs/evidence/accuracy.md has a table that `python -m benchmarks --estimates` writes). Counts and sums are shown
# as released.
#
# This is post-processing of released numbers (Dwork and Roth 2014, proposition 2.1): no row is read, nothing more is
# charged.

Bound = Fraction | float | int
_DEVIATIONS = 1.5
"""Number of standard deviations of its noise up to which a denominator is replaced: k / s above. Of 1, 1.5, 2 and 3, with this
one the mean squared error is in no case much more than that of the plain ratio."""
_WIDTHS = 8
"""Width of the bounds in standard deviations of assumed rows: four of them on both sides of the midpoint."""

_GROWTH, _MOST_DEVIATIONS = 13.0, (2.0, 5.0)
"""Slope and limits of k, the range in which covariances are shrunk (`beyond_noise`), in deviations of their noise."""

_LEAST = 1e-150
"""Smallest k, chosen so that its square is a double above 0: a count may be exact while a sum is noisy."""


def denominator(value: Formula, deviation: Formula) -> Formula:
    """Return h(value) (see the module) for noise of the standard deviation `deviation`."""
    limit = greatest(deviation * _DEVIATIONS, _LEAST)
    inside = within(value, 0, limit)
    return greatest(value, (inside * inside + limit * limit) / (limit * 2.0))


def row_count(count: Formula, least: int) -> tuple[Formula, Formula]:
    """Return h(n) for a number of rows n, at least `least`, and the share of real rows in it: n / h(n), or 0 for a negative n."""
    rows = greatest(denominator(count, Deviation(count)), least)
    return rows, greatest(count, 0) / rows


def mean(total: Formula, centre: float | int, count: Formula, bounds: Facts) -> Formula:
    """Return the shrunk mean of `count` values in `bounds` whose distances from `centre` sum to `total`."""
    return _mean_within(total, centre, count, bounds.lower, bounds.upper)


@lru_cache(maxsize=1024)
def _mean_within(total: Formula, centre: Bound, count: Formula, lowest: Bound, highest: Bound) -> Formula:
    """Return the formula of `mean`. It is cached, since queries ask for the same means again: equal numbers of any type are the
    same fraction, and equal formulas the same computation, so equal arguments have equal results."""
    lower, upper = float(lowest), float(highest)
    if lower == upper:
        return formula(lower)
    above = greatest(total + count * float(Fraction(centre) - Fraction(lowest)), 0)
    below = greatest(count * float(Fraction(highest) - Fraction(centre)) - total, 0)
    number = (above + below) / float(Fraction(highest) - Fraction(lowest))
    rows = greatest(denominator(number, Deviation(count)), 1)
    assumed = assumed_mean(lowest, highest)
    return within(assumed + (above - number * (assumed - lower)) / rows, lower, upper)


def assumed_mean(lower: Bound, upper: Bound) -> float:
    middle, nearest = (Fraction(lower) + Fraction(upper)) / 2, max(Fraction(lower), min(Fraction(upper), Fraction(0)))
    return float((middle + nearest) / 2)


def assumed_variance(lower: Bound, upper: Bound) -> float:
    return float((Fraction(upper) - Fraction(lower)) ** 2 / _WIDTHS**2)


def leaning(value: Formula, assumed: float, share: Formula) -> Formula:
    """Return the average of `value`, weighted by the share of real rows, and `assumed`, weighted by the rest."""
    return value * share + assumed * (formula(1) - share)


def nearer(value: Formula, assumed: float, noise: Formula) -> Formula:
    """Return `value`, drawn toward `assumed` while it is at most k = 1.5 deviations of its `noise` away from it.

    The distance d becomes d a (2 k - a) / k^2 with a = min(|d|, k), which is continuous with a continuous slope.
    """
    reach = greatest(noise * _DEVIATIONS, _LEAST)
    distance = value - assumed
    size = least(greatest(distance, -distance), reach)
    return distance * (size / reach) * ((reach * 2.0 - size) / reach) + assumed


def assumed_covariance(first: Facts, second: Facts) -> float:
    """Return the largest assumed covariance of unknown rows: the product of both assumed standard deviations."""
    width, other = (Fraction(bounds.upper) - Fraction(bounds.lower) for bounds in (first, second))
    return float(width * other / _WIDTHS**2)


def beyond_noise(value: Formula, limit: Formula, assumed: float, noise: Formula) -> Formula:
    """Return `value` within [-limit, limit], drawn toward 0 while it is at most k deviations of its `noise` away from 0.

    The value v becomes v s (2 - s) with s = min((v / (k noise))^2, 1), which is continuous with a continuous slope: an eighth of
    v at a quarter of the range, half of v just beyond its middle. k is 13 times the ratio of the noise to `assumed`, the largest
    likely covariance, kept in [2, 5]: the more the noise exceeds likely values, the less a large value means. With this slope
    and these limits the error is in no case more than that of a covariance with variances measured apart
    (docs/evidence/accuracy.md).
    """
    reach = greatest(noise, _LEAST) * within(noise / assumed * _GROWTH, *_MOST_DEVIATIONS)
    part = within(value / reach, -1, 1)  # of the value before the limit: that is longer, and formulas are written out
    square = part * part
    return within(value, -limit, limit) * square * (square * -1.0 + 2.0)


# --- distances from a centre, whose squares and products are summed ---------------------------------------------------
# Conditions that a row has a value, or both of a pair.

_MOST_DISTANCE = 2**31
"""Products of two integers of smaller size fit into 64 bits."""
_USUAL_INTEGERS = Fraction(2**31)
"""Assumed largest size of a column's integers where the policy has narrower bounds."""


def distance(value: Expr, centre: float | int) -> Expr:
    """Return value - centre, as a real if products of such integers could exceed 64 bits (or if the centre is not an integer)."""
    low, high = Fraction(value.facts.lower) - Fraction(centre), Fraction(value.facts.upper) - Fraction(centre)
    if value.facts.type is Type.INTEGER and max(abs(low), abs(high)) >= _MOST_DISTANCE:
        value = call("to_real", value)
    return call("sub", value, constant(centre, value))


def can_be_missing(value: Expr) -> bool:
    """Return whether some row may have no value: NULL, or NaN, which counts as NULL.

    A column's bounds and list are not guaranteed: 100 // y with y in [1, 9] is NULL in a row where y is 0. Integers of more than
    32 bits where the policy has narrower bounds are not considered: for their sake, each product would cost a separate count.
    That a column is never NULL is guaranteed by the policy. A row that violates this is in no sum of the column's values, and the
    bounds on a unit hold for it as well: it makes numbers of rows wrong, but privacy does not depend on it (privacy.md 4).
    """
    return value.facts.nullable or value.facts.type is Type.REAL or _over_usual_values(value).facts.nullable


@lru_cache(maxsize=1024)
def _over_usual_values(value: Expr) -> Expr:
    """Return the expression with the facts that follow if its columns may hold any usual values of their types."""
    if isinstance(value, Column):
        return replace(value, facts=_usual(value.facts))
    if not isinstance(value, Call):
        return value
    arguments = tuple(map(_over_usual_values, value.arguments))
    try:
        return replace(value, arguments=arguments, facts=REGISTRY[value.function].infer(arguments))
    except WrongArguments:  # it needs narrower bounds
        return replace(value, facts=replace(value.facts, nullable=True))


def _usual(facts: Facts) -> Facts:
    if facts.type is Type.INTEGER and facts.bounded:
        ends = {"lower": min(facts.lower, -_USUAL_INTEGERS), "upper": max(facts.upper, _USUAL_INTEGERS)}
        return replace(facts.without_values(), **ends)
    return facts.without_values() if facts.type is Type.TEXT else facts


def presence(value: Expr) -> Expr:
    """Return the condition that a row has a value: x IS NOT NULL, and not NaN for reals with bounds, whose sums leave NaN out."""
    return call(
        "not", call("is_null", clamped(value) if value.facts.type is Type.REAL and value.facts.bounded else value)
    )


def present(values: tuple[Expr, Expr], condition: Expr | None) -> Expr | None:
    """Return the condition of the rows that satisfy `condition` (the FILTER) and have both values; None if all rows do."""
    for value in values:
        if can_be_missing(value):
            condition = both(condition, presence(value))
    return condition


# --- variance and standard deviation ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _VarianceSums:
    """Noisy sums of one argument: `count`, `total` of the distances from a centre, and `squares` of d^2 - `middle`, where d is
    the distance from `point`. `offset`: the centre minus `point`."""

    count: Formula
    total: Formula
    squares: Formula
    middle: float | int
    point: Bound
    offset: float


def _sums(basis: Basis, measure: Measure) -> _VarianceSums:
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
        return _VarianceSums(count, total, squares, middle, low, float(Fraction(centre) - Fraction(low)))
    shared = basis.squares(value, condition)
    if shared is not None:
        return _VarianceSums(shared.count, shared.total, shared.squares, 0, shared.centre, 0.0)
    total, centre = basis.sum(value, condition, True)
    count = basis.count(value, condition)
    d = distance(inside, centre)
    squares, middle = basis.sum(call("mul", d, d), condition, True)
    return _VarianceSums(count, total, squares, middle, centre, 0.0)


def _variance(sample: bool, root: bool) -> Callable[[Basis, Measure], Formula]:
    """Return the rule of a variance (or its `root`): h^2 / 2 + S2 / n - (S1 / n)^2, kept in [0, (U - L)^2 / 4] (Popoviciu)."""
    least = 2 if sample else 1

    def variance(sums: _VarianceSums, most: float, rows: Formula) -> Formula:
        mean = sums.offset + sums.total / rows if sums.offset else sums.total / rows
        return within(float(sums.middle) + sums.squares / rows - mean * mean, 0, most)

    def estimate(sums: _VarianceSums, bounds: Facts, rows: Formula) -> Formula:
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


@dataclass(frozen=True)
class _Sums:
    """Noisy sums of one column over the rows that have both values, as for a variance: `total` of
    d = value - `centre`, and `squares` of d^2 - `middle`. `bounds`: facts of the values."""

    total: Formula
    centre: float | int
    squares: Formula
    middle: float | int
    bounds: Facts

    def variance(self, rows: Formula) -> Formula:
        """Return the variance over `rows` rows, kept in [0, (U - L)^2 / 4] (Popoviciu)."""
        spread = float(self.middle) + self.squares / rows - (self.total / rows) * (self.total / rows)
        return within(spread, 0, float((Fraction(self.bounds.upper) - Fraction(self.bounds.lower)) ** 2 / 4))


@dataclass(frozen=True)
class _Pair:
    """Means and the covariance of y and x over `n` rows, and the two denominators: `root`, the square root of the product of both
    variances, for CORR, and `spread_x`, the variance of x, for slopes. A denominator is NULL if it shows no spread."""

    n: Formula
    mean_y: Formula
    mean_x: Formula
    covariance: Formula
    root: Formula
    spread_x: Formula


_LEAST_PRODUCT = 1e-300
"""Smallest deviation used as a divisor."""


def _rows(measure: Measure) -> Expr | None:
    first, second = measure.arguments
    return present((first, second), measure.filter)


def _pairs(basis: Basis, measure: Measure) -> tuple[_Pair, _Pair]:
    """Return the plug-in and the shrunk statistics. Measured are n, the sums of dx and dy (centred), of dx^2 and dy^2 (centred
    again) and of dx dy, which is in [-hx hy, hx hy]; or they follow from nine sums that share each row (`pricing.joint_sums`)."""
    shared = basis.pair_squares((measure.arguments[0], measure.arguments[1]), measure.filter)
    if shared is not None:
        return _of_shared(shared, measure)
    condition = _rows(measure)
    count = basis.count(None, condition)
    columns, distances = [], []
    for value in (clamped(argument) for argument in measure.arguments):
        total, centre = basis.sum(value, condition, True)
        d = distance(value, centre)
        squares, middle = basis.sum(call("mul", d, d), condition, True)
        columns.append(_Sums(total, centre, squares, middle, value.facts))
        distances.append(d)
    product, _ = basis.sum(call("mul", *distances), condition, False)
    y, x = columns
    return _plugged_in(y, x, product, greatest(count, 1)), _shrunk(y, x, product, count)


def _of_shared(shared: PairSquares, measure: Measure) -> tuple[_Pair, _Pair]:
    sums = shared.products
    y, x = (
        _Sums(total, float(centre), squares, 0, argument.facts)
        for total, centre, squares, argument in zip(
            sums.totals, sums.centres, shared.squares, measure.arguments, strict=True
        )
    )
    return _plugged_in(y, x, sums.product, greatest(sums.count, 1)), _shrunk(y, x, sums.product, sums.count)


def _means_of(sums: Products, measure: Measure, rows: Formula) -> tuple[list[Formula], Formula]:
    """Return both means as distances from their centres, and the largest covariance of values with these means."""
    means: list[Formula] = []
    limit: Formula = Number(1.0)
    for argument, total, centre in zip(measure.arguments, sums.totals, sums.centres, strict=True):
        lower, upper = (float(Fraction(end) - Fraction(centre)) for end in (argument.facts.lower, argument.facts.upper))
        mean_ = within(total / rows, lower, upper)
        limit = limit * square_root((mean_ - lower) * (-mean_ + upper))
        means.append(mean_)
    return means, limit


def noise_of_covariance(sums: Products, measure: Measure, rows: Formula) -> Formula:
    """Return the deviation of the noise of a small covariance, (P - m' S - m S' + m m' n) / n. The noises of the four sums are
    uncorrelated, and the deviations of n and P multiply to the product of those of S and S', so the variance factors as well."""
    noise: Formula = Deviation(sums.product)
    for mean_, total in zip(_means_of(sums, measure, rows)[0], reversed(sums.totals), strict=True):
        ratio = mean_ * (Deviation(total) / greatest(Deviation(sums.product), _LEAST_PRODUCT))
        noise = noise * square_root(ratio * ratio + 1.0)
    return noise / rows


def _covaried(sample: bool) -> Callable[[Basis, Measure], Formula]:
    """Return the rule of a covariance. From products that share each row: cov = P / n - (S / n)(S' / n), no larger than the means
    allow: its square is at most the product of both variances (Cauchy and Schwarz), and that of values in [L, U] with the mean m
    is at most (m - L)(U - m) (Bhatia and Davis 2000). From sums measured apart, it is no larger than the variances allow."""

    def covariance(sums: Products, measure: Measure, rows: Formula) -> tuple[Formula, Formula]:
        means, limit = _means_of(sums, measure, rows)
        return sums.product / rows - means[0] * means[1], limit

    def corrected(value: Formula, rows: Formula) -> Formula:
        return value * rows / greatest(rows - 1, 1) if sample else value

    def formula(basis: Basis, measure: Measure) -> Formula:
        first, second = measure.arguments
        sums = basis.products((first, second), measure.filter)
        if sums is None:
            apart, steady = _pairs(basis, measure)
            return Estimate(corrected(apart.covariance, apart.n), corrected(steady.covariance, steady.n))
        few, (rows, real) = greatest(sums.count, 1), row_count(sums.count, 1)
        noise, assumed = noise_of_covariance(sums, measure, rows), assumed_covariance(first.facts, second.facts)
        shrunk = beyond_noise(*covariance(sums, measure, rows), assumed, noise) * real
        value, limit = covariance(sums, measure, few)
        return Estimate(corrected(within(value, -limit, limit), few), corrected(shrunk, rows))

    return formula


def _mean_of(index: int) -> Callable[[Basis, Measure], Formula]:
    """Return the rule of the mean of one value, y (`index` 0) or x (1), over the rows that have both."""

    def formula(basis: Basis, measure: Measure) -> Formula:
        first, second = measure.arguments
        shared = basis.products((first, second), measure.filter)
        if shared is None:
            count = basis.count(None, _rows(measure))
            total, centre = basis.sum(clamped(measure.arguments[index]), _rows(measure), True)
        else:
            count, total = shared.count, shared.totals[index]
            centre = float(shared.centres[index])
        bounds = measure.arguments[index].facts
        plug_in = within(float(centre) + total / greatest(count, 1), float(bounds.lower), float(bounds.upper))
        return Estimate(plug_in, mean(total, centre, count, bounds))

    return formula


def _covariance(y: _Sums, x: _Sums, product: Formula, rows: Formula, limit: Formula) -> Formula:
    return within(product / rows - (y.total / rows) * (x.total / rows), -limit, limit)


def _plugged_in(y: _Sums, x: _Sums, product: Formula, rows: Formula) -> _Pair:
    """Return the plug-in statistics. CORR is NULL without a spread, as in SQL. The covariance is kept within the root it is
    divided by, so the ratio is in [-1, 1] by itself; LEAST and GREATEST around it would skip the NULL and give 1 or -1."""
    var_y, var_x = y.variance(rows), x.variance(rows)
    limit = square_root(var_y * var_x)
    covariance = _covariance(y, x, product, rows, limit)
    mean_y, mean_x = (
        within(float(s.centre) + s.total / rows, float(s.bounds.lower), float(s.bounds.upper)) for s in (y, x)
    )
    return _Pair(rows, mean_y, mean_x, covariance, null_if(limit, 0), null_if(var_x, 0))


def _shrunk(y: _Sums, x: _Sums, product: Formula, count: Formula) -> _Pair:
    """Return the shrunk statistics. Assumed rows have no covariance, so it is multiplied by the share of real rows. Variances in
    denominators are mostly noise even at counts well above theirs; they are replaced as counts are (`estimates.denominator`)."""
    rows, real = row_count(count, 1)
    variances = [column.variance(rows) for column in (y, x)]
    steady = [
        denominator(variance, Deviation(column.squares) / rows)
        for variance, column in zip(variances, (y, x), strict=True)
    ]
    (var_y, var_x), (steady_y, steady_x) = variances, steady
    limit = square_root(var_y * var_x)
    # NULL as in the plug-in formula; the difference is 0 if no denominator is replaced.
    root = null_if(limit, 0) + (square_root(steady_y * steady_x) - limit)
    spread_x = null_if(var_x, 0) + (steady_x - var_x)
    covariance = _covariance(y, x, product, rows, limit) * real
    mean_y, mean_x = (mean(s.total, s.centre, count, s.bounds) for s in (y, x))
    return _Pair(rows, mean_y, mean_x, covariance, root, spread_x)


def _over(formula: Callable[[_Pair], Formula]) -> Callable[[Basis, Measure], Formula]:
    def measured(basis: Basis, measure: Measure) -> Formula:
        plug_in, shrunk = _pairs(basis, measure)
        return Estimate(formula(plug_in), formula(shrunk))

    return measured


for _word, _node, _of_pair in (
    ("corr", "Corr", lambda p: p.covariance / p.root),
    ("regr_slope", "RegrSlope", lambda p: p.covariance / p.spread_x),
    ("regr_intercept", "RegrIntercept", lambda p: p.mean_y - p.covariance / p.spread_x * p.mean_x),
    ("regr_r2", "RegrR2", lambda p: (p.covariance / p.root) * (p.covariance / p.root)),
):
    register(Aggregate(_word, {_node: Arguments.PAIR}, _over(_of_pair), shared=SharedPart.PAIR_SQUARES))

for _word, _node, _formula in (
    ("covar_pop", "CovarPop", _covaried(False)),
    ("covar_samp", "CovarSamp", _covaried(True)),
    ("regr_avgx", "RegrAvgx", _mean_of(1)),
    ("regr_avgy", "RegrAvgy", _mean_of(0)),
):
    register(Aggregate(_word, {_node: Arguments.PAIR}, _formula, shared=SharedPart.PRODUCTS))

register(
    Aggregate(
        "regr_count",
        {"RegrCount": Arguments.PAIR},
        lambda basis, measure: basis.count(None, _rows(measure)),
        Type.INTEGER,
        shared=SharedPart.COUNT,
        zero_without_rows=True,
        counts=True,
    )
)
