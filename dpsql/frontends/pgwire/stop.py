"""End of the wait for a statement: by a cancel request, by its timeout, or because its client is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsql.errors.exceptions import Error, refuse

_NAG_SECONDS = 0.05


class Stop:
    """Stop of the statement that runs on one connection now, and of no other. Once the client is gone, no further statement
    begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statement: object | None = None
        self._interrupts: list[Callable[[], None]] = []
        self.requested = False
        self.late = False
        self.gone = False

    @contextmanager
    def running(self, interrupt: Callable[[], None], seconds: float | None) -> Iterator[None]:
        """Make `interrupt` the way to stop a statement while the context is open, and call it after `seconds` in any case (None:
        no limit). In a nested context, for a part of the same statement, a stop calls the interrupts of both, and the outer
        `seconds` hold. Raises wire_cancelled or wire_timeout if a stop was already requested."""
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
        """Let a statement be stopped while the context is open and its thread calls `check` repeatedly: there is nothing to
        interrupt."""
        with self.running(_nothing, seconds):
            yield

    def _expire(self, statement: object) -> None:
        with self._lock:
            if self._statement is not statement:
                return
            self.late = True
        self.ask()

    def ask(self) -> None:
        """Interrupt until the statement has ended: a single interrupt between two of its steps would be lost."""
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
        """Stop the running statement and every later one, because the client is gone."""
        with self._lock:
            self.gone = True
        self.ask()

    def check(self) -> None:
        """Raise wire_cancelled or wire_timeout if a stop was requested."""
        if self.requested:
            raise self.refusal()

    def refusal(self, charged: bool = False, hint: str = "") -> Error:
        """Return the error of a statement that was stopped."""
        return refuse("wire_timeout" if self.late else "wire_cancelled", charged=charged, hint=hint)


def _nothing() -> None:
    """Do nothing: there is nothing to interrupt."""
