"""The number of rows that a SELECT over results may process: never fewer than the engine does, and at most what the text
permits."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support.exact_session import exact_session, rows_of
from support.places import POLICIES
from support.seeds import seeds

from dpsql.errors.exceptions import Error
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.plan import Relation
from dpsql.planning import planner
from dpsql.policy import Policy, load_policy
from dpsql.release import sandbox
from dpsql.session.session import Session
from dpsql.sql.binder import combined_rows
from dpsql.sql.binder.combined_rows import MOST_SHOWN
from dpsql.sql.binder.query import QueryBinder
from dpsql.sql.binder.scope import Environment, Released
from dpsql.sql.parse import parse

HOSPITAL = load_policy(POLICIES / "hospital.yaml")
WARDS = "(SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY ward, nights)"


def bound(sql: str) -> Released:
    query = parse(sql).query
    assert query is not None
    released = QueryBinder(HOSPITAL, query).query(query, Environment())
    assert isinstance(released, Released)
    return released


def test_an_answer_has_as_many_rows_as_the_sandbox_returns() -> None:
    assert MOST_SHOWN == sandbox.MOST_ROWS


@pytest.mark.parametrize(
    ("subquery", "work"),
    [
        ("n = (SELECT MAX(n) FROM r AS b WHERE b.ward = r.ward)", 124),
        ("n = (SELECT MAX(n) FROM r AS b WHERE r.ward = (b.ward) AND b.nights > 3)", 124),
        ("EXISTS (SELECT 1 FROM r AS b WHERE b.ward = r.ward AND b.n > 100)", 124),
        ("n IN (SELECT b.n + r.nights FROM r AS b WHERE b.nights = r.nights)", 124),
        ("n > (SELECT AVG(n) FROM r AS b WHERE b.ward = r.ward AND b.nights < r.nights)", 124 * 32),
        ("n > (SELECT AVG(n) FROM r AS b WHERE b.ward = r.ward OR b.n = 3)", 124 * 124),
        ("n > (SELECT AVG(b.n) FROM r AS b, (SELECT 1 AS one) AS c WHERE b.ward = r.ward)", 124 * 64),
        ("n > (SELECT AVG(b.n) FROM r AS b, r AS c WHERE b.ward = c.ward AND b.nights = c.nights AND b.ward = r.ward)", 248),
        ("n > (SELECT AVG(b.n) FROM r AS b JOIN r AS c ON b.ward = r.ward WHERE c.ward = r.ward)", 124 * 2 * 32 * 32),
        ("n > (SELECT AVG(n) + MAX(r.n) FROM r AS b WHERE b.nights = r.nights)", 124 * 4),
    ],
)  # fmt: skip
def test_a_subquery_of_equal_columns_is_one_join(subquery: str, work: int) -> None:
    """The engine joins its source once with the distinct values of the outer query."""
    assert bound(f"WITH r AS {WARDS} SELECT ward, nights, n FROM r WHERE {subquery}").work == work


def written(chance: random.Random) -> str:
    """Return a list of rows with few distinct values, so that many are equal, including NULL."""
    rows = chance.randrange(1, 12)
    values = ["NULL", "1", "2", "3", "4"]
    listed = sorted({(chance.choice(values), chance.choice(values)) for _ in range(rows)}, key=str)
    listed += [row for row in listed if "NULL" in row and chance.random() < 0.5]
    return "(VALUES " + ", ".join(f"({x}, {y})" for x, y in listed) + ")"


def question(chance: random.Random) -> str:
    """Return joins of lists on columns that may or may not identify their rows."""
    names = "abcd"[: chance.randrange(1, 5)]
    text = f"SELECT {chance.choice(['*', 'a.x', 'DISTINCT a.x', 'a.y, COUNT(*)'])} FROM {written(chance)} AS a(x, y)"
    grouped = "COUNT(*)" in text
    for number, name in enumerate(names[1:], 1):
        other = chance.choice(names[:number])
        conditions = [
            f"{name}.{chance.choice('xy')} = {chance.choice([f'{other}.x', f'{other}.y', f'{other}.x + 1', '2'])}"
            for _ in range(chance.randrange(3))
        ]
        kind = chance.choice(["JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"] if conditions else ["CROSS JOIN"])
        if chance.random() < 0.2:
            text += (
                f" JOIN {written(chance)} AS {name}(x, y) USING (x)"
                if number == 1
                else f", {written(chance)} AS {name}(x, y)"
            )
        else:
            text += f" {kind} {written(chance)} AS {name}(x, y)" + (
                f" ON {' AND '.join(conditions)}" if conditions else ""
            )
    if chance.random() < 0.3:
        text += f" WHERE a.x = {chance.choice(['2', names[-1] + '.y'])}"
    return text + (" GROUP BY a.y" if grouped else "")


@pytest.mark.parametrize("seed", seeds(3, 1))
def test_no_question_has_more_rows_than_its_bound(seed: int) -> None:
    chance, compared = random.Random(42 + seed), 0
    with duckdb.connect() as connection:
        for _ in range(200):
            sql = question(chance)
            try:
                released = bound(sql)
                rows = connection.execute(f"SELECT COUNT(*) FROM ({sql})").fetchall()[0][0]
            except (Error, duckdb.Error):
                continue
            compared += 1
            assert rows <= released.most_rows, sql
            if "GROUP BY" not in sql and "DISTINCT" not in sql and "JOIN" in sql:
                assert rows <= released.work, sql
    assert compared > 130


def test_large_integers_are_not_told_apart_by_numbers_with_a_fraction() -> None:
    """A thousand of them are the same double, so equality fixes no key."""
    values = ", ".join(f"({2**62 + number})" for number in range(100))
    joined = f"SELECT * FROM (VALUES {values}) AS a(x) JOIN (VALUES (4611686018427387904.5)) AS b(y) ON a.x = b.y"
    whole = joined.replace("4611686018427387904.5", "4611686018427387904")
    assert bound(joined).most_rows == 100
    assert bound(whole).most_rows == 1


def test_public_tables_have_the_rows_that_were_counted() -> None:
    regions = replace(HOSPITAL.tables["regions"], row_count=3_000)
    policy = replace(HOSPITAL, tables={**HOSPITAL.tables, "regions": regions})
    query = parse("SELECT COUNT(*) FROM regions AS a, regions AS b").query
    assert query is not None
    with pytest.raises(Error, match="9,000,000 combinations, more than the 5,000,000"):
        QueryBinder(policy, query).query(query, Environment())


@pytest.mark.parametrize("limit", ["'²'", "'9'", f"'{'9' * 5_000}'", "1.5"])
def test_a_limit_that_is_no_whole_number_bounds_nothing(limit: str) -> None:
    """Digits of other scripts, and thousands of digits, are not numbers in Python."""
    assert bound(f"SELECT * FROM (VALUES (1), (2), (3)) AS a(x) LIMIT {limit}").most_rows == 3


CALENDAR = (
    "SELECT COUNT(*) AS n FROM calendar AS a JOIN calendar AS b ON a.day < b.day WHERE a.day > 5900 AND b.day > 5900",
    "SELECT COUNT(*) AS n FROM calendar AS a JOIN calendar AS b ON a.week - 1 = b.week WHERE a.year = 3",
    "SELECT COUNT(*) AS n FROM calendar AS a, calendar AS b WHERE (a.week = b.week AND a.day > 1) OR (a.week = b.week AND b.day < 7)",
    "SELECT COUNT(*) AS n FROM (SELECT a.week, b.day FROM calendar AS a JOIN calendar AS b USING (day)) AS c JOIN calendar AS d"
    " ON c.week = d.week AND c.day = d.day",
    "SELECT COUNT(*) AS n FROM calendar AS a WHERE (SELECT COUNT(*) FROM calendar AS b WHERE (b.week = a.week AND b.year = 3)"
    " OR (b.week = a.week AND b.day = 9)) > 2",
    "WITH r AS (SELECT year, week, day, RANK() OVER (PARTITION BY week ORDER BY day) AS place FROM calendar)"
    " SELECT COUNT(*) AS n FROM r AS a JOIN r AS b ON a.week = b.week AND a.place = b.place - 1",
)  # fmt: skip


@pytest.fixture
def calendar(tmp_path: Path) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    """Return a session over 6,000 public days, and its connection."""
    (tmp_path / "calendar.yaml").write_text(
        """
dataset: calendar
privacy_unit: row
budget: {epsilon: 1, delta: 1e-6}
per_query: {epsilon: 0.1}
ledger: sqlite:///ledger.db
tables:
  people: {columns: {x: {type: integer}}}
  calendar:
    public: true
    primary_key: [day]
    columns: {year: {type: integer}, week: {type: integer}, day: {type: integer}}
""",
        encoding="utf-8",
    )
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS x")
        connection.execute(
            "CREATE TABLE calendar AS SELECT i // 365 AS year, i // 7 AS week, i AS day FROM range(6000) AS r(i)"
        )
        session = exact_session(load_policy(tmp_path / "calendar.yaml"), connection, tmp_path / "ledger.db")
        yield session, connection
        session.close()


@pytest.mark.parametrize("sql", CALENDAR)
def test_rows_of_public_tables_are_counted_by_what_can_match(
    sql: str, calendar: tuple[Session, duckdb.DuckDBPyConnection]
) -> None:
    """Products of all rows would be refused; those that meet the conditions and agree on what is compared are few."""
    session, connection = calendar
    assert rows_of(session.execute(sql)) == [(float(connection.execute(sql).fetchall()[0][0]),)]
    with pytest.raises(Error, match="combinations, more than the 5,000,000"):
        session.execute("SELECT COUNT(*) AS n FROM calendar AS a JOIN calendar AS b ON a.week < b.week")


def test_counting_what_can_match_is_bounded(
    calendar: tuple[Session, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costly conditions are not counted with, the rows that are read are limited, and one number is counted once."""
    session, _ = calendar
    counted: list[str] = []
    count = planner.Planner._agreeing

    def noted(self: planner.Planner, policy: Policy, left: list[int], rows: Relation, columns: tuple[str, ...]) -> int:
        counted.append(f"{canonical_text(rows)} {columns}")
        return count(self, policy, left, rows, columns)

    monkeypatch.setattr(planner.Planner, "_agreeing", noted)
    near = "SELECT COUNT(*) AS n FROM calendar AS a JOIN calendar AS b ON a.day < b.day WHERE a.day > 5900 AND b.day > 5900"
    with monkeypatch.context() as limited:
        limited.setattr(combined_rows, "MOST_COUNTING", 2_000_000)  # nanoseconds over 6,000 rows
        session.explain(f"{near} AND md5(md5(CAST(a.day AS TEXT))) <> '' AND b.day <> 77777")
    assert not any("md5" in text for text in counted)
    assert {"77777" in text for text in counted if "5900" in text} == {True, False}
    with monkeypatch.context() as limited, pytest.raises(Error, match="combinations, more than the 5,000,000"):
        limited.setattr(planner, "MOST_COUNTED", 5_000)  # fewer than the table has
        session.explain(near.replace("5900", "5901"))
    counted.clear()
    joined = "calendar AS c0" + "".join(f" JOIN calendar AS c{n} ON c{n}.day = c{n - 1}.day + 1" for n in range(1, 9))
    listed = ", ".join(f"c{n % 9}.{('day', 'week', 'year')[n % 3]} AS z{n}" for n in range(200))
    session.explain(f"SELECT COUNT(*) AS n FROM (SELECT {listed} FROM {joined}) AS t")
    assert len(counted) < 40


def test_ranks_with_ties_are_no_key() -> None:
    ranked = "(SELECT ward, n, RANK() OVER (PARTITION BY ward ORDER BY {}) AS place FROM r) AS {}"
    text = f"WITH r AS {WARDS} SELECT COUNT(*) FROM {ranked} JOIN {ranked} ON a.ward = b.ward AND a.place = b.place"
    tied = bound(text.format("n", "a", "n", "b"))
    apart = bound(text.format("nights", "a", "nights", "b"))
    assert tied.work > apart.work
