"""Statements whose memory or time the engine does not bound run in a process that the kernel bounds."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

import pyarrow as pa
import pytest

from dpsql.errors.exceptions import Error
from dpsql.release import confinement
from dpsql.release.confinement import ConfinedDuckDB, ConfinedError, ConfinedPool, DatabaseImage
from dpsql.release.sandbox import Sandbox

EMPTY = DatabaseImage("empty")
DOUBLED = "SELECT length(t) FROM (SELECT repeat('x', 1000000000) || repeat('y', 1000000000) AS t)"
LONG = "SELECT length(replace(lpad('', 300000000, 'ab'), 'b', 'a'))"
"""Nested functions, each of which runs for longer than the test waits, and none of which checks for an interrupt."""


@pytest.fixture
def confined() -> Iterator[ConfinedDuckDB]:
    found = ConfinedDuckDB()
    yield found
    found.stop()


def asked(
    confined: ConfinedDuckDB, sql: str, seconds: float = 30.0, rows: int = 10, **tables: pa.Table
) -> list[object]:
    return list(confined.query(EMPTY, sql, tables, most_rows=rows, seconds=seconds).to_pylist())


def slug(confined: ConfinedDuckDB, sql: str, seconds: float = 30.0) -> str:
    with pytest.raises((Error, ConfinedError)) as caught:
        asked(confined, sql, seconds)
    return caught.value.slug if isinstance(caught.value, Error) else str(caught.value).partition(" Error:")[0]


def test_rows_come_back_with_their_types(confined: ConfinedDuckDB) -> None:
    table = pa.table({"a": pa.array([1, None], pa.int64()), "b": pa.array(["x", "y"])})
    assert asked(confined, "SELECT b || '!' AS b, a FROM t ORDER BY b", t=table) == [
        {"b": "x!", "a": 1},
        {"b": "y!", "a": None},
    ]
    with pytest.raises(ConfinedError, match="Catalog"):
        asked(confined, "SELECT * FROM t")  # a statement's tables are removed with it


def test_memory_of_texts_is_bounded(confined: ConfinedDuckDB) -> None:
    assert slug(confined, DOUBLED) in ("sandbox_memory", "Out of Memory")
    assert asked(confined, "SELECT 1 AS x") == [{"x": 1}]


def test_size_of_an_answer_is_bounded(confined: ConfinedDuckDB) -> None:
    assert slug(confined, "SELECT repeat('x', 100000000) AS x FROM range(2)") in ("sandbox_memory", "Out of Memory")


def test_rows_are_bounded_in_a_confined_process(confined: ConfinedDuckDB) -> None:
    with pytest.raises(Error) as caught:
        asked(confined, "SELECT * FROM range(11)")
    assert caught.value.slug == "sandbox_rows"
    assert len(asked(confined, "SELECT * FROM range(10)")) == 10


def test_time_is_bounded_where_the_engine_listens_and_where_it_does_not(confined: ConfinedDuckDB) -> None:
    asked(confined, "SELECT 1")
    process = confined._process
    assert slug(confined, "SELECT count(*) FROM range(1000000000000)", 0.2) == "INTERRUPT"
    assert confined._process is process, "the engine listened, so that the process stays"
    assert slug(confined, LONG, 0.01) == "sandbox_time"
    assert asked(confined, "SELECT 1 AS x") == [{"x": 1}]
    assert confined._process is not process


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM range(1000000000000)", LONG])
def test_an_interrupt_ends_what_runs(confined: ConfinedDuckDB, sql: str) -> None:
    asked(confined, "SELECT 1")
    ended: list[str] = []
    thread = threading.Thread(target=lambda: ended.append(slug(confined, sql, 600)))
    thread.start()
    while thread.is_alive():
        confined.interrupt()
        thread.join(0.02)
    assert ended[0] in ("INTERRUPT", "sandbox_time")
    assert asked(confined, "SELECT 1 AS x") == [{"x": 1}]


def test_an_interrupt_ends_a_process_that_never_loads_its_database(confined: ConfinedDuckDB) -> None:
    asked(confined, "SELECT 1 AS x")
    confined._loaded.clear()
    assert confined._process is not None
    confined._process.send_signal(signal.SIGSTOP)
    ended: list[str] = []
    thread = threading.Thread(target=lambda: ended.append(slug(confined, "SELECT 1 AS x")), daemon=True)
    thread.start()
    for _ in range(1000):
        if thread.is_alive():
            confined.interrupt()
            thread.join(0.02)
    assert ended == ["sandbox_time"]
    assert asked(confined, "SELECT 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize("failure", [MemoryError, ValueError])
def test_an_answer_that_could_not_be_read_is_not_given_to_the_next_asker(
    confined: ConfinedDuckDB, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    """It would be the numbers of somebody else, and where its rest is not a message, waiting for a process that goes on."""

    def unread(pipe: IO[bytes]) -> NoReturn:
        raise failure

    asked(confined, "SELECT 1 AS x")
    with monkeypatch.context() as patch, pytest.raises((MemoryError, Error)):
        patch.setattr(confinement, "read_message", unread)
        asked(confined, "SELECT 'of another asker' AS x")
    assert asked(confined, "SELECT 2 AS x") == [{"x": 2}]


def test_the_process_has_no_environment_and_writes_no_file(
    confined: ConfinedDuckDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even for a database that no one locked."""
    monkeypatch.setenv("DPSQL_SECRET", "a secret")
    assert asked(confined, "SELECT 1 AS x") == [{"x": 1}]
    tasks = [(task / "children").read_text().split() for task in Path("/proc/self/task").iterdir()]
    started = [Path("/proc", child) for children in tasks for child in children]
    environments = [child / "environ" for child in started if "confined_process" in (child / "cmdline").read_text()]
    assert environments
    for environment in environments:
        assert "PATH=" in environment.read_text() and "DPSQL" not in environment.read_text()
    target = tmp_path / "written.csv"
    with pytest.raises((Error, ConfinedError)):
        asked(confined, f"COPY (SELECT 1 AS x) TO '{target}'")
    assert not target.exists() or target.read_text() == ""


def test_the_pool_serves_askers_in_turns() -> None:
    """With two processes, one asker has at most one of them, however many queries it sends."""
    pool = ConfinedPool(2)
    order: list[str] = []
    with pool.lent("heavy", EMPTY):
        waiting = threading.Thread(target=lambda: _enter(pool, "heavy", order))
        waiting.start()
        _enter(pool, "light", order)
        assert order == ["light"]
    waiting.join()
    assert order == ["light", "heavy"]
    pool.close()


def _enter(pool: ConfinedPool, asker: str, order: list[str]) -> None:
    with pool.lent(asker, EMPTY):
        order.append(asker)


def test_texts_made_of_released_numbers_are_bounded_in_a_server() -> None:
    pool = ConfinedPool(1)
    sandbox = Sandbox(confined=pool).of("ann")
    table = pa.table({"a": ["x" * 1000] * 1000})
    assert sandbox.query("SELECT a || 'y' AS b FROM t LIMIT 1", {"t": table}).to_pylist() == [{"b": "x" * 1000 + "y"}]
    grown = "a"
    for _ in range(20):
        grown = f"({grown} || {grown})" if len(grown) < 3000 else f"replace({grown}, 'x', a)"
    with pytest.raises(Error) as caught:
        sandbox.query(f"SELECT length({grown}) FROM t", {"t": table})
    assert caught.value.slug == "sandbox_memory"
    assert sandbox.query("SELECT a || '' AS b FROM t LIMIT 1", {"t": table}).num_rows == 1
    pool.close()


def test_an_answer_of_a_server_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.release.sandbox.MOST_BYTES", 1_000_000)
    pool = ConfinedPool(1)
    table = pa.table({"a": range(100_000)})
    with pytest.raises(Error) as caught:
        Sandbox(confined=pool).of("ann").query("SELECT a, a + 1, a + 2 FROM t", {"t": table})
    assert caught.value.slug == "sandbox_memory"
    assert Sandbox(confined=pool).query("SELECT a FROM t", {"t": table}).num_rows == 100_000
    assert Sandbox().query("SELECT a, a + 1, a + 2 FROM t", {"t": table}).num_rows == 100_000
    pool.close()
