"""Whole answers in the limit of no noise compared with DuckDB's: values, and outputs that claim to be exact.

Each output is compared according to its own claim: `noisy = false` must give the engine's value.
"""

from collections.abc import Iterator

import duckdb
import pytest
from support.exact_session import exact_session, rows_of, same
from support.generated_questions import difference

from dpsql.errors.exceptions import Error
from dpsql.frontends.rendering.formats import as_object
from dpsql.session.session import Session

World = tuple[duckdb.DuckDBPyConnection, Session]


def build() -> duckdb.DuckDBPyConnection:
    """Return 900 rows of 300 people: no row has the codes r and s, some have none. Every other table lacks some keys of a."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE a AS SELECT (i // 3)::BIGINT AS uid, CASE WHEN i % 13 <> 0 THEN (i * 7 % 11)::BIGINT END AS x, "
        "((i * 13 % 101) - 50) / 10.0::DOUBLE AS y, CASE i % 5 WHEN 3 THEN NULL WHEN 1 THEN 'q' ELSE 'p' END AS code, "
        "CASE i % 3 WHEN 1 THEN 'q' ELSE 'p' END AS kind, 'w' || (i % 7) AS word, "
        "DATE '2024-01-01' + (i % 60)::INTEGER AS day, i::BIGINT AS big FROM range(900) t(i)"
    )
    connection.execute(
        "CREATE TABLE b AS SELECT i::BIGINT AS uid, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'oslo' ELSE 'rome' END AS city, "
        "CASE i % 4 WHEN 0 THEN 's' ELSE 'm' END AS size, CASE WHEN i % 7 <> 0 THEN (i % 21)::BIGINT END AS z, "
        "((i * 11 % 81) - 40) / 10.0::DOUBLE AS w, CASE WHEN i % 6 <> 1 THEN 't' || (i % 3) END AS town "
        "FROM range(100, 320, 2) t(i)"
    )
    connection.execute(
        "CREATE TABLE codes AS SELECT * FROM (VALUES ('p', 'first', 1::BIGINT), ('r', 'third', 3), ('z', 'last', NULL), "
        "(NULL, 'nothing', 7)) t(code, label, weight)"
    )
    connection.execute(
        "CREATE TABLE scores AS SELECT i::BIGINT AS x, CASE WHEN i > 5 THEN 'high' ELSE 'low' END AS grade "
        "FROM range(0, 20, 3) t(i) UNION ALL SELECT NULL, 'none'"
    )
    return connection


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("answers")
    connection = build()
    session = exact_session("answers", connection, folder / "ledger.db")
    yield connection, session
    session.close()


def check(world: World, sql: str) -> None:
    """Compare the rows with the engine's, in any order."""
    connection, session = world
    expected = [tuple(float(v) if isinstance(v, int) else v for v in row) for row in connection.execute(sql).fetchall()]
    answer = rows_of(session.execute(sql))
    wanted = sorted((tuple(map(_plain, row)) for row in expected), key=repr)
    found = sorted(answer, key=repr)
    assert len(found) == len(wanted), (found[:5], wanted[:5])
    for left, right in zip(found, wanted, strict=True):
        assert all(map(same, left, right)), (left, right)


def _plain(value: object) -> object:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


BY_UNIT = (
    "SELECT COUNT(*) FROM (SELECT CAST(uid AS VARCHAR) u FROM a GROUP BY 1)",
    "SELECT COUNT(*) FROM (SELECT uid + 0 u FROM a GROUP BY 1)",
    "SELECT COUNT(*) FROM (SELECT 7 - uid * 3 u FROM a GROUP BY 1)",
    "SELECT COUNT(*) FROM (SELECT u FROM (SELECT uid AS u FROM a) GROUP BY u)",
    "SELECT COUNT(*), SUM(n) FROM (SELECT w, n FROM (SELECT u AS w, n FROM (SELECT uid AS u, COUNT(*) n FROM a GROUP BY uid)))",
    "SELECT COUNT(*), SUM(n) FROM (SELECT u || 'x' u2, n FROM (SELECT 'p' || CAST(uid AS VARCHAR) AS u, COUNT(*) n FROM a "
    "GROUP BY 1) q) r",
    "WITH b AS (SELECT -uid AS m, x FROM a), c AS (SELECT m AS k, x FROM b) "
    "SELECT COUNT(*), SUM(n), SUM(s) FROM (SELECT k, COUNT(DISTINCT x) n, SUM(x) s FROM c GROUP BY k) d",
    "SELECT COUNT(DISTINCT CAST(uid AS VARCHAR)), COUNT(DISTINCT -uid), COUNT(DISTINCT uid) FROM a",
    "SELECT COUNT(*) FROM (SELECT DISTINCT uid * 2 FROM a) t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT uid * 2, x FROM a) t",
    "SELECT SUM(n) FROM (SELECT coalesce(uid, -1) AS u, COUNT(*) n FROM a GROUP BY 1)",
    "SELECT COUNT(*) FROM (SELECT uid, ROW_NUMBER() OVER (PARTITION BY CAST(uid AS VARCHAR) ORDER BY big) r FROM a) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT CAST(uid AS VARCHAR) u, uid, MAX(x) m FROM a GROUP BY 1, 2) WHERE m > 5",
    "SELECT COUNT(*) FROM (SELECT uid + 1 AS v FROM a GROUP BY uid + 1 HAVING uid + 1 > 10)",
    "SELECT COUNT(*) FROM (SELECT v FROM (SELECT uid AS u, uid + 1 AS v FROM a) GROUP BY u, v)",
    "SELECT kind, COUNT(*) FROM (SELECT kind, round(uid) AS u FROM a GROUP BY 1, 2) GROUP BY kind HAVING COUNT(*) > 0",
    "SELECT COUNT(*) FROM (SELECT uid, kind FROM a GROUP BY GROUPING SETS ((uid, kind)))",
)


@pytest.mark.parametrize("sql", BY_UNIT)
def test_expressions_over_the_key_of_the_unit_answer_as_the_engine_does(world: World, sql: str) -> None:
    check(world, sql)


WIDE = ("big", "clamp(big, -1099511627776, 1099511627777)", "clamp(big, 0, 3000000000)")


@pytest.mark.parametrize("value", WIDE)
def test_spread_of_wide_integers_is_computed_on_a_grid_of_reals(world: World, value: str) -> None:
    """Squares beyond 64 bits are summed as reals, on a grid that follows from the bounds (2**-52 of the largest square)."""
    connection, session = world
    for word in ("VAR_POP", "STDDEV", "CORR", "COVAR_POP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"):
        arguments = value if word in ("VAR_POP", "STDDEV") else f"{value}, x"
        (row,) = session.execute(f"SELECT {word}({arguments}) FROM a").rows()
        # On the grid of such squares these values have no variance, and without variance there is no correlation, as in SQL.
        is_lost = word in ("CORR", "REGR_R2") and value != WIDE[2]
        assert (row[0] is None) if is_lost else isinstance(row[0], float)
    ((exact,),) = connection.execute("SELECT VAR_POP(big) FROM a").fetchall()
    ((variance,),) = session.execute("SELECT VAR_POP(clamp(big, 0, 3000000000)) FROM a").rows()
    assert abs(variance - exact) < 3e9**2 * 2**-51


DIFFERENT = (
    "SELECT SUM(DISTINCT x), AVG(DISTINCT x), VAR_POP(DISTINCT x), STDDEV(DISTINCT x), COUNT(DISTINCT x), SUM(x), AVG(x) FROM a",
    "SELECT kind, SUM(DISTINCT y), AVG(DISTINCT y), VAR_SAMP(DISTINCT y), SUM(DISTINCT x) FILTER (WHERE y > 0), SUM(x), "
    "STDDEV_POP(DISTINCT x) FROM a GROUP BY kind HAVING COUNT(*) > 0",
    "SELECT SUM(DISTINCT y * y), SUM(DISTINCT x % 3), AVG(DISTINCT y), VAR_POP(DISTINCT y) FROM a WHERE word = 'w1'",
    "SELECT SUM(n), SUM(DISTINCT n), AVG(DISTINCT n + 1) FROM (SELECT uid, COUNT(x) AS n FROM a GROUP BY uid) AS q",
    "SELECT word, SUM(DISTINCT x), AVG(DISTINCT y) FROM a GROUP BY word",
)


@pytest.mark.parametrize("sql", DIFFERENT)
def test_sums_of_different_values(world: World, sql: str) -> None:
    check(world, sql)


_MERGED = (
    "(SELECT k, MAX(m) AS m FROM (SELECT CASE WHEN x > 3 THEN 1 ELSE 0 END AS k FROM a GROUP BY 1) AS p RIGHT JOIN "
    "(SELECT x AS k, COUNT(*) AS m FROM a WHERE x > 0 GROUP BY 1) AS q USING (k) GROUP BY k) AS r"
)
RIGHT_USING = (
    "SELECT COUNT(uid), COUNT(*), COUNT(a.uid), COUNT(b.uid) FROM a RIGHT JOIN b USING (uid)",
    "SELECT COUNT(uid), COUNT(*), COUNT(a.uid), COUNT(b.uid) FROM b RIGHT JOIN a USING (uid)",
    "SELECT code, COUNT(*) FROM codes RIGHT JOIN a USING (code) GROUP BY code",
    "SELECT code, COUNT(*) FROM codes RIGHT JOIN a USING (code) LEFT JOIN b USING (uid) WHERE code = 'q' GROUP BY code",
    f"SELECT SUM(r.k) FROM a JOIN {_MERGED} ON a.x = r.k",
    f"SELECT r.k, COUNT(*) FROM a JOIN {_MERGED} ON a.x = r.k GROUP BY r.k",
)


@pytest.mark.parametrize("sql", RIGHT_USING)
def test_merged_columns_of_a_right_join_are_those_of_the_preserved_side(world: World, sql: str) -> None:
    """Groups that the other side lacks keep their keys and their bounds."""
    connection, session = world
    assert difference(session.execute(sql), connection.execute(sql).fetchall()) is None


def test_what_a_full_join_merges_has_no_bounds(world: World) -> None:
    """The bounds and values of neither side hold for the merged column, so no answer relies on either."""
    _, session = world
    for item in ("SUM(r.k)", "r.k, COUNT(*)"):
        sql = f"SELECT {item} FROM a JOIN {_MERGED.replace('RIGHT', 'FULL')} ON a.x = r.k"
        with pytest.raises(Error) as refusal:
            session.execute(sql + " GROUP BY r.k" * ("," in item))
        assert (refusal.value.slug, refusal.value.charged) == ("join", False)


def test_a_condition_on_the_preserved_side_takes_partners_and_no_rows(world: World) -> None:
    """In WHERE these conditions would drop rows; in ON they leave rows without a partner."""
    connection, session = world
    for source in (
        "a LEFT JOIN codes AS c ON a.code = c.code AND a.x > 2",
        "b LEFT JOIN a ON b.uid = a.uid AND b.z > 5",
        "b LEFT JOIN a ON b.uid = a.uid AND b.z > 5 AND a.y > 0 AND (b.w < 0 OR b.city = 'rome')",
    ):
        asked = f"SELECT kind, COUNT(*) AS n, COUNT(x) AS m0 FROM {source} GROUP BY kind HAVING COUNT(*) > 0"
        assert difference(session.execute(asked), connection.execute(asked).fetchall()) is None


def test_sums_of_values_outside_their_bounds(world: World) -> None:
    """DISTINCT applies before clamping: x = 0 to 3 each give x - 3 clamped to 0, which counts four times, and so on."""
    _, session = world
    sql = "SELECT SUM(DISTINCT clamp(x - 3, 0, 5)), COUNT(DISTINCT clamp(x - 3, 0, 5)) FROM a"
    assert rows_of(session.execute(sql)) == [(15.0, 6.0)]


def test_the_number_of_groups_is_not_exact(world: World) -> None:
    """The domain has four codes, the data two: every front end states that the number is noisy, and which query to use
    instead."""
    connection, session = world
    sql = "SELECT COUNT(*) FROM (SELECT kind FROM a WHERE kind <> 'q' GROUP BY kind) AS q"
    release = session.execute(sql)
    (column,) = release.columns
    assert (column.noisy, column.of_groups) == (True, True)
    assert release.error.to_pylist() == [{"count": None}]
    for said in (release.notices, session.explain(sql).notes):
        assert any("the error is not known" in text and "COUNT(DISTINCT key)" in text for text in said)
    assert session.describe(sql) == release.columns
    assert as_object(release)["columns"] == [{"name": "count", "type": "integer", "noisy": True}]
    assert as_object(release)["notices"] == list(release.notices)
    for asked in (
        "SELECT COUNT(*) FROM (SELECT kind FROM a WHERE kind <> 'q' GROUP BY kind HAVING COUNT(*) > 20) AS q",
        "SELECT COUNT(DISTINCT kind) FROM a WHERE kind <> 'q'",
    ):
        answer = session.execute(asked)
        assert list(answer.rows()) == connection.execute(asked).fetchall() == [(1,)]
        assert not any("the error is not known" in text for text in answer.notices) and answer.columns[0].noisy


def test_a_numeric_without_digits_keeps_all_of_them(world: World) -> None:
    """As in PostgreSQL, whose tools write ROUND(x::numeric, 6); DuckDB would keep three."""
    _, session = world
    sql = "SELECT AVG(x) / 7 AS a, ROUND((AVG(x) / 7)::numeric, 6) AS r, SUM((x / 7.0)::numeric) AS s, SUM(x / 7.0) AS t, 1e20::numeric AS n FROM a"
    ((mean, rounded, total, same, large),) = session.execute(sql).rows()
    assert mean != round(mean, 3) and rounded == pytest.approx(round(mean, 6), abs=1e-12)
    assert total == pytest.approx(same, rel=1e-12) and large == 1e20


def test_results_are_rounded_as_bi_tools_write_it(world: World) -> None:
    """Released numbers cast to types with fixed digits keep their values, types and error bars."""
    connection, session = world
    sql = "SELECT kind, ROUND(AVG(x)::numeric, 2) AS a, CAST(SUM(x) AS DECIMAL(12,1)) AS s, COUNT(*)::numeric AS n FROM a GROUP BY kind"
    expected = {row[0]: [float(value) for value in row[1:]] for row in connection.execute(sql).fetchall()}
    release = session.execute(sql)
    for row, bar in zip(release.rows(), release.error.to_pylist(), strict=True):
        if row[0] in expected:
            assert list(row[1:]) == pytest.approx(expected[row[0]], abs=0.011)
        assert all(bar[name] is not None and bar[name] >= 0 for name in "asn") and bar["kind"] is None
    assert [column.type.value for column in release.columns] == ["text", "real", "real", "real"]
