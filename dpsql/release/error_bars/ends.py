"""From simulated values to the ends of a bar: one rule for every output and every number of groups.

Let T be the output as a function of the terms, t = b + z what was released, z noise of a known symmetric law, and z* drawn
from it anew. Two intervals stand for the exact T(b):

- the *percentiles* of T(t - z*): t - z* has the law of b given t under a flat prior, so this is exact wherever T is
  monotone in one term, whatever bounds T is kept in (quantiles go through monotone functions);
- the *reflected* ones, T(t) less the percentiles of an error T(u + z*) - T(u): the basic bootstrap (Davison and Hinkley
  1997, 5.2), right where the noise shifts T (squares, spreads, extremes) and the percentiles count the shift twice.

T is the plug-in formula also where a shrunk estimate is shown (`plan.formulas`): replicates of an estimate that leans on
what is assumed would vary less than the exact numbers may. Only the bar is made to hold what is shown.

Where T is nearly linear both are the same. Elsewhere each of them fails where the other holds, and the bar is their hull,
cut to the extent that T cannot leave. A draw for which T has no value may lie anywhere: it counts at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsql.release.error_bars.draws import Floats
from dpsql.release.error_bars.extents import Extent

_NUMBERS = (3999, 1999, 999, 399, 199)
"""Of draws: of each, 0.5 and 2.5 % are whole order statistics (the next draw lies below the r-th of K with r / (K + 1))."""
_FEWER = (79, 39)
"""The same for 2.5 % alone."""
_CONFIDENCE_OF_FEWER = 0.95 + 1e-9


def number_of_draws(rows: int, most_cells: int, most: int = _NUMBERS[0], confidence: float = 0.99) -> int:
    """Return how many draws to make of `rows` numbers: fewer for more of them, never fewer than the ends of 99 % bars need, or of
    95 % bars where `confidence` is no more than that."""
    numbers = (*_NUMBERS, *_FEWER) if confidence <= _CONFIDENCE_OF_FEWER else _NUMBERS
    return next((k for k in numbers if k <= most and k * max(1, rows) <= most_cells), numbers[-1])


def percentiles(cells: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Order statistics of each row of `cells` (rows, draws), infinite where draws without a value decide."""
    draws = cells.shape[1]
    rank = max(int((1 - confidence) / 2 * (draws + 1) + 1e-9), 1) - 1
    lost = np.isnan(cells)
    if not lost.any():
        part = np.partition(cells, (rank, draws - 1 - rank), axis=1)
        return part[:, rank], part[:, draws - 1 - rank]
    low = np.partition(np.where(lost, -np.inf, cells), rank, axis=1)[:, rank]
    high = np.partition(np.where(lost, np.inf, cells), draws - 1 - rank, axis=1)[:, draws - 1 - rank]
    return low, high


@dataclass(frozen=True)
class Interval:
    """One for each row, doubles. Ends are NaN where nothing bounds them; `unknown` says that the noise leaves no
    information: the interval is all that the bounds of the output allow."""

    value: Floats
    low: Floats
    high: Floats
    unknown: npt.NDArray[np.bool_]

    @property
    def error(self) -> Floats:
        """The larger distance from the value to an end: value +- error covers the interval."""
        return np.asarray(np.maximum(np.maximum(self.value - self.low, self.high - self.value), 0.0))

    @classmethod
    def nothing(cls, rows: int) -> Interval:
        """Not computed: the error is not known, for a reason that a note tells."""
        value, low, high = (np.full(rows, np.nan) for _ in range(3))
        return cls(value, low, high, np.zeros(rows, dtype=bool))

    def around_displayed(self, displayed: Floats) -> Interval:
        """Return the interval of what `displayed` estimates with less error than the value it was computed about; it holds that,
        too."""
        low, high = (np.where(np.isnan(displayed), end, displayed) for end in (self.low, self.high))
        low = np.where(np.isnan(self.low), np.nan, np.minimum(self.low, low))
        high = np.where(np.isnan(self.high), np.nan, np.maximum(self.high, high))
        return Interval(displayed, low, high, self.unknown)

    @classmethod
    def around(cls, value: Floats, half: Floats) -> Interval:
        """value +- half, without ends where either is no number."""
        finite = np.isfinite(value) & np.isfinite(half)
        low, high = np.where(finite, value - half, np.nan), np.where(finite, value + half, np.nan)
        return cls(value, low, high, np.zeros(len(value), dtype=bool))

    @classmethod
    def merged(cls, pieces: list[tuple[npt.NDArray[np.bool_], Interval]]) -> Interval:
        """Return the intervals of all rows from pairs (which rows they are, their intervals)."""
        whole = cls.nothing(len(pieces[0][0]))
        for rows, piece in pieces:
            whole.value[rows], whole.low[rows], whole.high[rows] = piece.value, piece.low, piece.high
            whole.unknown[rows] = piece.unknown
        return whole

    @classmethod
    def of(cls, value: Floats, low: Floats, high: Floats, within: Extent) -> Interval:
        """Return the ends as they are; unknown where they are no less than the extent."""
        unknown = ~((low > within[0]) | (high < within[1]))
        bounded = np.isfinite(low) & np.isfinite(high)
        return cls(value, np.where(bounded, low, np.nan), np.where(bounded, high, np.nan), unknown | ~bounded)


def hull_of(ends: list[tuple[Floats, Floats]], within: Extent) -> tuple[Floats, Floats]:
    """Around all `ends` (NaN: says nothing), cut to `within`."""
    low = np.fmax(np.fmin.reduce([low for low, _ in ends]), within[0])
    high = np.fmin(np.fmax.reduce([high for _, high in ends]), within[1])
    return np.asarray(low), np.asarray(high)
