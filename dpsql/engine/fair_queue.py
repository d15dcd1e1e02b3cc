"""A bounded number of places for work, given in turns of askers: whoever asks much waits behind their own work."""

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


class FairQueue:
    """At most `most` places (None: no limit), of which one asker has at most `most_each`.

    A free place goes to the asker with the fewest places, of several to the one who was served longest ago; one asker's own
    work is served in the order in which it came. `changed` guards everything, also what `may_enter` of a ticket reads.
    """

    def __init__(self, most: int | None = None, most_each: int | None = None) -> None:
        self._most, self._most_each = most, most_each
        self.changed = threading.Condition()
        self._waiting: list[_Ticket] = []
        self._places: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._numbers = 0

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._waiting)

    @property
    def taken(self) -> int:
        """How many places are taken now."""
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
        """Hold a place for `asker` while this is entered.

        `check` is called while it waits and may raise to stop waiting; `may_enter` holds this ticket back, `entered` is
        called with the place taken, both under `changed`. `queued` is told once, when there is no place at once, how many
        are before this one, itself included.
        """
        with self.changed:
            ticket = _Ticket(asker, self._numbers, may_enter)
            self._numbers += 1
            self._waiting.append(ticket)
            position = 0 if self._is_next(ticket) else self._order().index(ticket) + 1
        try:
            if position and queued is not None:
                queued(position)
            with self.changed:
                while not self._is_next(ticket):
                    self.changed.wait(_LOOK_SECONDS)
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
                self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self._places[asker] -= 1
                if not self._places[asker]:
                    del self._places[asker]
                self.changed.notify_all()

    def _is_next(self, ticket: _Ticket) -> bool:
        if self._most is not None and self.taken >= self._most:
            return False
        ready = [one for one in self._order() if self._has_share(one.asker) and one.may_enter()]
        return bool(ready) and (self._most is None or ticket in ready[: self._most - self.taken])

    def _has_share(self, asker: str) -> bool:
        return self._most_each is None or self._places[asker] < self._most_each

    def _order(self) -> list[_Ticket]:
        """Who waits, in the order in which places would be given if nobody else came."""
        before: Counter[str] = Counter(self._places)
        ranks: dict[int, tuple[int, int, int]] = {}
        for ticket in sorted(self._waiting, key=lambda one: one.number):
            ranks[ticket.number] = (before[ticket.asker], self._served.get(ticket.asker, -1), ticket.number)
            before[ticket.asker] += 1
        return sorted(self._waiting, key=lambda one: ranks[one.number])

    def forget(self) -> None:
        """In a forked child: the threads that wait, and may hold the lock, are the parent's."""
        self.changed = threading.Condition()
        self._waiting, self._places = [], Counter()
