"""Hand-written statements of all kinds have DuckDB's own answers without noise: rows, groups, types, order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from support.exact_session import exact_session, plain, rows_of, same
from support.gates import NoiselessGate
from support.generated_questions import difference, types

from answers import coverage_data
from answers.test_answers import World, build


def statements() -> list[tuple[str, str]]:
    """Return database and text of each statement of suite.sql."""
    found: list[tuple[str, str]] = []
    database = ""
    for line in (Path(__file__).parent / "suite.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("-- database: "):
            database = line.removeprefix("-- database: ")
        elif line and not line.startswith("--"):
            found.append((database, line))
    return found


SUITE = statements()


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    folder = tmp_path_factory.mktemp("suite")
    made: dict[str, World] = {}
    for name in dict.fromkeys(database for database, _ in SUITE):
        connection = build() if name == "answers" else coverage_data.build(name)
        policy = coverage_data.POLICIES.get(name, name)
        made[name] = (connection, exact_session(policy, connection, folder / f"{name}.db", NoiselessGate(1)))
    yield made
    for _, session in made.values():
        session.close()


@pytest.mark.parametrize(("database", "sql"), SUITE, ids=[f"{database}-{at}" for at, (database, _) in enumerate(SUITE)])
def test_statements_without_noise_are_the_engines(worlds: dict[str, World], database: str, sql: str) -> None:
    connection, session = worlds[database]
    expected = connection.execute(sql).fetchall()
    release = session.execute(sql)
    assert difference(release, expected) is None
    assert types(release, expected) is None
    answer = rows_of(release)
    shown = [at for at, column in enumerate(release.columns) if not (column.of_groups or column.if_all_exist)]
    assert shown  # otherwise nothing was compared
    if sqlglot.parse_one(sql, read="duckdb").args.get("order") is not None:
        wanted = [tuple(map(plain, row)) for row in expected]
        present = [row for row in answer if any(same(row[shown[0]], other[shown[0]]) for other in wanted)]
        for left, right in zip(present, wanted, strict=True):
            assert all(same(left[at], right[at]) for at in shown)


def test_the_suite_repeats_no_statement() -> None:
    assert len(SUITE) >= 100 and len(set(SUITE)) == len(SUITE)
