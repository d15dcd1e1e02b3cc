"""On a PostgreSQL server with ICU, whose columns treat upper and lower case as equal, no answer changes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from support.exact_session import exact_session
from support.icu_server import icu_server

from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.policy import load_policy
from dpsql.policy.types import Preparation
from dpsql.session.session import Session
from unit.engine.test_collations import CASES, POLICY

REFUSED = "roots and powers"
FILL = """
CREATE SCHEMA copies;
CREATE TABLE persons (person text COLLATE without_case);
CREATE TABLE codes (code text COLLATE without_case, kind text COLLATE without_case);
CREATE TABLE notes (person text COLLATE without_case, word text COLLATE without_case, place integer, weight double precision,
    seen timestamptz);
INSERT INTO persons SELECT 'p' || i FROM generate_series(0, 199) AS t(i) UNION ALL SELECT 'P7';
INSERT INTO notes SELECT person, CASE WHEN v = 0 THEN 'b' WHEN ascii(person) = ascii('P') THEN 'a' ELSE 'A' END, v, 0,
    TIMESTAMPTZ '2020-06-01 12:00:00+00' FROM persons, generate_series(0, 1) AS t(v);
INSERT INTO codes VALUES ('a', 'small'), ('A', 'large'), ('b', 'b');
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with icu_server() as running:
        with psycopg.connect(running, autocommit=True) as owner:
            owner.execute(FILL)
            assert owner.execute("SELECT count(DISTINCT word) FROM notes").fetchone() == (2,)  # A and a are equal
        yield running


@pytest.fixture(scope="module", params=["unprepared", "prepared"])
def session(url: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("icu")
    (folder / "notes.yaml").write_text(POLICY.replace("duckdb:///notes.duckdb", f'"{url}"'))
    place = Preparation(False, "copies" if request.param == "prepared" else None)
    policy = replace(load_policy(folder / "notes.yaml"), data_version="first", prepare=place)
    with exact_session(policy, None, folder / "ledger.db", opened=PostgreSQLEngine) as opened:
        if request.param == "prepared":
            assert {state.state for state in opened.context.index.prepare()} == {"written"}
        yield opened


@pytest.mark.parametrize("case", sorted(CASES.keys() - {REFUSED}))
def test_no_collation_changes_an_answer(session: Session, case: str) -> None:
    sql, expected = CASES[case]
    answer = list(session.execute(sql).rows())
    assert sorted(answer, key=str) == sorted(expected, key=str)


def test_patterns_and_places_are_those_of_bytes(session: Session) -> None:
    """The server itself refuses patterns and positions in texts with such a collation."""
    for condition, rows in (
        ("word LIKE 'A%'", 200), ("person LIKE 'P_'", 2), ("strpos(person, 'P') = 1", 2), ("word > 'B'", 202),
        ("replace(word, 'a', 'c') = 'c'", 1), ("split_part(person, 'P', 2) = '7'", 2), ("contains(word, 'a')", 1),
        ("starts_with(person, 'P')", 2),
    ):  # fmt: skip
        assert list(session.execute(f"SELECT COUNT(*) FROM notes WHERE {condition}").rows()) == [(rows,)], condition
