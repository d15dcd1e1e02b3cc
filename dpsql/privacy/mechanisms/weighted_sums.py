"""The law of a weighted sum of released cells with independent noise, which is the error after least squares (for error bars).

Nothing is drawn from this law for a release. It describes noise that was added and charged before, so it is post-processing
of public facts, and doubles are allowed here. Its tails come from its characteristic function (Gil-Pelaez 1951): that of a sum
of independent noise is the product of those of the parts. A discrete law is treated as the continuous law of equal variance,
because its grid is fine enough.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from statistics import NormalDist

import numpy as np

from dpsql.errors.exceptions import refuse
from dpsql.privacy.mechanisms.contract import Floats, Noise, Sensitivity, Uncharged
from dpsql.storage.records import dataclass, replace

_POINTS = (np.arange(2048, dtype=np.float64) + 0.5) * 0.06
"""Points at which a characteristic function is summed, for standard deviation 1: the sum has a period of 104 deviations."""
_MOST_DEVIATIONS = 40.0
_HEIGHTS = _MOST_DEVIATIONS * np.linspace(0, 1, 513) ** 2
"""Heights at which P(|sum| <= height) is tabled, in standard deviations."""
LEAST_DEVIATION = 2.0**-256
"""Least standard deviation of noise in a weighted sum, in row-grid units: the square of a much smaller one is 0 in doubles, by
which nothing can be divided."""

LOGARITHMS: dict[str, Callable[[Floats], Floats]] = {
    "gaussian": lambda squares: np.asarray(-squares / 2),
}
"""By mechanism: the logarithm of the characteristic function at t, from the variance times t squared. Rounding errors count as
normal. Every other mechanism whose weighted sums are known registers its function next to its law."""


@cache
def _sines() -> Floats:
    """Return the matrix (heights x points) that maps a characteristic function at `_POINTS` to P(|sum| <= height)."""
    return np.asarray(np.sin(np.outer(_HEIGHTS, _POINTS)) * (0.06 * 2 / math.pi) / _POINTS)


@dataclass(frozen=True)
class Cells:
    """`count` independent cells with `noise`, each with weight `weight`; `rounding`: the variance of rounding one of them, in
    squares of row-grid units."""

    noise: Noise
    weight: float
    count: int
    rounding: float = 0.0

    @property
    def variance(self) -> float:
        """The variance of the weighted sum of these cells, in squares of row-grid units."""
        return self.weight**2 * self.count * (self.noise.standard_deviation() ** 2 + self.rounding)


@dataclass(frozen=True)
class WeightedSum(Uncharged):
    """The law of the sum of all `parts`. Units as in `contract.Noise`, on the row grid; it is symmetric around 0."""

    parts: tuple[Cells, ...]
    calibrated_to: Sensitivity
    """The sensitivity of the measured cell whose error this is."""
    rounding: float = 0.0
    """The variance of rounding the sum itself, in squares of row-grid units."""

    mechanism = "weighted sum"
    shift = 0

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity to which the noise of the measured cell was calibrated."""
        return self.calibrated_to

    @cached_property
    def _deviation(self) -> float:
        return math.sqrt(sum(map(attrgetter("variance"), self.parts)) + self.rounding)

    @property
    def noise_scale(self) -> Fraction:
        """The standard deviation of the sum in row-grid units, as a fraction."""
        return Fraction(self._deviation)

    @property
    def normal(self) -> bool:
        return all(part.noise.normal for part in self.parts)

    def upper_tail(self, k: int) -> Fraction:
        """Return P(sum >= k), up to rounding errors of doubles."""
        if not self._deviation:
            return Fraction(0)
        return Fraction(max(0.0, (1 - _within(_characteristic(self._shape), k / self._deviation)) / 2))

    def tail_point(self, probability: Fraction) -> int:
        return max(1, math.ceil(self.half_width(1 - 2 * float(probability))))

    def standard_deviation(self) -> float:
        return self._deviation

    def half_width(self, confidence: float) -> float:
        """Return h in row-grid units with P(|sum| <= h) = confidence, by bisection."""
        if not self._deviation:
            return 0.0
        normal = NormalDist().inv_cdf((1 + confidence) / 2) if self.normal else None
        return self._deviation * (_half_width(self._shape, confidence) if normal is None else normal)

    def expected_error(self) -> float:
        """Return E|sum| in row-grid units: the integral of P(|sum| > h) over h >= 0."""
        if self.normal or not self._deviation:
            return math.sqrt(2 / math.pi) * self._deviation
        heights, inside = self._table
        return float(np.trapezoid(1 - inside, heights)) * self._deviation

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Return None: the law is not known, because cells after least squares are not independent."""
        return None

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the quantiles of the sum at the probabilities `uniform`, in row-grid units; they rise with `uniform`."""
        distance = np.abs(2 * np.asarray(uniform, dtype=np.float64) - 1)
        heights, inside = self._table
        magnitude = np.interp(distance, inside, heights) * self._deviation
        return np.asarray(np.sign(np.asarray(uniform) - 0.5) * magnitude)

    # --- tails --------------------------------------------------------------------------------------------------------

    @cached_property
    def _shape(self) -> _Shape:
        shares: Counter[tuple[str, float]] = Counter()
        rounded, variance = self.rounding, self._deviation**2
        for part in self.parts:
            if part.noise.mechanism not in LOGARITHMS:
                raise refuse("internal", what=f"a weighted sum of noise that is not known: {part.noise.mechanism}")
            share = (part.weight * part.noise.standard_deviation()) ** 2 / variance
            shares[part.noise.mechanism, float(f"{share:.8g}")] += part.count
            rounded += part.count * part.weight**2 * part.rounding
        shares["gaussian", float(f"{rounded / variance:.8g}")] += 1
        return tuple(sorted((mechanism, share, count) for (mechanism, share), count in shares.items()))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Increasing heights in standard deviations, and P(|sum| <= height); heights are denser where most of the mass is."""
        heights = _HEIGHTS
        if self.normal:
            inside = np.array([math.erf(height / math.sqrt(2)) for height in heights])
        else:
            inside = _sines() @ _characteristic(self._shape)
        return heights, np.maximum.accumulate(np.clip(inside, 0.0, 1.0))


def weighted(noise: Noise, weights: Sequence[float]) -> tuple[Noise, float]:
    """Return the law of a sum of independent draws of `noise` with `weights` > 0, as a law and a factor by which its errors are
    multiplied. A sum of normal noise has the law of one draw, times the Euclidean norm of the weights."""
    if noise.normal or len(weights) == 1:
        return noise, math.hypot(*weights)
    whole = noise if isinstance(noise, WeightedSum) else WeightedSum((Cells(noise, 1.0, 1),), noise.sensitivity)
    parts = tuple(replace(part, weight=part.weight * weight) for weight in weights for part in whole.parts)
    return WeightedSum(parts, noise.sensitivity, whole.rounding * math.hypot(*weights) ** 2), 1.0


_Shape = tuple[tuple[str, float, int], ...]
"""All that determines the tails of a sum in standard deviations: mechanism, share of one cell in the variance, and number of such
cells. The variance of rounding counts as a normal cell. The sums of a query, and of the same query at another price, mostly have
equal shapes, so their tails are computed once."""


@lru_cache(maxsize=256)
def _characteristic(shape: _Shape) -> Floats:
    """Return the characteristic function of a sum of standard deviation 1 at `_POINTS`."""
    squares = _POINTS**2
    return np.asarray(np.exp(sum(count * LOGARITHMS[mechanism](share * squares) for mechanism, share, count in shape)))


def _within(characteristic: Floats, deviations: float) -> float:
    """Return P(|sum| <= deviations) for a sum of standard deviation 1."""
    return float(np.sum(np.sin(deviations * _POINTS) / _POINTS * characteristic)) * 0.06 * 2 / math.pi


@lru_cache(maxsize=1024)
def _half_width(shape: _Shape, confidence: float) -> float:
    """Return h with P(|sum| <= h) = confidence for a sum of standard deviation 1, by bisection."""
    characteristic = _characteristic(shape)
    low, high = 0.0, _MOST_DEVIATIONS
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _within(characteristic, middle) >= confidence else (middle, high)
    return high
