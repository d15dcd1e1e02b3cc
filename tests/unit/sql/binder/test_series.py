"""A series in FROM is expanded as DuckDB counts it, or refused."""

from __future__ import annotations

from datetime import datetime
from functools import cache

import duckdb
import pytest
from sqlglot import exp
from support.bound_questions import select

from dpsql.errors.exceptions import Error
from dpsql.sql.binder.written_rows import series_rows


def source_of(text: str) -> exp.Expr:
    source = select(f"SELECT * FROM {text}").args["from_"].this
    assert isinstance(source, exp.Expr)
    return source


@cache
def engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def column_of(source: str) -> list[int | datetime]:
    """Return the only column of a source, as DuckDB reads it."""
    return [value for (value,) in engine().execute(f"SELECT * FROM {source}").fetchall()]


def values_of(text: str) -> list[int | datetime]:
    """Return the values of the expanded series, read by DuckDB."""
    rows = series_rows(source_of(text))
    assert rows is not None
    written = ", ".join(f"({value.sql('duckdb')})" for (value,) in rows)
    return column_of(f"(VALUES {written}) AS v(x)")


def refused(text: str) -> Error:
    with pytest.raises(Error) as caught:
        series_rows(source_of(text))
    return caught.value


@pytest.mark.parametrize(
    "arguments",
    [
        "DATE '2024-01-01', DATE '2024-01-05', INTERVAL 1 DAY",
        "DATE '2024-01-05', DATE '2024-01-01', INTERVAL '-1' DAY",
        "DATE '2024-01-31', DATE '2024-02-20', INTERVAL 1 WEEK",
        "DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 QUARTER",
        "DATE '2020-02-29', DATE '2028-03-01', INTERVAL 4 YEAR",
        "TIMESTAMP '2024-01-01 10:30:00', TIMESTAMP '2024-01-01 16:30:00', INTERVAL 2 HOUR",
        "TIMESTAMP '2024-01-01 23:59:59', TIMESTAMP '2024-01-02 00:00:01', INTERVAL 1 SECOND",
        "DATE '2024-01-01', TIMESTAMP '2024-01-02 12:00:00', INTERVAL 12 HOUR",
        "1, 9, 3",
        "9, 1, -3",
        "-3, 3",
    ],
)
@pytest.mark.parametrize("function", ["generate_series", "range"])
def test_values_are_those_of_the_engine(function: str, arguments: str) -> None:
    text = f"{function}({arguments})"
    engine_arguments = arguments.replace("DATE", "TIMESTAMP")
    assert values_of(text) == column_of(f"{function}({engine_arguments})")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("generate_series(3, 1)", "it has no row"),
        ("range(1, 1)", "it has no row"),
        ("generate_series(1, 3, -1)", "it has no row"),
        ("range(3, 3, -1)", "it has no row"),
        ("generate_series(1, 3, 0)", "its step is 0"),
        ("generate_series(DATE '2024-01-01', DATE '2024-01-05', INTERVAL 0 DAY)", "its step is 0"),
        ("generate_series(1, 1000000000000000)", "it has more rows"),
        ("generate_series(1.5, 3)", "are literals"),
        ("generate_series(1, 3.5)", "are literals"),
        ("generate_series(1, 3, 0.5)", "are literals"),
        ("generate_series(1, '3')", "are literals"),
        ("generate_series(1, 1 + 2)", "are literals"),
        ("generate_series(1, x)", "are literals"),
        ("generate_series(1, -(-2))", "are literals"),
        ("generate_series(NULL, 3)", "are literals"),
        ("generate_series(1, 3, INTERVAL 1 DAY)", "are literals"),
        ("generate_series(DATE '2024-01-01', DATE '2024-01-05')", "a step of dates is an INTERVAL"),
        ("generate_series(DATE '2024-01-01', DATE '2024-01-05', 1)", "a step of dates is an INTERVAL"),
        ("generate_series(1, DATE '2024-01-05')", "start and end are both numbers"),
        ("generate_series(DATE '2024-01-01', 5, INTERVAL 1 DAY)", "start and end are both numbers"),
        ("generate_series(DATE '9999-01-01', DATE '9999-12-31', INTERVAL 1 YEAR)", "it leaves the years"),
        ("generate_series(DATE '0001-06-01', DATE '0001-01-01', INTERVAL '-1' YEAR)", "it leaves the years"),
    ],
)
def test_what_is_no_short_series_is_refused(text: str, reason: str) -> None:
    error = refused(text)
    assert error.slug == "series"
    assert reason in error.message
