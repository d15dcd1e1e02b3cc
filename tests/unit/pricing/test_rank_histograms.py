"""Quantiles as measurements: the grid that bounds and groups give, and what the number of a cell stands for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.formulas import Element, Formula
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Column, Expr, Literal, Term
from dpsql.pricing.rank_histograms import (
    LEAST_CELLS,
    cell_term,
    cell_value,
    end_values,
    periods,
)
from dpsql.release.formulas import numbers


def integers(lower: int, upper: int) -> Column:
    return Column("v", Facts(Type.INTEGER, Fraction(lower), Fraction(upper)))


def reals(lower: str, upper: str) -> Column:
    return Column("v", Facts(Type.REAL, Fraction(lower), Fraction(upper)))


def moments(lower: Any, upper: Any) -> Column:
    return Column("v", Facts(Type.TIMESTAMP if isinstance(lower, datetime) else Type.DATE, lower, upper))


def truncated(unit: str, value: Column) -> Call:
    return call("date_trunc", Literal(unit, literal_facts(unit)), value)


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


def test_groups_that_leave_too_few_cells_are_refused() -> None:
    assert cell_term(reals("0", "1"), None, 1 << 16).magnitude <= LEAST_CELLS
    for value in (reals("0", "1"), integers(0, 3)):
        with pytest.raises(Refusal) as caught:
            cell_term(value, None, (1 << 16) + 1)
        assert caught.value.slug == "many_cells"


LISTED = Column("v", Facts(Type.TEXT, values=("z", "", None, "m")))


# --- dates and times ------------------------------------------------------------------------------------------------


def test_only_computed_moments_that_are_few_are_periods() -> None:
    months = [truncated("month", moments(date(2000, 1, 1), date(2000 + years, 8, 1))) for years in (10, 11)]
    assert len(periods(months[0])) == 128 and periods(months[1]) == ()
    assert periods(moments(date(2024, 1, 1), date(2024, 1, 9))) == ()
    assert periods(integers(0, 3)) == () and periods(LISTED) == ()


# --- what a cell stands for -----------------------------------------------------------------------------------------


def test_a_shown_value_lies_within_the_bounds() -> None:
    value = reals("-10", "0.1")
    term = cell_term(value, None, 1)
    assert shown(value, term, 0) == -10 and shown(value, term, term.magnitude + 9) == 0.1
    assert shown(value, term, 1) == -10 + 2.0**-term.grid


def test_the_ends_of_a_bar_are_those_of_the_cells_and_within_the_bounds() -> None:
    """One step further for values that share cells, and none for integers that have their own."""
    whole, real = integers(0, 9), reals("0", "1")
    for value, step in ((whole, 0.0), (real, 2.0**-15)):
        term = cell_term(value, None, 1)
        low, high = end_values(value, term, ("q", "q"))
        assert (plain(low, 5), plain(high, 5)) == (5 * 2.0**-term.grid - step, 5 * 2.0**-term.grid + step)
        assert plain(low, 0) == float(value.facts.lower) and plain(high, term.magnitude) == float(value.facts.upper)
