"""Discrete Laplace noise: P(Z = z) proportional to exp(-|z| s / t).

The exact zCDP cost of discrete Laplace noise: its divergence of order 1, for one entry and for a vector of entries.

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

For one step this is epsilon tanh(epsilon / 2), the most that any epsilon-DP mechanism costs (`privacy.loss`); for many steps it
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
from math import ceil, exp, expm1, floor, gcd, log, log1p, log2, sqrt

import numpy as np

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Floats, GridNoise, Noise, Sensitivity, SummedNoise
from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper, smallest_within, sqrt_lower
from dpsql.privacy.mechanisms.weighted_sums import LOGARITHMS
from dpsql.storage.records import dataclass, hashed_once

# --- divergences ------------------------------------------------------------------------------------------------------

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


# --- laplace ----------------------------------------------------------------------------------------------------------

MOST_SCALE = 1 << 40
"""Upper bound of t and of s (`samplers.MOST_LAPLACE_SCALE`); for a larger scale the noise grid is coarsened."""
MOST_SHIFT = 127

_FINEST = 1024
"""A sum whose standard deviation has more steps is tabled on a coarser grid, with the same variance."""
_REACH_DEVIATIONS, _REACH_SCALES = 14, 40

LOGARITHMS["laplace"] = lambda squares: np.asarray(-np.log1p(squares / 2))


@hashed_once
@dataclass(frozen=True)
class Laplace(GridNoise):
    """Noise of scale t/s on the row grid coarsened by 2**shift.

    If an entry moves by d, its value floored to multiples of 2**shift moves by at most ceil(d / 2**shift) steps, and the sum
    of these over at most l0 entries is at most (l1 + l0 (2**shift - 1)) / 2**shift. Noise of scale t/s then costs epsilon equal
    to this sum times s/t (CKS20, arXiv 2004.00010, section 4.1: the density ratio of neighbours is exp(d s / t)).
    """

    sensitivity: Sensitivity
    shift: int
    t: int
    s: int

    def __post_init__(self) -> None:
        if self.sensitivity.is_zero:
            raise ValueError("zero sensitivity has no scale; use Constant")
        if not (1 <= self.t <= MOST_SCALE and 1 <= self.s <= MOST_SCALE and 0 <= self.shift <= MOST_SHIFT):
            raise ValueError(f"not a Laplace scale: t={self.t}, s={self.s}, shift={self.shift}")

    mechanism = "laplace"
    normal = False

    @property
    def noise_scale(self) -> Fraction:
        return Fraction(self.t, self.s)

    @property
    def loss(self) -> PrivacyLoss:
        """The pure epsilon of all steps together, and the rho of their worst split over entries (`laplace`)."""
        rate = Fraction(self.s, self.t)
        steps, most = steps_moved(self.sensitivity, self.shift), entry_moved(self.sensitivity, self.shift)
        return PrivacyLoss(steps * rate, Fraction(0), vector_rho(rate, steps, most))

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed for the worst neighbour: every entry crosses a grid line with its first row-grid unit, and
        one takes all remaining units; for rho, entries move as far as one may while steps are left, and their divergence is the
        mean of the loss over the law."""
        entries = min(self.sensitivity.l0, self.sensitivity.l1)
        left = self.sensitivity.l1 - entries
        steps = entries + left // 2**self.shift
        most = 1 + (min(self.sensitivity.linf, self.sensitivity.l1) - 1) // 2**self.shift
        rate = 1 / self.noise_scale
        rho = recomputed_entry_rho(rate, most) * (steps // most) + recomputed_entry_rho(rate, steps % most)
        return PrivacyLoss(steps * rate, Fraction(0), rho)

    def upper_tail(self, k: int) -> Fraction:
        """Return P(Z >= k) = q**k / (1 + q) with q = exp(-s/t), rounded up; k >= 1."""
        rate = Fraction(self.s, self.t)
        return exp_upper(-k * rate) / (1 + exp_lower(-rate))

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with P(Z >= k) <= probability; noise-grid units."""
        return _tail_point(self, probability)

    def standard_deviation(self) -> float:
        """Return sqrt(2 q) / (1 - q) steps, in row-grid units."""
        rate = self.s / self.t
        return 2.0**self.shift * sqrt(2 * exp(-rate)) / -expm1(-rate)

    def expected_error(self) -> float:
        """Return 2 q / (1 - q**2) steps, in row-grid units: near the scale, but far below it if the scale is small."""
        rate = self.s / self.t
        return 2.0**self.shift * 2 * exp(-rate) / -expm1(-2 * rate)

    def summed(self, count: int, whole: bool) -> Noise:
        """Return the exact law of the sum, as a table; cells on a grid of integers are not rounded."""
        return self if count == 1 else SummedLaplace(self, count)

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the inverse of P(|Z| >= k) = 2 q**k / (1 + q), q = exp(-s/t): of the discrete law, not of its limit."""
        scale = float(self.noise_scale)
        tail = 2 * np.minimum(uniform, 1 - uniform)
        size = np.floor(np.maximum(scale * (log(2) - np.log(tail) - log1p(exp(-1 / scale))), 0))
        return np.asarray(np.sign(uniform - 0.5) * size)


@lru_cache(maxsize=1024, typed=True)
def noise_for(sensitivity: Sensitivity, epsilon: Fraction) -> Noise:
    """Return the least Laplace noise whose loss is at most `epsilon` (> 0, nats); `Constant` for zero sensitivity.

    t/s >= l1/epsilon, rounded up; the noise grid is coarsened while this scale is above 2**40. Raises ValueError for an epsilon
    that is not a positive Fraction, Refusal noise_too_large when so many entries move that no grid suffices.
    """
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise ValueError(f"epsilon must be a Fraction > 0, not {epsilon!r}")
    if sensitivity.is_zero:
        return Constant(sensitivity)
    for shift in range(MOST_SHIFT + 1):
        scale = steps_moved(sensitivity, shift) / epsilon
        if scale <= MOST_SCALE:
            return Laplace(sensitivity, shift, *_rounded_up(scale))
    raise refuse("noise_too_large", mechanism="laplace")


@lru_cache(maxsize=1024, typed=True)
def noise_for_rho(sensitivity: Sensitivity, rho: Fraction) -> Noise:
    """Return the least Laplace noise, up to a factor 1 + 2**-40, of rho at most `rho` (> 0, nats); else like `noise_for`."""
    if not isinstance(rho, Fraction) or rho <= 0:
        raise ValueError(f"rho must be a Fraction > 0, not {rho!r}")
    if sensitivity.is_zero:
        return Constant(sensitivity)
    coarse = floor(
        1 / safe_rate(rho, steps_moved(sensitivity, 0), entry_moved(sensitivity, 0))
    )  # below twice the least scale
    for shift in range(max(0, coarse.bit_length() - MOST_SCALE.bit_length() - 1), MOST_SHIFT + 1):
        scale = 1 / largest_rate(rho, steps_moved(sensitivity, shift), entry_moved(sensitivity, shift))
        if scale <= MOST_SCALE:
            return Laplace(sensitivity, shift, *_rounded_up(scale))
    raise refuse("noise_too_large", mechanism="laplace")


def entry_moved(sensitivity: Sensitivity, shift: int) -> int:
    """Return the most steps by which one entry moves on the row grid coarsened by 2**shift: ceil(linf / 2**shift)."""
    return min(steps_moved(sensitivity, shift), (min(sensitivity.linf, sensitivity.l1) + (1 << shift) - 1) >> shift)


def steps_moved(sensitivity: Sensitivity, shift: int) -> int:
    """Return the L1 sensitivity, in steps, on the row grid coarsened by 2**shift."""
    return min(sensitivity.l1, (sensitivity.l1 + sensitivity.l0 * ((1 << shift) - 1)) >> shift)


def _rounded_up(scale: Fraction) -> tuple[int, int]:
    """Return (t, s) with scale <= t/s and t, s <= 2**40; exact when numerator and denominator are within that bound."""
    t, s = scale.numerator, scale.denominator
    if max(t, s) > MOST_SCALE:
        s = min(MOST_SCALE, floor(MOST_SCALE / scale))
        t = ceil(scale * s)
    common = gcd(t, s)
    return t // common, s // common


@lru_cache(maxsize=1024)
def _tail_point(noise: Laplace, probability: Fraction) -> int:
    rate = noise.s / noise.t
    guess = (-log(max(float(probability), 1e-300)) - log1p(exp(-rate))) / rate
    return smallest_within(noise.upper_tail, probability, ceil(guess), 1)


@dataclass(frozen=True)
class SummedLaplace(SummedNoise):
    """A sum of discrete Laplace variables, whose probabilities are tabled from the power of the characteristic function."""

    mechanism = "summed"
    normal = False

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the Laplace law with the variance of the sum: its standard deviation over sqrt 2, in noise-grid units."""
        return Fraction(self.standard_deviation() / 2.0**self.shift / sqrt(2))

    def upper_tail(self, k: int) -> Fraction:
        step, cumulated = self._table()
        below = len(cumulated) // 2 + ceil(k / step) - 1
        return Fraction(float(1 - cumulated[below])) if below < len(cumulated) else Fraction(0)

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with `upper_tail(k)` <= probability, up to the step of the table."""
        step, cumulated = self._table()
        return max(1, (int(np.searchsorted(cumulated, 1 - float(probability))) - len(cumulated) // 2 + 1) * step)

    def standard_deviation(self) -> float:
        """Return sqrt(count) times the standard deviation of one summand, in row-grid units."""
        return sqrt(self.count) * self.summand.standard_deviation()

    def half_width(self, confidence: float) -> float:
        """Return h in row-grid units with P(|noise| <= h) >= confidence; one step larger if the table is coarse."""
        step, cumulated = self._table()
        middle = len(cumulated) // 2
        inside = cumulated[middle:] - np.concatenate([cumulated[:middle][::-1], [0.0]])[: len(cumulated) - middle]
        steps = int(np.searchsorted(inside, confidence)) + (1 if step > 1 else 0)
        return self._half_width(steps * step)

    def expected_error(self) -> float:
        """Return the sum over k of |k| P(Z = k), in row-grid units."""
        step, cumulated = self._table()
        mass = np.diff(cumulated, prepend=0.0)
        distance = np.abs(np.arange(len(cumulated)) - len(cumulated) // 2)
        return float(mass @ distance) * step * 2.0**self.shift

    def quantiles(self, uniform: Floats) -> Floats:
        step, cumulated = self._table()
        index = np.minimum(np.searchsorted(cumulated, uniform), len(cumulated) - 1)
        return np.asarray(step * (index - len(cumulated) // 2), dtype=np.float64)

    def _table(self) -> tuple[int, Floats]:
        return _laplace_table(float(self.summand.noise_scale), self.count)


@lru_cache(maxsize=64)
def _laplace_table(scale: float, count: int) -> tuple[int, Floats]:
    """Return (step, P(Z <= step * k) for k = -r..r) of a sum of `count` discrete Laplace variables of `scale` = t/s.

    One variable has q = exp(-1/scale), variance 2 q / (1 - q)**2 and characteristic function
    (1 - q)**2 / ((1 - q)**2 + 4 q sin(theta / 2)**2); the sum has a power of it, whose discrete Fourier transform is exact up to
    the probability beyond the table. On a coarser grid q is chosen for equal variance v: v (1 - q)**2 = 2 q.
    """
    q, gap = exp(-1 / scale), -expm1(-1 / scale)
    deviation = sqrt(2 * q) / gap * sqrt(count)
    step = max(1, floor(deviation / _FINEST))
    if step > 1:
        v = 2 * q / gap**2 / step**2
        q = 1 / (1 + 1 / v + sqrt(2 * v + 1) / v)
        gap = 1 - q
    reach = ceil((_REACH_DEVIATIONS * deviation + _REACH_SCALES * scale) / step) + _REACH_SCALES
    size = 2 ** ceil(log2(2 * reach + 2))
    angles = np.pi / size * np.arange(size // 2 + 1)
    powers = (gap**2 / (gap**2 + 4 * q * np.sin(angles) ** 2)) ** count
    mass = np.maximum(np.fft.irfft(powers, size), 0.0)
    centred = np.concatenate([mass[size // 2 + 1 :], mass[: size // 2]])
    cumulated = np.cumsum(centred)
    return step, np.asarray(cumulated / cumulated[-1])
