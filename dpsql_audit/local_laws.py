"""Medians and means with noise by local sensitivity, written out from their definitions beside the product's: the numbers of
ranks, the laws of what is released, and the delta that two neighbours need at the epsilon of a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.privacy.mechanisms.contract import Law
from dpsql.privacy.mechanisms.local_sensitivity import ProposeTestRelease, SmoothSensitivity, propose_for
from dpsql_audit.noise_laws import audited

Rows = Mapping[int, int]
"""Rows by cell, of the cells that are not empty."""
Floats = NDArray[np.float64]
_ONE = 1 << 28


def in_order(rows: Rows) -> list[int]:
    """Return the cell of every row, ascending."""
    return [cell for cell in sorted(rows) for _ in range(rows[cell])]


def ranked(cells: list[int], steps: int, last: int) -> int:
    """Return the cell of the row of rank (n + steps) / 2, rounded up; 0 before the first row and `last` behind the last one."""
    rank = math.ceil((len(cells) + steps) / 2)
    return 0 if rank < 1 else last if rank > len(cells) else cells[rank - 1]


def scale(law: SmoothSensitivity, cells: list[int], last: int) -> float:
    """Return the scale of the noise of smooth sensitivity."""
    moved, weights = law.sensitivity.linf, law.weights
    widths = (
        ranked(cells, (k + 1) * moved, last) - ranked(cells, -(k + 1) * moved, last)
        for k in range(min(weights.size, len(cells) // moved + 2))
    )
    largest = max(int(weight) * width for weight, width in zip(weights, widths, strict=False))
    return max(largest, int(weights[-1]) * last) / law.alpha


def smooth_law(law: SmoothSensitivity, count: int, rows: Rows) -> Floats:
    """Return the probability of each of `count` cells."""
    cells = in_order(rows)
    middle, width = ranked(cells, 0, count - 1), scale(law, cells, count - 1)
    distance = np.abs(np.arange(count) - middle).astype(float)
    chance = 0.5 * np.exp(-np.maximum(distance - 0.5, 0) / width) * -math.expm1(-1 / width)
    chance[middle] = -math.expm1(-0.5 / width)
    for end in {0, count - 1}:
        chance[end] = 0.5 * math.exp(-(distance[end] - 0.5) / width) if distance[end] else 0.5 + chance[end] / 2
    return chance


def distance(law: ProposeTestRelease, cells: list[int], last: int) -> int:
    """Return how many units have to come or go until one of them may move the answer by more than what was proposed."""
    moved, k = law.sensitivity.linf, 0
    while True:
        if law.mean:
            left = len(cells) - (k + 1) * moved
            spread = math.inf if left <= 0 else (last << law.finer) * moved / left
        else:
            spread = ranked(cells, (k + 1) * moved, last) - ranked(cells, -(k + 1) * moved, last)
        if spread > law.bound:
            return k
        k += 1


def number(law: ProposeTestRelease, cells: list[int], last: int) -> int:
    """Return the median, or the mean on its grid."""
    if not law.mean:
        return ranked(cells, 0, last)
    return (sum(cells) << law.finer) // len(cells) if cells else (last << law.finer) // 2


def passing(law: ProposeTestRelease, units: int) -> float:
    """Return the chance that an answer at this distance is not refused."""
    steps, rate = law.threshold - units + 1, law.test.s / law.test.t
    return _tail(steps, rate) if steps >= 1 else 1 - _tail(1 - steps, rate)


def _tail(steps: int, rate: float) -> float:
    """Return P(Y >= steps) of discrete Laplace noise, steps >= 1."""
    return math.exp(-rate * steps) / (1 + math.exp(-rate))


def through(law: Law, count: int, rows: Rows) -> Floats:
    """Return the chance of a refusal, and of a refusal or a number up to each step of a grid of `count` cells. Raises
    InternalError for a law that is not registered."""
    return local_law_of(law).through(law, count, rows)


def _smooth_through(law: SmoothSensitivity, count: int, rows: Rows) -> Floats:
    return np.concatenate([[0.0], np.cumsum(smooth_law(law, count, rows))])


def _tested_through(law: ProposeTestRelease, count: int, rows: Rows) -> Floats:
    cells, last = in_order(rows), count - 1
    refused = 1 - passing(law, distance(law, cells, last))
    rate = law.noise.s / law.noise.t
    steps = np.arange((last << law.finer) + 1) - number(law, cells, last)
    above = np.exp(-rate * (np.maximum(steps, 0) + 1)) / (1 + math.exp(-rate))
    below = np.exp(rate * np.minimum(steps, 0)) / (1 + math.exp(-rate))
    chances = np.where(steps < 0, below, 1 - above)
    chances[-1] = 1.0
    return np.concatenate([[refused], refused + (1 - refused) * chances])


def delta_needed(law: Law, count: int, left: Rows, right: Rows) -> float:
    """Return the delta that a group needs between these two histograms of `count` cells, at `law.epsilon_0`; 1 for a pair whose
    distances from instability differ by more than one. Raises InternalError for a law that is not registered."""
    return local_law_of(law).delta_needed(law, count, left, right)


def _smooth_delta(law: SmoothSensitivity, count: int, left: Rows, right: Rows) -> float:
    ratio = math.exp(law.epsilon_0)
    laws = [smooth_law(law, count, rows) for rows in (left, right)]
    return max(float(np.maximum(0, mine - ratio * (1 + 1e-12) * other).sum()) for mine, other in (laws, laws[::-1]))


def _tested_delta(law: ProposeTestRelease, count: int, left: Rows, right: Rows) -> float:
    sides = [in_order(rows) for rows in (left, right)]
    units = [distance(law, cells, count - 1) for cells in sides]
    exact = [number(law, cells, count - 1) for cells in sides]
    if abs(units[0] - units[1]) > 1:
        return 1.0
    return 0.0 if abs(exact[0] - exact[1]) <= law.bound else max(passing(law, side) for side in units)


def _spread_rows(law: SmoothSensitivity) -> tuple[SmoothSensitivity, Rows]:
    """Return rows of which one unit moves the median far."""
    moved = law.sensitivity.linf
    return law, {30: 40 * moved, 31: 1, 500: 61 * moved, 740: 40 * moved}


def _half_passed(law: ProposeTestRelease) -> tuple[ProposeTestRelease, Rows]:
    """Return the law with another bound proposed, and rows by which its test is passed half of the time."""
    law = propose_for(law.sensitivity, replace(law.loss, rho=None), 10)
    return law, {480: law.sensitivity.linf * (law.threshold + 2), 485: law.sensitivity.linf}


@dataclass(frozen=True)
class AuditedLocalLaw:
    """One law of noise by local sensitivity: `through` and `delta_needed` as the functions of these names; `example`: a law like
    it and rows, from which its noise, and its refusals, show."""

    through: Callable[[Any, int, Rows], Floats]
    delta_needed: Callable[[Any, int, Rows, Rows], float]
    example: Callable[[Any], tuple[Any, Rows]]


LOCAL_LAWS: dict[type[Any], AuditedLocalLaw] = {
    SmoothSensitivity: AuditedLocalLaw(_smooth_through, _smooth_delta, _spread_rows),
    ProposeTestRelease: AuditedLocalLaw(_tested_through, _tested_delta, _half_passed),
}


def local_law_of(law: Law) -> AuditedLocalLaw:
    """Return what the audit knows of a law. Raises InternalError for a law that is not registered."""
    return audited(LOCAL_LAWS, law, "noise by local sensitivity of a law")
