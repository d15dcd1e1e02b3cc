"""A thread that waits for an unresponsive device keeps neither its client nor the server's shutdown waiting."""

import os
import signal
import subprocess
import sys

import pytest
from support.raw_client import Client, error_of, framed, text
from support.served_clinic import PASSWORD, Served

STUCK = """
import sys, time
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.frontends.cli import status_of
def stuck(*arguments):
    print("stuck", file=sys.stderr, flush=True)
    while True:
        time.sleep(1000)
setattr(DuckDBEngine, sys.argv[1], stuck)
sys.exit(status_of(sys.argv[2:]))
"""
"""The server with a reader that ignores interrupts, like one of a FIFO or a hanging mount."""


@pytest.mark.parametrize(("where", "charged"), [("run", 1), ("check_readable", 0)])
def test_a_reader_that_hangs_holds_neither_its_client_nor_the_end_of_the_server(
    clinic: Served, where: str, charged: int
) -> None:
    """Without this, such a reader ignores its timeout and SIGTERM, for 110 seconds in one case."""
    before = clinic.charges()
    command = [sys.executable, "-c", STUCK, where, "serve", "-p", str(clinic.policy), "--listen", "127.0.0.1:0"]
    command += ["--drain-seconds", "0.2"]
    server = subprocess.Popen(
        command, env={**os.environ, "DPSQL_STATE": str(clinic.state)}, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    line = server.stderr.readline()
    port = int(line.split("127.0.0.1:")[1].split()[0].rstrip(","))
    client, other = Client(port), Client(port)
    client.login("research", PASSWORD, "nafld", options="-c statement_timeout=2000")
    other.login("research", PASSWORD, "nafld")
    found = error_of(client.query("SELECT COUNT(*) FROM patients WHERE age > 71"))
    assert found["C"] == "57014" and found["D"] == ("the charge stays" if charged else "nothing was charged")
    other.send(framed(b"Q", text("SELECT COUNT(*) FROM patients WHERE age > 72")))
    told = ""
    while told.count("stuck\n") < 2:
        told += server.stderr.readline()
    server.send_signal(signal.SIGTERM)
    _, told = server.communicate(timeout=60)
    assert server.returncode == 4
    assert "left 2 threads that could not be stopped" in told
    assert clinic.charges() == before + 2 * charged
