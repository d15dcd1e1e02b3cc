"""Rows that a query lists in FROM: which they are, and how many of them can agree with one protected row."""

from collections import Counter
from datetime import date, datetime
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from sqlglot import exp
from support.bound_questions import select

from dpsql.plan.intervals import Type
from dpsql.sql.binder.scope import Released
from dpsql.sql.binder.written_rows import column_names, with_facts, written_rows


def source_of(text: str) -> exp.Expr:
    source = select(f"SELECT * FROM {text}").args["from_"].this
    assert isinstance(source, exp.Expr)
    return source


def released(text: str) -> Released:
    """Return what is known of the rows of an item of FROM."""
    node = source_of(text)
    written = written_rows(node)
    assert written is not None
    names = column_names(node, written[1])
    return with_facts(Released(written[0], names, most_rows=len(written[1]), work=99), written[1])


# --- the rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(VALUES (1, 2)) AS v(a, b)", ("a", "b")),
        ("(VALUES (1, 2)) AS v", ("col0", "col1")),
        ("UNNEST(ARRAY[1]) AS u(n)", ("n",)),
        ("UNNEST(ARRAY[1]) AS u", ("u",)),
        ("UNNEST(ARRAY[1])", ("unnest",)),
        ("generate_series(1, 2) AS g(n)", ("n",)),
    ],
)
def test_columns_have_the_names_of_the_alias_or_those_of_their_kind(text: str, names: tuple[str, ...]) -> None:
    assert released(text).columns == names


# --- what is known of a column --------------------------------------------------------------------------------------

COLUMNS: list[tuple[str, Type, Any, Any, tuple[Any, ...] | None, bool]] = [
    ("(3), (-1), (3)", Type.INTEGER, -1, 3, (3, -1), False),
    ("(3), (NULL)", Type.INTEGER, 3, 3, (3, None), True),
    ("(1), (2.5)", Type.REAL, 1, Fraction(5, 2), None, False),
    ("(-0.1), (NULL)", Type.REAL, Fraction(-1, 10), Fraction(-1, 10), None, True),
    ("('b'), ('a'), ('b')", Type.TEXT, None, None, ("b", "a"), False),
    ("('b'), (NULL)", Type.TEXT, None, None, ("b", None), True),
    ("(TRUE), (FALSE), (TRUE)", Type.BOOLEAN, None, None, (True, False), False),
    ("(DATE '2024-03-01'), (DATE '2024-02-29')", Type.DATE, date(2024, 2, 29), date(2024, 3, 1), (date(2024, 3, 1), date(2024, 2, 29)), False),
    ("(TIMESTAMP '2024-03-01')", Type.TIMESTAMP, datetime(2024, 3, 1), datetime(2024, 3, 1), (datetime(2024, 3, 1),), False),
    ("(DATE '2024-03-01 10:00:00')", Type.DATE, date(2024, 3, 1), date(2024, 3, 1), (date(2024, 3, 1),), False),
    ("((7))", Type.INTEGER, 7, 7, (7,), False),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "type_", "lower", "upper", "values", "nullable"), COLUMNS)
def test_a_column_of_literals_has_the_type_the_bounds_and_the_list_of_its_values(
    rows: str, type_: Type, lower: Any, upper: Any, values: tuple[Any, ...] | None, nullable: bool
) -> None:
    (facts,) = released(f"(VALUES {rows}) AS v(k)").facts
    assert facts is not None
    assert (facts.type, facts.lower, facts.upper, facts.values, facts.nullable) == (
        type_, lower, upper, values, nullable,
    )  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        "(1 + 1)",
        "(1), (upper('x'))",
        "(NULL)",
        "(1), ('a')",
        "(1), (TRUE)",
        "(DATE '2024-01-01'), (TIMESTAMP '2024-01-01')",
        "(CAST('1' AS INTEGER))",
        "('a'), (DATE '2024-01-01')",
        "(-'a')",
    ],
)
def test_of_other_columns_only_the_number_of_rows_is_known(rows: str) -> None:
    known = released(f"(VALUES {rows}) AS v(k)")
    assert known.facts == (None,) and known.unique == frozenset()
    assert dict(known.repeats) == {frozenset(): rows.count("), (") + 1}


# --- how many rows agree --------------------------------------------------------------------------------------------

TABLES: list[list[tuple[Any, ...]]] = [
    [(1, "a"), (2, "a"), (3, "b")],
    [(1, "a"), (1, "b"), (2, "a")],
    [(1, "a"), (1, "a"), (1, "b")],
    [(1, None), (1, None), (2, "b")],
    [(None, "a"), (None, "a")],
    [(1, "a")],
    [(1, "a", True), (1, "a", False), (2, "b", True), (2, "b", False)],
    [(1, "a", True), (1, "a", False), (1, "b", True), (2, "b", True), (2, "b", True)],
]


def text_of(value: Any) -> str:
    return "NULL" if value is None else repr(value).upper() if isinstance(value, bool) else repr(value)


@pytest.mark.parametrize("table", TABLES)
def test_no_more_rows_agree_on_columns_than_is_said_and_unique_ones_agree_on_none(table: list[tuple[Any, ...]]) -> None:
    """NULL agrees with nothing. Sets of one and of two columns are counted."""
    rows = ", ".join(f"({', '.join(map(text_of, row))})" for row in table)
    known = released(f"(VALUES {rows}) AS v")
    repeats, unique_with_null = dict(known.repeats), False
    assert repeats[frozenset()] == len(table) and known.work == 0
    for size in (1, 2):
        for numbers in combinations(range(len(table[0])), size):
            kept = [values for row in table if None not in (values := tuple(row[number] for number in numbers))]
            most = max(Counter(kept).values(), default=0)
            column = [row[numbers[0]] for row in table]
            if all(value is None for value in column) or all(row[numbers[-1]] is None for row in table):
                assert frozenset(numbers) not in known.unique | repeats.keys(), "a column of NULL has no type"
                continue
            assert (frozenset(numbers) in known.unique) is (most <= 1)
            assert repeats.get(frozenset(numbers)) == (None if most <= 1 else most)
            unique_with_null |= most <= 1 and len(kept) < len(table)
    assert known.null_repeats is unique_with_null
