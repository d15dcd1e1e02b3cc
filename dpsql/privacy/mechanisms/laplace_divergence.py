"""The exact zCDP cost of discrete Laplace noise: its divergence of order 1, for one entry and for a vector of entries.

**One entry.** Let P(z) be proportional to q**|z| with q = e**-r, and let Q be P moved by s >= 1 steps. Both directions cost
the same, by reflection. With lambda = alpha - 1 > 0 the Renyi divergence of order alpha is D = ln E_P[(P/Q)**lambda] / lambda.
The loss ln(P/Q) at z is r s for z <= 0, r (s - 2 z) in between and -r s for z >= s. With u = lambda + 1/2 the sum over z is

    E_P[(P/Q)**lambda] = G(u) / G(1/2),   G(u) = 2 cosh(u s r) + (1 - q) sum over z = 1 .. s - 1 of cosh(u (s - 2 z) r).

*ln G is concave in w = u**2.* G(u) = y**(-s/2) p(y) with y = e**(2 u r) and p(y) = 1 + (1 - q) (y + ... + y**(s-1)) + y**s, and
(1 - y) p(y) = (1 - q y) - y**s (y - q). As |1 - q y|**2 - |y - q|**2 = (1 - q**2) (1 - |y|**2), the first term is the larger one
inside the unit circle and the smaller one outside: every zero of p lies on the circle, and 1 is not a zero, as p(1) > 0. Zeros
e**(i phi), e**(-i phi) give a factor y + 1/y - 2 cos phi = 2 cosh(2 u r) - 2 cos phi of G, a zero at -1 a factor 2 cosh(u r).
Both are positive constants times products of factors 1 + c u**2 with c > 0 (Gradshteyn and Ryzhik, 1.431 and 1.438):

    cosh x - cos phi = (1 - cos phi) product over all integers n of (1 + x**2 / (phi + 2 pi n)**2).

So ln G is a sum of logarithms ln(1 + c w), which are concave. As lambda alpha = u**2 - 1/4,

    D / alpha  =  (ln G(u) - ln G(1/2)) / (u**2 - 1/4)  <=  d ln G / dw at w = 1/4  =  the limit for alpha -> 1,

and that limit is the Kullback-Leibler divergence, r (E|Z - s| - E|Z|). As |z - j| - |z - j + 1| is 1 for z < j, else -1, and
P(Z >= j) = q**j / (1 + q), with epsilon = r s

    rho(s) = r sum over j = 1 .. s of (1 - 2 q**j / (1 + q))
           = (epsilon + e**-epsilon - 1) + (1 - e**-epsilon) (1 - r / sinh r).

For one step this is epsilon tanh(epsilon / 2), the most that any epsilon-DP mechanism costs (`pure_to_zcdp`); for many steps it
tends to the first term, that of the continuous law (Harrison and Manurangsi 2026, arXiv 2510.25746): a fifth less at epsilon 1.

**A vector.** Entries have independent noise, so their divergences add up, order by order, and so do these bounds. The terms of
the sum over j are >= 0 and rise with j: rho(s) rises and is convex in s, rho(0) = 0. If entries move by at most m steps each and
by n steps together, moving a step from an entry that moves less to one that moves more does not lower the sum. The worst case is
therefore floor(n / m) entries that move by m and one that moves by the rest. As q**j / (1 + q) falls as r rises for j >= 1, the
cost rises with r, and falls with the scale 1 / r.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1

from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper, sqrt_lower

_GRID = 10**48
"""Costs are rounded up to multiples of 1 / `_GRID`, which hides errors in the 80th digit of either computation."""
_FARTHEST = 1000
_SMALL = 0.02
"""Bound below which differences of doubles are computed from their power series."""
_MARGINS = (Fraction(1, 1 << 42), Fraction(1, 1 << 36), Fraction(1, 1 << 24))
"""Relative distances by which a solution in doubles is moved to the safe side, tried until an exact check confirms one."""


def entry_rho(rate: Fraction, steps: int) -> Fraction:
    """Return rho, rounded up, of one entry that moves by `steps` >= 0 under noise of scale 1 / `rate` > 0 (noise-grid units)."""
    if steps == 0:
        return Fraction(0)
    epsilon = rate * steps
    q = exp_lower(-rate)
    straight = 2 * rate * q / (1 - q * q)  # r / sinh r, which rises with q
    return _up(epsilon - straight * (1 - exp_upper(-epsilon)))


def vector_rho(rate: Fraction, steps: int, most: int) -> Fraction:
    """Return rho, rounded up, of the worst split of `steps` over the entries of a vector, at most `most` >= 1 steps per entry."""
    full, rest = divmod(steps, most)
    return full * entry_rho(rate, most) + entry_rho(rate, rest)


def recomputed_entry_rho(rate: Fraction, steps: int) -> Fraction:
    """Return the rho of an entry, recomputed as the mean of the loss ln(P/Q) over the law, rounded up: `steps` times the two
    tails plus the values in between."""
    if steps == 0:
        return Fraction(0)
    q, far = _power(-rate), _power(-rate * steps)  # q**steps
    tails = steps * (1 - far) / (1 + q)
    inside = (q - far) / (1 - q)  # the sum of q**z over z = 1 .. steps - 1
    weighted = (q - steps * far + (steps - 1) * far * q) / (1 - q) ** 2  # the sum of z q**z
    return _up(rate * (tails + (1 - q) / (1 + q) * (steps * inside - 2 * weighted)))


@lru_cache(maxsize=1024)
def largest_rate(rho: Fraction, steps: int, most: int) -> Fraction:
    """Return the largest rate, up to a factor of 1 - 2**-40, with `vector_rho(rate, steps, most)` <= `rho` > 0; `steps` >= 1.

    The search uses doubles, and the result is checked in fractions. Outside the range of doubles it is `safe_rate`.
    """
    safe = safe_rate(rho, steps, most)
    solution = _solution(float(rho), float(safe), steps, most) if 1e-30 < rho < 10**15 else 0.0
    for margin in _MARGINS:
        rate = Fraction(solution) * (1 - margin)
        if rate > safe and vector_rho(rate, steps, most) <= rho:
            return rate
    return safe


def safe_rate(rho: Fraction, steps: int, most: int) -> Fraction:
    """Return a rate that costs at most `rho`, because an entry costs at most epsilon**2 / 2 and at most epsilon; it is more than
    half of the largest such rate."""
    full, rest = divmod(steps, most)
    return max(sqrt_lower(2 * rho / (full * most**2 + rest**2)), rho / steps) * (1 - Fraction(1, 1 << 64))


def _solution(rho: float, start: float, steps: int, most: int) -> float:
    """Return the rate that costs `rho`, by Newton's method in doubles from below, or the last rate after 100 steps."""
    full, rest = divmod(steps, most)
    rate = start
    for _ in range(100):
        cost, rise = (
            full * of_most + of_rest for of_most, of_rest in zip(_cost(rate, most), _cost(rate, rest), strict=True)
        )
        step = (rho - cost) / rise
        rate = max(rate + step, rate / 2)
        if abs(step) <= 1e-15 * rate:
            return rate
    return rate


def _cost(r: float, steps: int) -> tuple[float, float]:
    """Return `entry_rho` and its derivative with respect to the rate, in doubles without loss of digits."""
    x = r * steps
    fall = exp(-x)
    straight = 2 * r * exp(-r) / -expm1(-2 * r)  # r / sinh r
    bent, turn = 1 - straight, (1 + exp(-2 * r)) / -expm1(-2 * r) - 1 / r  # coth r - 1 / r
    if r < _SMALL:
        bent, turn = r * r / 6 * (1 - r * r * 7 / 60 * (1 - r * r * 31 / 294)), r / 3 * (1 - r * r / 15)
    continuous = x + expm1(-x)
    if x < _SMALL:
        continuous = x * x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7)))))
    cost = continuous - expm1(-x) * bent
    return cost, steps * -expm1(-x) + steps * fall * bent - expm1(-x) * straight * turn


def _power(exponent: Fraction) -> Fraction:
    """Return e**exponent at 150 digits, and 0 below e**-1000, which is far below 1 / `_GRID`."""
    if exponent < -_FARTHEST:
        return Fraction(0)
    context = Context(prec=150, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return Fraction(context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))))


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil(value * _GRID), _GRID)
