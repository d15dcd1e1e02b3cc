"""The values that an expression can take, if policy and text leave few: MODE, and MIN of a text, choose among them.

A list follows from policy and text alone. A value that is not on it, and NULL, is not counted.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

from dpsql.functions.public_domains import domain_of
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal, literal

MOST_LISTED = 1_000
"""Largest number of values of a list: the engine compares each row's value with all of them."""
MOST_WHOLE = 1 << 17
"""Largest number of integers or days between two bounds, which need no list."""

_INFINITE = (inf, -inf)


def is_whole_range(value: Expr) -> bool:
    """Return whether every integer, or day, between the bounds counts as a value, because the expression has no list."""
    facts = value.facts
    if facts.type not in (Type.INTEGER, Type.DATE) or not facts.bounded or facts.values is not None:
        return False
    size = facts.size()
    if size is None or size > MOST_WHOLE:
        return False
    return not isinstance(value, Call) or size > MOST_LISTED or listed(value) is None


def listed(value: Expr) -> tuple[Any, ...] | None:
    """Return the values in SQL's ascending order, texts by their bytes; None if they are unknown, or if there are none or more
    than `MOST_LISTED`."""
    size = value.facts.size()
    if isinstance(value, Literal) or (value.facts.values is None and size is not None and size > MOST_WHOLE):
        return None
    values = domain_of(value)
    if values is None:
        return None
    present = sorted(_exact(element) for element in values if element is not None and element not in _INFINITE)
    return tuple(present) if 0 < len(present) <= MOST_LISTED else None


def _exact(value: Any) -> Any:
    """Return a value of a list in the form of a query's constants: reals as fractions."""
    return Fraction(value) if isinstance(value, float) else value


def place_of(value: Expr, values: tuple[Any, ...]) -> Call:
    """Return the expression of the number of a row's value in the list, which is NULL for a value that is not on it."""
    return call("place_in", value, *(literal(element) for element in values))
