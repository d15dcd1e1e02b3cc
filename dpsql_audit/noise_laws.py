"""The audit's part of every mechanism: laws and losses of noise, written from the definitions and from nothing else.

`dpsql.privacy.mechanisms` says what noise costs and how it is distributed; the audit does not take its word. A law that is not
registered here is refused, never passed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.privacy.mechanisms.contract import Constant, Noise
from dpsql.privacy.mechanisms.correlated_laplace import CorrelatedLaplace
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.square_root import SquareRoot

Floats = NDArray[np.float64]
Part = TypeVar("Part")


@dataclass(frozen=True)
class AuditedLaw:
    """One law of noise, in steps of its grid.

    `loss`: (epsilon, rho) between two vectors of which entries are so many steps apart; epsilon is 0 where there is none.
    `upper_tail`: P(noise >= k). `distribution`: P(noise <= point) for whole numbers. `repeat`: P(two draws are equal) at most.
    `log_ratio`: ln(P(answer) / P(answer - moved)), the law around 0 beside the law around `moved`. `vector_log_ratio`: the same
    of whole vectors, one a row, where their entries are not independent (None: they are). `of_cell`: the law of one entry of a
    vector by its place, where entries have different ones.
    """

    loss: Callable[[Any, Sequence[int]], tuple[Fraction, Fraction]]
    upper_tail: Callable[[Any, int], float]
    distribution: Callable[[Any, Floats], Floats]
    repeat: Callable[[Any], float]
    log_ratio: Callable[[Any, Floats, Floats], Floats]
    vector_log_ratio: Callable[[Any, Floats, Floats], Floats] | None = None
    of_cell: Callable[[Any, int], Noise] = lambda noise, cell: noise


def law_of(noise: Noise) -> AuditedLaw | None:
    """Return the law of `noise`, None for a constant. Raises InternalError for a law that is not registered."""
    return None if isinstance(noise, Constant) else audited(LAWS, noise, f"noise of a law ({noise.mechanism})")


def audited(table: Mapping[type[Any], Part], law: object, kind: str) -> Part:
    """Return the audit's part of a law or rule. Raises InternalError where none is registered."""
    if type(law) not in table:
        raise refuse("internal", what=f"{kind} that is not audited")
    return table[type(law)]


def _laplace_loss(noise: Laplace, steps: Sequence[int]) -> tuple[Fraction, Fraction]:
    """rho: for each entry the mean of the loss, its divergence of order 1, which no zCDP of it can be below."""
    rate = Fraction(noise.s, noise.t)
    return sum(steps) * rate, sum((laplace_rho(rate, step) for step in steps), Fraction(0))


@lru_cache(maxsize=4096)
def laplace_rho(rate: Fraction, steps: int) -> Fraction:
    """Return rate (E|Z - steps| - E|Z|), rounded down. Farther away by one step than from j - 1 is Z < j, nearer Z >= j, with a
    chance of q**j / (1 + q), so that the difference is steps - 2 (q + ... + q**steps) / (1 + q)."""
    with localcontext() as context:
        context.prec = 80
        r = Decimal(rate.numerator) / Decimal(rate.denominator)
        q, far = (-r).exp(), (-r * steps).exp()
        return Fraction(r * (steps - 2 * q * (1 - far) / (1 - q * q))) * (1 - Fraction(1, 10**30))


@lru_cache(maxsize=4096)
def pure_rho(epsilon: Fraction) -> Fraction:
    """epsilon tanh(epsilon / 2), rounded down."""
    with localcontext() as context:
        context.prec = 80
        x = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        fall = (-x).exp()
        return Fraction(x * (1 - fall) / (1 + fall)) * (1 - Fraction(1, 10**30))


def _laplace_tail(noise: Laplace, k: int) -> float:
    if k <= 0:
        return 1 - _laplace_tail(noise, 1 - k)
    rate = noise.s / noise.t
    return math.exp(-k * rate) / (1 + math.exp(-rate))


def _laplace_distribution(noise: Laplace, points: Floats) -> Floats:
    rate = float(Fraction(noise.s, noise.t))
    tail = np.exp(-rate * (np.abs(points + 0.5) + 0.5)) / (1 + math.exp(-rate))
    return np.where(points >= 0, 1 - tail, tail)


def _gaussian_loss(noise: Gaussian, steps: Sequence[int]) -> tuple[Fraction, Fraction]:
    return Fraction(0), Fraction(sum(step * step for step in steps), 2 * noise.sigma**2)


def _gaussian_tail(noise: Gaussian, k: int) -> float:
    return math.erfc((k - 0.5) / (noise.sigma * math.sqrt(2))) / 2 * (1 - 1e-3)


def _gaussian_distribution(noise: Gaussian, points: Floats) -> Floats:
    sigma = float(noise.sigma)
    reach = int(12 * sigma) + 12
    if reach > 10_000_000:  # steps are so small that the sum is the integral, to 1e-13
        erf = np.vectorize(math.erf)
        result: Floats = (1 + erf((points + 0.5) / (sigma * math.sqrt(2)))) / 2
        return result
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    total = np.cumsum(np.exp(-(support**2) / (2 * sigma * sigma)))
    index = np.clip(points.astype(np.int64) + reach, -1, 2 * reach)
    return np.where(index < 0, 0.0, (total / total[-1])[np.maximum(index, 0)])


_PARTS = 64
"""Steps of W in 1, of multivariate Laplace noise: W = j / 64 has a chance of e**(-(j - 1) / 64) (1 - e**(-1 / 64))."""


@lru_cache(maxsize=1)
def _parts_of_w() -> tuple[Floats, Floats]:
    """j and the logarithm of its chance; those left out have a chance of e**-45 together."""
    j = np.arange(1, 45 * _PARTS, dtype=np.float64)
    return j, math.log(-math.expm1(-1 / _PARTS)) - (j - 1) / _PARTS


def _correlated_loss(noise: CorrelatedLaplace, steps: Sequence[int]) -> tuple[Fraction, Fraction]:
    """rho: of the Gaussian at the least W, which divergences divided by their order tend to."""
    square = sum(step * step for step in steps) * ((64 + noise.tie) ** 2 if noise.tie else 1)
    return Fraction(0), Fraction(square, 2 * noise.least_sigma**2)


def _correlated_tail(noise: CorrelatedLaplace, k: int) -> float:
    j, chances = _parts_of_w()
    depths = ((k - 0.5) / (noise.least_deviation * np.sqrt(2 * j))).tolist()
    return sum(math.exp(chance) * math.erfc(x) / 2 for chance, x in zip(chances.tolist(), depths, strict=True)) * (
        1 - 1e-3
    )


def _correlated_distribution(noise: CorrelatedLaplace, points: Floats) -> Floats:
    """Return P(noise <= point): sums of the probabilities from 0 on; of a wide law the integral, interpolated between some
    points."""
    j, chances = _parts_of_w()
    weights, most = np.exp(chances) / np.sqrt(2 * math.pi * j) / noise.least_deviation, int(np.abs(points).max())
    if noise.least_deviation < 64 and most <= 4096:
        masses = np.exp(-(np.arange(most + 1.0)[:, None] ** 2) / (2 * noise.least_deviation**2 * j)) @ weights
        inside = np.cumsum(masses) - masses[0] / 2
        half_mass = inside[(np.abs(points) - (points < 0)).astype(np.int64)]
        return np.asarray(np.where(points >= 0, 0.5 + half_mass, 0.5 - half_mass))
    side = np.geomspace(noise.least_deviation / 256, 320 * noise.least_deviation, 512)
    places = np.concatenate((-side[::-1], side))
    below = np.vectorize(math.erfc)(-places[:, None] / (noise.least_deviation * np.sqrt(2 * j))) @ np.exp(chances) / 2
    return np.asarray(np.interp(points + 0.5, places, below))


def _correlated_repeat(noise: CorrelatedLaplace) -> float:
    """Return the largest probability of a number, the mean over W of that of 0."""
    j, chances = _parts_of_w()
    return min(1.0, float(np.exp(chances) @ (1 / np.sqrt(2 * math.pi * j))) / noise.least_deviation)


def _log_densities(noise: CorrelatedLaplace, squares: Floats, cells: int) -> Floats:
    """ln of the density of vectors of so many cells with these squared lengths, up to a constant."""
    j, chances = _parts_of_w()
    logs = chances - np.log(j) * cells / 2 - squares[..., None] / (2 * noise.least_deviation**2 * j)
    most = logs.max(axis=-1)
    return np.asarray(most + np.log(np.exp(logs - most[..., None]).sum(axis=-1)))


def _correlated_log_ratio(noise: CorrelatedLaplace, answers: Floats, moved: Floats) -> Floats:
    return _log_densities(noise, answers**2, 1) - _log_densities(noise, (answers - moved) ** 2, 1)


def _untied(noise: CorrelatedLaplace, series: Floats) -> Floats:
    """Return the differences of a series whose noise is independent, in the unit of its deviation."""
    correlation = noise.tie / 64
    return np.concatenate(
        (series[:, :1], (series[:, 1:] - correlation * series[:, :-1]) / math.sqrt(1 - correlation**2)), axis=1
    )


def _correlated_vector_log_ratio(noise: CorrelatedLaplace, answers: Floats, moved: Floats) -> Floats:
    if noise.tie:
        answers, moved = _untied(noise, answers), _untied(noise, moved[None])
    cells = answers.shape[1]
    squares = (answers**2).sum(axis=1), ((answers - moved) ** 2).sum(axis=1)
    return _log_densities(noise, squares[0], cells) - _log_densities(noise, squares[1], cells)


_UNIT = 256
"""Of measured numbers in a step, of noise for running totals."""


@lru_cache(maxsize=16)
def _root_matrix(length: int) -> Floats:
    """256 times the square root of the matrix of running totals, in whole numbers, from its factors (2m choose m) / 4**m."""
    factors = [int(Fraction(_UNIT * math.comb(2 * m, m), 4**m) + Fraction(1, 2)) for m in range(length)]
    ago = np.subtract.outer(np.arange(length), np.arange(length))
    return np.where(ago >= 0, np.array(factors, dtype=np.float64)[np.abs(ago)], 0.0)


def _root_loss(noise: SquareRoot, steps: Sequence[int]) -> tuple[Fraction, Fraction]:
    """rho: of entries that follow one another from the first cell on, which move the measured numbers farthest."""
    square = 0
    for start in range(0, len(steps), noise.length):
        moved = np.zeros(noise.length, dtype=object)
        of_vector = steps[start : start + noise.length]
        moved[: len(of_vector)] = list(of_vector)
        square += sum(int(number) ** 2 for number in _root_matrix(noise.length).astype(np.int64).astype(object) @ moved)
    return Fraction(0), Fraction(square, 2 * noise.sigma**2)


@lru_cache(maxsize=64)
def _root_spread(noise: SquareRoot) -> float:
    """Return the deviation of the last cell of a vector before it is rounded, in steps: of a row of the inverse matrix."""
    row = np.linalg.inv(_root_matrix(noise.length) / _UNIT)[-1]
    return math.sqrt(float(row @ row) * ((noise.sigma / _UNIT) ** 2 + 1 / 12) - 1 / 12)


def _root_distribution(noise: SquareRoot, points: Floats) -> Floats:
    """P(noise <= point): of what is below the next half."""
    half = (points + 0.5) / (_root_spread(noise) * math.sqrt(2))
    return np.asarray(np.vectorize(math.erfc)(-half) / 2)


def _root_log_ratio(noise: SquareRoot, answers: Floats, moved: Floats) -> Floats:
    """From the masses between two halves, each on the side where they are not differences of numbers near 1."""

    def log_mass(points: Floats) -> Floats:
        low, high = ((np.abs(points) + side) / (_root_spread(noise) * math.sqrt(2)) for side in (-0.5, 0.5))
        return np.asarray(np.log(np.maximum(np.vectorize(math.erfc)(low) - np.vectorize(math.erfc)(high), 1e-300)))

    return log_mass(answers) - log_mass(answers - moved)


def _root_vector_log_ratio(noise: SquareRoot, answers: Floats, moved: Floats) -> Floats:
    """Return the log ratio of densities of the measured numbers T x + z, which whitening gives back but for what rounding has
    added to z."""
    cells = answers.shape[1]
    matrix = np.kron(np.eye(-(-cells // noise.length)), _root_matrix(noise.length))[:cells, :cells]
    measured, distance = answers @ matrix.T, moved @ matrix.T
    return np.asarray(
        (((measured - distance) ** 2).sum(axis=1) - (measured**2).sum(axis=1)) / (2 * (noise.sigma**2 + _UNIT**2 / 12))
    )


LAWS: dict[type[Any], AuditedLaw] = {
    Laplace: AuditedLaw(
        _laplace_loss,
        _laplace_tail,
        _laplace_distribution,
        lambda noise: math.tanh(noise.s / noise.t / 2),
        lambda noise, answers, moved: (np.abs(answers - moved) - np.abs(answers)) * (noise.s / noise.t),
    ),
    Gaussian: AuditedLaw(
        _gaussian_loss,
        _gaussian_tail,
        _gaussian_distribution,
        lambda noise: min(1.0, 1 / (float(noise.sigma) * math.sqrt(2 * math.pi))),
        lambda noise, answers, moved: ((answers - moved) ** 2 - answers**2) / (2 * float(noise.sigma) ** 2),
    ),
    CorrelatedLaplace: AuditedLaw(
        _correlated_loss,
        _correlated_tail,
        _correlated_distribution,
        _correlated_repeat,
        _correlated_log_ratio,
        _correlated_vector_log_ratio,
    ),
    SquareRoot: AuditedLaw(
        _root_loss,
        lambda noise, k: math.erfc((k - 0.5) / (_root_spread(noise) * math.sqrt(2))) / 2,
        _root_distribution,
        lambda noise: min(1.0, 1 / (_root_spread(noise) * math.sqrt(2 * math.pi))),
        _root_log_ratio,
        _root_vector_log_ratio,
        lambda noise, cell: replace(noise, length=cell % noise.length + 1),
    ),
}
