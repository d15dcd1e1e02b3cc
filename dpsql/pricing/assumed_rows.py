"""Rows that are assumed where an expected error depends on values: between their bounds, a tenth of the way up on average.

Columns vary almost independently, and no row is without a value. Nothing here is read from data.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpsql.functions.evaluate import evaluate
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, ReleasedValue, Term, TermKind
from dpsql.pricing.joint_sums import factors_of

_ROWS = 64
_MEAN = 0.1
_Bounded = tuple[Expr, float, float]
"""A value and its bounds."""


def assumed_value(term: Term) -> float:
    """Return what one assumed row adds to a term on average, in the unit of the answer."""
    if term.kind in (TermKind.SUM, TermKind.DISTINCT_SUM):
        return _mean([value for (value,) in _rows(term)]) - float(term.centre)
    if term.kind is TermKind.SQUARE_PART:
        return _mean([_squares(term, value)[term.place] for (value,) in _rows(term)])
    if term.kind is TermKind.PRODUCT_PART:
        first, second = factors_of(term)
        places = term.place & 1, term.place >> 1
        return _mean([_ends(first, y)[places[0]] * _ends(second, x)[places[1]] for y, x in _rows(first, second)])
    if term.kind is TermKind.PAIR_PART:
        first, second = factors_of(term)
        places = divmod(term.place, 3)
        return _mean([_squares(first, y)[places[0]] * _squares(second, x)[places[1]] for y, x in _rows(first, second)])
    return 0.0 if term.shares else 1.0  # a shared count is that of rows without a value


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _ends(term: Term, value: float) -> tuple[float, float]:
    """Return what a value adds to the parts of shared products, by place."""
    return float(term.upper) - value, value - float(term.lower)


def _squares(term: Term, value: float) -> tuple[float, float, float]:
    """Return what a value adds to the parts of shared squares, by place."""
    below, above = _ends(term, value)
    return below**2, 2 * below * above, above**2


def _rows(*terms: Term) -> list[tuple[float, ...]]:
    """Return the values of sums of bounded values in the assumed rows."""
    return _rows_of(
        tuple((term.value, float(term.lower), float(term.upper)) for term in terms if term.value is not None)
    )


@lru_cache(maxsize=256)
def _rows_of(values: tuple[_Bounded, ...]) -> list[tuple[float, ...]]:
    """Return the values in the assumed rows. The parts of a sum, and most questions of a session, ask for the same ones."""
    inputs = {named.name: named for value, _, _ in values for named in _inputs(value)}
    names = sorted(inputs.items())
    rows = []
    for row in range(_ROWS):
        places = [((2 * index + 1) * row + 5 * index) % _ROWS for index in range(len(names))]
        row_values = {name: _assumed(column, place) for (name, column), place in zip(names, places, strict=True)}
        rows.append(tuple(_value(*value, row_values) for value in values))
    return rows


def _value(expression: Expr, low: float, high: float, row: dict[str, float | int | None]) -> float:
    """Return the value of a sum in one row: a tenth of the way up where it cannot be computed."""
    value = None if None in row.values() else evaluate(expression, row)
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return low + (high - low) * _MEAN
    return min(max(float(value), low), high)


def _assumed(column: Column | ReleasedValue, place: int) -> float | int | None:
    """Return the value of a numeric column (or released value) with bounds in one of `_ROWS` rows."""
    lower, upper = column.facts.lower, column.facts.upper
    if column.facts.type not in (Type.INTEGER, Type.REAL) or lower is None or upper is None:
        return None
    value = float(lower) + (float(upper) - float(lower)) * float(((place + 0.5) / _ROWS) ** (1 / _MEAN - 1))
    return round(value) if column.facts.type is Type.INTEGER else value


def _inputs(expression: Expr) -> list[Column | ReleasedValue]:
    """Return the columns and the released values in a row expression."""
    if isinstance(expression, (Column, ReleasedValue)):
        return [expression]
    arguments = expression.arguments if isinstance(expression, Call) else ()
    return [named for argument in arguments for named in _inputs(argument)]
