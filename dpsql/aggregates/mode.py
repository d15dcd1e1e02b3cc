"""MODE, the most frequent value, and ARG_MAX and ARG_MIN, the key in the rows with the largest or smallest values."""

from __future__ import annotations

from dpsql.aggregates.contract import Aggregate, Arguments
from dpsql.aggregates.registry import register
from dpsql.functions.value_lists import is_whole_range, listed
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Expr, Measure
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT

ARG_MAX = "arg_max"
"""Word of the aggregate that reads the rows with the largest values; ARG_MIN reads those with the smallest."""


def _listed_facts(value: Expr) -> Facts:
    """Return the facts of one of the listed values: a released value is never NULL, and reals are doubles."""
    facts = value.facts
    if is_whole_range(value):
        return Facts(facts.type, facts.lower, facts.upper, nullable=False)
    values = listed(value)
    return Facts(facts.type, facts.lower, facts.upper, values=values, nullable=False)


def _first_argument(measure: Measure) -> Facts:
    return _listed_facts(measure.arguments[0])


register(
    Aggregate(
        "mode",
        {"Mode": Arguments.MODE},
        lambda basis, measure: basis.number(MOST_FREQUENT, measure),
        type=None,
        facts=_first_argument,
        selects=True,
    )
)
for _word, _node in ((ARG_MAX, "ArgMax"), ("arg_min", "ArgMin")):
    register(
        Aggregate(
            _word,
            {_node: Arguments.END_ROW},
            lambda basis, measure: basis.number(END_ROWS, measure),
            type=None,
            facts=_first_argument,
            selects=True,
        )
    )
