"""Quantiles as measurements: which cells a histogram has, what it costs, what is known of its error (privacy.md 4).

The grid follows from the bounds of the value and from the number of public groups, never from data: every integer (day,
second) where they are few, otherwise equal cells whose width is a power of two.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.functions.calendar import microseconds
from dpsql.functions.numeric import call
from dpsql.plan.expression_text import expression_text
from dpsql.plan.formulas import Formula, date, formula, least, timestamp, whole
from dpsql.plan.intervals import Type, literal_facts
from dpsql.plan.measurements import Quantile, RankHistogram
from dpsql.plan.plan import Caps, Expr, Literal, Term, TermKind
from dpsql.pricing.measurement_contract import ExplainedNumber
from dpsql.pricing.sensitivity import sensitivity
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.loss import Neighbours, PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.contract import Law, MeasurementPlan
from dpsql.privacy.mechanisms.exponential import Choice, choice_for
from dpsql.privacy.mechanisms.rank_histogram import QuantileChoice, RankHistogramPlan

MOST_CELLS = 1 << 24
"""Cells of all groups together at most: so many rows the engine may return, whatever the data."""
LEAST_CELLS = 1 << 8
"""Cells of a group at least: with fewer, what is chosen says too little."""
_WANTED, _FINE, _FINEST = 1 << 18, 1 << 12, 1 << 16
"""Cells of equal width: so many in all, if that leaves each group from `_FINE` to `_FINEST` of them. The engine's time follows
how many are not empty: at 3 million rows and 50 groups it takes 1.8 times as long for 780,000 as for 200,000."""
_MOST_INTEGERS = 1 << 17
"""Every integer is a cell of its own up to this many."""
PRIVATE_GROUPS = 1 << 8
"""Private groups are taken to be so many: their number is not known, and what the engine returns is no longer than the data."""


def cell_term(value: Expr, condition: Expr | None, groups: int) -> Term:
    """The SUM term whose integers are the cells of a bounded value: 0 at its lower bound.

    Raises Refusal many_cells where `groups` leave too few cells.
    """
    steps = _steps(value)
    most = MOST_CELLS // max(1, groups)
    if most < LEAST_CELLS:
        raise refuse("many_cells", groups=groups, least=LEAST_CELLS, most=MOST_CELLS)
    low, high = Fraction(steps.facts.lower), Fraction(steps.facts.upper)
    whole = steps.facts.type is Type.INTEGER
    if whole and high - low < min(most, _MOST_INTEGERS):
        lower, upper = int(low), int(high)
        return Term("", TermKind.SUM, steps, condition, upper - lower, 0, lower, upper, lower)
    each = min(most, max(_FINE, min(_FINEST, _WANTED // max(1, groups))))
    real = call("to_real", steps) if whole else steps
    return summed(real, condition, low, each.bit_length() - 1)[0]


def _steps(value: Expr) -> Expr:
    """A bounded value as a number: of a date the days since its lower bound, of a timestamp the seconds."""
    if not value.facts.type.temporal:
        return value
    unit = "day" if value.facts.type is Type.DATE else "second"
    return call("date_diff", _literal(unit), _literal(value.facts.lower), value)


def _rank(law: Choice) -> str:
    """Which value stands for the smallest or the largest."""
    side = "smallest" if law.quantile == 0 else "largest"
    return f"the {side} value number {law.rank}, so that it lies inside the data; " if law.rank else ""


def _literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


def cell_value(value: Expr, term: Term, name: str, interpolated: bool) -> tuple[Formula, Type]:
    """What the number of a cell stands for, a value within the bounds, and its type. `name`: of the released number.

    `interpolated`: in the type of SQL's continuous quantiles, which are reals of numbers and timestamps of dates.
    """
    low, high = float(term.lower), float(term.upper)
    moved = least(low + formula(name) * 2.0**-term.grid, high)
    kind = value.facts.type
    if kind.temporal:
        day = 86_400
        start = microseconds(value.facts.lower) / 10**6
        if kind is Type.TIMESTAMP or interpolated:
            return timestamp(start + moved * (1 if kind is Type.TIMESTAMP else day)), Type.TIMESTAMP
        return date(start / day + moved), Type.DATE
    if kind is Type.INTEGER and not interpolated and max(abs(low), abs(high)) < 2**53:
        return whole(moved), Type.INTEGER
    return moved, Type.REAL


def measured(
    measurements: list[Any], groups: int, value: Expr, condition: Expr | None, quantile: Fraction
) -> tuple[str, Term]:
    """The column of a quantile's released numbers, and the term that gives its cells. An equal one in `measurements` is
    measured once, a new one is entered there. `groups`: of the answer."""
    term = cell_term(value, condition, groups)
    known = [one for one in measurements if isinstance(one, RankHistogram)]
    histogram = next((one for one in known if (one.value, replace(one.term, name="")) == (value, term)), None)
    if histogram is None:
        name = f"h{len(known)}"
        histogram = RankHistogram(name, value, replace(term, name=name), ())
        measurements.append(histogram)
    chosen = next((one for one in histogram.quantiles if one.quantile == quantile), None)
    if chosen is None:
        chosen = Quantile(f"{histogram.name}q{len(histogram.quantiles)}", quantile)
        whole = replace(histogram, quantiles=(*histogram.quantiles, chosen))
        measurements[measurements.index(histogram)] = whole
    return chosen.name, histogram.term


class RankHistogramPricing:
    """The pricing part of rank histograms (`pricing.measurements`)."""

    def parts(self, measurement: RankHistogram) -> int:
        """One for each quantile: they are chosen apart."""
        return len(measurement.quantiles)

    def planned(
        self, measurement: RankHistogram, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> MeasurementPlan:
        """A unit adds n_g rows to group g, wherever they are: that is how far it moves a count of all rows. So the vector of
        n_g has the norms of a COUNT's sensitivity, which `exponential` turns into a loss."""
        rows = sensitivity(Term("", TermKind.COUNT, None, None, 1), caps, neighbours)
        choices = tuple(
            QuantileChoice(one.name, one.quantile, choice_for(rows, one.quantile, measurement.cells, part))
            for one in measurement.quantiles
        )
        return RankHistogramPlan(measurement.name, measurement.cells, choices)

    def explained(self, measurement: RankHistogram, number: str, law: Law, confidence: float) -> ExplainedNumber:
        """The quantile, and its rank error in the worst case: how many rows lie between it and the exact one."""
        assert isinstance(law, Choice)
        quantile = next(one.quantile for one in measurement.quantiles if one.name == number)
        rank = law.rank_error(measurement.cells, 1 - confidence)
        text = f"quantile {plain_decimal(quantile)} of {expression_text(measurement.value)}"
        if measurement.term.filter is not None:
            text += f" filter (where {expression_text(measurement.term.filter)})"
        return ExplainedNumber(
            text,
            law.mechanism,
            law.sensitivity,
            float(1 / law.rate),
            2.0**-measurement.term.grid,
            f"{_rank(law)}rank error of at most {rank:.4g} rows in {confidence:.0%} of cases in the worst case, over "
            f"{measurement.cells} cells",
        )
