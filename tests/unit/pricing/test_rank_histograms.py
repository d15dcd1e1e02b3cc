"""Quantiles as measurements: the grid that bounds and groups give, and what the number of a cell stands for."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.functions.evaluate import evaluate
from dpsql.plan.formulas import Element, Formula
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Term
from dpsql.pricing.rank_histograms import cell_term, cell_value
from dpsql.release.formulas import numbers

CONDITION = Column("c", Facts(Type.BOOLEAN))


def integers(lower: int, upper: int) -> Column:
    return Column("v", Facts(Type.INTEGER, Fraction(lower), Fraction(upper)))


def reals(lower: str, upper: str) -> Column:
    return Column("v", Facts(Type.REAL, Fraction(lower), Fraction(upper)))


def cell(term: Term, row: Mapping[str, Any]) -> float:
    """Return the grid integer of a row before rounding."""
    assert term.value is not None
    value = evaluate(term.value, row)
    return float((min(max(value, term.lower), term.upper) - term.centre) * 2**term.grid)


def shown(value: Expr, term: Term, number: int, *, interpolated: bool = False) -> Any:
    """Return what is shown for the number of a cell, as a number or as an element of a list."""
    formula, _ = cell_value(value, term, "q", interpolated)
    if isinstance(formula, Element):
        return formula.values[number]
    return plain(formula, number)


def plain(formula: Formula, number: int) -> float:
    return float(np.broadcast_to(numbers(formula, {"q": np.array([float(number)])}), 1)[0])


# --- grids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "groups"),
    [(0, 9, 1), (-3, 4, 1), (5, 5, 1), (10**15, 10**15 + 3, 7), (0, (1 << 17) - 1, 1), (0, 255, 1 << 16), (-9, 0, 0)],
)
def test_few_integers_have_a_cell_each_from_the_lower_bound_on(lower: int, upper: int, groups: int) -> None:
    value = integers(lower, upper)
    term = cell_term(value, CONDITION, groups)
    assert term.filter == CONDITION and term.magnitude == upper - lower
    for number in (lower, (lower + upper) // 2, upper):
        assert cell(term, {"v": number}) == number - lower
        assert shown(value, term, number - lower) == number
    assert (cell(term, {"v": lower - 1}), cell(term, {"v": upper + 1})) == (0, upper - lower)


GRIDS = [
    (integers(0, 1 << 17), 1, 1 << 16), (integers(0, 256), 1 << 16, 256), (reals("0", "1"), 1, 1 << 16),
    (reals("0", "1"), 16, 1 << 16), (reals("0", "1"), 17, 1 << 15), (reals("0", "1"), 64, 1 << 14),
    (reals("0", "1"), 256, 1 << 12), (reals("0", "1"), 400, 1 << 12), (reals("0", "1"), 1 << 12, 1 << 12),
    (reals("0", "1"), 1 << 14, 1 << 10), (reals("0", "1"), 1 << 16, 1 << 8), (reals("-1000", "1000"), 1, 1 << 16),
]  # fmt: skip
"""A value, the number of groups, and between how many cells and half as many its bounds are divided."""


@pytest.mark.parametrize(("value", "groups", "cells"), GRIDS)
def test_many_values_share_cells_of_a_width_that_is_a_power_of_two(value: Column, groups: int, cells: int) -> None:
    term = cell_term(value, None, groups)
    low, high = value.facts.lower, value.facts.upper
    assert cells // 2 <= term.magnitude <= cells, "as many as groups leave, to within a factor of two"
    for share in (0, Fraction(1, 3), Fraction(7, 8), 1):
        number = float(low + share * (high - low))
        here = cell(term, {"v": int(number) if value.facts.type is Type.INTEGER else number})
        assert abs(here - float((Fraction(number) - low) * Fraction(2) ** term.grid)) <= 1
    assert round(cell(term, {"v": int(high) if value.facts.type is Type.INTEGER else float(high)})) <= term.magnitude
