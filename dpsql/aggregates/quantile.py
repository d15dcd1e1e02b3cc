"""Quantiles, chosen among the cells of a rank histogram; the quantile (from 0 to 1) is the second argument.

Over protected rows MIN and MAX are the quantiles 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpsql.aggregates.contract import Aggregate, Arguments, Basis
from dpsql.aggregates.registry import register
from dpsql.functions.calendar import midnight
from dpsql.functions.value_lists import listed
from dpsql.plan.formulas import Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Literal, Measure

_MOST_EXACT = 2**53
"""Doubles hold every smaller integer."""


LISTED = "listed_"
"""Prefix of the word of a quantile that is an item of a list; such a quantile has no error bar."""


def _quantile(interpolated: bool, barred: bool = True) -> Callable[[Basis, Measure], Formula]:
    def formula(basis: Basis, measure: Measure) -> Formula:
        value, quantile = measure.arguments
        assert isinstance(quantile, Literal)
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
    _formula = _quantile(_interpolated, barred=False)
    register(Aggregate(LISTED + _word, {}, _formula, type=None, facts=_facts(_interpolated)))
