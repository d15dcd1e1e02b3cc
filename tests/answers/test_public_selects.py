"""Joins with SELECTs from public tables, stars over merged columns, and grouping sets that contain the unit's key."""

from itertools import permutations, product

import pytest
from support.effort import slow
from support.exact_session import rows_of
from support.generated_questions import difference, types

from answers.test_answers import World, world  # noqa: F401
from dpsql.errors.exceptions import Error

PUBLIC = (
    "SELECT c.label, COUNT(*) FROM a LEFT JOIN (SELECT code, label FROM codes) c USING (code) GROUP BY c.label",
    "WITH c AS (SELECT code, label FROM codes WHERE weight > 0) SELECT c.label, COUNT(*) FROM a JOIN c ON c.code = a.code GROUP BY 1",
    "WITH c AS (SELECT * FROM codes), d AS (SELECT code AS k, upper(label) AS l FROM c) SELECT l, COUNT(*) FROM a LEFT JOIN d ON k = a.code GROUP BY 1",
    "SELECT code, COUNT(*) FROM a WHERE code = (SELECT code FROM a GROUP BY code ORDER BY COUNT(*) DESC, code LIMIT 1) GROUP BY code",
    "SELECT code, SUM(x) FROM a WHERE code IN (SELECT code FROM a GROUP BY 1 ORDER BY COUNT(*) DESC, code LIMIT 2) GROUP BY 1 HAVING COUNT(*) > 1",
    "SELECT a.code, COUNT(*) FROM a JOIN (SELECT code FROM a GROUP BY code ORDER BY COUNT(*) DESC, code LIMIT 1) t ON t.code = a.code GROUP BY 1",
    "SELECT code, COUNT(*) FROM a JOIN (SELECT code FROM a GROUP BY code ORDER BY COUNT(*) DESC, code LIMIT 2) t USING (code) GROUP BY code",
    "WITH t AS (SELECT code AS k, COUNT(*) FROM a GROUP BY code ORDER BY 2 DESC, 1 LIMIT 1) SELECT k, COUNT(*) FROM t, a WHERE k = a.code GROUP BY k",
    "SELECT COUNT(*) FROM a WHERE y > (SELECT AVG(z) / 10 FROM b WHERE town = 't1' GROUP BY town)",
    "SELECT COUNT(*) FROM a WHERE x > (SELECT COUNT(*) / 9 FROM b WHERE size = 's' AND town = 't1' GROUP BY town, size HAVING COUNT(*) > 0)",
    "SELECT l, w, SUM(x) FROM a JOIN (SELECT code, label, weight * 2 FROM codes) c(c, l, w) ON c.c = a.code GROUP BY ALL",
)
STARS = (
    "SELECT * FROM (SELECT code, COUNT(*) n FROM a GROUP BY code) q LEFT JOIN codes USING (code)",
    "SELECT * FROM (SELECT code, COUNT(*) n FROM a GROUP BY code) q JOIN codes USING (code)",
    "SELECT * FROM (SELECT code, COUNT(*) n FROM a GROUP BY code) q FULL JOIN codes USING (code)",
    "SELECT * FROM codes RIGHT JOIN (SELECT code, COUNT(*) n FROM a GROUP BY code) q USING (code)",
    "SELECT * FROM (SELECT code, COUNT(*) n FROM a GROUP BY code) q NATURAL JOIN codes",
    "SELECT q.* FROM codes RIGHT JOIN (SELECT code, COUNT(*) n FROM a GROUP BY code) q USING (code)",
    "SELECT code, COUNT(*) FROM (SELECT * FROM codes c RIGHT JOIN a USING (code)) GROUP BY code",
    "SELECT code, label, COUNT(*) FROM (SELECT * FROM a LEFT JOIN codes c USING (code)) GROUP BY ALL",
    "SELECT COUNT(DISTINCT uid) FROM (SELECT * FROM b RIGHT JOIN a USING (uid))",
)
CHANGED_STARS = (
    "SELECT * EXCLUDE (n) FROM (SELECT code, COUNT(*) n, SUM(x) s FROM a GROUP BY code) q",
    "SELECT q.* EXCLUDE (n), 1 AS k FROM (SELECT code, COUNT(*) n, SUM(x) s FROM a GROUP BY code) q ORDER BY 1",
    "SELECT * RENAME (n AS m) FROM (SELECT code, COUNT(*) n FROM a GROUP BY code) q",
    "SELECT * EXCLUDE (s) REPLACE (n * 2 AS n) FROM (SELECT code, COUNT(*) n, SUM(x) s FROM a GROUP BY code) q",
    "SELECT * EXCLUDE (label) FROM codes ORDER BY code",
    "SELECT weight, COUNT(*) FROM a JOIN (SELECT * EXCLUDE (label) FROM codes) c USING (code) GROUP BY weight",
    "SELECT COUNT(*) FROM a JOIN (SELECT * REPLACE (upper(label) AS label) FROM codes) c USING (code) WHERE label <> 'x'",
)
SETS = (
    "SELECT n, COUNT(*) FROM (SELECT uid, code, COUNT(*) n FROM a GROUP BY GROUPING SETS ((uid, code), (uid))) GROUP BY n",
    "SELECT code, COUNT(*), SUM(n) FROM (SELECT uid, code, COUNT(code) n FROM a GROUP BY uid, ROLLUP(code)) GROUP BY code",
    "SELECT code, g, COUNT(*), SUM(n) FROM (SELECT uid, code, GROUPING(code) g, COUNT(code) n FROM a GROUP BY uid, CUBE(code)) GROUP BY code, g",
    "SELECT COUNT(*), SUM(n) FROM (SELECT uid, code, kind, SUM(x) n FROM a GROUP BY uid, CUBE(code, kind) HAVING code IS NULL)",
    "SELECT COUNT(DISTINCT uid), SUM(n) FROM (SELECT uid, code, COUNT(*) n FROM a GROUP BY GROUPING SETS ((uid, code), (uid), (uid)))",
)


@pytest.mark.parametrize(
    ("union", "rows"), [("{0} UNION ALL {0} UNION ALL ({0} UNION {0})", 3), ("({0} UNION ALL {0}) UNION {0}", 1), ("({0} UNION {0}) UNION ALL {0}", 2)]
)  # fmt: skip
def test_union_all_of_results_keeps_repeated_rows(world: World, union: str, rows: int) -> None:  # noqa: F811
    assert len(world[1].execute(union.format("SELECT COUNT(*) AS n FROM a"))) == rows


@pytest.mark.parametrize("change", ["REPLACE ('p' AS code)", "EXCLUDE (code) RENAME (label AS code)"])
def test_a_star_that_gives_a_key_other_values_promises_nothing_of_them(world: World, change: str) -> None:  # noqa: F811
    """Otherwise, rows that all match one key would be counted once each."""
    with pytest.raises(Error) as caught:
        world[1].execute(f"SELECT COUNT(*) FROM a JOIN (SELECT * {change} FROM codes) c USING (code)")
    assert caught.value.slug == "join" and not caught.value.charged
    with pytest.raises(Error) as caught:
        world[1].execute(f"SELECT COUNT(*) FROM a WHERE code IN (SELECT * {change} FROM codes)")
    assert caught.value.slug == "clause" and not caught.value.charged


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ("EXCLUDE (nobody)", "unknown_column"),
        ("RENAME (nobody AS m)", "unknown_column"),
        ("EXCLUDE (code, n)", "clause"),
    ],
)
def test_a_star_changed_where_it_has_no_column_is_refused(world: World, change: str, slug: str) -> None:  # noqa: F811
    with pytest.raises(Error) as caught:
        world[1].execute(f"SELECT * {change} FROM (SELECT code, COUNT(*) n FROM a GROUP BY code) q")
    assert caught.value.slug == slug and not caught.value.charged


@pytest.mark.parametrize("sql", [*PUBLIC, *STARS, *CHANGED_STARS, *SETS])
def test_answers_are_those_of_the_engine(world: World, sql: str) -> None:  # noqa: F811
    connection, session = world
    expected = connection.execute(sql).fetchall()
    release = session.execute(sql)
    assert len(release.columns) == len(connection.description)
    assert difference(release, expected) is None, (difference(release, expected), rows_of(release))
    assert types(release, expected) is None


@pytest.mark.parametrize("turn", [0, slow(3)])
@pytest.mark.parametrize(("at", "form"), [*enumerate(["{} {} {} {} {}", "({} {} {}) {} {}", "{} {} ({} {} {})"])])
def test_brackets_around_set_operations_count(world: World, at: int, form: str, turn: int) -> None:  # noqa: F811
    """Any two words with each form of brackets and, over the forms, three orders of the sides; over both turns, any."""
    sides = (
        "SELECT code FROM codes",
        "SELECT 'p' UNION ALL VALUES ('p'), ('r'), ('q')",
        "SELECT code FROM a GROUP BY code HAVING COUNT(*) > 5",
    )
    words = ("UNION", "UNION ALL", "INTERSECT", "EXCEPT ALL")
    for number, (first, second) in enumerate(product(words, repeat=2)):
        a, b, c = [*permutations(sides)][(number + at + turn) % 6]
        sql = form.format(a, first, f"({b})" if "UNION" in b else b, second, c)
        expected = world[0].execute(sql).fetchall()
        assert sorted(rows_of(world[1].execute(sql)), key=str) == sorted(map(tuple, expected), key=str), sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c.label, COUNT(*) FROM a JOIN (SELECT weight AS w, label FROM codes) c ON c.w = a.x GROUP BY 1",
        "SELECT c.label, COUNT(*) FROM a JOIN (SELECT lower(code) AS k, label FROM codes) c ON c.k = a.code GROUP BY 1",
        "SELECT c.label, COUNT(*) FROM a JOIN (SELECT code, label FROM codes UNION ALL SELECT code, label FROM codes) c USING (code) GROUP BY 1",
        "SELECT SAMPLE_AGGREGATE(COUNT(*), 0, 9) FROM codes FULL JOIN a USING (code)",
        "SELECT COUNT(DISTINCT grade) FROM codes c CROSS JOIN scores s LEFT JOIN a ON a.code = c.code AND a.x = s.x",
        "SELECT COUNT(uid) FROM codes CROSS JOIN b AS other LEFT JOIN a USING (code)",
        "SELECT COUNT(*) FROM (SELECT label, a.x FROM codes c CROSS JOIN scores s LEFT JOIN a ON a.code = c.code AND a.x = s.x)",
    ],
)
def test_keys_of_a_table_are_those_of_what_is_selected_from_it_and_no_others(world: World, sql: str) -> None:  # noqa: F811
    with pytest.raises(Error) as caught:
        world[1].execute(sql)
    assert caught.value.slug == "join" and not caught.value.charged


def test_sets_of_a_units_keys_move_by_as_many_rows_as_they_have(world: World) -> None:  # noqa: F811
    """At most five rows in each of two sets, and one in the set of the unit's key alone."""
    _, session = world
    for form, rows in (
        ("uid, CUBE(kind)", 6),
        ("GROUPING SETS ((uid, kind), (uid, code))", 10),
        ("GROUPING SETS ((uid), (uid))", 2),
    ):
        plan = session.explain(f"SELECT COUNT(*) FROM (SELECT uid FROM a GROUP BY {form})")
        assert [output.rows_per_unit for output in plan.outputs] == [rows]
    with pytest.raises(Error) as caught:
        session.execute("SELECT COUNT(*) FROM (SELECT uid, kind FROM a GROUP BY ROLLUP(uid, kind))")
    assert caught.value.slug == "unit_sets"


def test_lists_of_results_as_json(world: World) -> None:  # noqa: F811
    connection, session = world
    rows = "(SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS t WHERE n > 20"
    release = session.execute(f"SELECT json_agg(n ORDER BY kind), jsonb_agg(kind) FILTER (WHERE n < 0) FROM {rows}")
    ((whole, none),) = rows_of(release)
    assert [column.name for column in release.columns] == ["json_agg", "jsonb_agg"] and none is None
    assert (whole,) == connection.execute(f"SELECT to_json(list(n ORDER BY kind)) FROM {rows}").fetchone()
    with pytest.raises(Error) as caught:
        session.execute("SELECT json_agg(kind) FROM a")
    assert caught.value.slug == "row_list" and not caught.value.charged


@pytest.mark.parametrize(("chain", "slug"), [(10, "heavy_expression"), (2_000, "clause")])
def test_laterals_that_double_are_refused_before_they_are_written(world: World, chain: int, slug: str) -> None:  # noqa: F811
    doubled = "".join(f", LATERAL (SELECT {' + '.join([f'q{n}.d'] * 9)} AS d) AS q{n + 1}" for n in range(chain))
    with pytest.raises(Error) as caught:
        world[1].execute(
            f"SELECT COUNT(*) FROM a, LATERAL (SELECT a.x AS d) AS q0{doubled if chain < 99 else ', LATERAL (SELECT 1) q' * chain}"
        )
    assert caught.value.slug == slug and not caught.value.charged


def test_more_names_than_columns_of_a_lateral_are_refused(world: World) -> None:  # noqa: F811
    with pytest.raises(Error) as caught:
        world[1].execute("SELECT COUNT(*) FROM a, LATERAL (SELECT 1) AS q(c, d)")
    assert caught.value.slug == "alias_count" and not caught.value.charged
