"""kill -9 in every window: spent is never below answered, and no true ledger is refused afterwards."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.ledger.ledger import Ledger

FORK = multiprocessing.get_context("fork")
CREATION = ("key made", "before commit", "after commit", "created", "head made")
CHARGING = (
    *("before begin", "begun", "before entry", "before totals", "before commit", "after commit", "after head"),
    *("reserved", "answered"),
)


class Killer:
    """A step hook that ends the process without cleanup at the nth occurrence of `step`."""

    def __init__(self, step: str, nth: int) -> None:
        self.step = step
        self.left = nth

    def __call__(self, step: str) -> None:
        if step == self.step:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def killed(work: Callable[[], object]) -> None:
    """Run `work` in a child that must die by SIGKILL."""
    child = FORK.Process(target=work)
    child.start()
    child.join(30)
    assert child.exitcode == -signal.SIGKILL


def answer(ledger: Ledger, name: str, answers: Path, step: Callable[[str], None] = lambda name: None) -> None:
    """Act like a session: reserve, answer (one durable line), note the outcome."""
    reservation = ledger.reserve(charge(name))
    with answers.open("a") as file:
        file.write(name + "\n")
        file.flush()
        os.fsync(file.fileno())
    step("answered")
    reservation.commit()


def answered(answers: Path) -> int:
    return len(answers.read_text().splitlines()) if answers.exists() else 0


def test_every_window_is_enumerated(sqlite_home: Home, tmp_path: Path) -> None:
    """The steps below are those in the code, so that a new window cannot be overlooked."""
    seen: list[str] = []
    ledger = sqlite_home.open(create=True, step=seen.append)
    assert tuple(dict.fromkeys(seen)) == CREATION
    ledger.open_account("dataset", "pure", {"epsilon": 9 * EPSILON, "delta": 0})
    seen.clear()
    answer(ledger, "a", tmp_path / "answers", seen.append)
    assert tuple(dict.fromkeys(seen)) == CHARGING


@pytest.mark.parametrize("window", CREATION)
def test_killed_while_creating_a_ledger_can_be_created_again(home: Home, window: str) -> None:
    killed(lambda: home.open(create=True, step=Killer(window, 1)))
    try:
        home.open()
    except Error as error:
        assert error.slug in {"ledger_missing", "ledger_head_missing"}
    ledger = home.new()
    ledger.reserve(charge(1))
    assert home.open().verify().sound


@pytest.mark.parametrize("nth", [1, 4])
@pytest.mark.parametrize("window", CHARGING)
def test_killed_while_charging_no_answered_charge_is_lost(home: Home, tmp_path: Path, window: str, nth: int) -> None:
    home.new(limit=8 * EPSILON).close()
    answers = tmp_path / "answers"

    def work() -> None:
        killer = Killer(window, nth)
        ledger = home.open(step=killer)
        for number in range(8):
            answer(ledger, f"first-{number}", answers, killer)

    killed(work)
    ledger = home.open()
    assert ledger.verify().sound
    spent = ledger.spent()["epsilon"] // EPSILON
    assert answered(answers) <= spent <= answered(answers) + 1
    recorded = sum(entry.kind == "charge" for entry in ledger.history())
    assert recorded == spent
    for number in range(8 - spent):
        answer(ledger, f"second-{number}", answers)
    with pytest.raises(Error) as error:
        ledger.reserve(charge("one more"))
    assert error.value.slug == "budget_exceeded"
    assert ledger.spent()["epsilon"] == 8 * EPSILON
    assert answered(answers) <= 8


def test_a_process_killed_anywhere_loses_no_charge_of_the_others(home: Home, tmp_path: Path) -> None:
    """Kills at random moments, four processes at a time."""
    home.new(limit=10**6 * EPSILON).close()
    answers = tmp_path / "answers"

    def work(name: str) -> None:
        ledger = open_ledger(home.url, "clinic", state=home.state)
        for number in range(10**6):
            answer(ledger, f"{name}-{number}", answers)

    turns = 0
    while turns < 3 or not answered(answers):  # a busy machine may not get to an answer
        turns += 1
        workers = [FORK.Process(target=work, args=(f"{turns}-{number}",)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            time.sleep(random.uniform(0.02, 0.1))
            worker.kill()
        for worker in workers:
            worker.join()
    ledger = home.open()
    assert ledger.verify().sound
    assert answered(answers) <= ledger.spent()["epsilon"] // EPSILON <= answered(answers) + 4 * turns
