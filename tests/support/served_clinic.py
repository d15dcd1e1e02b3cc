"""A served NAFLD clinic: `dpsql serve` as a separate process, and its owner's view of the ledger."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from clients.programs import left_out

from dpsql.frontends.demo import build_demo
from dpsql.frontends.pgwire.connection import Limits
from dpsql.frontends.pgwire.logins import open_logins
from dpsql.frontends.pgwire.server import Server, ServerState
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.release.confinement import ConfinedPool
from dpsql.session.session import open_session
from support.forked import Forked
from support.raw_client import Client

PASSWORD = "an honest password"
SLOW = "SELECT count(*) FROM generate_series(1, 90000) a FULL JOIN generate_series(1, 90000) b ON a + b < 0"
"""Its eight thousand million pairs take longer than the server computes one answer."""
GROUPED = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"


@dataclass
class Served:
    """One running server. `start` and `stop` may be used repeatedly on the same clinic."""

    policy: Path
    state: Path
    options: tuple[str, ...] = ("--tls-self-signed",)
    port: int = 0
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    dataset: str = "nafld"

    def start(self) -> "Served":
        environment = {**os.environ, "DPSQL_STATE": str(self.state)}
        command = ["-m", "dpsql", "serve", "-p", str(self.policy), "--listen", "127.0.0.1:0", *self.options]
        self.process = Forked(command, env=environment, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith(f"serving {self.dataset} on 127.0.0.1:"), line + self.process.stderr.read()
        self.port = int(line.split("127.0.0.1:")[1].split()[0].rstrip(","))
        return self

    def stop(self, how: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        status = self.process.wait(timeout=240)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status

    @property
    def running(self) -> int:
        """Return the number of the server's process."""
        assert self.process is not None
        return self.process.pid

    @property
    def place(self) -> dict[str, Any]:
        """Return the connection parameters for drivers."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "research",
            "password": PASSWORD,
            "dbname": self.dataset,
        }

    @property
    def url(self) -> str:
        return f"research:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/nafld"

    def client(self, **parameters: str) -> Client:
        """Return a raw connection, logged in."""
        return logged_in(self.port, **parameters)

    def charges(self) -> int:
        """Return the number of charges in the ledger."""
        return len(self.charged())

    def charged(self) -> list[dict[str, Any]]:
        """Return the ledger's description of each charge, oldest first."""
        policy = load_policy(self.policy)
        with open_ledger(policy.ledger_url(), policy.dataset, state=self.state) as ledger:
            return [entry.facts for entry in ledger.history() if entry.kind == "charge"]

    def outcomes(self) -> list[str]:
        """Return the outcomes of the charges, oldest first."""
        policy = load_policy(self.policy)
        with open_ledger(policy.ledger_url(), policy.dataset, state=self.state) as ledger:
            return [entry.kind for entry in ledger.history() if entry.kind in ("committed", "failed")]


def build_clinic(folder: Path) -> Served:
    """Create the clinic in `folder`, with its ledger and a login; it is not served yet."""
    if reason := left_out("openssl"):
        pytest.skip(reason)
    state = folder / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(state))
        policy = build_demo("nafld", folder)
        policy.write_text(policy.read_text().replace("\nanalysts:", "\nprojects: {flu: {epsilon: 5}}\nanalysts:"))
        open_session(policy, create_ledger=True).close()
        loaded = load_policy(policy)
        with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
            for name in ("research", "clinic", "owner"):
                open_logins(ledger, loaded).add(name, PASSWORD)
    return Served(policy, state)


@contextmanager
def serving(state: ServerState, limits: Limits | None = None) -> Iterator[int]:
    """Serve the state from this process, where tests can replace its parts; yield the port, and close the state at the end.
    Processes for confined statements start only on demand: most queries need none."""
    state.logins.prepare()
    loop = asyncio.new_event_loop()
    server = Server(state, limits=limits)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ConfinedPool, "start", lambda pool: None)
            address = run(server.start("127.0.0.1", 0))
        yield address[1]
    finally:
        run(server.drain())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        state.engine.close()
        state.store.close()
        state.ledger.close()


def logged_in(port: int, user: str = "research", **parameters: str) -> Client:
    """Return a raw connection to a server of the clinic, logged in."""
    client = Client(port)
    told = client.login(user, PASSWORD, "nafld", **parameters)
    assert told[-1][0] == b"Z", told
    return client


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield one server for all tests that leave it unchanged."""
    clinic = build_clinic(tmp_path_factory.mktemp("clinic")).start()
    yield clinic
    clinic.stop()


@pytest.fixture(scope="module")
def own_clinic(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Return a clinic whose server the tests start and stop themselves."""
    return build_clinic(tmp_path_factory.mktemp("own_clinic"))
