"""Arithmetic of formulas over arrays of draws: the results of DuckDB's operations in doubles, NaN for NULL.

For simulation only: displayed numbers are computed elsewhere. NULL and NaN are not distinguished, and integers are doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sqlglot import exp

from dpsql.release.error_bars.draws import Floats

Vector = Callable[[Mapping[str, Floats]], Floats]
_BINARY: dict[type[exp.Expr], Any] = {
    exp.Add: np.add, exp.Sub: np.subtract, exp.Mul: np.multiply, exp.Div: np.divide,
    exp.GTE: np.greater_equal, exp.LT: np.less,
}  # fmt: skip
_EXTREME: dict[type[exp.Expr], Any] = {exp.Least: np.fmin, exp.Greatest: np.fmax}
"""Like LEAST and GREATEST in SQL, these skip NULL."""
_CASTS = (exp.DType.DOUBLE, exp.DType.FLOAT)


@dataclass(frozen=True)
class _Step:
    """One operation on the results of earlier steps, which `inputs` lists by number."""

    number: int
    operation: Callable[..., Floats]
    inputs: tuple[int, ...]


Steps = dict[tuple[str, str, tuple[int, ...]], _Step]


def vector(node: exp.Expr) -> Vector | None:
    """Return `node` as a function of arrays by column name; None if it has an operation that is not listed here."""
    steps: Steps = {}
    try:
        last = _enter(node, steps)
    except _UnknownError:
        return None
    ordered = tuple(steps.values())

    def run(columns: Mapping[str, Floats]) -> Floats:
        values: list[Floats] = []
        for step in ordered:
            values.append(step.operation(columns, *(values[index] for index in step.inputs)))
        return values[last]

    return run


def counted(node: exp.Expr) -> exp.Expr:
    """Return the numeric expression inside a measure: days since 1970 for a date, microseconds for a timestamp, the index
    expression for an element of a list; any other measure unchanged."""
    inner = node.unnest()
    if isinstance(inner, exp.Add) and isinstance(inner.this, exp.Cast) and inner.this.to.this is exp.DType.DATE:
        days = inner.expression.this  # without the cast to the width of a date's days
        assert isinstance(days, exp.Expr)
        return days
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "make_timestamp":
        (microseconds,) = inner.expressions
        assert isinstance(microseconds, exp.Expr)
        return microseconds
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "list_extract":
        counted_by = inner.expressions[1].this.this.this  # without the modulo and the cast of `release.formulas`
        assert isinstance(counted_by, exp.Expr)
        return counted_by
    return node


def clamped(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None, exp.Expr | None]:
    """Return x, low and high of `least(greatest(x, low), high)`; for any other node the node, None and None. The high bound is
    None if only `greatest` is there."""
    while isinstance(node, (exp.Paren, exp.Cast, exp.Round)):
        node = node.this
    upper = None
    if isinstance(node, exp.Least) and len(node.expressions) == 1 and isinstance(node.this, exp.Greatest):
        node, upper = node.this, node.expressions[0]
    if isinstance(node, exp.Greatest) and len(node.expressions) == 1:
        return node.this, node.expressions[0], upper
    return node, None, None


class _UnknownError(Exception):
    """Raised for an operation that is not listed here."""


def _enter(node: exp.Expr, steps: Steps) -> int:
    """Add a node and its operands to `steps` and return its number. Equal subexpressions are added once, because formulas of
    two columns often share them."""
    if isinstance(node, (exp.Paren, exp.Alias)):
        return _enter(node.this, steps)
    if isinstance(node, exp.Cast) and node.to.this in _CASTS:
        return _enter(node.this, steps)
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.BIGINT and isinstance(node.this, exp.Round):
        return _enter(node.this, steps)
    operation, parts = _operation(node)
    inputs = tuple(_enter(part, steps) for part in parts)
    word = node.name if isinstance(node, (exp.Column, exp.Literal)) else type(node).__name__
    return steps.setdefault((type(node).__name__, word, inputs), _Step(len(steps), operation, inputs)).number


def _operation(node: exp.Expr) -> tuple[Callable[..., Floats], list[exp.Expr]]:
    """Return the operation of a node, a function of columns and inputs, and its inputs."""
    if isinstance(node, exp.Column):
        name = node.name
        return (lambda columns: columns[name]), []
    if isinstance(node, exp.Literal) and not node.is_string:
        value = np.asarray(float(node.name))
        return (lambda columns: value), []
    if isinstance(node, exp.Neg):
        return (lambda columns, inner: -inner), [node.this]
    if isinstance(node, exp.Round) and node.args.get("decimals") is None:
        return (lambda columns, inner: _rounded(inner)), [node.this]
    if isinstance(node, exp.Sqrt):
        return (lambda columns, inner: np.sqrt(inner)), [node.this]
    if isinstance(node, exp.Nullif):
        return (lambda columns, inner, other: _unless_equal(inner, other)), [node.this, node.expression]
    if type(node) in _BINARY:
        binary = _BINARY[type(node)]
        return (lambda columns, left, right: binary(left, right)), [node.this, node.expression]
    if type(node) in _EXTREME:
        extreme = _EXTREME[type(node)]
        return (lambda columns, *parts: reduce(extreme, parts)), [node.this, *node.expressions]
    raise _UnknownError


def _rounded(values: Floats) -> Floats:
    """Round half away from zero."""
    return np.asarray(np.copysign(np.floor(np.abs(values) + 0.5), values))


def _unless_equal(values: Floats, other: Floats) -> Floats:
    return np.asarray(np.where(values == other, np.nan, values))
