"""A small clinic in a folder of its own, and the command line, run in this process or as a separate one."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.frontends.cli import status_of
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from support.database_files import create_database
from support.forked import Forked
from support.places import ROOT

REPOSITORY = ROOT
POLICY = """\
dataset: clinic
source: duckdb:///clinic.duckdb
privacy_unit: {table: patients, column: patient_id}
budget: {epsilon: 2, delta: 1e-6, accountant: pure}
per_query: {epsilon: 0.1, max_epsilon: 1}
ledger: sqlite:///clinic-ledger.db
analysts:
  research: {epsilon: 1}
tables:
  patients:
    max_rows: 1
    columns:
      patient_id: {type: integer, nullable: false}
      region: {type: text, domain: [north, south], nullable: false}
      age: {type: integer, lower: 0, upper: 120}
      income: {type: real}
      smokes: {type: boolean}
  numbers:
    max_rows: 100
    foreign_keys: {patient_id: patients.patient_id}
    columns:
      n: {type: integer, lower: 0, upper: 9}
"""
BUILD = """
CREATE TABLE patients AS SELECT CAST(range AS INTEGER) AS patient_id, ['north', 'south'][range % 2 + 1] AS region,
    20 + range % 60 AS age, 1000.5 * range AS income, range % 3 = 0 AS smokes FROM range(300);
CREATE TABLE numbers AS SELECT CAST(range AS INTEGER) AS patient_id, range % 10 AS n FROM range(300);
"""


@dataclass
class Clinic:
    """The folder with clinic.yaml and its data, without a ledger."""

    folder: Path
    state: Path

    @property
    def policy(self) -> Path:
        return self.folder / "clinic.yaml"

    def create_ledger(self) -> None:
        policy = load_policy(self.policy)
        open_ledger(policy.ledger_url(), policy.dataset, create=True).close()

    def charges(self) -> int:
        """Return the number of charges in the ledger."""
        policy = load_policy(self.policy)
        with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
            return sum(entry.kind == "charge" for entry in ledger.history())

    def spent(self) -> int:
        """Return the epsilon spent by the data set, in units of 10^-18."""
        policy = load_policy(self.policy)
        with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
            return ledger.spent()["epsilon"]

    def make_slow(self) -> None:
        """Create a data set whose table takes minutes to read, to test Ctrl-C."""
        with duckdb.connect(str(self.folder / "clinic.duckdb")) as connection:
            connection.execute("DROP TABLE numbers")
            connection.execute(
                "CREATE VIEW numbers AS SELECT CAST(range % 300 AS INTEGER) AS patient_id, "
                "CAST(abs(cos(sin(range)) * 9) AS INTEGER) AS n FROM range(20_000_000_000)"
            )
        text = POLICY.replace("privacy_unit: {table: patients, column: patient_id}", "privacy_unit: row")
        text = text.replace("    max_rows: 1\n", "").replace("    max_rows: 100\n", "")
        self.policy.write_text(text.replace("    foreign_keys: {patient_id: patients.patient_id}\n", ""))


@pytest.fixture
def bare_clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clinic]:
    """Yield a clinic with policy and data but no ledger; the test runs in its folder."""
    folder = tmp_path / "clinic"
    folder.mkdir()
    (folder / "clinic.yaml").write_text(POLICY)
    create_database(folder / "clinic.duckdb", BUILD)
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    for name in ("DPSQL_POLICY", "DPSQL_ANALYST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    yield Clinic(folder, tmp_path / "state")


@pytest.fixture
def clinic(bare_clinic: Clinic) -> Clinic:
    """Return the clinic with a new ledger."""
    bare_clinic.create_ledger()
    return bare_clinic


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def dpsql(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command line in this process."""

    def run(*arguments: str) -> Outcome:
        capfd.readouterr()
        status = status_of([str(argument) for argument in arguments])
        sys.stdout.flush()
        found = capfd.readouterr()
        return Outcome(status, found.out, found.err)

    return run


def process(*arguments: str, script: str | None = None, new: bool = False, **options: Any) -> subprocess.Popen[str]:
    """Start the command line as a separate process. `script`: Python code to run instead, with the same arguments; `new`: start
    an interpreter that has imported nothing."""
    start = ["-c", script] if script is not None else ["-m", "dpsql"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PROMPT_TOOLKIT_NO_CPR": "1"}
    command, streams = [*start, *map(str, arguments)], {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    if new:
        return subprocess.Popen([sys.executable, *command], env=environment, text=True, **streams)
    return Forked(command, env=environment, **streams)
