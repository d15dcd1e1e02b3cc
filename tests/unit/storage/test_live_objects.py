"""The objects of a kind in a process, read while other threads create more of them."""

from __future__ import annotations

import gc
import threading

from dpsql.storage.memory import LiveObjects


class Thing:
    """An object that supports weak references."""


def test_those_that_are_held_are_there_and_no_others() -> None:
    live: LiveObjects[Thing] = LiveObjects()
    held, gone = [Thing(), Thing()], Thing()
    for thing in (held[0], gone, held[1]):
        live.add(thing)
    del gone
    gc.collect()
    assert live.all() == held


def test_they_are_read_while_others_are_made() -> None:
    """A WeakSet would raise "Set changed size during iteration" here, in some of 3,000 attempts."""
    live: LiveObjects[Thing] = LiveObjects()
    ended = threading.Event()

    def make() -> None:
        held: list[Thing] = []
        while not ended.is_set():
            held.append(Thing())
            live.add(held[-1])
            if len(held) > 1000:
                held.clear()

    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(3000):
            assert all(isinstance(thing, Thing) for thing in live.all())
    finally:
        ended.set()
        maker.join()
