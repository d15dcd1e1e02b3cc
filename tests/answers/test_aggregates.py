"""Random aggregates over random small tables: without noise they equal the engine's, group by group."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.exact_session import exact_session, plain, rows_of

from dpsql.session.session import Session

NUMBERS = ["x", "y", "z", "x + y", "2 * x - 1", "x * y", "abs(x)", "coalesce(x, 5)", "CASE WHEN flag THEN y ELSE z END"]
ONE = ["SUM", "AVG", "VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV"]
TWO = ["COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT"]
TWO += ["REGR_AVGX", "REGR_AVGY"]
COUNTS = [
    "COUNT(*)", "COUNT(x)", "COUNT(y)", "COUNT(DISTINCT x)", "COUNT(DISTINCT y)", "COUNT(DISTINCT person)",
    "COUNT_IF(x > 3)", "COUNT(DISTINCT x % 7)",
]  # fmt: skip
CONDITIONS = ["", "x > 0", "flag", "flag IS NOT TRUE", "y BETWEEN -10 AND 30", "x IS NULL OR z < 0.25", "grp <> 'b'"]
UNSTABLE = ("CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")


@dataclass(frozen=True)
class Aggregate:
    """One output; `pair`: the arguments of an aggregate that takes two, otherwise empty."""

    call: str
    condition: str
    pair: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.call} FILTER (WHERE {self.condition})" if self.condition else self.call


@st.composite
def aggregates(draw: st.DrawFn) -> Aggregate:
    condition = draw(st.sampled_from(CONDITIONS))
    count = draw(st.sampled_from([0, 1, 1, 2, 2, 2]))
    if count == 0:
        return Aggregate(draw(st.sampled_from(COUNTS)), condition)
    arguments = tuple(draw(st.sampled_from(NUMBERS)) for _ in range(count))
    word = draw(st.sampled_from(ONE if count == 1 else TWO))
    return Aggregate(f"{word}({', '.join(arguments)})", condition, arguments if word in UNSTABLE else ())


ROWS = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.sampled_from("abc"),
        st.none() | st.integers(-40, 60),
        st.none() | st.integers(-400, 800).map(lambda n: n / 8),
        st.integers(0, 64).map(lambda n: n / 128),
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=50,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    folder = tmp_path_factory.mktemp("aggregates")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person INTEGER, grp TEXT, x INTEGER, y DOUBLE, z DOUBLE, flag BOOLEAN)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(folder))
        session = exact_session("numbers", connection, folder / "numbers.db")
        session.execute("SET dp.reuse = false")
        yield connection, session
        session.close()


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(ROWS, st.lists(aggregates(), min_size=3, max_size=6, unique=True), st.sampled_from(CONDITIONS), st.booleans())
def test_aggregates_without_noise_are_the_engines(
    world: tuple[duckdb.DuckDBPyConnection, Session],
    rows: list[Any],
    wanted: list[Aggregate],
    where: str,
    grouped: bool,
) -> None:
    connection, session = world
    connection.execute("DELETE FROM t")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    sql = f"SELECT {'grp' if grouped else '1'}, {', '.join(map(str, wanted))} FROM t"
    sql += (f" WHERE {where}" if where else "") + (" GROUP BY grp" if grouped else "")
    note(sql)
    answer = {row[0]: row for row in rows_of(session.execute(sql))}
    for row in connection.execute(sql).fetchall():
        for one, theirs, ours in zip(wanted, row[1:], answer[plain(row[0])][1:], strict=True):
            if plain(theirs) is not None and not _singular(connection, one, where, row[0] if grouped else None):
                assert math.isclose(plain(theirs), ours, rel_tol=1e-6, abs_tol=1e-6), (str(one), theirs, ours)


def _singular(connection: duckdb.DuckDBPyConnection, one: Aggregate, where: str, group: str | None) -> bool:
    """Return whether a variance in a quotient is 0 apart from rounding error: such a quotient is meaningless."""
    if not one.pair:
        return False
    y, x = one.pair
    here = [part for part in (where, one.condition, f"grp = '{group}'" if group else "") if part]
    conditions = " AND ".join(f"({part})" for part in [*here, f"({y}) IS NOT NULL AND ({x}) IS NOT NULL"])
    found = connection.execute(f"SELECT var_pop({y}), var_pop({x}) FROM t WHERE {conditions}").fetchone()
    return found is None or any(value is None or value < 1e-3 for value in found)
