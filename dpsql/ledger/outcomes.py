"""Outcomes of charges, written in the transaction of the next charge.

They inform the owner that a charge was answered. Nothing depends on them, and a charge without an outcome is spent
like any other, so an outcome needs no separate transaction. It is written with the next charge of this process,
when the history is read through this ledger, when the ledger is closed or the process ends, and after
`LATEST_SECONDS` by a thread. A killed process loses the outcomes of its last second.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer

from dpsql.ledger.entries import ChainWriter

LATEST_SECONDS = 1.0
_log = logging.getLogger("dpsql.ledger")
_RESOLVED = "SELECT seq FROM dpsql_entries WHERE resolves = :resolves"


@dataclass(frozen=True)
class Outcome:
    """The outcome ("committed" or "failed") of the charge with number `resolves`."""

    resolves: int
    kind: str
    note: str


class Outcomes:
    """The waiting outcomes of this process. Thread-safe because each step is atomic; there is no lock, because a fork could
    leave it locked."""

    def __init__(self, settle: Callable[[], None]) -> None:
        """`settle` writes the waiting outcomes; a background thread calls it if nothing else does."""
        self._settle = settle
        self._waiting: dict[int, Outcome] = {}
        self._timer: Timer | None = None
        self._process = os.getpid()

    def add(self, outcome: Outcome) -> None:
        """Add an outcome to the waiting ones."""
        self._of_this_process()
        self._waiting[outcome.resolves] = outcome
        if self._timer is None:
            timer = self._timer = Timer(LATEST_SECONDS, self._late)
            timer.daemon = True
            with suppress(RuntimeError):  # no thread starts while the interpreter ends, which settles anyway
                timer.start()

    def waiting(self) -> list[Outcome]:
        """Return the waiting outcomes, oldest first. A forked child has none: its parent writes them."""
        self._of_this_process()
        return list(self._waiting.values())

    def write(self, writer: ChainWriter) -> list[Outcome]:
        """Append the waiting outcomes to the chain and return them. A charge must not fail because of an outcome, so a
        second outcome of one charge (noted by a process and its fork, or after a commit of unknown success) is
        skipped."""
        outcomes = self.waiting()
        for outcome in outcomes:
            if writer.connection.rows(_RESOLVED, resolves=outcome.resolves):
                _log.warning("charge %d: %s not noted: it has an outcome", outcome.resolves, outcome.kind)
            else:
                writer.append(outcome.kind, {"resolves": outcome.resolves, "note": outcome.note})
        return outcomes

    def written(self, outcomes: list[Outcome]) -> None:
        """Remove outcomes that are in the ledger."""
        for outcome in outcomes:
            self._waiting.pop(outcome.resolves, None)

    def stop(self) -> None:
        """Cancel the background flush."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _late(self) -> None:
        self._timer = None
        self._settle()

    def _of_this_process(self) -> None:
        if self._process != os.getpid():
            self._process, self._waiting, self._timer = os.getpid(), {}, None
