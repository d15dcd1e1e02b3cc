"""The law of a quantile's choice, written out from its definition beside the product's: targets, distances, log probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsql.privacy.mechanisms.exponential import Choice

Rows = Mapping[int, int]
"""Rows by cell, of the cells that are not empty."""


@dataclass(frozen=True)
class Run:
    """Cells with one distance: `width` of them, `below` rows before them, `inside` rows in each (0 if there are several)."""

    width: int
    below: int
    inside: int


def target(law: Choice, rows: int) -> Fraction:
    """The rank that is wanted of so many rows."""
    if law.quantile == 0:
        return min(law.rank - Fraction(1, 2), Fraction(rows, 2))
    if law.quantile == 1:
        return rows - min(law.rank - Fraction(1, 2), Fraction(rows, 2))
    return law.quantile * rows


def distance(law: Choice, run: Run, rows: int) -> Fraction:
    wanted = target(law, rows)
    return max(Fraction(0), run.below - wanted, wanted - run.below - run.inside)


def runs(cells: int, points: list[int], rows: Rows) -> list[Run]:
    """Every point by itself and the gaps between them, in order; `points` hold all cells that are not empty."""
    found, after, below = [], 0, 0
    for point in points:
        if point > after:
            found.append(Run(point - after, below, 0))
        found.append(Run(1, below, rows.get(point, 0)))
        after, below = point + 1, below + rows.get(point, 0)
    return [*found, Run(cells - after, below, 0)] if after < cells else found


def log_law(law: Choice, cells: int, rows: Rows, points: list[int] | None = None) -> list[float]:
    """The log probability of one cell of each run."""
    parts = runs(cells, sorted(rows) if points is None else points, rows)
    weights = [-float(law.rate * distance(law, run, sum(rows.values()))) for run in parts]
    total = math.log(math.fsum(run.width * math.exp(weight) for run, weight in zip(parts, weights, strict=True)))
    return [weight - total for weight in weights]


def log_ratios(law: Choice, cells: int, left: Rows, right: Rows) -> list[float]:
    """The log ratio of the two laws for one cell of each run."""
    points = sorted({*left, *right})
    both = zip(log_law(law, cells, left, points), log_law(law, cells, right, points), strict=True)
    return [one - other for one, other in both]
