"""A process that keeps less free memory: few arenas for many threads, and free pages returned to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from dpsql.storage import memory

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
