"""The noise of a sum of released cells: the law of `count` independent draws of one noise, for error bars.

Nothing is drawn from these laws for a release. They describe noise that was added and paid for before, so they are
post-processing of public facts, and doubles are fine here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, log2, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace

Floats = npt.NDArray[np.float64]

_FINEST = 1024
"""A law whose deviation has more steps than this is tabled on a coarser grid of the same variance."""
_REACH_DEVIATIONS, _REACH_SCALES = 14, 40


def summed(noise: Noise, count: int, whole: bool) -> Noise | None:
    """The noise of the sum of `count` >= 1 cells that each got `noise`; None for a mechanism without a known law.

    `whole`: each cell was rounded to an integer before it was summed.
    """
    if not isinstance(noise, (Laplace, Gaussian, Constant)):
        return None
    if count == 1 or isinstance(noise, Constant):
        return noise
    return SummedLaplace(noise, count) if isinstance(noise, Laplace) else SummedGaussian(noise, count, whole)


@dataclass(frozen=True)
class _Summed:
    """What every sum of noise has in common. Units as in `mechanisms.Noise`."""

    one: Noise
    count: int

    @property
    def sensitivity(self) -> Sensitivity:
        """That of one cell's noise, which is what was calibrated."""
        return self.one.sensitivity

    @property
    def shift(self) -> int:
        """As for one cell."""
        return self.one.shift

    @property
    def loss(self) -> PrivacyLoss:
        """Nothing: the cells were charged when they were measured."""
        return PrivacyLoss.nothing()

    def recomputed_loss(self) -> PrivacyLoss:
        """Nothing."""
        return PrivacyLoss.nothing()

    def _half_width(self, steps: float) -> float:
        """`steps` of the noise grid in row-grid units, and what flooring each cell to a coarser grid may have lost."""
        rounding = self.count * ((1 << self.shift) - 1) if self.shift > 0 else 0
        return float(steps * 2.0**self.shift + rounding)


@dataclass(frozen=True)
class SummedGaussian(_Summed):
    """A sum of discrete Gaussians, taken as the Gaussian of the summed variance.

    sigma is at least 2**19 on the grid that pricing chooses, where the two differ by less than any double tells
    (Kairouz, Liu, Steinke 2021, arXiv 2102.06387: within 10 sum over k < n of exp(-2 pi**2 sigma**2 k / (k + 1))).
    """

    whole: bool

    mechanism = "gaussian"

    @property
    def noise_scale(self) -> Fraction:
        """Its deviation in noise-grid units; rounding a cell to an integer adds 1/12 to the variance."""
        rounding = self.count / 12 * 4.0**-self.shift if self.whole else 0.0
        return Fraction(sqrt(self.count * float(self.one.noise_scale) ** 2 + rounding))

    def upper_tail(self, k: int) -> Fraction:
        """P(N(0, sigma**2) >= k - 1/2), noise-grid units."""
        return Fraction(1 - NormalDist().cdf((k - 0.5) / float(self.noise_scale)))

    def tail_point(self, probability: Fraction) -> int:
        """The smallest k >= 1 with `upper_tail(k)` <= probability, up to a step."""
        return max(1, ceil(NormalDist().inv_cdf(1 - float(probability)) * float(self.noise_scale) + 0.5))

    def standard_deviation(self) -> float:
        """In row-grid units."""
        return float(self.noise_scale) * 2.0**self.shift

    def half_width(self, confidence: float) -> float:
        """h in row-grid units with P(|noise| <= h) >= confidence."""
        return self._half_width(NormalDist().inv_cdf((1 + confidence) / 2) * float(self.noise_scale) + 1)


@dataclass(frozen=True)
class SummedLaplace(_Summed):
    """A sum of discrete Laplaces, whose probabilities are tabled from the power of the characteristic function."""

    mechanism = "summed"

    @property
    def noise_scale(self) -> Fraction:
        """Its deviation over sqrt 2, the scale of the one Laplace with that variance, in noise-grid units."""
        return Fraction(self.standard_deviation() / 2.0**self.shift / sqrt(2))

    def upper_tail(self, k: int) -> Fraction:
        """P(Z >= k), noise-grid units."""
        step, cumulated = self._table()
        below = len(cumulated) // 2 + ceil(k / step) - 1
        return Fraction(float(1 - cumulated[below])) if below < len(cumulated) else Fraction(0)

    def tail_point(self, probability: Fraction) -> int:
        """The smallest k >= 1 with `upper_tail(k)` <= probability, up to the step of the table."""
        step, cumulated = self._table()
        return max(1, (int(np.searchsorted(cumulated, 1 - float(probability))) - len(cumulated) // 2 + 1) * step)

    def standard_deviation(self) -> float:
        """sqrt(count) times that of one, in row-grid units."""
        return sqrt(self.count) * self.one.standard_deviation()

    def half_width(self, confidence: float) -> float:
        """h in row-grid units with P(|noise| <= h) >= confidence; one step more where the table is coarse."""
        step, cumulated = self._table()
        middle = len(cumulated) // 2
        inside = cumulated[middle:] - np.concatenate([cumulated[:middle][::-1], [0.0]])[: len(cumulated) - middle]
        steps = int(np.searchsorted(inside, confidence)) + (1 if step > 1 else 0)
        return self._half_width(steps * step)

    def quantiles(self, uniform: Floats) -> Floats:
        """The noise at the quantiles `uniform`, in noise-grid units."""
        step, cumulated = self._table()
        at = np.minimum(np.searchsorted(cumulated, uniform), len(cumulated) - 1)
        return np.asarray(step * (at - len(cumulated) // 2), dtype=np.float64)

    def _table(self) -> tuple[int, Floats]:
        return _laplace_table(float(self.one.noise_scale), self.count)


@lru_cache(maxsize=64)
def _laplace_table(scale: float, count: int) -> tuple[int, Floats]:
    """(step, P(Z <= step * k) for k = -r..r) of a sum of `count` discrete Laplaces of `scale` = t/s.

    One has q = exp(-1/scale), variance 2 q / (1 - q)**2 and characteristic function (1 - q)**2 / ((1 - q)**2 +
    4 q sin(theta / 2)**2); the sum has its power. The discrete Fourier transform of that is exact up to what lies
    beyond the table. On a coarser grid q is that of equal variance: v (1 - q)**2 = 2 q.
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
