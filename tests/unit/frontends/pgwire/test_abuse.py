"""The resources that one client can take from the server are bounded: settings, savepoints, sockets before login, password
guesses."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from support.raw_client import Client, error_of, framed, rows_of
from support.served_clinic import PASSWORD, Served, logged_in, serving

from dpsql.errors.exceptions import REGISTER, Error, refuse
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire import server
from dpsql.frontends.pgwire.backend import error_bytes, for_analysts
from dpsql.frontends.pgwire.connection import (
    LONGEST_SECONDS,
    MOST_LINES,
    MOST_LINES_OF_ADDRESS,
    MOST_REMEMBERED,
    FailedLogins,
    Limits,
    LoginBackOff,
)
from dpsql.frontends.pgwire.settings import MOST_OWN, Settings
from dpsql.frontends.pgwire.transactions import MOST_SAVEPOINTS
from dpsql.policy import load_policy
from dpsql.policy.fields import canonical
from dpsql.session.session import open_session


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Yield the records of dpsql's own logs, even if another test has redirected them to files."""
    loggers = [logging.getLogger(name) for name in ("dpsql.audit", "dpsql.custodian")]
    caplog.set_level(logging.INFO, "dpsql.audit")
    kept = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(caplog.handler)
        logger.propagate = False
    yield caplog
    for logger, propagate in zip(loggers, kept, strict=True):
        logger.removeHandler(caplog.handler)
        logger.propagate = propagate


@contextmanager
def limited(clinic: Served, **limits: float) -> Iterator[int]:
    with serving(open_server_state(clinic.policy), Limits(**limits)) as port:  # type: ignore[arg-type]
        yield port


# --- settings and savepoints ------------------------------------------------------------------------------------------


def test_own_settings_and_savepoints_are_bounded(clinic: Served) -> None:
    """Without limits, 9,000 settings times 10,000 savepoints take 2.4 GB."""
    with limited(clinic) as port:
        client = logged_in(port)
        many = ";".join(f"SET my.x{number} = 'y'" for number in range(MOST_OWN))
        assert client.query(many)[-1][0] == b"Z"
        assert error_of(client.query("SET my.other = 'y'"))["C"] == "54000"
        assert client.query("SET my.x1 = 'z'; RESET my.x2; SET my.other = 'y'")[-1][0] == b"Z"
        assert rows_of(client.query("SHOW my.other")) == [[b"y"]]
        assert error_of(client.query(f"SET my.{'x' * 200} = 1"))["C"] == "22023"
        client.query("BEGIN")
        for start in range(0, MOST_SAVEPOINTS, 500):
            client.query(";".join(f"SAVEPOINT s{number}" for number in range(start, start + 500)))
        assert error_of(client.query("SAVEPOINT other"))["C"] == "54000"
        assert client.query("ROLLBACK TO s0; SAVEPOINT other; COMMIT")[-1][1] == b"I"


def test_savepoints_share_settings_that_did_not_change() -> None:
    settings = Settings("ann")
    first, second = settings.snapshot(), settings.snapshot()
    assert first is second
    settings.set("my.x", "1")
    assert "my.x" not in first and settings.snapshot() is not first
    settings.restore(first)
    settings.set("jit", "on")
    settings.reset("jit")
    settings.reset("my.x")
    assert first == Settings("ann").snapshot()
    settings.reset("all")
    settings.start("my.z", "1")
    settings.set("my.z", "2")
    settings.reset("all")
    assert settings.get("my.z") == "1" and "my.z" not in first


# --- sockets ----------------------------------------------------------------------------------------------------------


def test_silent_sockets_lock_nobody_out(clinic: Served) -> None:
    """Without limits, a hundred of them take every place for the 29 seconds that a login may take."""
    with limited(clinic, connections=3, before_login_per_address=4) as port:
        silent = [Client(port) for _ in range(12)]
        assert rows_of(logged_in(port).query("SELECT 1")) == [[b"1"]]
        for client in silent[:8]:
            assert client.read() is None, "the oldest is let go"
        silent[-1].start("research", "nafld")
        assert silent[-1].read() is not None, "the youngest may go on"


def test_sockets_before_login_are_bounded_in_all(clinic: Served) -> None:
    with limited(clinic, before_login=2) as port:
        silent = [Client(port) for _ in range(5)]
        for client in silent[:3]:
            assert client.read() is None
        assert rows_of(logged_in(port).query("SELECT 1")) == [[b"1"]]


def test_the_owner_has_places_of_their_own(clinic: Served) -> None:
    with limited(clinic, connections=1, owner_connections=1) as port:
        analyst, owner = logged_in(port), logged_in(port, "owner")
        assert error_of(Client(port).login("research", PASSWORD, "nafld"))["C"] == "53300"
        assert error_of(Client(port).login("owner", PASSWORD, "nafld"))["C"] == "53300"
        assert rows_of(analyst.query("SELECT 1")) == rows_of(owner.query("SELECT 1")) == [[b"1"]]


def test_too_few_descriptors_are_told_at_the_start(clinic: Served) -> None:
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300));"
        "from dpsql.frontends.cli import status_of; sys.exit(status_of(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "serve", "-p", str(clinic.policy), "--listen", "127.0.0.1:0"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "serve_descriptors" in found.stderr and found.returncode == 2


# --- information in errors --------------------------------------------------------------------------------------------


def test_errors_to_analysts_carry_no_path(logged: pytest.LogCaptureFixture) -> None:
    place = "/var/lib/dpsql/secret"
    facts = dict.fromkeys(
        ("place", "address", "origin", "source", "folder", "file", "path"), place
    )  # fmt: skip
    named = [
        slug
        for slug, entry in REGISTER.items()
        if any("{" + name + "}" in entry.sentence + entry.hint for name in facts)
    ]
    assert {"ledger_key_missing", "ledger_state", "source_missing", "ledger_missing"} <= set(named)
    for slug in named:
        others = dict.fromkeys(("dataset", "table", "problem", "path", "sentence", "more", "number"), "x")
        filled = {**dict.fromkeys(_fields(slug), "x"), **others, **facts}
        logged.clear()
        told = error_bytes(refuse(slug, charged=True, **filled))
        assert place.encode() not in told and b"incident" in told and b"the charge stays" in told, slug
        assert place in logged.text and logged.records[0].name == "dpsql.custodian"
    assert for_analysts(refuse("unknown_table", name=place)).message == f'relation "{place}" does not exist'


def _fields(slug: str) -> set[str]:
    entry = REGISTER[slug]
    return {part.split("}")[0] for part in (entry.sentence + entry.hint).split("{")[1:]}


# --- guesses ----------------------------------------------------------------------------------------------------------


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_failure_doubles_the_wait() -> None:
    clock = Clock()
    back_off = LoginBackOff(first_seconds=1, free=3, clock=clock)
    for _ in range(3):
        assert back_off.seconds("ann", "a") == 0
        back_off.failed("ann", "a")
    waits = []
    for _ in range(4):
        back_off.failed("ann", "a")
        waits.append(back_off.seconds("ann", "a"))
        clock.now += waits[-1]
        assert back_off.seconds("ann", "a") == 0
    assert waits == [1, 2, 4, 8]
    for _ in range(30):
        back_off.failed("ann", "a")
    assert back_off.seconds("ann", "a") == LONGEST_SECONDS
    assert back_off.seconds("ann", "b") == 0, "a user is not locked out by guesses from elsewhere"
    back_off.succeeded("ann", "a")
    assert back_off.seconds("bob", "a") > 0, "the address guessed too often, whatever the names"


def test_the_memory_of_failures_is_bounded_and_a_login_forgets_them() -> None:
    back_off = LoginBackOff(free=1, clock=Clock())
    back_off.failed("ann", "a")
    back_off.succeeded("ann", "a")
    back_off.failed("ann", "a")
    assert back_off.seconds("ann", "a") == 0
    for number in range(MOST_REMEMBERED):
        back_off.failed(f"user{number}", f"host{number}")
    assert len(back_off._failures) == MOST_REMEMBERED


@pytest.mark.parametrize("user", ["research", "nobody"])
def test_guesses_are_slowed_down_and_written_down(
    clinic: Served, user: str, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without limits, 389 guesses can pass in four seconds, without a trace."""
    monkeypatch.setattr(server, "LoginBackOff", partial(LoginBackOff, clock=Clock()))
    with limited(clinic, failed_login_seconds=0) as port:
        answers = [error_of(Client(port).login(user, f"guess {number}", "nafld")) for number in range(8)]
        assert [one["C"] for one in answers] == ["28P01"] * 8
        assert ["too many failed logins" in one["M"] for one in answers] == [False] * 6 + [True] * 2
        if user == "research":
            right = error_of(Client(port).login(user, PASSWORD, "nafld"))
            assert "too many failed logins" in right["M"], "the right password is not looked at either"
        assert Client(port).login("clinic", PASSWORD, "nafld")[-1][0] == b"Z"
    events = [json.loads(record.getMessage()) for record in logged.records if record.name == "dpsql.audit"]
    failed = [one for one in events if one["event"] == "login_failed"]
    assert [(one["user"], one["address"]) for one in failed[:8]] == [(user, "127.0.0.1")] * 8
    assert [one["user"] for one in events if one["event"] == "login"] == ["clinic"]


def test_a_flood_of_failed_logins_writes_a_bounded_log_that_says_how_many(logged: pytest.LogCaptureFixture) -> None:
    """By one address for two minutes, which hides nobody else, and by ten thousand addresses."""
    clock = Clock()
    failed = FailedLogins(clock)

    def written(addresses: Iterable[str]) -> list[dict[str, Any]]:
        logged.clear()
        for address in addresses:
            failed.note("x" * 10_000, address, "login_failed")
        lines = [record.getMessage() for record in logged.records if record.name == "dpsql.audit"]
        events = [json.loads(line) for line in lines]
        assert all(len(json.dumps({**event, "datasets": []})) < 500 for event in events)
        return events

    assert len(written(["a"] * 10_000)) == MOST_LINES_OF_ADDRESS
    assert [line["left_out"] for line in written(["b"])] == [10_000 - MOST_LINES_OF_ADDRESS]
    clock.now += 60
    assert len(written(["a"] * 10_000)) == MOST_LINES_OF_ADDRESS
    clock.now += 60
    lines = written(f"host{number}" for number in range(10_000))
    assert len(lines) == MOST_LINES and [line.get("left_out") for line in lines] == [
        10_000 - MOST_LINES_OF_ADDRESS, *[None] * (MOST_LINES - 1)
    ]  # fmt: skip
    assert failed.left_out == 30_000 - 2 * MOST_LINES_OF_ADDRESS - MOST_LINES


def test_guesses_over_the_wire_are_lines_of_that_log(
    clinic: Served, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsql.frontends.pgwire.connection.MOST_LINES_OF_ADDRESS", 3)
    with limited(clinic, failed_login_seconds=0) as port:
        for number in range(5):
            Client(port).login("nobody", f"guess {number}", "nafld")
    assert sum("login_failed" in record.getMessage() for record in logged.records if record.name == "dpsql.audit") == 3


def test_guesses_side_by_side_are_counted_too(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LoginBackOff", partial(LoginBackOff, clock=Clock()))
    with limited(clinic, failed_login_seconds=0) as port:
        clients = [Client(port) for _ in range(12)]
        for client in clients:
            client.start("research", "nafld")
            assert client.until(b"R")[-1][0] == b"R"
        seen = [error_of(_proof(client)) for client in clients]
        assert sum("too many" in one["M"] for one in seen) == 6


def _proof(client: Client) -> list[tuple[bytes, bytes]]:
    client.send(framed(b"p", b"SCRAM-SHA-256\0" + (len(b"n,,n=,r=abc")).to_bytes(4, "big") + b"n,,n=,r=abc"))
    found = client.until(b"R", b"E")
    if found[-1][0] == b"E":
        return found
    nonce = found[-1][1][4:].decode().split(",")[0]
    client.send(framed(b"p", f"c=biws,{nonce},p={'A' * 43}=".encode()))
    return client.until(b"E")


# --- projects ---------------------------------------------------------------------------------------------------------


def test_a_project_is_charged_by_its_members_alone(clinic: Served) -> None:
    own = clinic.policy.with_name("members.yaml")
    own.write_text(clinic.policy.read_text().replace("{flu: {epsilon: 5}}", "{flu: {epsilon: 5, members: [clinic]}}"))
    before = clinic.charges()
    sql = "SELECT COUNT(*) AS n FROM patients WHERE age > 37"
    with open_session(own, analyst="research") as session:
        session.set_option("dp.project", "flu")
        with pytest.raises(Error) as caught:
            session.execute(sql)
        assert (caught.value.slug, caught.value.sqlstate, caught.value.charged) == ("project_member", "42501", False)
    with pytest.raises(Error, match="not a member"):
        open_session(own, analyst="research", project="flu")
    assert clinic.charges() == before
    with open_session(own, analyst="clinic", project="flu") as session:
        session.execute(sql)
    assert clinic.charged()[-1]["scopes"] == ["analyst:clinic", "dataset", "project:flu"]


def test_members_are_analysts_and_change_no_fingerprint_when_left_out(clinic: Served) -> None:
    own = clinic.policy.with_name("wrong.yaml")
    whole = clinic.policy.read_text()
    own.write_text(whole.replace("{flu: {epsilon: 5}}", "{flu: {epsilon: 5, members: [nobody]}}"))
    with pytest.raises(Error, match="names no analyst nobody"):
        load_policy(own)
    own.write_text(whole.replace("{flu: {epsilon: 5}}", "{flu: {epsilon: 5, members: [clinic]}}"))
    assert load_policy(own).version != load_policy(clinic.policy).version
    assert load_policy(own).meaning == load_policy(clinic.policy).meaning
    assert canonical(load_policy(clinic.policy).projects["flu"]) == {"epsilon": "5", "delta": None}
