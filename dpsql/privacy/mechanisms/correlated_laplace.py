"""Multivariate Laplace noise: sqrt(W) G for a vector, one W from an exponential law for all of its entries, G normal in each.

**The law.** W is V + 1 steps of 1/64, P(V = v) = (1 - q) q**v with q = exp(-1/64), so that W >= 1/64. V is drawn once for
a vector (one term of a block over all of its groups), and is not released. Given V, the entries are independent discrete
Gaussians Z, P(Z = z) proportional to exp(-z**2 / (2 (V + 1) u**2)), u a whole number. So the deviation at W = 1 is 8 u, and that
of an entry is u / sqrt(1 - q) = 8.03 u. The entries are not correlated, yet not independent: all of them are large where W is.
The continuous law with W > 0 has the Laplace law in each entry (Kotz, Kozubowski and Podgorski 2001, chapter 5).

**What it costs.** Let x and x' be the sums of neighbours, |x - x'| at most l2 on the noise grid. Publish W as well, which only
adds to what is seen (leaving it out is post-processing). W has the same law on both sides. Given W, the Renyi divergence of
order a > 1 is at most a |x - x'|**2 / (2 (V + 1) u**2) (CKS20, arXiv 2004.00010, Theorem 14), so by V >= 0 at most a rho with

    rho = l2**2 / (2 u**2).

The divergence of order a of the pair (W, answer) is ln(E exp((a - 1) D_a(W))) / (a - 1), of which exp((a - 1) a rho) bounds all
that the mean is over: the vector is rho-zCDP. No smaller rho holds for the pair: as a grows, the part of V = 0, which is
(1 - q) exp((a - 1) a rho) where l2 is reached in whole steps, is nearly all of that mean. Nothing here depends on which entries
share a W, so that vectors compose like any others, and a time that tells W tells nothing that is not paid for. Under change_one
l2 is twice as large, as for every mechanism.

**A public covariance.** With `tie` p > 0 the noise of groups that follow each other in the order of the keys is correlated:
p / 64 for neighbours, (p / 64)**k at a distance of k (an autoregressive series). Let B x have the entries s x_1 and
64 x_i - p x_(i-1), s = sqrt(64**2 - p**2) rounded up. They are whole, and B lengthens no vector d by more than 64 + p:
|64 d - p d'| <= 64 |d| + p |d'|, where d' is d moved by one place, and s <= 64. What gets noise is y = B x + sqrt(W) G, so that

    rho = (64 + p)**2 l2**2 / (2 u**2).

All else is post-processing: the series r_1 = y_1 / s, r_i = (y_i + p r_(i-1)) / 64, each division rounded down to a multiple of
2**-16, and what is shown to whole numbers. Whole multiples of the divisor come through a rounded division unchanged, so that
r_i = x_i + e_i with e_1 = G_1 / s, e_i = (G_i + p e_(i-1)) / 64 rounded likewise: e is a function of the noise alone, in whole
numbers that are added to x. Their deviation is that of sqrt(W) G over sqrt(64**2 - p**2), so the noise is as large as without a
tie times sqrt((64 + p) / (64 - p)), 4.2 at p = 57: a unit in one group stands out from noise that moves slowly. No difference,
trend or other sum c x over the groups is more exact either: but for rounding, its noise has (64 + p) |B^-T c| times the deviation
of one entry without a tie, instead of |c| times, and |c| = |B^T B^-T c| is at most (64 + p) |B^-T c|.

**Why the least W is 1/64.** The continuous law, whose W comes near 0, has no rho, and no pure epsilon in two or more
dimensions: (epsilon, delta) = (1, 1e-6), integrated over W, takes 167 times the scale of Gaussian noise
(examples/correlated_noise.py). Cut at 1/n it takes sqrt(n) times, here 8. Delta as the mean over W of what each W has would allow
6.4 instead of 8 there; it is not taken, as it holds for one vector under one accountant, and rho for all of them.

**What it is not for.** Private keys (`pricing.budget_parts` refuses them): the error bars of groups that noise has admitted are
those of independent noise. Sums of stored cells, and least squares over several tables (`registry.can_be_weighted`), likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, erfc, exp, expm1, floor, log, pi, sqrt

import numpy as np

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian
from dpsql.privacy.mechanisms.contract import Constant, Floats, Noise, Sensitivity, scaled_half_width
from dpsql.privacy.mechanisms.gaussian import FINEST, MOST_SHIFT, square_moved
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt, smallest_within
from dpsql.privacy.mechanisms.weighted_sums import LOGARITHMS, Cells, WeightedSum

CORRELATED = "correlated_laplace"
"""Value of `dp.mechanism`."""
STEPS = 64
"""Steps of W in 1, and the inverse of the least W."""
TIES = 64
"""Correlations are multiples of the inverse of it."""
MOST_NARROW = 1 << 13
"""Up to this u, (V + 1) u**2 stays below 2**40 (`samplers.MOST_SIGMA`) for every V that 192 bits can mean (below 8,600)."""
MOST_LEAST_SIGMA = 1 << 20
"""Bound of u. Above `MOST_NARROW` it is a multiple of 2**`wide_bits`, and of at most `MOST_NARROW` times that."""

_FALL = exp(-1 / STEPS)
_LEAST_SHARE = -expm1(-1 / STEPS)
"""Of the variance of the noise, what the least W has: 1 - q."""
_MEAN_STEPS = 1 / (1 - _FALL)
"""E(V + 1)."""
_REACH = 45 * STEPS
"""Of V in sums of doubles: what is beyond has a chance of exp(-45)."""
_SLACK = 1 + 1e-9
"""More than all roundings of a sum of so many doubles, none below 0."""
_POINTS = 1 << 14
_FINEST_TABLE = 256
"""A deviation of more steps than this is tabled on a coarser grid; that moves no quantile by more than 1 / 512 of it."""


@dataclass(frozen=True)
class CorrelatedLaplace:
    """Multivariate Laplace noise on the row grid times 2**shift; `least_sigma` is u, the deviation of G where W is 1/64, and
    `tie` / 64 the correlation of groups that follow each other."""

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
        """The deviation at W = 1, in noise-grid units."""
        return 8 * Fraction(self.least_deviation)

    @property
    def least_deviation(self) -> float:
        """Return the deviation of an entry where W is 1/64, its least value, in noise-grid units."""
        return self.least_sigma / sqrt(TIES**2 - self.tie**2) if self.tie else float(self.least_sigma)

    @property
    def loss(self) -> PrivacyLoss:
        """rho of zCDP at the least W; no finite pure epsilon."""
        moved = square_moved(self.sensitivity, self.shift) * _stretch(self.tie) ** 2
        return PrivacyLoss.concentrated(Fraction(moved, 2 * self.least_sigma**2))

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss of Gaussian noise at the least W, by its own second road, times the square of the norm of B: by Schur's
        test at most the largest sum of absolute values in a row times that in a column."""
        plain = gaussian.Gaussian(self.sensitivity, self.shift, self.least_sigma).recomputed_loss()
        if self.tie == 0:
            return plain
        first = ceil_sqrt(TIES**2 - self.tie**2)
        rows, columns = ((first, 0), (TIES, self.tie)), ((first, self.tie), (TIES, self.tie), (TIES, 0))
        assert plain.rho is not None
        return PrivacyLoss.concentrated(plain.rho * max(map(sum, rows)) * max(map(sum, columns)))

    def upper_tail(self, k: int) -> Fraction:
        """Return an upper bound of P(noise >= k), k >= 1: the mean over W of that of the Gaussian, rounded up. For error bars
        alone."""
        root = (k - 1) / (self.least_deviation * sqrt(2))
        chances, inverse_roots, rest = _steps()
        tail = sum(chance * erfc(root * inverse) for chance, inverse in zip(chances, inverse_roots, strict=True))
        return Fraction(min(0.5, tail / 2 * _SLACK + rest))

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with `upper_tail(k)` <= probability."""
        if probability >= Fraction(1, 2):
            return 1
        deviations = self._sum([1.0]).half_width(1 - 2 * max(float(probability), 1e-15)) / self.standard_deviation()
        guess = ceil(deviations * self.least_deviation * sqrt(_MEAN_STEPS)) + 1
        return smallest_within(self.upper_tail, probability, guess, 1)

    def standard_deviation(self) -> float:
        """Return the standard deviation of an entry in row-grid units."""
        return float(self.least_deviation * sqrt(_MEAN_STEPS) * 2.0**self.shift)

    def half_width(self, confidence: float) -> float:
        """Return h in row-grid units with P(|noise| <= h) >= confidence; at most one noise-grid step above the smallest."""
        return scaled_half_width(self, confidence)

    def expected_error(self) -> float:
        """sqrt(2 / pi) E sqrt(V + 1) times the least deviation, in row-grid units."""
        return float(sqrt(2 / pi) * self.least_deviation * _mean_root() * 2.0**self.shift)

    def weighted_half_width(self, weights: Sequence[float], confidence: float) -> float:
        """Return the half width of a weighted sum of entries of different vectors, whose W are independent."""
        return self._sum(weights).half_width(confidence)

    def weighted_expected_error(self, weights: Sequence[float]) -> float:
        """Return the expected error of a weighted sum of entries of different vectors, whose W are independent."""
        return self._sum(weights).expected_error()

    def _sum(self, weights: Sequence[float]) -> WeightedSum:
        return WeightedSum(tuple(Cells(self, weight, 1) for weight in weights), self.sensitivity)

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Not known: sums of cells of one vector share its W, with each other as well."""
        return None

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the inverse of the cumulated law of one entry."""
        step, points, cumulated = _table(self.least_deviation)
        return np.asarray(step * points[np.minimum(np.searchsorted(cumulated, uniform), len(points) - 1)])

    def joint_quantiles(self, shared: Floats, uniform: Floats) -> Floats:
        """Return the noise of whole vectors at the quantiles `shared` of W (one for each vector, shape (n, 1)) and `uniform`
        of G (shape (n, cells)), for replicates."""
        roots = np.sqrt(1 + np.floor(np.log(shared) * -STEPS))
        standard = gaussian.Gaussian(self.sensitivity, 0, 1 << 12).quantiles(uniform) / (1 << 12)
        if self.tie:
            before = self.tie / TIES
            standard[:, 1:] *= sqrt(1 - before**2)
            for cell in range(1, standard.shape[1]):
                standard[:, cell] += before * standard[:, cell - 1]
        return np.asarray(np.rint(standard * roots * self.least_deviation))


def _logarithm(squares: Floats) -> Floats:
    """Return the logarithm of the characteristic function of a Gaussian of variance (V + 1) u**2 (`weighted_sums`): ln((1 - q)
    e**-a / (1 - q e**-a)) with a = (u t)**2 / 2."""
    a = squares * (_LEAST_SHARE / 2)
    return np.asarray(log(_LEAST_SHARE) - a - np.log1p((_LEAST_SHARE - 1) * np.exp(-a)))


LOGARITHMS[CORRELATED] = _logarithm


def with_correlation(correlation: Fraction) -> Callable[[Sensitivity, Fraction], Noise]:
    """Return the calibration by rho of noise with a `correlation` in [0, 1) of groups that follow each other, rounded down to a
    multiple of 1 / `TIES`."""
    return partial(noise_for, tie=floor(correlation * TIES))


@lru_cache(maxsize=1024, typed=True)
def noise_for(sensitivity: Sensitivity, rho: Fraction, tie: int = 0) -> Noise:
    """Return noise whose loss is at most `rho` (> 0) of zCDP, on the finest grid; `Constant` for zero sensitivity.

    `tie` / 64: the correlation of groups that follow each other. A grid that is coarser than that of the rows lets every touched
    entry move by up to a step more, so that a larger u is taken before such a grid is. Rounding u up costs 1 / 4,096 at most.
    Raises ValueError for a rho that is not a positive Fraction, Refusal noise_too_large when no grid helps.
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
    """Return the k by which such a u is more than `MOST_NARROW`: it is drawn as 2**k times one that is not
    (`noise.wide_gaussian`)."""
    return max(0, (least_sigma - 1).bit_length() - (MOST_NARROW - 1).bit_length())


def _stretch(tie: int) -> int:
    """Return the most that B lengthens a vector; B is the identity without a tie."""
    return TIES + tie if tie else 1


@lru_cache(maxsize=1)
def _steps() -> tuple[list[float], list[float], float]:
    """P(V = v) and 1 / sqrt(v + 1) for all v below `_REACH`, and the chance of all others."""
    v = np.arange(_REACH)
    return ((1 - _FALL) * _FALL**v).tolist(), (1 / np.sqrt(v + 1)).tolist(), exp(-_REACH / STEPS)


@lru_cache(maxsize=1)
def _mean_root() -> float:
    """Return E sqrt(V + 1)."""
    chances, inverse_roots, _ = _steps()
    return sum(chance / inverse for chance, inverse in zip(chances, inverse_roots, strict=True))


@lru_cache(maxsize=32)
def _table(least_deviation: float) -> tuple[float, Floats, Floats]:
    """Return a width in steps, places in widths, and the cumulated law at these, from its characteristic function (an inverse
    Fourier transform), which is the mean over V of those of the Gaussians: (1 - q) / (e**a - q), 2 a the square of t times the
    least deviation."""
    step = ceil(least_deviation * sqrt(_MEAN_STEPS) / _FINEST_TABLE)
    angles = 2 * pi * np.fft.fftfreq(_POINTS)
    periods = angles[:, None] + 2 * pi * np.arange(-1, 2)
    with np.errstate(over="ignore"):
        characteristic = ((1 - _FALL) / (np.exp((least_deviation * periods / step) ** 2 / 2) - _FALL)).sum(axis=1)
    mass = np.maximum(np.fft.fftshift(np.fft.ifft(characteristic).real), 0.0)
    points = np.arange(-_POINTS // 2, _POINTS // 2, dtype=np.float64)
    cumulated = np.cumsum(mass)
    return float(step), points, cumulated / cumulated[-1]
