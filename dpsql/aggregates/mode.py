"""MODE, the most frequent value, and ARG_MAX and ARG_MIN, the key of the rows at an end of an order."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.aggregates.contract import Aggregate, Arguments, Basis
from dpsql.aggregates.registry import register
from dpsql.functions.value_lists import is_whole_range, listed
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Expr, Measure


def _listed_facts(value: Expr) -> Facts:
    """Return the facts of one of the values in the list: released values have no NULL among them, and reals are doubles."""
    facts = value.facts
    if is_whole_range(value):
        return Facts(facts.type, facts.lower, facts.upper, nullable=False)
    values = listed(value)
    return Facts(facts.type, facts.lower, facts.upper, values=values, nullable=False)


def _end(last: bool) -> Callable[[Basis, Measure], Formula]:
    def formula(basis: Basis, measure: Measure) -> Formula:
        key, value = measure.arguments
        return basis.end_key(key, value, measure.filter, last)

    return formula


def _first_argument(measure: Measure) -> Facts:
    return _listed_facts(measure.arguments[0])


register(
    Aggregate(
        "mode",
        {"Mode": Arguments.MODE},
        lambda basis, measure: basis.most_frequent(measure.arguments[0], measure.filter),
        type=None,
        facts=_first_argument,
        selects=True,
    )
)
for _word, _node, _last in (("arg_max", "ArgMax", True), ("arg_min", "ArgMin", False)):
    register(Aggregate(_word, {_node: Arguments.END_ROW}, _end(_last), type=None, facts=_first_argument, selects=True))
