"""PIVOT gives DuckDB's own rows, columns and names."""

import pytest
from sqlglot import exp
from support.plain_duckdb import answer_over

from dpsql.sql.parse import parse
from dpsql.sql.rewrites.pivots import listed_values

ROWS = "(VALUES (1, 'a', 10, 1), (1, 'b', 20, 2), (2, 'a', 5, 1), (2, NULL, 7, 2)) AS v(g, k, x, m)"
QUESTIONS = [
    "SELECT * FROM t PIVOT (SUM(x) FOR k IN ('a', 'b') GROUP BY g)",
    "SELECT * FROM (SELECT g, k, x FROM t) PIVOT (SUM(x) FOR k IN ('a', 'b', NULL))",
    "FROM t PIVOT (SUM(x) AS s, COUNT(*) AS n FOR k IN ('a' AS z, 'b') GROUP BY g)",
    "FROM (PIVOT t ON k IN ('a', 'b') USING SUM(x) GROUP BY g)",
    "FROM (PIVOT t ON k IN ('a', 'b') GROUP BY g)",
    "FROM (PIVOT t ON k IN ('a', 'b') USING SUM(x) AS s, COUNT(*) AS n GROUP BY g)",
    "FROM (PIVOT (SELECT g, k, x FROM t) ON k IN ('a', 'b') USING SUM(x)) AS p",
    "PIVOT t ON k IN ('a', 'b') USING SUM(x) GROUP BY g",
    "PIVOT t ON x IN (10, -5, 5) GROUP BY g",
    "WITH t AS (SELECT g, k, x FROM t WHERE x > 9) PIVOT t ON k IN ('a', 'b') USING SUM(x) GROUP BY g",
    "WITH p AS (PIVOT t ON k IN ('a', 'b') USING SUM(x) GROUP BY g) SELECT g, a FROM p",
    "SELECT g, u.m, p.a FROM t AS u JOIN (PIVOT t ON k IN ('a') USING SUM(x) GROUP BY g) AS p USING (g)",
    "WITH t AS (SELECT g, x, m FROM t WHERE x > 9) UNPIVOT t ON x, m INTO NAME k VALUE v",
    "WITH u AS (UNPIVOT (SELECT g, x, m FROM t) ON x, m) SELECT name, value FROM u",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_rows_are_those_of_the_engine(sql: str) -> None:
    query = parse(sql).query
    assert query is not None
    text = query.sql("duckdb")
    assert "PIVOT" not in text.upper()
    assert answer_over(ROWS, text) == answer_over(ROWS, sql)


def test_listed_values_have_the_order_of_the_engine() -> None:
    listed = [value.name for value in listed_values([9, 10, None, 1, 100], exp.column("x"))]
    rows = "(SELECT unnest([9, 10, NULL, 1, 100]) AS x)"
    assert listed == answer_over(rows, "PIVOT t ON x USING COUNT(*)")[0]
