"""ROLLUP, CUBE and GROUPING SETS: keys that contain other keys or are constants, windows over all sets, ORDER BY; keys that are
zero with a sign."""

import random

import pytest
from support.generated_questions import difference
from support.seeds import seeds

from answers.test_answers import World, world  # noqa: F401
from dpsql.errors.exceptions import Refusal

KEYS = (
    "SELECT x // 4 AS k, x, COUNT(*) FROM a WHERE x < 5 GROUP BY ROLLUP(x // 4, x) HAVING x // 4 = 1",
    "SELECT x // 4 AS k, x, COUNT(*) FROM a WHERE x < 5 GROUP BY ROLLUP(x // 4, x) HAVING k = 1",
    "SELECT upper(kind) AS k, kind, COUNT(*) FROM a WHERE kind IN ('p', 'q') GROUP BY CUBE(upper(kind), kind) HAVING upper(kind) = 'P'",
    "SELECT COUNT(k), COUNT(*) FROM (SELECT uid, upper(kind) AS k FROM a GROUP BY GROUPING SETS ((uid, upper(kind)), (uid, kind)))",
    "SELECT k, SUM(n) FROM (SELECT uid, x // 4 AS k, COUNT(*) AS n FROM a WHERE x < 5 GROUP BY uid, ROLLUP(x // 4, x)) GROUP BY k HAVING SUM(n) > 0",
    "SELECT k, g, SUM(n) FROM (SELECT uid, kind AS k, GROUPING(k) AS g, COUNT(*) AS n FROM a GROUP BY uid, ROLLUP(k)) GROUP BY k, g HAVING SUM(n) > 0",
    "SELECT 'all' AS k, COUNT(*) FROM a GROUP BY ROLLUP(k)",
    "SELECT x IS NULL AS k, (x IS NULL) IS TRUE AS t, COUNT(*) FROM a GROUP BY ROLLUP(k)",
    "SELECT kind, 'all' AS k, COUNT(*) FROM a GROUP BY kind, ROLLUP(k) HAVING COUNT(*) > 0",
    "SELECT 3 AS k, COUNT(*) AS n FROM a GROUP BY ROLLUP(k)",
    "SELECT GROUPING(k) AS g, x // 50 AS k, COUNT(*) FROM a WHERE x IS NOT NULL GROUP BY ROLLUP(k) HAVING COUNT(*) > 0 AND GROUPING(k) = 0",
)
TWO_NAMES = (
    "SELECT kind AS p, kind AS q, COUNT(*) FROM a GROUP BY ROLLUP(p, q) HAVING COUNT(*) > 0 ORDER BY q, p",
    "SELECT kind AS a, kind AS b, COUNT(*) FROM a GROUP BY ROLLUP(1, 2) HAVING COUNT(*) > 0",
    "SELECT kind AS p, COUNT(*), kind AS q, kind || '!' AS r FROM a GROUP BY CUBE(p, q) HAVING COUNT(*) > 0 ORDER BY 3, 1",
    "SELECT kind AS p, kind AS q, GROUPING(kind), COUNT(*) FROM a GROUP BY GROUPING SETS ((p), (q), (p, q)) HAVING COUNT(*) > 0 AND q IS NULL",
    "SELECT kind AS p, kind AS q, GROUPING(p), GROUPING(p, q) AS g, COUNT(*) FROM a GROUP BY CUBE(p, q) HAVING COUNT(*) > 0 ORDER BY g",
    "SELECT x // 50 AS p, x // 50 AS q, COUNT(*), SUM(COUNT(*)) OVER (PARTITION BY q) FROM a WHERE x IS NOT NULL GROUP BY ROLLUP(p, q) HAVING COUNT(*) > 0",
    "SELECT kind AS p, kind AS q, COUNT(*) FROM a GROUP BY p, q HAVING COUNT(*) > 0",
    "SELECT p, q, SUM(n) FROM (SELECT uid, kind AS p, kind AS q, COUNT(*) AS n FROM a GROUP BY uid, ROLLUP(p, q)) GROUP BY p, q HAVING SUM(n) > 0",
)
"""One column under two names is two keys: a set that has one of them alone has NULL for the other."""
ALIASES = (
    "SELECT k, SUM(n) FROM (SELECT uid, kind AS k, COUNT(*) AS n FROM a GROUP BY uid, ROLLUP(k) HAVING k IS NOT NULL) GROUP BY k HAVING SUM(n) > 0",
    "SELECT j, SUM(n) FROM (SELECT uid, kind AS k, coalesce(k, 'all') AS j, COUNT(*) AS n FROM a GROUP BY uid, ROLLUP(k)) GROUP BY j HAVING SUM(n) > 0",
    "SELECT k, COUNT(*) FROM (SELECT uid, kind AS k, COUNT(*) AS n, n + 1 AS m FROM a GROUP BY uid, k HAVING m > 2 AND k <> 'p') GROUP BY k HAVING COUNT(*) > 0",
    "SELECT j, COUNT(*) FROM (SELECT x // 50 AS h, coalesce(h, 9) AS j FROM a) GROUP BY j HAVING COUNT(*) > 0",
    "SELECT kind AS k, x // 50 AS h, SUM(h) FROM a WHERE x IS NOT NULL GROUP BY ROLLUP(k, h) HAVING COUNT(*) > 0",
    "SELECT k, COUNT(*) FROM (SELECT uid, x AS kind, kind AS k FROM a WHERE x < 5 QUALIFY row_number() OVER (PARTITION BY uid, kind ORDER BY x) = 1) "
    "GROUP BY k HAVING COUNT(*) > 0",
)
"""An output may be named by its alias where no column has that name, also beside the unit's key."""
WINDOWS = (
    "SELECT kind, COUNT(*) OVER () AS w, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0",
    "SELECT kind, COUNT(*) FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0 QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1",
    "SELECT kind, GROUPING(kind), LAG(COUNT(*)) OVER (ORDER BY kind NULLS LAST) FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0",
    "SELECT kind, x // 50 AS h, SUM(x), RANK() OVER (PARTITION BY GROUPING(kind, x // 50) ORDER BY COUNT(*) DESC) FROM a WHERE x IS NOT NULL "
    "GROUP BY CUBE(kind, x // 50) HAVING COUNT(*) > 5",
    "SELECT kind, ROW_NUMBER() OVER (ORDER BY COUNT(*), kind) FROM a GROUP BY GROUPING SETS ((kind), ()) HAVING COUNT(*) > 0",
    "SELECT DISTINCT COUNT(*) OVER () FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0",
    "SELECT SUM(w) FROM (SELECT COUNT(*) OVER () AS w FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0)",
    "SELECT kind, AVG(x), SUM(SUM(x)) OVER (PARTITION BY kind) FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0",
)
NEGATIVE_ZEROS = (
    "SELECT x / -8 AS k, COUNT(*) FROM a WHERE x < 2 GROUP BY k",
    "SELECT round(x / -30) AS k, COUNT(*) FROM a WHERE x IS NOT NULL GROUP BY k",
    "SELECT -CAST(x AS DOUBLE) AS k, kind, COUNT(*) FROM a WHERE x < 2 GROUP BY k, kind HAVING COUNT(*) > 0",
    "SELECT CASE WHEN x < 3 THEN x * -1.5 ELSE 2.5 END AS k, COUNT(*) FROM a WHERE x IS NOT NULL GROUP BY k",
)
ORDERED = (
    "SELECT kind, COUNT(*) AS n FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0 ORDER BY n",
    "SELECT kind, COUNT(*) AS n FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0 ORDER BY COUNT(*) DESC LIMIT 2",
    "SELECT 2 AS k, COUNT(*) AS n, kind FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0 ORDER BY 2",
    "SELECT kind, COUNT(*) AS n FROM a GROUP BY ROLLUP(kind) HAVING COUNT(*) > 0 ORDER BY SUM(COUNT(*)) OVER (PARTITION BY kind) DESC",
)


@pytest.mark.parametrize("sql", [*KEYS, *TWO_NAMES, *ALIASES, *NEGATIVE_ZEROS, *WINDOWS, *ORDERED])
def test_answers_over_such_keys_and_sets_are_those_of_the_engine(world: World, sql: str) -> None:  # noqa: F811
    connection, session = world
    assert difference(session.execute(sql), connection.execute(sql).fetchall()) is None


@pytest.mark.parametrize("seed", seeds(60, 3))
def test_one_column_under_several_names_has_the_keys_of_the_engine(world: World, seed: int) -> None:  # noqa: F811
    connection, session = world
    chance = random.Random(seed)
    names = chance.choices(
        chance.choice((["p", "q", "kind"], ["1", "q", "kind"], ["1", "2", "kind"])), k=chance.choice((2, 2, 3))
    )
    listed = (
        f"(({'), ('.join(names)}))"
        if (word := chance.choice(("ROLLUP", "CUBE", "GROUPING SETS"))) == "GROUPING SETS"
        else f"({', '.join(names)})"
    )
    sql = f"SELECT kind AS p, kind AS q, kind, GROUPING(kind) AS g, COUNT(*) AS n FROM a GROUP BY {word} {listed}"
    if chance.random() < 0.4:
        names = [name for name in names if not name.isdigit()] or ["q"]
        sql = f"SELECT uid, kind AS p, kind AS q, kind, COUNT(*) AS n FROM a GROUP BY uid, ROLLUP ({', '.join(names)})"
        sql = f"SELECT p, q, kind, SUM(n) AS n FROM ({sql}) GROUP BY ALL"
    sql = f"SELECT * FROM ({sql}) WHERE n > 0"
    assert difference(session.execute(sql), connection.execute(sql).fetchall()) is None, sql


@pytest.mark.parametrize("sql", ORDERED)
def test_rows_of_all_sets_are_ordered_together(world: World, sql: str) -> None:  # noqa: F811
    connection, session = world
    counts = [row[1] for row in connection.execute(sql).fetchall()]
    assert [row[1] for row in session.execute(sql).rows()] == pytest.approx(counts) and len(counts) > 1


def test_a_share_of_all_sets_has_an_error_bar(world: World) -> None:  # noqa: F811
    _, session = world
    release = session.execute("SELECT kind, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM a GROUP BY ROLLUP(kind)")
    assert [column.noisy for column in release.columns] == [False, True]
    assert all(value is not None for value in release.error.column("share").to_pylist())


def test_grouping_of_what_is_no_key_is_refused_also_beside_the_units_key(world: World) -> None:  # noqa: F811
    for sql in (
        "SELECT GROUPING(x), COUNT(*) FROM a GROUP BY ROLLUP(kind)",
        "SELECT g, SUM(n) FROM (SELECT uid, GROUPING(x) AS g, COUNT(*) AS n FROM a GROUP BY uid, ROLLUP(kind)) GROUP BY g",
    ):
        with pytest.raises(Refusal, match="takes keys of GROUP BY"):
            world[1].plan(world[1].planner.parse(sql, None))
