"""A text is read as the engine reads it whose dialect is chosen: the answers without noise are that engine's own."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from support.exact_session import exact_session
from support.postgres_source import Server, server

from dpsql.errors.exceptions import Refusal
from dpsql.policy import load_policy
from dpsql.session.session import Session

__all__ = ["server"]
POLICY = """
dataset: dialects
source: duckdb:///dialects.duckdb
privacy_unit: row
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 1}
ledger: sqlite:///dialects.db
tables:
  facts:
    columns:
      age: {type: integer, lower: -50, upper: 50, nullable: false}
      tens: {type: integer, lower: 0, upper: 10, nullable: false}
      word: {type: text, nullable: false}
      half: {type: real, lower: -25, upper: 25, nullable: false}
      day: {type: date, lower: 2000-01-01, upper: 2020-12-31, nullable: false}
      seen: {type: timestamp, lower: 2000-01-01, upper: 2020-12-31, nullable: false}
"""
WORDS = ("5%", "a_b", "axb", "a%b", "ab_", r"a\b", "a_bc", "xa_b", "A_B", "north", "n", "a\nb")
ROWS = [
    (
        age,
        age % 3,
        WORDS[age % len(WORDS)],
        age / 2,
        date(2007 + age % 9, 1 + age % 12, 1),
        datetime(2007, 3, 4) + age * timedelta(0, 13.125),
    )
    for age in range(-50, 38)
]
COLUMNS = "age bigint, tens bigint, word text, half double precision, day date, seen timestamp"
DIFFERENT = [
    "SELECT SUM(age / 7) AS n FROM facts",
    "SELECT SUM(-age / 7) AS n FROM facts WHERE age / 2 = 3",
    "SELECT COUNT(*) AS N FROM facts WHERE age / 10 < 1 AND age > 5",
    "SELECT SUM((age / 7) / 2) AS n FROM facts",
    r"SELECT COUNT(*) AS n FROM facts WHERE word LIKE 'a\_b'",
    r"SELECT COUNT(*) AS n FROM facts WHERE word LIKE 'a\_b%'",
    r"SELECT COUNT(*) AS n FROM facts WHERE word NOT LIKE '%\_b'",
    r"SELECT COUNT(*) AS n FROM facts WHERE word LIKE '%\%%'",
    r"SELECT COUNT(*) AS n FROM facts WHERE word LIKE 'a\\b'",
    r"SELECT COUNT(*) AS n FROM facts WHERE word ILIKE 'a\_b'",
    r"SELECT COUNT(*) AS n FROM facts WHERE word LIKE '%' || 'a\_' || 'b'",
    "SELECT COUNT(*) AS n FROM facts WHERE word::varchar(2) = 'no'",
    "SELECT COUNT(*) AS n FROM facts WHERE CAST(word AS VARCHAR(1)) = 'a'",
    "SELECT COUNT(*) AS n FROM facts WHERE CAST(word AS character varying(1)) = 'a'",
    "SELECT COUNT(*) AS n FROM facts WHERE word::char = 'a'",
    "SELECT COUNT(*) AS n FROM facts WHERE CAST(word AS CHARACTER) = 'a'",
    "SELECT COUNT(*) AS n FROM facts WHERE word::character(2) = 'ab'",
    "SELECT SUM(CASE WHEN day > '2010-01-01' THEN age / 7 ELSE LEAST(length(word), 9) / 2 END) AS n FROM facts",
    "SELECT SUM(EXTRACT(month FROM day)::int / 5) AS n FROM facts",
    "SELECT SUM(EXTRACT(second FROM seen)) AS n FROM facts",
    "SELECT SUM(date_part('second', seen + INTERVAL '1 minute') / 4) AS n FROM facts WHERE EXTRACT(SECOND FROM seen) > 30",
    "SELECT COUNT(*) AS n FROM facts WHERE concat(word, '-', tens > 1) = 'axb-t'",
    "SELECT COUNT(*) AS n FROM facts WHERE concat_ws('-', NOT tens > 1, word) IN ('f-n', 'true-n')",
    "SELECT COUNT(*) AS N FROM (SELECT word, age > 0 AS old FROM facts) f WHERE concat(word, old) LIKE '%f'",
    "SELECT CASE WHEN concat(COUNT(*) > 5, 'x') = 'tx' THEN 1 ELSE 2 END AS n FROM facts",
    "SELECT COUNT(*) AS n FROM facts WHERE word SIMILAR TO 'a%_(b|c)' AND word NOT SIMILAR TO 'a.b'",
    "SELECT COUNT(*) AS n FROM facts WHERE word SIMILAR TO '%[0-9!%]'",
    "SELECT COUNT(*) AS n FROM facts WHERE word SIMILAR TO 'a_b' OR word SIMILAR TO 'a%(\\nb|x)'",
    "SELECT COUNT(*) AS n FROM facts WHERE ROUND(half * 3 + tens) IN (2, 4, 6, 8)",
    "SELECT SUM(ROUND(half)) AS n FROM facts",
    "SELECT COUNT(*) AS Total FROM facts",
    "SELECT (7 + 2 * -4) / 2 / 1 + COUNT(*) AS n FROM facts LIMIT 3 / 2",
    "SELECT SUM(c * (age / 7)) AS n FROM (SELECT age, COUNT(*) AS c FROM facts GROUP BY age) f",
    "WITH f AS (SELECT age AS a, COUNT(*) AS c FROM facts GROUP BY age) SELECT SUM(c) AS n FROM f WHERE (a - 1) / 7 = -3",
    "SELECT SUM(c) AS n FROM (SELECT age, age / 7 * COUNT(*) AS c FROM facts GROUP BY age HAVING age / 8 < 4) f",
    "SELECT SUM(k / 4) AS n FROM (SELECT k FROM generate_series(-9, 10) AS g(k) UNION ALL VALUES (-7), (11)) AS v",
    "SELECT c AS n FROM (SELECT * FROM (VALUES (1, 2, 3)) a(h, i, j) JOIN (VALUES (3, 2)) b(j, i) USING (j, i)) s(c, d, e)",
    "SELECT c AS n FROM (SELECT * FROM (VALUES (1, 2)) a(i, j) JOIN (VALUES (1, 2, 3)) b(i, j, k) USING (i, j) NATURAL JOIN (VALUES (3)) c(k)) s(c, d, e)",
    "SELECT COUNT(*) AS n FROM facts JOIN (SELECT age AS a, COUNT(*) AS c FROM facts GROUP BY age) f ON age = a WHERE tens = a / 7",
]
ROWS_OF_SERIES = [
    "SELECT COUNT(*) AS n FROM facts, (SELECT generate_series(1, 3) AS k) AS g WHERE tens = k",
    "WITH g AS (SELECT generate_series('2008-01-01'::date, '2009-03-01', '1 year')::date AS k) SELECT COUNT(*) AS n FROM facts JOIN g ON day = k",
]
MINUTE = "EXTRACT(minute FROM TIMESTAMP '2004-01-11 00:00:59.1' - TIMESTAMP '2004-01-09 23:59:59.1')"
EQUAL = [
    "SELECT COUNT(*) AS n FROM facts WHERE seen::time > '00:05' OR CAST(seen AS TIME) = TIME '00:00:00'",
    "SELECT COUNT(*) AS n FROM facts WHERE seen::time BETWEEN '00:01:45' AND '00:02'::time",
    f"SELECT COUNT(*) AS n FROM facts WHERE {MINUTE} = 1",
    "SELECT SUM(age / 2.0) AS n FROM facts",
    "SELECT SUM(ROUND(age / 2.0)) + SUM(ROUND(half::numeric)) + SUM(ROUND(half + 0.25)) AS n FROM facts",
    "SELECT SUM(ROUND(age, -1)) + SUM(ROUND(half::numeric, -1)) AS n FROM facts",
    "SELECT COUNT(*) AS n FROM facts WHERE word SIMILAR TO '(north|a)[a-z]*' OR word SIMILAR TO '5' OR word SIMILAR TO '(n)'",
    "SELECT SUM(EXTRACT(year FROM day) / 10) AS n FROM facts",
    "SELECT SUM(1 + 7 / (0 - date_part('month', day))) AS n FROM facts",
    "SELECT SUM(FLOOR(age) / 7 + SIGN(age) / 2) AS n FROM facts",
    "SELECT SUM(COALESCE(CASE WHEN tens > 1 THEN EXTRACT(month FROM day) ELSE age END, 1) / 5) AS n FROM facts",
    "SELECT SUM(m / 5) AS n FROM (SELECT EXTRACT(month FROM day) AS m FROM facts) f",
    "WITH f(m) AS (SELECT EXTRACT(month FROM day) FROM facts), g AS (SELECT m + 1 AS k FROM f) SELECT SUM(k / 5) AS n FROM g",
    "SELECT SUM(m / 5) AS n FROM (SELECT age AS m FROM facts UNION ALL SELECT EXTRACT(month FROM day) FROM facts) f",
    "SELECT COUNT(*) AS n FROM facts WHERE word LIKE 'a!_b' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM facts WHERE word LIKE '!a!_%' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM facts WHERE NOT word LIKE '%!%%' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM facts WHERE word LIKE 'a_b%' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM facts WHERE word LIKE '%' || 'a!_' || 'b' ESCAPE '!'",
    'SELECT COUNT(*) AS "Total" FROM facts',
    "SELECT COUNT(*) AS \u00c4 FROM facts",
]


PER_PERSON = [
    "SELECT AVG(h) AS n FROM (SELECT tens, COUNT(*) / 2 AS h FROM facts GROUP BY tens) p",
    "WITH p AS (SELECT tens, MAX(age) / 7 AS h FROM facts GROUP BY tens) SELECT SUM(h) AS n FROM p",
    "SELECT COUNT(*) AS n FROM (SELECT tens FROM facts GROUP BY tens HAVING COUNT(*) / 2 = 14) p",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("dialects")
    (folder / "policy.yaml").write_text(POLICY)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE facts ({COLUMNS})")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        yield exact_session(load_policy(folder / "policy.yaml"), connection, folder / "ledger.db")


def answer(session: Session, sql: str, dialect: str) -> tuple[str, float]:
    session.execute(f"SET dp.dialect = {dialect}")
    release = session.execute(sql)
    ((value,),) = release.rows()
    return release.columns[0].name, round(float(value), 6)


def own(connection: Any, sql: str) -> tuple[str, float]:
    cursor = connection.execute(sql)
    return cursor.description[0][0], round(float(cursor.fetchone()[0]), 6)


@pytest.mark.parametrize("sql", [*DIFFERENT, *EQUAL])
def test_duckdb_reads_the_text_as_dpsql_does(session: Session, sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE facts ({COLUMNS})")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        assert answer(session, sql, "duckdb") == own(connection, sql)


@pytest.mark.parametrize("sql", DIFFERENT)
def test_the_dialects_differ_and_explain_says_so(session: Session, sql: str) -> None:
    answers = {answer(session, sql, dialect) for dialect in ("duckdb", "postgresql")}
    assert len(answers) == 2
    said = session.explain(sql).to_text()
    assert "read as postgresql (dp.dialect): " in said or "Total" in sql or "AS N" in sql


@pytest.mark.parametrize("sql", EQUAL)
def test_where_the_dialects_agree_they_are_one_question(session: Session, sql: str) -> None:
    assert answer(session, sql, "duckdb") == answer(session, sql, "postgresql")
    assert session.execute(sql).reused


@pytest.fixture
def persons(tmp_path: Path) -> Iterator[Session]:
    """Yield a session over the same rows, in which `tens` is the person."""
    policy = POLICY.replace("privacy_unit: row", "privacy_unit: {table: facts, column: tens}")
    (tmp_path / "policy.yaml").write_text(policy.replace("    columns:", "    max_rows: 100\n    columns:"))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE facts ({COLUMNS})")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        with exact_session(load_policy(tmp_path / "policy.yaml"), connection, tmp_path / "ledger.db") as session:
            yield session


@pytest.mark.parametrize("sql", PER_PERSON)
def test_integers_of_one_person_have_whole_quotients_under_postgresql(persons: Session, sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE facts ({COLUMNS})")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        assert answer(persons, sql, "duckdb") == own(connection, sql)
        assert answer(persons, sql, "postgresql") == own(connection, sql.replace(" / ", " // "))
    assert "read as postgresql (dp.dialect): " in persons.explain(sql).to_text()


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT n FROM (SELECT COUNT(*) AS "N", SUM(age) AS n FROM facts) q',
        'WITH q AS (SELECT COUNT(*) AS "N", SUM(age) AS n FROM facts) SELECT "N" FROM q',
        'SELECT COUNT(*) AS "N", SUM(age) AS n FROM facts ORDER BY n',
    ],
)
def test_names_that_differ_in_case_alone_are_not_taken_for_each_other(session: Session, sql: str) -> None:
    session.execute("SET dp.dialect = postgresql")
    with pytest.raises(Refusal, match="ambiguous"):
        session.execute(sql)


@pytest.mark.slow
def test_postgresql_reads_the_text_as_dpsql_does(session: Session, server: Server) -> None:
    with psycopg.connect(server.database(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE facts ({COLUMNS})")
        connection.cursor().executemany("INSERT INTO facts VALUES (%s, %s, %s, %s, %s, %s)", ROWS)
        for sql in (*DIFFERENT, *ROWS_OF_SERIES, *EQUAL):
            assert answer(session, sql, "postgresql") == own(connection, sql), sql
