"""All meanings of the operators of formulas, in one table: SQL for the sandbox, values in vectors, intervals, and linearity.

SQL and vectors are the same IEEE operations in the same order, so they give the same doubles (tests/unit/release/error_bars/
test_direct.py). The import fails if an operator lacks a meaning. `read` turns an expression of an analyst into a formula of the
same operators, so that nothing else has to recognise SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache, reduce
from math import ceil, copysign, floor, inf, isfinite, sqrt
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.plan.formulas import LISTED, Element, Formula, NoisyValue, Number, Operation, Operator, terms_of
from dpsql.plan.intervals import Type
from dpsql.storage.records import dataclass

Vector = npt.NDArray[Any]
Extent = tuple[float, float]
"""A closed interval that a value cannot leave."""
EVERYTHING: Extent = (-inf, inf)
_EDGE, _LARGEST = 2.0**63, 2.0**1023
_LIMITS = {Type.INTEGER: _EDGE, Type.TIMESTAMP: _EDGE, Type.DATE: 2.0**31}
"""Ends of the numbers of a type: the first is one, the last is not."""
_NO_NOISE = "an estimate before the noise of its terms is known (`plan.formulas.estimated`, `plugged_in`)"
_MICROSECONDS = 1e6
"""Microseconds per second."""


@dataclass(frozen=True)
class Part:
    """A part of a weighted sum: `factor` times the sum of `weights` times terms, rounded to an integer if `rounded` (then the sum
    is an integer without noise). Weights and factor are numbers, or one number per row."""

    weights: Mapping[str, Any]
    factor: Any = 1.0
    rounded: bool = False


Linear = tuple[Part, ...]
"""A constant plus these parts; no parts if a formula reads no term."""
Operands = Sequence[tuple[Linear, Any]]
"""The linear form of each operand, and its values if it is exact."""


@dataclass(frozen=True)
class Meaning:
    """The meanings of one operator. `sql`: the expression over those of the operands. `numbers`: the same in doubles, NaN for
    NULL. `interval`: of the result from those of the operands. `linear`: the weighted sum, None where it is none. `written`: the
    node with which an analyst writes the operator."""

    sql: Callable[..., exp.Expr]
    numbers: Callable[..., Any]
    interval: Callable[..., Extent]
    linear: Callable[[Operands, frozenset[str]], Linear | None] = lambda operands, whole: None
    written: type[exp.Expr] | None = None


# --- SQL --------------------------------------------------------------------------------------------------------------


def number_sql(value: float) -> exp.Expr:
    """Return an expression that the engine evaluates to exactly the double `value`."""
    text = repr(abs(value))
    literal = exp.Literal.number(text if "e" in text else f"{text}e0")
    positive = exp.Cast(this=literal, to=exp.DType.DOUBLE.into_expr())
    return positive if value >= 0 else exp.Neg(this=positive)


@lru_cache(maxsize=1024)
def formula_sql(formula: Formula) -> exp.Expr:
    """Return a formula as an expression in parentheses over columns named like its terms: cached, so copy it before use."""
    return exp.Paren(this=_sql(formula))


def _sql(formula: Formula) -> exp.Expr:
    if isinstance(formula, NoisyValue):
        return exp.Column(this=exp.Identifier(this=formula.term, quoted=True))
    if isinstance(formula, Number):
        return number_sql(formula.value)
    if isinstance(formula, Element):
        return _element_sql(formula)
    assert isinstance(formula, Operation), _NO_NOISE
    return MEANINGS[formula.operator].sql(*(_sql(operand) for operand in formula.operands))


def _element_sql(element: Element) -> exp.Expr:
    """Return a list_extract call, whose index counts from 1."""
    values = [_LISTED[type(value)](value) for value in element.values]
    number = _cast(exp.Paren(this=_sql(element.number)), exp.DType.BIGINT)
    index = exp.Add(
        this=exp.Mod(this=number, expression=exp.Literal.number(len(values))), expression=exp.Literal.number(1)
    )
    return exp.Anonymous(this="list_extract", expressions=[exp.Array(expressions=values), index])


def _operand(node: exp.Expr) -> exp.Expr:
    """Return an operand, in parentheses if it is an operation itself."""
    return exp.Paren(this=node) if isinstance(node, (exp.Binary, exp.Unary)) else node


def _binary(kind: type[exp.Expr]) -> Callable[..., exp.Expr]:
    return lambda left, right: kind(this=_operand(left), expression=_operand(right))


def _cast(node: exp.Expr, type_: exp.DType) -> exp.Expr:
    return exp.Cast(this=node, to=type_.into_expr())


def _whole_sql(value: exp.Expr) -> exp.Expr:
    return _cast(exp.Round(this=value), exp.DType.BIGINT)


def _date_sql(days: exp.Expr) -> exp.Expr:
    first = _cast(exp.Literal.string("1970-01-01"), exp.DType.DATE)
    return exp.Add(this=first, expression=_cast(_whole_sql(days), exp.DType.INT))


def _timestamp_sql(seconds: exp.Expr) -> exp.Expr:
    microseconds = exp.Mul(this=_operand(seconds), expression=number_sql(_MICROSECONDS))
    return exp.Anonymous(this="make_timestamp", expressions=[_whole_sql(microseconds)])


# --- values -----------------------------------------------------------------------------------------------------------


def numbers(formula: Formula, terms: Mapping[str, Vector]) -> Vector:
    """Return the values of a formula as doubles in the shape of the terms, NaN for NULL: days since 1970 for a date, microseconds
    for a timestamp, the position for an element of a list that holds no numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(_numbers(formula, terms), dtype=np.float64)


def formula_values(formula: Formula, type_: Type, terms: Mapping[str, Vector]) -> pa.Array | None:
    """Return the values of a formula in the sandbox's type, one for each of the terms' numbers; None where a number on the way is
    not finite, or a value is NULL or beyond its type."""
    inner = formula.number if isinstance(formula, Element) else formula
    try:
        with np.errstate(all="raise", under="ignore"):
            values = np.asarray(_numbers(inner, terms), dtype=np.float64)
    except FloatingPointError:
        return None
    limit = _LIMITS.get(type_, _LARGEST)
    if not ((values >= -limit) & (values < limit)).all():
        return None
    if isinstance(formula, Element):
        return pa.array(formula.values).take(pa.array(values.astype(np.int64) % len(formula.values)))
    return typed(values, type_)


def typed(values: Vector, type_: Type | None) -> pa.Array:
    """Return numbers as a column of the sandbox in the type of a measure, NaN as NULL; dates and timestamps are days and
    microseconds as in `numbers`, and integers beyond 64 bits stay doubles."""
    nothing = np.isnan(values)
    if type_ is Type.DATE:
        return pa.array(np.where(nothing, 0, values).astype(np.int32), mask=nothing).cast(pa.date32())
    if type_ is Type.TIMESTAMP:
        return pa.array(np.where(nothing, 0, values).astype(np.int64), mask=nothing).cast(pa.timestamp("us"))
    if type_ is Type.BOOLEAN:
        return pa.array(values > 0.5, mask=nothing)
    if type_ is Type.INTEGER and np.all((values >= -_EDGE) & (values < _EDGE) | nothing):
        return pa.array(np.where(nothing, 0, values).astype(np.int64), mask=nothing)
    return pa.array(values, mask=nothing)


def _numbers(formula: Formula, terms: Mapping[str, Vector]) -> Vector:
    if isinstance(formula, NoisyValue):
        return terms[formula.term]
    if isinstance(formula, Number):
        return np.float64(formula.value)  # type: ignore[return-value]
    if isinstance(formula, Element):
        number = _numbers(formula.number, terms)
        if not isinstance(formula.values[0], (bool, int, float)):
            return number
        return np.asarray(np.array(formula.values)[number.astype(np.int64) % len(formula.values)])
    assert isinstance(formula, Operation), _NO_NOISE
    steps = formula.__dict__.get(_STEPS) or formula.__dict__.setdefault(_STEPS, _steps(formula))
    values: list[Vector] = []
    for step in steps:
        kind = type(step)
        values.append(terms[step] if kind is str else step[0](*step[1](values)) if kind is tuple else step)
    return values[-1]


_STEPS = "#steps"


def _steps(formula: Operation) -> list[Any]:
    """Return the different parts of a formula, operands first: terms by name, constants, and operations with what takes their
    operands from the values so far. Formulas serve many answers, and visiting one takes longer than its operations."""
    steps, positions = list[Any](), dict[Formula, int]()

    def position(part: Formula) -> int:
        if part not in positions:
            if isinstance(part, Operation):
                taken = [position(operand) for operand in part.operands]
                # Of one operand a list, too: `itemgetter` of one position would return the value itself.
                operands = itemgetter(*taken) if len(taken) > 1 else itemgetter(slice(taken[0], taken[0] + 1))
                steps.append((MEANINGS[part.operator].numbers, operands))
            else:
                assert isinstance(part, (NoisyValue, Number)), _NO_NOISE
                steps.append(part.term if isinstance(part, NoisyValue) else np.float64(part.value))
            positions[part] = len(positions)
        return positions[part]

    position(formula)
    return steps


def _rounded(value: Vector) -> Vector:
    """Round half away from zero."""
    size = np.abs(value)
    below = np.floor(size)
    return np.asarray(np.copysign(below + (size - below >= 0.5), value))


# --- intervals --------------------------------------------------------------------------------------------------------


def interval(formula: Formula, of_term: Callable[[str], Extent] = lambda term: EVERYTHING) -> Extent:
    """Return the closed interval that a formula cannot leave, by interval arithmetic (Moore 1966) from the bounds in it."""
    if isinstance(formula, NoisyValue):
        return of_term(formula.term)
    if isinstance(formula, Number):
        return formula.value, formula.value
    if not isinstance(formula, Operation):
        return EVERYTHING
    if formula.operator is Operator.DIVIDE and _is_share_of_bound(*formula.operands):
        return -1.0, 1.0
    parts = [interval(operand, of_term) for operand in formula.operands]
    if formula.operator is Operator.MULTIPLY and formula.operands[0] == formula.operands[1]:
        return square_of(parts[0])
    return MEANINGS[formula.operator].interval(*parts)


def clamped(formula: Formula) -> tuple[Formula, Formula | None, Formula | None]:
    """Return x, low and high of `within(x, low, high)`, rounded or not; for any other formula the formula, None and None. The
    high bound is None if only `greatest` is there."""
    while isinstance(formula, Operation) and formula.operator in _ROUNDING:
        formula = formula.operands[0]
    upper, lower = _two_operands(formula, Operator.LEAST), _two_operands(formula, Operator.GREATEST)
    if upper is not None and (inner := _two_operands(upper[0], Operator.GREATEST)) is not None:
        return inner[0], inner[1], upper[1]
    return (formula, None, None) if lower is None else (lower[0], lower[1], None)


def _two_operands(formula: Formula, operator: Operator) -> tuple[Formula, Formula] | None:
    of_operator = isinstance(formula, Operation) and formula.operator is operator and len(formula.operands) == 2
    return (formula.operands[0], formula.operands[1]) if of_operator and isinstance(formula, Operation) else None


def _is_share_of_bound(above: Formula, below: Formula) -> bool:
    """Return whether a quotient is within(x, -b, b) / null_if(b, 0), the form of correlations."""
    bound, (_, low, high) = _two_operands(below, Operator.NULL_IF), clamped(above)
    return bound is not None and high is not None and bound[0] == high and low == -high


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _product(left: Extent, right: Extent) -> Extent:
    ends = [_times(x, y) for x in left for y in right]
    return min(ends), max(ends)


def _quotient(left: Extent, right: Extent) -> Extent:
    if right[0] <= 0 <= right[1]:
        return EVERYTHING
    low, high = (1 / y if isfinite(y) else 0.0 for y in right)
    return _product(left, (low, high))


def square_of(extent: Extent) -> Extent:
    low, high = sorted(end * end for end in extent)
    return (0.0 if extent[0] <= 0 <= extent[1] else low), high


def _rounded_end(end: float) -> float:
    return copysign(floor(abs(end) + 0.5), end) if isfinite(end) else end


def _outer(round_end: Callable[[float], int], end: float) -> float:
    return float(round_end(end)) if isfinite(end) else end


def _whole_extent(extent: Extent) -> Extent:
    return _rounded_end(extent[0]), _rounded_end(extent[1])


# --- linearity --------------------------------------------------------------------------------------------------------


def linear(
    formula: Formula, noisy: frozenset[str], whole: frozenset[str], exact: Mapping[str, Vector]
) -> Linear | None:
    """Return a formula as a weighted sum of `noisy` terms (`whole`: integers), or None. `exact`: all other terms' values."""
    if terms_of(formula).isdisjoint(noisy):
        return ()
    if isinstance(formula, NoisyValue):
        return (Part({formula.term: 1.0}),)
    if not isinstance(formula, Operation):
        return None
    operands: list[tuple[Linear, Any]] = []
    for operand in formula.operands:
        form = linear(operand, noisy, whole, exact)
        if form is None:
            return None
        operands.append((form, None if form else numbers(operand, exact)))
    with np.errstate(all="ignore"):
        return MEANINGS[formula.operator].linear(operands, whole)


def scaled(form: Linear, weight: Any) -> Linear:
    return tuple(
        Part(part.weights, part.factor * weight, True) if part.rounded
        else Part({name: w * weight for name, w in part.weights.items()}, part.factor)
        for part in form
    )  # fmt: skip


def _added(operands: Operands, whole: frozenset[str]) -> Linear:
    parts = [part for form, _ in operands for part in form]
    weights: dict[str, Any] = {}
    for part in parts:
        for name, weight in part.weights.items() if not part.rounded else ():
            weights[name] = weights[name] + weight if name in weights else weight
    straight = [Part(weights)] if weights else []
    return (*straight, *(part for part in parts if part.rounded))


def _subtracted(operands: Operands, whole: frozenset[str]) -> Linear:
    (left, value), (right, other) = operands
    return _added(((left, value), (scaled(right, -1.0), other)), whole)


def _multiplied(operands: Operands, whole: frozenset[str]) -> Linear | None:
    (left, value), (right, other) = operands
    if left and right:
        return None
    return scaled(left, other) if left else scaled(right, value)


def _divided(operands: Operands, whole: frozenset[str]) -> Linear | None:
    (left, _), (right, other) = operands
    return None if right else scaled(left, 1.0 / other)


def _whole_form(operands: Operands, whole: frozenset[str]) -> Linear | None:
    """Return the form of a rounded sum that is an integer without noise."""
    form = operands[0][0]
    if len(form) != 1 or form[0].rounded:
        return None
    return _rounded_form(operands, whole) or (Part(form[0].weights, form[0].factor, True),)


def _rounded_form(operands: Operands, whole: frozenset[str]) -> Linear | None:
    """Return the form of a rounded sum: None, as tiny noise may move it by one, but a whole number is its own rounding."""
    form = operands[0][0]
    if len(form) != 1 or form[0].rounded or len(form[0].weights) != 1:
        return None
    ((name, weight),) = form[0].weights.items()
    return form if name in whole and np.ndim(weight) == 0 and weight == 1.0 else None


# --- the table --------------------------------------------------------------------------------------------------------


def _arithmetic(
    node: type[exp.Expr], operation: Callable[..., Any], extent: Callable[..., Extent], form: Any = None
) -> Meaning:
    return Meaning(_binary(node), operation, extent, form or (lambda operands, whole: None), node)


def _comparison(node: type[exp.Expr], operation: Callable[..., Any]) -> Meaning:
    def compared(left: Vector, right: Vector) -> Vector:
        return np.where(np.isnan(left) | np.isnan(right), np.nan, operation(left, right))

    return Meaning(_binary(node), compared, lambda left, right: (0.0, 1.0), written=node)


def _choice(node: type[exp.Expr], operation: Any, ignoring: Any, choose: Callable[..., float]) -> Meaning:
    """Return the meaning of LEAST or GREATEST, which ignore NULL; a formula has none among the operands of its own."""

    def of_two(first: Vector, second: Vector) -> Vector:
        chosen = operation(first, second)
        return np.asarray(
            ignoring(first, second) if np.isnan(chosen).any() else chosen
        )  # which differ in the sign of 0

    return Meaning(
        lambda first, *rest: node(this=first, expressions=list(rest), ignore_nulls=True),
        lambda *values: reduce(of_two, values),
        lambda *extents: (choose(low for low, _ in extents), choose(high for _, high in extents)),
        written=node,
    )


MEANINGS: dict[Operator, Meaning] = {
    Operator.ADD: _arithmetic(exp.Add, np.add, lambda a, b: (a[0] + b[0], a[1] + b[1]), _added),
    Operator.SUBTRACT: _arithmetic(exp.Sub, np.subtract, lambda a, b: (a[0] - b[1], a[1] - b[0]), _subtracted),
    Operator.MULTIPLY: _arithmetic(exp.Mul, np.multiply, _product, _multiplied),
    Operator.DIVIDE: _arithmetic(exp.Div, np.divide, _quotient, _divided),
    Operator.AT_LEAST: _comparison(exp.GTE, np.greater_equal),
    Operator.LESS: _comparison(exp.LT, np.less),
    Operator.NEGATE: Meaning(
        lambda value: exp.Neg(this=_operand(value)), np.negative, lambda a: (-a[1], -a[0]),
        lambda operands, whole: scaled(operands[0][0], -1.0), exp.Neg,
    ),
    Operator.LEAST: _choice(exp.Least, np.minimum, np.fmin, min),
    Operator.GREATEST: _choice(exp.Greatest, np.maximum, np.fmax, max),
    Operator.SQUARE_ROOT: Meaning(
        lambda value: exp.Sqrt(this=value), np.sqrt, lambda a: (sqrt(max(a[0], 0.0)), sqrt(max(a[1], 0.0))),
        written=exp.Sqrt,
    ),
    Operator.NULL_IF: Meaning(
        lambda value, other: exp.Nullif(this=value, expression=other),
        lambda value, other: np.where(value == other, np.nan, value), lambda a, b: a, written=exp.Nullif,
    ),
    Operator.ROUND: Meaning(
        lambda value: exp.Round(this=value), _rounded, _whole_extent, _rounded_form, exp.Round,
    ),
    Operator.WHOLE: Meaning(_whole_sql, _rounded, _whole_extent, _whole_form),
    Operator.DATE: Meaning(_date_sql, _rounded, lambda a: EVERYTHING),
    Operator.TIMESTAMP: Meaning(_timestamp_sql, lambda seconds: _rounded(seconds * _MICROSECONDS), lambda a: EVERYTHING),
}  # fmt: skip
_ROUNDING = (Operator.ROUND, Operator.WHOLE, Operator.DATE)

_LISTED: dict[type, Callable[[Any], exp.Expr]] = {
    str: exp.Literal.string,
    bool: lambda value: exp.Boolean(this=value),
    int: lambda value: _cast(exp.Literal.number(value), exp.DType.BIGINT),
    float: number_sql,
    date: lambda value: _cast(exp.Literal.string(value.isoformat()), exp.DType.DATE),
    datetime: lambda value: _cast(exp.Literal.string(value.isoformat(" ")), exp.DType.TIMESTAMP),
}
"""The literal in the sandbox of each type of listed values."""

assert set(_LISTED) == set(LISTED), "a type of listed values without a meaning"
assert set(MEANINGS) == set(Operator), "an operator without a meaning"


# --- expressions of analysts ------------------------------------------------------------------------------------------

WRITTEN = {meaning.written: operator for operator, meaning in MEANINGS.items() if meaning.written is not None}
"""The operator that an analyst writes with a node."""
_REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)


def read(node: exp.Expr, leaf: Callable[[exp.Expr], Formula | None]) -> Formula | None:
    """Return an expression as a formula, or None if it has another operation. `leaf` is asked first for each part, and decides
    what columns are; casts to doubles do not change a number."""
    meaning = leaf(node)
    if meaning is not None:
        return meaning
    if isinstance(node, (exp.Paren, exp.Alias)) or (isinstance(node, exp.Cast) and node.to.this in _REALS):
        return read(node.this, leaf)
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.BIGINT and isinstance(node.this, exp.Round):
        return read(node.this, leaf)
    if isinstance(node, exp.Literal) and not node.is_string and isfinite(float(node.name)):
        return Number(float(node.name))
    operator = WRITTEN.get(type(node))
    if operator is None or (isinstance(node, exp.Round) and node.args.get("decimals") is not None):
        return None
    operands = [read(part, leaf) for part in node.iter_expressions()]
    if None in operands:
        return None
    return Operation(operator, tuple(operand for operand in operands if operand is not None))


# --- intervals of expressions in SQL -------------------------------------------------------------------------------

# The closed interval that an expression cannot leave, by interval arithmetic (Moore 1966) from the bounds written in it.
#
# The formula of AVG over a column within [0, 1000] is clamped to it, so no bar needs to reach outside, whatever the noise.

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
        within = extent(node.this, extent_of_column) if node.to.this in exp.DataType.NUMERIC_TYPES else EVERYTHING
        rounds = node.to.this in exp.DataType.INTEGER_TYPES
        return (_outer(floor, within[0]), _outer(ceil, within[1])) if rounds else within
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
