"""Outcomes are written with the next charge, by readers, at the end and after a second, and never delay a charge."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import BudgetRefusal
from dpsql.ledger import ledger as outcomes
from dpsql.ledger.ledger import Ledger
from unit.ledger.test_crash import Killer, killed

FORK = multiprocessing.get_context("fork")


class NoTimer:
    """A substitute for the thread that writes waiting outcomes: it is started here but never fires on its own."""

    made: list["NoTimer"]

    def __init__(self, seconds: float, fire: Any) -> None:
        assert seconds == outcomes.LATEST_SECONDS
        self.fire = fire
        self.daemon = False
        self.cancelled = False

    def start(self) -> None:
        assert self.daemon, "a thread that waits must not keep the process alive"
        NoTimer.made.append(self)

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture(autouse=True)
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write waiting outcomes only when a test requests it."""
    NoTimer.made = []
    monkeypatch.setattr(outcomes, "Timer", NoTimer)


def written(home: Home) -> list[tuple[str, int | None]]:
    """Return kind and charge of the entries from the first charge on, as another reader of the database sees them."""
    rows = home.sql("SELECT kind, resolves FROM dpsql_entries ORDER BY seq")
    return [(kind, resolves) for kind, resolves in rows if kind not in ("created", "account")]


def test_an_outcome_is_written_with_the_next_charge_in_one_transaction(home: Home) -> None:
    ledger = home.new()
    first = ledger.reserve(charge(1))
    commits: list[str] = []
    ledger.store.step = lambda name: commits.append(name) if name == "after commit" else None
    first.commit("rows: 3")
    assert written(home) == [("charge", None)]
    ledger.reserve(charge(2))
    assert written(home) == [("charge", None), ("committed", first.seq), ("charge", None)]
    assert len(commits) == 1
    assert ledger.witness.head().seq == first.seq + 2, "the charge is in the head"
    assert ledger.verify().sound
    assert len(commits) == 1, "nothing waited any more"


def test_a_failure_is_written_at_once(home: Home) -> None:
    ledger = home.new()
    ledger.reserve(charge(1)).commit()
    ledger.reserve(charge(2)).fail("engine_failed")
    assert [kind for kind, _ in written(home)] == ["charge", "committed", "charge", "failed"]


@pytest.mark.parametrize("reader", ["history", "verify", "export", "close"])
def test_whoever_reads_or_closes_writes_what_waits(home: Home, reader: str, tmp_path: Any) -> None:
    ledger = home.new()
    reservation = ledger.reserve(charge(1))
    reservation.commit()
    if reader == "history":
        assert list(ledger.history())[-1].kind == "committed"
    elif reader == "export":
        with (tmp_path / "out").open("w") as out:
            ledger.export(out)
        assert "committed" in (tmp_path / "out").read_text()
    else:
        getattr(ledger, reader)()
    assert written(home) == [("charge", None), ("committed", reservation.seq)]
    assert home.open().verify().sound


def test_a_refused_charge_leaves_the_outcome_waiting(home: Home) -> None:
    ledger = home.new(limit=EPSILON)
    reservation = ledger.reserve(charge(1))
    reservation.commit()
    with pytest.raises(BudgetRefusal):
        ledger.reserve(charge(2))
    assert written(home) == [("charge", None)]
    ledger.close()
    assert written(home) == [("charge", None), ("committed", reservation.seq)]


def test_it_is_written_after_a_second_at_the_latest_by_one_thread(home: Home) -> None:
    ledger = home.new()
    reservations = [ledger.reserve(charge(number)) for number in range(3)]
    for reservation in reservations:
        reservation.commit()
    (timer,) = NoTimer.made
    timer.fire()
    assert written(home)[3:] == [("committed", reservation.seq) for reservation in reservations]
    ledger.reserve(charge("later")).commit()
    assert len(NoTimer.made) == 2
    ledger.close()
    assert NoTimer.made[1].cancelled


def test_the_thread_is_a_real_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "Timer", threading.Timer)
    monkeypatch.setattr(outcomes, "LATEST_SECONDS", 0.0)
    ledger = home.new()
    reservation = ledger.reserve(charge(1))
    done = threading.Event()
    ledger.store.step = lambda name: done.set() if name == "after commit" else None
    reservation.commit()
    assert done.wait(240)
    assert written(home) == [("charge", None), ("committed", reservation.seq)]


def test_a_process_that_ends_without_closing_has_written_it(sqlite_home: Home) -> None:
    sqlite_home.new().close()
    code = (
        "import sys; from pathlib import Path; from dpsql.ledger import ChargeRequest, open_ledger\n"
        "ledger = open_ledger(sys.argv[1], 'clinic', state=Path(sys.argv[2]))\n"
        "request = ChargeRequest('1', 'ann', 's', ('dataset',), {'epsilon': 1, 'delta': 0}, 'block', 'v1')\n"
        "ledger.reserve(request).commit()\n"
    )
    subprocess.run([sys.executable, "-c", code, sqlite_home.url, str(sqlite_home.state)], check=True)
    assert [kind for kind, _ in written(sqlite_home)] == ["charge", "committed"]


def test_a_child_writes_its_own_outcomes_and_not_those_of_its_parent(home: Home) -> None:
    ledger = home.new()
    mine = ledger.reserve(charge("parent"))
    mine.commit()

    def child() -> None:
        ledger.reserve(charge("child")).commit()
        ledger.close()

    process = FORK.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert written(home) == [("charge", None), ("charge", None), ("committed", mine.seq + 1)]
    ledger.close()
    assert written(home)[3:] == [("committed", mine.seq)]
    assert home.open().verify().sound


def test_an_outcome_that_is_there_already_does_not_stop_a_charge(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """A process and its fork both note the same charge; the second one's next charge is not affected."""
    ledger = home.new()
    both = ledger.reserve(charge("both"))

    def child() -> None:
        both.fail("child")

    process = FORK.Process(target=child)
    process.start()
    process.join()
    both.commit()
    ledger.reserve(charge("next"))
    assert "has an outcome" in caplog.text
    assert [kind for kind, _ in written(home)] == ["charge", "failed", "charge"]
    assert ledger.verify().sound
    assert ledger.spent()["epsilon"] == 2 * EPSILON


def test_a_commit_of_which_nobody_knows_writes_no_outcome_twice(home: Home) -> None:
    """The transaction was written, but its writer never received the confirmation."""
    ledger = home.new()
    first = ledger.reserve(charge(1))
    first.commit()

    def deaf(step: str) -> None:
        if step == "after commit":
            ledger.store.step = lambda name: None
            raise ConnectionError("nobody heard of it")

    ledger.store.step = deaf
    with pytest.raises(ConnectionError):
        ledger.reserve(charge(2))
    ledger.reserve(charge(3)).commit()
    kinds = [entry.kind for entry in ledger.history() if entry.kind not in ("created", "account")]
    assert kinds == ["charge", "committed", "charge", "charge", "committed"]
    assert ledger.verify().sound


@pytest.mark.parametrize("window", ["before begin", "begun", "before commit", "after commit"])
def test_killed_while_noting_the_charge_stays_spent(home: Home, window: str) -> None:
    """Whatever is lost, the charges are spent, the chain is valid, and the note exists exactly if it was committed."""
    home.new().close()

    def work() -> None:
        ledger: Ledger = home.open()
        reservation = ledger.reserve(charge(1))
        ledger.store.step = Killer(window, 1)
        reservation.commit()
        ledger.settle()

    killed(work)
    ledger = home.open()
    assert ledger.verify().sound
    assert ledger.spent()["epsilon"] == EPSILON
    assert [kind for kind, _ in written(home)] == ["charge", "committed"][: 1 + (window == "after commit")]


def test_charges_stay_spent_when_a_process_is_killed_before_their_outcomes_are_written(home: Home) -> None:
    home.new().close()

    def work() -> None:
        ledger = home.open()
        for number in range(3):
            ledger.reserve(charge(number)).commit()
        os.kill(os.getpid(), signal.SIGKILL)

    killed(work)
    ledger = home.open()
    assert ledger.verify().sound
    assert ledger.spent()["epsilon"] == 3 * EPSILON
    assert [kind for kind, _ in written(home)] == ["charge", "committed", "charge", "committed", "charge"]
