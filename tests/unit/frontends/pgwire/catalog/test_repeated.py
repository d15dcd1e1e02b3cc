"""Catalog questions are computed once in each state of a connection, and anew where their answers change."""

import re

import psycopg
import pyarrow as pa
import pytest
from support.places import CLINIC
from support.served_clinic import Served

from dpsql.frontends.pgwire.catalog import CHANGING, Catalog
from dpsql.frontends.pgwire.catalog.shape import static
from dpsql.frontends.pgwire.constants.answers import REGISTER
from dpsql.policy import parse_policy


def test_every_changing_function_is_known_by_its_name() -> None:
    rows = static("pg_proc")
    changing = {name for name, kind in zip(rows["proname"], rows["provolatile"], strict=True) if kind == "v"}
    stays = {"pg_cancel_backend", "pg_terminate_backend", "pg_notify", "pg_blocking_pids", "pg_jit_available"}
    stays |= {"pg_safe_snapshot_blocking_pids"}
    stays |= {
        "pg_partition_tree",
        "pg_partition_ancestors",
        "nextval",
        "currval",
        "setval",
        "lastval",
        "pg_last_wal_receive_lsn",
        "pg_lock_status",
        "pg_prepared_xact",
        "pg_last_wal_replay_lsn",
    }  # all of these return the same here
    sizes = re.compile(r"pg_\w+_size|pg_relation_filenode|pg_is_\w+|pg_show_all_settings|pg_current_wal\w+")
    assert {n for n in changing & REGISTER.keys() if not CHANGING.search(n) and not sizes.fullmatch(n)} <= stays


def test_the_same_question_in_the_same_state_is_asked_once() -> None:
    catalog, asked = Catalog(parse_policy(CLINIC), "ann"), list[str]()

    def ask(text: str, state: object) -> int:
        def answer() -> tuple[str, pa.Table]:
            asked.append(text)
            return "columns", pa.table({"n": [len(asked)]})

        columns, rows = catalog.repeated(text, (state,), answer)
        return int(rows["n"][0].as_py()) if columns == "columns" else 0

    assert [ask("SELECT 1", 1), ask("SELECT 1", 1), ask("SELECT 1", 2), ask("SELECT 1", 1)] == [1, 1, 2, 1]
    assert [ask("SELECT now()", 1), ask("SELECT now()", 1)] == [3, 4]
    large = ((), pa.table({"n": list(range(100_000))}))
    assert all(catalog.repeated("SELECT 2", (), lambda: large) is large for _ in range(2))
    assert catalog.repeated("SELECT 2", (), lambda: ((), pa.table({"n": [0]})))[1].num_rows == 1, (
        "a large one is not kept"
    )
    answers = iter(((), pa.table({"n": [number]})) for number in range(2))
    large_state = [catalog.repeated("SELECT 3", "x" * 200_000, lambda: next(answers), 200_000) for _ in range(2)]
    assert [rows["n"][0].as_py() for _, rows in large_state] == [0, 1], "nor one with long parameters"
    types = iter([("int4",), ("int8",), ("text",), ("date",)])
    read = [catalog.typed(text, state, lambda: next(types), 0) for text, state in (("a", 1), ("a", 1), ("a", 2))]
    assert read == [("int4",), ("int4",), ("int8",)]
    assert catalog.typed("a", 1, lambda: next(types), 200_000) == ("text",), "nor one with a long state"


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
