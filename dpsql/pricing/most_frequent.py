"""MODE as a measurement: which values are counted, what the choice costs, and how far it may be off (privacy.md 4)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpsql.aggregates.quantile import ARG_MAX
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import call
from dpsql.functions.public_domains import is_whole_range, listed, place_of
from dpsql.plan.expression_text import expression_text, with_filter
from dpsql.plan.formulas import Element, Formula, NoisyValue
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import EndRows, MostFrequentValue
from dpsql.plan.plan import Caps, Expr, Measure, Term, TermKind, literal
from dpsql.pricing.rank_histograms import (
    LEAST_CELLS,
    MOST_CELLS,
    cell_term,
    cell_value,
    listed_term,
    released_values,
    steps_of,
)
from dpsql.pricing.sensitivity import ExplainedNumber, MeasuredBlock, MeasurementPricing, entered, rows_moved
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan
from dpsql.privacy.mechanisms.exponential import epsilon_of_a_row, mechanism_for
from dpsql.privacy.mechanisms.most_frequent import EndKey, EndRowsPlan, MostFrequent, MostFrequentPlan, end_key_for


def requested_mode(block: MeasuredBlock, measure: Measure) -> tuple[Formula, None]:
    """Return the most frequent value, as a formula over the released number. A new measurement is entered in the block; an equal
    one is used again. Raises Refusal many_cells for a list too long for the number of groups."""
    value, condition, groups = measure.arguments[0], measure.filter, block.groups
    values = None if is_whole_range(value) else listed(value)
    term = cell_term(value, condition, groups) if values is None else listed_term(value, values, condition, groups)
    counted = entered(block.measurements, MostFrequentValue("", value, term), "f")
    if values is None:
        return cell_value(value, term, counted.name, False)[0], None
    return Element(released_values(values), NoisyValue(counted.name)), None


class MostFrequentPricing(MeasurementPricing):
    """Pricing of the most frequent values (`pricing.measurements`)."""

    def planned(
        self, measurement: MostFrequentValue, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> MeasurementPlan:
        """Return the choice with the largest epsilon that costs at most its part."""
        rows = rows_moved(caps, neighbours)
        law = MostFrequent(rows, epsilon_of_a_row(rows, part), mechanism_for(part))
        return MostFrequentPlan(measurement.name, measurement.cells, law)

    def explained(self, measurement: MostFrequentValue, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the most frequent value, and how much less frequent the released value may be in the worst case."""
        assert isinstance(plan, MostFrequentPlan)
        law = plan.law
        assert isinstance(law, MostFrequent)
        error = law.count_error(measurement.cells, 1 - confidence)
        text = with_filter(f"mode of {expression_text(measurement.value)}", measurement.term.filter)
        return ExplainedNumber(
            text,
            float(1 / law.rate),
            2.0**-measurement.term.grid,
            f"at most {error:.4g} rows less frequent than the most frequent value in {confidence:.0%} of cases in the worst "
            f"case, over {measurement.cells} values",
            "the most frequent value",
        )

    def worst_error(self, measurement: MostFrequentValue, plan: Any, number: str, confidence: float) -> float:
        """Return the number of rows by which the released value may be less frequent than the most frequent one."""
        assert isinstance(plan, MostFrequentPlan) and isinstance(plan.law, MostFrequent)
        return plan.law.count_error(measurement.cells, 1 - confidence)


# --- rows at an end ---------------------------------------------------------------------------------------------------

# ARG_MAX and ARG_MIN as measurements: the key that most of the rows at an end of an order have (privacy.md 4).
# A row's cell is determined by the cell of its value and, within that, by its key: its number is (cell of the value) keys +
# (number of the key). So cells are ordered by value and then by key, and every row is in one cell. The mechanism reads the
# rows at an end of that order, however fine it is (`privacy.mechanisms.end_rows`): finer cells cost the engine time but no
# accuracy.

_WANTED = 1 << 16
"""Cells of all groups together where there are many values, if that leaves `LEAST_CELLS` for each key. More cells distinguish
more values."""
_MOST_WHOLE = 1 << 17
"""Up to this many cells in total, every integer, day or listed value has its own."""


def requested_key(block: MeasuredBlock, measure: Measure) -> tuple[Formula, None]:
    """Return the key of the rows with the smallest or the largest values, as a formula over the released number. A new
    measurement is entered in the block; an equal one is used again.

    Raises Refusal many_cells where groups and keys leave too few cells.
    """
    key, value = measure.arguments
    groups, last = block.groups, measure.aggregate == ARG_MAX
    keys = listed(key) or ()
    most = MOST_CELLS // max(1, groups * len(keys))
    if most < LEAST_CELLS:
        raise refuse("many_cells", groups=groups, least=LEAST_CELLS * len(keys), most=MOST_CELLS)
    each = _WANTED // (max(1, groups) * len(keys))
    cell, top = _value_cell(value, min(most, _MOST_WHOLE // len(keys)), min(most, max(LEAST_CELLS, each)))
    joint = call("add", call("mul", cell, literal(len(keys))), place_of(key, keys))
    greatest = top * len(keys) + len(keys) - 1
    term = Term("", TermKind.SUM, joint, measure.filter, greatest, 0, 0, greatest, 0)
    measurement = entered(block.measurements, EndRows("", value, key, term, len(keys), last), "e")
    return Element(released_values(keys), NoisyValue(measurement.name)), None


class EndRowsPricing(MeasurementPricing):
    """Pricing of keys of rows at an end (`pricing.measurements`). No worst error is known, because the number of end rows from
    which a key is chosen itself depends on epsilon."""

    def planned(self, measurement: EndRows, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> MeasurementPlan:
        """Return the choice with the largest epsilon that costs at most its part."""
        law = end_key_for(rows_moved(caps, neighbours), measurement.keys, measurement.last, part)
        return EndRowsPlan(measurement.name, measurement.cells, law)

    def explained(self, measurement: EndRows, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Describe from how many rows a key is chosen, and how many fewer of them the released key may have in the worst case."""
        assert isinstance(plan, EndRowsPlan)
        law = plan.law
        assert isinstance(law, EndKey)
        side = "largest" if law.last else "smallest"
        value = expression_text(measurement.value)
        text = with_filter(
            f"{expression_text(measurement.key)} of the rows with the {side} {value}", measurement.term.filter
        )
        return ExplainedNumber(
            text,
            float(1 / law.rate),
            2.0**-measurement.term.grid,
            f"the key that most of the {law.rows} rows with the {side} {value} have, or one that at most "
            f"{law.count_error(law.keys, 1 - confidence):.4g} of them less have in {confidence:.0%} of cases in the worst case, "
            f"over {measurement.keys} keys",
        )


def _value_cell(value: Expr, most: int, parts: int) -> tuple[Expr, int]:
    """Return the number of the cell of a bounded value, counted from 0, and the last number. Every integer, day or listed value
    has a cell; where those are more than `most`, the bounds are divided into `parts` equal parts. The number rises with the
    value, which is all that an order needs."""
    if value.facts.type not in (Type.INTEGER, Type.REAL) and not value.facts.type.temporal:
        values = listed(value) or ()
        return place_of(value, values), len(values) - 1
    steps = steps_of(value)
    low, high = Fraction(steps.facts.lower), Fraction(steps.facts.upper)
    if low == high or (steps.facts.type is Type.INTEGER and high - low < most):
        ends = [int(end) if steps.facts.type is Type.INTEGER else end for end in (low, high)]
        inside = call("clamp", steps, *map(literal, ends))
        return call("to_integer", call("sub", inside, literal(ends[0]))), int(high - low)
    # Values below and above the bounds get their own cells, so that no value is moved past another.
    return call("width_bucket", steps, literal(low), literal(high), literal(parts)), parts + 1
