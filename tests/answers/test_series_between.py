"""A series between two aggregates of people's rows has the engine's rows where its steps are known, and is refused elsewhere."""

import itertools
import random
from collections.abc import Iterator

import duckdb
import pytest
from support.exact_session import exact_session, plain, rows_of
from support.gates import NoiselessGate
from support.generated_questions import difference
from support.seeds import seeds

from dpsql.errors.exceptions import Refusal
from dpsql.policy import load_policy
from dpsql.session.session import Session

POLICY = """
dataset: days
source: duckdb:///unused.duckdb
ledger: sqlite:///ledger.db
privacy_unit: row
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
tables:
  t:
    columns:
      day: {type: date, lower: 2023-11-09, upper: 2024-09-20, nullable: false}
      n: {type: integer, lower: -7, upper: 90, nullable: false}
"""
World = tuple[duckdb.DuckDBPyConnection, Session]
STEPS = {"day": "1 day", "week": "7 days", "month": "1 month", "quarter": "3 months", "year": "1 year"}
ENDS = (
    "MAX(day)",
    "date_trunc('{}', MAX(day))",
    "MAX(day) + INTERVAL '1 month'",
    "DATE '2024-05-05'",
    "MAX(day)::TIMESTAMP",
)
WHERE = (
    "",
    " WHERE day > DATE '2024-02-11'",
    " WHERE n BETWEEN 20 AND 60",
    " WHERE n % 5 = 1 AND day < DATE '2024-06-30'",
)
CALLS = (
    "unnest(generate_series({})) AS s",
    "unnest(range({}))::DATE AS s",
    "CAST(unnest(generate_series({})) AS DATE) AS s",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("series")
    (folder / "policy.yaml").write_text(POLICY)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT DATE '2023-12-04' + CAST(hash(i) % 250 AS INT) AS day, CAST(hash(i + 900) % 90 AS INT) - 5 AS n FROM range(80) r(i)"
        )
        policy = load_policy(folder / "policy.yaml")
        with exact_session(policy, connection, folder / "ledger.db", NoiselessGate(1)) as session:
            yield connection, session


def series(chance: random.Random) -> str:
    """Return a SELECT of a series whose step leads from any of its starts to the others."""
    where = chance.choice(WHERE) + chance.choice(
        ["", " ORDER BY s DESC", " ORDER BY 1 LIMIT 3", " ORDER BY s LIMIT 2 OFFSET 1"]
    )
    if chance.random() < 0.25:
        ends = chance.choice(["MIN(n), MAX(n)", "MIN(n), MAX(n) + 2", "MIN(n) - 1, 70, 1"])
        return f"SELECT {chance.choice(CALLS[:1])} FROM t{where}".format(ends)
    unit = chance.choice(list(STEPS))
    start = "MIN(day)" if unit == "day" and chance.random() < 0.5 else f"date_trunc('{unit}', MIN(day))"
    end = chance.choice(ENDS).format(unit)
    step = chance.choice([STEPS[unit], "1 day"]) if unit in ("week", "month") else STEPS[unit]
    return f"SELECT {chance.choice(CALLS)} FROM t{where}".format(f"{start}, {end}, INTERVAL '{step}'")


@pytest.mark.parametrize("seed", seeds(24, 1))
def test_a_series_has_the_engines_rows(world: World, seed: int) -> None:
    connection, session = world
    chance = random.Random(seed)
    for _ in range(4):
        asked = series(chance)
        release = session.execute(asked)
        expected = connection.execute(asked).fetchall()
        assert difference(release, expected) is None, asked
        assert "ORDER" not in asked or rows_of(release) == [tuple(map(plain, row)) for row in expected]
        joined = f"WITH s AS ({asked}), c AS (SELECT day, COUNT(*) AS m0 FROM t GROUP BY day) SELECT s, coalesce(m0, 0) AS m FROM s LEFT JOIN c ON s = day"
        if "(n)" not in asked:
            expected = connection.execute(joined).fetchall()
            assert difference(session.execute(joined), expected) is None, joined


@pytest.mark.parametrize("end", ["MAX(day)", "date_trunc('month', MAX(day))"])
def test_a_series_of_postgresql_is_one_of_rows(world: World, end: str) -> None:
    written = f"generate_series(date_trunc('month', MIN(day)), {end}, INTERVAL '1 month')"
    rows = rows_of(world[1].execute(f"SELECT unnest({written}) AS s FROM t"))
    world[1].execute("SET dp.dialect = postgresql")
    try:
        assert rows_of(world[1].execute(f"SELECT {written} AS s FROM t")) == rows
    finally:
        world[1].execute("RESET dp.dialect")


UNALIGNED = [
    (f"date_trunc('{unit}', MIN(day))", step)
    for unit, step in itertools.product(STEPS, [*STEPS.values(), "2 months", "-1 month", "5 hours"])
    if step not in (STEPS[unit], "1 day")
]


@pytest.mark.parametrize(("start", "step"), [("MIN(day)", "1 month"), ("MIN(day)", "7 days"), *UNALIGNED])
def test_a_series_that_may_begin_between_steps_is_refused(world: World, start: str, step: str) -> None:
    with pytest.raises(Refusal) as refusal:
        world[1].execute(f"SELECT unnest(generate_series({start}, MAX(day), INTERVAL '{step}')) AS s FROM t")
    assert (refusal.value.slug, refusal.value.charged) == ("unknown_function", False)


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ("SELECT {} + unnest([100, 200]) AS s FROM t", "unknown_function"),
        ("SELECT {} * COUNT(*) AS s FROM t", "unknown_function"),
        ("SELECT {} + first AS s FROM t", "unknown_function"),
        ("SELECT {} AS s FROM t ORDER BY first", "unknown_column"),
    ],
)
def test_a_series_has_nothing_else_beside_it(world: World, asked: str, slug: str) -> None:
    with pytest.raises(Refusal) as refusal:
        world[1].execute(asked.format("unnest(generate_series(MIN(n), MAX(n)))"))
    assert (refusal.value.slug, refusal.value.charged) == (slug, False)


@pytest.mark.parametrize(
    ("sql", "chosen"),
    [
        ("SELECT unnest(generate_series(MIN(n), MAX(n))) AS k FROM t", True),
        ("SELECT n // 30 AS k FROM t GROUP BY k HAVING COUNT(*) > 20", True),
        ("SELECT n // 30 AS k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1", True),
        ("SELECT n // 30 AS k FROM t GROUP BY k ORDER BY k LIMIT 2", False),
        ("SELECT n // 30 AS k, COUNT(*) AS rows FROM t GROUP BY k", False),
    ],
)
def test_rows_without_a_noisy_number_are_said_to_be_chosen_by_noise(world: World, sql: str, chosen: bool) -> None:
    explained = world[1].explain(sql).to_text().split("\n")
    assert ("noise decides which rows are shown" in explained) is chosen
    assert ("noise decides which rows are shown" in world[1].execute(sql).notices) is chosen
