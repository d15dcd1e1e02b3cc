"""Division of a budget among tiles that are measured together: the shares that minimize an objective after least squares.

The shares follow only from the shape of the tiles and the laws of their noise, never from data. They are computed in floats and
rounded down to fractions before anything is priced: however inaccurate they are, the tiles together cost no more.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import floor

import numpy as np

from dpsql.pricing.marginals import Floats, Marginals

LEAST_SHARE = 1 / 64
"""Least share of every tile, relative to an even share."""
STEPS = 1 << 10
"""Shares are multiples of 1/1024 of an even share."""
_MOST_STARTS = 6
_ROUNDS = 60
_SHARPNESS = (8.0, 64.0, 512.0)
"""Sharpness of the smooth function that replaces a maximum, in consecutive rounds."""


class Objective(StrEnum):
    """Objective that a plan of tiles minimizes; false only for OFF.

    RELATIVE: the largest error of a tile, relative to the mean of its cells. ABSOLUTE: the mean over tiles of the error of a
    cell. RUNNING: the error of running totals over the last key (`running_totals`).
    """

    OFF = "off"
    RELATIVE = "relative"
    ABSOLUTE = "absolute"
    RUNNING = "running"

    def __bool__(self) -> bool:
        return self is not Objective.OFF


def objective_of(
    marginals: Marginals, variances: Floats, objective: Objective, weights: tuple[float, ...] = ()
) -> float:
    """Return the objective for the variances of a cell of each tile as shown, up to a factor for the unit of the sums and their
    total.

    `weights`: how much the error of each tile counts (empty: all count equally).
    """
    deviations = np.sqrt(variances) * (np.array(weights) if weights else 1.0)
    if objective is Objective.RELATIVE:
        return float(np.max(deviations * marginals.tile_cells))
    return float(np.mean(deviations))


@lru_cache(maxsize=256)
def shares(
    marginals: Marginals,
    relative_variances: tuple[float, ...],
    power: int,
    objective: Objective,
    weights: tuple[float, ...] = (),
) -> tuple[Fraction, ...]:
    """Return the share of each tile, relative to an even share: their sum is at most the number of tiles.

    `relative_variances`: variance of a cell of each tile at an even share, up to a common factor. A tile of share s has noise of
    variance proportional to s ** -power, with power 1 where rho is shared and 2 where epsilon is. `weights`: see `objective_of`.
    """
    even = np.array(relative_variances)
    count = len(even)
    starts = [np.zeros(count)]
    for tile in sorted(range(count), key=lambda number: -marginals.tile_cells[number])[:_MOST_STARTS]:
        start = np.zeros(count)
        start[tile] = np.log(8.0 * count)
        starts.append(start)
    counting = np.array(weights) if weights else np.ones(count)
    candidates = [in_steps(_descended(marginals, even, power, objective, start, counting)) for start in starts]

    def after(chosen: tuple[Fraction, ...]) -> float:
        variances = even / np.array([float(share) for share in chosen]) ** power
        return objective_of(marginals, marginals.variances_after(variances), objective, weights)

    return min(candidates, key=after)


def in_steps(descended: Floats) -> tuple[Fraction, ...]:
    """Return shares as fractions with the denominator STEPS, rounded down, but at least 1 / STEPS."""
    return tuple(Fraction(max(1, floor(share * STEPS)), STEPS) for share in descended)


def _of_logarithms(logarithms: Floats) -> Floats:
    """Return shares of mean 1, each at least LEAST_SHARE, that grow with `logarithms`."""
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(LEAST_SHARE + (1 - LEAST_SHARE) * len(weights) * weights / weights.sum())


def _descended(
    marginals: Marginals, even: Floats, power: int, objective: Objective, start: Floats, counting: Floats
) -> Floats:
    """Return shares after descent along the gradient from `start`. Steps grow while they help and shrink otherwise."""
    logarithms, step = start, 0.5
    for sharpness in _SHARPNESS if objective is Objective.RELATIVE else (0.0,):
        value, slope = _value_and_slope(marginals, even, power, sharpness, logarithms, counting)
        for _ in range(_ROUNDS):
            moved = logarithms - step * slope / (np.linalg.norm(slope) + 1e-12)
            next_value, next_slope = _value_and_slope(marginals, even, power, sharpness, moved, counting)
            if next_value < value:
                logarithms, value, slope, step = moved, next_value, next_slope, step * 1.3
            else:
                step *= 0.5
            if step < 1e-4:
                break
        step = 0.1
    return _of_logarithms(logarithms)


def _value_and_slope(
    marginals: Marginals, even: Floats, power: int, sharpness: float, logarithms: Floats, counting: Floats
) -> tuple[float, Floats]:
    """Return the logarithm of the objective (`sharpness` 0: the mean over tiles; otherwise a smooth maximum) and its gradient."""
    weights = np.exp(logarithms - logarithms.max())
    weights = weights / weights.sum()
    share = _of_logarithms(logarithms)
    precision = share**power / (even * marginals.tile_cells)
    information = precision @ marginals.has_part
    squares = marginals.has_part @ (marginals.dimensions / information)
    """Squared error of a tile's cell relative to the mean of its cells."""
    if sharpness:
        levels = np.log(squares) / 2 + np.log(counting)
        powers = np.exp(sharpness * (levels - levels.max()))
        value = float(levels.max() + np.log(powers.sum()) / sharpness)
        of_squares = powers / powers.sum() / (2 * squares)
    else:
        errors = counting * np.sqrt(squares) / marginals.tile_cells
        value = float(np.log(errors.sum()))
        of_squares = errors / errors.sum() / (2 * squares)
    of_parts = -(of_squares @ marginals.has_part) * marginals.dimensions / information**2
    of_shares = (marginals.has_part @ of_parts) * precision * power / share
    of_weights = (1 - LEAST_SHARE) * len(weights) * of_shares
    return value, np.asarray(weights * (of_weights - weights @ of_weights))
