"""Turns and deadlines of running statements: a fair queue for askers, and one thread that interrupts what is late."""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

_LOOK_SECONDS = 0.1


@dataclass(eq=False)
class _Ticket:
    asker: str
    number: int
    may_enter: Callable[[], bool]
    turn: threading.Condition
    is_called: bool = False


class FairQueue:
    """At most `most` places (None: no limit), of which one asker has at most `most_each`.

    A free place goes to the asker with the fewest places, and among several of these to the one who was served longest ago; the
    work of one asker is served in its order of arrival. `changed` guards everything, including what `may_enter` reads, and is
    notified when a place becomes free. A change wakes the tickets that are next, and no other: with many of them waiting, each
    would sort all of them to find that it is not next.
    """

    def __init__(self, most: int | None = None, most_each: int | None = None) -> None:
        self._most, self._most_each = most, most_each
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self._waiting: list[_Ticket] = []
        self._places: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._numbers = 0

    @property
    def waiting(self) -> int:
        """The number of waiting tickets."""
        return len(self._waiting)

    @property
    def taken(self) -> int:
        """The number of places in use."""
        return self._places.total()

    @contextmanager
    def place(
        self,
        asker: str,
        check: Callable[[], None] | None = None,
        may_enter: Callable[[], bool] = lambda: True,
        queued: Callable[[int], None] | None = None,
        entered: Callable[[], None] = lambda: None,
    ) -> Iterator[None]:
        """Hold a place for `asker` while the context is open.

        `check` is called while waiting and may raise to stop it. `may_enter` returns False to hold this ticket back, until
        another place becomes free, and `entered` is called when the place is taken, both under `changed`. If no place is free
        at once, `queued` is called once with the position in the queue (1: next).
        """
        with self.changed:
            ticket = _Ticket(asker, self._numbers, may_enter, threading.Condition(self._lock))
            self._numbers += 1
            self._waiting.append(ticket)
            position = 0 if self._is_next(ticket) else self._order().index(ticket) + 1
        try:
            if position and queued is not None:
                queued(position)
            with self.changed:
                while not self._is_next(ticket):
                    if ticket.is_called:  # `may_enter` has changed since: the place is for another
                        ticket.is_called = False
                        self._wake()
                    while not ticket.is_called:
                        ticket.turn.wait(_LOOK_SECONDS)
                        if check is not None:
                            check()
                if check is not None:
                    check()
                self._places[asker] += 1
                self._served[asker] = self._numbers = self._numbers + 1
                entered()
        finally:
            with self.changed:
                self._waiting.remove(ticket)
                self._wake()
        try:
            yield
        finally:
            with self.changed:
                self._places[asker] -= 1
                if not self._places[asker]:
                    del self._places[asker]
                self._wake()
                self.changed.notify_all()

    def _wake(self) -> None:
        """Wake the tickets that are next. What `wait` returns does not tell a ticket so: it is False for one that is woken
        after its time passed and before it has the lock again, and nobody would wake that ticket a second time."""
        for ticket in self._next():
            ticket.is_called = True
            ticket.turn.notify()

    def _is_next(self, ticket: _Ticket) -> bool:
        return ticket in self._next()

    def _next(self) -> list[_Ticket]:
        """Return the waiting tickets that may take a place now."""
        if not self._waiting or (self._most is not None and self.taken >= self._most):
            return []
        ready = [waiting for waiting in self._order() if self._has_share(waiting.asker) and waiting.may_enter()]
        return ready if self._most is None else ready[: self._most - self.taken]

    def _has_share(self, asker: str) -> bool:
        return self._most_each is None or self._places[asker] < self._most_each

    def _order(self) -> list[_Ticket]:
        """Return the waiting tickets in the order in which they would get places if no other ticket came."""
        before: Counter[str] = Counter(self._places)
        ranks: dict[int, tuple[int, int, int]] = {}
        for ticket in sorted(self._waiting, key=lambda waiting: waiting.number):
            ranks[ticket.number] = (before[ticket.asker], self._served.get(ticket.asker, -1), ticket.number)
            before[ticket.asker] += 1
        return sorted(self._waiting, key=lambda waiting: ranks[waiting.number])

    def forget(self) -> None:
        """Reset the queue in a forked child: the waiting threads, which may hold the lock, belong to the parent."""
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self._waiting, self._places = [], Counter()


# --- deadlines of running statements ----------------------------------------------------------------------------------
# One thread interrupts statements that are past their deadline.

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
                        with suppress(Exception):  # of work that is lost with its engine: others have deadlines too
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
