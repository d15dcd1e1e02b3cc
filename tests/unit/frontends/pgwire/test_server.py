"""The server under load and attack: it stays up, its memory stays bounded, others are served, and no charge is lost."""

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest
from support.places import POLICIES
from support.raw_client import SYNC, Client, bind, describe, error_of, execute, framed, parse, rows_of, text
from support.served_clinic import GROUPED, SLOW, Served

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error
from dpsql.policy import load_policy

POLICY = POLICIES / "shop.yaml"


def _resident(served: Served) -> int:
    """Return the bytes of memory that the server's process holds."""
    assert served.process is not None
    pages = int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _is_well(served: Served) -> None:
    assert rows_of(served.client().query("SELECT 1")) == [[b"1"]]


def test_cancel_stops_one_connection_and_no_other(served: Served) -> None:
    victim, other = served.client(), served.client()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append("victim " + error_of(victim.query(SLOW))["M"])),
        threading.Thread(target=lambda: found.append(f"other {rows_of(other.query(GROUPED))[0][0]!r}")),
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for _ in range(300):  # a statement that has not begun yet is not cancelled
        if not threads[0].is_alive():
            break
        for key in (victim.key[:4] + b"\0\0\0\0", victim.key):
            canceller = Client(served.port)
            canceller.send(struct.pack("!II", 16, 80877102) + key)
            assert canceller.read() is None
        threads[0].join(0.2)
    threads[1].join()
    assert sorted(found) == ["other b'female'", "victim canceling statement due to user request"]
    assert rows_of(victim.query("SELECT 1")) == [[b"1"]]


def test_a_catalog_question_that_takes_all_memory_takes_nobody_along(served: Served) -> None:
    """Texts doubled eighteen times are 2.6 GB, which DuckDB's own limit does not count."""
    grown = "SELECT repeat('x', 10000) AS t"
    for _ in range(18):
        grown = f"SELECT t || t AS t FROM ({grown}) AS a"
    bystander, before = served.client(), _resident(served)
    assert error_of(served.client().query(f"SELECT length(t) FROM ({grown}) AS a"))["C"] in ("53200", "57014")
    assert rows_of(bystander.query("SELECT count(*) FROM pg_class WHERE relname = 'patients'")) == [[b"1"]]
    assert _resident(served) - before < 50_000_000


def test_sixty_four_connections_are_answered_alike(served: Served) -> None:
    clients = [served.client() for _ in range(64)]
    before = served.charges()
    answers: list[object] = []

    def ask(client: Client) -> None:
        answers.append(rows_of(client.query("SELECT COUNT(*) AS n FROM patients WHERE age > 61")))

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 64
    assert all(len(answer) == 1 for answer in answers if isinstance(answer, list))
    assert served.charges() > before
    full = Client(served.port).login("research", "an honest password", "nafld")
    assert error_of(full)["C"] == "53300"
    for client in clients:
        client.close()


def test_huge_lengths_are_refused_before_they_are_read(served: Served) -> None:
    before = _resident(served)
    for head in (b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\3", b"\xff\xff\xff\xff", b"\0\0\x7f\xff"):
        client = Client(served.port)
        client.send(head + b"\0\3\0\0user\0")
        assert error_of(client.until(b"E"))["C"] == "08P01"
    for kind in (b"Q", b"P", b"B", b"d"):
        client = served.client()
        client.send(kind + b"\x7f\xff\xff\xff" + b"x" * 1000)
        assert error_of(client.until(b"E"))["C"] == "08P01"
    assert _resident(served) - before < 50_000_000
    _is_well(served)


def test_random_and_mutated_bytes_harm_nobody(served: Served) -> None:
    """The bytes are seeded, so that a failure is reproducible."""
    chance = random.Random(20261121)
    whole = parse("SELECT COUNT(*) FROM patients WHERE sex = $1", "s") + describe(b"S", "s")
    whole += bind((b"male",), "p", "s") + execute("p") + SYNC + framed(b"Q", text("SELECT 1"))
    before = _resident(served)
    bystander = served.client()
    for round_ in range(150):
        data = bytearray(whole if round_ % 3 else chance.randbytes(chance.randrange(1, 400)))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        client = served.client() if round_ % 2 else Client(served.port)
        client.socket.settimeout(0.02)
        with contextlib.suppress(OSError):
            client.send(bytes(data[: chance.randrange(1, len(data) + 1)]))
            client.socket.recv(4096)
        client.close()
    assert rows_of(bystander.query("SELECT 1")) == [[b"1"]]
    assert _resident(served) - before < 150_000_000
    _is_well(served)


def test_garbage_in_and_before_the_tls_handshake_is_refused(served: Served) -> None:
    for garbage in (b"\x16\x03\x01\x02\0" + bytes(600), b"GET / HTTP/1.1\r\n\r\n"):
        client = Client(served.port)
        client.send(struct.pack("!II", 8, 80877103))
        assert client._take(1) == b"S"
        client.send(garbage)
        while client.read() is not None:
            pass
    early = Client(served.port)
    early.send(struct.pack("!II", 8, 80877103) + struct.pack("!II", 9, 196608) + b"\0")
    assert error_of(early.until(b"E"))["C"] in ("08P01", "28000")
    _is_well(served)


def test_a_slow_reader_and_half_open_sockets_hold_nobody_up(served: Served) -> None:
    slow = served.client()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = _resident(served)
    slow.send(framed(b"Q", text("SELECT a.attnum, a.attname FROM pg_attribute a, generate_series(1, 20) b")))
    assert slow.read()[0] == b"T"  # type: ignore[index]
    silent = [Client(served.port) for _ in range(20)]
    for client in silent[:10]:
        client.send(b"\0\0")
    for _ in range(5):
        _is_well(served)
    assert _resident(served) - before < 150_000_000
    slow.close()
    for client in silent:
        client.close()


def test_a_killed_server_has_charged_whatever_it_answered(own_clinic: Served) -> None:
    own_clinic.start()
    answered = 0
    for number in range(3):
        client = own_clinic.client()
        assert rows_of(client.query(f"SELECT COUNT(*) FROM patients WHERE age > {20 + number}"))
        answered += 1
        if number == 1:
            client.send(framed(b"Q", text("SELECT COUNT(*) FROM labs WHERE day > 3")))
            own_clinic.stop(signal.SIGKILL)
            assert own_clinic.charges() >= answered
            own_clinic.start()
    assert own_clinic.charges() >= answered
    first = rows_of(own_clinic.client().query("SELECT COUNT(*) FROM patients WHERE age > 20"))
    spent = own_clinic.charges()
    assert rows_of(own_clinic.client().query("SELECT COUNT(*) FROM patients WHERE age > 20")) == first
    assert own_clinic.charges() == spent
    own_clinic.stop()


def test_sigterm_drains_running_questions_and_ends_with_0(own_clinic: Served) -> None:
    """Running queries are answered, waiting clients are told, no new client is accepted, and the process ends with 0."""
    own_clinic.start()
    idle, busy, before = own_clinic.client(), own_clinic.client(), own_clinic.charges()
    busy.send(framed(b"Q", text("SELECT sex, COUNT(*), AVG(bmi) FROM patients WHERE age > 22 GROUP BY sex")))
    for _ in range(3000):
        if own_clinic.charges() > before:
            break
        time.sleep(0.02)
    assert own_clinic.stop() == 0
    assert error_of(idle.until(b"E"))["C"] == "57P01"
    assert len(rows_of(busy.until(b"Z", b"E"))) == 2
    with pytest.raises(OSError):
        Client(own_clinic.port)


def test_without_tls_other_machines_are_not_served(own_clinic: Served) -> None:
    command = [sys.executable, "-m", "dpsql", "serve", "-p", str(own_clinic.policy), "--listen", "0.0.0.0:0"]
    environment = {**os.environ, "DPSQL_STATE": str(own_clinic.state)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode != 0
    assert "serve_plain" in found.stderr


def test_interrupting_one_session_leaves_others_running() -> None:
    """`another` makes cancel safe: the engines of two sessions share the data but no running query."""
    slow = EngineQuery("SELECT count(*) AS n FROM range(20000000000) a", (), ("n",))
    one = DuckDBEngine(duckdb.connect(), load_policy(POLICY), "v", owned=True)
    other = one.another()
    ended: list[str] = []

    def run() -> None:
        try:
            one.run(slow)
        except Error as error:
            ended.append(error.slug)

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(20):
        other.interrupt()
        time.sleep(0.02)
    assert thread.is_alive()
    for _ in range(2000):
        if not thread.is_alive():
            break
        one.interrupt()
        thread.join(0.05)
    assert ended == ["engine_failed"]
    one.close()
