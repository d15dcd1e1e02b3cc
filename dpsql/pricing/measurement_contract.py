"""Interface of pricing for measurements other than sums; `pricing.measurements` registers each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from dpsql.plan.formulas import Formula
from dpsql.plan.plan import Caps, Measure
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan, Sensitivity


@dataclass(frozen=True)
class ExplainedNumber:
    """One released number as EXPLAIN shows it.

    `aggregate`: what it is, as SQL-like text. `sensitivity` and `scale` are in rows of rank, `grid` is the distance of two values
    that may be released, in the unit of the answer. `error`: what is known of its error, in words.
    """

    aggregate: str
    mechanism: str
    sensitivity: Sensitivity
    scale: float
    grid: float
    error: str


class MeasuredBlock(Protocol):
    """The block that a number is entered in, as far as it decides how the number is measured.

    `measurements`: entered so far; an equal one is made once. `groups`: how many the answer has, as far as that is public.
    `one_row`: a unit has at most one row. `bars`: the confidence of the error bars of quantiles that are measured (None: there
    are none). `means`: what is asked of means of samples.
    """

    measurements: list[Any]
    groups: int
    one_row: bool
    bars: Fraction | None
    means: Any


Ends = tuple[Formula, Formula]
"""Both ends of an error bar that is measured beside a number."""
Request = Callable[[MeasuredBlock, Measure], tuple[Formula, Ends | None]]
"""Enters what a measure asks for in the block, and returns it as a formula over the released number, and the ends of its error
bar where there is one. Raises the refusal of a measure that cannot be measured so."""


class MeasurementPricing(Protocol):
    """The pricing part of one kind of measurement. Everything follows from SQL, policy and options."""

    def parts(self, measurement: Any) -> int:
        """Return how many parts of the question's budget the measurement takes."""

    def deltas(self, measurement: Any) -> int:
        """Return how many parts of the question's delta the measurement takes."""

    def planned(self, measurement: Any, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> MeasurementPlan:
        """Return its mechanisms, each of which costs at most one `part` (epsilon, or rho where epsilon is None, and delta for
        those that take one)."""

    def explained(self, measurement: Any, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return one of its released numbers for EXPLAIN, as `plan` makes it noisy."""

    def worst_error(self, measurement: Any, plan: Any, number: str, confidence: float) -> float:
        """Return by how many rows a released number may be off with a probability of at most 1 - `confidence`, whatever the data
        are: what `dp.target_error` bounds. 0 for ends of error bars, infinite where no such bound is known."""
