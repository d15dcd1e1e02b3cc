"""From simulated values to the ends of a bar: one rule for all outputs and all numbers of groups.

Let T be the output as a function of the terms, t = b + z the released numbers, z noise from a known symmetric law, and z* a new
draw from it. There are two intervals for the exact T(b):

- the *percentiles* of T(t - z*): t - z* has the law of b given t under a flat prior, so this is exact wherever T is
  monotone in one term, whatever bounds T is clamped to (monotone functions preserve quantiles);
- the *reflected* interval, T(t) minus the percentiles of an error T(u + z*) - T(u): the basic bootstrap (Davison and Hinkley
  1997, 5.2), right where the noise shifts T (squares, spreads, extremes) and the percentiles count the shift twice.

T is the plug-in formula even where a shrunk estimate is shown (`plan.formulas`): replicates of an estimate that relies on
assumptions would vary less than the exact numbers may. The bar is only widened to contain the number shown.

Where T is nearly linear, both intervals are the same. Elsewhere each fails where the other holds, so the bar is their hull,
cut to the extent that T cannot leave. A draw for which T has no value may lie anywhere: it counts at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsql.release.error_bars.draws import Floats
from dpsql.release.formulas import Extent

_NUMBERS = (3999, 1999, 999, 399, 199)
"""Numbers of draws for which the 0.5 % and 2.5 % points are order statistics (the next draw lies below the r-th of K draws with
probability r / (K + 1))."""
_FEWER = (79, 39)
"""Numbers of draws for which the 2.5 % point is an order statistic."""
_CONFIDENCE_OF_FEWER = 0.95 + 1e-9


def number_of_draws(rows: int, most_cells: int, most: int = _NUMBERS[0], confidence: float = 0.99) -> int:
    """Return the number of draws for each of `rows` numbers: fewer for more rows, but not fewer than the ends of 99 % bars need
    (of 95 % bars if `confidence` is at most 95 %)."""
    numbers = (*_NUMBERS, *_FEWER) if confidence <= _CONFIDENCE_OF_FEWER else _NUMBERS
    return next((k for k in numbers if k <= most and k * max(1, rows) <= most_cells), numbers[-1])


def percentiles(cells: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the low and high percentile of each row of `cells` (rows, draws) as order statistics. Draws without a value (NaN)
    count as infinite at both ends."""
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
    """One interval per row, in doubles. Ends are NaN where nothing bounds them. `unknown`: the noise leaves no information, so
    the interval is all that the bounds of the output allow."""

    value: Floats
    low: Floats
    high: Floats
    unknown: npt.NDArray[np.bool_]

    @property
    def error(self) -> Floats:
        """The larger of the distances from the value to the ends: value +- error covers the interval."""
        return np.asarray(np.maximum(np.maximum(self.value - self.low, self.high - self.value), 0.0))

    @classmethod
    def nothing(cls, rows: int) -> Interval:
        """Return intervals that were not computed, because the error is not known; a note gives the reason."""
        value, low, high = (np.full(rows, np.nan) for _ in range(3))
        return cls(value, low, high, np.zeros(rows, dtype=bool))

    def around_displayed(self, displayed: Floats) -> Interval:
        """Return the interval extended to contain `displayed`, which is shown in place of the value for which the interval was
        computed and estimates the same number with less error."""
        low, high = (np.where(np.isnan(displayed), end, displayed) for end in (self.low, self.high))
        low = np.where(np.isnan(self.low), np.nan, np.minimum(self.low, low))
        high = np.where(np.isnan(self.high), np.nan, np.maximum(self.high, high))
        return Interval(displayed, low, high, self.unknown)

    @classmethod
    def around(cls, value: Floats, half: Floats) -> Interval:
        """Return value +- half, without ends where either is not finite."""
        finite = np.isfinite(value) & np.isfinite(half)
        low, high = np.where(finite, value - half, np.nan), np.where(finite, value + half, np.nan)
        return cls(value, low, high, np.zeros(len(value), dtype=bool))

    @classmethod
    def merged(cls, pieces: list[tuple[npt.NDArray[np.bool_], Interval]]) -> Interval:
        """Return the intervals of all rows from pairs (mask of rows, their intervals)."""
        whole = cls.nothing(len(pieces[0][0]))
        for rows, piece in pieces:
            whole.value[rows], whole.low[rows], whole.high[rows] = piece.value, piece.low, piece.high
            whole.unknown[rows] = piece.unknown
        return whole

    @classmethod
    def of(cls, value: Floats, low: Floats, high: Floats, within: Extent) -> Interval:
        """Return the interval with these ends; `unknown` where it is not smaller than the extent `within`."""
        unknown = ~((low > within[0]) | (high < within[1]))
        bounded = np.isfinite(low) & np.isfinite(high)
        return cls(value, np.where(bounded, low, np.nan), np.where(bounded, high, np.nan), unknown | ~bounded)


def hull_of(ends: list[tuple[Floats, Floats]], within: Extent) -> tuple[Floats, Floats]:
    """Return the smallest interval around all `ends` (NaN is ignored), cut to `within`."""
    low = np.fmax(np.fmin.reduce([low for low, _ in ends]), within[0])
    high = np.fmin(np.fmax.reduce([high for _, high in ends]), within[1])
    return np.asarray(low), np.asarray(high)
