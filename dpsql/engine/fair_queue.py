"""A fair queue: a bounded number of places that go to askers in turn, so that each asker waits behind their own work."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LOOK_SECONDS = 0.1


@dataclass(eq=False)
class _Ticket:
    asker: str
    number: int
    may_enter: Callable[[], bool]
    turn: threading.Condition


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
                    is_woken = False
                    while not is_woken:
                        is_woken = ticket.turn.wait(_LOOK_SECONDS)
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
        """Wake the tickets that are next."""
        for ticket in self._next():
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
