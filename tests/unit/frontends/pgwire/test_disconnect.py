"""When a client disconnects, waiting for its query ends: a charged query is still measured and stored, and one that has not begun
is not charged."""

import struct
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.gated_engine import PATIENCE, Gated, gated
from support.raw_client import Client, error_of, framed, rows_of, text
from support.served_clinic import PASSWORD, Served, logged_in

from dpsql.frontends.pgwire.constants.answers import Answerable
from dpsql.frontends.pgwire.stop import Stop


def closes(client: Client) -> None:
    client.socket.close()


def resets(client: Client) -> None:
    """Close with RST instead of FIN, as after a killed process or a lost link."""
    client.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))
    client.socket.close()


def asked_again(port: int, sql: str, clinic: Served, charges: int) -> None:
    """Check that the release of an abandoned query exists and costs nothing more."""
    assert len(rows_of(logged_in(port).query(sql))) == 1
    assert clinic.charges() == charges
    assert Gated.scans == 1 and not Gated.interrupted.is_set()


@pytest.mark.parametrize("leave", [closes, resets])
def test_a_client_that_leaves_stops_nothing_that_is_charged(clinic: Served, leave: Callable[[Client], None]) -> None:
    before = clinic.charges()
    sql = f"SELECT COUNT(*) FROM patients WHERE age > {51 + (leave is resets)}"
    with gated(clinic) as port:
        client = logged_in(port)
        client.send(framed(b"Q", text(sql)))
        assert Gated.begun.wait(PATIENCE)
        leave(client)
        Gated.go_on.set()
        asked_again(port, sql, clinic, before + 1)


def test_a_statement_timeout_ends_the_waiting(clinic: Served) -> None:
    """The charge stays, the client is told so, and the limit is the connection's own."""
    before = clinic.charges()
    sql = "SELECT COUNT(*) FROM patients WHERE age > 56"
    with gated(clinic) as port:
        client = logged_in(port, options="-c statement_timeout=3s")
        found = error_of(client.query(sql))
        assert (found["C"], found["M"]) == ("57014", "canceling statement due to statement timeout")
        assert found["D"] == "the charge stays" and "asking again is free" in found["H"]
        assert error_of(client.query("SET statement_timeout = 'soon'"))["C"] == "22023"
        assert rows_of(client.query("RESET statement_timeout; SHOW statement_timeout")) == [[b"3s"]]
        Gated.go_on.set()
        asked_again(port, sql, clinic, before + 1)


class Canceller(Client):
    """A client that cancels its query while the engine runs it."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.port = port
        (self.key,) = [body for kind, body in self.login("research", PASSWORD, "nafld") if kind == b"K"]

    def cancelled(self, sql: str) -> dict[str, str]:
        """Return the error of a query that is cancelled during its scan."""
        Gated.begun.clear()
        self.send(framed(b"Q", text(sql)))
        assert Gated.begun.wait(PATIENCE)
        Client(self.port).send(struct.pack("!II", 16, 80877102) + self.key)
        return error_of(self.until(b"Z"))


def test_a_cancel_ends_the_waiting(clinic: Served) -> None:
    before = clinic.charges()
    sql = "SELECT COUNT(*) FROM patients WHERE age > 57"
    with gated(clinic) as port:
        found = Canceller(port).cancelled(sql)
        assert (found["C"], found["M"]) == ("57014", "canceling statement due to user request")
        assert found["D"] == "the charge stays"
        Gated.go_on.set()
        asked_again(port, sql, clinic, before + 1)


def test_a_session_with_a_scan_that_nobody_waits_for_waits_for_it(clinic: Served) -> None:
    """Abandoned queries never pile up: the session's next query does not begin, and is not charged, until the scan ends."""
    before = clinic.charges()
    with gated(clinic) as port:
        client = Canceller(port)
        assert client.cancelled("SELECT COUNT(*) FROM patients WHERE age > 58")["D"] == "the charge stays"
        client.query("SET statement_timeout = '0.2s'")
        for age in (59, 60):
            found = error_of(client.query(f"SELECT COUNT(*) FROM patients WHERE age > {age}"))
            assert (found["C"], found["D"]) == ("57014", "nothing was charged")
        assert (clinic.charges(), Gated.scans) == (before + 1, 1)


def test_scans_that_nobody_waits_for_leave_room_for_others(clinic: Served) -> None:
    """Abandoned scans take at most two of the four places at the data, however many connections of one analyst disconnect."""
    before = clinic.charges()
    with gated(clinic) as port:
        for age in (61, 62):
            sql = f"SELECT COUNT(*) FROM patients WHERE age > {age}"
            assert Canceller(port).cancelled(sql)["D"] == "the charge stays"
        third = logged_in(port, options="-c statement_timeout=0.2s")
        found = error_of(third.query("SELECT COUNT(*) FROM patients WHERE age > 63"))
        assert found["D"] == "nothing was charged"
        Gated.begun.clear()
        other = Client(port)
        other.login("clinic", PASSWORD, "nafld")
        other.send(framed(b"Q", text("SELECT COUNT(*) FROM patients WHERE age > 64")))
        assert Gated.begun.wait(PATIENCE)
        assert (clinic.charges(), Gated.scans) == (before + 3, 3)


def test_shutdown_stops_scans_that_nobody_waits_for(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with gated(clinic) as port:
        client = logged_in(port)
        client.send(framed(b"Q", text("SELECT COUNT(*) FROM patients WHERE age > 65")))
        assert Gated.begun.wait(PATIENCE)
        client.socket.close()
        monkeypatch.setattr(Gated.go_on, "set", lambda: None)
    assert Gated.interrupted.is_set()
    assert clinic.outcomes()[-1] == "failed"


def test_what_a_leaving_client_sent_last_is_not_begun(clinic: Served) -> None:
    before = clinic.charges()
    with gated(clinic) as port:
        client = logged_in(port)
        asked = (framed(b"Q", text(f"SELECT COUNT(*) FROM patients WHERE age > {n}")) for n in (53, 54, 55))
        client.send(*asked)
        assert Gated.begun.wait(PATIENCE)
        client.socket.close()
    assert clinic.charges() == before + 1


def test_who_has_left_begins_nothing() -> None:
    stop = Stop()
    stop.leave()
    with pytest.raises(Exception, match="cancel"), stop.running(lambda: None, None):
        pass


def test_a_cancel_ends_a_statement_that_reads_no_table(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Answerable.table
    stops: list[Stop] = []

    def after_a_cancel(self: Answerable) -> Any:
        stops[0].ask()
        while not stops[0].requested:
            time.sleep(0.001)
        return usual(self)

    def waiting(self: Stop, seconds: float | None) -> Any:
        stops.append(self)
        return self.running(lambda: None, seconds)

    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    monkeypatch.setattr(Answerable, "table", after_a_cancel)
    monkeypatch.setattr(Stop, "waiting", waiting)
    with gated(clinic) as port:
        found = error_of(logged_in(port).query("SELECT count(n) FROM generate_series(1, 9999) n"))
        assert (found["C"], found["M"]) == ("57014", "canceling statement due to user request")


def test_a_cancel_does_not_reach_what_is_prepared_after_its_statement() -> None:
    stop = Stop()
    with pytest.raises(Exception, match="cancel"), stop.running(lambda: None, None):
        stop.requested = True
        stop.check()
    stop.check()
