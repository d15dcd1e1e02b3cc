"""Cells of values that come from a list: one for each value, in SQL's order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.functions.value_lists import place_of
from dpsql.plan.plan import Expr, Term, TermKind

MOST_CELLS = 1 << 24
"""Most cells of all groups together: the engine may return that many rows, whatever the data."""


def listed_term(value: Expr, values: tuple[Any, ...], condition: Expr | None, groups: int) -> Term:
    """Return the SUM term whose integers are the numbers of values in their list. Raises Refusal many_cells."""
    if len(values) * max(1, groups) > MOST_CELLS:
        raise refuse("many_cells", groups=groups, least=len(values), most=MOST_CELLS)
    last = len(values) - 1
    return Term("", TermKind.SUM, place_of(value, values), condition, last, 0, 0, last, 0)


def released_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a list in the types of an answer: exact fractions become doubles."""
    return tuple(float(value) if isinstance(value, Fraction) else value for value in values)
