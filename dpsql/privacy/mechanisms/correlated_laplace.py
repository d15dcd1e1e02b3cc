"""Multivariate Laplace noise sqrt(W) G for a vector: one W from an exponential law for all entries, and G normal in each entry.

**The law.** W = (V + 1) / 64 with P(V = v) = (1 - q) q**v, q = exp(-1/64), so W >= 1/64. V is drawn once per vector (one
term of a block over all of its groups) and is not released. Given V, the entries are independent discrete Gaussians Z with
P(Z = z) proportional to exp(-z**2 / (2 (V + 1) u**2)), u a whole number. So the standard deviation of an entry is 8 u given
W = 1, and u / sqrt(1 - q) = 8.03 u overall. The entries are uncorrelated but not independent: all of them are large where W is.
In the continuous law with W > 0 each entry has the Laplace law (Kotz, Kozubowski and Podgorski 2001, chapter 5).

**What it costs.** Let x and x' be the sums of neighbours, |x - x'| at most l2 on the noise grid. Suppose that W is published as
well, which only adds to what is seen (leaving it out is post-processing). W has the same law for both. Given W, the Renyi
divergence of order a > 1 is at most a |x - x'|**2 / (2 (V + 1) u**2) (CKS20, arXiv 2004.00010, Theorem 14); since V >= 0, it is
at most a rho with

    rho = l2**2 / (2 u**2).

The divergence of order a of the pair (W, answer) is ln(E exp((a - 1) D_a(W))) / (a - 1). The expectation is over values that
are all at most exp((a - 1) a rho), so the vector is rho-zCDP. No smaller rho holds for the pair: as a grows, nearly all of the
expectation comes from V = 0, which contributes (1 - q) exp((a - 1) a rho) where l2 is reached in whole steps. Nothing here
depends on which entries share a W, so vectors compose like any others, and a running time that reveals W reveals nothing that
is not paid for. Under change_one l2 is twice as large, as for every mechanism.

**A public covariance.** With `tie` p > 0 the noise of groups that follow each other in key order is correlated: p / 64 for
neighbours, (p / 64)**k at a distance of k (an autoregressive series). Let B x have the entries s x_1 and 64 x_i - p x_(i-1),
s = sqrt(64**2 - p**2) rounded up. These are whole numbers, and B lengthens no vector d by a factor of more than 64 + p:
|64 d - p d'| <= 64 |d| + p |d'|, where d' is d moved by one place, and s <= 64. Noise is added to B x: y = B x + sqrt(W) G, so

    rho = (64 + p)**2 l2**2 / (2 u**2).

Everything else is post-processing: the series r_1 = y_1 / s, r_i = (y_i + p r_(i-1)) / 64, where each division is rounded down to
a multiple of 2**-16 and released numbers to whole numbers. Whole multiples of the divisor pass a rounded division unchanged, so
r_i = x_i + e_i with e_1 = G_1 / s, e_i = (G_i + p e_(i-1)) / 64 rounded likewise: e is a function of the noise alone, in whole
numbers that are added to x. Their standard deviation is that of sqrt(W) G over sqrt(64**2 - p**2), so the noise is
sqrt((64 + p) / (64 - p)) times as large as without a tie, 4.2 times at p = 57: a unit in one group stands out from noise that
moves slowly. No difference, trend or other sum c x over the groups is more exact either: apart from rounding, its noise has
(64 + p) |B^-T c| times the standard deviation of one entry without a tie, instead of |c| times, and |c| = |B^T B^-T c| is at most
(64 + p) |B^-T c|.

**Why the least W is 1/64.** The continuous law, whose W comes near 0, has no rho, and no pure epsilon in two or more
dimensions: (epsilon, delta) = (1, 1e-6), integrated over W, takes 167 times the scale of Gaussian noise
(examples/correlated_noise.py). With W cut at 1/n it takes sqrt(n) times that scale, here 8. Taking delta as the mean over W of
the delta for each W would allow 6.4 instead of 8 there. This is not done, because it holds for one vector under one accountant,
whereas rho holds for all vectors and accountants.

**What it is not for.** Private keys (`pricing.budget_parts` refuses them): the error bars of groups admitted by noise assume
independent noise. The same holds for sums of stored cells and for least squares over several tables
(`registry.can_be_weighted`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, erfc, exp, expm1, floor, log, pi, sqrt

import numpy as np

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian
from dpsql.privacy.mechanisms.contract import Constant, Floats, GridNoise, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import FINEST, MOST_SHIFT, square_moved
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt, smallest_within
from dpsql.privacy.mechanisms.weighted_sums import LOGARITHMS, Cells, WeightedSum
from dpsql.storage.records import dataclass

CORRELATED = "correlated_laplace"
"""Value of `dp.mechanism`."""
STEPS = 64
"""W is a multiple of 1 / `STEPS`, which is also the least W."""
TIES = 64
"""Correlations are multiples of 1 / `TIES`."""
MOST_NARROW = 1 << 13
"""Up to this u, (V + 1) u**2 stays below 2**40 (`samplers.MOST_SIGMA`) for every V that 192 bits can yield (below 8,600)."""
MOST_LEAST_SIGMA = 1 << 20
"""Upper bound of u. Above `MOST_NARROW`, u is 2**`wide_bits` times a whole number that is at most `MOST_NARROW`."""

_FALL = exp(-1 / STEPS)
_LEAST_SHARE = -expm1(-1 / STEPS)
"""The share of the variance of the noise that is reached at the least W: 1 - q."""
_MEAN_STEPS = 1 / (1 - _FALL)
"""E(V + 1)."""
_REACH = 45 * STEPS
"""Bound of V in sums of doubles; larger V have a probability of exp(-45)."""
_SLACK = 1 + 1e-9
"""A factor that exceeds all rounding errors in a sum of `_REACH` doubles, none of them below 0."""
_POINTS = 1 << 14
_FINEST_TABLE = 256
"""A standard deviation of more steps is tabled on a coarser grid, which moves no quantile by more than 1 / 512 of it."""


@dataclass(frozen=True)
class CorrelatedLaplace(GridNoise):
    """Multivariate Laplace noise on the row grid times 2**shift. `least_sigma` is u, the standard deviation of sqrt(W) G where W
    is 1/64; `tie` / 64 is the correlation of groups that follow each other."""

    sensitivity: Sensitivity
    shift: int
    least_sigma: int
    tie: int = 0

    def __post_init__(self) -> None:
        if self.sensitivity.is_zero:
            raise ValueError("zero sensitivity has no scale; use Constant")
        if not (1 <= self.least_sigma <= MOST_LEAST_SIGMA and FINEST <= self.shift <= MOST_SHIFT):
            raise ValueError(f"not a scale of multivariate Laplace noise: {self.least_sigma}, shift={self.shift}")
        if self.least_sigma % (1 << wide_bits(self.least_sigma)):
            raise ValueError(f"not a scale of multivariate Laplace noise: {self.least_sigma}")
        if not 0 <= self.tie < TIES:
            raise ValueError(f"not a correlation: {self.tie} / {TIES}")

    mechanism = CORRELATED
    normal = False

    @property
    def noise_scale(self) -> Fraction:
        """The standard deviation of an entry where W is 1, in noise-grid units."""
        return 8 * Fraction(self.least_deviation)

    @property
    def least_deviation(self) -> float:
        """The standard deviation of an entry where W is 1/64, its least value, in noise-grid units."""
        return self.least_sigma / sqrt(TIES**2 - self.tie**2) if self.tie else float(self.least_sigma)

    @property
    def loss(self) -> PrivacyLoss:
        """The rho of zCDP at the least W; no pure epsilon is finite."""
        moved = square_moved(self.sensitivity, self.shift) * _stretch(self.tie) ** 2
        return PrivacyLoss.concentrated(Fraction(moved, 2 * self.least_sigma**2))

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `recomputed_loss` of Gaussian noise at the least W times the square of the norm of B: by Schur's test at most
        the largest sum of absolute values in a row times that in a column."""
        plain = gaussian.Gaussian(self.sensitivity, self.shift, self.least_sigma).recomputed_loss()
        if self.tie == 0:
            return plain
        first = ceil_sqrt(TIES**2 - self.tie**2)
        rows, columns = ((first, 0), (TIES, self.tie)), ((first, self.tie), (TIES, self.tie), (TIES, 0))
        assert plain.rho is not None
        return PrivacyLoss.concentrated(plain.rho * max(map(sum, rows)) * max(map(sum, columns)))

    def upper_tail(self, k: int) -> Fraction:
        """Return an upper bound of P(noise >= k), k >= 1: the mean over W of Gaussian tails, rounded up. For error bars alone."""
        root = (k - 1) / (self.least_deviation * sqrt(2))
        chances, inverse_roots, rest = _steps()
        tail = sum(chance * erfc(root * inverse) for chance, inverse in zip(chances, inverse_roots, strict=True))
        return Fraction(min(0.5, tail / 2 * _SLACK + rest))

    def tail_point(self, probability: Fraction) -> int:
        if probability >= Fraction(1, 2):
            return 1
        alone = WeightedSum((Cells(self, 1.0, 1),), self.sensitivity)
        deviations = alone.half_width(1 - 2 * max(float(probability), 1e-15)) / alone.standard_deviation()
        guess = ceil(deviations * self.least_deviation * sqrt(_MEAN_STEPS)) + 1
        return smallest_within(self.upper_tail, probability, guess, 1)

    def standard_deviation(self) -> float:
        return float(self.least_deviation * sqrt(_MEAN_STEPS) * 2.0**self.shift)

    def expected_error(self) -> float:
        """Return sqrt(2 / pi) E sqrt(V + 1) times `least_deviation`, in row-grid units."""
        return float(sqrt(2 / pi) * self.least_deviation * _mean_root() * 2.0**self.shift)

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the quantiles of one entry at the probabilities `uniform`, in noise-grid units."""
        step, points, cumulated = _table(self.least_deviation)
        return np.asarray(step * points[np.minimum(np.searchsorted(cumulated, uniform), len(points) - 1)])

    def joint_quantiles(self, shared: Floats, uniform: Floats) -> Floats:
        """Return replicates of the noise of whole vectors, W at the probabilities `shared` (one per vector, shape (n, 1)) and
        G at the probabilities `uniform` (shape (n, cells))."""
        roots = np.sqrt(1 + np.floor(np.log(shared) * -STEPS))
        standard = gaussian.Gaussian(self.sensitivity, 0, 1 << 12).quantiles(uniform) / (1 << 12)
        if self.tie:
            before = self.tie / TIES
            standard[:, 1:] *= sqrt(1 - before**2)
            for cell in range(1, standard.shape[1]):
                standard[:, cell] += before * standard[:, cell - 1]
        return np.asarray(np.rint(standard * roots * self.least_deviation))


def _logarithm(squares: Floats) -> Floats:
    """Return the logarithm of the characteristic function of a Gaussian with random variance (V + 1) u**2 (`weighted_sums`):
    ln((1 - q) e**-a / (1 - q e**-a)) with a = (u t)**2 / 2."""
    a = squares * (_LEAST_SHARE / 2)
    return np.asarray(log(_LEAST_SHARE) - a - np.log1p((_LEAST_SHARE - 1) * np.exp(-a)))


LOGARITHMS[CORRELATED] = _logarithm


def with_correlation(correlation: Fraction) -> Callable[[Sensitivity, Fraction], Noise]:
    """Return a function that calibrates noise to rho, with a `correlation` in [0, 1) between groups that follow each other,
    rounded down to a multiple of 1 / `TIES`."""
    return partial(noise_for, tie=floor(correlation * TIES))


@lru_cache(maxsize=1024, typed=True)
def noise_for(sensitivity: Sensitivity, rho: Fraction, tie: int = 0) -> Noise:
    """Return noise whose loss is at most `rho` (> 0) of zCDP, on the finest possible grid; `Constant` for zero sensitivity.

    `tie` / 64: the correlation of groups that follow each other. On a noise grid coarser than the row grid every touched entry
    may move by up to one step more, so a larger u is tried before such a grid. Rounding u up costs at most 1 / 4,096.
    Raises ValueError for a rho that is not a positive Fraction, Refusal noise_too_large when no grid suffices.
    """
    if not isinstance(rho, Fraction) or rho <= 0:
        raise ValueError(f"rho must be a Fraction > 0, not {rho!r}")
    if sensitivity.is_zero:
        return Constant(sensitivity)
    for most, coarsest in ((MOST_NARROW, 0), (MOST_LEAST_SIGMA, MOST_SHIFT)):
        for shift in range(FINEST, coarsest + 1):
            least_sigma = ceil_sqrt(ceil(square_moved(sensitivity, shift) * _stretch(tie) ** 2 / (2 * rho)))
            if least_sigma <= most:
                wide = wide_bits(least_sigma)
                return CorrelatedLaplace(sensitivity, shift, -(-least_sigma >> wide) << wide, tie)
    smaller = f"SET dp.mechanism = 'auto'{' or dp.correlation = 0' if tie else ''}, whose noise is smaller"
    other_ways = "ask for a larger epsilon, or let each privacy unit touch fewer groups (max_groups)"
    raise refuse("noise_too_large", mechanism=CORRELATED, hint=f"{smaller}, {other_ways}")


def wide_bits(least_sigma: int) -> int:
    """Return the number of bits k by which u exceeds `MOST_NARROW`; for k > 0 the noise is drawn with 2**k times a u that does
    not exceed it (`noise.wide_gaussian`)."""
    return max(0, (least_sigma - 1).bit_length() - (MOST_NARROW - 1).bit_length())


def _stretch(tie: int) -> int:
    """Return the largest factor by which B lengthens a vector; without a tie B is the identity."""
    return TIES + tie if tie else 1


@lru_cache(maxsize=1)
def _steps() -> tuple[list[float], list[float], float]:
    """Return P(V = v) and 1 / sqrt(v + 1) for all v below `_REACH`, and the probability of all larger v."""
    v = np.arange(_REACH)
    return ((1 - _FALL) * _FALL**v).tolist(), (1 / np.sqrt(v + 1)).tolist(), exp(-_REACH / STEPS)


@lru_cache(maxsize=1)
def _mean_root() -> float:
    chances, inverse_roots, _ = _steps()
    return sum(chance / inverse for chance, inverse in zip(chances, inverse_roots, strict=True))


@lru_cache(maxsize=32)
def _table(least_deviation: float) -> tuple[float, Floats, Floats]:
    """Return a width in noise-grid steps, points in widths, and the distribution function of one entry at these points. It is the
    inverse Fourier transform of the characteristic function, which is the mean over V of those of the Gaussians:
    (1 - q) / (e**a - q), where 2 a is the square of t times the least deviation."""
    step = ceil(least_deviation * sqrt(_MEAN_STEPS) / _FINEST_TABLE)
    angles = 2 * pi * np.fft.fftfreq(_POINTS)
    periods = angles[:, None] + 2 * pi * np.arange(-1, 2)
    with np.errstate(over="ignore"):
        characteristic = ((1 - _FALL) / (np.exp((least_deviation * periods / step) ** 2 / 2) - _FALL)).sum(axis=1)
    mass = np.maximum(np.fft.fftshift(np.fft.ifft(characteristic).real), 0.0)
    points = np.arange(-_POINTS // 2, _POINTS // 2, dtype=np.float64)
    cumulated = np.cumsum(mass)
    return float(step), points, cumulated / cumulated[-1]
