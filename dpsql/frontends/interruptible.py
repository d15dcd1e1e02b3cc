"""Ask from a terminal: the question runs in its own thread, so that Ctrl-C can stop it."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from fractions import Fraction
from shlex import quote
from typing import TYPE_CHECKING
from weakref import WeakSet

from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.records import charge_id, from_text
from dpsql.planning.planner import Planned
from dpsql.privacy.ledger_units import DECIMALS
from dpsql.privacy.loss import plain_decimal

if TYPE_CHECKING:
    from dpsql.release.release import Release
    from dpsql.session.session import Session
    from dpsql.sql.lexer import SqlText

SLOW_SECONDS = 3.0
"""Time after which an answer is called slow."""
_ADVISED: WeakSet[Session] = WeakSet()
_PATIENCE_SECONDS = 0.3
_NAG_SECONDS = 0.05

Waiting = Callable[[], AbstractContextManager[object]]
"""A function that returns a context in which the terminal shows that a question is being worked on."""


def ask(
    session: Session,
    sql: SqlText | Planned,
    *,
    request_id: str | None = None,
    waiting: Waiting | None = None,
    advise: Callable[[str], object] | None = None,
    stays: bool = False,
) -> Release:
    """Execute one statement or answer a planned question. On Ctrl-C stop waiting and raise the error `stopped`, which says what
    was charged.

    `waiting` is entered if the answer takes longer than a moment. `advise` is given one line on how the next answers become
    faster, after the first slow one of a session. `stays`: the program goes on after Ctrl-C, and a charged measurement with it.
    Raises what `Session.execute` raises.
    """
    receipt = request_id or uuid.uuid4().hex
    began = time.monotonic()
    question = _Question(session, sql, receipt)
    threading.Thread(target=question.work, name="dpsql-question", daemon=True).start()
    try:
        with ExitStack() as display:
            if not question.ended.wait(_PATIENCE_SECONDS) and waiting is not None:
                display.enter_context(waiting())
            question.ended.wait()
    except KeyboardInterrupt:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would take the place of what is charged
        try:
            question.stop()
            if session.options.threshold is not None:
                # Runs of watches have their own receipts, and a comparison that was made is not returned again.
                raise question.error or refuse("stopped", charge=": the comparison counts", charged=True) from None
            raise _stopped(session, receipt, answered=question.release is not None, stays=stays) from None
        finally:
            if stays:
                signal.signal(signal.SIGINT, before)
    if question.release is None:
        assert question.error is not None
        raise question.error
    if advise is not None and question.release.receipt.is_paid and time.monotonic() - began > SLOW_SECONDS:
        _advise(session, advise)
    return question.release


def _advise(session: Session, advise: Callable[[str], object]) -> None:
    """Say once in a session of the owner, who alone can prepare copies, which tables have none."""
    if session.analyst is not None or session in _ADVISED:
        return
    _ADVISED.add(session)
    with suppress(Error):  # the source is away: the next question says so
        if tables := session.context.index.unprepared():
            command = f"dpsql prepare -p {quote(session.policy.origin.name)}"
            advise(f"faster from now on: {command} (no copy yet of {', '.join(tables)}; dpsql help prepare)")


class _Question:
    """State of one background question. Wait on `ended`, not `Thread.join`: in Python 3.11 a Ctrl-C in `Thread.join`
    makes a running thread look finished."""

    def __init__(self, session: Session, sql: SqlText | Planned, receipt: str) -> None:
        self._session, self._sql, self._receipt = session, sql, receipt
        self.release: Release | None = None
        self.error: BaseException | None = None
        self.ended = threading.Event()

    def work(self) -> None:
        try:
            if isinstance(self._sql, Planned):
                self.release = self._session.answer(self._sql, self._receipt)
            else:
                self.release = self._session.execute(self._sql, request_id=self._receipt)
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()

    def stop(self) -> None:
        """Interrupt repeatedly until the question has ended: an interrupt before it starts would be lost."""
        while not self.ended.is_set():
            with suppress(KeyboardInterrupt):
                self._session.interrupt()
                self.ended.wait(_NAG_SECONDS)


def _stopped(session: Session, receipt: str, *, answered: bool, stays: bool) -> Error:
    entry = session.ledger.find(charge_id(session.analyst, receipt))
    if entry is None:
        return refuse("stopped", charge="")
    charge = f": {charge_text(from_text(entry.facts['charge']))} charged, receipt {receipt}"
    context, options = session.context, session.options
    hint = (
        f"its answer was ready; asking again {context.again(options)}" if answered else "asking again is charged again"
    )
    if stays and not answered and context.is_given_again(options):
        hint = f"while this program runs, {context.goes_on(options)}"
    return refuse("stopped", charge=charge, hint=hint, charged=True)


def charge_text(amounts: Mapping[str, int]) -> str:
    """Return a charge in units of the ledger as text such as "rho 0.005", with at most six digits."""
    parts = [
        f"{name} {plain_decimal(Fraction(amount, 10 ** DECIMALS[name]))}" for name, amount in amounts.items() if amount
    ]
    return ", ".join(parts) or "nothing"
