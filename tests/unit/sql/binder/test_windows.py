"""Windows over protected rows contain only rows of one unit, each with the facts of its possible values."""

from fractions import Fraction

import pytest
from support.bound_questions import binder_of, select, sources_of

from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Column, Expr, Window
from dpsql.sql.binder.joins import joined
from dpsql.sql.binder.per_unit_aggregation import WindowScalars

ROWS = 7
"""Rows of one unit in the relation below, as these tests assume."""


def scalars_over(table: str = "visits") -> WindowScalars:
    node = select(f"SELECT COUNT(*) FROM {table}")
    binder = binder_of(node)
    scope, _ = joined(binder, node, sources_of(binder, node))
    return WindowScalars(scope, ROWS)


def bound(text: str, scalars: WindowScalars) -> Expr:
    return scalars.bind(select(f"SELECT {text} FROM visits").expressions[0].unalias())


def window(text: str) -> Window:
    """Return the only window of an expression."""
    scalars = scalars_over()
    column = bound(text, scalars)
    (entered,) = scalars.windows
    assert column == Column(entered.name, entered.facts)
    return entered


def refused(text: str, table: str = "visits") -> Error:
    with pytest.raises(Error) as caught:
        bound(text, scalars_over(table))
    return caught.value


@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
def test_ranks_go_from_one_to_the_rows_of_a_unit(function: str) -> None:
    entered = window(f"{function}() OVER (PARTITION BY patient_id ORDER BY day)")
    assert entered.word == function
    assert (entered.argument, entered.filter, entered.offset) == (None, None, 0)
    assert (entered.facts.type, entered.facts.lower, entered.facts.upper) == (Type.INTEGER, Fraction(1), Fraction(ROWS))
    assert not entered.facts.nullable


@pytest.mark.parametrize(
    ("call", "lower", "upper"),
    [
        # the row itself counts, unless a condition excludes it
        ("count(*)", 1, ROWS),
        ("count(*) FILTER (WHERE nights > 3)", 0, ROWS),
        ("count(ward)", 0, ROWS),
        ("sum(nights)", 0, 30 * ROWS),
        ("max(nights)", 0, 30),
    ],
)
def test_aggregates_are_within_what_the_rows_of_a_unit_allow(call: str, lower: int, upper: int) -> None:
    facts = window(f"{call} OVER (PARTITION BY patient_id)").facts
    assert (facts.lower, facts.upper) == (lower, upper)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("row_number() OVER ()", "window_over_rows"),
        ("row_number() OVER (ORDER BY day)", "window_over_rows"),
        ("row_number() OVER (PARTITION BY ward)", "window_over_rows"),
        ("row_number() OVER (PARTITION BY patient_id % 7)", "window_over_rows"),
        ("row_number() OVER (PARTITION BY patient_id * patient_id)", "window_over_rows"),
        # meaningless over the rows of one unit here
        ("abs(nights) OVER (PARTITION BY patient_id)", "window_over_rows"),
        ("last_value(nights) OVER (PARTITION BY patient_id)", "unknown_aggregate"),
        ("count(DISTINCT ward) OVER (PARTITION BY patient_id)", "window_over_rows"),
        ("median(nights) OVER (PARTITION BY patient_id)", "unknown_aggregate"),
        ("ntile(3) OVER (PARTITION BY patient_id)", "unknown_aggregate"),
    ],
)
def test_windows_over_rows_of_several_units_are_refused(text: str, slug: str) -> None:
    assert refused(text).slug == slug
