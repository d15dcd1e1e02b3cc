"""The owner's port, metrics without a private number, and one line of the audit log for each event."""

import json
import logging
import os
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.raw_client import SYNC, Client, bind, describe, execute, parse
from support.served_clinic import PASSWORD, Served, logged_in, serving

from dpsql.errors.custodian_log import LOST, AuditLog, CustodianLog, JsonLine, audit
from dpsql.errors.exceptions import refuse
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire.connection import StatusServer
from dpsql.frontends.pgwire.server import Server


def page(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=240) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def ports(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, Server]]:
    """Yield the analysts' port, the owner's, and the server behind both."""
    made: list[Server] = []
    status: list[int] = []
    start = Server.start

    async def both(server: Server, host: str, port: int) -> tuple[str, int]:
        made.append(server)
        status.append((await StatusServer(server.pages()).start("127.0.0.1", 0))[1])
        return await start(server, host, port)

    monkeypatch.setattr(Server, "start", both)
    with serving(open_server_state(clinic.policy)) as port:
        yield port, status[0], made[0]


def ask(port: int, *questions: str) -> None:
    client = logged_in(port)
    for sql in questions:
        client.query(sql)


def test_health_and_readiness_follow_ledger_and_shutdown(
    ports: tuple[int, int, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, status, server = ports
    assert page(status, "/healthz") == (200, "ok\n")
    assert page(status, "/readyz?x=1") == (200, "ready\n")
    assert page(status, "/else")[0] == 404 and page(status, "/healthz", "POST")[0] == 405

    def broken() -> Any:
        raise refuse("ledger_unreachable", what="the ledger")

    monkeypatch.setattr(server._state.ledger, "accounts", broken)
    assert page(status, "/readyz") == (503, "ledger_unreachable\n") and page(status, "/healthz")[0] == 200
    server.draining = True
    assert page(status, "/readyz") == (503, "stopping\n")
    server.draining = False


def test_metrics_count_questions_by_outcome(ports: tuple[int, int, Server]) -> None:
    pytest.importorskip("prometheus_client", reason="the extra dpsql[metrics]")
    port, status, _ = ports
    counted = "SELECT COUNT(*) AS n FROM patients WHERE age > 27"
    ask(port, counted, counted, "SELECT age FROM patients", "SET dp.epsilon = 0.1", "SELECT 1", "SHOW dp.budget",
        "SET dp.epsilon = 1; SELECT COUNT(*) AS n FROM nowhere")  # fmt: skip
    code, found = page(status, "/metrics")
    lines = dict(line.rsplit(" ", 1) for line in found.splitlines() if not line.startswith("#"))
    assert code == 200
    assert lines['dpsql_questions_total{outcome="measured"}'] == "1.0"
    assert lines['dpsql_questions_total{outcome="stored"}'] == "1.0"
    assert lines['dpsql_questions_total{outcome="refused"}'] == "2.0"
    assert lines["dpsql_stored_answer_seconds_count"] == "1.0"
    assert 0 < float(lines['dpsql_budget_spent_ratio{scope="analyst:research"}']) < 1
    assert lines["dpsql_questions_waiting"] == "0.0"
    assert float(lines["dpsql_memory_limit_bytes"]) == 1 << 30 and lines["dpsql_memory_refusals"] == "0.0"
    assert [lines[f"dpsql_memory_{kind}_bytes"] for kind in ("rows", "statements", "sent")] == ["0.0"] * 3


@contextmanager
def audited_by(handler: logging.Handler) -> Iterator[None]:
    """Write the audit log's events to `handler` alone while the context is open."""
    logger = logging.getLogger("dpsql.audit")
    level = logger.level
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logger, "handlers", [handler])
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.setLevel(level)


def test_an_event_is_one_line_whatever_a_client_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path))
    with audited_by(AuditLog()):
        hostile = 'x"}\n{"event": "login", "user": "owner"}\r\x1b[2J\u2028\x85' + "y" * 5_000
        audit("login_failed", user=hostile, address=None, count=3)
    written = (tmp_path / "audit.log").read_bytes()
    assert written.count(b"\n") == 1 and all(32 <= byte < 127 for byte in written[:-1])
    event = json.loads(written)
    assert event["user"] == hostile[:2_000] and event["count"] == 3 and "address" not in event
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600


def test_lines_that_cannot_be_written_are_counted(
    ports: tuple[int, int, Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("prometheus_client", reason="the extra dpsql[metrics]")

    def lost() -> list[float]:
        lines = dict(line.rsplit(" ", 1) for line in page(ports[1], "/metrics")[1].splitlines() if line[0] != "#")
        return [float(lines[f"dpsql_{name}"]) for name in ("audit_lines_lost", "custodian_lines_lost")]

    for name in ("audit.log", "custodian.log"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("dpsql.errors.custodian_log.state_directory", lambda: tmp_path)
    before = lost()
    with audited_by(AuditLog()):
        for number in range(5):
            audit("charge", receipt=str(number))
    for _ in range(2):
        CustodianLog().handle(logging.LogRecord("dpsql.custodian", logging.ERROR, "x.py", 1, "incident", (), None))
    assert [after - first for first, after in zip(before, lost(), strict=True)] == [5, 2]
    monkeypatch.setattr("dpsql.errors.custodian_log.state_directory", lambda: tmp_path / "else")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "audit.log").write_text('{"time": "a full disk took no mo')
    with audited_by(AuditLog()):
        for receipt in ("x", "y"):
            audit("charge", receipt=receipt)
    lines = (tmp_path / "else" / "audit.log").read_text().splitlines()
    assert LOST["audit"] == before[0] + 5 and [json.loads(line)["receipt"] for line in lines[1:]] == ["x", "y"]


def test_a_standard_error_that_is_closed_loses_counted_lines() -> None:
    code = (
        "import os; from dpsql.errors.custodian_log import LOST, keep_log; from dpsql.errors.custodian_log import audit; "
        "keep_log(); os.close(2); audit('login', user='ann'); print(LOST['audit'])"
    )
    environment = {**os.environ, "DPSQL_LOG": "stderr"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.stdout == "1\n"


@contextmanager
def audited(caplog: pytest.LogCaptureFixture) -> Iterator[list[dict[str, Any]]]:
    """Yield the audit log's events that are written meanwhile; the list is complete at the end."""
    logger = logging.getLogger("dpsql.audit")
    propagate, level = logger.propagate, logger.level
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    events: list[dict[str, Any]] = []
    try:
        yield events
    finally:
        logger.removeHandler(caplog.handler)
        logger.propagate = propagate
        logger.setLevel(level)
        events += [json.loads(record.getMessage()) for record in caplog.records if record.name == "dpsql.audit"]


def test_charges_and_refusals_are_written_down(
    ports: tuple[int, int, Server], clinic: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with audited(caplog) as events:
        ask(ports[0], "SELECT COUNT(*) AS n FROM patients WHERE age > 28", "SELECT age FROM patients", "SELECT 1")
    (charge,) = (event for event in events if event["event"] == "charge")
    assert charge["user"] == "research" and charge["receipt"] in clinic.charged()[-1]["id"]
    assert [event["slug"] for event in events if event["event"] == "refused"] == ["raw_rows"]
    assert not [event for event in events if "sql" in event]


def test_refusals_of_prepared_statements_and_cancel_requests_are_written_down(
    ports: tuple[int, int, Server], caplog: pytest.LogCaptureFixture
) -> None:
    with audited(caplog) as events:
        client = Client(ports[0])
        client.login("research", PASSWORD, "nafld")
        for sql in ("SELECT COUNT(shoe) FROM patients", "SELECT age FROM patients", "SELECT COUNT(*) FROM"):
            client.send(parse(sql), bind(), describe(b"P"), execute(), SYNC)
            while client.read()[0] != b"Z":  # type: ignore[index]
                pass
        number, secret = struct.unpack("!I4s", client.key)
        for key in (b"xxxx", secret):
            other = Client(ports[0])
            other.send(struct.pack("!III4s", 16, 80877102, number, key))
            assert other.read() is None
    refused = [event["slug"] for event in events if event["event"] == "refused"]
    assert refused == ["unknown_column", "raw_rows", "wire_words"]
    assert [event["connection"] for event in events if event["event"] == "cancel"] == [number], "the right key alone"


def test_the_custodians_log_has_one_line_for_each_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path))
    handler = CustodianLog()
    handler.setFormatter(JsonLine())
    try:
        raise ValueError('a row\n{"time": "forged"}\u2028')
    except ValueError as error:
        cause = (type(error), error, error.__traceback__)
    handler.handle(logging.LogRecord("dpsql.x", logging.ERROR, "x.py", 1, "incident %s", ("1\n2\x1b[2J",), cause))
    written = (tmp_path / "custodian.log").read_bytes()
    assert written.count(b"\n") == 1 and all(32 <= byte < 127 for byte in written[:-1])
    line = json.loads(written)
    assert line["message"] == "incident 1\n2\x1b[2J" and "forged" in line["traceback"] and line["level"] == "error"


def test_no_log_quotes_a_question_that_the_parser_warns_of(tmp_path: Path) -> None:
    program = (
        "from dpsql.errors.custodian_log import keep_log; keep_log()\n"
        "from dpsql.frontends.pgwire.parameters import Piece, read_postgres\n"
        "read_postgres(Piece('EXPLAIN SELECT confidential FROM t'))"
    )
    environment = {**os.environ, "DPSQL_STATE": str(tmp_path), "DPSQL_LOG": "stderr"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "" and not list(tmp_path.rglob("*.log"))
