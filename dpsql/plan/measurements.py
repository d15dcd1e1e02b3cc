"""Measurements of other kinds than sums, and the registers in which every floor has its part of them.

A measurement is a frozen description in a plan, under a word. What becomes of it is registered under that word, floor by
floor, so that no floor knows a higher one: `pricing.measurements` (price and error), `engine.emit.measurements` (what the
engine counts), `noise.measurements` (from exact to noisy), `reuse.measurements` (what is stored). To add one, write its
description and its part for each floor, and enter each part in its floor's register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from dpsql.errors.exceptions import refuse
from dpsql.plan.plan import Expr, Term
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM

Part = TypeVar("Part")


class Register(Generic[Part]):
    """The parts that one floor has for measurements, by word."""

    def __init__(self, floor: str, parts: Mapping[str, Part]) -> None:
        self.floor = floor
        self._parts = dict(parts)

    def of(self, word: str) -> Part:
        """The part for measurements called `word`. Raises InternalError when there is none: nothing is guessed."""
        if word not in self._parts:
            raise refuse("internal", what=f"{self.floor} does not know the measurement {word}")
        return self._parts[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)


@dataclass(frozen=True)
class Quantile:
    """The value below which the share `quantile` (from 0 to 1) of a group's values lies, released as the number of a cell."""

    name: str
    quantile: Fraction


@dataclass(frozen=True)
class RankHistogram:
    """How many rows of each group have their `value` in each cell of a grid, and the quantiles that are chosen from it.

    `term` gives a row's cell: the integer that a SUM around the lower end of the bounds would add, from 0 to
    `term.magnitude`. So the grid follows from bounds alone, and rows without a value (NULL, NaN) or that do not pass the
    filter are in no cell.
    """

    name: str
    value: Expr
    term: Term
    quantiles: tuple[Quantile, ...]

    word = RANK_HISTOGRAM

    @property
    def cells(self) -> int:
        """How many cells a group has."""
        return self.term.magnitude + 1

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of what is released for each group."""
        return tuple(quantile.name for quantile in self.quantiles)


MEASUREMENTS = (RANK_HISTOGRAM,)
"""Every word, for the test that no floor lacks a part."""
