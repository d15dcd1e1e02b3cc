"""No value of a column decides whether a question is answered by PostgreSQL: sources with and without one person differ in noise
alone, for every type that a policy may name and values at each limit."""

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.effort import NIGHTLY
from support.places import ROOT
from support.postgres_source import Server, server
from support.server_sources import (
    POSTGRESQL,
    ROWS_OF_EACH,
    TYPES_OF_POSTGRESQL,
    Kind,
    differences,
    policy_of,
    questions,
    rows_of,
)

from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.engine.postgresql.literals import ENUM, READABLE
from dpsql.planning.planner import Planner
from dpsql_audit.observation import Observed, ObservedSession

__all__ = ["server"]
HOSTILE = range(0, max(len(kind.values) for kind in POSTGRESQL), 1 if NIGHTLY else ROWS_OF_EACH)
"""Places of the first value of an additional person: so many rows with the next values are added at once."""
QUESTIONS = None if NIGHTLY else 10
NUMBERS = itertools.count()
SHAPES = {
    "table": "CREATE TABLE {place} AS SELECT * FROM {base}", "view": "CREATE VIEW {place} AS SELECT * FROM {base}",
    "materialized view": "CREATE MATERIALIZED VIEW {place} AS SELECT * FROM {base}",
    "partitions": "CREATE TABLE {place} (LIKE {base}) PARTITION BY LIST (person); "
    "CREATE TABLE {place}_eve PARTITION OF {place} FOR VALUES IN ('eve'); CREATE TABLE {place}_rest PARTITION OF {place} DEFAULT; "
    "INSERT INTO {place} SELECT * FROM {base}",
}  # fmt: skip


class Schema(ObservedSession):
    """A session over one schema of a database, whose name is left out of the texts that are compared."""

    def __init__(
        self, url: str, kinds: tuple[Kind, ...], hostile: int | None, folder: Path, planner: Planner | None, **more: Any
    ):
        """Create the schema. `more`: `shape`, the statement that makes the table from its rows; `by_rows`."""
        self._name = f"s{next(NUMBERS)}"
        shape = more.pop("shape", SHAPES["table"])
        columns = ", ".join(f"c{number} {kind.server_type}" for number, kind in enumerate(kinds))
        values = ", ".join(f"({', '.join(row)})" for row in rows_of(kinds, hostile))
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(f"CREATE SCHEMA {self._name}")
            base = f"{self._name}.base"
            owner.execute(f"CREATE TABLE {base} (person text, {columns})")
            owner.execute(f"INSERT INTO {base} VALUES {values}")
            owner.execute(shape.format(place=f"{self._name}.t", base=base))
        policy = policy_of(kinds, url, f"{self._name}.t", folder, **more)
        super().__init__(policy, PostgreSQLEngine(policy), planner=planner)

    def observe(self, sql: str, parameters: Any = None) -> Observed:
        seen = super().observe(sql, parameters)
        return replace(seen, engine_sql=[re.sub(r'"s[0-9]+"', '"s"', text) for text in seen.engine_sql])


@pytest.fixture(scope="module")
def url(server: Server) -> Iterator[str]:
    place = server.database()
    with psycopg.connect(place, autocommit=True) as owner:
        owner.execute(TYPES_OF_POSTGRESQL)
    yield place


def test_every_type_that_is_read_has_values_here() -> None:
    named = {
        (kind.type, {"mood": ENUM, "word": "character varying"}.get(kind.server_type, kind.server_type.split("(")[0]))
        for kind in POSTGRESQL
    }
    assert named == {(type_.value, name) for type_, names in READABLE.items() for name in names}


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("shape", SHAPES if NIGHTLY else ["table"])
def test_no_value_decides_whether_a_question_is_answered(url: str, tmp_path: Path, shape: str, by_rows: bool) -> None:
    rng, more = random.Random(f"{shape} {by_rows}"), {"shape": SHAPES[shape], "by_rows": by_rows}
    base = Schema(url, POSTGRESQL, None, tmp_path, None, **more)
    asked = list(questions(POSTGRESQL, rng, QUESTIONS if shape == "table" or QUESTIONS else 30))
    if by_rows:
        asked = [sql for sql in asked if "person" not in sql]
    before = [base.observe(sql) for sql in asked]
    assert sum(seen.outcome == "answered" for seen in before) >= len(asked) * 3 / 4
    for hostile in HOSTILE:
        side = Schema(url, POSTGRESQL, hostile, tmp_path, base.session.planner if hostile else None, **more)
        for sql, left in zip(asked, before, strict=True):
            # Under row privacy several rows are added, so only outcomes are compared.
            right = side.observe(sql)
            found = [] if by_rows and left.outcome == right.outcome else differences(base, sql, left, right)
            assert found == [], f"{found}\n{sql}\nvalues from {hostile} on"
        side.engine.close()
    base.engine.close()


def test_no_text_decides_whether_a_recommended_view_is_answered(url: str, tmp_path: Path) -> None:
    """Texts are read as other types by the casts of docs/postgresql.md, which are NULL where they do not apply."""
    function = re.search(
        r"CREATE FUNCTION try_date.*?END \$\$;",
        (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert function is not None
    texts = next(kind.values for kind in POSTGRESQL if kind.server_type == "text")
    kinds = (Kind("integer", "text", ("'7'", *texts)), Kind("date", "text", ("'2024-02-29'", *texts)))
    shape = (
        "CREATE VIEW {place} AS SELECT person, CASE WHEN c0 ~ '^ *[-+]?[0-9]{{1,9}} *$' THEN c0::integer END AS c0, "
        "public.try_date(c1) AS c1 FROM {base}"
    )
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(function.group(0))
    asked = ["SELECT COUNT(*), SUM(c0), COUNT(c1) FROM t", "SELECT date_trunc('month', c1), COUNT(*) FROM t GROUP BY 1"]
    base = Schema(url, kinds, None, tmp_path, None, shape=shape)
    before = [base.observe(sql) for sql in asked]
    assert {seen.outcome for seen in before} == {"answered"}
    for hostile in range(0, len(texts), 1 if NIGHTLY else ROWS_OF_EACH):
        side = Schema(url, kinds, hostile, tmp_path, base.session.planner, shape=shape)
        found = [differences(base, sql, left, side.observe(sql)) for sql, left in zip(asked, before, strict=True)]
        assert found == [[], []], hostile
        side.engine.close()
    base.engine.close()


def test_a_cast_that_fails_is_found(url: str, tmp_path: Path) -> None:
    """The test above has power: a view that is not total answers without a person, and fails with one."""
    kinds = (Kind("integer", "text", ("'7'", "'n/a'")),)
    shape = "CREATE VIEW {place} AS SELECT person, CAST(c0 AS integer) AS c0 FROM {base}"
    base, side = (Schema(url, kinds, hostile, tmp_path, None, shape=shape) for hostile in (None, 1))
    sql = "SELECT SUM(c0) FROM t"
    assert differences(base, sql, base.observe(sql), side.observe(sql)) != []
    for world in (base, side):
        world.engine.close()


def test_a_value_at_which_a_view_fails_closes_no_table(url: str, tmp_path: Path) -> None:
    """Other questions, of anybody, are answered after one that met the value."""
    kinds = (Kind("integer", "text", ("'7'", "'n/a'")), Kind("integer", "integer", ("1", "2")))
    shape = "CREATE VIEW {place} AS SELECT person, CAST(c0 AS integer) AS c0, c1 FROM {base}"
    world = Schema(url, kinds, 1, tmp_path, None, shape=shape, by_rows=True)
    outcomes = [world.observe(f"SELECT SUM({column}) FROM t").outcome for column in ("c0", "c1", "c0")]
    assert [outcome.split()[:2][-1].rstrip(":") for outcome in outcomes] == [
        "engine_failed",
        "answered",
        "engine_failed",
    ]
    world.engine.close()
