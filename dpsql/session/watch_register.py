"""The watches of one process and their runs, which exist only in its memory (`watches` explains why)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakSet

from dpsql.ledger.ledger import Reservation
from dpsql.noise.perturb import NoisyThreshold
from dpsql.pricing.above_threshold import ComparedSum
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold

_WAIT_SECONDS = 0.05


@dataclass
class ThresholdRun:
    """A run in progress. `left`: how many comparisons it may still make (None: any number); `number`: its number among the
    runs of its watch, from 1."""

    law: AboveThreshold
    secret: NoisyThreshold
    grid: int
    direction: int
    left: int | None
    number: int
    reservation: Reservation
    comparisons: int = 0


class NamedWatch:
    """One watch: its run, if any, and the sums that its next run must be able to compare."""

    def __init__(self) -> None:
        self.run: ThresholdRun | None = None
        self.expected: tuple[ComparedSum, ...] = ()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, check: Callable[[], None]) -> Iterator[None]:
        """Hold the watch for one comparison at a time. `check` raises if the asker has stopped waiting."""
        while not self._lock.acquire(timeout=_WAIT_SECONDS):
            check()
        try:
            yield
        finally:
            self._lock.release()


class Watches:
    """The watches of one process, shared by its sessions. A forked child has none: two processes must not continue one run."""

    def __init__(self) -> None:
        self._watches: dict[tuple[str | None, ...], NamedWatch] = {}
        self._lock = threading.Lock()
        _REGISTERS.add(self)

    def named(self, *key: str | None) -> NamedWatch:
        """Return the watch under a key; create it if there is none."""
        with self._lock:
            return self._watches.setdefault(key, NamedWatch())

    def forget(self) -> None:
        """Drop every run in a forked child: the parent continues them."""
        self._watches, self._lock = {}, threading.Lock()


_REGISTERS: WeakSet[Watches] = WeakSet()


def _forget_all() -> None:
    for register in list(_REGISTERS):
        register.forget()


os.register_at_fork(after_in_child=_forget_all)
