"""Windows over protected rows contain only rows of one unit, each with the facts of its possible values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from sqlglot import exp
from support.bound_questions import binder_of, in_words, refusal, select, sources_of

from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Column, Expr, UnitWindow, Window
from dpsql.sql.binder.joins import joined
from dpsql.sql.binder.windows import MOST_OFFSET, MOST_WINDOWS, WindowScalars

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
    ("call", "word", "offset"),
    [
        ("lag(nights)", "lag", 1),
        ("lag(nights, 0)", "lag", 0),
        ("lag(nights, 1)", "lag", 1),
        ("lead(nights)", "lead", 1),
        (f"lead(nights, {MOST_OFFSET})", "lead", MOST_OFFSET),
        ("first_value(nights)", "first_value", 1),
    ],
)
def test_neighbours_are_values_of_another_row_or_null(call: str, word: str, offset: int) -> None:
    entered = window(f"{call} OVER (PARTITION BY patient_id ORDER BY day)")
    assert (entered.word, entered.offset) == (word, offset)
    assert entered.argument is not None
    assert in_words(entered.argument) == "nights"
    assert (entered.facts.type, entered.facts.lower, entered.facts.upper) == (Type.INTEGER, 0, 30)
    assert entered.facts.nullable
    assert entered.facts.max_total is None


@pytest.mark.parametrize("offset", [str(MOST_OFFSET + 1), "1.5", "nights", "-1", "'one'", "1 + 1", "999999999"])
def test_offsets_are_literals_up_to_a_thousand(offset: str) -> None:
    assert MOST_OFFSET == 1000
    error = refused(f"lag(nights, {offset}) OVER (PARTITION BY patient_id ORDER BY day)")
    assert error.slug == "wrong_arguments"
    assert "1000" in error.message


@pytest.mark.parametrize(
    ("call", "word", "argument", "condition"),
    [
        ("count(*)", "count", None, None),
        ("count(ward)", "count", "ward", None),
        ("sum(nights)", "sum", "nights", None),
        ("max(nights + 1)", "max", "add(nights, 1)", None),
        ("count(*) FILTER (WHERE nights > 3)", "count", None, "gt(nights, 3)"),
        ("sum(nights) FILTER (WHERE nights > 3)", "sum", "nights", "gt(nights, 3)"),
    ],
)
def test_aggregates_are_those_of_a_units_own_rows(
    call: str, word: str, argument: str | None, condition: str | None
) -> None:
    entered = window(f"{call} OVER (PARTITION BY patient_id)")
    assert entered.word == word
    assert (entered.argument and in_words(entered.argument)) == argument
    assert (entered.filter and in_words(entered.filter)) == condition


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
    ("partition", "keys"),
    [
        ("patient_id", []),
        ("patient_id + 1", []),
        ("patient_id, ward", ["ward"]),
        ("ward, patient_id", ["ward"]),
        ("nights % 2, patient_id, ward", ["mod(nights, 2)", "ward"]),
        ("patient_id, patient_id * patient_id", ["mul(patient_id, patient_id)"]),
    ],
)
def test_the_units_key_is_no_key_of_the_window(partition: str, keys: list[str]) -> None:
    assert [in_words(key) for key in window(f"row_number() OVER (PARTITION BY {partition})").keys] == keys


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("day", ("day", False, False)),
        ("day DESC", ("day", True, False)),
        ("day NULLS FIRST", ("day", False, True)),
        ("day DESC NULLS FIRST", ("day", True, True)),
        ("day DESC NULLS LAST", ("day", True, False)),
        ("nights + 1", ("add(nights, 1)", False, False)),
    ],
)
def test_windows_are_sorted_as_they_are_written(order: str, expected: tuple[str, bool, bool]) -> None:
    (sorting,) = window(f"row_number() OVER (PARTITION BY patient_id ORDER BY {order})").order
    assert (in_words(sorting.by), sorting.descending, sorting.nulls_first) == expected


def test_a_window_sorts_by_several_expressions_or_none() -> None:
    several = window("row_number() OVER (PARTITION BY patient_id ORDER BY day, nights DESC)").order
    assert [in_words(sorting.by) for sorting in several] == ["day", "nights"]
    assert window("row_number() OVER (PARTITION BY patient_id)").order == ()


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


def test_windows_do_not_stand_in_windows() -> None:
    inner = "row_number() OVER (PARTITION BY patient_id)"
    assert refused(f"sum({inner}) OVER (PARTITION BY patient_id)").slug == "window_in_aggregate"
    assert refused(f"row_number() OVER (PARTITION BY patient_id ORDER BY {inner})").slug == "window_over_rows"


def test_rows_without_a_key_of_their_unit_have_no_windows() -> None:
    assert refused("row_number() OVER (PARTITION BY visit_id)", "labs").slug == "window_over_rows"


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("sum(nights) OVER (PARTITION BY patient_id ORDER BY day ROWS 3 PRECEDING)", "clause"),
        ("row_number() OVER (PARTITION BY patient_id ORDER BY 1)", "unknown_expression"),
        ("lag(nights, 1, 0) OVER (PARTITION BY patient_id ORDER BY day)", "clause"),
        ("row_number() OVER (PARTITION BY patient_id ORDER BY nothing)", "unknown_column"),
    ],
)
def test_windows_have_no_more_clauses(text: str, slug: str) -> None:
    assert refused(text).slug == slug


def test_equal_windows_are_one_column() -> None:
    scalars = scalars_over()
    first = bound("row_number() OVER (PARTITION BY patient_id ORDER BY day)", scalars)
    second = bound("rank() OVER (PARTITION BY patient_id ORDER BY day)", scalars)
    again = bound("ROW_NUMBER() OVER (PARTITION BY visits.patient_id ORDER BY day)", scalars)
    assert first == again != second
    assert [entered.name for entered in scalars.windows] == ["#w0", "#w1"]


def test_windows_stand_inside_of_expressions() -> None:
    scalars = scalars_over()
    text = (
        "lag(nights) OVER (PARTITION BY patient_id ORDER BY day) + rank() OVER (PARTITION BY patient_id ORDER BY day)"
    )
    assert in_words(bound(text, scalars)) == "add(#w0, #w1)"


def test_the_relation_has_the_windows_that_were_bound() -> None:
    node = select("SELECT COUNT(*) FROM visits")
    binder = binder_of(node)
    scope, relation = joined(binder, node, sources_of(binder, node))
    scalars = WindowScalars(scope, ROWS)
    assert scalars.relation(relation) is relation
    bound("row_number() OVER (PARTITION BY patient_id)", scalars)
    assert scalars.relation(relation) == UnitWindow(relation, tuple(scalars.windows))


def test_there_are_at_most_fifty_windows() -> None:
    assert MOST_WINDOWS == 50
    scalars = scalars_over()
    for number in range(MOST_WINDOWS):
        bound(f"lag(nights, {number}) OVER (PARTITION BY patient_id)", scalars)
    bound("lag(nights, 3) OVER (PARTITION BY patient_id)", scalars)
    assert len(scalars.windows) == MOST_WINDOWS
    with pytest.raises(Error) as caught:
        bound("lead(nights) OVER (PARTITION BY patient_id)", scalars)
    assert caught.value.slug == "many_measures"
    assert "50" in caught.value.message


def test_a_refusal_stands_under_the_window() -> None:
    sql = "SELECT COUNT(*) FROM (SELECT ward, rank() OVER (PARTITION BY ward) AS r FROM visits) AS t"
    error = refusal(sql)
    assert error.slug == "window_over_rows"
    assert error.position is not None
    assert error.position > sql.index("rank()")


def test_expressions_without_windows_are_bound_as_ever() -> None:
    scalars = scalars_over()
    assert in_words(scalars.bind(exp.column("nights"))) == "nights"
    assert scalars.windows == []
