"""Simultaneous charges of several threads: one transaction, and an outcome for each."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from threading import Condition
from typing import Any

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.ledger import ChargeRequest
from dpsql.ledger.ledger import Ledger, Reservation
from dpsql.ledger.store import GroupCommit, Store, Submission
from unit.ledger.test_crash import CHARGING, Killer, answered, killed

OTHERS = 7
Outcome = Reservation | BaseException


class Waiting(list[Any]):
    """A list of waiting threads that signals when all the others wait."""

    def __init__(self, all_here: threading.Event, others: int) -> None:
        super().__init__()
        self._all_here = all_here
        self._others = others

    def append(self, one: Any) -> None:
        super().append(one)
        if len(self) == self._others:
            self._all_here.set()


def at_once(
    ledger: Ledger,
    requests: list[ChargeRequest],
    step: Callable[[str], None] = lambda name: None,
    done: Callable[[ChargeRequest, Reservation], None] = lambda request, reservation: None,
) -> list[Outcome]:
    """Return the outcomes of requests. The first is held in its transaction until all the others wait for its end, so that they
    form one batch. `step` sees the steps of that batch; `done` is what a thread does with its reservation."""
    found: list[Outcome | None] = [None] * len(requests)
    all_here, begun = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == "before commit":
            queue = ledger._charges._queue
            queue.waiting = Waiting(all_here, len(requests) - 1)
            begun.set()
            assert all_here.wait(240)
        elif name == "after head":
            ledger.store.step = step

    def ask(at: int) -> None:
        try:
            found[at] = ledger.reserve(requests[at])
            done(requests[at], found[at])
        except BaseException as error:
            found[at] = error

    ledger.store.step = hold
    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(requests))]
    threads[0].start()
    assert begun.wait(240)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.store.step = lambda name: None
    return [one for one in found if one is not None]


class NoFlush:
    """The driver's connection at its last statement, when the disk rejects it or the server is gone."""

    def __init__(self, store: Store) -> None:
        self._store, self._connection = store, store._connection
        self._true = store._connection.driver

    def execute(self, sql: str) -> None:
        assert sql == "COMMIT"
        self._connection.driver = self._true
        if not self._store.is_sqlite:
            self._true.close()
            self._true.execute(sql)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise error


def many(number: int = OTHERS, amount: int = EPSILON) -> list[ChargeRequest]:
    return [charge(f"first-{amount}"), *(charge(f"{amount}-{at}", amount) for at in range(number))]


def slugs(outcomes: list[Outcome]) -> list[str]:
    return [one.slug for one in outcomes if isinstance(one, Error)]


def test_charges_that_wait_share_one_flush(home: Home) -> None:
    ledger = home.new()
    commits: list[str] = []
    outcomes = at_once(ledger, many(), lambda name: commits.append(name) if name == "after commit" else None)
    assert len(commits) == 1
    reservations = [one for one in outcomes if isinstance(one, Reservation)]
    assert len({one.seq for one in reservations}) == OTHERS + 1
    charges = {entry.id: entry.seq for entry in ledger.history() if entry.kind == "charge"}
    assert {one.request.id: one.seq for one in reservations} == charges, "each was told of its own charge"
    assert ledger.spent() == {"epsilon": (OTHERS + 1) * EPSILON, "delta": 0}
    last = max(reservations, key=lambda one: one.seq)
    assert last.accounts["dataset"].spent == ledger.spent()
    assert ledger.witness.head().seq == last.seq
    assert ledger.verify().sound
    assert home.open().verify().sound


def test_what_fits_only_some_of_them_refuses_the_others(home: Home) -> None:
    ledger = home.new(limit=4 * EPSILON)
    outcomes = at_once(ledger, many())
    assert sum(isinstance(one, Reservation) for one in outcomes) == 4
    refused = [one for one in outcomes if isinstance(one, BudgetRefusal)]
    assert len(refused) == 4
    assert len({id(one) for one in refused}) == 4
    assert not any(one.charged for one in refused)
    assert ledger.spent()["epsilon"] == 4 * EPSILON
    assert sum(entry.kind == "charge" for entry in ledger.history()) == 4
    assert ledger.verify().sound


def test_a_batch_of_refused_charges_writes_nothing(home: Home) -> None:
    ledger = home.new(limit=EPSILON)
    commits: list[str] = []
    outcomes = at_once(ledger, many(), lambda name: commits.append(name) if name == "after commit" else None)
    assert slugs(outcomes) == ["budget_exceeded"] * OTHERS
    assert commits == []


def test_refusals_of_other_kinds_are_their_own(home: Home) -> None:
    ledger = home.new()
    requests = many(2)
    requests += [charge("same"), charge("same"), charge("nobody", scopes=("dataset", "analyst:bob"))]
    requests += [ChargeRequest("shape", "ann", "s1", ("dataset",), {"rho": 1}, "block", "v1")]
    outcomes = at_once(ledger, requests)
    assert sorted(slugs(outcomes)) == ["ledger_account", "ledger_shape", "request_repeated"]
    assert ledger.spent()["epsilon"] == 4 * EPSILON
    assert ledger.verify().sound


def test_a_commit_that_fails_tells_each_of_them(home: Home) -> None:
    ledger = home.new(limit=5 * EPSILON)

    def cut(name: str) -> None:
        if name == "before commit":
            ledger.store._connection.driver = NoFlush(ledger.store)

    outcomes = at_once(ledger, many(), cut)
    failed = [one for one in outcomes if isinstance(one, Error)]
    is_unknown = home.file is not None  # a server is asked again
    told = ("ledger_commit_unknown" if is_unknown else "ledger_unreachable", is_unknown)
    assert [(one.slug, one.charged) for one in failed] == [told] * OTHERS, "a refusal counted what was not charged"
    assert len({id(one) for one in failed}) == OTHERS, "each thread places its own error in its own SQL"
    assert ledger.spent()["epsilon"] == EPSILON
    assert ledger.verify().sound


def test_an_interrupted_thread_leaves_nobody_waiting(home: Home) -> None:
    ledger = home.new()

    def interrupt(name: str) -> None:
        if name == "before totals":
            raise KeyboardInterrupt

    outcomes = at_once(ledger, many(), interrupt)
    assert [type(one) for one in outcomes].count(KeyboardInterrupt) == 1
    assert slugs(outcomes) == ["ledger_commit_unknown"] * (OTHERS - 1)
    assert ledger.spent()["epsilon"] == EPSILON
    ledger.reserve(charge("next"))
    assert ledger.verify().sound


def test_whoever_waits_too_long_was_not_charged(sqlite_home: Home) -> None:
    ledger = sqlite_home.new()
    begun, refused = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == "before commit":
            begun.set()
            assert refused.wait(240)

    ledger.store.step = hold
    thread = threading.Thread(target=lambda: ledger.reserve(charge("slow")))
    thread.start()
    assert begun.wait(240)
    ledger.store.timeout_seconds = 0.05
    with pytest.raises(Error) as error:
        ledger.reserve(charge("waits"))
    ledger.store.timeout_seconds = 10.0
    assert (error.value.slug, error.value.charged) == ("ledger_locked", False)
    refused.set()
    thread.join()
    ledger.store.step = lambda name: None
    ledger.reserve(charge("next"))
    assert [entry.id for entry in ledger.history() if entry.kind == "charge"] == ["slow", "next"]


@pytest.mark.parametrize("window", CHARGING[:-1])
def test_a_batch_killed_while_charging_is_spent_as_a_whole_or_not_at_all(
    home: Home, tmp_path: Path, window: str
) -> None:
    """Either all charges of a batch are spent or none is, and no one has an answer whose charge is not."""
    home.new().close()
    answers = tmp_path / "answers"

    def work() -> None:
        def answer(request: ChargeRequest, reservation: Reservation) -> None:
            with answers.open("a") as file:
                file.write(request.id + "\n")

        # The first thread may also reach "reserved" first, depending on the scheduler.
        at_once(home.open(), many(), Killer(window, 2 if window == "reserved" else 1), answer)

    killed(work)
    ledger = home.open()
    assert ledger.verify().sound
    spent = ledger.spent()["epsilon"] // EPSILON
    durable = window in ("after commit", "after head", "reserved")
    assert spent == (OTHERS + 1 if durable else 1)
    assert answered(answers) <= spent


class _Interrupted(Condition):
    """Ctrl-C, once, right after the lock was released."""

    armed = True

    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)  # type: ignore[arg-type]
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt


def test_an_interrupt_between_taking_the_lead_and_working_leaves_the_queue_free() -> None:
    asked: list[str] = []

    def work(submissions: list[Submission[str, str]]) -> None:
        for submission in submissions:
            asked.append(submission.request)
            submission.result = submission.request

    commits: GroupCommit[str, str] = GroupCommit(work)
    commits._queue.changed = _Interrupted()
    with pytest.raises(KeyboardInterrupt):
        commits.submit("first", 5, "the ledger")
    assert commits.submit("second", 5, "the ledger") == "second"
    assert asked == ["second"]
