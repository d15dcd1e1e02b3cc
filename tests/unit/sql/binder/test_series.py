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
