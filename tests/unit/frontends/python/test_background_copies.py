"""`dpsql.connect` prepares copies in the background if the policy file requests it, and nothing outlives the connection."""

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.clinic_folder import BUILD, POLICY, REPOSITORY, Clinic, bare_clinic, clinic

import dpsql
from dpsql.engine.registry import open_engine
from dpsql.frontends.python import background_copies
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy, parse_policy

__all__ = ["bare_clinic", "clinic"]
PATIENCE_SECONDS = 300.0
QUESTION = "SELECT region, count(*) AS n, sum(n) AS s FROM numbers x JOIN patients p ON x.patient_id = p.patient_id GROUP BY region"
WAITING = "import os, sys, time; open(sys.argv[1] + '.pid', 'w').write(str(os.getpid())); time.sleep(600)"


@pytest.fixture(autouse=True)
def _keepers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Use a separate cache for each test, and leave no thread for another test."""
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    yield
    background_copies.KEEPERS.end()
    background_copies.KEEPERS.forget()


@pytest.fixture
def automatic(clinic: Clinic) -> Path:
    clinic.policy.write_text(f"{POLICY}prepare: auto\n")
    return clinic.policy


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def preparing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dpsql prepare"]


def waits(monkeypatch: pytest.MonkeyPatch, policy: Path) -> Path:
    """Make `dpsql prepare` a program that never ends. Return the file in which it writes its process id."""
    monkeypatch.setattr(background_copies, "PREPARE", (sys.executable, "-c", WAITING))
    return Path(f"{policy}.pid")


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended but is not collected yet does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def observed(connection: Any) -> tuple[str, str]:
    """Return the plan as text, with its price, and the price alone."""
    plan = connection.explain(QUESTION)
    return str(plan), str(plan.price)


def test_copies_are_made_and_no_explanation_says_so(automatic: Path) -> None:
    with dpsql.connect(automatic, "research") as connection:
        before = observed(connection)
        index = connection.session.context.index
        until(lambda: index.unprepared() == ())
        assert observed(connection) == before
        assert index.views()("numbers").prepared
    assert not preparing_threads()


def test_a_failure_is_for_the_custodian_alone(
    automatic: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = "import sys; sys.exit('no space left')"
    monkeypatch.setattr(background_copies, "PREPARE", (sys.executable, "-c", said))
    monkeypatch.setattr(background_copies.CUSTODIAN_LOG, "propagate", True)
    monkeypatch.setattr(logging.getLogger("dpsql"), "propagate", True)
    with dpsql.connect(automatic) as connection:
        until(lambda: "no space left" in caplog.text)
        assert len(connection.execute(QUESTION).fetchall()) == 2
    assert capfd.readouterr() == ("", "")


def test_connections_to_one_policy_prepare_once(automatic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = waits(monkeypatch, automatic)
    first, second = dpsql.connect(automatic), dpsql.connect(str(automatic), "research")
    until(lambda: pid.exists() and pid.read_text() != "")
    assert len(preparing_threads()) == 1
    first.close()
    assert is_running(int(pid.read_text())) and len(preparing_threads()) == 1
    second.close()
    assert not is_running(int(pid.read_text())) and not preparing_threads()
    pid.unlink()
    with dpsql.connect(automatic):
        until(lambda: pid.exists() and pid.read_text() != "")  # a connection after the last one starts again
    assert not is_running(int(pid.read_text()))


def test_files_beyond_the_limit_are_copied_by_the_owner_alone(automatic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_copies, "size_in", lambda text: 3 << 20)
    logged: list[str] = []
    monkeypatch.setattr(background_copies.CUSTODIAN_LOG, "warning", lambda text, *facts: logged.append(text % facts))
    automatic.write_text(f"{POLICY}prepare: {{when: auto, most_mb: 2}}\n")
    limited, free = (
        load_policy(automatic),
        parse_policy(f"{POLICY}prepare: {{when: auto, most_mb: 3}}\n", folder=automatic.parent),
    )
    engine = open_engine(limited)
    for _ in range(2):
        assert background_copies.unprepared(limited, engine, lambda: b"key") == ()
    assert len(logged) == 1 and "its files have 3 MB and prepare.most_mb is 2" in logged[0]
    assert background_copies.unprepared(free, engine, lambda: b"key") != ()
    with dpsql.connect(automatic) as connection:
        keeper = background_copies.KEEPERS.joined(automatic, connection.session)
        assert keeper._missing() == () != connection.session.context.index.unprepared()
    engine.close()


SCRIPT = """
import sys, time
from pathlib import Path
import dpsql
from dpsql.frontends.python import background_copies
background_copies.PREPARE = (sys.executable, "-c", sys.argv[2])
connection = dpsql.connect(sys.argv[1])
pid = Path(sys.argv[1] + ".pid")
while not (pid.exists() and pid.read_text()):
    time.sleep(0.02)
"""


@pytest.mark.parametrize("ending", ["", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"])
def test_a_process_that_ends_leaves_nothing_running(automatic: Path, ending: str) -> None:
    """The connection is not even closed."""
    script = textwrap.dedent(SCRIPT) + ending
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(
        [sys.executable, "-c", script, str(automatic), WAITING], env=environment, check=False, timeout=PATIENCE_SECONDS
    )
    pid = int(Path(f"{automatic}.pid").read_text())
    until(lambda: not is_running(pid))


def test_what_an_ended_preparation_leaves_is_not_read(automatic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial file under the name that a preparation uses exists when it ends; the next preparation removes it."""
    pid = waits(monkeypatch, automatic)
    with dpsql.connect(automatic) as connection:
        until(lambda: pid.exists() and pid.read_text() != "")
        (folder,) = connection.session.context.index._folders()
        folder.mkdir(parents=True)
        (folder / "half.part0123").write_bytes(b"half of a copy")
    monkeypatch.setattr(background_copies, "PREPARE", (sys.executable, "-m", "dpsql", "prepare", "-p"))
    with dpsql.connect(automatic) as connection:
        index = connection.session.context.index
        until(lambda: index.unprepared() == ())
        assert not list(folder.glob("*.part*"))


def test_a_process_that_forks_begins_anew(automatic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child has none of its parent's threads and must not end what the parent runs."""
    pid = waits(monkeypatch, automatic)
    with dpsql.connect(automatic):
        until(lambda: pid.exists() and pid.read_text() != "")
        child = os.fork()
        if child == 0:
            background_copies.KEEPERS.end()
            os._exit(len(background_copies.KEEPERS.keepers))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert is_running(int(pid.read_text()))


def test_a_keeper_whose_thread_was_lost_is_replaced(automatic: Path) -> None:
    with dpsql.connect(automatic) as connection:
        keeper = background_copies.SessionKeeper(automatic, (60.0, 60.0))
        keeper._thread.start()
        keeper._thread.join(PATIENCE_SECONDS)  # it has no session, so it ends
        assert not keeper.join(connection.session)


def test_a_server_prepares_again_when_the_data_change(automatic: Path) -> None:
    policy = load_policy(automatic)
    engine = open_engine(policy)
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        key = ledger.witness.key
    by_hand = replace(policy, prepare=replace(policy.prepare, automatic=False))

    def missing() -> tuple[str, ...]:
        return background_copies.unprepared(policy, engine, lambda: key)

    assert missing() and not background_copies.unprepared(by_hand, engine, lambda: key)
    keeper = background_copies.CopyKeeper(automatic, missing, (0.05, 0.05))
    keeper.start()
    try:
        until(lambda: not missing())
        with duckdb.connect(str(automatic.parent / "new.duckdb")) as connection:
            connection.execute(BUILD)
            connection.execute("INSERT INTO numbers SELECT 1, 1 FROM range(200)")
        (automatic.parent / "new.duckdb").rename(automatic.parent / "clinic.duckdb")
        until(lambda: not missing())
    finally:
        keeper.end()
        engine.close()
    copies = [file for file in (automatic.parent.parent / "cache").rglob("*") if file.suffix == ".duckdb"]
    assert len(copies) == 1  # numbers has too many rows of a person; before the change, the source was its own view
