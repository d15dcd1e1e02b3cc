"""Discrete Gaussian noise: P(Z = z) proportional to exp(-z**2 / (2 sigma**2))."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt, ldexp, pi, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Floats, GridNoise, Noise, Sensitivity, SummedNoise
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt, normal_tail_upper, smallest_within
from dpsql.storage.records import dataclass, hashed_once

MOST_SIGMA = 1 << 20
"""Upper bound of sigma (`samplers.MOST_SIGMA`)."""
FINEST = -40
"""The noise grid is at most 2**40 times finer than the row grid."""
MOST_SHIFT = 127

_FINEST_TABLE = 4096
"""A sigma of more steps is tabled on a coarser grid, which moves no quantile by more than sigma / 8192."""
_REACH = 9
_STARTS = 1 << 16


@hashed_once
@dataclass(frozen=True)
class Gaussian(GridNoise):
    """Noise of integer `sigma` on the row grid times 2**shift, which may be finer (shift < 0) or coarser.

    Independent noise on every entry costs rho = l2**2 / (2 sigma**2) of zCDP (CKS20, arXiv 2004.00010, Theorem 14).
    """

    sensitivity: Sensitivity
    shift: int
    sigma: int

    def __post_init__(self) -> None:
        if self.sensitivity.is_zero:
            raise ValueError("zero sensitivity has no scale; use Constant")
        if not (1 <= self.sigma <= MOST_SIGMA and FINEST <= self.shift <= MOST_SHIFT):
            raise ValueError(f"not a Gaussian scale: sigma={self.sigma}, shift={self.shift}")

    mechanism = "gaussian"
    normal = True

    @property
    def noise_scale(self) -> Fraction:
        return Fraction(self.sigma)

    @property
    def loss(self) -> PrivacyLoss:
        """The rho of zCDP; no pure epsilon is finite."""
        return PrivacyLoss.concentrated(Fraction(square_moved(self.sensitivity, self.shift), 2 * self.sigma**2))

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed from the largest integer n, found by bisection, that the triangle inequality allows as the
        square of a distance.

        n is allowed when sqrt(n) <= l2 / 2**shift + sqrt(l0), compared squared; without coarsening n = l2**2 exactly.
        """
        unit = Fraction(2) ** self.shift
        if self.shift <= 0:
            return PrivacyLoss.concentrated(self.sensitivity.l2_squared / (unit * self.sigma) ** 2 / 2)
        straight = self.sensitivity.l2_squared / unit**2 + self.sensitivity.l0
        crossed = 4 * self.sensitivity.l0 * self.sensitivity.l2_squared / unit**2
        low, high = 0, ceil(2 * straight) + 1  # (a + b)**2 <= 2 (a**2 + b**2)
        while high - low > 1:
            middle = (low + high) // 2
            allowed = middle <= straight or (middle - straight) ** 2 <= crossed
            low, high = (middle, high) if allowed else (low, middle)
        return PrivacyLoss.concentrated(Fraction(low) / self.sigma**2 / 2)

    def upper_tail(self, k: int) -> Fraction:
        """Return an upper bound of P(Z >= k), k >= 1: P(N(0, sigma**2) >= k - 1).

        The sum over z >= k has falling terms, so it is below the integral from k - 1; the normaliser (the sum over all integers)
        is at least sigma sqrt(2 pi) by Poisson summation.
        """
        return normal_tail_upper(Fraction(k - 1, self.sigma))

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with `upper_tail(k)` <= probability: at most one step above the exact quantile."""
        return _tail_point(self, probability)

    def standard_deviation(self) -> float:
        """Return sigma in row-grid units, which bounds the standard deviation from above (CKS20, section 3) and equals it up to
        exp(-2 pi**2 sigma**2)."""
        return ldexp(self.sigma, self.shift)

    def expected_error(self) -> float:
        """Return sqrt(2 / pi) sigma, in row-grid units."""
        return self.standard_deviation() * sqrt(2 / pi)

    def summed(self, count: int, whole: bool) -> Noise:
        """Return the Gaussian of the summed variance (see `SummedGaussian`)."""
        return self if count == 1 else SummedGaussian(self, count, whole)

    def quantiles(self, uniform: Floats) -> Floats:
        return _quantiles(float(self.sigma), uniform)


@lru_cache(maxsize=1024, typed=True)
def noise_for(sensitivity: Sensitivity, rho: Fraction) -> Noise:
    """Return the least Gaussian noise whose loss is at most `rho` (> 0) of zCDP; `Constant` for zero sensitivity.

    Use the finest noise grid on which sigma <= 2**20, so that rounding sigma up costs at most a millionth.
    Raises ValueError for a rho that is not a positive Fraction, Refusal noise_too_large when no grid suffices.
    """
    if not isinstance(rho, Fraction) or rho <= 0:
        raise ValueError(f"rho must be a Fraction > 0, not {rho!r}")
    if sensitivity.is_zero:
        return Constant(sensitivity)
    for shift in range(FINEST, MOST_SHIFT + 1):
        sigma = ceil_sqrt(ceil(square_moved(sensitivity, shift) / (2 * rho)))
        if sigma <= MOST_SIGMA:
            return Gaussian(sensitivity, shift, sigma)
    raise refuse("noise_too_large", mechanism="gaussian")


def square_moved(sensitivity: Sensitivity, shift: int) -> int:
    """Return the square of the L2 sensitivity on the row grid times 2**shift.

    Multiplying by 2**-shift is exact. Flooring to multiples of 2**shift moves every touched entry by less than one
    step more, so l2 / 2**shift + sqrt(l0) bounds the distance; its square is an integer, so it is rounded down.
    """
    if shift <= 0:
        return sensitivity.l2_squared << (-2 * shift)
    straight = sensitivity.l2_squared + (sensitivity.l0 << (2 * shift))
    crossed = isqrt((sensitivity.l2_squared * sensitivity.l0) << (2 * shift + 2))
    return (straight + crossed) >> (2 * shift)


@lru_cache(maxsize=1024)
def _tail_point(noise: Gaussian, probability: Fraction) -> int:
    if probability >= Fraction(1, 2):
        return 1
    guess = ceil(-NormalDist().inv_cdf(max(float(probability), 1e-300)) * noise.sigma) + 1
    return smallest_within(noise.upper_tail, probability, guess, 1)


def _quantiles(sigma: float, uniform: Floats) -> Floats:
    """Return the inverse of the distribution function of Z with P(Z = k) proportional to exp(-k**2 / (2 sigma**2))."""
    step, points, cumulated, starts = _table(sigma)
    # A search of the whole table misses the processor's caches at every step; mostly the first point is right, or the next.
    flat = uniform.ravel()
    index = starts[(flat * _STARTS).astype(np.int64)]
    beyond = np.flatnonzero(cumulated[index] < flat)
    index[beyond] += 1
    beyond = beyond[cumulated[index[beyond]] < flat[beyond]]
    index[beyond] = np.searchsorted(cumulated, flat[beyond])
    return np.asarray(step * points[index]).reshape(uniform.shape)


@lru_cache(maxsize=32)
def _table(sigma: float) -> tuple[float, Floats, Floats, npt.NDArray[np.int64]]:
    """Return the step of a table, its points, the probability of at most each point, and the first point at or above each of
    `_STARTS` equally spaced probabilities."""
    step = ceil(sigma / _FINEST_TABLE)
    reach = ceil(_REACH * sigma / step)
    points = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-0.5 * (points * step / sigma) ** 2)
    cumulated = np.cumsum(mass)
    cumulated /= cumulated[-1]
    return float(step), points, cumulated, np.searchsorted(cumulated, np.arange(_STARTS + 1) / _STARTS)


@dataclass(frozen=True)
class SummedGaussian(SummedNoise):
    """A sum of discrete Gaussians, treated as the Gaussian with the sum of their variances.

    sigma is at least 2**19 on the grid that pricing chooses, where the two laws differ by less than doubles can represent
    (Kairouz, Liu, Steinke 2021, arXiv 2102.06387: within 10 sum over k < n of exp(-2 pi**2 sigma**2 k / (k + 1))).
    """

    whole: bool

    mechanism = "gaussian"
    normal = True

    @property
    def noise_scale(self) -> Fraction:
        """The standard deviation of the sum in noise-grid units; rounding a cell to an integer adds 1/12 to the variance."""
        rounding = self.count / 12 * 4.0**-self.shift if self.whole else 0.0
        return Fraction(sqrt(self.count * float(self.summand.noise_scale) ** 2 + rounding))

    def upper_tail(self, k: int) -> Fraction:
        """Return P(N(0, sigma**2) >= k - 1/2), k and sigma in noise-grid units."""
        return Fraction(1 - NormalDist().cdf((k - 0.5) / float(self.noise_scale)))

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with `upper_tail(k)` <= probability, up to a step."""
        return max(1, ceil(NormalDist().inv_cdf(1 - float(probability)) * float(self.noise_scale) + 0.5))

    def standard_deviation(self) -> float:
        return float(self.noise_scale) * 2.0**self.shift

    def half_width(self, confidence: float) -> float:
        return self._half_width(NormalDist().inv_cdf((1 + confidence) / 2) * float(self.noise_scale) + 1)

    def expected_error(self) -> float:
        """Return sqrt(2 / pi) times the standard deviation, in row-grid units."""
        return self.standard_deviation() * sqrt(2 / pi)

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the quantiles of the discrete Gaussian with the standard deviation of the sum."""
        return _quantiles(float(self.noise_scale), uniform)
