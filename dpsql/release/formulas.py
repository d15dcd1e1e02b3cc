"""The two meanings of formulas over released terms: an SQL expression for the sandbox, and a computation in vectors.

Both are the same IEEE operations in the same order, so they give the same doubles (tests/release/test_direct.py). The import
fails if an operator lacks one of the two meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from dpsql.plan.formulas import LISTED, Element, Formula, NoisyValue, Number, Operation, Operator

Vector = npt.NDArray[Any]
Meaning = Mapping[Operator, Callable[..., Any]]
_EDGE = 2.0**63
_NO_NOISE = "an estimate before the noise of its terms is known (`plan.formulas.estimated`, `plugged_in`)"
_MICROSECONDS = 1e6
"""Microseconds per second."""

# --- as SQL -----------------------------------------------------------------------------------------------------------


def number_sql(value: float) -> exp.Expr:
    """Return an expression that the engine evaluates to exactly the double `value`."""
    text = repr(abs(value))
    literal = exp.Literal.number(text if "e" in text else f"{text}e0")
    positive = exp.Cast(this=literal, to=exp.DType.DOUBLE.into_expr())
    return positive if value >= 0 else exp.Neg(this=positive)


@lru_cache(maxsize=1024)
def formula_sql(formula: Formula) -> exp.Expr:
    """Return a formula as an expression in parentheses over columns named like its terms. The result is cached: copy it before
    building it into another tree."""
    return exp.Paren(this=_sql(formula))


def _sql(formula: Formula) -> exp.Expr:
    if isinstance(formula, NoisyValue):
        return exp.Column(this=exp.Identifier(this=formula.term, quoted=True))
    if isinstance(formula, Number):
        return number_sql(formula.value)
    if isinstance(formula, Element):
        return _element_sql(formula)
    assert isinstance(formula, Operation), _NO_NOISE
    return _AS_SQL[formula.operator](*(_sql(operand) for operand in formula.operands))


def _element_sql(element: Element) -> exp.Expr:
    """Return a list_extract call, whose index counts from 1."""
    values = [_LISTED[type(value)][0](value) for value in element.values]
    number = _cast(exp.Paren(this=_sql(element.number)), exp.DType.BIGINT)
    place = exp.Add(
        this=exp.Mod(this=number, expression=exp.Literal.number(len(values))), expression=exp.Literal.number(1)
    )
    return exp.Anonymous(this="list_extract", expressions=[exp.Array(expressions=values), place])


def _operand(node: exp.Expr) -> exp.Expr:
    """Return an operand, in parentheses if it is an operation itself."""
    return exp.Paren(this=node) if isinstance(node, (exp.Binary, exp.Unary)) else node


def _binary(kind: type[exp.Expr]) -> Callable[..., exp.Expr]:
    return lambda left, right: kind(this=_operand(left), expression=_operand(right))


def _extreme(kind: type[exp.Expr]) -> Callable[..., exp.Expr]:
    return lambda first, *rest: kind(this=first, expressions=list(rest), ignore_nulls=True)


def _cast(node: exp.Expr, type_: exp.DType) -> exp.Expr:
    return exp.Cast(this=node, to=type_.into_expr())


WHOLE = "whole"
"""Key in the meta of a ROUND whose argument is an integer without noise, which is not known of a ROUND that an analyst writes."""


def _whole_sql(value: exp.Expr) -> exp.Expr:
    rounded = exp.Round(this=value)
    rounded.meta[WHOLE] = True
    return _cast(rounded, exp.DType.BIGINT)


def _day() -> exp.Expr:
    """Return the day from which dates are counted."""
    return _cast(exp.Literal.string("1970-01-01"), exp.DType.DATE)


_AS_SQL: dict[Operator, Callable[..., exp.Expr]] = {
    Operator.ADD: _binary(exp.Add),
    Operator.SUBTRACT: _binary(exp.Sub),
    Operator.MULTIPLY: _binary(exp.Mul),
    Operator.DIVIDE: _binary(exp.Div),
    Operator.AT_LEAST: _binary(exp.GTE),
    Operator.LESS: _binary(exp.LT),
    Operator.NEGATE: lambda value: exp.Neg(this=_operand(value)),
    Operator.LEAST: _extreme(exp.Least),
    Operator.GREATEST: _extreme(exp.Greatest),
    Operator.SQUARE_ROOT: lambda value: exp.Sqrt(this=value),
    Operator.NULL_IF: lambda value, other: exp.Nullif(this=value, expression=other),
    Operator.WHOLE: _whole_sql,
    Operator.DATE: lambda days: exp.Add(this=_day(), expression=_cast(_whole_sql(days), exp.DType.INT)),
    Operator.TIMESTAMP: lambda seconds: exp.Anonymous(
        this="make_timestamp",
        expressions=[_whole_sql(exp.Mul(this=_operand(seconds), expression=number_sql(_MICROSECONDS)))],
    ),
}

# --- in vectors -------------------------------------------------------------------------------------------------------


def formula_values(formula: Formula, terms: Mapping[str, Vector]) -> Vector:
    """Return the values of a formula in the shape of the terms: doubles, 64-bit integers (WHOLE), booleans or list elements.

    Raises FloatingPointError where NULL_IF is NULL and where WHOLE exceeds 64 bits; other operations raise it for results that
    are not finite if numpy is set so (`np.errstate`).
    """
    return _values(formula, terms, {}, _IN_VECTORS)


def numbers(formula: Formula, terms: Mapping[str, Vector]) -> Vector:
    """Return the values of a formula as doubles in the shape of the terms, NaN for NULL. Operands of LEAST and GREATEST are never
    NULL."""
    with np.errstate(all="ignore"):
        return np.asarray(_values(formula, terms, {}, _WITH_NULL), dtype=np.float64)


def _values(formula: Formula, terms: Mapping[str, Vector], computed: dict[int, Vector], meaning: Meaning) -> Vector:
    """Return the values of a formula. `computed` caches parts by identity, because hashing a formula would traverse all of it."""
    if isinstance(formula, NoisyValue):
        return terms[formula.term]
    if isinstance(formula, Number):
        return np.float64(formula.value)  # type: ignore[return-value]
    if isinstance(formula, Element):
        number = _values(formula.number, terms, computed, meaning).astype(np.int64)
        kind = _LISTED[type(formula.values[0])][1]
        return np.asarray(np.array(formula.values, dtype=kind)[number % len(formula.values)])
    if id(formula) not in computed:
        assert isinstance(formula, Operation), _NO_NOISE
        operands = [_values(operand, terms, computed, meaning) for operand in formula.operands]
        computed[id(formula)] = np.asarray(meaning[formula.operator](*operands))
    return computed[id(formula)]


def _null_if(value: Vector, other: Vector) -> Vector:
    if np.any(value == other):
        raise FloatingPointError
    return value


def _whole(value: Vector) -> Vector:
    """Return CAST(round(x) AS BIGINT), which rounds half away from zero."""
    size = np.abs(value)
    below = np.floor(size)
    rounded = np.copysign(below + (size - below >= 0.5), value)
    if rounded.size and not (rounded.min() >= -_EDGE and rounded.max() < _EDGE):
        raise FloatingPointError
    return np.asarray(rounded.astype(np.int64))


_IN_VECTORS: Meaning = {
    Operator.ADD: np.add,
    Operator.SUBTRACT: np.subtract,
    Operator.MULTIPLY: np.multiply,
    Operator.DIVIDE: np.divide,
    Operator.AT_LEAST: np.greater_equal,
    Operator.LESS: np.less,
    Operator.NEGATE: np.negative,
    Operator.LEAST: lambda *values: reduce(np.minimum, values),
    Operator.GREATEST: lambda *values: reduce(np.maximum, values),
    Operator.SQUARE_ROOT: np.sqrt,
    Operator.NULL_IF: _null_if,
    Operator.WHOLE: _whole,
    Operator.DATE: lambda days: _whole(days).astype("datetime64[D]"),
    Operator.TIMESTAMP: lambda seconds: _whole(seconds * _MICROSECONDS).astype("datetime64[us]"),
}

_WITH_NULL: Meaning = {
    **_IN_VECTORS, Operator.NULL_IF: lambda value, other: np.where(value == other, np.nan, value),
}  # fmt: skip

_LISTED: dict[type, tuple[Callable[[Any], exp.Expr], str]] = {
    str: (exp.Literal.string, "O"),
    bool: (lambda value: exp.Boolean(this=value), "?"),
    int: (lambda value: _cast(exp.Literal.number(value), exp.DType.BIGINT), "i8"),
    float: (number_sql, "f8"),
    date: (lambda value: _cast(exp.Literal.string(value.isoformat()), exp.DType.DATE), "M8[D]"),
    datetime: (lambda value: _cast(exp.Literal.string(value.isoformat(" ")), exp.DType.TIMESTAMP), "M8[us]"),
}
"""For each type of listed values: its literal in the sandbox, and the numpy type of its vectors."""

assert set(_LISTED) == set(LISTED), "a type of listed values without a meaning"
assert set(_AS_SQL) == set(_IN_VECTORS) == set(Operator), "an operator without a meaning"
