"""A PostgreSQL server that has become unreachable, or whose table another session has locked: queries end in bounded time."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.postgres_source import Server, server
from support.relay import Relay

from dpsql.engine.postgresql import connections
from dpsql.engine.postgresql import engine as module
from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error
from dpsql.testing import contract_policy

__all__ = ["server"]
NEVER_SECONDS = 60.0
"""Anything that has not ended by then waits for TCP, which takes a quarter of an hour or more."""
QUESTION = EngineQuery("SELECT count(*) AS m0 FROM public.visits", (), ("m0",))


@pytest.fixture
def url(server: Server) -> str:
    place = server.database()
    with psycopg.connect(place, autocommit=True) as owner:
        owner.execute("CREATE TABLE visits (id integer, ward varchar(9), day date, cost bigint)")
        owner.execute("INSERT INTO visits VALUES (1, 'a', '2026-01-01', 3)")
    return place


@pytest.fixture
def relay(server: Server, tmp_path: Path) -> Iterator[Relay]:
    folder = tmp_path / "network"
    folder.mkdir()
    network = Relay(folder, server.folder)
    yield network
    network.close()


@pytest.fixture
def behind(server: Server, url: str, relay: Relay, tmp_path: Path) -> Iterator[PostgreSQLEngine]:
    """Yield the engine over a network that can be stalled."""
    source = url.replace(f"host={server.folder}", f"host={tmp_path / 'network'}")
    engine = PostgreSQLEngine(contract_policy(tmp_path, source=source))
    yield engine
    engine.close()


def failure(act: Callable[[], Any], end: Callable[[], Any]) -> Error:
    """Return the error of an action that must end without help; `end` ends it otherwise."""
    errors: list[Error] = []

    def run() -> None:
        try:
            act()
        except Error as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(NEVER_SECONDS)
    if thread.is_alive():
        end()
        pytest.fail("it waits for ever")
    assert errors, "there was an answer"
    return errors[0]


@pytest.mark.slow
def test_a_question_whose_packets_are_lost_fails_and_the_next_one_is_answered(
    behind: PostgreSQLEngine, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_PATIENCE_SECONDS", 1.0)
    relay.cut_at(b"COPY", passes=True, stalls=True)
    lost = failure(lambda: behind.run(QUESTION, timeout_seconds=1.0), relay.close)
    assert (lost.slug, getattr(lost, "of_source", None), relay.cuts) == ("engine_failed", True, 1)
    relay.mend()
    assert behind.run(QUESTION).unseal().column(0)[0].as_py() == 1
    relay.stall()  # while the connection is idle
    assert failure(lambda: behind.check_readable(("visits",)), relay.close).slug == "source_connection"
    relay.mend()
    behind.check_readable(("visits",))
    relay.cut_at(b"EXPLAIN", passes=False)
    assert failure(lambda: behind.rehearse(QUESTION), relay.close).slug == "source_connection"
    relay.mend()
    behind.rehearse(QUESTION)


def test_a_table_that_is_locked_too_long_fails_before_the_charge(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
    engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
    with psycopg.connect(url) as loader:
        loader.execute("LOCK TABLE visits")
        locked = failure(lambda: engine.rehearse(QUESTION), loader.close)
        assert (locked.slug, locked.sqlstate) == ("source_locked", "55P03")
        assert "public" not in locked.text() and "0.2 seconds" in locked.text()
    engine.rehearse(QUESTION)
    engine.close()
