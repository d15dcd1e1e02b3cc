"""Aggregates of the public rows that an outer join keeps are those of these rows alone: DuckDB's values, exact and free."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.generated_questions import difference
from support.seeds import seeds

from dpsql.errors.exceptions import Refusal
from dpsql.policy import load_policy
from dpsql.session.session import Session

POLICY = """
dataset: places
source: duckdb:///places.duckdb
privacy_unit: {table: people, column: person}
budget: {epsilon: 1000, delta: 1e-6}
per_query: {epsilon: 1}
ledger: sqlite:///places.db
tables:
  people:
    max_rows: 1
    primary_key: [person]
    columns: {person: {type: integer, nullable: false}}
  visits:
    max_rows: 60
    primary_key: [visit]
    foreign_keys: {person: people.person, place: places.place}
    columns:
      visit: {type: integer, nullable: false}
      person: {type: integer, nullable: false}
      place: {type: integer}
      cost: {type: integer, lower: 0, upper: 90}
  places:
    public: true
    primary_key: [place]
    columns:
      place: {type: integer, nullable: false}
      town: {type: text}
      size: {type: integer}
"""
KEPT = (
    "COUNT(DISTINCT p.place)", "COUNT(DISTINCT size)", "MAX(p.size)", "min(town)", "MAX(p.size + p.place)", "MIN(size) * 2",
    "COUNT(DISTINCT p.size % 3) + 1", "MAX(DISTINCT p.town)",
)  # fmt: skip
PAIRED = ("COUNT(v.visit)", "SUM(cost)", "COUNT(DISTINCT v.person)", "COUNT(DISTINCT p.size + v.cost)")
WHERE = (
    "",
    " WHERE p.size > (SELECT AVG(size) FROM places) / 2",
    " WHERE p.size > 2",
    " WHERE town IS NOT NULL OR size IS NULL",
    " WHERE p.place <> 3 AND p.size + 1 < 9",
)
JOINS = (
    "places p LEFT JOIN visits v ON v.place = p.place",
    "visits v RIGHT JOIN places p ON v.place = p.place",
    "(SELECT * FROM places) p LEFT JOIN visits v ON v.place = p.place AND v.cost > 20",
    "places p LEFT JOIN visits v ON v.place = p.place LEFT JOIN people u ON u.person = v.person",
    "places AS p(place, town, size) LEFT JOIN visits v ON v.place = p.place",
    "places AS p(size, town, place) LEFT JOIN visits v ON v.place = p.size",
    "(VALUES (1, 'a', 5), (2, 'b', NULL), (9, 'c', 3)) AS p(place, town, size) LEFT JOIN visits v ON v.place = p.place",
)
GROUPS = ("{}", "p.{}", "{number}", "ALL")


def rows(connection: duckdb.DuckDBPyConnection, chance: random.Random) -> None:
    """Fill the tables: some places have no visit, some visits no place, and any value may be missing."""
    tables = {
        "places": [(0, "a", 5)] + [(n, chance.choice(["a", "b", "c", None]), chance.choice([*range(9), None])) for n in range(1, chance.randint(2, 20))],
        "people": [(n,) for n in range(12)],
        "visits": [(n, chance.randrange(12), chance.choice([*range(8), None]), chance.choice([*range(90), None])) for n in range(60)],
    }  # fmt: skip
    types = {"places": "place BIGINT, town VARCHAR, size BIGINT", "people": "person BIGINT",
             "visits": "visit BIGINT, person BIGINT, place BIGINT, cost BIGINT"}  # fmt: skip
    for name, values in tables.items():
        fields = ", ".join("?" * (types[name].count(",") + 1))
        connection.execute(f"CREATE OR REPLACE TABLE {name} ({types[name]})")
        connection.executemany(f"INSERT INTO {name} VALUES ({fields})", values)


@contextmanager
def world(folder: Path, chance: random.Random) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    (folder / "policy.yaml").write_text(POLICY)
    with duckdb.connect(config={"threads": 1}) as connection:
        rows(connection, chance)
        policy = load_policy(folder / "policy.yaml")
        with exact_session(policy, connection, folder / "ledger.db", NoiselessGate(1)) as session:
            yield connection, session


def question(chance: random.Random) -> Iterator[str]:
    """Return a question with aggregates of kept rows, and the same without them."""
    keys = chance.sample(["town", "size"], chance.randint(0, 2))
    kept, paired = chance.sample(KEPT, chance.randint(1, 3)), chance.sample(PAIRED, chance.randint(1, 2))
    written = [chance.choice(GROUPS) for _ in keys]
    group = ", ".join(form.format(key, number=n) for n, (form, key) in enumerate(zip(written, keys, strict=True), 1))
    group = "" if not keys else " GROUP BY ALL" if "ALL" in written else f" GROUP BY {group}"
    having = chance.choice(["", " HAVING MAX(p.place) > 4", " HAVING COUNT(DISTINCT p.size) <> 2 OR MIN(town) = 'a'"])
    tail = f" FROM {chance.choice(JOINS)}{chance.choice(WHERE)}{group}{having if keys else ''}"
    named = [f"{call} AS k{n}" for n, call in enumerate(kept)]
    counts = [f"{call} AS m{n}" for n, call in enumerate(paired)]
    mixed = chance.sample([*named, *counts], len(named) + len(counts))
    return (f"SELECT {', '.join([*keys, *some])}{tail}" for some in (mixed, counts))


@pytest.mark.parametrize("seed", seeds(24, 1))
def test_kept_rows_have_the_engines_values(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with world(tmp_path, chance) as (connection, session):
        for _ in range(4):
            asked, without = question(chance)
            release = session.execute(asked)
            assert difference(release, connection.execute(asked).fetchall()) is None, asked
            called = [column for column in release.columns if column.name[0] in "km"]
            assert all(column.noisy == column.name.startswith("m") for column in called)
            assert session.explain(asked).price == session.explain(without).price


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT COUNT(*), MAX(p.size) FROM places p LEFT JOIN visits v ON v.place = p.place",
        "SELECT SUM(p.size), MAX(p.size) FROM places p LEFT JOIN visits v ON v.place = p.place",
        "SELECT COUNT(DISTINCT p.size) FROM places p LEFT JOIN visits v ON v.place = p.place",
        "SELECT COUNT(v.visit), MAX(p.size) FROM places p LEFT JOIN visits v ON v.place = p.place GROUP BY v.cost",
        "SELECT town, COUNT(v.visit), MAX(p.size) AS m FROM places p LEFT JOIN visits v ON v.place = p.place GROUP BY town "
        "QUALIFY RANK() OVER (ORDER BY m) > 1",
        "SELECT COUNT(v.visit), MAX(p.size) FROM places p LEFT JOIN visits v ON v.place = p.place "
        "WHERE EXISTS (SELECT 1 FROM places q WHERE q.size < p.size)",
    ],
)
def test_what_single_people_decide_stays_refused(tmp_path: Path, asked: str) -> None:
    with world(tmp_path, random.Random(1)) as (_, session), pytest.raises(Refusal) as refusal:
        session.execute(asked)
    assert (refusal.value.slug, refusal.value.charged) == ("join", False)
