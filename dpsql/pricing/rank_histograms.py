"""Quantiles as measurements: the cells of a histogram, its cost and its error (privacy.md 4).

The grid follows from the bounds of the value and from the number of public groups, never from data: one cell for every integer
(day, second) where these are few, otherwise equal cells whose width is a power of two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import call
from dpsql.functions.public_domains import listed, place_of
from dpsql.functions.values import microseconds, midnight
from dpsql.plan.expression_text import expression_text, with_filter
from dpsql.plan.formulas import Element, Formula, date, formula, greatest, least, timestamp, whole
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import Quantile, QuantileEnd, RankHistogram
from dpsql.plan.plan import Call, Caps, Expr, Literal, Term, TermKind, literal
from dpsql.pricing.sensitivity import ExplainedNumber, MeasurementPricing, rows_moved
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.loss import Neighbours, PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import OUTSIDE, Choice, Lean, choice_for, end_for, leaning_choice
from dpsql.privacy.mechanisms.local_sensitivity import ends_of
from dpsql.privacy.mechanisms.rank_histogram import (
    EndChoice,
    QuantileChoice,
    RankHistogramPlan,
    Search,
    recursion,
    split,
)
from dpsql.storage.records import replace

# --- cells of lists ---------------------------------------------------------------------------------------------------

# Cells of values that come from a list: one for each value, in SQL's order.

MOST_CELLS = 1 << 24
"""Most cells of all groups together: the engine may return that many rows, whatever the data."""


def listed_term(value: Expr, values: tuple[Any, ...], condition: Expr | None, groups: int) -> Term:
    """Return the SUM term whose integers are the numbers of values in their list. Raises Refusal many_cells."""
    if len(values) * max(1, groups) > MOST_CELLS:
        raise refuse("many_cells", groups=groups, least=len(values), most=MOST_CELLS)
    last = len(values) - 1
    return Term("", TermKind.SUM, place_of(value, values), condition, last, 0, 0, last, 0)


def released_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a list in the types of an answer: exact fractions become doubles."""
    return tuple(float(value) if isinstance(value, Fraction) else value for value in values)


# --- rank histograms --------------------------------------------------------------------------------------------------

LEAST_CELLS = 1 << 8
"""Least number of cells of a group: with fewer, a choice says too little."""
_WANTED, _FINE, _FINEST = 1 << 20, 1 << 12, 1 << 16
"""Number of cells of equal width: `_WANTED` in total, if that leaves each group between `_FINE` and `_FINEST` of them. Medians
of 50 groups of 20,000 rows, row level, epsilon 1: 1.6 times the error of the noise alone and 150 ms of processor time; 5.1 times
and 82 ms with a quarter of these cells, 1.15 times and 190 ms with twice as many."""
_MOST_INTEGERS = 1 << 17
"""Up to this many integers, each is a separate cell."""
_MOST_PERIODS = 128
"""Most periods that are cells; the engine compares each row's value with all of them."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 7 * 86_400}
"""Seconds of the units in which dates and times are counted."""
_SLICES = ((1 << 4, 1 << 6), (1 << 10, 1 << 4), (math.inf, 1 << 2))
"""Pairs of a number of groups and the slices per cell up to it, where quantiles are chosen together: ranks within a value are
wrong by at most one slice. They are many where there are few groups, because slices determine the time of a choice."""
PRIVATE_GROUPS = 1 << 8
"""Assumed number of private groups: the actual number is unknown, and the engine returns no more cells than there are rows."""


def cell_term(value: Expr, condition: Expr | None, groups: int) -> Term:
    """Return the SUM term whose integers are the cells of a bounded value: 0 at its lower bound.

    Raises Refusal many_cells where `groups` leave too few cells.
    """
    if value.facts.type not in (Type.INTEGER, Type.REAL) and not value.facts.type.temporal:
        return listed_term(value, listed(value) or (), condition, groups)
    steps = steps_of(value)
    if values := periods(value):
        ends = [literal(_step(value, end)) for end in (values[0], values[-1])]
        index = place_of(call("clamp", steps, *ends), tuple(_step(value, period) for period in values))
        last = len(values) - 1
        return Term("", TermKind.SUM, index, condition, last, 0, 0, last, 0)
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


def periods(value: Expr) -> tuple[Any, ...]:
    """Return the months, quarters or other starts of periods that a computed date or time can be, if they are few: the chosen
    value is then one of them. Empty for all other values."""
    if not value.facts.type.temporal or not isinstance(value, Call):
        return ()
    values = listed(value) or ()
    return values if len(values) <= _MOST_PERIODS else ()


def _step(value: Expr, moment: Any) -> int:
    """Return `moment` in the unit of `steps_of(value)`."""
    return (microseconds(moment) - microseconds(value.facts.lower)) // (10**6 * _SECONDS[_unit_of(value)])


def steps_of(value: Expr) -> Expr:
    """Return a bounded value as a number: for a date the days since its lower bound, for a timestamp the seconds, for a result of
    `date_trunc` the weeks, days, hours or minutes, so that the chosen value is the start of one."""
    if not value.facts.type.temporal:
        return value
    return call("date_diff", literal(_unit_of(value)), literal(value.facts.lower), value)


def _unit_of(value: Expr) -> str:
    """Return the unit in which `steps_of` counts a date or time. date_trunc's values are whole units from its lower bound."""
    if isinstance(value, Call) and value.function == "date_trunc":
        unit = value.arguments[0]
        if isinstance(unit, Literal) and unit.value in _SECONDS:
            return str(unit.value)
    return "day" if value.facts.type is Type.DATE else "second"


def _rank(law: Choice) -> str:
    """Return words for the value that is released as the smallest or the largest, "" for other quantiles."""
    side = "smallest" if law.quantile == 0 else "largest"
    inside = f"inside the data in at least {100 - 100 * OUTSIDE}% of cases"
    return f"the {side} value number {law.rank}, {inside}; " if law.rank else ""


def cell_value(value: Expr, term: Term, name: str, interpolated: bool) -> tuple[Formula, Type]:
    """Return the value, within the bounds, that the number of a cell represents, and its type. `name`: name of the released
    number.

    `interpolated`: use the type of SQL's continuous quantiles, which are reals for numbers and timestamps for dates.
    """
    if value.facts.type not in (Type.INTEGER, Type.REAL) and not value.facts.type.temporal:
        return Element(released_values(listed(value) or ()), formula(name)), value.facts.type
    if values := periods(value):
        midnights = interpolated and value.facts.type is Type.DATE
        moments = tuple(map(midnight, values)) if midnights else values
        return Element(moments, formula(name)), Type.TIMESTAMP if midnights else value.facts.type
    low, high = float(term.lower), float(term.upper)
    moved = least(low + formula(name) * 2.0**-term.grid, high)
    kind = value.facts.type
    if kind.temporal:
        day, unit = _SECONDS["day"], _SECONDS[_unit_of(value)]
        start = microseconds(value.facts.lower) / 10**6
        if kind is Type.TIMESTAMP or interpolated:
            return timestamp(start + moved * unit), Type.TIMESTAMP
        return date(start / day + (moved if unit == day else moved * (unit // day))), Type.DATE
    if kind is Type.INTEGER and not interpolated and max(abs(low), abs(high)) < 2**53:
        return whole(moved), Type.INTEGER
    return moved, Type.REAL


def end_values(value: Expr, term: Term, names: tuple[str, str]) -> tuple[Formula, Formula]:
    """Return the numbers, within the bounds, that the cells of both ends of an error bar represent. A real value is up to one
    step of the grid away from the value of its cell."""
    low, high = Fraction(term.lower), Fraction(term.upper)
    exact = value.facts.type is Type.INTEGER and term.magnitude == high - low
    step = Fraction(0) if exact else Fraction(2) ** -term.grid
    cells = [cell_value(value, term, name, True)[0] for name in names]
    return greatest(cells[0] - float(step), float(low)), least(cells[1] + float(step), float(high))


def measured(
    measurements: list[Any], groups: int, value: Expr, condition: Expr | None, quantile: Fraction
) -> tuple[str, Term]:
    """Return the column of a quantile's released numbers, and the term that gives its cells. A new quantile is entered in
    `measurements`; an equal one is used again. `groups`: number of groups of the answer."""
    slices = next(slices for most, slices in _SLICES if groups <= most)
    return chosen_of(measurements, RankHistogram("", value, cell_term(value, condition, groups), (), slices), quantile)


def chosen_of(
    measurements: list[Any], requested: RankHistogram, quantile: Fraction, lean: Lean | None = None
) -> tuple[str, Term]:
    """Return the column of a quantile's released number, and the term that gives its cells, for a quantile of the yet unnamed
    histogram `requested`. `lean`: as in `Quantile`."""
    histograms = [measurement for measurement in measurements if isinstance(measurement, RankHistogram)]
    bare = [
        replace(histogram, name="", quantiles=(), ends=(), term=replace(histogram.term, name=""))
        for histogram in histograms
    ]
    histogram = histograms[bare.index(requested)] if requested in bare else None
    if histogram is None:
        name = f"h{len(histograms)}"
        histogram = replace(requested, name=name, term=replace(requested.term, name=name))
        measurements.append(histogram)
    chosen = next(
        (entered for entered in histogram.quantiles if (entered.quantile, entered.lean) == (quantile, lean)), None
    )
    if chosen is None:
        chosen = Quantile(f"{histogram.name}q{len(histogram.quantiles)}", quantile, lean)
        whole = replace(histogram, quantiles=(*histogram.quantiles, chosen))
        measurements[measurements.index(histogram)] = whole
    return chosen.name, histogram.term


def leaning(measurements: list[Any], value: Expr, condition: Expr | None, lean: Lean) -> tuple[str, Term]:
    """Return the column and the term of a large value to which sums are cut: of one group, and chosen alone."""
    return chosen_of(measurements, RankHistogram("", value, cell_term(value, condition, 1), ()), Fraction(1), lean)


def with_ends(measurements: list[Any], number: str, confidence: Fraction) -> tuple[str, str]:
    """Return the columns of both ends of the bar of the quantile released as `number`; enter them in `measurements`."""
    histograms = [measurement for measurement in measurements if isinstance(measurement, RankHistogram)]
    histogram = next(histogram for histogram in histograms if number in histogram.numbers)
    quantile = next(chosen.quantile for chosen in histogram.quantiles if chosen.name == number)
    missed = (1 - confidence) / 2
    names = (f"{number}low", f"{number}high")
    if names[0] not in histogram.numbers:
        pair = zip(names, (True, False), strict=True)
        ends = tuple(QuantileEnd(name, quantile, low, missed) for name, low in pair)
        measurements[measurements.index(histogram)] = replace(histogram, ends=(*histogram.ends, *ends))
    return names


def _searches(measurement: RankHistogram) -> list[Search]:
    """Return the searches that find the quantiles: by recursion where that takes fewer levels, so that each level has more of the
    budget.

    docs/evidence/accuracy.md (quantiles) has the errors of both methods.
    """
    quantiles = sorted(quantile.quantile for quantile in measurement.quantiles)
    apart, nested = split(quantiles), recursion(quantiles)
    return nested if nested[-1].level < apart[-1].level else apart


def explained_end(plan: Any, number: str, text: str, step: float) -> ExplainedNumber | None:
    """Return an end of the error bar of the number `text`, from which it follows; None for the number itself."""
    if number == plan.name:
        return None
    side = "low" if number == ends_of(plan.name)[0] else "high"
    return ExplainedNumber(f"{side} end of the error bar of {text}", 0.0, step, "follows from the number")


class RankHistogramPricing(MeasurementPricing):
    """Pricing of rank histograms (`pricing.measurements`)."""

    def parts(self, measurement: RankHistogram) -> int:
        """Return the number of parts that are paid for: one for each level of choices and one for each end of an error bar."""
        return 1 + max(search.level for search in _searches(measurement)) + len(measurement.ends)

    def moved(self, measurement: RankHistogram, caps: Caps, neighbours: Neighbours) -> Sensitivity:
        return rows_moved(caps, neighbours)

    def planned(
        self, measurement: RankHistogram, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> RankHistogramPlan:
        """Return the choices, each with the largest epsilon that costs at most its part (`exponential`)."""
        rows = self.moved(measurement, caps, neighbours)
        names = {quantile.quantile: quantile.name for quantile in measurement.quantiles}
        leans = {quantile.quantile: quantile.lean for quantile in measurement.quantiles if quantile.lean is not None}
        searches = _searches(measurement)
        slices = measurement.slices if any(search.high is not None for search in searches) else 1
        choices = tuple(
            QuantileChoice(
                names[search.quantile],
                search,
                leaning_choice(rows, leans[search.quantile], part)
                if search.quantile in leans
                else choice_for(rows, search.relative, measurement.cells, part, slices),
            )
            for search in searches
        )
        ends = tuple(
            EndChoice(end.name, end.quantile, end_for(rows, end.quantile, end.low, measurement.cells, part, end.missed))
            for end in measurement.ends
        )
        return RankHistogramPlan(measurement.name, measurement.cells, choices, slices, ends)

    def explained(self, measurement: RankHistogram, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the quantile, and its worst-case rank error: how many rows lie between it and the exact quantile."""
        assert isinstance(plan, RankHistogramPlan)
        choices: tuple[QuantileChoice | EndChoice, ...] = (*plan.quantiles, *plan.ends)
        chosen = next(choice for choice in choices if choice.name == number)
        law = chosen.law
        assert isinstance(law, Choice)
        text = f"quantile {plain_decimal(chosen.quantile)} of {expression_text(measurement.value)}"
        if law.padding:
            text = f"{'low' if law.padding < 0 else 'high'} end of the error bar of {text}"
        text = with_filter(text, measurement.term.filter)
        return ExplainedNumber(
            text,
            float(1 / (law.rate * law.slices)),
            2.0**-measurement.term.grid,
            _known_error(plan, chosen, confidence),
            _aim(chosen),
        )

    def worst_error(self, measurement: RankHistogram, plan: Any, number: str, confidence: float) -> float:
        """Return how many rows may lie between a quantile and the exact one, or before the smallest and after the largest value.
        (For quantiles that are searched between others, EXPLAIN says how much rows with equal values add to it.)"""
        assert isinstance(plan, RankHistogramPlan)
        chosen = next((choice for choice in plan.quantiles if choice.name == number), None)
        if chosen is None:
            return 0.0
        assert isinstance(chosen.law, Choice)
        return chosen.law.rank + _rank_error(plan, chosen, 1 - confidence)


def _aim(chosen: QuantileChoice | EndChoice) -> str:
    """Return the words for the value that a number would be exactly, "" for ends of error bars and leaning choices."""
    if isinstance(chosen, EndChoice) or not isinstance(chosen.law, Choice) or chosen.law.lean:
        return ""
    ends = {Fraction(0): "the smallest value", Fraction(1, 2): "the median", Fraction(1): "the largest value"}
    return ends.get(Fraction(chosen.quantile), f"quantile {plain_decimal(chosen.quantile)}")


def _known_error(plan: RankHistogramPlan, chosen: QuantileChoice | EndChoice, confidence: float) -> str:
    """Return the words of EXPLAIN on a number's error, with `confidence` from 0 to 1."""
    over = f"over {plan.cells} cells"
    if isinstance(chosen, EndChoice):
        return f"sought {abs(chosen.law.padding)} rows from the quantile, {over}"
    assert isinstance(chosen.law, Choice)
    if chosen.law.lean:
        return f"about the largest value number {chosen.law.rank}, lower ones before higher ones, {over}"
    rank = f"rank error of at most {_rank_error(plan, chosen, 1 - confidence):.4g} rows{_nested(plan, chosen)}"
    return f"{_rank(chosen.law)}{rank} in {confidence:.0%} of cases in the worst case, {over}"


def _rank_error(plan: RankHistogramPlan, chosen: QuantileChoice, beta: float) -> float:
    """Return a number of rows that the distance between a quantile and the exact one exceeds with a probability of at most
    `beta`, whatever the data.

    A search between two places that are wrong by a and b rows looks for a rank that is wrong by at most max(a, b), and adds its
    own error. At most one search of each level contributes to that, and each of them fails with an equal share of beta.
    """
    by_quantile = {choice.quantile: choice for choice in plan.quantiles}
    share = (
        beta / (chosen.search.level + 1) if chosen.search.low is not None or chosen.search.high is not None else beta
    )

    def error(choice: QuantileChoice) -> float:
        assert isinstance(choice.law, Choice)
        ends = [by_quantile[index] for index in (choice.search.low, choice.search.high) if index is not None]
        return choice.law.rank_error(plan.cells, share) + max(map(error, ends), default=0.0)

    return error(chosen)


def _nested(plan: RankHistogramPlan, chosen: QuantileChoice) -> str:
    """Return the words of EXPLAIN that concern a quantile chosen together with others, "" if it is not."""
    levels = 1 + max(choice.search.level for choice in plan.quantiles)
    if plan.slices == 1:
        return ""
    together = sum(choice.search.level == chosen.search.level for choice in plan.quantiles)
    step = f", and 1/{plan.slices} of those with one value for each step before (step {chosen.search.level + 1} of {levels}"
    return f"{step}, whose price {together} quantiles share)" if together > 1 else f"{step})"
