"""What ends the waiting for a statement: a cancel request, its timeout, or the end of its client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsql.errors.exceptions import Error, refuse

_NAG_SECONDS = 0.05


class Stop:
    """What a cancel request does: it ends the waiting for the statement that runs on this connection now, and no other.
    When the client is gone, nothing begins any more either."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statement: object | None = None
        self._interrupts: list[Callable[[], None]] = []
        self.requested = False
        self.late = False
        self.gone = False

    @contextmanager
    def running(self, interrupt: Callable[[], None], seconds: float | None) -> Iterator[None]:
        """While this is entered, `interrupt` is what stops; it is called after `seconds` in any case. Entered again inside of
        it, for a part of the same statement, whatever stops the one stops the other, and the first `seconds` hold. Raises
        wire_cancelled or wire_timeout when that was asked for already."""
        with self._lock:
            is_first = self._statement is None
            if is_first:
                self._statement, self.requested, self.late = object(), self.gone, False
            self._interrupts.append(interrupt)
        timer = None if seconds is None or not is_first else threading.Timer(seconds, self._expire, (self._statement,))
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            self.check()
            yield
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                self._interrupts.pop()
                if is_first:
                    self._statement = None

    @contextmanager
    def waiting(self, seconds: float | None) -> Iterator[None]:
        """While this is entered, whoever waits calls `check` again and again; there is nothing to interrupt."""
        with self.running(_nothing, seconds):
            yield

    def _expire(self, statement: object) -> None:
        with self._lock:
            if self._statement is not statement:
                return
            self.late = True
        self.ask()

    def ask(self) -> None:
        """Interrupt until the statement has ended: one interrupt between two steps of it would be lost."""
        with self._lock:
            mine = self._statement
        while mine is not None:
            with self._lock:
                if self._statement is not mine:
                    return
                self.requested = True
                for interrupt in self._interrupts:
                    interrupt()
            time.sleep(_NAG_SECONDS)

    def leave(self) -> None:
        """Stop what runs, and whatever would run next: the client is gone."""
        with self._lock:
            self.gone = True
        self.ask()

    def check(self) -> None:
        """Raise wire_cancelled or wire_timeout when it was asked for."""
        if self.requested:
            raise self.refusal()

    def refusal(self, charged: bool = False, hint: str = "") -> Error:
        """Return what a statement that was stopped says."""
        return refuse("wire_timeout" if self.late else "wire_cancelled", charged=charged, hint=hint)


def _nothing() -> None:
    """There is nothing to interrupt."""
