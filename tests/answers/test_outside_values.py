"""Policy key `outside`: values outside a column's domain or bounds form one additional group, in keys and nowhere else."""

import random
import re
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.exact_session import assert_equal, exact_session
from support.gates import NoiselessGate
from support.random_expressions import literal
from support.seeds import seeds
from unit.functions.test_key_narrowing import named, rows_for

from dpsql.errors.exceptions import Refusal
from dpsql.frontends.rendering.formats import as_object
from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_narrowing import leaves_out, remaining
from dpsql.functions.numeric import call
from dpsql.functions.public_domains import as_key, domain_of
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Filter, Scan
from dpsql.policy import load_policy
from dpsql.policy.check import parse_policy, policy_problems
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
      region: {type: text, domain: [south, north], outside: other}
      code: {type: text, domain: [p, q], nullable: false}
      age: {type: integer, lower: 0, upper: 99, outside: {other: -1}}
      grade: {type: integer, domain: [3, 1], outside: {other: 2}}
      day: {type: date, lower: 2024-01-01, upper: 2024-12-31, outside: {other: 1900-01-01}, nullable: false}
  visits:
    foreign_keys: {id: people.id}
    max_rows: 2
    columns:
      kind: {type: text, domain: [in, out], outside: {other: elsewhere}, nullable: false}
"""
REGION = "CASE WHEN region IN ('south', 'north') OR region IS NULL THEN region ELSE 'other' END"
AGE = "CASE WHEN age BETWEEN 0 AND 99 OR age IS NULL THEN age ELSE -1 END"
GRADE = "CASE WHEN grade IN (1, 3) OR grade IS NULL THEN grade ELSE 2 END"
DAY = "CASE WHEN day BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' THEN day ELSE DATE '1900-01-01' END"
KIND = "CASE WHEN kind IN ('in', 'out') OR kind IS NULL THEN kind ELSE 'elsewhere' END"


def fill(path: Path, most: int = 6000) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, ['north', 'south', 'east', 'North', NULL][1 + i % 5] AS region, "
            "CASE WHEN i % 11 = 0 THEN NULL ELSE i % 130 - 12 END AS age, i // 5 % 5 AS grade, ['p', 'z'][1 + i % 2] AS code, "
            "DATE '2023-12-01' + CAST(i % 430 AS INTEGER) AS day FROM range(6000) t(i) WHERE i < ?", [most]
        )  # fmt: skip
        connection.execute(
            "CREATE TABLE visits AS SELECT i AS id, ['in', 'out', 'up'][1 + i % 3] AS kind FROM range(0, 6000, 2) t(i) WHERE i < ?",
            [most],
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("outside")
    fill(place / "keys.duckdb")
    (place / "keys.yaml").write_text(POLICY)
    return place


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with open_session(folder / "keys.yaml", create_ledger=True) as opened:
        yield opened


AGREE = [
    ("SELECT SUM(n) FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region)", "SELECT COUNT(*) FROM people"),
    ("SELECT SUM(n) FROM (SELECT age, COUNT(*) AS n FROM people WHERE age < 9 OR age > 97 OR age IS NULL GROUP BY age)",
     "SELECT COUNT(*) FROM people WHERE age < 9 OR age > 97 OR age IS NULL"),
    ("SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY region", f"SELECT {REGION}, COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT DISTINCT region FROM people ORDER BY region", f"SELECT DISTINCT {REGION} AS r FROM people ORDER BY r"),
    ("SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY age", f"SELECT {AGE}, COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT grade, COUNT(*) FROM people GROUP BY grade ORDER BY grade", f"SELECT {GRADE}, COUNT(*) FROM people WHERE grade IS NOT NULL GROUP BY 1 "
     "UNION ALL SELECT NULL, 0 ORDER BY 1"),
    ("SELECT day, COUNT(*) FROM people GROUP BY day ORDER BY day", f"SELECT {DAY}, COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT CAST(date_trunc('month', day) AS DATE) AS m, COUNT(*) FROM people GROUP BY m ORDER BY m",
     f"SELECT CAST(date_trunc('month', {DAY}) AS DATE), COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT coalesce(region, 'x') AS r, COUNT(*) FROM people GROUP BY r ORDER BY r",
     f"SELECT coalesce({REGION}, 'x'), COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT upper(region) AS r, COUNT(*) FROM people GROUP BY r ORDER BY r", f"SELECT upper({REGION}), COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT upper(region), COUNT(*) FROM people GROUP BY region ORDER BY 1", f"SELECT upper({REGION}), COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT age // 10 AS d, COUNT(*) FROM people GROUP BY d HAVING age // 10 < 2 ORDER BY d",
     f"SELECT {AGE} // 10 AS d, COUNT(*) FROM people GROUP BY d HAVING d < 2 ORDER BY d"),
    ("SELECT region, GROUPING(region), COUNT(*) FROM people GROUP BY ROLLUP (region) ORDER BY 2, 1",
     f"SELECT r, GROUPING(r), COUNT(*) FROM (SELECT {REGION} AS r FROM people) GROUP BY ROLLUP (r) ORDER BY 2, 1"),
    ("SELECT region, COUNT(*) FROM people WHERE region = 'north' GROUP BY region", "SELECT region, COUNT(*) FROM people WHERE region = 'north' GROUP BY 1"),
    ("SELECT region, COUNT(*) FROM people WHERE region NOT IN ('north', 'south') GROUP BY region",
     f"SELECT {REGION}, COUNT(*) FROM people WHERE region NOT IN ('north', 'south') GROUP BY 1"),
    ("SELECT region, COUNT(*) FROM people WHERE region = 'east' GROUP BY region", f"SELECT {REGION}, COUNT(*) FROM people WHERE region = 'east' GROUP BY 1"),
    ("SELECT region, COUNT(*) FROM people GROUP BY region HAVING region = 'other'",
     f"SELECT {REGION} AS r, COUNT(*) FROM people GROUP BY r HAVING r = 'other'"),
    ("SELECT age, COUNT(*) FROM people WHERE age < 5 GROUP BY age ORDER BY age", f"SELECT {AGE} AS a, COUNT(*) FROM people WHERE age < 5 GROUP BY a ORDER BY a"),
    ("SELECT age, COUNT(*) FROM people WHERE age BETWEEN 5 AND 7 GROUP BY age ORDER BY age", "SELECT age, COUNT(*) FROM people WHERE age BETWEEN 5 AND 7 GROUP BY age ORDER BY age"),
    ("SELECT day, COUNT(*) FROM people WHERE day > '2024-12-29' GROUP BY day ORDER BY day",
     f"SELECT {DAY} AS d, COUNT(*) FROM people WHERE day > '2024-12-29' GROUP BY d ORDER BY d"),
    ("SELECT region, COUNT(*) FILTER (WHERE region = 'east') FROM people GROUP BY region ORDER BY region",
     f"SELECT {REGION}, COUNT(*) FILTER (WHERE region = 'east') FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT COUNT(DISTINCT region) FROM people", "SELECT COUNT(DISTINCT region) FROM people"),
    ("SELECT region, grade, COUNT(*) FROM people WHERE region IS NOT NULL AND grade >= 2 GROUP BY ALL ORDER BY 1, 2",
     f"SELECT {REGION} AS r, {GRADE} AS g, COUNT(*) FROM people WHERE region IS NOT NULL AND grade >= 2 GROUP BY ALL ORDER BY 1, 2"),
    ("SELECT kind, COUNT(*) FROM people p LEFT JOIN visits v ON v.id = p.id GROUP BY kind ORDER BY 1",
     f"SELECT {KIND} AS k, COUNT(*) FROM people p LEFT JOIN visits v ON v.id = p.id GROUP BY k ORDER BY 1"),
    ("SELECT kind, COUNT(*) FROM people LEFT JOIN visits USING (id) GROUP BY kind ORDER BY 1",
     f"SELECT {KIND} AS k, COUNT(*) FROM people LEFT JOIN visits USING (id) GROUP BY k ORDER BY 1"),
    ("SELECT region, COUNT(*) FROM visits JOIN people USING (id) WHERE kind <> 'up' GROUP BY region ORDER BY 1",
     f"SELECT {REGION} AS r, COUNT(*) FROM visits JOIN people USING (id) WHERE kind <> 'up' GROUP BY r ORDER BY 1"),
    ("SELECT k, COUNT(*) FROM (SELECT id, kind AS k FROM visits) GROUP BY k ORDER BY k", f"SELECT {KIND} AS k, COUNT(*) FROM visits GROUP BY k ORDER BY k"),
    ("SELECT r, COUNT(*) FROM (SELECT region AS r FROM people UNION ALL SELECT region FROM people) GROUP BY r ORDER BY r",
     f"SELECT {REGION}, 2 * COUNT(*) FROM people GROUP BY 1 ORDER BY 1"),
    ("SELECT r, COUNT(*) FROM (SELECT region AS r FROM people UNION ALL SELECT 'both' FROM people) GROUP BY r ORDER BY r",
     f"SELECT r, COUNT(*) FROM (SELECT {REGION} AS r FROM people UNION ALL SELECT 'both' FROM people) GROUP BY r ORDER BY r"),
    ("SELECT r, COUNT(*) FROM (SELECT region AS r FROM people UNION ALL SELECT kind FROM visits) GROUP BY r ORDER BY r",
     f"SELECT r, COUNT(*) FROM (SELECT {REGION} AS r FROM people UNION ALL SELECT {KIND} FROM visits) GROUP BY r ORDER BY r"),
    ("SELECT r, COUNT(*) FROM (SELECT upper(region) AS r FROM people) GROUP BY r ORDER BY r",
     f"SELECT upper({REGION}) AS r, COUNT(*) FROM people GROUP BY r ORDER BY r"),
    ("WITH q AS (SELECT coalesce(region, 'x') AS r, age + 1 AS a FROM people), p AS (SELECT r || '!' AS s, a FROM q) "
     "SELECT s, COUNT(*) FROM p WHERE a > 3 GROUP BY s ORDER BY s",
     f"SELECT coalesce({REGION}, 'x') || '!' AS s, COUNT(*) FROM people WHERE age > 2 GROUP BY s ORDER BY s"),
    ("SELECT r, COUNT(*) FROM (SELECT upper(region) AS r FROM people UNION ALL SELECT 'both' FROM people) GROUP BY ROLLUP (r) ORDER BY 1, 2",
     f"SELECT r, COUNT(*) FROM (SELECT upper({REGION}) AS r FROM people UNION ALL SELECT 'both' FROM people) "
     "GROUP BY ROLLUP (r) ORDER BY 1, 2"),
    ("SELECT k, COUNT(*) FROM (SELECT id, u AS k, COUNT(*) AS n FROM (SELECT id, upper(kind) AS u FROM visits) GROUP BY id, u) GROUP BY k ORDER BY k",
     f"SELECT upper({KIND}) AS k, COUNT(DISTINCT id) FROM visits GROUP BY k ORDER BY k"),
    ("SELECT region, u, COUNT(*) FROM (SELECT id, upper(kind) AS u FROM visits) v JOIN people USING (id) GROUP BY region, u HAVING u <> 'IN' ORDER BY 1, 2",
     f"SELECT {REGION} AS r, upper({KIND}) AS u, COUNT(*) FROM visits JOIN people USING (id) GROUP BY r, u HAVING u <> 'IN' ORDER BY 1, 2"),
    ("SELECT k, COUNT(*) FROM (SELECT id, kind AS k, COUNT(*) AS n FROM visits GROUP BY id, kind) GROUP BY k ORDER BY k",
     f"SELECT {KIND} AS k, COUNT(DISTINCT id) FROM visits GROUP BY k ORDER BY k"),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(AGREE)))
def test_answers_have_a_group_of_other_values(session: Session, folder: Path, at: int) -> None:
    asked, meant = AGREE[at]
    with duckdb.connect(str(folder / "keys.duckdb"), read_only=True) as connection:
        exact = connection.execute(meant).fetchall()
    found = list(session.execute(asked).rows())
    assert len(found) == len(exact)
    for got, right in zip(found, exact, strict=True):
        for one, other in zip(got, right, strict=True):
            assert one == other or abs(one - other) <= 2, (got, right)


def test_public_keys_are_in_the_order_of_the_policy(session: Session) -> None:
    for column, keys in (("region", ["south", "north", "other", None]), ("grade", [3, 1, 2, None])):
        assert [
            key for key, _ in session.execute(f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}").rows()
        ] == keys


@pytest.mark.parametrize(
    "condition",
    ["region = 'other'", "'other' = region", "region <> 'other'", "region IN ('south', 'other')", "age = -1", "NOT grade = 2",
     "day = '1900-01-01'", "region IS NOT DISTINCT FROM 'other'"],
)  # fmt: skip
def test_a_click_on_the_group_of_other_values_is_refused_with_the_way_to_keep_it(
    session: Session, condition: str
) -> None:
    """No row has the label: an answer would be charged for an empty group, or for one that should not be there."""
    column = condition.split()[1 if condition.startswith("NOT") else 2 if condition.startswith("'") else 0]
    for sql in (
        f"SELECT {column}, COUNT(*) FROM people WHERE {condition} GROUP BY {column}",
        f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM people",
        f"SELECT COUNT(*) FROM (SELECT * FROM people) AS p WHERE {condition}",
    ):
        with pytest.raises(Refusal) as refused:
            session.execute(sql)
        written = sql.index(condition.removeprefix("NOT ")) + 1
        assert (refused.value.slug, refused.value.position) == ("outside_label", written)
        assert f"HAVING {column} = " in refused.value.hint
    session.execute(f"SELECT {column}, COUNT(*) FROM people GROUP BY {column} HAVING {condition}")


def test_prepared_copies_have_the_same_groups(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "keys.yaml").write_text(POLICY)
    fill(tmp_path / "keys.duckdb")
    with open_session(tmp_path / "keys.yaml", create_ledger=True) as prepared:
        assert {one.state for one in prepared.context.index.prepare(copy=True)} == {"written"}
        for sql, _ in [*AGREE[:15], *AGREE[22:]]:
            here, there = list(session.execute(sql).rows()), list(prepared.execute(sql).rows())
            assert len(here) == len(there)
            for one, other in zip(here, there, strict=True):
                assert all(a == b or abs(a - b) <= 3 for a, b in zip(one, other, strict=True)), sql


def test_which_groups_appear_does_not_depend_on_data(session: Session, tmp_path: Path) -> None:
    """An empty table, and one with one row less, have the same groups."""
    (tmp_path / "keys.yaml").write_text(POLICY)
    fill(tmp_path / "keys.duckdb", 0)
    with open_session(tmp_path / "keys.yaml", create_ledger=True) as empty:
        for sql, _ in [*AGREE[2:21], *AGREE[22:]]:
            here, there = session.execute(sql), empty.execute(sql)
            columns = [at for at, column in enumerate(here.columns) if not column.noisy]
            keys = [[tuple(row[at] for at in columns) for row in release.rows()] for release in (here, there)]
            assert keys[0] == keys[1], sql


def test_the_limit_on_the_grid_counts_the_label(folder: Path, tmp_path: Path) -> None:
    fill(tmp_path / "keys.duckdb")
    for most, refused in ((102, False), (101, True)):
        text = POLICY.replace("delta: 1e-9}", f"max_public_groups: {most}}}").replace(", delta: 1e-6", "")
        (tmp_path / "keys.yaml").write_text(text.replace("ledger.db", f"ledger{most}.db"))
        with open_session(tmp_path / "keys.yaml", create_ledger=True) as opened:
            if refused:
                with pytest.raises(Exception, match=r"combinations|grid|groups"):
                    opened.execute("SELECT age, COUNT(*) FROM people GROUP BY age")
            else:
                assert len(opened.execute("SELECT age, COUNT(*) FROM people GROUP BY age")) == 102


# --- the notice ---------------------------------------------------------------------------------------------------------

DROPS = "belong to no group"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT code, COUNT(*) FROM people GROUP BY code", "code"),
        ("SELECT code, COUNT(*) FROM people WHERE code <> 'p' GROUP BY code", "code"),
        ("SELECT SUM(n) FROM (SELECT code, COUNT(*) AS n FROM people GROUP BY code)", "code"),
        ("SELECT upper(p.code) AS u, region, COUNT(*) FROM people p GROUP BY 1, 2", "code"),
        ("SELECT code, COUNT(*) FROM people WHERE code IN ('p', 'q') GROUP BY code", ""),
        ("SELECT code, COUNT(*) FROM people WHERE code = 'q' GROUP BY code", ""),
        ("SELECT region, COUNT(*) FROM people GROUP BY region", ""),
        ("SELECT age // 10 AS d, COUNT(*) FROM people GROUP BY d", ""),
        (
            "SELECT day, COUNT(*) FROM people GROUP BY day",
            "day",
        ),  # a label stands for other values, and NULL is excluded
        ("SELECT day, COUNT(*) FROM people WHERE day IS NOT NULL GROUP BY day", ""),
        ("SELECT CASE WHEN code = 'p' THEN 'p' ELSE 'rest' END AS c, COUNT(*) FROM people GROUP BY c", "code"),
        ("SELECT COUNT(*) FROM people", ""),
        ("SELECT top, COUNT(*) FROM (SELECT id, MIN(age) AS top FROM people GROUP BY id) GROUP BY top", "age"),
        ("SELECT top, COUNT(*) FROM (SELECT id, MIN(age) AS top FROM people GROUP BY id) WHERE top = 9 GROUP BY top", ""),
        ("SELECT n, COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) GROUP BY n", ""),
        ("SELECT r, COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY kind) AS r FROM visits) GROUP BY r", ""),
        (
            "SELECT k, COUNT(*) FROM (SELECT first_value(code) OVER (PARTITION BY id ORDER BY age) AS k FROM people) GROUP BY k",
            "k",
        ),
    ],
)  # fmt: skip
def test_answers_that_may_leave_rows_out_say_so(session: Session, sql: str, names: str) -> None:
    release = session.execute(sql)
    explained = session.execute(f"EXPLAIN VERBOSE {sql}")
    lines = [row[0] for row in session.execute(f"EXPLAIN {sql}").rows()]
    for said in (release.notices, session.explain(sql).notes, explained.notices, lines, as_object(release)["notices"]):
        found = [text for text in said if DROPS in text]
        assert len(found) == bool(names)
        words = "rows without day, which" if names == "day" else f"other values of {names} than"
        assert all(words in text for text in found)
    again = session.execute(sql)
    assert again.reused and again.notices == release.notices


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT CASE WHEN age < 5 THEN 'infant' ELSE 'older' END AS c, COUNT(*) FROM people GROUP BY c", "age -1"),
        ("SELECT c, COUNT(*) FROM (SELECT age // 10 AS c FROM people) GROUP BY c", "age -1"),
        ("SELECT region LIKE 'n%' AS n, COUNT(*) FROM people GROUP BY n", "region other"),
        ("SELECT left(r, 1) AS l, COUNT(*) FROM (SELECT upper(region) AS r FROM people) GROUP BY l", "region other"),
        ("SELECT CASE WHEN code = 'p' THEN region ELSE 'none' END AS c, COUNT(*) FROM people GROUP BY c", ""),
        ("SELECT upper(coalesce(region, 'none')) AS r, COUNT(*) FROM people GROUP BY r", ""),
        ("SELECT region, COUNT(*) FROM people WHERE region LIKE 'n%' GROUP BY region", ""),
    ],
)
def test_a_key_that_computes_with_a_label_says_so(session: Session, sql: str, said: str) -> None:
    column, _, label = said.partition(" ")
    notes = [f"values of {column} that the policy does not name count as {label} in the computed key"] if said else []
    for notices in (session.execute(sql).notices, session.explain(sql).notes):
        assert [notice for notice in notices if "count as" in notice] == notes


def test_keys_that_compare_with_a_result_have_the_groups_of_their_rows(session: Session) -> None:
    """A value that is unknown before its release has no cell."""
    sql = "SELECT CASE WHEN age > (SELECT AVG(age) FROM people) THEN 'above' ELSE 'below' END AS c, COUNT(*) FROM people {} GROUP BY c"
    assert [key for key, _ in session.execute(sql.format("")).rows()] == ["above", "below"]
    assert [key for key, _ in session.execute(sql.format("WHERE age > 3")).rows()] == ["above", "below"]


# --- outer joins ----------------------------------------------------------------------------------------------------------

TOWNS = """
  towns:
    public: true
    primary_key: [town]
    columns: {town: {type: integer, nullable: false}, name: {type: text}}
"""
NAMES = {
    "region": ("TRUE", REGION), "code": ("code IS NOT NULL AND code IN ('p', 'q')", "code"), "age": ("TRUE", AGE),
    "day": ("day IS NOT NULL", DAY), "kind": ("kind IS NOT NULL", KIND), "way": ("way IS NOT NULL AND way BETWEEN 0 AND 3", "way"),
}  # fmt: skip
"""Rows that belong to a group of a key that reads a column, and the column with labels."""
OF_PEOPLE = (
    "region", "upper(region)", "coalesce(region, 'none')", "left(region, 1)", "code", "code || '!'", "coalesce(code, 'q')", "code IS NULL",
    "CASE WHEN code = 'p' THEN region ELSE code END", "age", "age // 50", "age < 0", "day", "CAST(date_trunc('month', day) AS DATE)",
)  # fmt: skip
OF_VISITS = (
    "kind", "upper(kind)", "coalesce(kind, 'none')", "way", "way + 1", "coalesce(way, 3)", "way IS NULL",
    "kind || way", "way > 1",
)  # fmt: skip
JOINS = (
    ("people", "towns AS t LEFT JOIN {rows} AS p ON p.town = t.town"),
    ("people", "{rows} AS p RIGHT JOIN towns AS t ON p.town = t.town"),
    ("people", "{rows} AS p FULL JOIN towns AS t ON p.town = t.town"),
    ("people", "{rows} AS p LEFT JOIN towns AS t ON p.town = t.town"),
    ("people", "towns AS t LEFT JOIN {rows} AS p ON p.town = t.town LEFT JOIN visits AS v ON v.id = p.id"),
    ("visits", "people AS o LEFT JOIN {rows} AS p ON p.id = o.id"),
    ("visits", "{rows} AS p RIGHT JOIN people AS o ON p.id = o.id"),
    ("visits", "people AS o LEFT JOIN {rows} AS p ON p.id = o.id AND p.way > 0"),
    ("visits", "people AS o LEFT JOIN {rows} AS p ON p.id = o.id JOIN towns AS t ON t.town = o.town"),
)


@pytest.fixture(scope="module")
def joined(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    """Open a session without noise over rows of which many break what the policy promises."""
    place = tmp_path_factory.mktemp("joined")
    columns = "town: {type: integer, lower: 0, upper: 9}"
    text = POLICY.replace("      region:", f"      {columns}\n      region:")
    text += "      way: {type: integer, lower: 0, upper: 3, nullable: false}\n" + TOWNS.lstrip("\n")
    (place / "joined.yaml").write_text(text)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, i * 7 % 12 AS town, ['north', 'south', 'east', 'North', NULL][1 + i % 5] AS region, "
            "['p', 'q', 'z', NULL][1 + i % 4] AS code, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 130 - 12 END AS age, i % 5 AS grade, "
            "CASE WHEN i % 7 > 0 THEN DATE '2023-12-01' + CAST(i % 430 AS INTEGER) END AS day FROM range(700) t(i)"
        )
        connection.execute(
            "CREATE TABLE visits AS SELECT i // 2 AS id, ['in', 'out', 'up', NULL][1 + i % 4] AS kind, "
            "[0, 1, 2, 3, 7, NULL][1 + i * 5 % 7] AS way FROM range(900) t(i)"
        )
        connection.execute("CREATE TABLE towns AS SELECT i AS town, 't' || i % 3 AS name FROM range(4, 15) t(i)")
        yield (
            connection,
            exact_session(load_policy(place / "joined.yaml"), connection, place / "ledger.db", NoiselessGate(1)),
        )


@pytest.mark.parametrize("seed", seeds(6, 0))
def test_a_key_beside_an_outer_join_reads_labels_and_what_the_policy_names(
    joined: tuple[duckdb.DuckDBPyConnection, Session], seed: int
) -> None:
    """The oracle replaces values by their labels, and leaves out the joined rows of which the key reads another value."""
    connection, session = joined
    chance = random.Random(seed)
    for table, form in JOINS:
        counted = "p.id" if table == "people" else "o.id"
        for key in chance.sample(OF_PEOPLE if table == "people" else OF_VISITS, 4):
            read = sorted(name for name in NAMES if re.search(rf"\b{name}\b", key))
            inside = " AND ".join(NAMES[name][0] for name in read)
            replaced = ", ".join(f"{NAMES[name][1]} AS {name}" for name in read)
            rows = f"(SELECT * REPLACE ({replaced}), {inside} AS inside FROM {table})"
            of_table = re.sub(rf"\b({'|'.join(read)})\b", r"p.\1", key)
            computed = f"(SELECT *, {key} AS k FROM {table})"
            for written, at in ((of_table, table), ("p.k", computed)):
                # Without a partner, a key that is computed above the join is computed of NULL.
                sql = f"SELECT {written} AS k1, COUNT({counted}) AS n FROM {form.format(rows=at)} GROUP BY k1"
                its = rows if at == table else f"(SELECT *, {key} AS k FROM {rows})"
                exact = f"SELECT {written} AS k1, COUNT({counted}) AS n FROM {form.format(rows=its)} WHERE p.inside IS NOT FALSE GROUP BY k1"
                assert_equal(sql, session.execute(sql), connection.execute(exact).fetchall())


# --- narrowing against brute force --------------------------------------------------------------------------------------


COLUMNS = {
    "age": Column("age", Facts(Type.INTEGER, Fraction(0), Fraction(9), outside=-1)),
    "sex": Column("sex", Facts(Type.TEXT, values=("f", "m"), outside="other")),
    "day": Column("day", Facts(Type.DATE, date(2024, 1, 30), date(2024, 3, 2), outside=date(1900, 1, 1), nullable=False)),
    "rank": Column("rank", Facts(Type.INTEGER, Fraction(0), Fraction(3), nullable=False)),
}  # fmt: skip
RAW: dict[str, list[Any]] = {
    "age": [*range(-3, 14), None, 2**63 - 1], "sex": ["f", "m", "x", "other", "", None], "rank": [-1, 0, 1, 2, 3, 9, None],
    "day": [date(2024, 1, 1) + timedelta(days=at) for at in range(0, 100, 5)] + [date.min, date(1900, 1, 1), date.max, None],
}  # fmt: skip
TABLE = Scan("t", tuple(COLUMNS.values()))


def keys() -> list[Expr]:
    age, sex, day = (as_key(COLUMNS[name]) for name in ("age", "sex", "day"))
    return [
        age, sex, day, call("intdiv", age, literal(5)), call("upper", sex), call("coalesce", sex, literal("?")), call("neg", age),
        call("date_trunc", literal("month"), day), call("add", age, COLUMNS["rank"]), call("gt", age, literal(4)),
        call("case", call("lt", age, literal(4)), literal("young"), literal("old")), COLUMNS["rank"], call("mod", age, literal(3)),
    ]  # fmt: skip


def condition(chance: random.Random, depth: int) -> Expr:
    if depth and chance.random() < 0.6:
        word = chance.choice(("and", "or", "not"))
        return call(word, *(condition(chance, depth - 1) for _ in range(1 if word == "not" else 2)))
    name = chance.choice(list(COLUMNS))
    values = [value for value in RAW[name] if value is not None]
    if chance.random() < 0.2:
        return call("is_null", COLUMNS[name])
    if chance.random() < 0.4:
        return call("in", COLUMNS[name], *(literal(chance.choice(values)) for _ in range(3)))
    return call(chance.choice(("eq", "ne", "lt", "le", "gt", "ge")), COLUMNS[name], literal(chance.choice(values)))


def within(key: Expr, row: dict[str, Any]) -> bool:
    """Return whether a key reads no value outside of the policy's bounds, except one for which a label stands."""
    named_columns = named(key)
    rank = "rank" not in named_columns or row["rank"] in range(4)
    return rank and ("day" not in named_columns or row["day"] is not None)


@pytest.mark.parametrize("seed", seeds(12, 1))
def test_narrowing_is_sound_and_no_row_with_a_label_is_lost(seed: int) -> None:
    """A removed key occurs in no row that passes, and if no notice is due, every such row has a key."""
    chance = random.Random(seed)
    for key in keys():
        for _ in range(8):
            asked = condition(chance, 2)
            values = domain_of(key)
            assert values is not None
            source = Filter(TABLE, asked)
            (left,) = remaining(source, [(key, values)], ()).values
            rows = rows_for(named(key) | named(asked), chance, RAW, 300)
            passing = {evaluate(key, row) for row in rows if evaluate(asked, row) is True and within(key, row)}
            assert not passing & (set(values) - set(left)), (key, asked)
            if not leaves_out(source, key):
                assert all(within(key, row) for row in rows if evaluate(asked, row) is True), (key, asked)


@pytest.mark.parametrize("type_", [Type.TEXT, Type.INTEGER, Type.REAL, Type.DATE])
def test_no_row_is_left_out_for_a_value_of_a_column_without_bounds_and_domain(type_: Type) -> None:
    """Only a NULL that the policy excludes is."""
    value = literal({Type.TEXT: "icu", Type.INTEGER: 4, Type.REAL: Fraction(1, 2), Type.DATE: date(2024, 2, 1)}[type_])
    for nullable in (True, False):
        ward = Column("ward", Facts(type_, nullable=nullable))
        present = call("not", call("is_null", ward))
        larger = call("gt", ward, value)
        for key in (call("eq", ward, value), present, larger, call("case", larger, literal("a"), literal("b"))):
            for asked in (literal(True), call("ne", ward, value), call("lt", COLUMNS["age"], literal(3))):
                source = Filter(Scan("t", (ward, COLUMNS["age"])), asked)
                assert leaves_out(source, key) == (not nullable and "ward" not in named(asked)), (key, asked)
            assert not leaves_out(Filter(Scan("t", (ward,)), present), key)


def test_labels_are_in_the_domain_of_whole_expressions() -> None:
    """Every raw value of a column with `outside` has a public key in any expression over it; the grid has no gaps."""
    for key in keys()[:8]:
        values = domain_of(key)
        (name,) = named(key)
        raw = [value for value in RAW[name] if value is not None or COLUMNS[name].facts.nullable]
        assert values is not None and {evaluate(key, {name: value}) for value in raw} <= set(values)
    assert domain_of(keys()[0]) == (-1, *range(10), None)
    assert domain_of(keys()[1]) == ("f", "m", "other", None)
    months = domain_of(keys()[7])
    assert months is not None and len(months) == 4


# --- the policy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("outside: {other: -1}", "outside: other", "people.columns.age.outside", "write the group's value"),
        ("outside: {other: -1}", "outside: {other: 99}", "people.columns.age.outside", "inside"),
        ("outside: {other: -1}", "outside: {other: x}", "people.columns.age.outside.other", "whole number"),
        ("outside: {other: -1}", "outside: keep", "people.columns.age.outside", "write drop"),
        ("outside: {other: -1}", "outside: {others: 3}", "people.columns.age.outside", "write drop"),
        ("outside: {other: 2}", "outside: {other: 3}", "people.columns.grade.outside", "inside"),
        ("outside: {other: 1900-01-01}", "outside: other", "people.columns.day.outside", "1900-01-01"),
        ("outside: {other: 1900-01-01}", "outside: {other: 2024-06-01}", "people.columns.day.outside", "inside"),
        ("[south, north], outside: other", "[south, other], outside: other", "people.columns.region.outside", "inside"),
        ("domain: [south, north], outside", "outside", "people.columns.region.outside", "needs a domain"),
        ("lower: 0, upper: 99, outside", "outside", "people.columns.age.outside", "lower and upper"),
        ("type: integer, lower: 0, upper: 99,", "type: real, lower: 0, upper: 99,", "people.columns.age.outside", "a real"),
        ("type: text, domain: [p, q]", "type: boolean, outside: other", "people.columns.code.outside", "boolean"),
        ("type: date, lower", "type: timestamp, lower", "people.columns.day.outside", "a timestamp"),
        ("id: {type: integer, nullable: false}", "id: {type: integer, lower: 1, upper: 9, outside: {other: 0}}",
         "people.columns.id.outside", "privacy unit"),
        ("    columns:\n      kind", "    columns:\n      id: {type: integer, lower: 1, upper: 9, outside: {other: 0}}\n      kind",
         "visits.columns.id.outside", "privacy unit"),
    ],
)  # fmt: skip
def test_policies_that_are_refused(old: str, new: str, place: str, said: str) -> None:
    assert POLICY.count(old) == 1
    ((path, sentence),) = policy_problems(POLICY.replace(old, new))
    assert path == f"$.tables.{place}" and said in sentence


def test_the_policy_says_what_becomes_of_other_values() -> None:
    policy = parse_policy(POLICY)
    columns = policy.tables["people"].columns
    assert [columns[name].outside for name in ("region", "age", "grade", "day", "code")] == [
        "other", -1, 2, date(1900, 1, 1), None
    ]  # fmt: skip
    assert parse_policy(POLICY.replace("[p, q],", "[p, q], outside: drop,")).meaning == policy.meaning
    assert (
        parse_policy(POLICY.replace("outside: other,", "").replace(", outside: other}", "}")).meaning != policy.meaning
    )
