"""Columns may have any name, also those that dpsql's own texts use: the same question has the same answer whatever they are called."""

import random
import re
from pathlib import Path

import duckdb
from support.exact_session import exact_session, rows_of

from dpsql.policy.check import parse_policy
from dpsql.session.session import Session

POLICY = """
dataset: d
privacy_unit: {{table: e, column: {pid}}}
budget: {{epsilon: 100, delta: 1e-4}}
per_query: {{epsilon: 1}}
ledger: sqlite:///unused.db
tables:
  e:
    max_rows: 20
    columns:
      {pid}: {{type: integer}}
      {k}: {{type: integer, lower: 0, upper: 9}}
      {x}: {{type: integer, lower: 0, upper: 9}}
      {y}: {{type: real, lower: 0, upper: 9}}
      {w}: {{type: text}}
"""
COLUMNS = ("pid", "k", "x", "y", "w")
ROWS = "SELECT range % 40, range * 7 % 10, range * 3 % 5, range % 9 * 0.5, 'w' || range % 4 FROM range(400)"
QUESTIONS = (
    "SELECT COUNT(*), SUM({k}), AVG({y}), COUNT(DISTINCT {w}), COUNT(DISTINCT {pid}) FROM e",
    "SELECT {k}, SUM({x}), VAR_POP({y}), COUNT(*) FILTER (WHERE {w} = 'w1') FROM e GROUP BY {k}",
    "SELECT {k}, {x}, MEDIAN({y}), MAX({k}) FROM e GROUP BY ROLLUP({k}, {x})",
    "SELECT {w}, COUNT(*), SUM({x}) FROM e GROUP BY {w}",
    "SELECT SUM({k}), SUM(c), COUNT(*) FROM (SELECT {pid}, {k}, MAX({x}) AS c FROM e GROUP BY {pid}, {k})",
    "SELECT m, SUM(c), COUNT(*) FROM (SELECT {pid}, {k} % 3 AS m, {w}, MAX({y}) AS c, MIN({x}) FROM e GROUP BY 1, 2, 3) GROUP BY m",
    "SELECT SUM(v), SUM(n), COUNT(*) FROM (SELECT {pid}, n, FIRST({k} ORDER BY {k}) AS v FROM "
    "(SELECT {pid}, {k}, COUNT(*) AS n FROM e GROUP BY {pid}, {k}) GROUP BY {pid}, n)",
    "SELECT SUM(v), SUM(n), COUNT(*) FROM (SELECT {pid}, n, ARG_MAX({k}, {k}) AS v FROM "
    "(SELECT {pid}, {k}, MAX({x}) AS n FROM e GROUP BY {pid}, {k}) GROUP BY {pid}, n)",
    "SELECT r, SUM({x}), COUNT({w}) FROM (SELECT *, row_number() OVER (PARTITION BY {pid} ORDER BY {k}, {x}, {y}, {w}) AS r FROM e) "
    "WHERE r <= 3 GROUP BY r",
    "SELECT a.{k}, COUNT(*), SUM(b.{x}) FROM e AS a JOIN e AS b ON a.{pid} = b.{pid} AND a.{w} = b.{w} GROUP BY a.{k}",
    "SELECT COUNT(*), SUM({x}) FROM e AS a WHERE EXISTS (SELECT 1 FROM e AS b WHERE b.{pid} = a.{pid} AND b.{k} > a.{k} AND b.{x} < a.{x})",
    "SELECT COUNT(*), SUM({x}) FROM (SELECT DISTINCT {k}, {x}, {w} FROM e)",
    "SELECT {k}, COUNT(*) FROM (SELECT {pid}, {k}, {x} FROM e UNION ALL SELECT {pid}, {x}, {k} FROM e) GROUP BY {k}",
    "SELECT {k}, COUNT(*) FROM e WHERE {x} > (SELECT AVG({x}) FROM e) GROUP BY {k}",
)  # fmt: skip


def session_with(names: dict[str, str], folder: Path) -> Session:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE e ({', '.join(f'{name} {type_}' for name, type_ in zip(names.values(), TYPES, strict=True))})"
    )
    connection.execute(f"INSERT INTO e {ROWS}")
    folder.mkdir()
    return exact_session(parse_policy(POLICY.format(**names), "policy.yaml", folder), connection, folder / "ledger.db")


TYPES = ("BIGINT", "BIGINT", "BIGINT", "DOUBLE", "VARCHAR")


def test_names_of_columns_change_no_answer(tmp_path: Path) -> None:
    plain = {column: f"{column}_of_rows" for column in COLUMNS}
    session = session_with(plain, tmp_path / "plain")
    answers, texts = [], []
    run = session.context.engine.run
    session.context.engine.run = lambda query, *rest: texts.append(query.sql) or run(query, *rest)  # type: ignore[method-assign,func-returns-value]
    for question in QUESTIONS:
        answers.append(rows_of(session.execute(question.format(**plain))))
    used = sorted(
        set(re.findall(r'\bAS "?([a-z]\w*)"?', " ".join(texts))) - {*plain.values(), "e", "s0", "materialized"}
    )
    used = [name for name in used if not name.isupper() and len(name) < 5]
    assert {"g0", "g1", "a0", "u", "v0"} <= set(used)
    for seed in range(4):
        chosen = random.Random(seed).sample(used, len(COLUMNS)) if seed else ["u", "a0", "g0", "v0", "g1"]
        odd = dict(zip(COLUMNS, chosen, strict=True))
        renamed = session_with(odd, tmp_path / f"odd {seed}")
        for question, answer in zip(QUESTIONS, answers, strict=True):
            assert rows_of(renamed.execute(question.format(**odd))) == answer, (question, odd)
