"""MODE as a measurement: which values are counted, what the choice costs, and how far it may be off (privacy.md 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsql.functions.value_lists import is_whole_range, listed
from dpsql.plan.expression_text import expression_text
from dpsql.plan.formulas import Element, Formula, NoisyValue
from dpsql.plan.measurements import MostFrequentValue
from dpsql.plan.plan import Caps, Measure, Term, TermKind
from dpsql.pricing.list_cells import listed_term, released_values
from dpsql.pricing.measurement_contract import ExplainedNumber, MeasuredBlock
from dpsql.pricing.rank_histograms import cell_term, cell_value
from dpsql.pricing.sensitivity import sensitivity
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan
from dpsql.privacy.mechanisms.exponential import epsilon_of_a_row, mechanism_for
from dpsql.privacy.mechanisms.most_frequent import MostFrequent, MostFrequentPlan


def requested(block: MeasuredBlock, measure: Measure) -> tuple[Formula, None]:
    """Return the most frequent value, as a formula over the released number. A new measurement is entered in the block; an equal
    one is used again. Raises Refusal many_cells for a list too long for the number of groups."""
    value, condition, groups = measure.arguments[0], measure.filter, block.groups
    values = None if is_whole_range(value) else listed(value)
    term = cell_term(value, condition, groups) if values is None else listed_term(value, values, condition, groups)
    modes = [measurement for measurement in block.measurements if isinstance(measurement, MostFrequentValue)]
    same = (
        measurement for measurement in modes if (measurement.value, replace(measurement.term, name="")) == (value, term)
    )
    counted = next(same, None)
    if counted is None:
        name = f"f{len(modes)}"
        counted = MostFrequentValue(name, value, replace(term, name=name))
        block.measurements.append(counted)
    if values is None:
        return cell_value(value, term, counted.name, False)[0], None
    return Element(released_values(values), NoisyValue(counted.name)), None


class MostFrequentPricing:
    """Pricing of the most frequent values (`pricing.measurements`)."""

    def parts(self, measurement: MostFrequentValue) -> int:
        """Return 1: one choice is paid for."""
        return 1

    def deltas(self, measurement: MostFrequentValue) -> int:
        """Return 0: a choice needs no delta."""
        return 0

    def planned(
        self, measurement: MostFrequentValue, caps: Caps, part: PrivacyLoss, neighbours: Neighbours
    ) -> MeasurementPlan:
        """Return the choice with the largest epsilon that costs at most its part. A unit adds n_g rows to group g, whichever
        values they have. So the vector of n_g has the norms of a COUNT's sensitivity, which `most_frequent` turns into a loss."""
        rows = sensitivity(Term("", TermKind.COUNT, None, None, 1), caps, neighbours)
        law = MostFrequent(rows, epsilon_of_a_row(rows, part), mechanism_for(part))
        return MostFrequentPlan(measurement.name, measurement.cells, law)

    def explained(self, measurement: MostFrequentValue, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the most frequent value, and how much less frequent the released value may be in the worst case."""
        assert isinstance(plan, MostFrequentPlan)
        law = plan.law
        assert isinstance(law, MostFrequent)
        error = law.count_error(measurement.cells, 1 - confidence)
        text = f"mode of {expression_text(measurement.value)}"
        if measurement.term.filter is not None:
            text += f" filter (where {expression_text(measurement.term.filter)})"
        return ExplainedNumber(
            text,
            law.mechanism,
            law.sensitivity,
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
