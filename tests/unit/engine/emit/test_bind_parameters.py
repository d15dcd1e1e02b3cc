"""Queries that differ only in the constants of comparisons are one text for the engine, with the values as parameters."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pytest
from sql.corpus import ACCEPTED
from support.effort import by_day
from support.neighbouring_hospitals import crowd, together
from support.places import policy
from support.recording_session import World

from dpsql.engine.dialect import parametrised
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.duckdb.settings import Statements
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Distinct, Filter, Literal, Relation, Scan
from dpsql.plan.stability import narrowed


@cache
def world(name: str) -> World:
    found = World(policy(name))
    found.load(together(crowd(), {}))
    return found


def blocks(place: World, sql: str, parameters: Any = None) -> list[Any]:
    planned = place.session.plan(place.session.planner.parse(sql, parameters), parameters)
    return [one.block for at, one in enumerate(planned.price.blocks) if not planned.waiting(at)]


@cache
def queries(name: str, number: int) -> list[tuple[EngineQuery, EngineQuery]]:
    """Return each block of an accepted query as EXPLAIN shows it and as the engine runs it; none for a query refused under this
    policy."""
    place, case = world(name), ACCEPTED[number]
    emitter = Emitter(place.policy, place.engine.dialect, place.engine.source, place.session.context.index.views())
    try:
        with place.options(case.marks.get("set", [])):
            return [(emitter.block(one), emitter.measurement(one)) for one in blocks(place, case.sql, case.parameters)]
    except Error:
        return []


@pytest.mark.parametrize("name", by_day(["hospital"], ["hospital", "hospital_rows"]))
def test_values_put_back_give_the_text_that_is_shown(name: str) -> None:
    """Types are those of the constants: only the value itself is left out."""
    handed = 0
    for number, case in enumerate(ACCEPTED):
        for shown, asked in queries(name, number):
            whole = asked.sql
            for at, value in enumerate(asked.parameters, 1):
                written = re.search(rf"CAST\(\${at} AS ([A-Z]+)\)", asked.sql)
                assert written is not None, case.id
                assert {"BIGINT": int, "DOUBLE": float, "VARCHAR": str, "DATE": date, "TIMESTAMP": datetime}[
                    written[1]
                ] is type(value), case.id
                whole = whole.replace(written[0], DUCKDB.constant(value))
            assert whole == shown.sql and shown.parameters == (), case.id
            handed += len(asked.parameters)
    assert handed > 50


def test_every_value_that_is_handed_over_stands_in_the_text() -> None:
    """A count derived from its set of terms never writes its own filter, which contains constants of the value."""
    place = world("hospital")
    sql = "SELECT COUNT(*) AS n, AVG(CASE WHEN cost > 500 THEN nights WHEN cost < 5 THEN 1 END) AS m FROM visits"
    for (block,) in (blocks(place, sql),):
        assert any(term.shares and term.filter is not None for term in block.terms)
    assert place.observe(sql).outcome == "answered"


PAIRS = {
    "integer": ("nights > 3", "nights > 4"),
    "real": ("cost < 12.5", "cost < 0.1"),
    "text": ("ward <> 'er'", "ward <> 'i''cu'"),
    "date": ("day >= '2024-02-01'", "day >= DATE '2024-03-01'"),
    "timestamp": ("seen < '2024-02-01 10:00:00'", "seen < '2024-02-01 10:00:00.5'"),
    "between": ("code BETWEEN 1 AND 5", "code BETWEEN 2 AND 7"),
    "list": ("diagnosis IN ('flu', 'cold')", "diagnosis IN ('a', 'b')"),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_another_constant_is_no_other_text(kind: str) -> None:
    place = world("hospital")
    emitter = Emitter(place.policy, place.engine.dialect, place.engine.source)
    asked = [
        emitter.measurement(block)
        for condition in PAIRS[kind]
        for block in blocks(place, f"SELECT ward, COUNT(*), SUM(cost) FILTER (WHERE {condition}) FROM visits "
                                   f"WHERE {condition} GROUP BY ward")
    ]  # fmt: skip
    assert asked[0].sql == asked[1].sql and asked[0].parameters != asked[1].parameters
    assert len(asked[0].parameters) == len(set(asked[0].parameters)), "equal constants are one parameter"


VALUES = [
    0, -1, 2**63 - 1, -(2**63), Fraction(1, 10), Fraction(10) ** -300, Fraction(10) ** 308, Fraction(-5, 2), "", "it's",
    "$1", "a\\b", "żółw \U0001f422", date(1, 1, 1), date(9999, 12, 31), datetime(1, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 4),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip


def compared_with(value: Any) -> Filter:
    literal = Literal(value, literal_facts(value))
    return Filter(Scan("t", ()), Call("eq", (literal, literal), Facts(Type.BOOLEAN)))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_arrive_as_they_are(value: Any) -> None:
    place = world("hospital")
    (block,) = blocks(place, "SELECT COUNT(*) FROM visits")
    found = parametrised(replace(block, source=compared_with(value)), DUCKDB)
    assert len(found.values) == 1
    source: Relation = found.block.source
    assert isinstance(source, Filter) and isinstance(source.predicate, Call)
    written = DUCKDB.expression(source.predicate.arguments[0])
    shown = DUCKDB.constant(value)
    sql = f"SELECT {written} AS value, {written} = {shown} AS same, typeof({written}) = typeof({shown}) AS alike"
    (row,) = Statements().table(duckdb.connect(), sql, found.values).to_pylist()
    assert row == {"value": float(value) if isinstance(value, Fraction) else value, "same": True, "alike": True}


@pytest.mark.parametrize("value", [None, True, "a\0b", float("nan"), float("inf")], ids=repr)
def test_values_that_stay_text(value: Any) -> None:
    place = world("hospital")
    (block,) = blocks(place, "SELECT COUNT(*) FROM visits")
    facts = Facts(Type.REAL) if isinstance(value, float) else literal_facts(value)
    literal = Literal(value, facts)
    source = Filter(Scan("t", ()), Call("eq", (literal, literal), Facts(Type.BOOLEAN)))
    assert parametrised(replace(block, source=source), DUCKDB).values == ()


def test_the_engine_plans_with_a_bound_value_as_with_a_constant() -> None:
    """It is a constant when filters are pushed into the scan, as in the text."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i FROM range(10)")
        sql = "EXPLAIN SELECT count(*) FROM t WHERE i < CAST({} AS BIGINT)"
        shown = [connection.execute(sql.format(7)).fetchall(), connection.execute(sql.format("$1"), [7]).fetchall()]
        assert shown[0] == shown[1] and "7" in shown[1][0][1]


def renumbered(plan: str) -> str:
    """Return a plan whose subplans are numbered as they occur: with a bound value the optimizer may give them other numbers."""
    places: dict[str, int] = {}
    return re.sub(
        r"( Index: |__common_subplan_)\d+ *",
        lambda found: f"{found[1]}{places.setdefault(found[0].strip(), len(places))}",
        plan,
    )


@pytest.mark.parametrize("name", by_day(["hospital"], ["hospital", "hospital_rows"]))
@pytest.mark.slow
def test_plans_are_those_of_the_text_that_is_shown(name: str) -> None:
    place = world(name)
    for number, case in enumerate(ACCEPTED):
        for shown, asked in queries(name, number):
            if asked.parameters:
                cursor = place.connection.cursor()
                plans = [
                    cursor.execute(f"EXPLAIN {query.sql}", *([query.parameters] if query.parameters else [])).fetchall()
                    for query in (shown, asked)
                ]
                first, second = (renumbered(text) for ((_, text),) in plans)
                assert first == second, case.id


def test_threads_share_a_text() -> None:
    statements, found = Statements(), dict[int, int]()

    def ask(first: int) -> None:
        for most in range(first, first + 40):
            cursor = connection.cursor()
            (row,) = statements.table(
                cursor, "SELECT count(*) AS n FROM range(1000) t(i) WHERE i < $1", (most,)
            ).to_pylist()
            found[most] = row["n"]
            cursor.close()

    with duckdb.connect() as connection, ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, (0, 40, 80, 120)))
    assert found == {most: most for most in range(160)}


# --- unused columns -------------------------------------------------------------------------------------------------


def scans(node: Any) -> list[Scan]:
    if isinstance(node, Scan):
        return [node]
    below = [getattr(node, name) for name in ("source", "left", "right") if hasattr(node, name)]
    return [scan for part in [*below, *getattr(node, "sources", ())] for scan in scans(part)]


def test_only_what_is_read_is_written() -> None:
    (block,) = blocks(world("hospital_rows"), "SELECT ward, SUM(cost) FROM visits WHERE nights > 3 GROUP BY ward")
    assert [[column.name for column in scan.columns] for scan in scans(narrowed(block).source)] == [
        ["ward", "cost", "nights"]
    ]
    sql = Emitter(world("hospital_rows").policy, DUCKDB, world("hospital_rows").engine.source).block(block).sql
    assert "diagnosis" not in sql and '"nights"' in sql


def test_rows_told_apart_keep_all_their_columns() -> None:
    """Below DISTINCT, an unused column still distinguishes rows."""
    sql = "SELECT COUNT(*) FROM (SELECT DISTINCT ward, diagnosis FROM visits WHERE nights > 1) AS t"
    (block,) = blocks(world("hospital"), sql)
    source: Any = narrowed(block).source
    while not isinstance(source, Distinct):
        source = source.source
    assert len(source.source.columns) == 2
    assert {column.name for scan in scans(source) for column in scan.columns} == {"ward", "diagnosis", "nights"}
