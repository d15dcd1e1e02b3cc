"""The closed interval that an expression cannot leave, by interval arithmetic (Moore 1966) from the bounds written in it.

The formula of AVG over a column within [0, 1000] is clamped to it, so no bar needs to reach outside, whatever the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, floor, inf, isfinite, sqrt

from sqlglot import exp

Extent = tuple[float, float]
EVERYTHING: Extent = (-inf, inf)
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
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return _operation(node, extent_of_column)
    if isinstance(node, exp.Neg):
        low, high = extent(node.this, extent_of_column)
        return -high, -low
    if isinstance(node, (exp.Sqrt, exp.Abs)):
        low, high = extent(node.this, extent_of_column)
        if isinstance(node, exp.Sqrt):
            return sqrt(max(low, 0.0)), sqrt(max(high, 0.0))
        return (max(low, -high, 0.0), max(-low, high))
    if isinstance(node, exp.Round) and not node.args.get("decimals"):
        low, high = extent(node.this, extent_of_column)
        return _rounded(low), _rounded(high)
    if isinstance(node, (exp.Least, exp.Greatest)):
        parts = [extent(part, extent_of_column) for part in (node.this, *node.expressions)]
        choose = min if isinstance(node, exp.Least) else max
        return choose(low for low, _ in parts), choose(high for _, high in parts)
    if isinstance(node, exp.Coalesce):
        return hull([extent(part, extent_of_column) for part in (node.this, *node.expressions)])
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        parts = [extent(case.args["true"], extent_of_column) for case in node.args.get("ifs") or []]
        return hull([*parts, extent(default, extent_of_column)] if default is not None else parts)
    return EVERYTHING


def hull(parts: list[Extent]) -> Extent:
    """Return the smallest interval that contains all `parts`; EVERYTHING if there are none."""
    return (min(low for low, _ in parts), max(high for _, high in parts)) if parts else EVERYTHING


def _operation(node: exp.Binary, extent_of_column: Callable[[exp.Column], Extent]) -> Extent:
    (a, b), (c, d) = extent(node.this, extent_of_column), extent(node.expression, extent_of_column)
    if isinstance(node, exp.Add):
        return a + c, b + d
    if isinstance(node, exp.Sub):
        return a - d, b - c
    if isinstance(node, exp.Mul):
        if node.this == node.expression:  # a square
            most = max(a * a, b * b)
            return (0.0 if a <= 0 <= b else min(a * a, b * b)), most
        ends = [_product(x, y) for x in (a, b) for y in (c, d)]
        return min(ends), max(ends)
    if _share_of_bound(node):
        return -1.0, 1.0
    if c <= 0 <= d:
        return EVERYTHING
    ends = [_product(x, 1 / y if abs(y) != inf else 0.0) for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def _rounded(end: float) -> float:
    """Round half away from zero."""
    return copysign(floor(abs(end) + 0.5), end) if isfinite(end) else end


def _product(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _share_of_bound(node: exp.Binary) -> bool:
    """Return whether `node` is least(greatest(x, -b), b) / nullif(b, 0), the form in which correlations are written."""
    above, below = _bare(node.this), _bare(node.expression)
    if not isinstance(below, exp.Nullif) or not isinstance(above, exp.Least) or len(above.expressions) != 1:
        return False
    inner = _bare(above.this)
    if not isinstance(inner, exp.Greatest) or len(inner.expressions) != 1:
        return False
    least, most = _bare(inner.expressions[0]), _bare(above.expressions[0])
    return isinstance(least, exp.Neg) and _bare(least.this) == most == _bare(below.this)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
