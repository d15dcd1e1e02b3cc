"""UNPIVOT gives DuckDB's own rows, columns and names."""

import pytest
from support.plain_duckdb import answer_over

from dpsql.sql.parse import parse

ROWS = "(VALUES ('p', 1, 2), ('q', NULL, 3), ('r', 4, NULL), ('p', 1, 2)) AS v(g, a, b)"
QUESTIONS = [
    "SELECT * FROM t UNPIVOT (v FOR k IN (a, b))",
    "SELECT * FROM t UNPIVOT (v FOR k IN (a, b AS 'second')) AS u WHERE u.v > 1",
    "SELECT * FROM t UNPIVOT INCLUDE NULLS (v FOR k IN (b, a))",
    "SELECT * FROM (UNPIVOT t ON a, b INTO NAME k VALUE v) AS u",
    "SELECT name, value FROM (UNPIVOT t ON a, b)",
    "SELECT k, SUM(v) FROM (SELECT a, b FROM t) UNPIVOT (v FOR k IN (a, b)) GROUP BY k",
    "SELECT x.g, u.v FROM t AS x JOIN (SELECT * FROM t UNPIVOT (v FOR k IN (a, b))) AS u USING (g)",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_rows_are_those_of_the_engine(sql: str) -> None:
    query = parse(sql).query
    assert query is not None
    text = query.sql("duckdb")
    assert "UNPIVOT" not in text.upper()
    assert answer_over(ROWS, text) == answer_over(ROWS, sql)
