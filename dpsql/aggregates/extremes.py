"""MIN and MAX over the rows of one unit, where they are exact. Over protected rows, their spellings mean quantiles."""

from __future__ import annotations

from dpsql.aggregates.contract import Aggregate, Arguments
from dpsql.aggregates.registry import register
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Measure


def _of_unit(measure: Measure, rows: int) -> Facts:
    facts = measure.arguments[0].facts
    nullable = measure.filter is not None or facts.nullable or facts.type is Type.REAL
    return Facts(facts.type, facts.lower, facts.upper, nullable=nullable)


register(Aggregate("min", {"Min": Arguments.UNIT_VALUE}, type=None, selects=True, of_unit=_of_unit))
register(Aggregate("max", {"Max": Arguments.UNIT_VALUE}, type=None, selects=True, of_unit=_of_unit))
