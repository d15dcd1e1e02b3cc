"""The end of a statement from other threads: by one stopper for each connection, however often it is asked for."""

import struct
import threading

import pytest
from support.gated_engine import PATIENCE, Gated, gated
from support.raw_client import Client, error_of, framed, text
from support.served_clinic import Served, logged_in

from dpsql.engine import fair_queue
from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import stop as stop_of_statements
from dpsql.frontends.pgwire.stop import Stop
from dpsql.session.session import Session

MANY = 300


def stoppers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dpsql-stop"]


class Interrupts:
    """Interrupts of one statement. They do nothing, so that a stopper goes on until the statement ends by itself."""

    def __init__(self) -> None:
        self.called = threading.Event()

    def __call__(self) -> None:
        self.called.set()


def test_a_flood_of_requests_has_one_thread() -> None:
    stop, interrupts = Stop(), Interrupts()
    for _ in range(MANY):
        stop.ask()
    assert not stoppers(), "nothing runs, so nothing is stopped"
    with stop.running(interrupts, None):
        for _ in range(MANY):
            stop.ask()
            assert len(stoppers()) <= 1
        assert interrupts.called.wait(PATIENCE)
        with pytest.raises(Error, match="user request"):
            stop.check()
    with stop.running(Interrupts(), None):
        stop.check()


def test_a_request_that_finds_the_stopper_at_work_is_not_lost() -> None:
    """The stopper of one statement notices its end a moment later; by then the next one may have been cancelled."""
    stop = Stop()
    for _ in range(20):
        interrupts = Interrupts()
        with stop.running(interrupts, None):
            assert not stop.requested
            stop.ask()
            assert interrupts.called.wait(PATIENCE)
    last = Interrupts()
    with stop.running(last, None):
        stop.leave()
        assert last.called.wait(PATIENCE)
    with pytest.raises(Error, match="user request"), stop.running(Interrupts(), None):
        pass


def test_a_statement_whose_time_limit_has_no_thread_does_not_stay_the_running_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system may have no thread left. Later statements would count as parts of that one, and have no time limit."""

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    stop, interrupts = Stop(), Interrupts()
    with monkeypatch.context() as patch:
        patch.setattr(stop_of_statements, "watchdog", no_thread)
        with pytest.raises(RuntimeError), stop.running(interrupts, 60):
            pass
    with stop.running(interrupts, 0.01):
        assert interrupts.called.wait(20)


def test_a_time_limit_takes_no_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fair_queue.watchdog()
    monkeypatch.delattr(threading.Thread, "start")
    with Stop().running(Interrupts(), 60):
        pass


def test_a_time_limit_stops_its_own_statement_alone() -> None:
    stop, interrupts = Stop(), Interrupts()
    with stop.running(interrupts, 0.01), pytest.raises(Error, match="statement timeout"):
        assert interrupts.called.wait(PATIENCE)
        stop.check()
    with stop.running(Interrupts(), 60):
        stop.check()
        assert not stop.late


def test_a_flood_of_cancel_requests_does_not_fill_the_server_with_threads(
    clinic: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a thread for each, 1,448 requests for a statement that cannot be interrupted were 1,448 threads."""
    monkeypatch.setattr(Session, "interrupt", lambda session: None)
    with gated(clinic) as port:
        client = logged_in(port)
        client.send(framed(b"Q", text("SELECT COUNT(*) AS n FROM patients WHERE age > 43")))
        assert Gated.begun.wait(PATIENCE)
        most = 0
        for _ in range(MANY):
            flood = Client(port)
            flood.send(struct.pack("!II", 16, 80877102) + client.key)
            assert flood.read() is None, "the socket is closed without an answer"
            flood.close()
            most = max(most, len(stoppers()))
        assert most == 1
        Gated.go_on.set()
        assert client.until(b"Z")[-1][0] == b"Z"


@pytest.mark.parametrize("code", [80877104, 80877103], ids=["gss", "tls"])
def test_who_asks_for_encryption_again_and_again_is_let_go(clinic: Served, code: int) -> None:
    with gated(clinic) as port:
        client = Client(port)
        client.send(struct.pack("!II", 8, code))
        assert client._take(1) == b"N"
        client.send(struct.pack("!II", 8, code))
        assert error_of(client.until(b"E"))["C"] == "08P01"
        assert client.read() is None
