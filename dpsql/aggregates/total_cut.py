"""The bound on a unit's contribution to a SUM, chosen among the totals of units (`planning.total_cuts`). It has no SQL name."""

from __future__ import annotations

from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Basis
from dpsql.aggregates.registry import register
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Literal, Measure
from dpsql.privacy.mechanisms.exponential import Lean

TOTAL_CUT = "total_cut"


def _cell(basis: Basis, measure: Measure) -> Formula:
    """Return the number of the chosen cell. The measure's arguments: the cell of a row, and the fields of `Lean` as literals."""
    value, groups, fall = measure.arguments
    assert isinstance(groups, Literal) and isinstance(fall, Literal)
    return basis.total_cut(value, measure.filter, Lean(int(groups.value), Fraction(fall.value)))


def _facts(measure: Measure) -> Facts:
    value = measure.arguments[0].facts
    return Facts(Type.INTEGER, value.lower, value.upper)


register(Aggregate(TOTAL_CUT, {}, _cell, type=Type.INTEGER, facts=_facts))
