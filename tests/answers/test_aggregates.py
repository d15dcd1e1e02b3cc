"""Random aggregates over random small tables: without noise they equal the engine's, group by group."""

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.exact_session import exact_session, plain, rows_of
from support.gates import NoiselessGate
from support.plain_duckdb import insert

from answers.test_quantiles import POLICIES, visits_in_february
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.frontends.rendering import formats
from dpsql.plan.intervals import Type
from dpsql.planning.planner import Planner
from dpsql.policy import load_policy
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import Price
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
    insert(connection, "t", rows)
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
COMPUTED = ["{x} + 0.1", "100 - {x}", "{x} * 1.2", "3 * {x}", "{x} - MIN({x}) OVER (PARTITION BY person)"]
JUMPS = ["{v} {op} {at}", "floor({v} * 10) {op} {at} * 10", "{v} IN ({at}, 7.7)"]


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    """Persons have one to three equal rows, or two that differ: rounding on a grid would decide about the equal ones."""
    folder = tmp_path_factory.mktemp("prices")
    (folder / "policy.yaml").write_text(PRICES)
    cents = "(i // 4 * 7919 % 90001 + if(i // 4 % 5 = 0, i % 2 * 10, 0)) % 3000"
    rows = f"SELECT i // 4 AS person, ({cents})::INTEGER AS cents FROM range(2000) AS r(i)"
    where = "WHERE person % 4 <> 1 OR cents % 3 = 0"
    with duckdb.connect() as connection:
        columns = "person, cents, (cents / 100)::DECIMAL(9, 2) AS price, cents / 100 AS weight"
        connection.execute(f"CREATE TABLE t AS SELECT {columns} FROM ({rows}) {where}")
        with exact_session(load_policy(folder / "policy.yaml"), connection, folder / "ledger.db") as session:
            yield connection, session


@pytest.mark.parametrize(
    ("question", "column"),
    [*product(BESIDE_MEANS, ("price", "weight")), (f"SELECT COUNT(*) FROM ({OF_ONE}) AS q WHERE s <= m", "price")],
)
def test_rows_are_compared_with_the_exact_mean_of_their_person(
    prices: tuple[duckdb.DuckDBPyConnection, Session], question: str, column: str
) -> None:
    connection, session = prices
    expected = [tuple(map(plain, row)) for row in connection.execute(question.format(x="cents")).fetchall()]
    assert rows_of(session.execute(question.format(x=column))) == expected


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("computed", COMPUTED)
def test_computed_decimals_are_compared_as_decimals(
    prices: tuple[duckdb.DuckDBPyConnection, Session], computed: str, jump: str
) -> None:
    connection, session = prices
    value = computed.format(x="price")
    (at,) = connection.execute(f"SELECT mode(v) FROM (SELECT {value} AS v FROM t) AS q WHERE v > 0").fetchone() or (0,)
    inside = [f"SELECT COUNT(*) FROM (SELECT {value} AS v FROM t) AS q WHERE {{}}"]
    forms = inside if "OVER" in value else [*inside, "SELECT COUNT(*) FROM t WHERE {}"]
    for form, op in [(form, op) for form in forms for op in ("=", ">=", "<")]:
        sql = form.format(jump.format(v="v" if form in inside else f"({value})", op=op, at=at))
        assert rows_of(session.execute(sql)) == [
            tuple(map(plain, row)) for row in connection.execute(sql).fetchall()
        ], sql


@pytest.mark.parametrize("aggregate", ["SUM({})", "AVG({} * 2)", "STDDEV({})", "MEDIAN({})", "COUNT(DISTINCT {})"])
@pytest.mark.parametrize("factor", ["1.1", "0.0000000000001 * 0.1"])
def test_a_decimal_that_a_subquery_computes_is_no_other_question(
    prices: tuple[duckdb.DuckDBPyConnection, Session], aggregate: str, factor: str
) -> None:
    _, session = prices
    answer = session.execute(f"SELECT {aggregate.format(f'(price * {factor})')} FROM t WHERE price * {factor} > 0")
    computed = f"(SELECT price * {factor} AS v FROM t) AS q"
    again = session.execute(f"SELECT {aggregate.format('v')} FROM {computed} WHERE v > 0")
    assert again.receipt.reused and rows_of(again) == rows_of(answer)


# --- Lists of quantiles: the same numbers as single calls, and list values in every format ----------------------------


LISTS = (
    "SELECT ward, QUANTILE_DISC(day, [0.25, 0.5, 0.75]) AS days, APPROX_QUANTILES(nights, 2) AS nights, "
    "PERCENTILE_CONT(ARRAY[0.5]) WITHIN GROUP (ORDER BY cost) AS cost, COUNT(*) AS n FROM visits GROUP BY ward "
    "HAVING COUNT(*) > 100"
)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return exact_session("hospital", visits_in_february(), tmp_path / "ledger.db", NoiselessGate(1))


def test_a_list_has_the_numbers_of_its_calls_in_the_order_that_is_written(session: Session) -> None:
    sql = (
        "SELECT QUANTILE_DISC(day, [0.75, 0.25, 0.5]) AS l, QUANTILE_DISC(day, 0.25) AS a, QUANTILE_DISC(day, 0.5) AS b, "
        "PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY day) AS c FROM visits"
    )
    ((listed, first, middle, third),) = session.execute(sql).rows()
    assert listed == [third, first, middle] and first < middle < third


def test_a_list_costs_what_its_calls_cost_in_one_select() -> None:
    policy = load_policy(POLICIES / "hospital.yaml")
    planner = Planner(policy, DuckDBEngine(duckdb.connect(), policy, "test", owned=True))

    def price(sql: str) -> Price:
        return planner.plan(planner.parse(sql, None), Options.of_policy(policy), True).price

    listed = price("SELECT QUANTILE_DISC(cost, [0.1, 0.5, 0.9]) FROM visits")
    apart = price("SELECT QUANTILE_DISC(cost, 0.9), QUANTILE_CONT(cost, 0.5), QUANTILE_DISC(cost, 0.1) FROM visits")
    assert listed.loss == apart.loss and len(listed.blocks[0].noise.charged) == 2
    first, second = ([law for _, law in plan.blocks[0].noise.measurements[0].laws] for plan in (listed, apart))
    assert first == second and len(first) == 3


def test_equal_parts_are_ascending_from_the_smallest_to_the_largest(session: Session) -> None:
    ((days,),) = session.execute("SELECT APPROX_QUANTILES(day, 7) FROM visits").rows()
    assert days == sorted(days) and (days[0], days[-1], len(days)) == (date(2024, 2, 1), date(2024, 2, 28), 8)


def test_a_list_is_a_column_of_its_own_type_in_every_format(session: Session, tmp_path: Path) -> None:
    release = session.execute(LISTS)
    types = [Type.TEXT, Type.DATE_LIST, Type.INTEGER_LIST, Type.REAL_LIST, Type.INTEGER]
    assert [column.type for column in release.columns] == types
    assert release.table.schema.field("cost").type == pa.list_(pa.float64())
    ((ward, days, nights, cost, rows),) = release.rows()
    assert (ward, nights, rows) == ("er", [2, 2, 2], 280) and cost == [1.0]
    assert days == [date(2024, 2, 7), date(2024, 2, 14), date(2024, 2, 21)]
    assert list(release.to_pandas()["nights"][0]) == nights

    def written(format_: str) -> str:
        out = io.StringIO()
        formats.write_text(release, out, format_, bars=True)
        return out.getvalue()

    ((_, text, *_),) = list(csv.reader(io.StringIO(written("csv"))))[1:]
    assert text == "[2024-02-07, 2024-02-14, 2024-02-21]"
    answer: dict[str, Any] = json.loads(written("json"))
    assert answer["rows"][0]["days"] == ["2024-02-07", "2024-02-14", "2024-02-21"]
    assert [column["type"] for column in answer["columns"]][1:4] == ["date[]", "integer[]", "real[]"]
    assert "[2024-02-07, 2024-02-14, 2024-02-21]" in written("table") and "[2, 2, 2]" in written("table")
    formats.write_file(release, tmp_path / "a.parquet", "parquet", bars=True)
    assert pq.read_table(tmp_path / "a.parquet")["days"].to_pylist() == [days]
