"""Laws of choices among cells, derived from their definitions independently of the product: targets, distances, probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from dpsql.privacy.mechanisms.contract import Law, Sensitivity
from dpsql.privacy.mechanisms.exponential import PERMUTE_AND_FLIP, Choice
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent
from dpsql_audit.noise_laws import audited

EXAMPLE_CELLS, EXAMPLE_ROWS = 1_000, {30: 2, 31: 1, 500: 6, 740: 1}
"""Number of cells, and rows by cell, of the histogram on which the law of a quantile is sampled."""
LEANING_CELLS = 40
"""Number of cells of the histogram for a leaning choice: few, because each cell is evaluated separately."""
Rows = Mapping[int, int]
"""Number of rows by cell, without empty cells."""
_MOST_NUMBERS = 1 << 20
_NODES, _HALVINGS = 24, 40
"""Nodes of the quadrature rule on each interval, and number of intervals: below 2**-39, the product of 2**29 cells is nearly
1."""


class ChoiceLaw(Law, Protocol):
    """A law by which a cell or a key is chosen."""

    @property
    def mechanism(self) -> str:
        """The name of the selection method in `exponential.CHOICE_MECHANISMS`, which chooses given all distances."""

    @property
    def rate(self) -> Fraction:
        """The decrease of a weight's logarithm per step of distance."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Bounds on the rows of one unit in one group and in all groups together."""


@dataclass(frozen=True)
class Run:
    """`width` cells with equal distance: `below` rows lie before them and `inside` rows in each (0 if there are several
    cells)."""

    width: int
    below: int
    inside: int


def target(law: Choice, rows: int) -> Fraction:
    """Return the target rank among `rows` rows, in units of 1 / `law.slices` row."""
    if law.padding:
        return law.quantile * (rows - abs(law.padding)) + max(0, law.padding)
    inside = min((law.rank - Fraction(1, 2)) * law.slices, Fraction(rows, 2))
    if law.quantile == 0:
        return inside
    if law.quantile == 1:
        return rows - inside
    return law.quantile * rows


def distances(law: Choice, parts: Sequence[Run], rows: int) -> tuple[list[int], int]:
    """Return the distance of each run from the target in whole steps, and the number of steps per unit of distance."""
    rank = target(law, rows)
    step, sought = rank.denominator, rank.numerator
    befores = [run.below * step for run in parts]
    behind = [below + run.inside * step for run, below in zip(parts, befores, strict=True)]
    return [max(0, below - sought, sought - end) for below, end in zip(befores, behind, strict=True)], step


def distance(law: Choice, run: Run, rows: int) -> Fraction:
    multiples, step = distances(law, [run], rows)
    return Fraction(multiples[0], step)


def leaning_distances(law: Choice, cells: int, rows: Rows) -> tuple[list[int], int]:
    """Return distances and steps per unit as `distances` does, for each cell of a leaning choice.

    The distance is the number of rows in later cells beyond `rank` - 1/2, plus one lean for each earlier cell, minus the smallest
    such sum.
    """
    total = sum(rows.values())
    above = [
        max(0, 2 * (total - run.below - run.inside) - (2 * law.rank - 1))
        for run in runs(cells, list(range(cells)), rows)
    ]
    far = [2 * law.lean * place + halves * law.denominator for place, halves in enumerate(above)]
    nearest = min(far)
    return [each - nearest for each in far], 2 * law.denominator


def runs(cells: int, points: list[int], rows: Rows) -> list[Run]:
    """Return one run per point and one per gap between points, in order; `points` contains all cells that are not empty."""
    full_runs, after, below = [], 0, 0
    for point in points:
        if point > after:
            full_runs.append(Run(point - after, below, 0))
        full_runs.append(Run(1, below, rows.get(point, 0)))
        after, below = point + 1, below + rows.get(point, 0)
    return [*full_runs, Run(cells - after, below, 0)] if after < cells else full_runs


def log_law(law: ChoiceLaw, cells: int, rows: Rows, points: list[int] | None = None) -> list[float]:
    """Return the log probability of one cell of each run (of every cell for a leaning choice), or of each key for a choice among
    keys at an end. Raises InternalError for a law that is not registered."""
    return choice_of(law).log_law(law, cells, rows, points)


def _quantile_log_law(law: Choice, cells: int, rows: Rows, points: list[int] | None) -> list[float]:
    if law.lean:
        far, step = leaning_distances(law, cells, rows)
        return _log_chances(law.mechanism, _logs(far, law.rate / step), [1] * cells)
    parts = runs(cells, sorted(rows) if points is None else points, rows)
    far, step = distances(law, parts, sum(rows.values()))
    return _log_chances(law.mechanism, _logs(far, law.rate / step), [run.width for run in parts])


def _mode_log_law(law: MostFrequent, cells: int, rows: Rows, points: list[int] | None) -> list[float]:
    parts = runs(cells, sorted(rows) if points is None else points, rows)
    most = max(rows.values(), default=0)
    weights = _logs([most - run.inside for run in parts], law.epsilon_0)
    return _log_chances(law.mechanism, weights, [run.width for run in parts])


def _end_key_log_law(law: EndKey, cells: int, rows: Rows, points: list[int] | None) -> list[float]:
    counts = keys_at_end(law, rows)
    most = max(counts)
    return _log_chances(law.mechanism, _logs([most - count for count in counts], law.epsilon_0 / 2), [1] * law.keys)


def _logs(multiples: list[int], rate: Fraction) -> list[float]:
    """Return the logarithms -`rate` * steps of weights for these numbers of steps, each rounded to the nearest float."""
    falls, divisor = -rate.numerator, rate.denominator
    return [falls * multiple / divisor for multiple in multiples]


def _log_chances(mechanism: str, weights: list[float], widths: list[int]) -> list[float]:
    """Return the log probability of one cell of each run, from the logarithms of their weights."""
    if mechanism == PERMUTE_AND_FLIP:
        return flipped_log_chances(weights, widths)
    total = math.log(math.fsum(width * math.exp(weight) for weight, width in zip(weights, widths, strict=True)))
    return [weight - total for weight in weights]


def flipped_log_chances(weights: list[float], widths: list[int]) -> list[float]:
    """Return the log probabilities under permute-and-flip. Requires that the largest log weight is 0.

    Cell c has the probability p(c) times the integral over y from 0 to 1 of the product of 1 - p(i) y over all other cells i,
    computed by Gauss's rule on intervals that halve towards 0.
    """
    chance, width = np.exp(np.array(weights)), np.array(widths, dtype=np.float64)
    nodes, shares = _rule()
    integrals = np.zeros(chance.size)
    step = max(1, _MOST_NUMBERS // chance.size)
    for begin in range(0, nodes.size, step):
        logs = np.log1p(-np.multiply.outer(nodes[begin : begin + step], chance))
        integrals += shares[begin : begin + step] @ np.exp((logs @ width)[:, np.newaxis] - logs)
    log_chances: list[float] = (np.array(weights) + np.log(integrals)).tolist()
    return log_chances


@lru_cache(maxsize=1)
def _rule() -> tuple[Any, Any]:
    """Return the nodes in [0, 1] of the quadrature rule on all intervals, and their weights."""
    nodes, shares = np.polynomial.legendre.leggauss(_NODES)
    highs = 0.5 ** np.arange(_HALVINGS)
    lows = np.append(highs[1:], 0.0)
    halves = (highs - lows) / 2
    return (
        (np.multiply.outer(halves, nodes) + ((lows + highs) / 2)[:, np.newaxis]).ravel(),
        np.multiply.outer(halves, shares).ravel(),
    )


def keys_at_end(law: EndKey, rows: Rows) -> list[int]:
    """Return the number of rows at the end with each key, counted one row after the other."""
    counts, left = [0] * law.keys, law.rows
    for cell in sorted(rows, reverse=law.last):
        taken = min(rows[cell], left)
        counts[cell % law.keys] += taken
        left -= taken
    return counts


def log_ratios(law: ChoiceLaw, cells: int, left: Rows, right: Rows) -> list[float]:
    """Return the log ratio of the two laws for one cell of each run."""
    points = sorted({*left, *right})
    both = zip(log_law(law, cells, left, points), log_law(law, cells, right, points), strict=True)
    return [mass - other for mass, other in both]


def _large_totals(law: Choice) -> dict[int, int]:
    """Return rows by cell in which the rows beyond the rank of a leaning choice, in cells 14 to 19, weigh about as much as its
    lean."""
    return {14: 4 * law.rank, 20: math.ceil(1 / law.rate), 25: law.rank}


def _equal_rows(law: MostFrequent) -> dict[int, int]:
    """Return rows by cell for which the most frequent cell is about as likely as all empty cells together, so that each step of
    the weights affects the probabilities."""
    most = max(2, round(math.log(EXAMPLE_CELLS) / float(law.rate)))
    return {30: most, 31: most - 1, 500: most // 2 + 1, 740: most}


def _leading_keys(law: EndKey) -> dict[int, int]:
    """Return rows by cell for which the weights of half of the keys are about e times those of the others."""
    most = max(1, law.rows // law.keys)
    lead = min(most, math.ceil(1 / float(law.rate)))
    keys = min(law.keys, EXAMPLE_CELLS)
    leading = min((keys + 1) // 2, law.rows)
    return {key: count for key in range(keys) if (count := most if key < leading else most - lead)}


@dataclass(frozen=True)
class AuditedChoice:
    """The audit's part of one law of choices.

    `log_law`: like the function of that name. `by_cell`: whether it lists single cells (or keys) instead of runs. `example`:
    cells and rows of a histogram for which each step of the weights affects the choice. `title`: the name of the choice in
    reports. `slices`: the number of slices per cell.
    """

    log_law: Callable[[Any, int, Rows, list[int] | None], list[float]]
    by_cell: Callable[[Any], bool]
    example: Callable[[Any], tuple[int, Rows]]
    title: Callable[[Any], str]
    slices: Callable[[Any], int] = lambda law: 1


CHOICES: dict[type[Any], AuditedChoice] = {
    Choice: AuditedChoice(
        _quantile_log_law,
        lambda law: law.lean > 0,
        lambda law: (LEANING_CELLS, _large_totals(law)) if law.lean else (EXAMPLE_CELLS, EXAMPLE_ROWS),
        lambda law: "leaning to lower cells" if law.lean else f"quantile {float(law.quantile):.3g}",
        lambda law: law.slices,
    ),
    MostFrequent: AuditedChoice(
        _mode_log_law,
        lambda law: False,
        lambda law: (EXAMPLE_CELLS, _equal_rows(law)),
        lambda law: "most frequent",
    ),
    EndKey: AuditedChoice(
        _end_key_log_law,
        lambda law: True,
        lambda law: (EXAMPLE_CELLS, _leading_keys(law)),
        lambda law: "key of rows at an end",
    ),
}


def choice_of(law: Law) -> AuditedChoice:
    """Return the audit's part of a law. Raises InternalError for a law that is not registered."""
    return audited(CHOICES, law, "a choice of a law")
