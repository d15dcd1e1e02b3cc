"""The laws of choices among cells, written out from their definitions beside the product's: targets, distances, probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsql.privacy.mechanisms.end_rows import EndKey
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.most_frequent import MostFrequent

AnyChoice = Choice | MostFrequent | EndKey
Rows = Mapping[int, int]
"""Rows by cell, of the cells that are not empty."""


@dataclass(frozen=True)
class Run:
    """Cells with one distance: `width` of them, `below` rows before them, `inside` rows in each (0 if there are several)."""

    width: int
    below: int
    inside: int


def target(law: Choice, rows: int) -> Fraction:
    """The rank that is wanted of so many rows, in units of which a row is `law.slices`."""
    if law.padding:
        return law.quantile * (rows - abs(law.padding)) + max(0, law.padding)
    inside = min((law.rank - Fraction(1, 2)) * law.slices, Fraction(rows, 2))
    if law.quantile == 0:
        return inside
    if law.quantile == 1:
        return rows - inside
    return law.quantile * rows


def distance(law: Choice, run: Run, rows: int) -> Fraction:
    rank = target(law, rows)
    return max(Fraction(0), run.below - rank, rank - run.below - run.inside)


def runs(cells: int, points: list[int], rows: Rows) -> list[Run]:
    """Every point by itself and the gaps between them, in order; `points` hold all cells that are not empty."""
    full_runs, after, below = [], 0, 0
    for point in points:
        if point > after:
            full_runs.append(Run(point - after, below, 0))
        full_runs.append(Run(1, below, rows.get(point, 0)))
        after, below = point + 1, below + rows.get(point, 0)
    return [*full_runs, Run(cells - after, below, 0)] if after < cells else full_runs


def log_law(law: AnyChoice, cells: int, rows: Rows, points: list[int] | None = None) -> list[float]:
    """The log probability of one cell of each run, or of each key of rows at an end."""
    if isinstance(law, EndKey):
        counts = keys_at_end(law, rows)
        scores = [float(law.epsilon_0 * (count - max(counts)) / 2) for count in counts]
        return [score - math.log(math.fsum(map(math.exp, scores))) for score in scores]
    parts = runs(cells, sorted(rows) if points is None else points, rows)
    if isinstance(law, Choice):
        weights = [-float(law.rate * distance(law, run, sum(rows.values()))) for run in parts]
    else:
        most = max(rows.values(), default=0)
        weights = [-float(law.epsilon_0 * (most - run.inside)) for run in parts]
    total = math.log(math.fsum(run.width * math.exp(weight) for run, weight in zip(parts, weights, strict=True)))
    return [weight - total for weight in weights]


def keys_at_end(law: EndKey, rows: Rows) -> list[int]:
    """Count the rows at the end with each key, one row after the other."""
    counts, left = [0] * law.keys, law.rows
    for cell in sorted(rows, reverse=law.last):
        taken = min(rows[cell], left)
        counts[cell % law.keys] += taken
        left -= taken
    return counts


def log_ratios(law: AnyChoice, cells: int, left: Rows, right: Rows) -> list[float]:
    """The log ratio of the two laws for one cell of each run."""
    points = sorted({*left, *right})
    both = zip(log_law(law, cells, left, points), log_law(law, cells, right, points), strict=True)
    return [mass - other for mass, other in both]
