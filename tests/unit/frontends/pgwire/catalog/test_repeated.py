"""Catalog questions are computed once in each state of a connection, and anew where their answers change."""

import re

import duckdb
import psycopg
import pyarrow as pa
import pytest
from support.places import CLINIC
from support.served_clinic import Served

from dpsql.frontends.pgwire.catalog import CHANGING, Catalog
from dpsql.frontends.pgwire.catalog.macros import MACROS
from dpsql.policy import parse_policy
from dpsql.release.confinement import ConfinedPool


def test_every_changing_function_of_the_engine_is_known_by_its_name() -> None:
    names = (
        duckdb.connect()
        .execute(
            "SELECT function_name FROM duckdb_functions() WHERE stability = 'VOLATILE' "
            "OR (stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameters) = 0)"
        )
        .fetchall()
    )
    stays = {"current_database", "current_schema", "txid_current"}  # translated to constants
    assert {name for (name,) in names if not CHANGING.search(name)} <= stays
    called = re.compile(rf"\b({'|'.join(name for (name,) in names if name.isidentifier() and name != 'error')})\(")
    changing = {macro for macro, forms in MACROS.items() if any(called.search(body) for _, body in forms)}
    assert not changing


def test_the_same_question_in_the_same_state_is_asked_once() -> None:
    catalog, asked = Catalog(parse_policy(CLINIC), "ann", ConfinedPool(1)), list[str]()

    def ask(text: str, state: object) -> int:
        def answer() -> pa.Table:
            asked.append(text)
            return pa.table({"n": [len(asked)]})

        return int(catalog.repeated(text, (state,), answer)["n"][0].as_py())

    assert [ask("SELECT 1", 1), ask("SELECT 1", 1), ask("SELECT 1", 2), ask("SELECT 1", 1)] == [1, 1, 2, 1]
    assert [ask("SELECT now()", 1), ask("SELECT now()", 1)] == [3, 4]
    large = pa.table({"n": list(range(100_000))})
    assert all(catalog.repeated("SELECT 2", (), lambda: large) is large for _ in range(2))
    assert catalog.repeated("SELECT 2", (), lambda: pa.table({"n": [0]})).num_rows == 1, "a large answer is not kept"
    answers = iter(pa.table({"n": [number]}) for number in range(2))
    large_state = [catalog.repeated("SELECT 3", "x" * 200_000, lambda: next(answers), 200_000) for _ in range(2)]
    assert [answer["n"][0].as_py() for answer in large_state] == [0, 1], "nor one with long parameters"


@pytest.mark.parametrize(
    ("sql", "change"),
    [
        ("SELECT random()", ""), ("SELECT gen_random_uuid()", ""), ("SELECT clock_timestamp()", ""),
        ("SELECT current_timestamp", ""),
        ("SELECT current_setting('geqo_effort')", "SET geqo_effort = 7"),
        ("SELECT current_setting('dp.epsilon')", "SET dp.epsilon = 0.25"),
        ("SELECT current_schemas(false)", "SET search_path = pg_catalog"),
        ("SELECT 'patients'::regclass::text", "SET search_path = pg_catalog"),
    ],
)  # fmt: skip
def test_an_answer_changes_with_the_state_of_its_connection(served: Served, sql: str, change: str) -> None:
    with psycopg.connect(**served.place, autocommit=True) as connection:
        answers = []
        for statement in ("", change, ""):
            if statement:
                connection.execute(statement)
            answers.append(connection.execute(sql).fetchone())
        assert answers[0] != answers[1] and (answers[1] == answers[2]) == bool(change)


def test_two_connections_have_their_own_process_and_values_their_own_types(served: Served) -> None:
    with (
        psycopg.connect(**served.place, autocommit=True) as first,
        psycopg.connect(**served.place, autocommit=True) as second,
    ):
        processes = {connection.execute("SELECT pg_backend_pid()").fetchone() for connection in (first, second)}
        assert processes == {(first.info.backend_pid,), (second.info.backend_pid,)}
        echoed = [
            connection.execute("SELECT %s AS v", (value,)).fetchone()
            for connection in (first, second)
            for value in (True, 1, 1.0, "1")
        ]
    assert list(map(repr, echoed)) == ["(True,)", "(1,)", "(1.0,)", "('1',)"] * 2
