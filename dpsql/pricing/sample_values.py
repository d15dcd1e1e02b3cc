"""SAMPLE_AGGREGATE as a measurement: the grid of the samples' values, what the choice costs, and what is known of its error."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.plan.expression_text import expression_text
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import RankHistogram, SampleValues
from dpsql.plan.plan import Caps, Column, Expr, Term, TermKind
from dpsql.pricing.list_cells import MOST_CELLS
from dpsql.pricing.measurement_contract import ExplainedNumber
from dpsql.pricing.rank_histograms import RankHistogramPricing, cell_value, chosen_of, end_values, with_ends
from dpsql.pricing.sensitivity import sensitivity
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.sample_values import SampleValuesPlan, enough_samples, entries_moved

VALUE = "value"
"""The column that holds the value of a sample, from which its cell is computed."""
_BITS = 16
"""A grid has from 2**15 to 2**16 steps: one of them is a three-hundredth of a per cent of the range at most."""
_MEDIAN = Fraction(1, 2)


def measured(
    measurements: list[Any],
    groups: int,
    value: Expr,
    bounds: tuple[Fraction, Fraction],
    samples: int,
    by_unit: bool,
    bars: Fraction | None,
) -> tuple[Formula, tuple[Formula, Formula] | None]:
    """The median of the samples' values as a formula over its released number, and both ends of its error bar at the confidence
    `bars`. An equal measurement in `measurements` is made once. Raises Refusal many_samples for too many `samples` in so many
    `groups`."""
    if samples * max(1, groups) > MOST_CELLS:
        raise refuse("many_samples", groups=groups, samples=samples, most=MOST_CELLS // max(1, groups))
    low, high = bounds
    column = Column(VALUE, Facts(Type.REAL, low, high))
    term, _ = summed(column, None, low, _BITS)
    requested = SampleValues("", value, term, (), samples=samples, by_unit=by_unit)
    name, term = chosen_of(measurements, requested, _MEDIAN)
    ends = None if bars is None else end_values(column, term, with_ends(measurements, name, bars))
    return cell_value(column, term, name, False)[0], ends


class SampleValuesPricing(RankHistogramPricing):
    """The pricing part of samples' values (`pricing.measurements`)."""

    def moved(self, measurement: RankHistogram, caps: Caps, neighbours: Neighbours) -> Sensitivity:
        """Return how far one unit moves the vector of entries: two for each sample of a group that it is in."""
        assert isinstance(measurement, SampleValues)
        kind = TermKind.UNITS if measurement.by_unit else TermKind.COUNT
        return entries_moved(sensitivity(Term("", kind, None, None, 1), caps, neighbours))

    def planned(
        self, measurement: RankHistogram, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> SampleValuesPlan:
        """The same choices as of a histogram of rows, among samples (`privacy.mechanisms.sample_values`)."""
        assert isinstance(measurement, SampleValues)
        plan = super().planned(measurement, caps, part, neighbours)
        return SampleValuesPlan(
            plan.name, plan.cells, plan.quantiles, plan.slices, plan.ends, measurement.samples, measurement.middle
        )

    def explained(self, measurement: RankHistogram, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """The median of the samples' values: in how many samples it may be wrong in the worst case, and which number of samples
        would keep that small."""
        assert isinstance(measurement, SampleValues)
        choice = next(choice for choice in (*plan.quantiles, *plan.ends) if choice.name == number)
        law = choice.law
        assert isinstance(law, Choice)
        text = f"{expression_text(measurement.value)} of {measurement.samples} samples"
        if law.padding:
            text = f"{'low' if law.padding < 0 else 'high'} end of the error bar of {text}"
            error = f"sought {abs(law.padding)} samples from the median"
        else:
            text = f"median of {text}"
            rank, enough = law.rank_error(plan.cells, 1 - confidence), enough_samples(law, plan.cells, 1 - confidence)
            error = f"rank error of at most {rank:.4g} of {measurement.samples} samples in {confidence:.0%} of cases"
            error += " in the worst case"
            if measurement.samples < enough:
                error += f" (from {enough} samples on it stays among the middle half of them)"
        scale = float(1 / law.rate)
        return ExplainedNumber(
            text,
            law.mechanism,
            law.sensitivity,
            scale,
            2.0**-measurement.term.grid,
            f"{error}, over {plan.cells} cells",
        )

    def worst_error(self, measurement: RankHistogram, plan: Any, number: str, confidence: float) -> float:
        """None is known in rows: how far samples are from all rows follows from the data."""
        return math.inf
