"""Measurements other than sums, and the registers in which every floor has its part of them.

A measurement is a frozen description in a plan, identified by a word. Its treatment is registered under that word, floor by
floor, so that no floor depends on a higher one: `pricing.measurements` (price and error), `engine.emit.measurements` (what the
engine counts), `noise.measurements` (from exact to noisy), `reuse.measurements` (what is stored). To add a measurement, write its
description and its part for each floor, and enter each part in its floor's register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Generic, TypeVar

from dpsql.errors.exceptions import refuse
from dpsql.plan.canonical_text import ADDED
from dpsql.plan.plan import Expr, Term
from dpsql.privacy.mechanisms.exponential import Lean
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY, PROPOSED, ends_of
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES
from dpsql.storage.records import dataclass, field

Part = TypeVar("Part")


class Register(Generic[Part]):
    """Parts of one floor for measurements, by word."""

    def __init__(self, floor: str, parts: Mapping[str, Part]) -> None:
        self.floor = floor
        self._parts = dict(parts)

    def of(self, word: str) -> Part:
        """Return the part for measurements called `word`. Raises InternalError when there is none: there is no default."""
        if word not in self._parts:
            raise refuse("internal", what=f"{self.floor} does not know the measurement {word}")
        return self._parts[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)


@dataclass(frozen=True)
class Quantile:
    """Value below which the share `quantile` (from 0 to 1) of a group's values lies, released as the number of a cell. `lean`:
    for a large value to which sums are cut, chosen with a preference for lower cells."""

    name: str
    quantile: Fraction
    lean: Lean | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True)
class QuantileEnd:
    """Low or high end of the error bar of `quantile`, released as the number of a cell. The exact quantile is beyond it with a
    probability of at most `missed`."""

    name: str
    quantile: Fraction
    low: bool
    missed: Fraction


class _InCells:
    """What is the same for all measurements of rows, or of samples, by the cells of `term`."""

    name: str
    term: Term

    @property
    def cells(self) -> int:
        return self.term.magnitude + 1

    @property
    def middle(self) -> int:
        return self.term.magnitude // 2

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the names of the numbers that are released for each group."""
        return (self.name,)


@dataclass(frozen=True)
class RankHistogram(_InCells):
    """Number of rows of each group with their `value` in each cell of a grid, and the quantiles that are chosen from it.

    `term` gives a row's cell: the integer that a SUM around the lower bound would add, from 0 to `term.magnitude`. So the grid
    follows from bounds alone, and rows without a value (NULL, NaN) or that do not satisfy the filter are in no cell. `slices`:
    number of slices into which a cell may be divided where several quantiles are chosen together.
    """

    name: str
    value: Expr
    term: Term
    quantiles: tuple[Quantile, ...]
    slices: int = 1
    ends: tuple[QuantileEnd, ...] = ()

    word = RANK_HISTOGRAM

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*(quantile.name for quantile in self.quantiles), *(end.name for end in self.ends))


@dataclass(frozen=True)
class SampleValues(RankHistogram):
    """Cell of a grid that holds the `value` of each sample of a group, and the quantiles that are chosen among samples.

    The units of a group are split into `samples` by a keyed hash. `value` is a row expression over statistics of a sample's rows
    (`functions.sample_statistics`); `term` gives its cell, between the bounds that the question names. A sample without a value
    (it has no rows, or the value is NULL, NaN or infinite) is in the cell `middle`. `by_unit`: all rows of a unit are in one
    sample; otherwise each row is assigned separately.
    """

    samples: int = 1
    by_unit: bool = True

    word = SAMPLE_VALUES


@dataclass(frozen=True)
class SampleMean(_InCells):
    """Cell of a grid that holds the `value` of each sample of a group, and the mean of the samples with noise, released as the
    sum of (cell - middle).

    `value`, `term`, `samples` and `by_unit` are as in `SampleValues`. An error bar is released that holds with `confidence`.
    `mechanism`: the requested noise, or "auto".
    """

    name: str
    value: Expr
    term: Term
    samples: int
    by_unit: bool
    confidence: Fraction
    mechanism: str = "auto"

    word = SAMPLE_MEAN

    @property
    def numbers(self) -> tuple[str, ...]:
        return (self.name, *ends_of(self.name))


@dataclass(frozen=True)
class MostFrequentValue(_InCells):
    """Number of rows of each group with their `value` in each cell of a list, and the most frequent value, released as its
    number.

    `term` gives a row's cell, as in `RankHistogram`.
    """

    name: str
    value: Expr
    term: Term

    word = MOST_FREQUENT


@dataclass(frozen=True)
class EndRows(_InCells):
    """Number of rows of each group with their `value` and `key` in each pair of cells, and the key that most rows at an end have,
    released as its number from 0 to `keys` - 1.

    `term` gives a row's pair of cells: (cell of the value) `keys` + (number of the key). `last`: the end of the large values.
    """

    name: str
    value: Expr
    key: Expr
    term: Term
    keys: int
    last: bool

    word = END_ROWS


@dataclass(frozen=True)
class LocalNumber(_InCells):
    """Number of rows of each group with their `value` in each cell of a grid, and the median of the group, or its `mean` on a
    grid 2**`finer` times as fine, with noise proportional to the most that one unit moves it in nearby data.

    `term` gives a row's cell, as in `RankHistogram`. `mechanism`: a word of `privacy.mechanisms.local_sensitivity`. For
    propose-test-release, `bound` steps are proposed, and an error bar is released that holds with `confidence`.
    """

    name: str
    value: Expr
    term: Term
    mechanism: str
    mean: bool = False
    finer: int = 0
    bound: int | None = None
    confidence: Fraction | None = None

    word = LOCAL_SENSITIVITY

    @property
    def numbers(self) -> tuple[str, ...]:
        return (self.name, *(ends_of(self.name) if self.mechanism == PROPOSED else ()))


MEASUREMENTS = (RANK_HISTOGRAM, MOST_FREQUENT, END_ROWS, SAMPLE_VALUES, SAMPLE_MEAN, LOCAL_SENSITIVITY)
"""Every word, for the test that every floor has a part for each."""
