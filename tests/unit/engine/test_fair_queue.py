"""Places are granted to askers in turn."""

from __future__ import annotations

import threading

import pytest

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
