"""Gaussian noise for running totals: sums along an ordered key, with noise that is small in every running total.

**The release.** x is the vector of integer sums of one term over the n values of the last key, in key order; there is one
vector for each combination of the other keys. T is the lower triangular Toeplitz matrix of `factors`: whole numbers
c_0 >= c_1 >= ... > 0, near 2**8 times the coefficients of (1 - t)**(-1/2). So T is nearly 2**8 times the square root of the
matrix of running totals (Fichtenberger, Henzinger and Upadhyay 2023, arXiv 2202.11205; Henzinger, Upadhyay and Upadhyay 2023,
arXiv 2211.05006). Publish

    y = T x + z, z independent discrete Gaussians with standard deviation sigma (a whole number).

Everything else is post-processing of y in whole numbers: r_i = (y_i - sum over j < i of c_(i-j) r_j) / 2**8, rounded. By
induction r_i = x_i + e_i with e_i = (z_i - sum over j < i of c_(i-j) e_j) / 2**8, rounded: y_i contains 2**8 x_i and
c_(i-j) x_j, and whole multiples of the divisor pass a rounded division unchanged. So e is a function of z alone (`unrolled`),
and the released numbers are x + e, as with any other noise. Rounding adds a number between -2**7 and 2**7 to z_i and nothing
else, so its effect on running totals is small as well; noise rounded after the division would add up.

**What it costs.** rho = M / (2 sigma**2) of zCDP (CKS20, arXiv 2004.00010, Theorem 14), where M is at least the square of the
L2 distance by which one unit moves T x. Let u be what one unit adds to x, and a_i = |u_i|. Then |T u|**2 is at most the sum of
a_i a_j G_ij over pairs of cells of one vector, G = T' T, because no entry of T is negative. There are three bounds, and M is the
least of them (`square_moved`):

- By Linf, L1 and L0. The sum is convex in a, so it is largest at a corner of {0 <= a_i <= Linf, sum of a_i <= L1, at most L0
  of the a_i not 0}: at most K = min(L0, ceil(L1 / Linf)) entries, none above Linf. For places s_1 < s_2 < ... of a vector the
  entries of G are no larger than for the first places: G_ij (i < j) is the sum of c_m c_(m+j-i) over m < n - j, which falls with
  j - i and with j, and s_b >= b. So k touched cells of one vector add at most f(k) = |T 1_k|**2, where 1_k is 1 in the first k
  cells, and pairs of entries in different vectors add nothing. However the K cells are split among vectors, k of them add at
  most k times the largest f(j) / j, j <= min(K, n), so all of them add at most K times that. (f is not convex: whole vectors
  are not the worst case.)
- L1**2 G_00: each column of T is at most as long as the first (triangle inequality).
- L2**2 times the largest sum of a row of G over L0 places of a vector (Gershgorin), whose distances are at least 1, 1, 2, 2, ...

The loss does not depend on which cells form the vectors, or on their order. Under change_one all norms are twice as large.

**Its errors.** e is nearly T**-1 z: normal, with standard deviation sigma / 2**8 times the root of the sum of squares of the
first coefficients of (1 - t)**(1/2), which is 1 in the first cell, 1.118 in the second and at most 1.129. The law of the last
cell is used for all cells: error bars of the first cell by itself are 13 % too wide, of the second 1 %. Running totals have the
error of the running sum of T**-1 z, whose coefficients are nearly those of (1 - t)**(-1/2) again. Error bars of expressions over
several cells come from replicates of whole vectors (`joint_quantiles`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, pi, sqrt
from statistics import NormalDist
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian
from dpsql.privacy.mechanisms.contract import Constant, Floats, GridNoise, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import FINEST, MOST_SHIFT, MOST_SIGMA
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt, normal_tail_upper, smallest_within
from dpsql.privacy.mechanisms.weighted_sums import LOGARITHMS
from dpsql.storage.records import dataclass

SQUARE_ROOT = "square_root"
BITS = 8
ONE = 1 << BITS
"""c_0. Errors of running totals are already within 0.1 % of those with exact coefficients; a larger c_0 would lower the
sensitivity up to which noise fits on the row grid."""
MOST_LENGTH = 4096
"""Upper bound of the length of a vector: its rounded divisions take length**2 / 2 steps."""
MOST_WIDE = 1 << 27
"""Upper bound of sigma. Above `MOST_SIGMA` sigma is a multiple of 2**`wide_bits`, which costs less than 1 / 2**19."""
_MORE_BITS = 52
_PART = 64
"""Number of cells whose sums over earlier cells are computed together."""
_REACH = 9

LOGARITHMS[SQUARE_ROOT] = LOGARITHMS["gaussian"]  # apart from rounding, the noise of a cell is a sum of normal numbers

Integers = npt.NDArray[np.int64]
Numbers = TypeVar("Numbers", Integers, Floats)


@dataclass(frozen=True)
class SquareRoot(GridNoise):
    """Noise for vectors of `length` sums on the row grid times 2**shift. `sigma` is the standard deviation of z, in units of
    1 / `ONE` of the noise grid."""

    sensitivity: Sensitivity
    shift: int
    sigma: int
    length: int

    def __post_init__(self) -> None:
        if self.sensitivity.is_zero:
            raise ValueError("zero sensitivity has no scale; use Constant")
        if not (ONE <= self.sigma <= MOST_WIDE and FINEST <= self.shift <= MOST_SHIFT):
            raise ValueError(f"not a scale of noise for running totals: sigma={self.sigma}, shift={self.shift}")
        if self.sigma % (1 << wide_bits(self.sigma)):
            raise ValueError(f"not a scale of noise for running totals: sigma={self.sigma}")
        if not 1 <= self.length <= MOST_LENGTH:
            raise ValueError(f"not a length of a vector: {self.length}")

    mechanism = SQUARE_ROOT
    normal = True

    @property
    def noise_scale(self) -> Fraction:
        """The standard deviation of the first cell before rounding, in noise-grid units."""
        return Fraction(self.sigma, ONE)

    @property
    def loss(self) -> PrivacyLoss:
        """The rho of zCDP; no pure epsilon is finite."""
        return PrivacyLoss.concentrated(
            Fraction(square_moved(self.sensitivity, self.shift, self.length), 2 * self.sigma**2)
        )

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss by the same three bounds, recomputed from the entries of G, distance by distance."""
        moved = _on_grid(self.sensitivity, self.shift)
        touched = min(moved.l0, ceil(Fraction(moved.l1, moved.linf)))
        sums = _sums_of_entries(min(touched, self.length), self.length)
        square = max(-(-touched * of_ones // ones) for ones, of_ones in enumerate(sums, 1))
        far = min(moved.l0, self.length) // 2
        row = _entry(0, 0, self.length) + 2 * sum(_entry(0, index, self.length) for index in range(1, far + 1))
        l1 = moved.l1**2 * _entry(0, 0, self.length)
        least = min(moved.linf**2 * square, l1, moved.l2_squared * row)
        return PrivacyLoss.concentrated(Fraction(least) / self.sigma**2 / 2)

    @property
    def _spread(self) -> float:
        """The standard deviation of the last cell before rounding, in noise-grid units."""
        growth = float(np.sum(inverse_factors(self.length) ** 2))
        return sqrt(growth * self._square - 1 / 12)

    @property
    def _square(self) -> float:
        """The variance of z / `ONE` plus that of rounding, in squares of noise-grid units."""
        return float(self.noise_scale) ** 2 + 1 / 12

    def upper_tail(self, k: int) -> Fraction:
        """Return a bound of P(noise >= k), k >= 1, in the last cell: unrounded at least k - 1/2. For error bars alone."""
        return normal_tail_upper(Fraction((k - 0.5) / self._spread))

    def tail_point(self, probability: Fraction) -> int:
        if probability >= Fraction(1, 2):
            return 1
        guess = ceil(-NormalDist().inv_cdf(max(float(probability), 1e-300)) * self._spread) + 1
        return smallest_within(self.upper_tail, probability, guess, 1)

    def standard_deviation(self) -> float:
        """Return the standard deviation of the last cell in row-grid units."""
        return sqrt(self._spread**2 + 1 / 12) * 2.0**self.shift

    def variances(self, weights: Floats) -> Floats:
        """Return the variances of weighted sums of cells, in squares of noise-grid units. `weights` has shape (sums, cells),
        cells in key order.

        e is 2**8 T**-1 applied to z / 2**8 plus the rounding errors of divisions, which are independent in all cells. So a
        variance is that of one such cell times the sum of squares of the weights of e multiplied by 2**8 T**-1 transposed.
        """
        sums, cells = weights.shape
        padded = np.zeros((sums, -(-cells // self.length) * self.length))
        padded[:, :cells] = weights
        inverse = inverse_factors(self.length)
        size = 2 * self.length
        vectors = padded.reshape(-1, self.length)[:, ::-1]
        spectrum = np.fft.rfft(vectors, size) * np.fft.rfft(inverse, size)
        independent = np.fft.irfft(spectrum, size)[:, : self.length]
        return np.asarray(np.sum(independent.reshape(sums, -1) ** 2, axis=1) * self._square)

    def running_deviation(self) -> float:
        """Return the square root of the mean variance of the running totals of a vector, in row-grid units."""
        totals = np.cumsum(inverse_factors(self.length))
        return sqrt(float(np.mean(np.cumsum(totals**2))) * self._square) * 2.0**self.shift

    def expected_error(self) -> float:
        return self.standard_deviation() * sqrt(2 / pi)

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the quantiles of the last cell at the probabilities `uniform`, in noise-grid units."""
        return np.asarray(np.rint(_standard(uniform) * self._spread))

    def joint_quantiles(self, shared: Floats, uniform: Floats) -> Floats:
        """Return replicates of the noise of all cells together (shape (draws, cells), cells in key order), with z at the
        probabilities `uniform`. `shared` is not used: here a vector draws no variable in common, as it does under other laws."""
        return unrolled(np.rint(_standard(uniform) * self.sigma), self.length)


@lru_cache(maxsize=1024, typed=True)
def noise_for(sensitivity: Sensitivity, rho: Fraction, length: int = 1, finest: int = FINEST) -> Noise:
    """Return the least noise for vectors of `length` cells whose loss is at most `rho` (> 0) of zCDP, but with a standard
    deviation of at least one step; `Constant` for zero sensitivity.

    `finest`: the noise grid is no finer than the row grid times 2**finest; with 0, sums of whole numbers get whole noise. On a
    noise grid coarser than the row grid every touched entry may move by up to one step more, so a larger sigma is tried first.
    Raises ValueError for a rho that is not a positive Fraction, Refusal noise_too_large when no grid suffices.
    """
    if not isinstance(rho, Fraction) or rho <= 0:
        raise ValueError(f"rho must be a Fraction > 0, not {rho!r}")
    if sensitivity.is_zero:
        return Constant(sensitivity)
    for most, coarsest in ((MOST_SIGMA, 0), (MOST_WIDE, MOST_SHIFT)):
        for shift in range(finest, coarsest + 1):
            sigma = max(ONE, ceil_sqrt(ceil(square_moved(sensitivity, shift, length) / (2 * rho))))
            if sigma <= most:
                wide = wide_bits(sigma)
                return SquareRoot(sensitivity, shift, -(-sigma >> wide) << wide, length)
    raise refuse("noise_too_large", mechanism=SQUARE_ROOT)


def wide_bits(sigma: int) -> int:
    """Return the bits k by which `sigma` exceeds `MOST_SIGMA`; for k > 0, z is a wide Gaussian (`noise.wide_gaussian`)."""
    return max(0, (sigma - 1).bit_length() - (MOST_SIGMA - 1).bit_length())


def square_moved(sensitivity: Sensitivity, shift: int, length: int) -> int:
    """Return M of the module's docstring: at least the square of the L2 distance between T x and T x' of neighbours."""
    moved = _on_grid(sensitivity, shift)
    touched = min(moved.l0, -(-moved.l1 // moved.linf))
    by_places = moved.linf**2 * _most_of_ones(touched, length)
    by_total = moved.l1**2 * _most_of_ones(1, length)
    return min(by_places, by_total, moved.l2_squared * _most_in_a_row(min(moved.l0, length), length))


def _on_grid(sensitivity: Sensitivity, shift: int) -> Sensitivity:
    """Return the sensitivity on the row grid times 2**shift. On a coarser grid exact sums are rounded down, so each entry that
    moves does so by at most its distance rounded up to a whole number."""
    l2_squared = gaussian.square_moved(sensitivity, shift)
    if shift <= 0:
        return Sensitivity(sensitivity.l0, sensitivity.l1 << -shift, l2_squared, sensitivity.linf << -shift)
    l1 = (sensitivity.l1 >> shift) + sensitivity.l0
    return Sensitivity(sensitivity.l0, l1, l2_squared, -(-sensitivity.linf >> shift))


@lru_cache(maxsize=16)
def factors(length: int) -> tuple[int, ...]:
    """Return c_m = 2**8 (2m choose m) / 4**m for m < `length`, rounded to whole numbers without using doubles."""
    numbers = []
    exact = ONE << _MORE_BITS
    for index in range(length):
        numbers.append((exact + (1 << _MORE_BITS - 1)) >> _MORE_BITS)
        exact = exact * (2 * index + 1) // (2 * index + 2)
    return tuple(numbers)


@lru_cache(maxsize=16)
def inverse_factors(length: int) -> Floats:
    """Return in doubles (for error bars) the first column of 2**8 T**-1, which is a Toeplitz matrix as well."""
    numbers = np.array(factors(length), dtype=np.float64) / ONE
    inverse = np.zeros(length)
    inverse[0] = 1.0
    for index in range(1, length):
        inverse[index] = -(numbers[1 : index + 1] @ inverse[index - 1 :: -1])
    return inverse


@lru_cache(maxsize=1024)
def _most_of_ones(count: int, length: int) -> int:
    """Return a bound of |T u|**2 for any u that is 1 in `count` cells of vectors of `length` and else 0: `count` times the
    largest f(j) / j, rounded up."""
    totals = np.cumsum(np.array(factors(length), dtype=np.int64))
    largest = Fraction(0)
    for ones in range(1, min(count, length) + 1):
        moved = totals.copy()
        moved[ones:] -= totals[: length - ones]
        largest = max(largest, Fraction(int(moved @ moved), ones))
    return ceil(count * largest)


@lru_cache(maxsize=1024)
def _most_in_a_row(count: int, length: int) -> int:
    """Return a bound of the sum of any row of G over `count` places of a vector."""
    numbers = np.array(factors(length), dtype=np.int64)
    total = int(numbers @ numbers)
    return total + 2 * sum(int(numbers[index:] @ numbers[: length - index]) for index in range(1, count // 2 + 1))


def _entry(row: int, column: int, length: int) -> int:
    numbers = factors(length)
    return sum(numbers[m] * numbers[m + column - row] for m in range(length - column))


@lru_cache(maxsize=64)
def _sums_of_entries(count: int, length: int) -> tuple[int, ...]:
    """Return the sums of G_ij over the first 1, 2, ..., `count` places, from what each adds, by products of factors."""
    numbers = np.array(factors(length), dtype=np.int64)
    added = np.zeros(count, dtype=np.int64)
    for distance in range(count):
        partial_sums = np.cumsum(numbers[: length - distance] * numbers[distance:])
        # G of the pair (j - distance, j) is the sum of the first n - j products; j runs from `distance` to count - 1
        of_pairs = partial_sums[length - count : length - distance][::-1]
        added[distance:] += of_pairs if distance == 0 else 2 * of_pairs
    return tuple(np.cumsum(added).tolist())


def unrolled(drawn: Numbers, length: int) -> Numbers:
    """Return the noise e of released sums from the noise z of y (`drawn`, whole numbers, shape (draws, cells)). The cells of a
    draw are vectors of `length`, one after the other; the last vector may be shorter.

    No intermediate number has more than 46 bits if drawn numbers have at most 33 (60 standard deviations), so the computation is
    also exact in doubles, which replicates use. The time does not depend on the values.
    """
    draws, cells = drawn.shape
    padded = np.zeros((draws, -(-cells // length) * length), dtype=drawn.dtype)
    padded[:, :cells] = drawn
    noise = padded.reshape(-1, length)
    numbers = np.array(factors(length), dtype=drawn.dtype)
    for start in range(0, length, _PART):
        stop = min(start + _PART, length)
        if start:
            distances = np.arange(start, stop)[None, :] - np.arange(start)[:, None]
            noise[:, start:stop] -= noise[:, :start] @ numbers[distances]
        for cell in range(start, stop):
            rest = noise[:, cell] - noise[:, start:cell] @ numbers[cell - start : 0 : -1]
            noise[:, cell] = (rest + ONE // 2) // ONE
    return noise.reshape(draws, -1)[:, :cells]


@lru_cache(maxsize=1)
def _normal_table() -> tuple[Floats, Floats]:
    """Return points and the standard normal distribution function at these points."""
    points = np.linspace(-_REACH, _REACH, 512 * _REACH + 1)
    return points, np.array([erfc(-point / sqrt(2)) / 2 for point in points])


def _standard(uniform: Floats) -> Floats:
    """Return the standard normal quantiles at the probabilities `uniform`."""
    points, cumulated = _normal_table()
    return np.asarray(np.interp(uniform, cumulated, points))
