"""Outcomes of charges that wait to be written: beside the next charge, in its transaction.

That a charge was answered is noted for the owner. Nothing is decided by it, and a charge without an outcome is spent as
any other, so the note needs no transaction, and no turn, of its own. It is written by the next charge of this process,
by whoever reads the history through this ledger, closes it or ends the process, and after `LATEST_SECONDS` by a thread.
A process that is killed takes the notes of its last second with it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer

from sqlalchemy import bindparam, select

from dpsql.ledger.driver_statements import DriverStatement
from dpsql.ledger.entries import Turn
from dpsql.ledger.tables import entries

LATEST_SECONDS = 1.0
_log = logging.getLogger("dpsql.ledger")
_RESOLVED = DriverStatement(select(entries.c.seq).where(entries.c.resolves == bindparam("resolves")))


@dataclass(frozen=True)
class Outcome:
    """`kind`: "committed" or "failed"; of the charge with number `resolves`."""

    resolves: int
    kind: str
    note: str


class Outcomes:
    """What waits in this process. Thread-safe without a lock, as a fork could leave one taken: each step is atomic."""

    def __init__(self, settle: Callable[[], None]) -> None:
        """`settle` writes what waits; it is called by a thread of ours when nothing else has done so."""
        self._settle = settle
        self._waiting: dict[int, Outcome] = {}
        self._timer: Timer | None = None
        self._process = os.getpid()

    def add(self, outcome: Outcome) -> None:
        """Let it wait."""
        self._of_this_process()
        self._waiting[outcome.resolves] = outcome
        if self._timer is None:
            timer = self._timer = Timer(LATEST_SECONDS, self._late)
            timer.daemon = True
            with suppress(RuntimeError):  # no thread can be started while the interpreter ends; the end settles
                timer.start()

    def waiting(self) -> list[Outcome]:
        """What is not written yet, oldest first. A child has none: its parent writes what was waiting at the fork."""
        self._of_this_process()
        return list(self._waiting.values())

    def write(self, turn: Turn) -> list[Outcome]:
        """Append what waits to the chain and return it. A charge never fails for the sake of a note: one that has an
        outcome already (a process and its fork both noted one, or nobody knew whether a commit succeeded) is left."""
        found = self.waiting()
        for outcome in found:
            if _RESOLVED.rows(turn.connection, resolves=outcome.resolves):
                _log.warning("charge %d: %s not noted: it has an outcome", outcome.resolves, outcome.kind)
            else:
                turn.append(outcome.kind, {"resolves": outcome.resolves, "note": outcome.note})
        return found

    def written(self, outcomes: list[Outcome]) -> None:
        """These are in the ledger."""
        for outcome in outcomes:
            self._waiting.pop(outcome.resolves, None)

    def stop(self) -> None:
        """Nobody waits for the thread any more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _late(self) -> None:
        self._timer = None
        self._settle()

    def _of_this_process(self) -> None:
        if self._process != os.getpid():
            self._process, self._waiting, self._timer = os.getpid(), {}, None
