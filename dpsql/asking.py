"""Asking a session from a terminal: the question runs in a thread of its own, so that Ctrl-C can stop it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.errors import Error, refuse
from dpsql.ledger.words import DECIMALS, from_text
from dpsql.privacy import plain_decimal

if TYPE_CHECKING:
    from dpsql.release import Release
    from dpsql.session import Session

_PATIENCE_SECONDS = 0.3
_NAG_SECONDS = 0.05

Waiting = Callable[[], AbstractContextManager[object]]
"""Shows that a question is being worked on, while it is entered."""


def ask(session: Session, sql: str, *, request_id: str | None = None, waiting: Waiting | None = None) -> Release:
    """Execute one statement; on Ctrl-C stop the engine and raise the error `stopped`, which says what was charged.

    `waiting` is entered when the answer takes longer than a moment. Raises what `Session.execute` raises.
    """
    receipt = request_id or uuid.uuid4().hex
    worker = _Worker(session, sql, receipt)
    worker.start()
    try:
        with ExitStack() as shown:
            worker.join(_PATIENCE_SECONDS)
            if worker.is_alive() and waiting is not None:
                shown.enter_context(waiting())
            worker.join()
    except KeyboardInterrupt:
        worker.stop()
        raise _stopped(session, receipt, answered=worker.release is not None) from None
    if worker.release is None:
        assert worker.error is not None
        raise worker.error
    return worker.release


class _Worker(threading.Thread):
    def __init__(self, session: Session, sql: str, receipt: str) -> None:
        super().__init__(name="dpsql-question", daemon=True)
        self._session, self._sql, self._receipt = session, sql, receipt
        self.release: Release | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.release = self._session.execute(self._sql, request_id=self._receipt)
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """Interrupt the engine until the question has ended: one interrupt between two statements would be lost."""
        while self.is_alive():
            self._session.interrupt()
            self.join(_NAG_SECONDS)


def _stopped(session: Session, receipt: str, answered: bool) -> Error:
    entry = session.ledger.find(receipt)
    if entry is None:
        return refuse("stopped", charge="")
    charge = f": {charge_text(from_text(entry.facts['charge']))} charged, receipt {receipt}"
    hint = "its answer was ready; asking again is free" if answered else "asking again is charged again"
    return refuse("stopped", charge=charge, hint=hint, charged=True)


def charge_text(amounts: Mapping[str, int]) -> str:
    """A charge in units of the ledger, in words: "rho 0.005"; six digits where there are more."""
    parts = [
        f"{name} {plain_decimal(Fraction(amount, 10 ** DECIMALS[name]))}" for name, amount in amounts.items() if amount
    ]
    return ", ".join(parts) or "nothing"
