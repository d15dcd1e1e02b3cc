"""One user's heavy queries keep no one else waiting: neither free answers, nor a first query, nor short texts."""

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.gated_engine import PATIENCE, Gated, gated
from support.raw_client import Client, error_of, fields, framed, rows_of, text
from support.served_clinic import SLOW, Served, logged_in, serving

from dpsql.engine.fair_queue import FairQueue
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire import backend
from dpsql.frontends.pgwire.connection import Limits
from dpsql.frontends.pgwire.constants import bounds, clocks
from dpsql.frontends.pgwire.questions import LONG_TEXT

LONG = "SELECT 1 -- " + "x" * LONG_TEXT
STORED = "SELECT COUNT(*) AS n FROM patients WHERE age > 41"
FREE = (
    STORED, f"EXPLAIN {STORED}", "SET dp.epsilon = 0.1", "SHOW dp.budget", "SHOW dp.all", "DESCRIBE patients", "SHOW TABLES",
    "SELECT 1", "SELECT relname FROM pg_class WHERE relname = 'patients'", "SET dp.epsilon = 0.2; SHOW dp.epsilon",
)  # fmt: skip


def event_of_waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event that is set when someone checks whether it is their turn, and it is not."""
    waits, look = threading.Event(), FairQueue._is_next

    def noticed(queue: FairQueue, ticket: Any) -> bool:
        is_next = look(queue, ticket)
        if not is_next:
            waits.set()
        return is_next

    monkeypatch.setattr(FairQueue, "_is_next", noticed)
    return waits


def ask(client: Client, age: int) -> None:
    client.send(framed(b"Q", text(f"SELECT COUNT(*) AS n FROM patients WHERE age > {age}")))


def scans(count: int) -> None:
    """Wait until `count` scans have begun."""
    for _ in range(PATIENCE * 100):
        if Gated.scans >= count:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{Gated.scans} scans, not {count}")


def test_free_answers_are_given_while_every_place_at_the_data_is_taken(clinic: Served) -> None:
    with gated(clinic) as port:
        light = logged_in(port, "clinic")
        Gated.go_on.set()
        assert len(rows_of(light.query(STORED))) == 1
        Gated.go_on.clear()
        heavy = [logged_in(port, user) for user in ("research",) * 4 + ("clinic",) * 4]
        for number, client in enumerate(heavy):
            ask(client, 50 + number)
        scans(1 + Limits().concurrency)
        for sql in FREE:
            assert light.query(sql)[-1][0] == b"Z", sql
        assert rows_of(logged_in(port, "clinic").query("SELECT 1")) == [[b"1"]]
        assert Gated.scans == 1 + Limits().concurrency
        Gated.go_on.set()
        for client in heavy:
            assert len(rows_of(client.until(b"Z"))) == 1


@pytest.mark.parametrize(("concurrency", "each"), [(2, None), (3, 2)])
def test_one_users_questions_leave_a_place_for_others(clinic: Served, concurrency: int, each: int | None) -> None:
    before = len(clinic.charged())
    with gated(clinic, limits=Limits(concurrency=concurrency, concurrency_per_user=each)) as port:
        heavy = [logged_in(port, "research") for _ in range(4)]
        for number, client in enumerate(heavy):
            ask(client, 60 + 10 * concurrency + number)
        scans(concurrency - 1)
        light = logged_in(port, "clinic")
        ask(light, 69 + 10 * concurrency)
        scans(concurrency)
        analysts = [charge["analyst"] for charge in clinic.charged()[before:]]
        assert sorted(analysts) == ["clinic", *["research"] * (concurrency - 1)]
        Gated.go_on.set()
        for client in (*heavy, light):
            assert len(rows_of(client.until(b"Z"))) == 1


def test_whoever_waits_is_told_their_position(clinic: Served) -> None:
    with gated(clinic, limits=Limits(concurrency=1)) as port:
        first, second = logged_in(port, "research"), logged_in(port, "clinic")
        ask(first, 31)
        scans(1)
        ask(second, 32)
        kind, body = second.read() or (b"", b"")
        assert (kind, fields(body)["M"]) == (b"N", "waiting for a place at the data, number 1 in the queue")
        Gated.go_on.set()
        told = [fields(body)["M"] for kind, body in first.until(b"Z") if kind == b"N"]
        assert not [one for one in told if "queue" in one]
        assert len(rows_of(second.until(b"Z"))) == 1


def test_the_queue_is_not_told_where_responses_have_their_times(clinic: Served) -> None:
    """The queue would reveal, between two response times, whether a scan is over."""
    padded = clinic.policy.with_name("padded.yaml")
    padded.write_text(clinic.policy.read_text() + "\ntiming: padded\n")
    with gated(clinic, padded, Limits(concurrency=1)) as port:
        first, second = logged_in(port, "research"), logged_in(port, "clinic")
        ask(first, 33)
        scans(1)
        ask(second, 34)
        Gated.go_on.set()
        told = [fields(body)["M"] for kind, body in second.until(b"Z") if kind == b"N"]
        assert told and not [one for one in told if "queue" in one]
        first.until(b"Z")


def test_long_texts_are_read_one_after_the_other(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading holds the interpreter: eight texts of 100,000 characters in parallel keep a stored answer waiting for six
    seconds."""
    inside, arrived = list[str](), threading.Semaphore(0)
    go_on, both = threading.Event(), list[int]()
    read, place = backend.read_script, FairQueue.place

    def slow(sql: str, dialect: str) -> Any:
        if len(sql) > LONG_TEXT:
            inside.append(sql)
            both.append(len(inside))
            assert go_on.wait(PATIENCE)
            inside.remove(sql)
        return read(sql, dialect)

    @contextmanager
    def noticed(queue: FairQueue, *arguments: Any, **named: Any) -> Iterator[None]:
        arrived.release()
        with place(queue, *arguments, **named):
            yield

    monkeypatch.setattr(backend, "read_script", slow)
    with serving(open_server_state(clinic.policy)) as port:
        clients = [logged_in(port, "research"), logged_in(port, "clinic")]
        light = logged_in(port, "clinic")
        monkeypatch.setattr(FairQueue, "place", noticed)
        for client in clients:
            client.send(framed(b"Q", text(LONG)))
            assert arrived.acquire(timeout=PATIENCE)
        monkeypatch.setattr(FairQueue, "place", place)
        assert light.query("SET dp.epsilon = 0.1")[-1][0] == b"Z"
        assert both == [1]
        go_on.set()
        for client in clients:
            assert rows_of(client.until(b"Z")) == [[b"1"]]
        assert both == [1, 1]


def test_a_statement_that_sleeps_leaves_its_turn_to_others(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    count = "(SELECT COUNT(*) AS n FROM generate_series(1, 2000) AS g WHERE g > {})"
    turns, taken, place = list[FairQueue](), set[int](), FairQueue.place
    with serving(open_server_state(clinic.policy)) as port:
        client = logged_in(port)
        monkeypatch.setattr(FairQueue, "place", lambda queue, *rest: turns.append(queue) or place(queue, *rest))
        monkeypatch.setattr(bounds, "_AT_ONCE_SECONDS", 0)
        monkeypatch.setattr(clocks, "sleep", lambda seconds: taken.add(turns[0].taken))
        answer = client.query(f"SELECT n, pg_sleep(0.01 + 0 * n), {count.format('n')} FROM {count.format(0)} AS z")
        assert rows_of(answer) == [[b"2000", b"", b"0"]]
        assert taken == {0} and len(turns) == 2, "a turn before and one after"
        assert turns[0].taken == 0


@pytest.mark.parametrize("how", ["cancel", "timeout"])
@pytest.mark.parametrize("sql", [LONG, SLOW], ids=["read", "computed"])
def test_whoever_waits_to_be_read_or_computed_may_stop_waiting(
    clinic: Served, monkeypatch: pytest.MonkeyPatch, sql: str, how: str
) -> None:
    """A cancel request that arrives before the text is read must not be lost because there is no statement yet."""
    go_on, inside = threading.Event(), threading.Event()
    read, waiting = backend.read_script, event_of_waiting(monkeypatch)

    def slow(sql: str, dialect: str) -> Any:
        if len(sql) > LONG_TEXT:
            inside.set()
            assert go_on.wait(PATIENCE)
        return read(sql, dialect)

    monkeypatch.setattr(backend, "read_script", slow)
    with serving(open_server_state(clinic.policy)) as port:
        first, second = logged_in(port, "research"), logged_in(port, "clinic")
        if how == "timeout":
            second.query("SET statement_timeout = 500")
        first.send(framed(b"Q", text(LONG)))
        assert inside.wait(PATIENCE)
        waiting.clear()
        second.send(framed(b"Q", text(sql)))
        assert waiting.wait(PATIENCE)
        if how == "cancel":
            Client(port).send(struct.pack("!II", 16, 80877102) + second.key)
        failure = error_of(second.until(b"Z"))
        words = {"cancel": "user request", "timeout": "statement timeout"}[how]
        assert (failure["C"], failure["M"]) == ("57014", f"canceling statement due to {words}")
        assert not go_on.is_set()
        go_on.set()
        assert rows_of(first.until(b"Z")) == [[b"1"]]
        assert rows_of(second.query("SELECT 2")) == [[b"2"]], "the next statement is another one"
