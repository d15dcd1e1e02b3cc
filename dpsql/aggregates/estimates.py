"""Estimates shown where a denominator is mostly noise: they are shrunk toward values that follow from the public bounds.

AVG is a sum over a count. With n rows, and noise of standard deviation s in the count, the plain ratio is useless unless n is
several times s: the noisy count comes near 0, and the ratio goes to one of the bounds. So up to k = 1.5 s a denominator n
is replaced by

    h(n) = (m^2 + k^2) / 2 k,   m = n kept in [0, k];   h(n) = n from k on,

which is continuous with a continuous slope, never less than n, and k / 2 at n <= 0. The difference h(n) - n counts *assumed
rows*, whose distribution follows from the bounds alone: their mean is half-way between the midpoint of the bounds and the
value in the bounds nearest to 0 (amounts with a generous upper bound lie near the lower one; for [-a, a] it is the midpoint),
their standard deviation is an eighth of the width, and they have no correlation. Shrinkage toward prior knowledge: Stein 1956;
a ratio with a denominator kept from being small: ridge regression (Hoerl and Kennard 1970), with a ridge that ends where noise
is small.

A mean also uses the joint distribution of its sums. With values in [L, U], a = sum(x - L) and b = sum(U - x) are not negative,
and (a + b) / (U - L) is n. The noisy numbers are made to satisfy the same, which gives more information on n than the count.

A variance is a difference of two noisy numbers. It is mostly noise even at counts that are well above their noise, so its
distance from the assumed variance is shrunk while it is below 1.5 s' (`nearer`), with s' the deviation of its noise. It is also
at most (m - L)(U - m) for the released mean m, which no values in [L, U] exceed (Bhatia and Davis 2000).

A covariance from products that share each row has no measured variances that would keep it small. The covariances of most
columns are far smaller than the bounds allow, so one within 2 to 5 deviations of its noise is shrunk (`beyond_noise`).

Where h(n) = n and nothing is cut, an estimate is the plug-in formula up to rounding. Below, its bias is toward the assumed
values, and its mean squared error is smaller, except for values near the bound far from 0 and for points on a line
(docs/evidence/accuracy.md has a table that `python -m benchmarks --estimates` writes). Counts and sums are shown as released.

This is post-processing of released numbers (Dwork and Roth 2014, proposition 2.1): no row is read, nothing more is charged.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpsql.plan.formulas import Deviation, Formula, formula, greatest, least, within
from dpsql.plan.intervals import Facts

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
    """Return the assumed mean of unknown rows within [lower, upper]."""
    middle, nearest = (Fraction(lower) + Fraction(upper)) / 2, max(Fraction(lower), min(Fraction(upper), Fraction(0)))
    return float((middle + nearest) / 2)


def assumed_variance(lower: Bound, upper: Bound) -> float:
    """Return the assumed variance of unknown rows within [lower, upper]."""
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
