"""Checks that stored groups contain all rows of a question, whatever their value of a key: only then may groups be summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Literal
from dpsql.reuse.record import StoredKey

_LEAST, _MOST = {"ge": 0, "gt": 1}, {"le": 0, "lt": -1}
"""The distance from a comparison's bound to the first (or last) whole value that satisfies it."""
_MIRRORED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}


def covers(key: StoredKey, values: Sequence[Any], conditions: Sequence[Expr]) -> bool:
    """Return whether every row that satisfies `conditions` (on the key alone) has one of the key's stored `values`."""
    nulls = key.nulls or any(evaluate(condition, {key.name: None}) is not True for condition in conditions)
    listed = key.complete or any(_pins(condition, key, values) for condition in conditions)
    return nulls and (listed or _lie_between(key, values, conditions))


def _pins(condition: Expr, key: StoredKey, values: Sequence[Any]) -> bool:
    """Return whether a condition is key = literal or key IN (literals), and every literal is one of the stored values."""
    if not isinstance(condition, Call) or condition.function not in ("eq", "in"):
        return False
    sides = condition.arguments
    if condition.function == "eq" and isinstance(sides[1], Column):
        sides = sides[::-1]
    column, *literals = sides
    if not isinstance(column, Column) or not all(isinstance(literal, Literal) for literal in literals):
        return False
    tests = [replace(condition, function="eq", arguments=(column, literal)) for literal in literals]
    return all(any(evaluate(test, {key.name: value}) is True for value in values) for test in tests)


def _lie_between(key: StoredKey, values: Sequence[Any], conditions: Sequence[Expr]) -> bool:
    """Return whether the conditions bound the key from both sides, and all days or whole numbers in between are stored."""
    stored = {_place(value) for value in values}
    least: list[int] = []
    most: list[int] = []
    for condition in conditions:
        if isinstance(condition, Call) and condition.function in _MIRRORED:
            word, (left, right) = condition.function, condition.arguments
            if isinstance(right, Column):
                word, left, right = _MIRRORED[word], right, left
            bound = _place(right.value) if isinstance(left, Column) and isinstance(right, Literal) else None
            if bound is None or left.facts.type not in (Type.INTEGER, Type.DATE):
                continue
            (least if word in _LEAST else most).append(bound + (_LEAST | _MOST)[word])
    if not least or not most:
        return False
    return set(range(max(least), min(most) + 1)) <= stored if min(most) - max(least) <= len(stored) else False


def _place(value: Any) -> int | None:
    """Return a whole number unchanged, a date as its day number, and None for any other value."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal()
    return value if isinstance(value, int) and not isinstance(value, bool) else None
