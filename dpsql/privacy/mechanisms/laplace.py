"""Discrete Laplace noise: P(Z = z) proportional to exp(-|z| s / t)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, gcd, log, log1p, sqrt

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity, scaled_half_width
from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper, smallest_within

MOST_SCALE = 1 << 40
"""Bound of t and of s (`samplers.MOST_LAPLACE_SCALE`): beyond it the noise grid is coarsened."""
MOST_SHIFT = 127


@dataclass(frozen=True)
class Laplace:
    """Noise of scale t/s on the row grid coarsened by 2**shift.

    Flooring x to multiples of 2**shift moves an entry that moved by d by at most ceil(d / 2**shift) steps, and the sum
    of these over at most l0 entries is at most (l1 + l0 (2**shift - 1)) / 2**shift. Noise of scale t/s then costs
    epsilon = that, times s/t (CKS20, arXiv 2004.00010, section 4.1: the density ratio of neighbours is exp(d s / t)).
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

    @property
    def noise_scale(self) -> Fraction:
        """b = t/s in noise-grid units."""
        return Fraction(self.t, self.s)

    @property
    def loss(self) -> PrivacyLoss:
        """Pure epsilon, and epsilon**2 / 2 of zCDP."""
        return PrivacyLoss.pure(steps_moved(self.sensitivity, self.shift) * Fraction(self.s, self.t))

    def recomputed_loss(self) -> PrivacyLoss:
        """The worst neighbour, built: every entry crosses a grid line with its first unit, one takes all the rest."""
        entries = min(self.sensitivity.l0, self.sensitivity.l1)
        left = self.sensitivity.l1 - entries
        steps = entries + left // 2**self.shift
        return PrivacyLoss.pure(Fraction(steps) / self.noise_scale)

    def upper_tail(self, k: int) -> Fraction:
        """P(Z >= k) = q**k / (1 + q) with q = exp(-s/t), rounded up; k >= 1."""
        rate = Fraction(self.s, self.t)
        return exp_upper(-k * rate) / (1 + exp_lower(-rate))

    def tail_point(self, probability: Fraction) -> int:
        """The smallest k >= 1 with P(Z >= k) <= probability; noise-grid units."""
        return _tail_point(self, probability)

    def standard_deviation(self) -> float:
        """sqrt(2 q) / (1 - q) steps, in row-grid units."""
        rate = self.s / self.t
        return 2.0**self.shift * sqrt(2 * exp(-rate)) / -expm1(-rate)

    def half_width(self, confidence: float) -> float:
        """h in row-grid units with P(|noise| <= h) >= confidence; the smallest on the noise grid."""
        return scaled_half_width(self, confidence)


@lru_cache(maxsize=1024, typed=True)
def noise_for(sensitivity: Sensitivity, epsilon: Fraction) -> Noise:
    """The least Laplace noise whose loss is at most `epsilon` (> 0, nats); `Constant` for zero sensitivity.

    t/s >= l1/epsilon, rounded up; the grid is coarsened while that is above 2**40. Raises ValueError for an epsilon
    that is not a positive Fraction, Refusal noise_too_large when so many entries move that no grid helps.
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


def steps_moved(sensitivity: Sensitivity, shift: int) -> int:
    """L1 sensitivity on the row grid coarsened by 2**shift."""
    return min(sensitivity.l1, (sensitivity.l1 + sensitivity.l0 * ((1 << shift) - 1)) >> shift)


def _rounded_up(scale: Fraction) -> tuple[int, int]:
    """(t, s) with scale <= t/s and t, s <= 2**40; exact when the fraction is that short."""
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
