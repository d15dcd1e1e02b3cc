"""Row expressions in plans and notices are SQL, as an analyst could have written it."""

from __future__ import annotations

import pytest

from dpsql.plan.expression_text import expression_text
from dpsql.policy import parse_policy
from dpsql.sql.binder.bind import bind
from dpsql.sql.parse import parse

POLICY = parse_policy(
    "dataset: d\nsource: d.csv\nprivacy_unit: row\nbudget: {epsilon: 1, delta: 1e-6}\nledger: sqlite:///l.db\n"
    "tables: {t: {columns: {x: {type: integer}, w: {type: text}, b: {type: boolean}, d: {type: date}}}}\n"
)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("CASE WHEN x > 1 THEN 'it''s' ELSE 'b' END", "case when (x > 1) then 'it''s' else 'b' end"),
        ("CASE WHEN b THEN 1 WHEN x = 2 THEN 3 END", "case when b then 1 when (x = 2) then 3 else null end"),
        ("d >= DATE '2024-01-31'", "(d >= date '2024-01-31')"),
        ("w IN ('a', 'b')", "w in ('a', 'b')"),
        ("NOT b", "not b"),
        ("w IS NULL", "w is null"),
        ("length(w)", "length(w)"),  # without the cut to the characters that are read
        ("regexp_matches(w, 'a+') AND w LIKE '%a'", "(regexp_matches(w, 'a+') and (w like '%a'))"),
        ("length(left(w, 7))", "length(left(w, 7))"),
        ("w IS NOT DISTINCT FROM 'a'", "(w is not distinct from 'a')"),
        ("-x", "-x"),
        ("CAST(x AS text)", "cast(x as text)"),
        ("b = true", "(b = true)"),
        ("x * 0.5", "(x * 0.5)"),
        ("date_trunc('month', d)", "date_trunc('month', d)"),
    ],
)
def test_expressions_read_as_sql(sql: str, text: str) -> None:
    (block,) = bind(parse(f"SELECT {sql} AS k, COUNT(*) FROM t GROUP BY 1"), POLICY).blocks
    assert expression_text(block.keys[0].expression) == text


def test_columns_of_joins_have_their_own_names() -> None:
    (block,) = bind(
        parse("SELECT p.w, COUNT(*) FROM t AS p JOIN (VALUES (1)) AS v(n) ON p.x = v.n GROUP BY 1"), POLICY
    ).blocks
    assert expression_text(block.keys[0].expression) == "w"
