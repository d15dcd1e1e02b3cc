"""One key and one condition have one set of groups, wherever in a statement they are written: directly, in FROM, in a WITH entry,
through two levels, in a part of UNION ALL, joined with a public table, under ROLLUP or per person.

The oracle is DuckDB over the rows themselves: every group that it finds is in the answer, with its rows; other groups are empty.
"""

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.exact_session import assert_equal, exact_session, rows_of
from support.gates import NoiselessGate
from support.plain_duckdb import insert
from support.seeds import seeds

from dpsql.errors.exceptions import Refusal
from dpsql.functions.signatures import REGISTRY
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, columns_read
from dpsql.policy import load_policy
from dpsql.policy.check import parse_policy
from dpsql.session.session import Session
from dpsql.sql.binder.query import bind
from dpsql.sql.parse import parse

POLICY = """
dataset: places
source: duckdb:///unused.duckdb
privacy_unit: {table: people, column: uid}
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9, max_public_groups: 100000}
ledger: sqlite:///ledger.db
tables:
  people:
    primary_key: [uid]
    max_rows: 1
    columns: {uid: {type: integer, nullable: false}}
  items:
    foreign_keys: {uid: people.uid}
    max_rows: 8
    columns:
      n: {type: integer, lower: -3, upper: 4}
      m: {type: integer, lower: 0, upper: 3, nullable: false}
      r: {type: real, lower: 0, upper: 10}
      w: {type: text, domain: ['', a, b, C d]}
      b: {type: boolean}
      d: {type: date, lower: 2024-01-30, upper: 2024-03-02}
      t: {type: timestamp, lower: 2024-02-28, upper: 2024-03-01}
  names:
    public: true
    primary_key: [m]
    columns: {m: {type: integer, nullable: false}, name: {type: text}, good: {type: boolean}}
"""
_ITEMS = POLICY[POLICY.index("  items:") : POLICY.index("  names:")]
POLICY = POLICY.replace(
    _ITEMS, _ITEMS + _ITEMS.replace("items:", "wild:")
)  # a table with values that the policy does not name
KEYS = (
    "n", "m", "w", "b", "d", "abs(n)", "sign(n)", "n + m", "n - 1", "n * n", "n % 3", "n // 2", "-n", "least(n, m)",
    "greatest(n, m)", "CAST(n AS TEXT)", "CAST(n AS DOUBLE)", "n > 1", "n <> m", "n >= m", "n <= 1", "n < m", "n IN (1, 2)",
    "n IS NULL", "n IS NOT DISTINCT FROM m", "coalesce(n, 9)", "nullif(n, m)", "b = TRUE", "CAST(b AS INT)",
    "CASE WHEN n > 1 THEN 'x' WHEN b THEN 'y' ELSE w END", "round(n / 2)", "n / 2", "power(n, 2)", "sqrt(m)", "ln(m + 1)",
    "log10(m + 1)", "exp(m)", "floor(r / 3)", "ceil(r)", "round(r)", "CAST(r AS INT)", "floor(r / 4) * 4",
    "width_bucket(r, 0, 10, 4)", "r > 5", "clamp(n, 0, 2)", "upper(w)", "lower(w)", "length(w)", "w || '!'", "left(w, 1)",
    "right(w, 1)", "substr(w, 2, 1)", "replace(w, 'a', 'z')", "trim(w)", "ltrim(w)", "rtrim(w)", "trim(w, 'ad')", "split_part(w, ' ', 1)",
    "translate(w, 'ad', 'z')", "md5(w)", "regexp_extract(w, '[a-z]')",
    "w LIKE 'a%'", "w LIKE '_a%'", "w ILIKE 'A%'", "contains(w, 'a')", "starts_with(w, 'a')", "ends_with(w, 'd')", "regexp_matches(w, 'a')",
    "regexp_replace(w, 'a', 'q')", "strpos(w, 'd')", "concat_ws('-', w, CAST(m AS TEXT))", "NOT b", "b AND n > 0", "b OR n > 0",
    "b IS TRUE", "b IS FALSE", "month(d)", "CAST(date_trunc('month', d) AS DATE)", "CAST(date_trunc('week', d) AS DATE)",
    "strftime(d, '%Y-%m')", "dayofweek(d)", "last_day(d)", "date_diff('day', d, DATE '2024-03-01')",
    "CAST(d + INTERVAL 1 MONTH AS DATE)", "CAST(d + INTERVAL 3 DAY AS DATE)", "date_trunc('hour', t)", "hour(t)",
    "CAST(t AS DATE)", "strftime(t, '%H')", "date_trunc('day', t)", "TRY_CAST(w AS INT)", "TRY_CAST(w AS BOOLEAN)",
    "CAST(CAST(m AS TEXT) AS DOUBLE)", "CAST(d AS TIMESTAMP)", "time_bucket(INTERVAL 7 DAY, d)",
    "date_trunc('day', t) + INTERVAL 30 SECOND", "sin(m)", "cos(m)", "tan(m)", "asin(m / 4)", "acos(m / 4)", "atan(m)", "atan2(m, 2)",
    "radians(m)", "degrees(m)", "strlen(w)", "epoch(CAST(d AS TIMESTAMP))", "n = 2",
)  # fmt: skip
EXACT = frozenset(key for key in KEYS if key.partition("(")[0] in (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "radians", "degrees", "exp", "ln", "log10", "power",
))  # fmt: skip
"""Keys whose last digit may depend on the C library; they are only compared as numbers."""
SPELLED = {
    "clamp(n, 0, 2)": "(CASE WHEN n IS NOT NULL THEN least(greatest(n, 0), 2) END)",
    "width_bucket(r, 0, 10, 4)": "(CASE WHEN r >= 10 THEN 5 ELSE CAST(floor(r / 10 * 4) AS BIGINT) + 1 END)",
}
"""Functions that DuckDB lacks, in its words."""
LITERALS = {
    "n": ("0", "-1", "3", "2.5", "NULL", "7"), "m": ("1", "0", "3"), "r": ("0", "5", "9.5", "'inf'::DOUBLE", "'nan'::DOUBLE", "-0.0"),
    "w": ("'a'", "''", "'z'", "NULL"), "b": ("TRUE", "FALSE", "NULL"), "d": ("DATE '2024-02-29'", "'2024-03-01'", "'2024-02-10 12:00:00'"),
    "t": ("TIMESTAMP '2024-02-28 12:30:00'", "'2024-02-29'", "DATE '2024-03-01'"),
}  # fmt: skip


def atom(chance: random.Random) -> str:
    column = chance.choice(list(LITERALS))
    first, second = (chance.choice(LITERALS[column]) for _ in range(2))
    shape = chance.choice((
        "{c} = {a}", "{c} <> {a}", "{c} < {a}", "{c} <= {a}", "{c} > {a}", "{c} >= {a}", "{c} IN ({a}, {b})", "{c} NOT IN ({a}, {b})",
        "{c} BETWEEN {a} AND {b}", "{c} IS NULL", "{c} IS NOT NULL", "{c} IS DISTINCT FROM {a}", "({c} = {a}) IS NOT TRUE",
        "COALESCE({c} = {a}, FALSE)", "CASE WHEN {c} > {a} THEN n > 0 ELSE m = 1 END", "({c} > {a}) = (n > 0)",
        "n < m", "abs(n) > 1", "month(d) = 2", "b", "upper(w) = 'A'", "n % 2 = 0", "floor(r) = 3",
    ))  # fmt: skip
    return f"({shape.format(c=column, a=first, b=second)})"


def condition(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.4:
        return atom(chance)
    word = chance.choice(("AND", "AND", "OR", "NOT"))
    left = condition(chance, depth - 1)
    return f"(NOT {left})" if word == "NOT" else f"({left} {word} {condition(chance, depth - 1)})"


SAME = {
    "direct": "SELECT {k} AS k1, COUNT(*) AS c FROM items WHERE {w} GROUP BY k1",
    "in FROM": "SELECT k1, COUNT(*) AS c FROM (SELECT {k} AS k1 FROM items WHERE {w}) GROUP BY k1",
    "condition outside": "SELECT k1, COUNT(*) AS c FROM (SELECT {k} AS k1, * FROM items) WHERE {w} GROUP BY k1",
    "in WITH": "WITH q AS (SELECT {k} AS k1, n, m, r, w, b, d, t FROM items) SELECT k1, COUNT(*) AS c FROM q WHERE {w} GROUP BY k1",
    "two levels": "SELECT k1, COUNT(*) AS c FROM (SELECT k2 AS k1 FROM (SELECT {k} AS k2, * FROM items) WHERE {w}) GROUP BY k1",
    "union": "SELECT k1, COUNT(*) AS c FROM (SELECT {k} AS k1 FROM items WHERE {w} AND b UNION ALL SELECT {k} FROM items WHERE {w}) GROUP BY k1",
    "joined": "SELECT k1, COUNT(*) AS c FROM (SELECT {k} AS k1, m AS j FROM items WHERE {w}) q JOIN names p ON p.m = q.j GROUP BY k1",
}  # fmt: skip
ONE_QUESTION = ("direct", "in FROM", "condition outside", "in WITH", "two levels")
"""Forms that have the same release, so that the second is free."""
OTHER = {
    "rollup": "SELECT k1, GROUPING(k1) AS g, COUNT(*) AS c FROM (SELECT {k} AS k1 FROM items WHERE {w}) GROUP BY ROLLUP (k1)",
    "having": "SELECT k1, COUNT(*) AS c FROM (SELECT {k} AS k1 FROM items WHERE {w}) GROUP BY k1 HAVING k1 IS NOT NULL",
    "left": "SELECT k1, COUNT(*) AS c FROM (SELECT {k} AS k1, n AS j FROM items WHERE {w}) q LEFT JOIN names p ON p.m = q.j AND p.good GROUP BY k1",
    "two keys": "SELECT k1, m, COUNT(*) AS c FROM (SELECT {k} AS k1, m FROM items WHERE {w}) GROUP BY k1, m",
    "public": "SELECT name, COUNT(*) AS c FROM items JOIN names USING (m) WHERE {w} AND {k} IS NOT NULL GROUP BY name",
    "per person": "SELECT k1, COUNT(*) AS c FROM (SELECT uid, MAX({k}) AS k1, MIN({k}) AS k2 FROM items WHERE {w} GROUP BY uid) GROUP BY k1",
    "per person, apart": "SELECT k1, COUNT(*) AS c FROM (SELECT uid, MAX(n) - MIN(n) AS k1, COUNT(DISTINCT {k}) AS k2 FROM items WHERE {w} GROUP BY uid) WHERE k2 > 0 GROUP BY k1",
}  # fmt: skip
INSIDE = {
    "n": "(n IS NULL OR n BETWEEN -3 AND 4)", "m": "m BETWEEN 0 AND 3", "r": "(r IS NULL OR r BETWEEN 0 AND 10)",
    "w": "(w IS NULL OR w IN ('', 'a', 'b', 'C d'))", "d": "(d IS NULL OR d BETWEEN '2024-01-30' AND '2024-03-02')",
    "t": "(t IS NULL OR t BETWEEN '2024-02-28' AND '2024-03-01')", "b": "TRUE",
}  # fmt: skip
"""Rows that belong to a group of a key that reads a column: the column has a value that the policy names."""
World = tuple[duckdb.DuckDBPyConnection, Session]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("places")
    (folder / "policy.yaml").write_text(POLICY)
    chance = random.Random(5)
    rows = []
    for number in range(2400):
        rows.append((
            number // 8, chance.choice([*range(-3, 5), None]), chance.randrange(4), chance.choice([0.0, 10.0, None, chance.uniform(0, 10)]),
            chance.choice(["", "a", "b", "C d", None]), chance.choice([True, False, None]),
            chance.choice([date(2024, 1, 30) + timedelta(days=chance.randrange(33)), None]),
            chance.choice([datetime(2024, 2, 28) + timedelta(seconds=chance.randrange(2 * 86400 + 1)), None]),
        ))  # fmt: skip
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS uid FROM range(300) t(i)")
        connection.execute(
            "CREATE TABLE items (uid BIGINT, n BIGINT, m BIGINT, r DOUBLE, w VARCHAR, b BOOLEAN, d DATE, t TIMESTAMP)"
        )
        insert(connection, "items", rows)
        connection.execute(
            "CREATE TABLE wild AS SELECT uid, CASE WHEN i % 7 = 0 THEN n * 10 ELSE n END AS n, CASE WHEN i % 11 = 0 THEN NULL "
            "WHEN i % 13 = 0 THEN 4 ELSE m END AS m, CASE WHEN i % 17 = 0 THEN 'nan' WHEN i % 5 = 0 THEN r * 2 - 5 ELSE r END AS r, "
            "CASE WHEN i % 6 = 0 THEN 'A' WHEN i % 19 = 0 THEN '1' ELSE w END AS w, b, d + CAST(i % 9 AS INT) AS d, "
            "t + INTERVAL 1 HOUR * (i % 12) AS t FROM (SELECT *, row_number() OVER () AS i FROM items)"
        )
        connection.execute(
            "CREATE TABLE names AS SELECT * FROM (VALUES (0, 'x', TRUE), (1, 'y', FALSE), (2, 'x', NULL), (3, NULL, TRUE)) v(m, name, good)"
        )
        yield (
            connection,
            exact_session(load_policy(folder / "policy.yaml"), connection, folder / "ledger.db", NoiselessGate(1)),
        )


def groups(world: World, sql: str, plain: str = "") -> set[Any]:
    """Compare an answer with the engine's, and return its groups: none if the question is refused because it can have none.
    `plain`: the engine's statement, if it is another."""
    connection, session = world
    plain = plain or sql
    for ours, its in SPELLED.items():
        plain = plain.replace(ours, its)
    expected = connection.execute(plain).fetchall()
    without_nan = [row for row in expected if not any(isinstance(v, float) and v != v for v in row)]
    try:
        release = session.execute(sql)
    except Refusal as refused:
        assert refused.slug in ("no_groups", "no_rows") and not any(row[-1] for row in without_nan), (sql, without_nan)
        return set()
    assert_equal(sql, release, without_nan)
    return {row[:-1] for row in rows_of(release)}


def left_out(world: World, chance: random.Random, key: str, where: str) -> None:
    """Compare answers over rows with values that the policy does not name: the oracle leaves out those of them that the key reads."""
    inside = " AND ".join(sorted({INSIDE[column.name] for column in columns_read(bound(key))}))
    for name in ("direct", chance.choice([name for name in SAME if name != "direct"])):
        sql = SAME[name].format(k=key, w=where)
        plain = sql.replace("FROM items", f"FROM (SELECT * FROM wild WHERE {inside})")
        groups(world, sql.replace("FROM items", "FROM wild"), plain)


def compared(world: World, chance: random.Random, key: str) -> None:
    where = condition(chance, 2)
    left_out(world, chance, key, where)
    kept = {name: groups(world, sql.format(k=key, w=where)) for name, sql in SAME.items()}
    joined = kept.pop("joined")  # public rows say more about the column that they are equal to
    assert joined <= kept["direct"], (key, where)
    assert all(found == kept["direct"] for found in kept.values()), (key, where, {k: len(v) for k, v in kept.items()})
    if kept["direct"]:
        session = world[1]
        texts = {name: SAME[name].format(k=key, w=where) for name in ONE_QUESTION}
        same = {name: session.plan(session.planner.parse(sql, None)).keys for name, sql in texts.items()}
        assert len(set(same.values())) == 1, (key, where, same)
    if key not in EXACT:
        name, sql = chance.choice(list(OTHER.items()))
        if not name.startswith("per person") or bound(key).facts.type is not Type.BOOLEAN:
            groups(world, sql.format(k=key, w=where))


def bound(key: str) -> Expr:
    """Return the expression of a key."""
    plan = bind(parse(f"SELECT {key} AS k, COUNT(*) FROM items GROUP BY k"), parse_policy(POLICY))
    return plan.blocks[0].keys[0].expression


@pytest.mark.parametrize("seed", seeds(16, 1))
def test_a_key_has_the_same_groups_wherever_it_is_written(world: World, seed: int) -> None:
    chance = random.Random(seed)
    keys = chance.sample(KEYS, 6) if seed else ["date_trunc('hour', t)", "floor(r / 3)", *chance.sample(KEYS, 3)]
    for key in keys:
        compared(world, chance, key)


RESULTS = (
    "SELECT (SELECT MAX(n) FROM items) AS k1, COUNT(*) AS c FROM items GROUP BY k1",
    "SELECT (SELECT MAX(m) FROM names) AS k1, COUNT(*) AS c FROM items GROUP BY k1",
    "SELECT (SELECT MAX(m) FROM names) + 1 AS k1, m, COUNT(*) AS c FROM items GROUP BY k1, m",
    "SELECT (SELECT MAX(m) FROM names) AS k1, COUNT(*) AS c FROM items GROUP BY ROLLUP (k1)",
    "SELECT (SELECT MAX(m) FROM names) AS k1, m, COUNT(*) AS c FROM items GROUP BY CUBE (k1, m) ORDER BY k1, m",
    "SELECT CASE WHEN b THEN 'yes' ELSE 'no' END AS k1, COUNT(*) AS c FROM items GROUP BY k1",
    "SELECT n > (SELECT AVG(n) FROM items) AND d > DATE '2024-02-10' AS k1, COUNT(*) AS c FROM items WHERE d > DATE '2024-02-02' GROUP BY k1",
    "SELECT CASE WHEN n > (SELECT AVG(n) FROM items) THEN m ELSE 9 END AS k1, n, COUNT(*) AS c FROM items GROUP BY k1, n",
)


@pytest.mark.parametrize("sql", RESULTS)
def test_keys_over_results_have_the_groups_of_the_engine(world: World, sql: str) -> None:
    groups(world, sql)


HIGHEST = "SELECT uid, MAX(n) AS k1, COUNT(*) AS c1 FROM items GROUP BY uid"
LOWEST = "SELECT uid AS i, MIN(m) AS k2, SUM(m) AS s2 FROM items WHERE b GROUP BY uid"
TOGETHER = (
    f"SELECT k1, k2, COUNT(*) AS c FROM ({HIGHEST}) AS p JOIN ({LOWEST}) AS q ON p.uid = q.i GROUP BY k1, k2",
    f"SELECT k1 + k2 AS k, COUNT(*) AS c FROM ({HIGHEST}) AS p JOIN ({LOWEST}) AS q ON q.i = p.uid GROUP BY k",
    f"SELECT k1, COUNT(*) AS c FROM ({HIGHEST}) AS p JOIN ({LOWEST}) AS q ON p.uid = q.i WHERE k1 > k2 GROUP BY k1",
    f"SELECT k1, k2, COUNT(*) AS c FROM people LEFT JOIN ({HIGHEST}) AS p USING (uid) LEFT JOIN ({LOWEST}) AS q ON people.uid = q.i GROUP BY k1, k2",
    f"SELECT c1 > s2 AS k, COUNT(*) AS c FROM people JOIN ({HIGHEST}) AS p USING (uid) JOIN ({LOWEST}) AS q ON people.uid = q.i GROUP BY k",
    "SELECT (SELECT COUNT(*) FROM items AS i WHERE i.uid = p.uid) AS k1, (SELECT COUNT(*) FROM items AS i WHERE i.uid = p.uid AND b) AS k2, "
    "COUNT(*) AS c FROM people AS p GROUP BY k1, k2",
    "SELECT (SELECT MAX(n) FROM items AS i WHERE i.uid = p.uid) AS k1, (SELECT MIN(m) FROM items AS i WHERE i.uid = p.uid AND b) AS k2, "
    "COUNT(*) AS c FROM people AS p GROUP BY k1, k2",
)


@pytest.mark.parametrize("sql", TOGETHER)
def test_several_results_of_one_person_are_keys_together(world: World, sql: str) -> None:
    groups(world, sql)


ARGUMENTS = ("n", "m", "n + m", "w", "b", "CASE WHEN b THEN n END", "nullif(m, 1)", "r")
FILTERS = ("", "", " FILTER (WHERE b)", " FILTER (WHERE n > 1)")
EACH = "(SELECT uid, {results} FROM items GROUP BY uid) AS q"
PERSONS = (EACH, f"people LEFT JOIN {EACH} USING (uid)", f"(SELECT * FROM {EACH} WHERE uid >= 0) AS p")


def result(chance: random.Random, arguments: list[str], filters: list[str]) -> str:
    """Return one result of a person."""
    argument, word = chance.choice(arguments), chance.choice(("COUNT", "COUNT", "SUM", "SUM", "MIN", "MAX", "AVG"))
    word = "MIN" if argument in ("w", "b") and word in ("SUM", "AVG") else word
    text = (
        f"{word}({chance.choice(('', '', 'DISTINCT ')) if word == 'COUNT' else ''}{argument}){chance.choice(filters)}"
    )
    return f"({text}) IS NULL" if word == "AVG" or (word != "COUNT" and argument in ("r", "b")) else text


@pytest.fixture
def persons(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """Yield a random database in which persons have few rows, many of them without values."""
    chance = random.Random(request.node.callspec.params["seed"])
    rows = []
    for uid in range(120):
        missing = chance.choice((0.2, 0.6, 1))
        for _ in range(chance.randrange(4)):
            values = (
                chance.randrange(-3, 5), chance.randrange(4), chance.uniform(0, 10), chance.choice(["", "a", "b"]),
                True,
            )  # fmt: skip
            held = [value if index == 1 or chance.random() > missing else None for index, value in enumerate(values)]
            rows.append((uid, *held[:4], held[4] and chance.random() < 0.5, None, None))
    (tmp_path / "policy.yaml").write_text(POLICY)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS uid FROM range(120) t(i)")
        for table in ("items", "wild"):
            connection.execute(
                f"CREATE TABLE {table} (uid BIGINT, n BIGINT, m BIGINT, r DOUBLE, w VARCHAR, b BOOLEAN, d DATE, t TIMESTAMP)"
            )
        insert(connection, "items", rows)
        connection.execute("CREATE TABLE names (m BIGINT, name VARCHAR, good BOOLEAN)")
        policy = load_policy(tmp_path / "policy.yaml")
        yield connection, exact_session(policy, connection, tmp_path / "ledger.db", NoiselessGate(1))


@pytest.mark.parametrize("seed", seeds(30, 1))
def test_no_group_of_several_results_of_one_person_is_lost(persons: World, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(16):
        arguments, filters = chance.sample(ARGUMENTS, 2), chance.sample(FILTERS, 2)
        results = [result(chance, arguments, filters) for _ in range(chance.choice((2, 2, 3)))]
        where = chance.choice(
            ("", "", "WHERE k0 IS NULL", "WHERE k1 IS NOT NULL OR k0 IS NULL", "WHERE CAST(k1 AS TEXT) <> '0'")
        )
        names = [f"k{number}" for number in range(len(results))]
        shown = ", ".join(chance.sample(names, 2))
        inner = ", ".join(f"{text} AS {name}" for text, name in zip(results, names, strict=True))
        rows = chance.choice(PERSONS).format(results=inner)
        groups(persons, f"SELECT {shown}, COUNT(*) AS c FROM {rows} {where} GROUP BY {shown}")


@pytest.mark.parametrize("rows", PERSONS)
@pytest.mark.parametrize("condition", ["", " FILTER (WHERE b)"])
@pytest.mark.parametrize("word", ["SUM(n)", "MIN(n)", "MAX(n)", "AVG(n)", "COUNT(DISTINCT n)"])
def test_results_of_one_person_are_over_no_value_together(world: World, rows: str, condition: str, word: str) -> None:
    none = f"{word}{condition} {'= 0' if 'DISTINCT' in word else 'IS NULL'}"
    inner = rows.format(results=f"COUNT(n){condition} AS k, {none} AS none")
    listed = groups(world, f"SELECT k, none, COUNT(*) AS c FROM {inner} GROUP BY k, none")
    optional = {(None, None)} if rows.startswith("people") else set()
    assert listed - optional == {(0, True), *((k, False) for k in range(1, 9))}, listed


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("n % 3", "n < m"),
        ("n % 3", "n IS DISTINCT FROM NULL OR NOT n < m"),
        ("upper(w)", "w LIKE 'a%' OR w || 'x' < 'b' OR m IS NULL AND w <> 'q'"),
        ("floor(r / 4) * 4", "floor(r) IN (3, 5)"),
        ("m", "n > 0 OR n IS NULL"),
        ("b", "NOT b OR b = (n > m)"),
        ("CAST(date_trunc('month', d) AS DATE)", "d >= CAST(t AS DATE) OR month(d) = 2"),
    ],
)
def test_no_group_of_null_where_a_condition_or_the_policy_excludes_it(world: World, key: str, where: str) -> None:
    for sql in SAME.values():
        assert (None,) not in groups(world, sql.format(k=key, w=where)), sql


DATES = (
    "= '2024-02-29 09:30:00'",
    ">= '2024-02-29 12:00:00'",
    "<> '2024-02-29 01:00'",
    "IN ('2024-02-29 09:30:00', '2024-02-01')",
)


@pytest.mark.parametrize("compared_with", DATES)
def test_a_date_is_compared_with_the_date_of_a_text(world: World, compared_with: str) -> None:
    groups(world, f"SELECT COUNT(*) AS c FROM items WHERE d {compared_with}")


def test_rows_without_any_partner_keep_their_groups(world: World) -> None:
    for condition_on in ("p.m = i.m AND FALSE", "p.m = i.m AND 1 = 0", "p.m = i.m AND p.name = 'nobody'"):
        sql = f"SELECT i.m, COUNT(*) AS c FROM items i LEFT JOIN names p ON {condition_on} GROUP BY i.m"
        assert len(groups(world, sql)) == 4, condition_on


def test_every_row_function_is_in_a_key() -> None:
    used: set[str] = set()

    def walk(expression: Expr) -> None:
        if isinstance(expression, Call):
            used.add(expression.function)
            for argument in expression.arguments:
                walk(argument)

    for key in KEYS:
        expression = bound(key)
        assert list(columns_read(expression)), key
        walk(expression)
    assert sorted(REGISTRY.keys() - used) == ["place_in"]
