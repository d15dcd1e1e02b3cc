"""The objects of a kind in a process, read while other threads create more of them."""

import gc
import platform
import subprocess
import sys
import threading

import pytest

from dpsql.storage import memory
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


# --- A process that keeps less free memory: few arenas for many threads, and free pages returned to the system --------


GNU = platform.libc_ver()[0] == "glibc"
ARENAS = """
import ctypes, threading
from dpsql.storage.memory import use_few_arenas
{first}
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
together = threading.Barrier(12)
places = []

def take():
    together.wait()
    places.append(library.malloc(ctypes.c_size_t(5000)) >> 26)
    together.wait()

threads = [threading.Thread(target=take) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(set(places)))
"""


def arenas(first: str) -> int:
    """Return the number of 64 MB regions, the size of an arena, from which twelve threads of a new process get memory."""
    program = [sys.executable, "-c", ARENAS.format(first=first)]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not GNU, reason="another C library has no arenas")
def test_threads_share_two_arenas() -> None:
    assert arenas("assert use_few_arenas()") <= 2 < arenas("")


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_library", lambda: None)
    assert not memory.use_few_arenas()
    memory.return_free_memory()
