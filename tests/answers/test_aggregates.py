"""Random aggregates over random small tables: without noise they equal the engine's, group by group."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.exact_session import exact_session, plain, rows_of

from dpsql.policy import load_policy
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


PRICES = """
dataset: prices
source: duckdb:///prices.duckdb
privacy_unit: {table: t, column: person}
budget: {epsilon: 1, delta: 1e-6}
per_query: {epsilon: 1}
ledger: sqlite:///prices.db
tables:
  t:
    max_rows: 4
    columns:
      person: {type: integer, nullable: false}
      price: {type: real, lower: 0, upper: 1000, scale: 2, nullable: false}
      weight: {type: real, lower: 0, upper: 1000, nullable: false}
"""
OF_ONE = "SELECT person, AVG({x}) AS a, MIN({x}) AS m, SUM({x}) AS s, COUNT(*) AS n FROM t GROUP BY person"
BESIDE_MEANS = [
    "SELECT COUNT(*) FROM t AS o WHERE {x} > (SELECT AVG({x}) FROM t AS i WHERE i.person = o.person)",
    "SELECT COUNT(*) FROM (SELECT {x} AS v, AVG({x}) OVER (PARTITION BY person) AS a FROM t) AS q WHERE v = a",
    f"SELECT COUNT(*) FROM ({OF_ONE}) AS q WHERE a = m",
]
BESIDE_SUMS = [f"SELECT COUNT(*) FROM ({OF_ONE}) AS q WHERE s <= m"]


def test_rows_are_compared_with_the_exact_mean_and_sum_of_their_person(tmp_path: Path) -> None:
    """Persons have one to three equal rows, or two that differ: rounding on a grid would decide about the equal ones. Plain
    DuckDB computes in whole cents."""
    (tmp_path / "policy.yaml").write_text(PRICES)
    rows = "SELECT i // 4 AS person, (i // 4 * 7919 % 90001 + if(i // 4 % 5 = 0, i % 2, 0))::INTEGER AS cents FROM range(2000) AS r(i)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT person, cents, (cents / 100)::DECIMAL(9, 2) AS price, cents / 100 AS weight FROM ({rows}) WHERE person % 4 <> 1 OR cents % 3 = 0")  # fmt: skip
        with exact_session(load_policy(tmp_path / "policy.yaml"), connection, tmp_path / "ledger.db") as session:
            for question, columns in [(q, ("price", "weight")) for q in BESIDE_MEANS] + [
                (q, ("price",)) for q in BESIDE_SUMS
            ]:
                expected = connection.execute(question.format(x="cents")).fetchall()
                for column in columns:
                    sql = question.format(x=column)
                    assert rows_of(session.execute(sql)) == [tuple(map(plain, row)) for row in expected], sql
