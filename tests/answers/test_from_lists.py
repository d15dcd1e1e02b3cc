"""FROM with commas and joins of every kind has the engine's rows, and is refused where the engine's grammar has no such join."""

import itertools
from collections.abc import Iterator

import duckdb
import pytest
from support.exact_session import exact_session, rows_of
from support.gates import NoiselessGate

from dpsql.errors.exceptions import Refusal
from dpsql.policy import load_policy
from dpsql.session.session import Session

POLICY = """
dataset: lists
source: duckdb:///unused.duckdb
ledger: sqlite:///ledger.db
privacy_unit: {table: p, column: pid}
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
tables:
  a: {public: true, primary_key: k, unique: [[v]], columns: {k: {type: integer}, v: {type: integer}}}
  b: {public: true, primary_key: k, unique: [[v]], columns: {k: {type: integer}, v: {type: integer}, w: {type: integer}}}
  p:
    max_rows: 1
    primary_key: pid
    columns: {pid: {type: integer, nullable: false}, k: {type: integer, lower: 0, upper: 2}}
"""
RESULT = "(SELECT k, COUNT(*) AS n FROM p WHERE k IN (0, 1, 2) GROUP BY k)"
KINDS = ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN", "NATURAL CROSS JOIN")  # fmt: skip
CONDITIONS = ("", "USING (k)", "USING (k, v)", "ON {left}.k = {right}.k", "ON {left}.v = {right}.v", "ON w = 8 AND {left}.k = {right}.k")  # fmt: skip
JOINS = [f"{{left}} {kind} {{right}} {condition}" for kind in KINDS for condition in CONDITIONS]
BRACKETS = [f"{{p}} {kind} ({{join}}) ON p.k = {{left}}.k" for kind in KINDS[:5]]
LISTS = (*BRACKETS, "{p}, ({join})", "{p} CROSS JOIN ({join})", "{p} JOIN {join} ON p.k = a.k", "{p}, {join}", "{join}, {p}", "{p} CROSS JOIN {join}", "{p} JOIN {join}")  # fmt: skip
FORMS = [
    (f"SELECT COUNT(a.k), COUNT(b.v), SUM(b.w) FROM {form.format(p=source, join=join.format(left=left, right=right), left=left)}{where}")
    for join, form, source, (left, right), where in itertools.product(
        JOINS, LISTS, ("p", RESULT + " AS p"), (("a", "b"), ("b", "a")), (" WHERE p.k = a.k", ""))
]  # fmt: skip
FORMS += [
    f"SELECT COUNT(w) FROM p JOIN a ON {first} JOIN b ON {second}"
    for first in ("p.k = a.k", "p.k = b.k", "p.k = w", "p.k = a.k AND w = 7")
    for second in ("a.k = b.k", "p.k = b.k AND w = 7", "a.v = b.v")
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    folder = tmp_path_factory.mktemp("lists")
    (folder / "policy.yaml").write_text(POLICY)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE p AS SELECT i AS pid, i % 3 AS k FROM range(30) t(i)")
        connection.execute("CREATE TABLE a AS SELECT * FROM (VALUES (0, 10), (1, 20), (5, 30)) t(k, v)")
        connection.execute("CREATE TABLE b AS SELECT * FROM (VALUES (0, 10, 7), (2, 20, 8), (7, 40, 9)) t(k, v, w)")
        session = exact_session(load_policy(folder / "policy.yaml"), connection, folder / "ledger.db", NoiselessGate(1))
        yield connection, session
        session.close()


def test_a_list_of_sources_is_the_engines(world: tuple[duckdb.DuckDBPyConnection, Session]) -> None:
    connection, session = world
    answered = 0
    for sql in FORMS[::29]:
        try:
            expected = connection.execute(sql).fetchall()
        except duckdb.Error:
            expected = None
        try:
            answer = [tuple(value or 0 for value in row) for row in rows_of(session.execute(sql))]
        except Refusal:
            continue
        assert expected is not None, sql
        assert answer == [tuple(float(value or 0) for value in row) for row in expected], sql
        answered += 1
    assert answered > 40
