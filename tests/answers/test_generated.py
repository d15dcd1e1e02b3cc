"""Random queries compared with DuckDB: rows, groups, types, and outputs that claim to be exact or to have a known error."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from fuzz.conftest import examples
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.generated_questions import OuterJoins, Questions, TiedKeys, difference, types

from answers.test_answers import World, build
from dpsql.errors.exceptions import Error

REFUSED = {"unit_sets"}
"""The only refusals that queries of the generator may meet where the engine has rows."""
NOTHING = {"no_rows", "no_groups"}
"""Refusals of questions that no row of any database can answer."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("generated")
    connection = build()
    session = exact_session("answers", connection, folder / "ledger.db", NoiselessGate(1))
    yield connection, session
    session.close()


KINDS: dict[str, Callable[[random.Random], Questions]] = {
    "keys": Questions,
    "keys that may be NULL": lambda source: Questions(source, nullable=True),
    "outer joins": OuterJoins,
    "tied keys": TiedKeys,
}


@pytest.mark.parametrize("kind", KINDS)
def test_generated_answers_without_noise_are_the_engines(world: World, kind: str) -> None:
    connection, session = world
    seen: Counter[str] = Counter()
    for name, source in examples(f"answers/{kind}", 100):
        sql = KINDS[kind](source).one()
        try:
            expected = connection.execute(sql).fetchall()
        except Exception:
            continue  # a set operation of incompatible types
        try:
            release = session.execute(sql)
        except Error as refusal:
            nothing = not any(value for row in expected for value in row)
            assert refusal.slug in (NOTHING | REFUSED if nothing else REFUSED), (name, sql, refusal.text())
            assert not refusal.charged, (name, sql)
            continue
        assert difference(release, expected) is None, (name, sql, difference(release, expected))
        assert types(release, expected) is None, (name, sql, types(release, expected))
        seen["answered"] += 1
        seen["known"] += any(not column.of_groups for column in release.columns)
        seen["of groups"] += any(column.of_groups for column in release.columns)
    assert min(seen["answered"], seen["known"], seen["of groups"]) > 20


@pytest.mark.parametrize(
    ("sql", "other"),
    [
        ("SELECT COUNT(*) FROM a", "SELECT COUNT(*) + 1 FROM a"),
        ("SELECT kind, COUNT(*) FROM a GROUP BY kind", "SELECT kind, COUNT(*) + 1 FROM a GROUP BY kind"),
        ("SELECT kind, COUNT(*) FROM a GROUP BY kind HAVING COUNT(*) > 9", "SELECT 'p', 600"),
        ("SELECT word FROM a GROUP BY word", "SELECT word || 'x' FROM a GROUP BY word"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_noticed(world: World, sql: str, other: str) -> None:
    connection, session = world
    release = session.execute(sql)
    assert difference(release, connection.execute(sql).fetchall()) is None
    assert difference(release, connection.execute(other).fetchall()) is not None
