"""What the last released version wrote is used by this one: ledger, logins, prepared copies, stored answers, policies. Then back.

The last released version is the newest tag `v*`; before the first one it is the last commit. `DPSQL_RELEASED` names another commit.
A ledger of every format is in `tests/formats`.
"""

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from support.places import ROOT
from support.raw_client import Client
from support.served_clinic import PASSWORD, Served
from support.visits_clinic import clinic, fill, rows

from dpsql.policy import load_policy

pytestmark = pytest.mark.slow
FREE, PAID = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "SELECT COUNT(*) AS n FROM patients"


@dataclass
class Version:
    """A source tree, and the commands that it runs on one policy and state."""

    source: Path
    policy: Path
    state: Path

    def run(self, *words: str, text: str = "") -> str:
        """Run a command of this version and return what it writes."""
        environment = {**os.environ, "PYTHONPATH": str(self.source), "DPSQL_STATE": str(self.state)}
        command = [sys.executable, "-m", "dpsql", *words, "-p", str(self.policy)]
        done = subprocess.run(
            command, env=environment, cwd=self.state.parent, input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def rows(self, sql: str) -> list[str]:
        """Answer a question of the analyst, and return the lines of its table."""
        return sorted(self.run("query", "--analyst", "research", "-f", "csv", sql).splitlines())

    def charges(self) -> int:
        return self.run("budget", "export").count('kind\\":\\"charge')


def released() -> str:
    """Return the commit of the last released version; "" where there is no repository."""
    if commit := os.environ.get("DPSQL_RELEASED"):
        return commit
    asked = ["git", "-C", str(ROOT), "tag", "--list", "v*", "--sort=-v:refname"]
    tags = subprocess.run(asked, capture_output=True, text=True, check=False)
    return "" if tags.returncode else (tags.stdout.split() or ["HEAD"])[0]


@pytest.fixture(scope="module")
def released_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source tree of the last released version."""
    commit = released()
    if not commit:
        return ROOT
    folder = tmp_path_factory.mktemp("released")
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def test_policies_of_the_released_version_load(released_source: Path) -> None:
    policies = [*released_source.glob("schemas/policies/*.yaml"), *released_source.glob("deploy/compose/policy/*.yaml")]
    assert len(policies) >= 10
    for policy in policies:
        load_policy(policy)


def test_what_the_released_version_wrote_goes_on_and_back(
    released_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    fill(tmp_path / "clinic.duckdb", rows(1))
    policy, state = clinic(tmp_path), tmp_path / "state"
    policy.write_text(policy.read_text() + "analysts: {research: {epsilon: 1000}}\n")
    state.mkdir(mode=0o700)
    old, new = Version(released_source, policy, state), Version(ROOT, policy, state)
    old.run("check", "--create-ledger")
    old.run("user", "add", "research", text=f"{PASSWORD}\n")
    old.run("prepare", "--copy")
    answer = old.rows(FREE)
    assert len(answer) > 2 and old.charges() == 1

    new.run("check")
    assert new.rows(FREE) == answer and new.charges() == 1, "a stored answer is free"
    new.run("query", "--analyst", "research", PAID)
    assert new.charges() == 2
    assert "the ledger holds" in new.run("budget", "verify")
    served = Served(policy, state, dataset="clinic").start()
    client = Client(served.port)
    assert client.login("research", PASSWORD, "clinic")[-1][0] == b"Z", "a login is one"
    client.close()
    assert served.stop() == 0
    new.run("prepare", "--copy")
    new.run("erase", "copies")
    assert new.rows(FREE) == answer

    assert "the ledger holds" in old.run("budget", "verify") and old.charges() == 2
    assert old.rows(FREE) == answer
