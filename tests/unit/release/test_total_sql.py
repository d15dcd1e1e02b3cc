"""A remainder written so that no value fails: rows that have a value keep it, and those that have none are NULL."""

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.release.sandbox import total_text

LARGEST = 2**63 - 1
ROWS = [
    (0, "7", date(2024, 1, 31), 0.0), (1, "x", date(9999, 12, 31), 1.5), (2, "", date(2024, 2, 29), 1e300),
    (-3, "1e3", date(1, 1, 1), -2.0), (LARGEST, "2024-01-01", None, None), (None, None, date(2024, 1, 1), 2.0),
]  # fmt: skip
"""An integer, a text, a day and a real of each row."""


def answers(sql: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    """Return the first column of `sql` over a table `r` with these rows, in their order."""
    connection = plain_duckdb()
    connection.execute("CREATE OR REPLACE TABLE r (place INTEGER, x BIGINT, t TEXT, d DATE, f DOUBLE)")
    connection.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", [(place, *row) for place, row in enumerate(rows)])
    return [row[0] for row in connection.execute(sql).fetchall()]


def own_value(sql: str, row: tuple[Any, ...]) -> Any:
    """Return what DuckDB answers about a row alone, and None where that is an error."""
    try:
        return answers(sql, [row])[0]
    except duckdb.Error:
        return None


FAILING = [
    "CAST(t AS BIGINT)",
    "CAST(t AS DATE)",
    "CAST(t AS DOUBLE) + 1",
    "x + 9223372036854775000",
    "x * x",
    "-(x - 9223372036854775807 - 1)",
    "abs(x - 9223372036854775807 - 1)",
    "x - 9223372036854775000 - 9000",
    "100 // x",
    "100 % x",
    "x % (x - x)",
    "x // (x + 3)",
    "CAST(100 // x AS DOUBLE) / 4",
    "d + CAST(x AS BIGINT) * INTERVAL 1 DAY",
    "length(t) + x",
    "CAST(t AS BIGINT) > 3",
    "CASE WHEN x > 0 THEN CAST(t AS BIGINT) ELSE x END",
    "x BETWEEN 0 AND CAST(t AS BIGINT)",
    "(x + 1) * (x + 1) > 0",
    "CAST(f AS BIGINT)",
    "NOT CAST(t AS BOOLEAN)",
]
"""Over `ROWS`, each of them fails for a row or for several."""
NEVER_FAILING = [
    "-(x - 1)", "abs(x)", "d + INTERVAL 1 DAY", "date_trunc('month', d)", "sqrt(abs(f))", "ln(f + 3)", "exp(f)",
    "power(f, 3)", "round(f, 2)", "strftime(d, '%Y') || t",
]  # fmt: skip


@pytest.mark.parametrize("expression", FAILING + NEVER_FAILING)
def test_each_row_has_the_value_that_it_has_alone(expression: str) -> None:
    sql = f"SELECT {expression} AS v FROM r ORDER BY place"
    assert answers(total_text(sql, False), ROWS) == [own_value(sql, row) for row in ROWS]


@pytest.mark.parametrize("expression", FAILING)
def test_as_they_are_written_a_row_without_a_value_fails_all(expression: str) -> None:
    with pytest.raises(duckdb.Error):
        answers(f"SELECT {expression} FROM r", ROWS)


SEEN_AS_NULL = [
    ("CASE WHEN CAST(t AS BIGINT) = 7 THEN 1 ELSE 2 END", [1, 2, 2, 2, 2, 2]),
    ("CASE CAST(t AS BIGINT) WHEN 7 THEN 1 ELSE 2 END", [1, 2, 2, 2, 2, 2]),
    ("coalesce(CAST(t AS BIGINT), x)", [7, 1, 2, 1000, LARGEST, None]),
    ("CAST(t AS BIGINT) IS NULL", [False, True, True, False, True, True]),
    ("sum(CAST(t AS BIGINT)) OVER ()", [1007] * 6),
    ("count(x * x) OVER ()", [4] * 6),
    ("(SELECT max(CAST(t AS BIGINT)) FROM r)", [1000] * 6),
    ("sum(place) OVER () // x", [None, 15, 7, -5, 0, None]),
    ("sum(place) OVER () % x", [None, 0, 1, 0, 15, None]),
    ("x IN (SELECT CAST(t AS BIGINT) - 6 FROM r)", [None, True, None, None, None, None]),
    ("sum(x) FILTER (WHERE CAST(t AS BIGINT) > 0) OVER ()", [-3] * 6),
]


@pytest.mark.parametrize(("expression", "values"), SEEN_AS_NULL)
def test_what_stands_around_a_value_that_is_none_sees_null(expression: str, values: list[Any]) -> None:
    assert answers(total_text(f"SELECT {expression} FROM r ORDER BY place", False), ROWS) == values


MANY_VALUED = [
    ("(SELECT x FROM r AS s WHERE s.place = r.place + 1)", [1, 2, -3, LARGEST, None, None]),
    ("(SELECT x FROM r AS s WHERE s.place <= r.place)", [0, None, None, None, None, None]),
    ("(SELECT x FROM r AS s WHERE s.place < r.place)", [None, 0, None, None, None, None]),
    ("x = (SELECT min(place) FROM r)", [True, False, False, False, False, None]),
    ("x = ANY (SELECT place FROM r)", [True, True, True, False, False, None]),
    ("x > ALL (SELECT place FROM r WHERE place < 2)", [False, False, True, False, True, None]),
    ("EXISTS (SELECT 1 FROM r AS s WHERE s.x = r.x + 1)", [True, True, False, False, False, False]),
    ("x IN (SELECT place FROM r)", [True, True, True, False, False, None]),
    ("x NOT IN (SELECT place FROM r)", [False, False, False, True, True, None]),
]


@pytest.mark.parametrize(("expression", "values"), MANY_VALUED)
def test_a_subquery_for_one_value_is_null_where_it_has_several_rows_and_others_stay(
    expression: str, values: list[Any]
) -> None:
    assert answers(total_text(f"SELECT {expression} FROM r ORDER BY place", False), ROWS) == values


WINDOWS = [
    ("ROWS BETWEEN x PRECEDING AND CURRENT ROW", [None, 1, 3, 3]),
    ("ROWS BETWEEN CURRENT ROW AND x FOLLOWING", [None, 3, 5, 3]),
    ("ROWS BETWEEN UNBOUNDED PRECEDING AND x FOLLOWING", [None, 3, 6, 6]),
    ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", [0, 1, 3, 5]),
    ("RANGE BETWEEN x PRECEDING AND CURRENT ROW", [None, 1, 3, 3]),
]


@pytest.mark.parametrize(("frame", "values"), WINDOWS)
def test_a_window_is_null_where_its_frame_reaches_a_negative_distance(frame: str, values: list[Any]) -> None:
    rows = [(x, None, None, None) for x in (-1, 1, 2, 0)]
    sql = f"SELECT sum(place) OVER (ORDER BY place {frame}) FROM r ORDER BY place"
    assert answers(total_text(sql, False), rows) == values


def test_a_number_beyond_the_type_that_was_asked_for_keeps_its_value() -> None:
    sql = "SELECT CAST(x AS TINYINT) + CAST(f AS DECIMAL(3, 1)) FROM r"
    row = (3_000_000_000, "", None, 123456.5)
    assert own_value(sql, row) is None
    assert answers(total_text(sql, False), [row]) == [Decimal("3000123456.5")]
    assert answers(total_text("SELECT d + CAST(x AS INTEGER) FROM r", True), [(1, "", date(2024, 1, 1), 0.0)]) == [
        date(2024, 1, 2)
    ]
