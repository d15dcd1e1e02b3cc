"""The value of an expression over a block for a group without rows, and aggregates over groups that such groups do not change.

With exact numbers a group without rows has counts and sums of 0. So a sum over groups, the largest count, the rank by
a descending count, and whatever passes a condition such as `n > 10`, are the same with and without these groups.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from fractions import Fraction

from sqlglot import exp


class Empty(IntEnum):
    """The exact value for a group without rows. ZERO: 0 (or NULL). COUNT: 0 (or NULL), and not negative for any group."""

    OTHER = 0
    ZERO = 1
    COUNT = 2


Lookup = Callable[[exp.Column], Empty]
_SAME = (exp.Paren, exp.Alias, exp.Round, exp.Filter, exp.Sum, exp.Distinct)
_RANKS = (exp.Rank, exp.DenseRank, exp.RowNumber)
_HOLDS: dict[type[exp.Expr], Callable[[Fraction], bool]] = {
    exp.GT: lambda bound: bound < 0, exp.GTE: lambda bound: bound <= 0, exp.LT: lambda bound: bound > 0,
    exp.LTE: lambda bound: bound >= 0, exp.EQ: lambda bound: bound == 0, exp.NEQ: lambda bound: bound != 0,
}  # fmt: skip
"""Functions of the bound that tell whether `0 <operator> bound` holds."""
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ,
}  # fmt: skip


def kind(node: exp.Expr, kind_of_column: Lookup) -> Empty:
    """Return the class of the value of `node` for a group without rows; `kind_of_column` gives the class of a column."""
    if isinstance(node, exp.Column):
        return kind_of_column(node)
    if isinstance(node, _SAME):
        inner = node.expressions[0] if isinstance(node, exp.Distinct) and node.expressions else node.this
        return kind(inner, kind_of_column) if isinstance(inner, exp.Expr) else Empty.OTHER
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return kind(node.this, kind_of_column) if node.to.this in exp.DataType.NUMERIC_TYPES else Empty.OTHER
    if isinstance(node, exp.Max):
        return Empty.COUNT if kind(node.this, kind_of_column) is Empty.COUNT else Empty.OTHER
    if isinstance(node, (exp.Neg, exp.Abs)):
        return min(kind(node.this, kind_of_column), Empty.ZERO)
    if isinstance(node, (exp.Mul, exp.Div)):
        return _product(node, kind_of_column)
    if isinstance(node, (exp.Add, exp.Sub)):
        both = min(kind(node.this, kind_of_column), kind(node.expression, kind_of_column))
        return both if isinstance(node, exp.Add) else min(both, Empty.ZERO)
    if isinstance(node, exp.Coalesce):
        return (
            kind(node.this, kind_of_column) if all(_number(other) == 0 for other in node.expressions) else Empty.OTHER
        )
    if isinstance(node, exp.Case):
        return _case(node, kind_of_column)
    return Empty.COUNT if _number(node) == 0 or isinstance(node, exp.Null) else Empty.OTHER


def _product(node: exp.Binary, kind_of_column: Lookup) -> Empty:
    left, right = kind(node.this, kind_of_column), kind(node.expression, kind_of_column)
    by = _number(node.expression)
    if by is not None and by > 0:
        return left
    if isinstance(node, exp.Div):
        return min(left, Empty.ZERO)
    if left is Empty.COUNT and right is Empty.COUNT:
        return Empty.COUNT
    return Empty.ZERO if max(left, right) > Empty.OTHER else Empty.OTHER


def _case(node: exp.Case, kind_of_column: Lookup) -> Empty:
    """Return the class of a CASE: CASE WHEN n > 10 THEN x ELSE 0 END is 0 for a group without rows, whatever x is, and so is
    CASE WHEN key = 1 THEN n ELSE 0 END, whatever the condition."""
    default = kind(node.args.get("default") or exp.null(), kind_of_column)
    classes = [default]
    for case in node.args.get("ifs") or []:
        value = kind(case.args["true"], kind_of_column)
        excluded = node.this is None and excludes_empty(case.this, kind_of_column)
        if value is Empty.OTHER and excluded:
            number = _number(case.args["true"])
            value = Empty.COUNT if number is not None and number >= 0 else Empty.ZERO
        classes.append(value)
    return min(classes)


def excludes_empty(condition: exp.Expr, kind_of_column: Lookup) -> bool:
    """Return whether, with exact numbers, a condition is true for no group without rows."""
    if isinstance(condition, (exp.Paren, exp.Where, exp.Having, exp.Qualify)):
        return excludes_empty(condition.this, kind_of_column)
    if isinstance(condition, exp.And):
        return excludes_empty(condition.this, kind_of_column) or excludes_empty(condition.expression, kind_of_column)
    if isinstance(condition, exp.Or):
        return excludes_empty(condition.this, kind_of_column) and excludes_empty(condition.expression, kind_of_column)
    if isinstance(condition, exp.Between):
        low, high = _number(condition.args["low"]), _number(condition.args["high"])
        outside = (low is not None and low > 0) or (high is not None and high < 0)
        return outside and kind(condition.this, kind_of_column) > Empty.OTHER
    holds = _HOLDS.get(type(condition))
    if holds is None:
        return False
    left, right = condition.this, condition.expression
    bound = _number(right)
    if bound is None:
        bound, left, holds = _number(left), right, _HOLDS[_MIRRORED[type(condition)]]
    return bound is not None and kind(left, kind_of_column) > Empty.OTHER and not holds(bound)


def unaffected(node: exp.Expr, kind_of_column: Lookup) -> bool:
    """Return whether an aggregate or window over groups is the same with and without groups that have no rows."""
    if isinstance(node, exp.Window):
        return _window(node, kind_of_column)
    if isinstance(node, exp.Filter):
        return excludes_empty(node.expression, kind_of_column) or unaffected(node.this, kind_of_column)
    if isinstance(node, (exp.CountIf, exp.LogicalOr)):
        return excludes_empty(node.this, kind_of_column)
    if isinstance(node, exp.Sum):
        return kind(node.this, kind_of_column) > Empty.OTHER
    return isinstance(node, exp.Max) and kind(node.this, kind_of_column) is Empty.COUNT


def _window(node: exp.Window, kind_of_column: Lookup) -> bool:
    if isinstance(node.this, _RANKS):
        order = node.args.get("order")
        return order is not None and counts_first(order, kind_of_column)
    spec = node.args.get("spec")
    if spec is not None and str(spec.args.get("kind") or "").upper() != "RANGE":
        ends = {str(spec.args.get(end) or "").upper() for end in ("start", "end")}
        if not ends <= {"UNBOUNDED", "CURRENT ROW"}:
            return False  # a frame of n rows before or after may contain groups without rows
    return unaffected(node.this, kind_of_column)


def counts_first(order: exp.Expr, kind_of_column: Lookup) -> bool:
    """Return whether groups without rows come last because the order begins with a descending count."""
    first = order.expressions[0] if order.expressions else None
    return (
        isinstance(first, exp.Ordered)
        and bool(first.args.get("desc"))
        and kind(first.this, kind_of_column) is Empty.COUNT
    )


def _number(node: exp.Expr) -> Fraction | None:
    """Return the value of a literal number, None for any other node."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        return Fraction(node.name)
    except ValueError:
        return None
