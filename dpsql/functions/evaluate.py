"""Evaluation of row expressions in Python: by the meaning in each function's entry, or here for functions that handle NULL.

It computes the images of finite domains (the public keys that an expression can take) and is, in tests, the reference with
which every engine's emitted SQL is compared. Values: int, float, str, bool, date, datetime, None for NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from dpsql.functions.numeric import MOST_TEXT, REGISTRY
from dpsql.functions.signatures import common_type
from dpsql.functions.values import compare, to_timestamp
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, ReleasedValue


def evaluate(expression: Expr, row: Mapping[str, Any]) -> Any:
    """Return the value of `expression` where columns (and released values) have the values of `row`."""
    if isinstance(expression, (Column, ReleasedValue)):
        return _typed(row[expression.name], expression.facts.type)
    if not isinstance(expression, Call):
        return _typed(expression.value, expression.facts.type)
    name = expression.function
    if name in _LAZY:
        return _LAZY[name](expression, row)
    values = []
    for argument in expression.arguments:
        value = evaluate(argument, row)
        if value is None:
            return None
        values.append(value)
    try:
        result = REGISTRY[name].of_values(*values)
    except (OverflowError, ValueError, ZeroDivisionError):
        return None
    return _typed(result, expression.facts.type)


def _typed(value: Any, type_: Type) -> Any:
    """Return a value as its SQL type represents it; an integer beyond 64 bits is NULL."""
    if value is None or type_ is Type.NULL:
        return None
    if type_ is Type.REAL:
        return float(value)
    if type_ is Type.INTEGER:
        number = int(value)
        return number if -(2**63) <= number < 2**63 else None
    return to_timestamp(value) if type_ is Type.TIMESTAMP else value


def _logic(stop: bool) -> Callable[[Call, Mapping[str, Any]], Any]:
    def run(expression: Call, row: Mapping[str, Any]) -> Any:
        values = [evaluate(argument, row) for argument in expression.arguments]
        if stop in values:
            return stop
        return None if None in values else not stop

    return run


def _case(expression: Call, row: Mapping[str, Any]) -> Any:
    *branches, default = expression.arguments
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if evaluate(condition, row) is True:
            return _typed(evaluate(value, row), expression.facts.type)
    return _typed(evaluate(default, row), expression.facts.type)


def _coalesce(expression: Call, row: Mapping[str, Any]) -> Any:
    for argument in expression.arguments:
        value = evaluate(argument, row)
        if value is not None:
            return _typed(value, expression.facts.type)
    return None


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[[Call, Mapping[str, Any]], Any]:
    def run(expression: Call, row: Mapping[str, Any]) -> Any:
        best: Any = None
        for argument in expression.arguments:
            value = _typed(evaluate(argument, row), expression.facts.type)
            if value is not None and (best is None or compare(value, best, better)):
                best = value
        return best

    return run


def _compared(expression: Call, row: Mapping[str, Any]) -> list[Any]:
    """Return the values of a list's arguments in their common type: the engine reads all as doubles if one is."""
    type_ = common_type(expression.arguments)
    return [_typed(evaluate(argument, row), type_) for argument in expression.arguments]


def _in(expression: Call, row: Mapping[str, Any]) -> Any:
    value, *items = _compared(expression, row)
    if value is None:
        return None
    if any(item is not None and compare(value, item, operator.eq) for item in items):
        return True
    return None if None in items else False


def _place_in(expression: Call, row: Mapping[str, Any]) -> int | None:
    value, *items = _compared(expression, row)
    indexes = (
        index for index, item in enumerate(items) if None not in (value, item) and compare(value, item, operator.eq)
    )
    return next(indexes, None)


def _nullif(expression: Call, row: Mapping[str, Any]) -> Any:
    left, right = (evaluate(argument, row) for argument in expression.arguments)
    return None if left is not None and right is not None and compare(left, right, operator.eq) else left


def _not_distinct(expression: Call, row: Mapping[str, Any]) -> bool:
    left, right = (evaluate(argument, row) for argument in expression.arguments)
    if left is None or right is None:
        return left is right
    return compare(left, right, operator.eq)


def _concat_ws(expression: Call, row: Mapping[str, Any]) -> str:
    separator, *parts = (evaluate(argument, row) for argument in expression.arguments)
    return str(separator.join(part for part in parts if part is not None)[:MOST_TEXT])


_LAZY: dict[str, Callable[[Call, Mapping[str, Any]], Any]] = {
    "and": _logic(False),
    "or": _logic(True),
    "case": _case,
    "coalesce": _coalesce,
    "least": _extreme(operator.lt),
    "greatest": _extreme(operator.gt),
    "in": _in,
    "place_in": _place_in,
    "nullif": _nullif,
    "not_distinct": _not_distinct,
    "concat_ws": _concat_ws,
    "is_null": lambda e, row: evaluate(e.arguments[0], row) is None,
    "is_true": lambda e, row: evaluate(e.arguments[0], row) is True,
    "is_false": lambda e, row: evaluate(e.arguments[0], row) is False,
}

MEANINGS = frozenset({*_LAZY, *(name for name, entry in REGISTRY.items() if entry.meaning is not None)})
"""Functions with a meaning in Python: in their entry, or here if they accept NULL or do not evaluate all arguments."""
