"""Storage failures: a clear fault, nothing lost, nothing answered uncharged."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.ledger_homes import EPSILON, Home, charge
from support.small_disk import SmallDisk

from dpsql.errors.exceptions import Error, Fault
from dpsql.ledger.backup import back_up
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.store import no_step

FORK = multiprocessing.get_context("fork")
NOBODY = 65534


def in_child(work: Callable[[], str]) -> str:
    """Return the result of `work` in a separate process (whose limits and user may be changed)."""

    def run(out: Any) -> None:
        try:
            out.send(work())
        except Error as error:
            out.send(error.slug)

    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=run, args=(theirs,))
    child.start()
    theirs.close()
    try:
        said: str = ours.recv()
    finally:
        child.join()
    return said


def refused(work: Callable[[], object]) -> Error:
    with pytest.raises(Error) as error:
        work()
    return error.value


def test_a_locked_database_is_a_fault_and_charges_nothing(home: Home) -> None:
    home.new().close()
    ledger = home.open(timeout_seconds=0.2)
    other: Any
    if home.file:
        other = sqlite3.connect(home.file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    else:
        other = psycopg.connect(home.url)
        other.execute(f"SELECT pg_advisory_xact_lock({0x647073716C})")
    error = refused(lambda: ledger.reserve(charge(1)))
    assert (error.slug, error.sqlstate, error.charged) == ("ledger_locked", "55P03", False)
    other.rollback()
    other.close()
    assert ledger.spent()["epsilon"] == 0
    ledger.reserve(charge(1))


def test_a_thread_that_never_ends_its_turn_is_a_fault(sqlite_home: Home) -> None:
    ledger = sqlite_home.new()
    ledger.store.timeout_seconds = 0.2
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger.store.alone():
            held.set()
            done.wait(240)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(240)
    assert refused(lambda: ledger.reserve(charge(1))).slug == "ledger_locked"
    done.set()
    thread.join()
    ledger.reserve(charge(1))


def test_a_stopped_process_is_a_fault_not_a_hang(sqlite_home: Home) -> None:
    sqlite_home.new().close()

    def stop(step: str) -> None:
        if step == "before entry":
            os.kill(os.getpid(), signal.SIGSTOP)

    child = FORK.Process(target=lambda: sqlite_home.open(step=stop).reserve(charge("stopped")))
    child.start()
    assert child.pid is not None
    os.waitpid(child.pid, os.WUNTRACED)
    ledger = sqlite_home.open(timeout_seconds=0.3)
    assert refused(lambda: ledger.reserve(charge(1))).slug == "ledger_locked"
    os.kill(child.pid, signal.SIGCONT)
    child.join()
    assert ledger.spent()["epsilon"] == EPSILON


def test_a_full_disk_is_a_fault_and_nothing_is_lost(sqlite_home: Home) -> None:
    """Nothing was charged, and that is said. What was charged stays, and the ledger goes on when there is space."""
    home = sqlite_home
    assert home.file is not None
    folder = home.file.parent

    def work() -> str:
        disk = SmallDisk(folder, 16_384)
        ledger = home.new(limit=10**6 * EPSILON)
        charged, slugs = 0, set()
        for full in (True, False, True, False):
            (disk.fill if full else disk.free)()
            for _ in range(40):
                try:
                    ledger.reserve(charge(charged)).commit()
                    charged += 1
                except Error as error:
                    slugs.add((error.slug, error.charged, full))
            assert ledger.spent()["epsilon"] == charged * EPSILON
        assert 80 <= charged < 160 and ledger.verify().sound, (charged, slugs)
        ledger.close()
        return repr(slugs)

    assert in_child(work) == repr({("ledger_disk_full", False, True)})


@pytest.mark.parametrize("left", [0, 8_192, 60_000])
def test_a_backup_to_a_full_disk_says_so_and_leaves_nothing(sqlite_home: Home, tmp_path: Path, left: int) -> None:
    """Wherever it fails; the ledger is as it was, and the same folder takes the backup when there is room."""

    def work() -> str:
        ledger = sqlite_home.new(limit=10**6 * EPSILON)
        for number in range(20):
            ledger.reserve(charge(number)).commit()
        disk, folder = SmallDisk(tmp_path / "disk", 4_096), tmp_path / "disk" / "backup"
        disk.fill(left)
        error = refused(lambda: back_up(ledger, folder))
        words, is_left = str(error), folder.exists()
        disk.free()
        assert back_up(ledger, folder).seq > 20 and ledger.spent()["epsilon"] == 20 * EPSILON
        ledger.close()
        return repr((error.slug, "its disk is full" in words, str(folder) in words, "as it was" in words, is_left))

    assert in_child(work) == repr(("backup_folder", True, True, True, False))


def as_nobody(home: Home, work: Callable[[], str]) -> str:
    """Run `work` as a user who is bound by file permissions (root is not), and who owns the second place."""

    def run() -> str:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    above = [path for path in home.state.parents if Path(tempfile.gettempdir()) in path.parents]
    for path in (home.state, *home.state.rglob("*"), *above):
        if os.getuid() == 0 and "state" in str(path):
            os.chown(path, NOBODY, NOBODY)
        elif os.getuid() == 0:
            path.chmod(0o755)
    return in_child(run)


def test_a_read_only_directory(sqlite_home: Home) -> None:
    home = sqlite_home
    assert home.file is not None
    home.new().close()
    home.file.chmod(0o444)
    home.file.parent.chmod(0o555)
    slug = as_nobody(home, lambda: str(home.open().reserve(charge(1)).seq))
    home.file.parent.chmod(0o755)
    home.file.chmod(0o600)
    assert slug == "ledger_read_only"


def test_a_second_place_that_cannot_be_written(sqlite_home: Home) -> None:
    """Without the head nothing is charged, so nothing is answered."""
    home = sqlite_home
    assert home.file is not None
    ledger = home.new()
    head = home.state / ledger.ledger_id / "head"
    aside = head.rename(head.with_name("aside"))
    assert refused(lambda: ledger.reserve(charge(1))).slug == "ledger_head_missing"
    aside.rename(head)
    assert ledger.spent()["epsilon"] == 0


def test_a_head_that_cannot_be_written_keeps_the_charge(sqlite_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = sqlite_home.new()

    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    error = refused(lambda: ledger.reserve(charge(1)))
    assert (error.slug, error.charged) == ("ledger_head_not_written", True)
    monkeypatch.undo()
    assert ledger.spent()["epsilon"] == EPSILON
    assert sqlite_home.open().verify().sound


def test_a_note_that_cannot_be_stored_does_not_take_the_answer(
    sqlite_home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = sqlite_home.new()
    reservation = ledger.reserve(charge(1))
    ledger.store.timeout_seconds = 0.1
    ledger.close()
    other = sqlite3.connect(sqlite_home.file or "", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    reservation.commit("rows: 3")
    ledger.close()
    other.close()
    assert "not noted" in caplog.text
    assert ledger.spent()["epsilon"] == EPSILON
    assert [entry.kind for entry in ledger.history()][-2:] == ["charge", "committed"], "it went on waiting"


def lose(home: Home, ledger: Ledger, window: str) -> Callable[[str], None]:
    """Return a step hook that cuts the ledger's connection on the server, once."""
    cut: list[str] = []

    def step(name: str) -> None:
        if name == window and not cut:
            cut.append(name)
            with psycopg.connect(home.url, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'dpsql ledger' AND datname = current_database()"
                )

    return step


@pytest.mark.parametrize("window", ["begun", "before entry", "before totals", "before commit"])
def test_a_postgres_connection_lost_while_charging_spends_nothing_and_the_ledger_goes_on(
    postgres_home: Home, window: str
) -> None:
    ledger = postgres_home.new()
    ledger.store.step = lose(postgres_home, ledger, window)
    error = refused(lambda: ledger.reserve(charge("lost")))
    assert (error.slug, error.charged) == ("ledger_unreachable", False)
    assert ledger.spent()["epsilon"] == 0
    ledger.reserve(charge("next"))
    assert postgres_home.open().verify().sound


@pytest.mark.parametrize("failure", [psycopg.OperationalError, psycopg.errors.DiskFull])
@pytest.mark.parametrize("taken", ["taken", "lost", "lost, and its number taken by another host"])
def test_a_commit_without_a_reply_is_read_back(
    postgres_home: Home, tmp_path: Path, failure: type[Exception], taken: str
) -> None:
    """The ledger says on a new connection whether it has the charge, so the question is answered, or costs nothing."""
    ledger = postgres_home.new()
    shutil.copytree(postgres_home.state, tmp_path / "other")
    other = Home(postgres_home.url, tmp_path / "other").open()

    def lose_reply(step: str) -> None:
        if step == "before commit":
            ledger.store.step = no_step
            connection = ledger.store._connection
            assert connection is not None
            run = connection.run

            def commit(text: str, **values: Any) -> int:
                run(text if taken == "taken" else "ROLLBACK", **values)
                if taken.endswith("host"):
                    other.reserve(charge("of another host")).commit()
                raise failure

            connection.run = commit  # type: ignore[method-assign]

    ledger.store.step = lose_reply
    if taken == "taken":
        ledger.reserve(charge("lost")).commit()
    else:
        error = refused(lambda: ledger.reserve(charge("lost")))
        full = failure is psycopg.errors.DiskFull
        assert (error.slug, error.charged) == ("ledger_disk_full" if full else "ledger_unreachable", False)
    ledger.reserve(charge("next")).commit()
    assert ledger.spent()["epsilon"] == (1 if taken == "lost" else 2) * EPSILON
    assert ledger.verify().sound and other.verify().sound, "the head has followed"
    other.close()


@pytest.mark.parametrize("window", ["before begin", "after commit", "reserved"])
def test_a_postgres_connection_lost_between_turns_is_replaced(postgres_home: Home, window: str) -> None:
    ledger = postgres_home.new()
    ledger.store.step = lose(postgres_home, ledger, window)
    ledger.reserve(charge("a")).commit()
    ledger.reserve(charge("b")).commit()
    assert ledger.spent()["epsilon"] == 2 * EPSILON


def test_an_unreachable_server_is_a_fault_without_the_password(tmp_path: Path) -> None:
    error = refused(lambda: Home(f"postgresql://u:secret@/x?host={tmp_path}", tmp_path / "state").open())
    assert error.slug == "ledger_unreachable"
    assert isinstance(error, Fault)
    assert "secret" not in error.text()


def test_importing_the_package_loads_no_database() -> None:
    code = "import sys, dpsql.ledger; print(sorted({'sqlalchemy', 'sqlite3', 'psycopg'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_ledger_file_that_vanishes_between_look_and_open_is_not_made_again(sqlite_home: Home) -> None:
    ledger = sqlite_home.new()
    ledger.close()
    assert sqlite_home.file is not None
    sqlite_home.file.unlink()
    error = refused(lambda: ledger.reserve(charge(1)))
    assert error.slug == "ledger_read_only"
    assert not sqlite_home.file.exists()
