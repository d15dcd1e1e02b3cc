"""Two `dpsql serve` processes with separate state directories, one ledger on a real PostgreSQL server, one budget."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from support.clinic_folder import BUILD, POLICY
from support.postgres_source import Server, server
from support.relay import Relay
from support.served_clinic import PASSWORD, Served

__all__ = ["server"]
pytestmark = pytest.mark.slow
QUESTIONS = 24
"""A budget of 2.4 pays for this many queries at 0.1."""
WRITES = b"INSERT INTO dpsql_entries"
WINDOWS = {
    "while it writes": ((WRITES,), False, 0),
    "before it is durable": ((WRITES, b"COMMIT"), False, 0),
    "after it is durable": ((WRITES, b"COMMIT"), True, 1),
}
"""Moments at which the network is cut: the texts that have passed, whether the last one does, and the number of charges in the
ledger then. A reservation whose outcome the proxy has not received stays there and counts as spent."""


def command(state: Path, *arguments: str, text: str | None = None) -> None:
    environment = {**os.environ, "DPSQL_STATE": str(state)}
    subprocess.run([sys.executable, "-m", "dpsql", *arguments], env=environment, input=text, text=True, check=True)


@dataclass
class Hosts:
    """Two proxies, the network of each to the ledger, and the ledger as the database's owner sees it."""

    served: list[Served]
    relays: list[Relay]
    owner: psycopg.Connection[Any]

    def charges(self) -> int:
        return int(
            (self.owner.execute("SELECT count(*) FROM dpsql_entries WHERE kind = 'charge'").fetchone() or (0,))[0]
        )

    def connect(self, host: int) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.served[host].place, autocommit=True)


def ask(connection: psycopg.Connection[Any], sql: str) -> list[tuple[Any, ...]] | str:
    """Return rows, or the SQLSTATE of the error."""
    try:
        return connection.execute(sql).fetchall()
    except psycopg.Error as error:
        return str(error.sqlstate)


@pytest.fixture
def hosts(server: Server, tmp_path: Path) -> Iterator[Hosts]:
    """Yield two hosts. The second gets its state as docs/operations.md describes: the ledger's key is copied, then the ledger
    adopted."""
    url = server.database()
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(BUILD)
    served, relays = [], []
    for number in (0, 1):
        folder, state = tmp_path / f"n{number}", tmp_path / f"state{number}"
        folder.mkdir()
        relays.append(Relay(folder, server.folder))
        policy = tmp_path / f"clinic{number}.yaml"
        ledger = url.replace(f"host={server.folder}", f"host={folder}")
        text = POLICY.replace("sqlite:///clinic-ledger.db", ledger)
        policy.write_text(text.replace("{epsilon: 2,", "{epsilon: 2.4,").replace("{epsilon: 1}", "{epsilon: 2.4}"))
        if number == 0:
            command(state, "check", str(policy), "--create-ledger")
        else:
            (key,) = (tmp_path / "state0").glob("*/key")
            place = state / key.parent.name
            place.mkdir(parents=True, mode=0o700)
            shutil.copy(key, place / "key")
            command(state, "budget", "adopt", "-p", str(policy), "--newest-copy")
        command(state, "user", "add", "-p", str(policy), "research", text=f"{PASSWORD}\n")
        served.append(Served(policy, state, options=(), dataset="clinic").start())
    with psycopg.connect(url, autocommit=True) as owner:
        yield Hosts(served, relays, owner)
    for host in served:
        host.stop()


def test_proxies_share_releases_and_a_budget_and_answer_nothing_uncharged(hosts: Hosts) -> None:
    """A single test, because starting two servers takes longer than their queries."""
    first, second = (hosts.connect(host) for host in (0, 1))
    stored = "SELECT COUNT(*) FROM patients WHERE age > 33"
    for connection in (first, second):
        connection.execute("SET dp.reuse = on")
    answer = ask(first, stored)
    assert ask(second, stored) == answer and not isinstance(answer, str)
    assert hosts.charges() == 1
    for connection in (first, second):
        connection.execute("SET dp.reuse = off")
    ages = itertools.count(34)

    def other() -> str:
        return f"SELECT COUNT(*) FROM patients WHERE age > {next(ages)}"

    for name, (markers, passes, left) in WINDOWS.items():
        before, cuts = hosts.charges(), hosts.relays[0].cuts
        hosts.relays[0].cut_at(*markers, passes=passes)
        outcome = ask(first, other())
        assert isinstance(outcome, str) and outcome[:2] in ("08", "55", "57", "58"), (name, outcome)
        assert hosts.relays[0].cuts == cuts + 1, name
        with pytest.raises(psycopg.OperationalError, match="ledger cannot be reached"):
            hosts.connect(0)
        assert isinstance(ask(second, other()), list), name  # the other host continues
        assert hosts.charges() == before + left + 1, name
        hosts.relays[0].mend()
        assert isinstance(ask(first, other()), list), name  # and this one, as soon as it can
        assert hosts.charges() == before + left + 2, name
    remaining = QUESTIONS - hosts.charges()
    asked = [(connection, other()) for _ in range(remaining) for connection in (first, second)]
    with ThreadPoolExecutor(2) as pool:
        outcomes = [*pool.map(lambda half: [ask(*question) for question in half], (asked[::2], asked[1::2]))]
    states = [outcome for half in outcomes for outcome in half if isinstance(outcome, str)]
    assert set(states) == {"53400"} and len(asked) - len(states) == remaining
    assert hosts.charges() == QUESTIONS
    for connection, served in zip((first, second), hosts.served, strict=True):
        connection.close()
        command(served.state, "budget", "verify", "-p", str(served.policy))
