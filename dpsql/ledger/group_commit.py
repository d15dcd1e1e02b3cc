"""Threads that charge at the same time share one transaction, and so one flush to disk.

The first one works; who comes while it does waits, and when it is done one of those who wait works for all of them. A
flush takes as long for one entry as for twenty, so that a slow disk limits transactions, and not charges.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from threading import Condition
from typing import Generic, TypeVar

from dpsql.errors.exceptions import Error, refuse

Asked = TypeVar("Asked")
Given = TypeVar("Given")


class Ask(Generic[Asked, Given]):
    """What one thread asked for, and what became of it: `given`, or the `error` to be raised in that thread."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.given: Given | None = None
        self.error: BaseException | None = None
        self.taken = False
        self.done = False

    def outcome(self) -> Given:
        """What was given; raises the error instead if there is one."""
        if self.error is not None:
            raise self.error
        assert self.given is not None
        return self.given


class _Room(Generic[Asked, Given]):
    """Who waits in one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.changed = Condition()
        self.waiting: list[Ask[Asked, Given]] = []
        self.busy = False


class Together(Generic[Asked, Given]):
    """`work` fills in `given` or `error` of every ask. What it raises instead is raised in all their threads."""

    def __init__(self, work: Callable[[list[Ask[Asked, Given]]], None]) -> None:
        self._work = work
        self._room: _Room[Asked, Given] = _Room()

    def ask(self, asked: Asked, timeout_seconds: float, what: str) -> Given:
        """What `work` gives for `asked`. Raises ledger_locked (about `what`) when its turn does not come in time.

        What was taken into somebody's transaction is waited for however long that takes: it may have been written.
        """
        room = self._room
        if room.process != os.getpid():  # a fork: the threads that wait, and may hold the lock, are the parent's
            room = self._room = _Room()
        mine: Ask[Asked, Given] = Ask(asked)
        batch: list[Ask[Asked, Given]] = []
        try:  # around taking the lead too: Ctrl-C may come between any two steps, and a room left busy is never left
            with room.changed:
                try:
                    self._wait(room, mine, timeout_seconds, what)
                except BaseException:
                    room.waiting = [one for one in room.waiting if one is not mine]
                    raise
                if not mine.done:
                    batch, room.waiting, room.busy = room.waiting, [], True
                    for one in batch:
                        one.taken = True
            if batch:
                self._work(batch)
        except BaseException as error:
            if not batch:
                raise
            # A refusal too is taken back: it may count what others of the batch were to be charged.
            for one in batch:
                one.error = error if one is mine else _for_another(error)
        finally:
            if batch:
                _hand_over(room, batch)
        return mine.outcome()

    def _wait(self, room: _Room[Asked, Given], mine: Ask[Asked, Given], timeout_seconds: float, what: str) -> None:
        """Until the room is free, or somebody has worked for `mine`; the room's lock is held."""
        deadline = time.monotonic() + timeout_seconds
        room.waiting.append(mine)
        while room.busy and not mine.done:
            left = None if mine.taken else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise refuse("ledger_locked", what=what, seconds=f"{timeout_seconds:g}")
            room.changed.wait(left)


def _hand_over(room: _Room[Asked, Given], batch: list[Ask[Asked, Given]]) -> None:
    """The room is free again, and everybody of the batch learns it."""
    with room.changed:
        room.busy = False
        for one in batch:
            one.done = True
        room.changed.notify_all()


def _for_another(error: BaseException) -> Error:
    """The same failure for another thread; one that is not ours (an interrupt of the first thread) tells nothing."""
    return copy(error) if isinstance(error, Error) else refuse("ledger_commit_unknown", charged=True)
