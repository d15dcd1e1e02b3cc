"""SAMPLE_AGGREGATE as a measurement: the grid of the samples' values, the cost of the choice, and what is known about its
error."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpsql.aggregates.sample_aggregate import bounds_and_samples
from dpsql.errors.exceptions import refuse
from dpsql.plan.expression_text import expression_text
from dpsql.plan.formulas import Formula, NoisyValue, greatest, least
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import RankHistogram, SampleMean, SampleValues
from dpsql.plan.plan import Caps, Column, Measure, Term, TermKind
from dpsql.pricing.rank_histograms import (
    MOST_CELLS,
    RankHistogramPricing,
    cell_value,
    chosen_of,
    end_values,
    explained_end,
    with_ends,
)
from dpsql.pricing.sensitivity import (
    Ends,
    ExplainedNumber,
    MeasuredBlock,
    MeasurementPricing,
    entered,
    sensitivity,
)
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice, choice_for
from dpsql.privacy.mechanisms.local_sensitivity import ends_of
from dpsql.privacy.mechanisms.registry import MECHANISMS, askable
from dpsql.privacy.mechanisms.sample_values import (
    NoisySampleMean,
    SampleMeanPlan,
    SampleValuesPlan,
    bar_steps,
    enough_samples,
    entries_moved,
    sum_moved,
)
from dpsql.storage.records import dataclass

VALUE = "value"
"""Column that holds the value of a sample, from which its cell is computed."""
_BITS = 16
"""A grid has from 2**15 to 2**16 steps: one step is at most a three-hundredth of a per cent of the range."""
_MEDIAN = Fraction(1, 2)


@dataclass(frozen=True)
class MeanRequest:
    """Options of means of samples: the confidence of their error bars, and `dp.mechanism`."""

    confidence: Fraction = Fraction(19, 20)
    mechanism: str = "auto"


def _grid(groups: int, bounds: tuple[Fraction, Fraction], samples: int) -> tuple[Column, Term]:
    """Return the column of the samples' values, and the term that gives their cells. Raises Refusal many_samples."""
    if samples * max(1, groups) > MOST_CELLS:
        raise refuse("many_samples", groups=groups, samples=samples, most=MOST_CELLS // max(1, groups))
    low, high = bounds
    column = Column(VALUE, Facts(Type.REAL, low, high))
    return column, summed(column, None, low, _BITS)[0]


def requested(block: MeasuredBlock, measure: Measure) -> tuple[Formula, Ends | None]:
    """Return the median of the samples' values, chosen among the cells of a grid between their bounds, as a formula over its
    released number, and both ends of its error bar if the block asks for error bars. A new measurement is entered in the block;
    an equal one is used again. Raises Refusal many_samples for too many samples for the number of groups."""
    bounds, samples = bounds_and_samples(measure)
    column, term = _grid(block.groups, bounds, samples)
    described = SampleValues("", measure.arguments[0], term, (), samples=samples, by_unit=not block.one_row)
    name, term = chosen_of(block.measurements, described, _MEDIAN)
    ends = None if block.bars is None else end_values(column, term, with_ends(block.measurements, name, block.bars))
    return cell_value(column, term, name, False)[0], ends


def requested_mean(block: MeasuredBlock, measure: Measure) -> tuple[Formula, Ends]:
    """Return the mean of the samples' values with noise as a formula over its released number, and both ends of its error bar.
    Otherwise like `requested`.

    A sample's value is less than one grid step above that of its cell, and the noisy sum is rounded down.
    """
    bounds, samples = bounds_and_samples(measure)
    term, request = _grid(block.groups, bounds, samples)[1], block.means
    mean = SampleMean("", measure.arguments[0], term, samples, not block.one_row, request.confidence, request.mechanism)
    mean = entered(block.measurements, mean, "s")
    step, (least_value, most_value) = 2.0**-term.grid, map(float, bounds)
    numbers = (
        least_value + (mean.middle + NoisyValue(number) * (1 / samples)) * step
        for number in (mean.name, *ends_of(mean.name))
    )
    middle, low, high = numbers
    return (
        greatest(least(middle, most_value), least_value),
        (greatest(low, least_value), least(high + step, most_value)),
    )


def _touched(measurement: SampleValues | SampleMean, caps: Caps, neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of the vector of n_g (`privacy.mechanisms.sample_values`)."""
    kind = TermKind.UNITS if measurement.by_unit else TermKind.COUNT
    return sensitivity(Term("", kind, None, None, 1), caps, neighbours)


class SampleValuesPricing(RankHistogramPricing):
    """Pricing of samples' values (`pricing.measurements`)."""

    def moved(self, measurement: RankHistogram, caps: Caps, neighbours: Neighbours) -> Sensitivity:
        """Return how far one unit moves the vector of entries: two for each sample of a group that contains the unit."""
        assert isinstance(measurement, SampleValues)
        return entries_moved(_touched(measurement, caps, neighbours))

    def planned(
        self, measurement: RankHistogram, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> SampleValuesPlan:
        """Return the choices of a histogram of rows, made among samples (`privacy.mechanisms.sample_values`)."""
        assert isinstance(measurement, SampleValues)
        plan = super().planned(measurement, caps, part, neighbours)
        return SampleValuesPlan(
            plan.name, plan.cells, plan.quantiles, plan.slices, plan.ends, measurement.samples, measurement.middle
        )

    def explained(self, measurement: RankHistogram, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the samples' median: by how many samples it may be wrong in the worst case, and with how many that is small."""
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
        return ExplainedNumber(text, scale, 2.0**-measurement.term.grid, f"{error}, over {plan.cells} cells")

    def worst_error(self, measurement: RankHistogram, plan: Any, number: str, confidence: float) -> float:
        """Return infinity, because no error in rows is known: the distance of samples from all rows depends on the data."""
        return math.inf


class SampleMeanPricing(MeasurementPricing):
    """Pricing of means of samples (`pricing.measurements`). No worst error is known, as for the median of samples."""

    def planned(self, measurement: SampleMean, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> SampleMeanPlan:
        """Return additive noise with the least expected error that costs at most one part: Laplace noise where epsilon is
        charged; where rho is charged, also Gaussian noise, or the requested mechanism."""
        touched, steps = _touched(measurement, caps, neighbours), measurement.term.magnitude
        noise = _noise(sum_moved(touched, steps), part, measurement.mechanism)
        width = bar_steps(noise, measurement.confidence)
        law = NoisySampleMean(touched, steps, noise)
        median = choice_for(entries_moved(touched), _MEDIAN, steps + 1, part)
        return SampleMeanPlan(measurement.name, steps + 1, law, measurement.samples, measurement.middle, width, median)

    def explained(self, measurement: SampleMean, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the mean of the samples' values, its accuracy whatever these are, and the accuracy of their median."""
        assert isinstance(plan, SampleMeanPlan)
        law, step = plan.law, 2.0**-measurement.term.grid / measurement.samples
        text = f"mean of {expression_text(measurement.value)} of {measurement.samples} samples"
        if (end := explained_end(plan, number, text, step)) is not None:
            return end
        width = law.noise.half_width(confidence) * step
        error = f"within +/- {width:.4g} of the mean of the samples in {confidence:.0%} of cases"
        return ExplainedNumber(
            text,
            float(law.noise.noise_scale * Fraction(2) ** law.noise.shift) * step,
            step,
            error + _other_way(plan, confidence),
        )


def _noise(moved: Sensitivity, part: PrivacyLoss, word: str) -> Noise:
    """Return the noise with the least expected error that costs at most `part`, of the mechanism `word` where rho allows it."""
    if part.epsilon is not None:
        return MECHANISMS["laplace"].calibrated("epsilon", moved, part.epsilon)
    assert part.rho is not None
    mechanisms = [mechanism for mechanism in askable() if "rho" in (mechanism.calibrations or {})]
    named = [mechanism for mechanism in mechanisms if mechanism.word == word]
    noises = [mechanism.calibrated("rho", moved, part.rho) for mechanism in named or mechanisms]
    return min(noises, key=lambda noise: noise.expected_error())


def _other_way(plan: SampleMeanPlan, confidence: float) -> str:
    """Describe the accuracy of the samples' median at the same price; "" for a stored mean."""
    if plan.median is None:
        return ""
    rank = plan.median.rank_error(plan.cells, 1 - confidence)
    enough = enough_samples(plan.median, plan.cells, 1 - confidence)
    text = f"; without 'mean' the median would have a rank error of at most {rank:.4g} of {plan.samples} samples"
    if plan.samples < enough:
        text += f", and stay among the middle half of them from {enough} samples on"
    return text
