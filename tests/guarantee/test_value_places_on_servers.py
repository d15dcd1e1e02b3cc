"""max_values on PostgreSQL and Spark: the counted values are those of the definition, under the engine's own order and in every
collation; under one common order they equal DuckDB's, and so does the answer; and one unit moves their number by at most
max_values."""

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from support.gates import NoiselessGate
from support.icu_server import icu_server
from support.places import policy
from support.postgres_source import Server, ServerWorld, server
from support.recording_session import World
from support.spark_source import SparkWorld, spark

from dpsql.engine.dialect import Dialect
from dpsql.engine.duckdb.dialect import DuckDBDialect
from dpsql.engine.postgresql.dialect import PostgreSQLDialect
from dpsql.engine.query import EngineQuery
from dpsql.noise.perturb import Gate
from dpsql.plan.intervals import Type
from dpsql_audit.observation import ObservedSession
from guarantee.test_value_places import (
    BY_DIAGNOSIS,
    BY_WARD,
    PRESENT,
    SETTINGS,
    TOTAL,
    WARDS,
    Visit,
    by_definition,
    counted,
    database,
    visits,
)

__all__ = ["server", "spark"]
TEXTS = [None, "flu", "FLU", "Flu", "flu ", "", "é", "e\N{COMBINING ACUTE ACCENT}", "ß", "ss"]
"""Texts that some collation treats as equal."""
CASES = {
    "integers": (BY_WARD, "ward", "code", Type.INTEGER),
    "texts": ("SELECT ward, COUNT(DISTINCT diagnosis) FROM visits GROUP BY ward", "ward", "diagnosis", Type.TEXT),
    "texts without keys": ("SELECT COUNT(DISTINCT diagnosis) FROM visits", "", "diagnosis", Type.TEXT),
    "reals": ("SELECT ward, COUNT(DISTINCT cost) FROM visits GROUP BY ward", "ward", "cost", Type.REAL),
    "reals by texts": (BY_DIAGNOSIS, "diagnosis", "cost", Type.REAL),
}
"""Queries, each with its key, the column of values and their type."""
ENGINES = ("postgresql", "icu", "spark")


def generated(seed: int, people: int) -> list[Visit]:
    """Return the visits of the tests on DuckDB, with additional texts."""
    rng = random.Random(f"texts {seed}")
    return [row | {"diagnosis": rng.choice(TEXTS)} for row in visits(random.Random(seed), people)]


class Opened:
    """An engine under test: sessions with separate gates, each over its own tables."""

    def __init__(self, name: str, source: Any) -> None:
        self.name, self._source, self._numbers = name, source, 0
        self._worlds: list[Any] = []
        self.recording: Any = self.world()

    def world(self, gate: Gate | None = None) -> Any:
        hospital = policy("hospital")
        if self.name == "spark":
            world: Any = SparkWorld(hospital, self._source, gate)
        else:
            url = self._source.database() if self.name == "postgresql" else self._source
            world = ServerWorld(hospital, url, gate)
        self._worlds.append(world)
        return world

    def close(self) -> None:
        for world in self._worlds:
            world.close()


@pytest.fixture(scope="module", params=ENGINES)
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    if request.param == "icu":
        with icu_server() as url:
            place = Opened("icu", url)
            yield place
            place.close()
    else:
        source: Server | Any = request.getfixturevalue("server" if request.param == "postgresql" else "spark")
        place = Opened(request.param, source)
        yield place
        place.close()


# --- which values are counted ---------------------------------------------------------------------------------------


def typed(dialect: Dialect, value: Any, type_: Type) -> str:
    """Return a constant; equal reals have the same form."""
    if value is None:
        return f"CAST(NULL AS {dialect.types[type_]})"
    text = dialect.constant(value)
    return dialect.real_key(text) if type_ is Type.REAL else text


def order_of(engine: Any, key: str, pairs: list[tuple[Any, ...]], keyed: bool, type_: Type) -> dict[Any, int]:
    """Return the rank of each person's pairs of group and value in the engine's own keyed order."""
    text = engine.dialect
    rows = ", ".join(
        f"({number}, {text.constant(person)}, {typed(text, group, Type.TEXT)}, {typed(text, value, type_)})"
        for number, (person, group, value) in enumerate(pairs)
    )
    order = text.keyed_order(key, ["person", *(["ward"] if keyed else []), "value"])
    source = f"(VALUES {rows}) AS p (i, person, ward, value)"
    sql = f"SELECT CAST(i AS BIGINT) AS m0, CAST(row_number() OVER (ORDER BY {order}) AS BIGINT) AS m1 FROM {source}"
    placed = engine.run(EngineQuery(sql, (), ("m0", "m1"))).unseal()
    return {pairs[i]: place for i, place in zip(*(column.to_pylist() for column in placed.columns), strict=True)}


def own_pairs(rows: list[Visit], key: str, value: str) -> dict[int, set[Any]]:
    """Return the distinct pairs of each person, without missing values, NaN and unlisted wards."""
    pairs: dict[int, set[Any]] = defaultdict(set)
    for row in rows:
        if row[value] is not None and row[value] == row[value] and not (key == "ward" and row[key] == "attic"):
            pairs[row["patient_id"]].add((row[key] if key else None, row[value]))
    return pairs


@pytest.mark.parametrize("case", CASES)
def test_the_values_counted_are_the_first_of_each_person(opened: Opened, case: str) -> None:
    sql, key, value, type_ = CASES[case]
    world = opened.recording
    for seed, most in ((0, 2),) if opened.name == "spark" else ((0, 1), (0, 3), (1, 2), (1, 7)):
        rows = generated(seed, 12)
        world.load(database(rows))
        with world.options([f"dp.max_values = {most}"]):
            observed = world.observe(sql)
        assert observed.outcome == "answered"
        (secret,) = set(re.findall(r"'([0-9a-f]{64})'", observed.engine_sql[0]))
        pairs = own_pairs(rows, key, value)
        listed = [(person, *pair) for person, own in pairs.items() for pair in own]
        expected = by_definition(pairs, order_of(world.engine, secret, listed, bool(key), type_), most)
        numbers = counted(observed.blocks[0])
        assert {group[0] if key else None: count for group, count in numbers.items()} == expected
        assert most > 3 or sum(expected.values()) < sum(len({v for _, v in own}) for own in pairs.values())


def test_the_two_zeros_are_one_value_and_nan_is_none(opened: Opened) -> None:
    """Twenty persons have both zeros, NaN and a unique value: max_values = 2 is enough to count all of them."""
    rows = [
        {"visit_id": 4 * person + n, "patient_id": person, "ward": "er", "cost": cost}
        for person in range(20)
        for n, cost in enumerate((0.0, -0.0, float("nan"), person + 1.5))
    ]
    opened.recording.load(database(rows))
    with opened.recording.options(["dp.max_values = 2"]):
        observed = opened.recording.observe(CASES["reals"][0])
    assert counted(observed.blocks[0]) == {("er",): 21}


SHA256 = {
    "duckdb": "sha256({})",
    "postgresql": "encode(sha256(convert_to({}, 'UTF8')), 'hex') COLLATE \"C\"",
    "spark": "sha2({}, 256)",
}


def common_order(self: Dialect, key: str, content: list[str]) -> str:
    """Replace the engine's own hash by one that all engines share, over texts in which integral reals have no fraction."""
    texts = [f"coalesce(replace(CAST({item} AS {self.types[Type.TEXT]}), '.0', ''), '-')" for item in content]
    return f"({SHA256[self.name].format(' || '.join(texts))})"


@pytest.fixture
def one_order(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all engines order values alike."""
    dialects: list[type[Dialect]] = [DuckDBDialect, PostgreSQLDialect]
    if opened.name == "spark":
        from dpsql.engine.spark.dialect import SparkDialect

        dialects.append(SparkDialect)
    for dialect in dialects:
        monkeypatch.setattr(dialect, "keyed_order", common_order)
        monkeypatch.setattr(dialect, "order_below", Dialect.order_below)  # limits are those of the engine's own hash


def answers(world: ObservedSession, questions: list[tuple[tuple[str, ...], str]]) -> list[Any]:
    """Return the rows of each answer, without noise."""
    seen = []
    for settings, sql in questions:
        with world.options([*settings, "dp.shrinkage = off"]):
            seen.append(sorted(map(repr, world.session.execute(sql).rows())))
    return seen


def test_the_answer_without_noise_is_that_of_duckdb(opened: Opened, one_order: None) -> None:
    """The answers agree for texts, reals and integers with many repetitions; all engines drop the same rows."""
    bounds = [settings for settings in SETTINGS if opened.name != "spark" or "dp.max_count = 3" not in settings]
    asked = [(settings, sql) for settings in bounds for sql in (TOTAL, BY_WARD, BY_DIAGNOSIS, PRESENT)]
    asked += [(("dp.max_values = 2",), sql) for sql, *_ in CASES.values()]
    if opened.name == "spark":
        asked = asked[::4] + asked[-3:]  # Spark compiles each query anew
    there, here = opened.world(NoiselessGate(2)), World(policy("hospital"), NoiselessGate(2))
    data = database(generated(5, 40))
    for world in (there, here):
        world.load(data)
    ours, theirs = answers(there, asked), answers(here, asked)
    for (settings, sql), left, right in zip(asked, ours, theirs, strict=True):
        assert left == right, f"{sql}\n{settings}"
    assert len({repr(rows) for rows in theirs}) >= 5  # not all of them are empty


# --- how far one unit moves the counts ------------------------------------------------------------------------------


def test_people_who_share_values_move_no_group_by_more_than_their_places(opened: Opened) -> None:
    """Removing each person in turn lowers the total by at most max_values, never raises it, and lowers all groups together by at
    most that. Spark tests only one hospital, because it compiles each query anew."""
    for seed in (101,) if opened.name == "spark" else (101, 102):
        move_no_group_by_more(opened, generated(seed, 9))


def move_no_group_by_more(opened: Opened, rows: list[Visit]) -> None:
    """Compare the numbers of one hospital with those after removing each of its people (on Spark: some of them)."""
    short, world = opened.name == "spark", opened.recording
    questions = [(most, sql) for most in ((2,) if short else (1, 2, 4)) for sql in (TOTAL, CASES["texts"][0])]

    def numbers(left: list[Visit]) -> list[dict[Any, int]]:
        world.load(database(left))
        seen = []
        for most, sql in questions:
            with world.options([f"dp.max_values = {most}"]):
                seen.append(world.observe(sql).blocks[0].terms["t0"])
        return seen

    whole, moved = numbers(rows), 0
    people = sorted({row["patient_id"] for row in rows})
    for person in people[:3] if short else people:
        less = numbers([row for row in rows if row["patient_id"] != person])
        for (most, _), before, after in zip(questions, whole, less, strict=True):
            falls = [before[group] - after.get(group, 0) for group in before]
            assert min(falls) >= 0 and sum(falls) <= most
            moved += sum(falls)
    assert moved > 0


@pytest.mark.parametrize("sql", [TOTAL, BY_WARD])
def test_the_claim_is_reached_and_is_no_larger(opened: Opened, sql: str) -> None:
    """A newcomer with twenty unique values moves the number by exactly max_values, wherever they are."""
    base, world = generated(5, 6), opened.recording
    newcomer = [
        {"visit_id": 1000 + n, "patient_id": 77, "ward": WARDS[n % 3], "code": 500 + n, "nights": 2} for n in range(20)
    ]
    for most in (7,) if opened.name == "spark" else (1, 7, 19):
        sums = []
        for rows in (base, base + newcomer):
            world.load(database(rows))
            with world.options([f"dp.max_values = {most}"]):
                block = world.observe(sql).blocks[0]
            sums.append(sum(block.terms["t0"].values()))
            assert block.noises["t0"].sensitivity.l1 == most
        assert sums[1] - sums[0] == most
