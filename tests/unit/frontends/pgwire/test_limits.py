"""The server's limits: clients that are silent, slow or too many are disconnected, and others are served meanwhile."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.raw_client import Client, error_of, framed, rows_of, text
from support.served_clinic import PASSWORD, Served, logged_in, serving

from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire.connection import Limits
from dpsql.frontends.pgwire.server import ClientConnection

MUCH = ";".join(["SELECT b, repeat('x', 10000) FROM generate_series(1, 100) AS b"] * 50)
"""50 MB: more than sockets hold, in statements that the server computes."""
SHORT = 0.3


@contextmanager
def limited(clinic: Served, **limits: float) -> Iterator[int]:
    with serving(open_server_state(clinic.policy), Limits(**limits)) as port:  # type: ignore[arg-type]
        yield port


def is_well(port: int) -> None:
    assert rows_of(logged_in(port).query("SELECT 1")) == [[b"1"]]


@pytest.mark.parametrize(
    "said", [b"", b"\0\0", struct.pack("!II", 8, 80877104), struct.pack("!II", 90, 196608) + b"user\0"]
)
def test_who_does_not_log_in_is_let_go(clinic: Served, said: bytes) -> None:
    """Half-open sockets, half a startup packet: the server waits no longer than the login's time."""
    with limited(clinic, login_seconds=SHORT) as port:
        silent = Client(port)
        silent.send(said)
        is_well(port)
        assert [kind for kind, _ in iter(silent.read, None)] == []


def test_who_stops_in_the_middle_of_the_login_is_let_go(clinic: Served) -> None:
    with limited(clinic, login_seconds=2 * SHORT) as port:
        silent = Client(port)
        silent.start("research", "nafld")
        assert [kind for kind, _ in iter(silent.read, None)] == [b"R"]
        is_well(port)


def test_who_says_nothing_any_more_is_let_go(clinic: Served) -> None:
    with limited(clinic, idle_seconds=SHORT) as port:
        silent = logged_in(port)
        assert silent.read() is None
        half = logged_in(port)
        half.send(framed(b"Q", text("SELECT 1"))[:-3])
        assert half.read() is None


def test_who_does_not_read_is_let_go(clinic: Served) -> None:
    """The answer is longer than all buffers in between; the thread becomes free again."""
    with limited(clinic, write_seconds=SHORT, connections=2) as port:
        for _ in range(2):
            slow = logged_in(port)
            slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.send(framed(b"Q", text(MUCH)))
            slow.socket.settimeout(20)
            is_well(port)
            gone = threading.Event()

            def wait(client: Client = slow, gone: threading.Event = gone) -> None:
                """Send until it fails, which happens when the server has closed the connection."""
                try:
                    while True:
                        client.send(framed(b"S") * 1000)
                except OSError:
                    gone.set()

            thread = threading.Thread(target=wait)
            thread.start()
            assert gone.wait(240)
            thread.join()


def test_one_connection_too_many_is_refused(clinic: Served) -> None:
    with limited(clinic, connections=2) as port:
        first, _second = logged_in(port), logged_in(port)
        third = Client(port)
        third.start("research", "nafld")
        assert error_of(third.until(b"E"))["C"] == "53300"
        third.close()
        first.send(framed(b"X"))
        assert first.read() is None
        is_well(port)


def test_a_user_has_a_limit_too(clinic: Served) -> None:
    with limited(clinic, connections_per_user=1) as port:
        first = logged_in(port)
        assert error_of(Client(port).login("research", PASSWORD, "nafld"))["C"] == "53300"
        assert Client(port).login("clinic", PASSWORD, "nafld")[-1][0] == b"Z"
        assert rows_of(first.query("SELECT 1")) == [[b"1"]]


def test_vanished_clients_are_noticed_by_the_system(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut cable sends no signal; the kernel probes every client that is silent for a minute."""
    seen: list[tuple[int, int, int, int]] = []
    ask = ClientConnection._keep_alive

    def looked_at(connection: ClientConnection) -> None:
        ask(connection)
        link = connection._writer.get_extra_info("socket")
        tcp = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        values = [link.getsockopt(socket.IPPROTO_TCP, one) for one in tcp]
        seen.append((link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), *values))

    monkeypatch.setattr(ClientConnection, "_keep_alive", looked_at)
    with limited(clinic) as port:
        is_well(port)
    assert seen == [(1, 60, 15, 4)]
