"""Whole answers of queries with public keys: the groups that are shown, and that they add up as in SQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.session.session import Session, open_session

POLICY = """
dataset: keys
source: duckdb:///keys.duckdb
privacy_unit: {table: people, column: id}
budget: {epsilon: 10000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 100, delta: 1e-9}
ledger: sqlite:///ledger.db
tables:
  people:
    max_rows: 1
    primary_key: [id]
    columns:
      id: {type: integer, nullable: false}
      x: {type: text, domain: [a, b]}
      age: {type: integer, lower: 0, upper: 99}
      sure: {type: text, domain: [y, n], nullable: false}
      day: {type: date, lower: 2024-01-01, upper: 2024-12-31, nullable: false}
  visits:
    foreign_keys: {id: people.id}
    max_rows: 2
    columns: {kind: {type: text, domain: [in, out], nullable: false}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 1500 people: 300 without x, ages 0 to 119 (20 of them beyond the bounds) and NULL, and one visit for every second
    person."""
    place = tmp_path_factory.mktemp("keys")
    with duckdb.connect(str(place / "keys.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, ['a', 'b', 'a', 'b', NULL][1 + i % 5] AS x, "
            "CASE WHEN i % 10 = 0 THEN NULL ELSE i % 120 END AS age, ['y', 'n'][1 + i % 2] AS sure, "
            "DATE '2024-01-01' + CAST(i % 366 AS INTEGER) AS day FROM range(1500) t(i)"
        )
        connection.execute(
            "CREATE TABLE visits AS SELECT i AS id, ['in', 'out'][1 + i % 3 % 2] AS kind FROM range(0, 1500, 2) t(i)"
        )
    (place / "keys.yaml").write_text(POLICY)
    open_session(place / "keys.yaml", create_ledger=True).close()
    return place


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with open_session(folder / "keys.yaml") as opened:
        yield opened


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows())


NAMED = "(age IS NULL OR age BETWEEN 0 AND 99)"
"""Rows that belong to a group of a key over ages."""
AGREE = [
    "SELECT SUM(n) FROM (SELECT x, COUNT(*) AS n FROM people GROUP BY x)",
    "SELECT x, COUNT(*) FROM people GROUP BY x ORDER BY x",
    "SELECT x, COUNT(*) FROM people GROUP BY x ORDER BY x NULLS FIRST",
    "SELECT x, COUNT(*) FROM people WHERE x IS NOT NULL GROUP BY x ORDER BY x",
    "SELECT x, COUNT(*) FROM people WHERE x <> 'a' GROUP BY x",
    "SELECT x, GROUPING(x), COUNT(*) FROM people GROUP BY ROLLUP (x) ORDER BY 1, 2",
    "SELECT day, COUNT(*) AS n FROM people WHERE day BETWEEN '2024-12-25' AND '2024-12-31' GROUP BY day ORDER BY n DESC, day LIMIT 5",
    "SELECT CAST(date_trunc('month', day) AS DATE) AS m, COUNT(*) FROM people WHERE day >= '2024-02-10' AND day < '2024-04-01' GROUP BY 1 ORDER BY 1",
    "SELECT CAST(date_trunc('month', day) AS DATE) AS m, COUNT(*) FROM people WHERE day >= '2024-11-01' AND day < '9999-12-31' GROUP BY 1 ORDER BY 1",
    "SELECT CAST(date_trunc('month', day) AS DATE) AS m, COUNT(*) FROM people WHERE day >= '0001-01-01' AND day < '2024-03-01' GROUP BY 1 ORDER BY 1",
    "SELECT age, RANK() OVER (ORDER BY COUNT(*) DESC) FROM people WHERE age IN (21, 31) GROUP BY age ORDER BY age",
    "SELECT COUNT(*) FROM (SELECT age, COUNT(*) FROM people WHERE age IN (21, 22, 23) GROUP BY age)",
    "SELECT age, COUNT(*) FROM people GROUP BY age HAVING age BETWEEN 51 AND 53 ORDER BY age",
    "SELECT age // 10 AS d, COUNT(*) FROM people WHERE age BETWEEN 20 AND 39 GROUP BY d ORDER BY d",
    "SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' END AS c, COUNT(*) FROM people /* named */ GROUP BY c ORDER BY c",
    "SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' END AS c, COUNT(*) FROM people WHERE age < 65 "
    "GROUP BY c ORDER BY c",
    "SELECT nullif(sure, sure) AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT v.kind, COUNT(*) FROM people p LEFT JOIN visits v ON v.id = p.id GROUP BY v.kind ORDER BY 1",
    "SELECT v.kind, COUNT(*) FROM people p JOIN visits v ON v.id = p.id GROUP BY v.kind ORDER BY 1",
    "SELECT v.kind, COUNT(*) FROM people p LEFT JOIN visits v ON v.id = p.id WHERE v.kind = 'in' GROUP BY v.kind",
    "SELECT v.kind, COUNT(*) FROM people p LEFT JOIN visits v ON v.id = p.id AND v.kind = 'in' GROUP BY v.kind ORDER BY 1",
    "SELECT x, sure, COUNT(*) FROM people WHERE (x = 'a' OR x IS NULL) AND sure = 'y' GROUP BY ALL ORDER BY 1, 2",
    "SELECT sure, COUNT(x) FILTER (WHERE x = 'a') FROM people GROUP BY sure ORDER BY sure",
    "SELECT sure, COUNT(*) FROM people WHERE age > 500 GROUP BY sure HAVING COUNT(*) > 50",
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(AGREE)))
def test_answers_have_the_groups_of_sql(session: Session, folder: Path, at: int) -> None:
    with duckdb.connect(str(folder / "keys.duckdb"), read_only=True) as connection:
        exact = connection.execute(AGREE[at].replace("/* named */", f"WHERE {NAMED}")).fetchall()
    found = rows(session, AGREE[at])
    assert len(found) == len(exact)
    for got, right in zip(found, exact, strict=True):
        for one, other in zip(got, right, strict=True):
            assert one == other or abs(one - other) <= 1, (got, right)


def test_a_filter_that_all_aggregates_share_removes_no_group(session: Session) -> None:
    found = rows(session, "SELECT x, COUNT(*) FILTER (WHERE x = 'a') FROM people GROUP BY x ORDER BY x")
    assert [x for x, _ in found] == ["a", "b", None]


def test_a_promise_that_the_data_break_leaves_rows_out_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    """With `nullable: false` over rows with NULL: these rows belong to no group, not even in caps, and nothing fails."""
    text = POLICY.replace("domain: [a, b]", "domain: [a, b], nullable: false").replace(
        "keys.duckdb", f"{folder}/keys.duckdb"
    )
    (tmp_path / "keys.yaml").write_text(text.replace("duckdb:////", "duckdb:///" + "/"))
    with open_session(tmp_path / "keys.yaml", create_ledger=True) as session:
        assert [n for _, n in rows(session, "SELECT x, COUNT(*) FROM people GROUP BY x")] == pytest.approx(
            [600, 600], abs=1
        )


def test_parameters_narrow_as_literals_do(session: Session) -> None:
    sql = "SELECT age, COUNT(*) FROM people WHERE age BETWEEN $1 AND $2 GROUP BY age"
    for low, high in ((1, 3), (5, 6)):
        found = session.execute(sql, [low, high])
        assert [age for age, _ in found.rows()] == list(range(low, high + 1))


def test_which_groups_appear_does_not_depend_on_data(folder: Path, tmp_path: Path) -> None:
    """An empty table has the same groups."""
    with duckdb.connect(str(tmp_path / "keys.duckdb")) as connection:
        connection.execute(f"ATTACH '{folder}/keys.duckdb' AS old (READ_ONLY)")
        for table in ("people", "visits"):
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM old.{table} LIMIT 0")
    (tmp_path / "keys.yaml").write_text(POLICY)
    with open_session(folder / "keys.yaml") as full, open_session(tmp_path / "keys.yaml", create_ledger=True) as empty:
        for sql in AGREE[1:6] + AGREE[7:8] + AGREE[10:21]:
            here, there = rows(full, sql), rows(empty, sql)
            assert [row[:-1] for row in here] == [row[:-1] for row in there], sql


def test_derived_answers_have_the_groups_of_the_question(folder: Path) -> None:
    with open_session(folder / "keys.yaml") as session:
        session.execute("SET dp.reuse = derive")
        whole = dict(rows(session, "SELECT x, COUNT(*) FROM people GROUP BY x"))
        assert set(whole) == {"a", "b", None}
        for sql, keys in (
            ("SELECT x, COUNT(*) FROM people GROUP BY x HAVING x = 'b'", ["b"]),
            ("SELECT x, COUNT(*) FROM people WHERE x IS NOT NULL GROUP BY x ORDER BY x", ["a", "b"]),
        ):
            release = session.execute(sql)
            assert release.reused, sql
            assert [tuple(row) for row in release.rows()] == [(key, whole[key]) for key in keys]
        total = session.execute("SELECT COUNT(*) FROM people")
        assert total.reused and next(total.rows())[0] == sum(whole.values())
        session.execute("SELECT sure, SUM(age) AS s FROM people GROUP BY sure HAVING sure = 'y'")
        assert not session.execute("SELECT SUM(age) AS s FROM people").reused
        session.execute("SELECT sure, COUNT(*) FROM people GROUP BY sure HAVING sure = 'y'")
        assert not session.execute("SELECT COUNT(*), SUM(age) FROM people WHERE sure = 'n'").reused
        assert not session.execute("SELECT sure, COUNT(*) FROM people WHERE age > 3 GROUP BY sure").reused
