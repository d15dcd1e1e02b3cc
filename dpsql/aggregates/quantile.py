"""Aggregates that are chosen by the exponential mechanism among the cells of a histogram.

Quantiles are chosen among the cells of a rank histogram; the quantile (from 0 to 1) is the second argument. Over protected rows
MIN and MAX are the quantiles 0 and 1. The bound on a unit's contribution to a SUM is chosen among the totals of units
(`planning.total_cuts`), and has no SQL name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis, register
from dpsql.errors.exceptions import refuse
from dpsql.functions.public_domains import is_whole_range, listed
from dpsql.functions.values import midnight
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Literal, Measure
from dpsql.privacy.mechanisms.exponential import Lean
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT

TOTAL_CUT = "total_cut"


def _cut_cell(basis: Basis, measure: Measure) -> Formula:
    """Return the number of the chosen cell. The measure's arguments: the cell of a row, and the fields of `Lean` as literals."""
    value, groups, fall = measure.arguments
    assert isinstance(groups, Literal) and isinstance(fall, Literal)
    return basis.total_cut(value, measure.filter, Lean(int(groups.value), Fraction(fall.value)))


def _cut_facts(measure: Measure) -> Facts:
    value = measure.arguments[0].facts
    return Facts(Type.INTEGER, value.lower, value.upper)


register(Aggregate(TOTAL_CUT, {}, _cut_cell, type=Type.INTEGER, facts=_cut_facts))

_MOST_EXACT = 2**53
"""Doubles hold every smaller integer."""

LISTED = "listed_"
"""Prefix of the word of a quantile that is an item of a list; such a quantile has no error bar."""


def _quantile(interpolated: bool, barred: bool = True) -> Callable[[Basis, Measure], Formula]:
    def formula(basis: Basis, measure: Measure) -> Formula:
        value, quantile = measure.arguments
        if not isinstance(quantile, Literal) or not 0 <= Fraction(quantile.value) <= 1:
            raise refuse("internal", what="a quantile that is no constant from 0 to 1")
        return basis.quantile(value, measure.filter, Fraction(quantile.value), interpolated, barred)

    return formula


def _facts(interpolated: bool) -> Callable[[Measure], Facts]:
    def facts(measure: Measure) -> Facts:
        """Return the facts of a value within the bounds, of the type in which `pricing.rank_histograms.cell_value` returns it."""
        value = measure.arguments[0].facts
        if not value.type.numeric and not value.type.temporal:
            return Facts(value.type, values=listed(measure.arguments[0]), nullable=False)
        if value.type is Type.DATE and interpolated:
            return Facts(Type.TIMESTAMP, midnight(value.lower), midnight(value.upper))
        small = value.type is Type.INTEGER and max(abs(value.lower), abs(value.upper)) < _MOST_EXACT
        exact = value.type.temporal or (small and not interpolated)
        return Facts(value.type if exact else Type.REAL, value.lower, value.upper)

    return facts


for _word, _interpolated, _nodes in (
    ("quantile_cont", True, ("Median", "PercentileCont")),
    ("quantile_disc", False, ("PercentileDisc", "Quantile", "ApproxQuantile", "ApproxQuantiles")),
):
    _spellings = dict.fromkeys(_nodes, Arguments.QUANTILE)
    register(Aggregate(_word, _spellings, _quantile(_interpolated), type=None, facts=_facts(_interpolated)))
    register(Aggregate(LISTED + _word, {}, _quantile(_interpolated, False), type=None, facts=_facts(_interpolated)))


# --- extremes ---------------------------------------------------------------------------------------------------------

# MIN and MAX over the rows of one unit, where they are exact. Over protected rows, their spellings mean quantiles.


def _of_unit(measure: Measure, rows: int) -> Facts:
    facts = measure.arguments[0].facts
    nullable = measure.filter is not None or facts.nullable or facts.type is Type.REAL
    return Facts(facts.type, facts.lower, facts.upper, nullable=nullable, scale=facts.scale)


register(Aggregate("min", {"Min": Arguments.UNIT_VALUE}, type=None, selects=True, of_unit=_of_unit))
register(Aggregate("max", {"Max": Arguments.UNIT_VALUE}, type=None, selects=True, of_unit=_of_unit))


# --- values of lists --------------------------------------------------------------------------------------------------

# MODE, the most frequent value, and ARG_MAX and ARG_MIN, the key in the rows with the largest or smallest values.

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
