"""Neighbour tests over real sources: no row may change how other rows are read.

The pairs are sources with and without one hostile unit. Every vector of exact sums moves within what is claimed and charged, an
error never occurs on only one side, and price, plan, notes, engine SQL and catalog are equal. Where the bounded view is prepared,
queries read the same rows as without it.

`DPSQL_NEIGHBOUR_PAIRS` is the minimum number of pairs that a run compares (default 700); `DPSQL_NEIGHBOUR_SEED` selects other
pairs.
"""

import os
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.corpus_neighbours import Pair
from support.hostile_sources import COLUMNS, KINDS, Hostile, Kind, edges, hostile, opened, people, policy, source_types
from support.recording_session import World

from dpsql.engine.contribution_index import ContributionIndex
from dpsql.pricing.pricing import Price
from dpsql_audit.distances import compare
from dpsql_audit.observation import Observed
from dpsql_audit.replay import same_outcome, same_stages

PAIRS = int(os.environ.get("DPSQL_NEIGHBOUR_PAIRS", "700"))
UNITS, QUESTIONS = (6, 11) if PAIRS <= 700 else (8, 16)
SEED = int(os.environ.get("DPSQL_NEIGHBOUR_SEED", "0"))
SEEDS = range(SEED, SEED + -(-PAIRS // (UNITS * QUESTIONS * len(KINDS))))

ALWAYS = 3
"""The first queries of ROWS, which run on every source; the others are sampled."""
ROWS = (
    "SELECT COUNT(*), SUM(amount), AVG(number), COUNT(day), COUNT(moment) FROM events",
    "SELECT kind, COUNT(*), SUM(number), VAR_POP(amount) FROM events GROUP BY kind",
    "SELECT word, COUNT(*) FROM events GROUP BY word",
    "SELECT flag, COUNT(DISTINCT word), COUNT(DISTINCT lower(word)) FROM events GROUP BY flag",
    "SELECT label, COUNT(*), SUM(weight) FROM events JOIN tags USING (word) GROUP BY label",
    "SELECT label, COUNT(*), SUM(amount) FROM events LEFT JOIN tags USING (word) GROUP BY label",
    "SELECT COUNT(*) FROM events WHERE {text} AND {value}",
    "SELECT kind, COUNT(*) FILTER (WHERE {text}), SUM(amount) FILTER (WHERE {value}) FROM events GROUP BY kind",
    "SELECT COUNT(*), SUM(number) FROM events AS e JOIN (SELECT kind, COUNT(*) AS n FROM events GROUP BY kind) AS t USING (kind)",
    "SELECT COUNT(*) FROM events WHERE kind IN (SELECT kind FROM events GROUP BY kind HAVING COUNT(*) > 40)",
    "SELECT COUNT(*), SUM(amount) FROM events WHERE amount <= (SELECT AVG(amount) FROM events)",
    "SELECT COUNT(*), SUM(clamp(length(word), 0, 9)) FROM (SELECT DISTINCT word, kind FROM events WHERE length(word) < 9) AS t",
    "SELECT date_trunc('month', day), COUNT(*), SUM(EXTRACT(dow FROM day)) FROM events GROUP BY 1",
    "SELECT date_trunc('quarter', moment), COUNT(*) FROM events WHERE moment - INTERVAL 1 HOUR < day GROUP BY 1",
    "SELECT COUNT(*) FROM events WHERE date_diff('day', day, moment) = 0 OR moment >= TIMESTAMP '2024-07-01'",
    "SELECT SUM(clamp(CAST(word AS INTEGER), -9, 9)), COUNT(CAST(word AS DATE)), SUM(clamp(CAST(number AS DOUBLE) / amount, 0, 9)) FROM events",
    "SELECT kind, flag, COUNT(*) FROM events GROUP BY ROLLUP (kind, flag)",
    "SELECT upper(trim(word)), COUNT(*) FROM events WHERE word <> '' GROUP BY 1",
    "SELECT COUNT(*) FROM events WHERE EXISTS (SELECT 1 FROM tags WHERE tags.word = events.word AND weight > 1)",
    "SELECT COUNT(*) FROM events WHERE word NOT IN (SELECT word FROM tags)",
    "SELECT number, COUNT(*) FROM events GROUP BY number",
)
OWNED = (
    "SELECT COUNT(DISTINCT person), COUNT(DISTINCT word), SUM(number) FROM events WHERE {text}",
    "SELECT town, COUNT(*), SUM(score), AVG(age) FROM people GROUP BY town",
    "SELECT town, COUNT(*), SUM(amount) FROM events JOIN people USING (person) GROUP BY town",
    "SELECT COUNT(*), SUM(age) FROM people LEFT JOIN events USING (person)",
    "SELECT COUNT(*) FROM events AS a JOIN events AS b ON a.person = b.person AND a.word = b.word",
    "SELECT kind, COUNT(*), SUM(amount) FROM (SELECT *, row_number() OVER (PARTITION BY person ORDER BY word) AS n FROM events) AS t "
    "WHERE n <= 2 GROUP BY kind",
    "SELECT COUNT(*) FROM (SELECT *, lag(word) OVER (PARTITION BY person ORDER BY day, word) AS w FROM events) AS t WHERE w = word",
    "SELECT COUNT(*) FROM (SELECT rank() OVER (PARTITION BY person ORDER BY word DESC) AS r FROM events) AS t WHERE r = 1",
    "SELECT m, COUNT(*) FROM (SELECT person, MIN(word) AS m, MAX(day) AS d FROM events GROUP BY person) AS t GROUP BY m",
    "SELECT SUM(clamp(n, 0, 9)), COUNT(*) FROM (SELECT person, COUNT(DISTINCT word) AS n FROM events GROUP BY person) AS t",
    "SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM events AS e WHERE e.person = p.person AND e.word = p.note)",
    "SELECT COUNT(*) FROM people WHERE person NOT IN (SELECT person FROM events WHERE {text})",
    "SELECT w, COUNT(*) FROM (SELECT word AS w FROM events UNION ALL SELECT note FROM people) AS t GROUP BY w",
    "SELECT note, COUNT(*), COUNT(DISTINCT born) FROM people GROUP BY note",
    "SELECT date_trunc('year', born), COUNT(*) FROM people WHERE member GROUP BY 1",
)
TEXT = (
    "word = 'A'", "word IN ('a', 'Straße')", "word LIKE 'a%'", "word < 'b'", "lower(word) = 'a'", "kind IN ('A', 'a')", "word >= 'Z'",
    "contains(word, ',')", "word ~ '^[a-z]'", "word IS NOT DISTINCT FROM 'STRASSE'", "word || kind = 'Aa'", "length(word) = 1",
    "word ILIKE 'straße'", "replace(word, 'A', 'a') = 'a'", "word BETWEEN 'A' AND 'a'", "split_part(word, ',', 1) = 'x'",
)  # fmt: skip
VALUE = (
    "amount > 1", "number IS NOT NULL", "day >= DATE '2024-03-01'", "flag", "number // 2 = 1", "number / 2 = 1.5", "amount / number > 0",
    "moment < TIMESTAMP '2024-09-01 12:00:00'", "EXTRACT(month FROM day) = 6", "number * 9000000000000000000 > 0", "NOT flag OR flag IS NULL",
    "day + 1 > day", "epoch(moment) > 0", "CAST(amount AS INTEGER) % 2 = 0",
)  # fmt: skip
SETTINGS: tuple[tuple[str, ...], ...] = (
    (), (), (), ("dp.max_groups = 1",), ("dp.max_rows_per_group = 1",), ("dp.max_groups = 2", "dp.max_rows_per_group = 2"),
    ("dp.mechanism = gaussian",),
)  # fmt: skip
CLIPS: tuple[tuple[str, ...], ...] = (
    ("dp.max_values = 2",),
    ("dp.max_total = 20", "dp.max_count = 2"),
    ("dp.max_count = 1", "dp.mechanism = gaussian"),
)
CATALOG = ("SHOW TABLES", *(f"DESCRIBE {table}" for table in COLUMNS), "SHOW dp.budget")


@dataclass(frozen=True)
class Side:
    """One side of a pair: a source in its own folder, with its own prepared views."""

    world: World
    folder: Path

    @contextmanager
    def at_home(self, options: Sequence[str] = ()) -> Iterator[None]:
        with patch.dict(os.environ, {"DPSQL_CACHE": str(self.folder / "cache")}), self.world.options(list(options)):
            yield

    def observe(self, sql: str, options: list[str]) -> Observed:
        """Run a query once. The folder's name, and the name of a view for one version of its files, are replaced, so that they are
        equal on both sides."""
        with self.at_home(options):
            seen = self.world.observe(sql)
        texts = [text.replace(str(self.folder), "FOLDER") for text in seen.engine_sql]
        seen.engine_sql = [re.sub("[0-9a-f]+_[0-9a-f]+ (in place|counted)", r"VERSION \1", text) for text in texts]
        return seen

    def explain(self, sql: str, options: list[str]) -> str:
        with self.at_home(options):
            return repr(self.world.session.explain(sql)).replace(str(self.folder), "FOLDER")

    def price(self, sql: str, options: list[str]) -> Price:
        session = self.world.session
        with self.at_home(options):
            return session.plan(session.planner.parse(sql, None)).price

    def prepare(self) -> None:
        """Write the bounded view of every table."""
        key = self.world.ledger.witness.key
        with self.at_home():
            done = ContributionIndex(self.world.policy, self.world.engine, lambda: key).prepare(copy=True)
        assert {one.state for one in done} == {"written"}, done


@dataclass
class Place:
    """One source of a kind, and the same source with each of several additional hostile units."""

    kind: Kind
    seed: int
    folder: Path

    def __post_init__(self) -> None:
        rng = random.Random(f"{self.kind.name} {self.seed}")
        self.by_rows = self.seed % 3 == 1 and not self.kind.prepared
        self.types = source_types(self.kind, rng)
        self.base = people(rng)
        lined = self.kind.ending.startswith(".csv")
        found = edges(self.kind, self.types)
        self.units = [
            hostile(rng, number, found, self.by_rows, lined) for number in rng.sample(range(3, 24), UNITS - 3)
        ]
        self.first = [hostile(rng, number, found, self.by_rows, lined) for number in range(3)]
        self.units += self.first
        self.rng = rng

    def side(self, unit: Hostile | None, name: str, planner: Any = None) -> Side:
        """Return the source with this unit, in its own folder."""
        folder = self.folder / name
        rows = {table: list(rows) for table, rows in self.base.items()}
        for table in ("people", "events"):
            random.Random(self.seed).shuffle(rows[table])
        for table, more in (unit.rows if unit else {}).items():
            rows[table] = [*more, *rows[table]] if unit in self.first else [*rows[table], *more]
        known = policy(folder, self.kind.ending, self.by_rows, self.kind.csv)
        engine = opened(self.kind, known, folder, rows, unit.lines if unit else {}, self.types)
        return Side(World(known, planner=planner, engine=engine), folder)

    def questions(self) -> Iterator[tuple[str, list[str]]]:
        asked = ROWS if self.by_rows else ROWS + OWNED
        for shape in [*asked[:ALWAYS], *self.rng.sample(asked[ALWAYS:], QUESTIONS - ALWAYS)]:
            sql = shape.replace("{text}", self.rng.choice(TEXT)).replace("{value}", self.rng.choice(VALUE))
            options = list(self.rng.choice(SETTINGS if self.by_rows else SETTINGS + CLIPS))
            yield sql, [] if "DISTINCT" in sql and "FROM (SELECT DISTINCT" in sql else options

    def said(self, sql: str, options: list[str], unit: Hostile) -> str:
        """Return everything needed to reproduce a failure."""
        return (
            f"{self.kind.name}, seed {self.seed}, {'one row' if self.by_rows else 'unit'} {unit.name}, in {self.folder}\n"
            f"{options} {sql}\ntypes: {self.types}\nrows: {unit.rows}\nlines: {unit.lines}"
        )


def problems(price: Price, pair: Pair) -> list[str]:
    """Return observable differences between two neighbours, and distances beyond the claims."""
    left, right = same_stages(price, pair.left, pair.right)
    verdict = same_outcome(left, right)
    if not verdict.problems:
        verdict.problems += compare(price, left.blocks, right.blocks).problems
    return verdict.problems


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_sources_without_a_unit_move_within_the_claim(kind: Kind, seed: int, tmp_path: Path) -> None:
    place = Place(kind, seed, tmp_path)
    base = place.side(None, "base")
    planner = base.world.session.planner
    sides = [
        (unit, place.side(unit, f"unit{number}", planner if number else None))
        for number, unit in enumerate(place.units)
    ]
    asked = list(place.questions())
    before = [base.observe(*question) for question in asked]
    prices = [base.price(*question) for question in asked]
    if kind.prepared:
        base.prepare()
        assert [base.observe(*question).blocks for question in asked] == [seen.blocks for seen in before]
        before = [base.observe(*question) for question in asked]
    pairs = 0
    for unit, side in sides:
        unprepared = [side.observe(*question).blocks for question in asked] if kind.prepared else []
        if kind.prepared:
            side.prepare()
        for statement in CATALOG:
            assert side.observe(statement, []).answer == base.observe(statement, []).answer
        for number, question in enumerate(asked):
            after = side.observe(*question)
            found = problems(prices[number], Pair(unit.name, before[number], after, False))
            assert found == [], f"{found}\n{place.said(*question, unit)}"
            if kind.prepared:
                assert after.blocks == unprepared[number], f"prepared rows differ\n{place.said(*question, unit)}"
            if unit is place.units[0]:
                assert side.explain(*question) == base.explain(*question), place.said(*question, unit)
            pairs += 1
    assert pairs == UNITS * QUESTIONS


def test_enough_neighbouring_sources_are_compared() -> None:
    assert len(SEEDS) * len(KINDS) * UNITS * QUESTIONS >= PAIRS
