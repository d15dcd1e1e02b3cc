"""What is shown where a denominator is mostly noise: estimates that lean on the bounds, which are known without data.

AVG is a sum over a count. With n rows, and noise of standard deviation s in the count, the plain ratio is of no use where n
is not some s: the noisy count comes near 0, and the ratio goes to one of the bounds. So up to k = 1.5 s a denominator n
gives way to

    h(n) = (m^2 + k^2) / 2 k,   m = n kept in [0, k];   h(n) = n from k on,

which has a value and a slope without jumps, is never less than n, and k / 2 at n <= 0. The difference h(n) - n are *assumed
rows*, and what is said of them follows from the bounds alone: their mean is half-way between the middle of the bounds and
the value nearest to 0 (amounts with a generous upper bound lie near the lower one; [-a, a] keeps its middle), their standard
deviation an eighth of the width, and they have no correlation. Shrinkage toward what is known beforehand: Stein 1956; a ratio
kept from a small denominator: ridge regression (Hoerl and Kennard 1970), here with a ridge that ends where noise is small.

A mean uses the joint law of its sums, too. With values in [L, U], a = sum(x - L) and b = sum(U - x) are not negative, and
(a + b) / (U - L) is n; so are their noisy numbers made, which says more of n than the count alone.

A variance is a difference of two noisy numbers, of which most is noise long after the count is not: its distance from the
assumed one shrinks while it is below 1.5 s' (`nearer`), s' the deviation of its noise. And it is no more than (m - L)(U - m)
for the released mean m, which no values in [L, U] exceed (Bhatia and Davis 2000).

A covariance from products that share each row has no variances beside it that would keep it small. Those of most columns are
far smaller than bounds allow, so one within 2 to 5 deviations of its noise gives way (`beyond_noise`).

Where h(n) = n and nothing is cut, an estimate is the plug-in formula up to rounding. Below, its bias is toward what is assumed,
and its mean squared error is smaller but for values near the bound that is far from 0, and points on a line (docs/accuracy.md
has a table that `python -m benchmarks --estimates` writes). Counts and sums themselves are shown as released.

Post-processing of released numbers (Dwork and Roth 2014, proposition 2.1): no row is looked at, nothing more is charged.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpsql.plan.formulas import Deviation, Formula, formula, greatest, least, within
from dpsql.plan.intervals import Facts

Bound = Fraction | float | int
_DEVIATIONS = 1.5
"""Up to so many standard deviations of its noise a denominator gives way: k / s above. Of 1, 1.5, 2 and 3 the one with
which the mean squared error is in no case much more than that of the plain ratio."""
_WIDTHS = 8
"""Of one standard deviation of assumed rows in the width of the bounds: bounds hold four of them on both sides."""


_GROWTH, _MOST_DEVIATIONS = 13.0, (2.0, 5.0)
"""Of the reach of noise around covariances (`beyond_noise`), in its deviations."""


_LEAST = 1e-150
"""Of k, whose square is a double above 0: a count may be free of noise beside a sum that is not."""


def denominator(value: Formula, deviation: Formula) -> Formula:
    """h(value) for noise of the standard deviation `deviation`."""
    limit = greatest(deviation * _DEVIATIONS, _LEAST)
    inside = within(value, 0, limit)
    return greatest(value, (inside * inside + limit * limit) / (limit * 2.0))


def row_count(count: Formula, least: int) -> tuple[Formula, Formula]:
    """h(n) for a number of rows, no less than `least`, and the share of real rows in it, n / h(n) or 0."""
    rows = greatest(denominator(count, Deviation(count)), least)
    return rows, greatest(count, 0) / rows


def mean(total: Formula, centre: float | int, count: Formula, bounds: Facts) -> Formula:
    """Return the mean of `count` values in `bounds`, whose distances from `centre` add up to `total`."""
    return _mean_within(total, centre, count, bounds.lower, bounds.upper)


@lru_cache(maxsize=1024)
def _mean_within(total: Formula, centre: Bound, count: Formula, lowest: Bound, highest: Bound) -> Formula:
    """Return the formula of `mean`. Kept, since questions ask for the same means again: equal numbers of any type are the same
    fraction, and equal formulas the same computation, so equal arguments have equal results."""
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
    """Return the mean that is assumed of rows within [lower, upper] of which nothing is known."""
    middle, nearest = (Fraction(lower) + Fraction(upper)) / 2, max(Fraction(lower), min(Fraction(upper), Fraction(0)))
    return float((middle + nearest) / 2)


def assumed_variance(lower: Bound, upper: Bound) -> float:
    """Return the variance that is assumed of rows within [lower, upper] of which nothing is known."""
    return float((Fraction(upper) - Fraction(lower)) ** 2 / _WIDTHS**2)


def leaning(value: Formula, assumed: float, share: Formula) -> Formula:
    """Return `value` by the share of real rows, what is assumed by the rest."""
    return value * share + assumed * (formula(1) - share)


def nearer(value: Formula, assumed: float, noise: Formula) -> Formula:
    """Return `value`, drawn toward what is assumed while it is no more than k = 1.5 deviations of its `noise` away.

    The distance d becomes d a (2 k - a) / k^2 with a = min(|d|, k), which has a value and a slope without jumps.
    """
    reach = greatest(noise * _DEVIATIONS, _LEAST)
    distance = value - assumed
    size = least(greatest(distance, -distance), reach)
    return distance * (size / reach) * ((reach * 2.0 - size) / reach) + assumed


def assumed_covariance(first: Facts, second: Facts) -> float:
    """Return the largest covariance of rows of which nothing is known: the product of both assumed deviations."""
    width, other = (Fraction(bounds.upper) - Fraction(bounds.lower) for bounds in (first, second))
    return float(width * other / _WIDTHS**2)


def beyond_noise(value: Formula, limit: Formula, assumed: float, noise: Formula) -> Formula:
    """Return `value` within [-limit, limit], drawn toward 0 while it is no more than k deviations of its `noise` away from it.

    It becomes v s (2 - s) with s = min((v / (k noise))^2, 1), which has a value and a slope without jumps: an eighth of v at a
    quarter of the way, half of it behind the middle. k is 13 times the noise in units of what is `assumed` to be the most,
    within 2 and 5: the more the noise exceeds likely values, the less does a large one say. Of slopes and ends those with which
    the error is in no case more than that of a covariance beside variances that are measured apart (docs/accuracy.md).
    """
    reach = greatest(noise, _LEAST) * within(noise / assumed * _GROWTH, *_MOST_DEVIATIONS)
    part = within(value / reach, -1, 1)  # of the value before the limit: that is longer, and formulas are written out
    square = part * part
    return within(value, -limit, limit) * square * (square * -1.0 + 2.0)
