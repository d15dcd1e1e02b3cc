"""Interface of pricing for measurements other than sums; `pricing.measurements` registers each kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from dpsql.plan.formulas import Formula
from dpsql.plan.plan import Caps, Measure
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan, Sensitivity


@dataclass(frozen=True)
class ExplainedNumber:
    """One released number as shown by EXPLAIN.

    `aggregate`: the number as SQL-like text. `sensitivity` and `scale` are in rows of rank; `grid` is the distance between
    neighbouring values that may be released, in the unit of the answer. `error`: what is known about its error, in words.
    `aim`: the value that it would be exactly, if its error is known in rows of rank (`worst_error`); "" if it is not.
    """

    aggregate: str
    mechanism: str
    sensitivity: Sensitivity
    scale: float
    grid: float
    error: str
    aim: str = ""


class MeasuredBlock(Protocol):
    """The block in which a number is entered, as far as it affects how the number is measured.

    `measurements`: those entered so far; equal ones are entered once. `groups`: number of groups of the answer, as far as it is
    public. `one_row`: a unit has at most one row. `bars`: confidence of the error bars that are measured for quantiles (None: no
    error bars). `means`: options of means of samples.
    """

    measurements: list[Any]
    groups: int
    one_row: bool
    bars: Fraction | None
    means: Any


Ends = tuple[Formula, Formula]
"""Both ends of an error bar that is measured together with a number."""
Request = Callable[[MeasuredBlock, Measure], tuple[Formula, Ends | None]]
"""Function that enters the measurement of a measure in the block. Returns a formula over the released number, and the ends of its
error bar if it has one. Raises a refusal for a measure that cannot be measured this way."""


class MeasurementPricing(Protocol):
    """Pricing of one kind of measurement. Everything follows from SQL, policy and options."""

    def parts(self, measurement: Any) -> int:
        """Return the number of parts of the question's budget that the measurement takes."""

    def deltas(self, measurement: Any) -> int:
        """Return the number of parts of the question's delta that the measurement takes."""

    def planned(self, measurement: Any, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> MeasurementPlan:
        """Return the mechanisms of a measurement, each of which costs at most one `part` (epsilon, or rho where epsilon is None,
        and delta for mechanisms that use it)."""

    def explained(self, measurement: Any, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the description of one of the measurement's released numbers for EXPLAIN, with the noise of `plan`."""

    def worst_error(self, measurement: Any, plan: Any, number: str, confidence: float) -> float:
        """Return the number of rows by which a released number may be off with a probability of at most 1 - `confidence`,
        whatever the data are; `dp.target_error` limits it. 0 for ends of error bars, infinite where no such bound is known."""


class OneNumber:
    """The part of pricing that is the same for all measurements that are paid for once."""

    def parts(self, measurement: Any) -> int:
        """Return 1: one number, or one vector of numbers, is paid for."""
        return 1

    def deltas(self, measurement: Any) -> int:
        """Return 0: a choice needs no delta, and Gaussian noise is used only where rho is charged."""
        return 0

    def worst_error(self, measurement: Any, plan: Any, number: str, confidence: float) -> float:
        """Return infinity: no error in rows is known that holds whatever the data are."""
        return math.inf


def entered(measurements: list[Any], described: Any, letter: str) -> Any:
    """Return the measurement that is equal to `described`, which has no name. Where there is none, enter it in `measurements`,
    under a name that begins with `letter`."""
    alike = [measurement for measurement in measurements if isinstance(measurement, type(described))]
    for measurement in alike:
        if replace(measurement, name="", term=replace(measurement.term, name="")) == described:
            return measurement
    name = f"{letter}{len(alike)}"
    measurements.append(replace(described, name=name, term=replace(described.term, name=name)))
    return measurements[-1]
