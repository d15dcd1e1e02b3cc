"""Deadlines of running statements: one thread interrupts statements that are past their deadline."""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
from typing import Protocol

_NAG_SECONDS = 0.02


class Interruptible(Protocol):
    """An object that runs statements on its own connection or jobs and can be interrupted; hashable."""

    def interrupt(self) -> None:
        """Stop the running statement, if any."""


class Watchdog:
    """One thread that interrupts work past its deadline repeatedly until `leave` is called: a single interrupt between
    two statements would be lost."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._watched: dict[Interruptible, float] = {}
        self._changed = threading.Condition()
        self._watched_until = math.inf
        self._stopped = False
        self._thread = threading.Thread(target=self._watch, name="dpsql-watchdog", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # DuckDB's extension complains on stderr when a thread outlives the interpreter

    def stop(self) -> None:
        """End the thread; watched work loses its deadline. In a forked child there is no thread to end."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()
        atexit.unregister(self.stop)

    def enter(self, work: Interruptible, timeout_seconds: float) -> None:
        """Interrupt `work` when `timeout_seconds` have passed."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            self._watched[work] = deadline
            if deadline < self._watched_until:  # else the thread wakes early enough, and waking it costs a switch
                self._changed.notify()

    def leave(self, work: Interruptible) -> None:
        """Stop watching `work`: it is never interrupted again, so its connection may be closed."""
        with self._changed:
            del self._watched[work]

    def _watch(self) -> None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                for work, deadline in self._watched.items():
                    if deadline <= now:
                        work.interrupt()
                waits = [max(deadline - now, _NAG_SECONDS) for deadline in self._watched.values()]
                self._watched_until = now + min(waits, default=math.inf)
                self._changed.wait(min(waits, default=None))


class _OfProcess:
    """The watchdog of this process. Threads that ask for it first at the same time get the same watchdog: work that enters one
    and leaves another would keep its deadline after its end, or have none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchdog: Watchdog | None = None

    def get(self) -> Watchdog:
        with self._lock:
            if self._watchdog is None:
                self._watchdog = Watchdog()
            return self._watchdog


_of_process = _OfProcess()


def watchdog() -> Watchdog:
    """Return the watchdog of this process, which starts at the first call."""
    return _of_process.get()


def _forget() -> None:
    global _of_process  # noqa: PLW0603 (a forked child has no thread of its parent, and the lock may have been held)
    _of_process = _OfProcess()


os.register_at_fork(after_in_child=_forget)
