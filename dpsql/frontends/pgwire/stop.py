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
        self._stopper_lock = threading.Lock()
        self._has_stopper = False
        self._to_stop: object | None = None
        self._to_leave = False

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
        self._interrupt(statement)

    def _interrupt(self, statement: object | None) -> None:
        """Interrupt until the statement has ended: a single interrupt between two of its steps would be lost."""
        while statement is not None:
            with self._lock:
                if self._statement is not statement:
                    return
                self.requested = True
                for interrupt in self._interrupts:
                    interrupt()
            time.sleep(_NAG_SECONDS)

    # --- the stopper, the one thread of a connection that interrupts for others -----------------------------------------

    def ask(self) -> None:
        """Stop the statement that runs now, without waiting for its end. A thread does that, because interrupts may take a
        moment: one for each connection at most, however many requests there are, and none if no statement runs."""
        running = self._statement
        if running is not None:
            self._order(running, leave=False)

    def leave(self) -> None:
        """Stop the running statement and every later one, because the client is gone; do not wait for that."""
        self.gone = True
        self._order(None, leave=True)

    def _order(self, statement: object | None, *, leave: bool) -> None:
        with self._stopper_lock:
            self._to_stop = statement or self._to_stop
            self._to_leave = self._to_leave or leave
            if not self._has_stopper:
                threading.Thread(target=self._stop_ordered, name="dpsql-stop", daemon=True).start()
                self._has_stopper = True

    def _stop_ordered(self) -> None:
        """Stop what is ordered, also by orders that come meanwhile."""
        while True:
            with self._stopper_lock:
                statement, leave = self._to_stop, self._to_leave
                self._to_stop, self._to_leave = None, False
                self._has_stopper = statement is not None or leave
                if not self._has_stopper:
                    return
            if leave:
                with self._lock:  # a statement that did not see `gone` yet has begun when this lock is free
                    statement = self._statement
            self._interrupt(statement)

    def check(self) -> None:
        """Raise wire_cancelled or wire_timeout if a stop was requested."""
        if self.requested:
            raise self.refusal()

    def refusal(self, charged: bool = False, hint: str = "") -> Error:
        """Return the error of a statement that was stopped."""
        return refuse("wire_timeout" if self.late else "wire_cancelled", charged=charged, hint=hint)


def _nothing() -> None:
    """Do nothing: there is nothing to interrupt."""
