"""All threads of a process share the thread that interrupts statements past their time."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest

from dpsql.engine import fair_queue as module
from dpsql.engine.fair_queue import Watchdog, watchdog

THREADS = 8


class Work:
    """Work that records its interruption."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()

    def interrupt(self) -> None:
        self.interrupted.set()


def test_threads_that_ask_first_at_the_same_time_get_the_same_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a thread's work would enter one watchdog and leave another, which ends a query with an incident."""
    started = []

    class SlowToStart(Watchdog):
        def __init__(self) -> None:
            time.sleep(0.05)  # long enough that each thread asks before the first watchdog exists
            super().__init__()
            started.append(self)

    monkeypatch.setattr(module, "Watchdog", SlowToStart)
    monkeypatch.setattr(module, "_of_process", module._OfProcess())
    together = threading.Barrier(THREADS)

    def enters_and_leaves(_: int) -> Watchdog:
        together.wait()
        work = Work()
        watchdog().enter(work, 3600)
        watchdog().leave(work)
        return watchdog()

    with ThreadPoolExecutor(THREADS) as threads:
        given = set(threads.map(enters_and_leaves, range(THREADS)))
    assert given == set(started) and len(started) == 1
    started[0].stop()


def test_work_past_its_deadline_is_interrupted_until_it_leaves() -> None:
    work = Work()
    watchdog().enter(work, 0.01)
    assert work.interrupted.wait(240)
    work.interrupted.clear()
    assert work.interrupted.wait(240)
    watchdog().leave(work)
    work.interrupted.clear()
    later = Work()
    watchdog().enter(later, 0.2)
    assert later.interrupted.wait(240)
    watchdog().leave(later)
    assert not work.interrupted.is_set()


def test_an_interrupt_that_fails_ends_no_other_deadline() -> None:
    """Cancelling the jobs of a Spark application that has died raises an error, in the one thread that keeps every deadline."""

    class Gone(Work):
        def interrupt(self) -> None:
            super().interrupt()
            raise ConnectionError

    gone, later = Gone(), Work()
    dog = Watchdog()
    dog.enter(gone, 0.01)
    assert gone.interrupted.wait(240)
    dog.enter(later, 0.01)
    assert later.interrupted.wait(20)
    dog.leave(gone)
    dog.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_a_watchdog_of_its_own() -> None:
    parent = watchdog()
    ours = multiprocessing.get_context("fork")
    receiver, sender = ours.Pipe(duplex=False)
    child = ours.Process(target=_interrupts_in_child, args=(sender, id(parent)))
    with module._of_process._lock:  # as if another thread of the parent were asking at the moment of the fork
        child.start()
    assert receiver.poll(240) and receiver.recv() == (True, True)
    child.join(240)
    assert watchdog() is parent


def _interrupts_in_child(sender: Connection, parent: int) -> None:
    work = Work()
    watchdog().enter(work, 0.01)
    sender.send((id(watchdog()) != parent, work.interrupted.wait(240)))
