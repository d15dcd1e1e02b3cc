"""Places are granted to askers in turn."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from dpsql.engine import fair_queue
from dpsql.engine.fair_queue import FairQueue


class Worker:
    """A thread that holds a place until the test tells it to leave."""

    def __init__(self, queue: FairQueue, asker: str, entered: list[str]) -> None:
        self.leave = threading.Event()
        self.inside = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(queue, asker, entered))
        before = queue.waiting + queue.taken
        self._thread.start()
        while queue.waiting + queue.taken == before:  # until it waits in the queue or has a place
            self.inside.wait(0.001)

    def _work(self, queue: FairQueue, asker: str, entered: list[str]) -> None:
        with queue.place(asker):
            entered.append(asker)
            self.inside.set()
            self.leave.wait(240)

    def end(self) -> None:
        self.leave.set()
        self._thread.join()


def test_whoever_asks_much_waits_behind_their_own_work() -> None:
    queue, entered = FairQueue(1), list[str]()
    workers = [Worker(queue, asker, entered) for asker in ("a", "a", "a", "b", "c")]
    for worker in workers:
        worker.leave.set()
    for worker in workers:
        worker.end()
    assert entered == ["a", "b", "c", "a", "a"]


def test_one_asker_has_a_share_only() -> None:
    queue, entered = FairQueue(4, most_each=2), list[str]()
    workers = [Worker(queue, "a", entered) for _ in range(4)]
    for worker in workers[:2]:
        assert worker.inside.wait(240)
    other = Worker(queue, "b", entered)
    assert other.inside.wait(240)
    assert entered == ["a", "a", "b"]
    for worker in [other, *workers]:
        worker.end()
    assert queue.taken == queue.waiting == 0


def test_the_position_is_told_once_to_whoever_waits() -> None:
    queue, entered, told = FairQueue(1), list[str](), list[int]()
    first = Worker(queue, "a", entered)
    second = Worker(queue, "a", entered)

    def ask() -> None:
        with queue.place("b", queued=told.append):
            entered.append("b")

    thread = threading.Thread(target=ask)
    thread.start()
    while queue.waiting < 2:
        thread.join(0.001)
    first.end()
    thread.join()
    second.end()
    with queue.place("b", queued=told.append):
        pass
    assert told == [1], "before the second of another, who has a place already; and nothing where there is one at once"
    assert entered == ["a", "b", "a"]


def test_who_gives_up_waiting_leaves_the_queue() -> None:
    queue = FairQueue(1)

    def check() -> None:
        raise KeyError("given up")

    with queue.place("a"):
        with pytest.raises(KeyError), queue.place("b", check):
            pass
        assert queue.waiting == 0


@pytest.mark.parametrize("places", [1, 3])
def test_a_change_wakes_those_that_are_next_and_nobody_else(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If every change woke all waiters, and each sorted all of them, answers would take longer with the square of their number."""
    woken = list[threading.Condition]()

    class Noted(threading.Condition):
        def notify(self, n: int = 1) -> None:
            woken.append(self)
            super().notify(n)

    monkeypatch.setattr(fair_queue, "threading", SimpleNamespace(RLock=threading.RLock, Condition=Noted))
    queue, entered, askers = FairQueue(places), list[str](), [f"a{number % 6}" for number in range(48)]
    workers = [Worker(queue, asker, entered) for asker in askers]
    for worker in workers:
        worker.leave.set()
    for worker in workers:
        worker.end()
    assert sorted(entered) == sorted(askers) and queue.taken == queue.waiting == 0
    turns = sum(turn is not queue.changed for turn in woken)
    assert len(askers) - places <= turns <= 2 * places * len(askers), "a place begins and ends"
    if places == 1:
        assert entered == askers, "each asker in turn, since all of them came in turn"


@pytest.mark.parametrize("seed", range(20))
def test_nobody_waits_while_there_is_a_place_for_them(seed: int) -> None:
    """A wake-up that is lost leaves a place empty for good: whoever waits looks again only if something changes."""
    chance = random.Random(seed)
    most = chance.choice([1, 2, 4])
    queue, count, given_up = FairQueue(most, most_each=chance.choice([None, 1, 2])), threading.Semaphore(0), KeyError()

    def work(asker: str, leaves: int) -> None:
        for _ in range(20):
            looks = 0

            def check() -> None:
                nonlocal looks
                looks += 1
                if leaves and looks % leaves == 0:
                    raise given_up

            try:
                with queue.place(asker, check):
                    assert queue.taken <= most
                    time.sleep(0.001)
            except KeyError:
                pass
        count.release()

    threads = [
        threading.Thread(target=work, args=(f"a{chance.randrange(3)}", chance.choice([0, 0, 1, 2])), daemon=True)
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert count.acquire(timeout=60)
    assert queue.taken == queue.waiting == 0


def test_a_ticket_that_is_called_just_after_its_look_ended_enters() -> None:
    """`Condition.wait` returns False for a thread that is notified between the end of its time and its turn at the lock."""
    queue = FairQueue(1)
    holder = ExitStack()
    holder.enter_context(queue.place("a"))
    looks, entered = threading.Event(), threading.Event()

    def work() -> None:
        with queue.place("b", check=looks.set):
            entered.set()

    threading.Thread(target=work, daemon=True).start()
    assert looks.wait(240), "it waits, and looks"
    with queue.changed:
        time.sleep(3 * fair_queue._LOOK_SECONDS)  # its time ends while it cannot have the lock
        holder.close()
    assert entered.wait(20)


def test_a_place_that_its_ticket_may_not_take_any_more_goes_to_the_next_one() -> None:
    """A ticket is called while it may enter; when it looks, an asker may have left a question, and it may not."""
    queue, holder, entered, is_held_back = FairQueue(1), ExitStack(), threading.Event(), False
    holder.enter_context(queue.place("a"))

    def work(asker: str, may_enter: Callable[[], bool]) -> None:
        with queue.place(asker, may_enter=may_enter):
            entered.set()

    for asker, may_enter in (("b", lambda: not is_held_back), ("c", lambda: True)):
        threading.Thread(target=work, args=(asker, may_enter), daemon=True).start()
        while queue.waiting < 1 + (asker == "c"):
            entered.wait(0.001)
    with queue.changed:
        holder.close()
        is_held_back = True
    assert entered.wait(20)
