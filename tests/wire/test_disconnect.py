"""A client that leaves stops its question; what was charged stays charged, and what had not begun is not charged."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dpsql.cli.serve import open_house
from dpsql.engines.duckdb_engine import DuckDBEngine
from dpsql.errors import refuse
from dpsql.wire.questions import Stop
from wire.conftest import PASSWORD, Served, build_clinic, serving
from wire.raw import Client, error_of, framed, rows_of, text

PATIENCE = 20


class Endless(DuckDBEngine):
    """An engine whose questions end when they are interrupted, and not before."""

    begun = threading.Event()
    stopped = threading.Event()

    def run(self, query: Any, timeout_seconds: float | None = None) -> Any:
        self.begun.set()
        assert self.stopped.wait(PATIENCE)
        raise refuse("engine_failed", incident="test", charged=True)

    def interrupt(self) -> None:
        self.stopped.set()

    def another(self) -> Endless:
        found = super().another()
        found.__class__ = Endless
        assert isinstance(found, Endless)
        return found


@contextmanager
def endless(clinic: Served) -> Iterator[int]:
    """The clinic served from this process by an endless engine; its port."""
    house = open_house(clinic.policy)
    house.engine.__class__ = Endless
    Endless.begun.clear()
    Endless.stopped.clear()
    with serving(house) as port:
        try:
            yield port
        finally:
            Endless.stopped.set()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return build_clinic(tmp_path_factory.mktemp("leaving"))


def closes(client: Client) -> None:
    client.socket.close()


def resets(client: Client) -> None:
    """What a killed process or a lost link leaves: RST instead of FIN."""
    client.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize("leave", [closes, resets])
def test_a_client_that_leaves_stops_its_question(
    clinic: Served, leave: Callable[[Client], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    before = clinic.charges()
    number = 51 + (leave is resets)
    with endless(clinic) as port:
        client = Client(port)
        client.login("research", PASSWORD, "nafld")
        client.send(framed(b"Q", text(f"SELECT COUNT(*) FROM patients WHERE age > {number}")))
        assert Endless.begun.wait(PATIENCE)
        assert not Endless.stopped.is_set()
        leave(client)
        assert Endless.stopped.wait(PATIENCE)
    assert clinic.charges() == before + 1


def test_a_statement_timeout_stops_the_question(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge stays, the client is told so, and the limit is the connection's own."""
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    before = clinic.charges()
    with endless(clinic) as port:
        client = Client(port)
        client.login("research", PASSWORD, "nafld", options="-c statement_timeout=0.2s")
        found = error_of(client.query("SELECT COUNT(*) FROM patients WHERE age > 56"))
        assert (found["C"], found["M"]) == ("57014", "canceling statement due to statement timeout")
        assert found["D"] == "the charge stays"
        assert error_of(client.query("SET statement_timeout = 'soon'"))["C"] == "22023"
        assert rows_of(client.query("RESET statement_timeout; SHOW statement_timeout")) == [[b"0.2s"]]
    assert clinic.charges() == before + 1


def test_what_a_leaving_client_sent_last_is_not_begun(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    before = clinic.charges()
    with endless(clinic) as port:
        client = Client(port)
        client.login("research", PASSWORD, "nafld")
        asked = (framed(b"Q", text(f"SELECT COUNT(*) FROM patients WHERE age > {n}")) for n in (53, 54, 55))
        client.send(*asked)
        assert Endless.begun.wait(PATIENCE)
        client.socket.close()
        assert Endless.stopped.wait(PATIENCE)
    assert clinic.charges() == before + 1


def test_who_has_left_begins_nothing() -> None:
    stop = Stop()
    stop.leave()
    with pytest.raises(Exception, match="cancel"), stop.running(lambda: None, None):
        pass
