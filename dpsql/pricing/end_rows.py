"""ARG_MAX and ARG_MIN as measurements: the key that most of the rows at an end of an order have (privacy.md 4).

A row's cell is determined by the cell of its value and, within that, by its key: its number is (cell of the value) keys + (number
of the key). So cells are ordered by value and then by key, and every row is in one cell. The mechanism reads the rows at an end
of that order, however fine it is (`privacy.mechanisms.end_rows`): finer cells cost the engine time but no accuracy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsql.aggregates.mode import ARG_MAX
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import call
from dpsql.functions.value_lists import listed, place_of
from dpsql.plan.expression_text import expression_text
from dpsql.plan.formulas import Element, Formula, NoisyValue
from dpsql.plan.intervals import Type, literal_facts
from dpsql.plan.measurements import EndRows
from dpsql.plan.plan import Caps, Expr, Literal, Measure, Term, TermKind
from dpsql.pricing.list_cells import MOST_CELLS, released_values
from dpsql.pricing.measurement_contract import ExplainedNumber, MeasuredBlock
from dpsql.pricing.rank_histograms import LEAST_CELLS, steps_of
from dpsql.pricing.sensitivity import sensitivity
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan
from dpsql.privacy.mechanisms.most_frequent import EndKey, EndRowsPlan, end_key_for

_WANTED = 1 << 16
"""Cells of all groups together where there are many values, if that leaves `LEAST_CELLS` for each key. More cells distinguish
more values."""
_MOST_WHOLE = 1 << 17
"""Up to this many cells in total, every integer, day or listed value has its own."""


def requested(block: MeasuredBlock, measure: Measure) -> tuple[Formula, None]:
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
    joint = call("add", call("mul", cell, _literal(len(keys))), place_of(key, keys))
    greatest = top * len(keys) + len(keys) - 1
    term = Term("", TermKind.SUM, joint, measure.filter, greatest, 0, 0, greatest, 0)
    ends = [measurement for measurement in block.measurements if isinstance(measurement, EndRows)]
    described = EndRows("", value, key, term, len(keys), last)
    same = (end for end in ends if replace(end, name="", term=replace(end.term, name="")) == described)
    entered = next(same, None)
    if entered is None:
        name = f"e{len(ends)}"
        entered = replace(described, name=name, term=replace(term, name=name))
        block.measurements.append(entered)
    return Element(released_values(keys), NoisyValue(entered.name)), None


class EndRowsPricing:
    """Pricing of keys of rows at an end (`pricing.measurements`)."""

    def parts(self, measurement: EndRows) -> int:
        """Return 1: one choice is paid for."""
        return 1

    def deltas(self, measurement: EndRows) -> int:
        """Return 0: a choice needs no delta."""
        return 0

    def planned(self, measurement: EndRows, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> MeasurementPlan:
        """Return the choice with the largest epsilon that costs at most its part. A unit adds n_g rows to group g, wherever they
        are in the order. So the vector of n_g has the norms of a COUNT's sensitivity, which `end_rows` turns into a loss."""
        rows = sensitivity(Term("", TermKind.COUNT, None, None, 1), caps, neighbours)
        law = end_key_for(rows, measurement.keys, measurement.last, part)
        return EndRowsPlan(measurement.name, measurement.cells, law)

    def explained(self, measurement: EndRows, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Describe from how many rows a key is chosen, and how many fewer of them the released key may have in the worst case."""
        assert isinstance(plan, EndRowsPlan)
        law = plan.law
        assert isinstance(law, EndKey)
        side = "largest" if law.last else "smallest"
        value = expression_text(measurement.value)
        text = f"{expression_text(measurement.key)} of the rows with the {side} {value}"
        if measurement.term.filter is not None:
            text += f" filter (where {expression_text(measurement.term.filter)})"
        return ExplainedNumber(
            text,
            law.mechanism,
            law.sensitivity,
            float(1 / law.rate),
            2.0**-measurement.term.grid,
            f"the key that most of the {law.rows} rows with the {side} {value} have, or one that at most "
            f"{law.count_error(1 - confidence):.4g} of them less have in {confidence:.0%} of cases in the worst case, over "
            f"{measurement.keys} keys",
        )

    def worst_error(self, measurement: EndRows, plan: Any, number: str, confidence: float) -> float:
        """Return infinity, because the number of end rows from which a key is chosen itself depends on epsilon."""
        return math.inf


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
        inside = call("clamp", steps, *map(_literal, ends))
        return call("to_integer", call("sub", inside, _literal(ends[0]))), int(high - low)
    # Values below and above the bounds get their own cells, so that no value is moved past another.
    return call("width_bucket", steps, _literal(low), _literal(high), _literal(parts)), parts + 1


def _literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))
