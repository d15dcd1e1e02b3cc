"""What the server keeps for its clients is counted and bounded, and is free again as soon as nobody can fetch it."""

import random
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.effort import slow
from support.raw_client import SYNC, Client, bind, describe, error_of, execute, fields, framed, parse, rows_of, text
from support.served_clinic import Served, logged_in, serving

from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.exceptions import Error
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire import backend
from dpsql.frontends.pgwire.connection import Limits
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.questions import Questions
from dpsql.frontends.pgwire.rows import BATCH_BYTES
from dpsql.frontends.pgwire.server import Server
from dpsql.session.background_work import MeasurementQueue

MEGABYTE = 1 << 20
LARGE = "SELECT b, repeat('\U00010000', 250) AS x FROM generate_series(1, 2000) AS b"
"""Two megabytes, about which no data is asked: the characters of an answer are limited, and take four bytes each."""
WIDE = "SELECT k, string_agg(repeat('x', 10000), '') AS x FROM generate_series(1, 1500) AS b, generate_series(1, 1) AS k GROUP BY k"
"""One row of fifteen megabytes, for which the limit of an answer's characters must be higher."""
SMALL = "SELECT COUNT(*) AS n FROM patients WHERE age > 44"
PATIENCE = 60


@contextmanager
def accounted(clinic: Served, megabytes: int = 64, **limits: int) -> Iterator[tuple[int, MemoryAccount]]:
    """Serve the clinic; yield the port and the account of the server."""
    made: list[Server] = []
    start = Server.start

    async def noted(server: Server, host: str, port: int) -> tuple[str, int]:
        made.append(server)
        return await start(server, host, port)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "start", noted)
        with serving(open_server_state(clinic.policy), Limits(memory_megabytes=megabytes, **limits)) as port:
            yield port, made[0].memory


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    pause = threading.Event()
    for _ in range(PATIENCE * 100):
        if holds():
            return
        pause.wait(0.01)
    raise AssertionError


def opened(client: Client, most: int = 300) -> tuple[int, dict[str, str]]:
    """Open cursors, and fetch one row of each, until one is refused; return their number and the refusal."""
    client.query("BEGIN")
    for number in range(most):
        answered = client.query(f"SAVEPOINT s; DECLARE c{number} CURSOR FOR {LARGE}; FETCH 1 FROM c{number}; RELEASE s")
        if any(kind == b"E" for kind, _ in answered):
            return number, error_of(answered)
    raise AssertionError("nothing was refused")


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_cursors_are_bounded_for_a_connection_a_user_and_the_server(clinic: Served) -> None:
    with accounted(clinic, 16, memory_per_user_megabytes=12, memory_per_connection_megabytes=8) as (port, memory):
        first, second, other = logged_in(port), logged_in(port), logged_in(port, "clinic")
        for client, megabytes, words, advice in (
            (first, 8, "this connection may hold 8 MB", "CLOSE cursors"),
            (second, 12, 'the connections of "research" may hold 12 MB', "end connections"),
            (other, 16, "all clients of this server together may hold 16 MB", "--memory"),
        ):
            number, refusal = opened(client)
            assert refusal["C"] == "53200" and words in refusal["M"] and "are held" in refusal["M"]
            assert advice in refusal["H"] and refusal["D"] == "nothing was charged"
            assert number and (megabytes - 3) * MEGABYTE < memory.held <= megabytes * MEGABYTE
        assert memory.refused >= 3
        # What frees memory works while nothing else does, and over the extended protocol too.
        first.query("ROLLBACK TO s")
        first.send(parse("CLOSE c0"), bind(), execute(), SYNC)
        assert b"E" not in {kind for kind, _ in first.until(b"Z")}
        assert first.query(f"DECLARE again CURSOR FOR {LARGE}; FETCH 1 FROM again")[-1] == (b"Z", b"T")
        first.query("COMMIT")
        other.close()
        second.query("ROLLBACK")
        until(lambda: memory.kinds["rows"] == 0)
        first.close()
        second.close()
        until(lambda: memory.held == 0)


def test_portals_of_the_extended_protocol_are_bounded_too(clinic: Served) -> None:
    with accounted(clinic, 16) as (port, memory):
        client = logged_in(port)
        client.query("BEGIN")
        client.send(parse(LARGE, "s"), SYNC)
        client.until(b"Z")
        for number in range(300):
            client.send(bind(portal=f"p{number}", name="s"), execute(f"p{number}", 1), SYNC)
            answered = client.until(b"Z")
            if answered[0][0] == b"E" or answered[1][0] == b"E":
                break
        assert error_of(answered)["C"] == "53200" and 0 < number < 8
        assert memory.held <= 8 * MEGABYTE
        client.query("ROLLBACK")
        until(lambda: memory.kinds["rows"] == 0)


@pytest.mark.slow
def test_values_and_prepared_statements_are_bounded(clinic: Served) -> None:
    """A thousand values of a megabyte, and a thousand texts whose trees take nine megabytes each."""
    with accounted(clinic, 16) as (port, memory):
        client = logged_in(port)
        wide = "SELECT " + ", ".join(["oid"] * 1500) + " FROM pg_class"
        for number in range(100):
            client.send(parse(wide, f"s{number}"), SYNC)
            if (answered := client.until(b"Z"))[0][0] == b"E":
                break
        assert error_of(answered)["C"] == "53200" and 1 < number < 99
        assert client.query("DEALLOCATE ALL")[-1][0] == b"Z"
        assert memory.kinds["statements"] == 0
        client.query("BEGIN")
        client.send(parse("SELECT $1::text AS x", "t"), SYNC)
        client.until(b"Z")
        for number in range(100):
            client.send(bind((b"x" * 900_000,), portal=f"p{number}", name="t"), SYNC)
            if (answered := client.until(b"Z"))[0][0] == b"E":
                break
        assert error_of(answered)["C"] == "53200" and number == 3
        client.query("ROLLBACK; DEALLOCATE ALL")
        assert memory.held == 0


@pytest.mark.parametrize(
    "what", ["names of statements", *map(slow, ("types", "names of portals", "formats")), "null values"]
)
def test_every_part_of_a_message_that_is_kept_is_counted(clinic: Served, what: str) -> None:
    """None of these has a limit of its own: a thousand of each would be gigabytes in one connection."""
    count, name = 60_000, "n" * 900_000
    with accounted(clinic, 64) as (port, memory):
        client = logged_in(port)
        client.query("BEGIN")
        before = memory.held
        if what == "names of statements":
            client.send(parse("COMMIT", name), SYNC)
        elif what == "types":
            client.send(parse(SMALL, "s", (20,) * count), SYNC)
        elif what == "names of portals":
            client.send(parse("SELECT 1"), bind(portal=name), SYNC)
        elif what == "null values":
            client.send(parse(SMALL, oids=(20,) * count), bind((None,) * count, portal="p"), SYNC)
        else:  # a statement without columns takes any number of formats
            client.send(parse("COMMIT"), bind(portal="p", formats=(0,) * count), SYNC)
        answered = client.until(b"Z")
        assert b"E" not in {kind for kind, _ in answered}, error_of(answered)
        assert memory.held - before >= (900_000 if "names" in what else 8 * count)
        client.query("ROLLBACK; DEALLOCATE ALL")
        client.send(parse("SELECT 1"), bind(), SYNC)
        client.until(b"Z")
        assert memory.held < before + 10_000


def test_statements_that_portals_alone_still_have_are_counted(clinic: Served) -> None:
    with accounted(clinic, 16) as (port, memory):
        client = logged_in(port)
        client.query("BEGIN")
        wide = "SELECT " + ", ".join(["oid"] * 1000) + " FROM pg_class"
        client.send(parse(wide, "s"), bind(portal="p", name="s"), framed(b"C", b"S" + text("s")), SYNC)
        client.until(b"Z")
        assert memory.held > MEGABYTE // 2
        client.query("COMMIT")
        assert memory.held == 0


def test_savepoints_count_what_they_keep(clinic: Served) -> None:
    with accounted(clinic, 64) as (port, memory):
        client = logged_in(port)
        client.query("BEGIN; SAVEPOINT a; SAVEPOINT b")
        shared = memory.held
        client.query(f"SET my.x = '{'y' * 1000}'; SAVEPOINT c")
        assert memory.held > shared + 1000
        client.query("ROLLBACK TO b")
        assert memory.held <= shared
        client.query("ROLLBACK")
        assert memory.held == 0


# --- what is freed ----------------------------------------------------------------------------------------------------


def steps(chance: random.Random, number: int) -> bytes:
    """Return a random message or two about cursors, portals and prepared statements, most of which have a meaning."""
    name = f"c{chance.randrange(6)}"
    sql = chance.choice((LARGE, "SELECT 1", "SHOW ALL", "SELECT 1 / 0 AS x", SMALL, f"COPY ({LARGE}) TO STDOUT"))
    return chance.choice((
        framed(b"Q", text(f"DECLARE {name} CURSOR WITH HOLD FOR {LARGE}")),
        framed(b"Q", text(f"DECLARE {name} CURSOR FOR {LARGE}")),
        framed(b"Q", text(f"FETCH {chance.choice(('1', '700', 'ALL'))} FROM {name}")),
        framed(b"Q", text(f"MOVE {chance.choice(('1', 'ALL'))} FROM {name}")),
        framed(b"Q", text(f"CLOSE {chance.choice((name, 'ALL'))}")),
        framed(b"Q", text(chance.choice(("COMMIT", "ROLLBACK", "BEGIN", "DISCARD ALL", "DEALLOCATE ALL", "SAVEPOINT a")))),
        framed(b"Q", text(sql)),
        parse(sql, name) + SYNC,
        parse(sql) + bind(portal=name) + execute(name, chance.choice((0, 1, 5000))) + SYNC,
        parse(f"FETCH 3 FROM {name}") + bind(portal=f"f{number}") + execute(f"f{number}", 1) + SYNC,
        bind(portal=chance.choice(("", name)), name=name) + describe(b"P", name) + execute(name, 3) + SYNC,
        framed(b"C", chance.choice((b"S", b"P")) + text(name)) + SYNC,
    ))  # fmt: skip


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_nothing_stays_held_after_any_messages(clinic: Served, seed: int) -> None:
    chance = random.Random(seed)
    with accounted(clinic, 64) as (port, memory):
        client = logged_in(port)
        for number in range(60):
            client.send(steps(chance, number))
            client.until(b"Z")
            assert memory.held <= 32 * MEGABYTE
        client.query("ROLLBACK")
        client.query("CLOSE ALL; DEALLOCATE ALL; DISCARD ALL")
        assert (memory.held, memory.kinds.get("rows")) == (0, 0)
        client.query(f"DECLARE last CURSOR WITH HOLD FOR {LARGE}")
        client.query("FETCH 1 FROM last")
        assert memory.held > 1_900_000
        client.close()
        until(lambda: memory.held == 0)


def test_rows_are_free_once_they_have_been_fetched(clinic: Served) -> None:
    with accounted(clinic) as (port, memory):
        client = logged_in(port)
        client.query(f"BEGIN; DECLARE c CURSOR FOR {LARGE}; FETCH 1999 FROM c")
        assert memory.kinds["rows"] > 1_900_000
        assert rows_of(client.query("FETCH ALL FROM c"))[0][0] == b"2000"
        assert memory.kinds["rows"] == 0
        assert rows_of(client.query("FETCH ALL FROM c")) == []
        client.query("COMMIT")
        client.query(LARGE)
        assert memory.held == 0


@pytest.mark.slow
def test_a_client_that_vanishes_in_the_middle_of_an_answer_leaves_nothing(clinic: Served) -> None:
    with accounted(clinic, 256) as (port, memory):
        client = logged_in(port)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(framed(b"Q", text("; ".join([LARGE] * 20))))
        until(lambda: memory.held > MEGABYTE)
        client.socket.close()
        until(lambda: memory.held == 0)


@pytest.mark.slow
def test_large_rows_are_converted_in_small_batches_and_one_alone_is_counted(
    clinic: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MOST_WORK", 100_000_000)
    with accounted(clinic, 256) as (port, memory):
        client = logged_in(port)
        client.send(framed(b"Q", text(WIDE)))
        until(lambda: memory.kinds.get("sent", 0) > 80 * MEGABYTE)
        assert [len(row[1] or b"") for row in rows_of(client.until(b"Z"))] == [15_000_000]
        assert memory.held == 0
    with accounted(clinic, 64) as (port, memory):
        client = logged_in(port)
        refusal = error_of(client.query(WIDE))
        assert refusal["C"] == "53200", "its copies do not fit"
        assert memory.held == 0 and BATCH_BYTES < MEGABYTE


# --- charges ----------------------------------------------------------------------------------------------------------


def test_where_nothing_fits_nothing_is_charged(clinic: Served) -> None:
    before = clinic.charges()
    with accounted(clinic) as (port, memory):
        client = logged_in(port)
        with memory.reserve(64 * MEGABYTE - 1000, "rows"):
            refusal = error_of(client.query("SELECT COUNT(*) AS n FROM patients WHERE age > 45"))
            assert (refusal["C"], refusal["D"]) == ("53200", "nothing was charged")
            client.send(parse("SELECT COUNT(*) AS n FROM patients WHERE age > 46"), SYNC)
            assert error_of(client.until(b"Z"))["C"] == "53200"
        assert clinic.charges() == before
        client.query("BEGIN")
        client.send(parse("SELECT COUNT(*) AS n FROM patients WHERE age > 46"), bind(portal="p"), SYNC)
        client.until(b"Z")
        with memory.reserve(64 * MEGABYTE - 20_000, "rows"):
            client.send(execute("p"))
            client.send(SYNC)
            assert error_of(client.until(b"Z"))["C"] == "53200"
        assert clinic.charges() == before


def test_the_memory_that_public_groups_need_is_held_before_the_charge(
    clinic: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    place = MeasurementQueue.place
    with accounted(clinic) as (port, memory):

        def noted(queue: MeasurementQueue, *arguments: object) -> object:
            held.append(memory.held)
            return place(queue, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(MeasurementQueue, "place", noted)
        monkeypatch.setattr(backend, "_ALLOWANCE", 0)
        client = logged_in(port)
        client.query("SELECT age, COUNT(*) AS n FROM patients GROUP BY age")
        assert held[0] >= 100 * 2 * 8


def test_an_answer_that_was_paid_for_and_does_not_fit_is_free_later(
    clinic: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is known only when it has been measured. It is stored, and the refusal says so."""
    monkeypatch.setattr(backend, "_ALLOWANCE", 0)
    monkeypatch.setattr(Questions, "_foreseen", lambda questions, planned: 0)
    sql = "SELECT sex, COUNT(*) AS n FROM patients WHERE age > 47 GROUP BY sex"
    before = clinic.charges()
    with accounted(clinic) as (port, memory):
        client = logged_in(port)
        with memory.reserve(64 * MEGABYTE, "rows"):
            refusal = error_of(client.query(sql))
            assert (refusal["C"], refusal["D"]) == ("53200", "the charge stays")
            assert "is stored, and asking again charges nothing" in refusal["H"]
            lost = error_of(client.query(f"SET dp.reuse = off; {sql}"))
            assert lost["D"] == "the charge stays" and "stored" not in lost["H"]
        client.query("RESET dp.reuse")
        assert clinic.charges() == before + 2
        notices = [fields(body)["M"] for kind, body in client.query(sql) if kind == b"N"]
        assert "answered from stored releases" in notices[0]
        assert clinic.charges() == before + 2


# --- the owner's view -------------------------------------------------------------------------------------------------


def test_options_and_defaults_of_the_page_are_those_of_the_server() -> None:
    limits = Limits()
    server = limits.memory()
    user = limits.memory_of_user(server, "ann")
    assert (server.most, user.most, limits.memory_of_connection(user).most) == (1 << 30, 768 << 20, 512 << 20)
    small = Limits(memory_megabytes=1)
    assert small.memory_of_connection(small.memory_of_user(small.memory(), "ann")).most == MEGABYTE
    page = (Path(__file__).parents[4] / "docs" / "operations.md").read_text()
    assert re.search(r"1,024 MB in all, 768 MB for one user, 512 MB for one connection", page)


def test_an_account_is_closed_with_its_connection_even_if_a_statement_runs() -> None:
    account = MemoryAccount(10)
    with pytest.raises(Error), account.statement(5, "rows"):
        account.close()
        account.computing(11)
    assert account.held == 0


# --- attacks ----------------------------------------------------------------------------------------------------------


def resident(process: int) -> int:
    """Return the memory of a process in bytes."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.slow
def test_hundreds_of_large_cursors_do_not_fill_the_memory(clinic: Served) -> None:
    """Without bounds, 30 kB of messages end a server with 4 GB: here 240 cursors of two megabytes."""
    served = replace(clinic, options=("--memory", "64"), process=None).start()
    assert served.process is not None
    try:
        served.client().query(LARGE)
        before, refused, peak = resident(served.process.pid), 0, 0
        clients = [served.client() for _ in range(8)]
        for number in range(30):
            for client in clients:
                cursor = f"DECLARE c{number} CURSOR WITH HOLD FOR {LARGE}"
                answered = client.query(cursor) + client.query(f"FETCH 1 FROM c{number}")
                refused += any(kind == b"E" and fields(body)["C"] == "53200" for kind, body in answered)
            peak = max(peak, resident(served.process.pid))
        assert refused > 200
        # Half of what is held at most, and as much again for what the allocator has not returned yet.
        assert peak - before < 128 * MEGABYTE
        for client in clients:
            client.close()
        assert len(rows_of(served.client().query(LARGE))) == 2000, "whoever comes later finds room"
    finally:
        served.stop()
