"""The closed interval that an expression cannot leave, by interval arithmetic (Moore 1966) from the bounds written in it.

The formula of AVG over a column within [0, 1000] is clamped to it, so no bar needs to reach outside, whatever the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from sqlglot import exp

from dpsql.release.formulas import EVERYTHING, MEANINGS, WRITTEN, Extent, square_of

_SHARE: Extent = (0.0, 1.0)
_SAME = (
    exp.Paren, exp.Alias, exp.Nullif, exp.Max, exp.Min, exp.Avg, exp.Median, exp.Quantile, exp.Lag, exp.Lead,
    exp.FirstValue, exp.LastValue, exp.AnyValue, exp.First, exp.Last, exp.Filter, exp.Window, exp.IgnoreNulls,
)  # fmt: skip
_NOT_NEGATIVE = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Count, exp.CountIf,
)  # fmt: skip


def extent(node: exp.Expr, extent_of_column: Callable[[exp.Column], Extent]) -> Extent:
    """Return the interval of `node`; EVERYTHING where nothing is known. `extent_of_column` gives the interval of a column."""
    if isinstance(node, exp.Column):
        return extent_of_column(node)
    if isinstance(node, exp.Literal):
        return (float(node.name),) * 2 if not node.is_string else EVERYTHING
    if isinstance(node, _NOT_NEGATIVE):
        return 0.0, inf
    if isinstance(node, (exp.Rank, exp.DenseRank, exp.RowNumber)):
        return 1.0, inf
    if isinstance(node, (exp.PercentRank, exp.CumeDist)):
        return _SHARE
    if isinstance(node, exp.Distinct):
        return extent(node.expressions[0], extent_of_column) if len(node.expressions) == 1 else EVERYTHING
    if isinstance(node, _SAME) and not node.args.get("default"):
        return extent(node.this, extent_of_column) if isinstance(node.this, exp.Expr) else EVERYTHING
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return extent(node.this, extent_of_column) if node.to.this in exp.DataType.NUMERIC_TYPES else EVERYTHING
    if isinstance(node, exp.Sum):
        low, high = extent(node.this, extent_of_column)
        return (0.0 if low >= 0 else -inf), (0.0 if high <= 0 else inf)
    return _computed(node, extent_of_column)


def _computed(node: exp.Expr, extent_of_column: Callable[[exp.Column], Extent]) -> Extent:
    """Return the interval of an arithmetic function or operator."""
    if isinstance(node, exp.Mul) and node.this == node.expression:
        return square_of(extent(node.this, extent_of_column))
    if isinstance(node, exp.Abs):
        low, high = extent(node.this, extent_of_column)
        return max(low, -high, 0.0), max(-low, high)
    if isinstance(node, exp.Coalesce):
        return hull([extent(part, extent_of_column) for part in (node.this, *node.expressions)])
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        parts = [extent(case.args["true"], extent_of_column) for case in node.args.get("ifs") or []]
        return hull([*parts, extent(default, extent_of_column)] if default is not None else parts)
    operator = WRITTEN.get(type(node))
    if operator is None or node.args.get("decimals"):
        return EVERYTHING
    return MEANINGS[operator].interval(*(extent(part, extent_of_column) for part in node.iter_expressions()))


def hull(parts: list[Extent]) -> Extent:
    """Return the smallest interval that contains all `parts`; EVERYTHING if there are none."""
    return (min(low for low, _ in parts), max(high for _, high in parts)) if parts else EVERYTHING
