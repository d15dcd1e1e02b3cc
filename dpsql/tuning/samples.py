"""Advice on SAMPLE_AGGREGATE: whether to combine samples by their median or their mean, and how many samples to take.

Everything follows from text, policy and options, so that it costs nothing: the median errs by a number of samples that depends on
epsilon alone (`Choice.rank_error`), the mean by the noise of one sample's share. How far the samples differ from each other is
private and is not looked at; the number of rows of a group is taken from `dp.assume_rows`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpsql.plan.expression_text import expression_text
from dpsql.plan.measurements import Quantile, SampleMean, SampleValues
from dpsql.plan.plan import BoundedBlock
from dpsql.planning.planner import Planned, Planner
from dpsql.pricing.pricing import price
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.sample_values import SampleMeanPlan, SampleValuesPlan, enough_samples

LEAST_ROWS = 10
"""Number of rows that a sample should have: with fewer, most statistics mean little."""
_NUMBERS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_LIKELY = 0.95


@dataclass(frozen=True)
class SampleChoice:
    """The accuracy with `samples` samples. `rows`: rows of each sample in a group of `dp.assume_rows` rows. `rank_error`: the
    share of the samples by which the median may be off in rank in 95 % of cases, whatever the data (from 0.5 on it may be any
    value). `mean_error`: the half width of a 95 % error bar of the mean's noise, in the unit of the answer. `recommended`:
    "median", "mean" or ""."""

    samples: int
    rows: float
    rank_error: float
    mean_error: float
    recommended: str = ""


@dataclass(frozen=True)
class SampleTable:
    """The choices for one SAMPLE_AGGREGATE. `samples`, `combined`: the number of samples in the question, and how it combines
    them. `enough`: the number of samples from which on the median stays among the middle half of them."""

    statistic: str
    samples: int
    combined: str
    enough: int
    choices: tuple[SampleChoice, ...]

    @property
    def recommended(self) -> SampleChoice | None:
        """The recommended choice, None if there is none."""
        return next((choice for choice in self.choices if choice.recommended), None)


def sample_tables(planned: Planned, planner: Planner) -> tuple[SampleTable, ...]:
    """Return a table for each SAMPLE_AGGREGATE of a planned question, at the question's price."""
    blocks = tuple(priced.block for priced in planned.price.blocks)
    if not any(_is_sampled(measurement) for block in blocks for measurement in block.measurements):
        return ()
    options = replace(planned.options, quantile_bars=False)
    medians, means = (
        price(
            tuple(_combined(block, combination, options) for block in blocks),
            options,
            planner.policy,
            planner.accountant,
        )
        for combination in (_as_median, _as_mean)
    )
    tables = []
    for as_medians, as_means in zip(medians.blocks, means.blocks, strict=True):
        by_name = {plan.name: plan for plan in as_means.noise.measurements}
        requested = next(block for block in blocks if block.name == as_medians.block.name)
        measurements: dict[str, Any] = {measurement.name: measurement for measurement in requested.measurements}
        for plan in as_medians.noise.measurements:
            mean, measurement = by_name[plan.name], measurements[plan.name]
            if isinstance(plan, SampleValuesPlan) and isinstance(mean, SampleMeanPlan):
                tables.append(_table(measurement, plan, mean, int(options.assume_rows)))
    return tuple(tables)


def _is_sampled(measurement: Any) -> bool:
    return isinstance(measurement, (SampleValues, SampleMean))


def _combined(block: BoundedBlock, combination: Any, options: Any) -> BoundedBlock:
    """Return the block with `combination` applied to each of its combinations of samples."""
    changed = (
        combination(measurement, options) if _is_sampled(measurement) else measurement
        for measurement in block.measurements
    )
    return replace(block, measurements=tuple(changed))


def _as_median(measurement: SampleValues | SampleMean, options: Any) -> SampleValues:
    quantiles = (Quantile(f"{measurement.name}q0", Fraction(1, 2)),)
    return SampleValues(
        measurement.name,
        measurement.value,
        measurement.term,
        quantiles,
        samples=measurement.samples,
        by_unit=measurement.by_unit,
    )


def _as_mean(measurement: SampleValues | SampleMean, options: Any) -> SampleMean:
    confidence = Fraction(options.confidence)
    return SampleMean(
        measurement.name,
        measurement.value,
        measurement.term,
        measurement.samples,
        measurement.by_unit,
        confidence,
        options.mechanism,
    )


def _table(
    measurement: SampleValues | SampleMean, median: SampleValuesPlan, mean: SampleMeanPlan, rows: int
) -> SampleTable:
    law = median.quantiles[0].law
    assert isinstance(law, Choice)
    rank, enough = law.rank_error(median.cells, 1 - _LIKELY), enough_samples(law, median.cells, 1 - _LIKELY)
    width = mean.law.noise.half_width(_LIKELY) * 2.0**-measurement.term.grid
    numbers = sorted({*(number for number in _NUMBERS if number * LEAST_ROWS <= rows), enough, measurement.samples})
    best = _recommended(rows, enough)
    choices = tuple(
        SampleChoice(
            number, rows / number, rank / number, width / number, best[1] if best and best[0] == number else ""
        )
        for number in sorted({*numbers, *([best[0]] if best else [])})
    )
    combined = "mean" if isinstance(measurement, SampleMean) else "median"
    return SampleTable(expression_text(measurement.value), measurement.samples, combined, enough, choices)


def _recommended(rows: int, enough: int) -> tuple[int, str] | None:
    """Return a number of samples for a group of `rows` rows, and how to combine them: the median of `enough` samples if each gets
    `LEAST_ROWS` rows, else the mean of as many samples as get that; None for fewer than 2 samples."""
    if enough * LEAST_ROWS <= rows:
        return enough, "median"
    most = math.floor(rows / LEAST_ROWS)
    return (most, "mean") if most >= 2 else None
