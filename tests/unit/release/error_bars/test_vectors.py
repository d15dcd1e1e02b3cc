"""Formulas over arrays equal DuckDB's numbers, with NaN for NULL; an unsupported operation is left to the sandbox."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from support.plain_duckdb import plain_duckdb

from dpsql.plan.formulas import Element, NoisyValue, date, timestamp, within
from dpsql.release.error_bars.vectors import clamped, counted, vector
from dpsql.release.formulas import formula_sql

A = np.array([0.0, 1.0, -1.0, 2.5, -2.5, 3.75, -0.25, 0.5, -0.5, 7.0, np.nan, 4.0])
B = np.array([1.0, 1.0, 2.0, -2.5, 4.0, 0.5, 8.0, 0.25, -0.5, 7.0, 2.0, np.nan])


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="duckdb")


KNOWN = (
    "a", "(a)", "-a", "a + b", "a - b", "a * b", "a / b", "3", "0.5 * a", "round(a)", "round(a * 3)", "sqrt(abs_b)",
    "nullif(a, 1)", "nullif(a, b)", "b / nullif(a, 0)", "least(a, b)", "greatest(a, b)", "least(a, 1, b)",
    "greatest(a, -1, b, 2)", "least(greatest(a, -1), 1)", "CAST(a AS DOUBLE) * 2", "CAST(a + b AS DOUBLE)",
    "CAST(round(a) AS BIGINT) + b", "(a >= b)", "(a < b)", "CAST(a >= 0 AS DOUBLE) * b", "a + a - b * (a + b)",
    "a - b - a", "b / 4 / b", "a + 1 - 1.0",
)  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_arrays_hold_what_duckdb_computes(text: str) -> None:
    columns = {"a": A, "b": B, "abs_b": np.abs(B)}
    computed = vector(parsed(text))
    assert computed is not None
    connection = plain_duckdb()
    connection.register(
        "numbers", pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})
    )
    rows = connection.execute(f"SELECT ({text})::DOUBLE FROM numbers").fetchall()
    expected = np.array([np.nan if row[0] is None else row[0] for row in rows])
    if "<" in text or ">" in text:  # comparisons with NULL are not tested: formulas compare numbers
        expected = np.where(np.isnan(A) | np.isnan(B), 0.0 * expected, expected)
        mine = np.where(np.isnan(A) | np.isnan(B), np.nan, computed(columns))
        np.testing.assert_array_equal(mine, np.where(np.isnan(A) | np.isnan(B), np.nan, expected))
    else:
        np.testing.assert_array_equal(np.broadcast_to(computed(columns), A.shape), expected)


@pytest.mark.parametrize(
    "text",
    ["a % b", "abs(a)", "'3'", "round(a, 1)", "CAST(a AS BIGINT)", "CAST(a AS VARCHAR)", "CAST(round(a) AS INT)",
     "a > b", "a = b", "ln(a)", "a + abs(b)", "coalesce(a, 0)", "CASE WHEN a < 1 THEN b END"],
)  # fmt: skip
def test_an_operation_that_is_not_on_the_list_has_no_vector(text: str) -> None:
    assert vector(parsed(text)) is None


def test_a_text_that_is_written_twice_is_computed_once() -> None:
    """A repeated expression is computed once; expressions that differ only in a name are computed separately."""
    reads: list[str] = []

    class Columns(dict[str, np.ndarray]):
        def __getitem__(self, name: str) -> np.ndarray:
            reads.append(name)
            return super().__getitem__(name)

    computed = vector(parsed("(a + b) * (a + b) + a - 2 * (b + 2) + 3"))
    assert computed is not None
    assert computed(Columns(a=np.array([1.0]), b=np.array([5.0]))).tolist() == [36 + 1 - 14 + 3]
    assert sorted(reads) == ["a", "b"]


def values(node: exp.Expr) -> list[float]:
    computed = vector(node)
    assert computed is not None
    return [float(number) for number in computed({"a": A[:10]})]


def away_from_zero(number: float) -> float:
    return math.copysign(math.floor(abs(number) + 0.5), number)


def test_the_number_in_a_date_is_its_days() -> None:
    days = formula_sql(date(within(NoisyValue("a") * 2, -4, 6)))
    assert values(counted(days)) == [away_from_zero(min(max(2 * number, -4), 6)) for number in A[:10]]


def test_the_number_in_a_timestamp_is_its_microseconds() -> None:
    seconds = formula_sql(timestamp(within(NoisyValue("a") * 3, -6, 9)))
    assert values(counted(seconds)) == [1e6 * min(max(3 * number, -6), 9) for number in A[:10]]


def test_the_number_of_an_element_is_its_place() -> None:
    element = formula_sql(Element(("x", "y", "z"), NoisyValue("a") + 1))
    assert values(counted(element)) == [number + 1 for number in A[:10]]


@pytest.mark.parametrize("text", ["a", "(a + 1)", "round(a)", "a + CAST(b AS INT)", "CAST(a AS INT) + b", "abs(a)"])
def test_a_number_counts_as_itself(text: str) -> None:
    tree = parsed(text)
    assert counted(tree) is tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("least(greatest(x, 1), 9)", ("x", "1", "9")),
        ("CAST(round((least(greatest(x + 2, -1), y))) AS BIGINT)", ("x + 2", "-1", "y")),
        ("greatest(x, 1)", ("x", "1", None)),
        ("least(x, 9)", ("LEAST(x, 9)", None, None)),
        ("greatest(x, 1, 2)", ("GREATEST(x, 1, 2)", None, None)),
        ("least(greatest(x, 1), 9, 10)", ("LEAST(GREATEST(x, 1), 9, 10)", None, None)),
        ("least(greatest(x, 1, 2), 9)", ("GREATEST(x, 1, 2)", None, None)),
        ("least(x + 1, 9)", ("LEAST(x + 1, 9)", None, None)),
        ("(x)", ("x", None, None)),
        ("-x", ("-x", None, None)),
    ],
)
def test_bounds_are_read_off_a_clamp(text: str, expected: tuple[str, str | None, str | None]) -> None:
    parts = clamped(parsed(text))
    assert tuple(part and part.sql(dialect="duckdb") for part in parts) == expected
