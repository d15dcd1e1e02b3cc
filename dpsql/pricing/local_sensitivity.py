"""MEDIAN by smooth sensitivity, MEDIAN and AVG by propose-test-release as measurements: which questions may request them, their
grid, their cost, and their accuracy compared with `dp.mechanism = auto`."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.plan.expression_text import expression_text, with_filter
from dpsql.plan.formulas import Formula, NoisyValue, greatest, least, null_if
from dpsql.plan.measurements import LocalNumber
from dpsql.plan.plan import Caps, Literal, Measure
from dpsql.pricing.options import Options
from dpsql.pricing.rank_histograms import cell_term, explained_end
from dpsql.pricing.sensitivity import ExplainedNumber, MeasurementPricing, entered, rows_moved
from dpsql.privacy.loss import Neighbours, PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.exponential import choice_for
from dpsql.privacy.mechanisms.local_sensitivity import (
    PROPOSED,
    REFUSED,
    SMOOTH,
    LocalSensitivityPlan,
    ProposeTestRelease,
    SmoothSensitivity,
    ends_of,
    propose_for,
    smooth_for,
)
from dpsql.storage.records import dataclass, replace

WAYS = (SMOOTH, PROPOSED)
_MEDIAN = Fraction(1, 2)
_FINER = 12
"""Bits by which a mean's grid is finer than the cells of its histogram."""
_LIKELY = 0.95
_MORE_VALUES = "MEDIAN of numbers with three or more possible values and AVG of numbers with two or more"
"""With fewer values no distance can be proposed: it must be at least one step and less than all of them."""


@dataclass(frozen=True)
class LocalRequest:
    """Request of a question that names one of `WAYS`. `bound`: the proposed sensitivity, in the unit of the answer."""

    mechanism: str
    bound: Fraction | None
    confidence: Fraction


def requested(options: Options) -> LocalRequest | None:
    """Return the request in the options, None for another noise. Raises Refusal local_proposal, local_bars or local_delta."""
    if options.mechanism not in WAYS:
        return None
    if options.mechanism == PROPOSED and options.proposed_sensitivity is None:
        raise refuse("local_proposal")
    if options.mechanism == SMOOTH and options.quantile_bars:
        raise refuse("local_bars")
    if options.delta == 0:
        raise refuse("local_delta", mechanism=options.mechanism)
    return LocalRequest(options.mechanism, options.proposed_sensitivity, options.confidence)


def measured(
    measurements: list[Any], groups: int, measure: Measure, request: LocalRequest
) -> tuple[Formula, tuple[Formula, Formula] | None]:
    """Return a measure as a formula over its released number, with both ends of its error bar if it has one. A new measurement is
    entered in `measurements`; an equal one is used again. Raises Refusal local_measure or local_bound."""
    mean = measure.aggregate == "avg"
    if not _is_median(measure) and not (mean and request.mechanism == PROPOSED and not measure.distinct):
        may = "MEDIAN of numbers" if request.mechanism == SMOOTH else "MEDIAN and AVG of numbers"
        raise refuse("local_measure", mechanism=request.mechanism, may=may)
    value = measure.arguments[0]
    term = cell_term(value, measure.filter, groups)
    number = LocalNumber("", value, term, request.mechanism, mean, _FINER if mean else 0)
    if request.mechanism == PROPOSED:
        assert request.bound is not None
        bound = math.floor(request.bound * Fraction(2) ** (term.grid + number.finer))
        steps = term.magnitude << number.finer
        if steps <= 1:
            raise refuse("local_measure", mechanism=request.mechanism, may=_MORE_VALUES)
        if not 1 <= bound < steps:
            step, width = Fraction(2) ** -(term.grid + number.finer), Fraction(term.upper) - Fraction(term.lower)
            raise refuse(
                "local_bound", bound=plain_decimal(request.bound), least=_rounded_up(step), most=plain_decimal(width)
            )
        number = replace(number, bound=bound, confidence=request.confidence)
    number, ends = entered(measurements, number, "l"), None
    if number.mechanism == PROPOSED:
        low, high = ends_of(number.name)
        exact = term.magnitude == Fraction(term.upper) - Fraction(term.lower)  # every value has its own cell
        margin = 0.0 if exact else 2.0**-term.grid
        ends = (
            greatest(_value(number, low) - margin, float(term.lower)) + _null(low),
            least(_value(number, high) + margin, float(term.upper)) + _null(high),
        )
    return _value(number, number.name) + _null(number.name), ends


def _rounded_up(value: Fraction) -> str:
    """Return `value` in readable digits, rounded up so that a user may enter them."""
    text = plain_decimal(value)
    if Fraction(text) >= value:
        return text
    return str(Context(prec=6, rounding=ROUND_CEILING).divide(Decimal(value.numerator), Decimal(value.denominator)))


def _is_median(measure: Measure) -> bool:
    if measure.aggregate != "quantile_cont" or not measure.arguments[0].facts.type.numeric:
        return False
    quantile = measure.arguments[1]
    return isinstance(quantile, Literal) and Fraction(quantile.value) == _MEDIAN


def _value(number: LocalNumber, name: str) -> Formula:
    """Return the value that the released number `name` represents, within the bounds."""
    term = number.term
    return least(float(term.lower) + NoisyValue(name) * 2.0 ** -(term.grid + number.finer), float(term.upper))


def _null(name: str) -> Formula:
    """Return NULL where the number called `name` was refused, otherwise 0."""
    return null_if(NoisyValue(name), float(REFUSED)) * 0.0


class LocalNumberPricing(MeasurementPricing):
    """Pricing of numbers with noise by local sensitivity (`pricing.measurements`). No worst error is known: the width of the
    noise depends on the data, or there may be no answer at all."""

    def deltas(self, measurement: LocalNumber) -> int:
        return 1

    def planned(
        self, measurement: LocalNumber, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> LocalSensitivityPlan:
        """Return the least noise that costs at most its part. A unit adds at most linf rows to each of at most l0 groups."""
        rows = rows_moved(caps, neighbours)
        if measurement.mechanism == SMOOTH:
            return LocalSensitivityPlan(measurement.name, measurement.cells, smooth_for(rows, part))
        assert measurement.bound is not None and measurement.confidence is not None
        law = propose_for(rows, part, measurement.bound, measurement.mean, measurement.finer)
        width = math.ceil(law.noise.half_width(float(measurement.confidence)))
        return LocalSensitivityPlan(measurement.name, measurement.cells, law, width)

    def explained(self, measurement: LocalNumber, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the number, its accuracy, and the accuracy of the default mechanism for the same epsilon."""
        assert isinstance(plan, LocalSensitivityPlan)
        law = plan.law
        text = f"{'avg' if measurement.mean else 'median'} of {expression_text(measurement.value)}"
        text = with_filter(text, measurement.term.filter)
        step = 2.0 ** -(measurement.term.grid + measurement.finer)
        if (end := explained_end(plan, number, text, step)) is not None:
            return end
        if isinstance(law, SmoothSensitivity):
            rank = law.rank_error(1 - confidence)
            error = f"noise of secret scale, as wide as {rank:.4g} rows of rank in {confidence:.0%} of cases where values are "
            error += f"evenly spread; {_default_rank(law, plan.cells, confidence)}"
            return ExplainedNumber(text, rank / -math.log(1 - confidence), step, error)
        assert isinstance(law, ProposeTestRelease) and plan.width is not None
        scale = float(law.noise.noise_scale) * step
        error = f"within +/- {plan.width * step:.4g} in {confidence:.0%} of cases, or NULL; "
        error += (
            _mean_test(measurement, law, step, confidence)
            if law.mean
            else _median_test(law, plan.cells, step, confidence)
        )
        return ExplainedNumber(text, scale, step, error)


def _default_rank(law: SmoothSensitivity | ProposeTestRelease, cells: int, confidence: float) -> str:
    """Describe the accuracy of choosing a median at the same epsilon."""
    epsilon = PrivacyLoss(law.epsilon_0 * law.sensitivity.l0, Fraction(0), None)
    rank = choice_for(law.sensitivity, _MEDIAN, cells, epsilon).rank_error(cells, 1 - confidence)
    return f"dp.mechanism = auto is off by at most {rank:.4g} rows in the worst case, without delta"


def _median_test(law: ProposeTestRelease, cells: int, step: float, confidence: float) -> str:
    units = law.passing_distance(1 - _LIKELY)
    rows = (units + 1) * law.sensitivity.linf
    return (
        f"NULL in {1 - _LIKELY:.0%} of cases or more unless the {rows:,} values around the median lie within "
        f"{law.bound * step:.4g} of each other; {_default_rank(law, cells, confidence)}"
    )


def _mean_test(measurement: LocalNumber, law: ProposeTestRelease, step: float, confidence: float) -> str:
    """Describe from how many rows on a mean is answered, and the accuracy of the default for a group of that size: Laplace noise
    on the sum of the values above one of their bounds, divided by the number of rows."""
    rows, last = law.sensitivity.linf, measurement.term.magnitude << law.finer
    enough = -(-last * rows // law.bound) + law.passing_distance(1 - _LIKELY) * rows
    epsilon = float(law.epsilon_0 * law.sensitivity.l0)
    default = last * step * law.sensitivity.l1 / epsilon / enough * -math.log(1 - confidence)
    return (
        f"NULL in {1 - _LIKELY:.0%} of cases or more in groups of fewer than {enough:,} rows; in a group of so many "
        f"dp.mechanism = auto is within about +/- {default:.3g}, without delta"
    )
