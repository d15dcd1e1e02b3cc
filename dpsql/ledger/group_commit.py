"""Group commit: threads that charge at the same time share one transaction, and so one flush to disk.

The first thread leads and writes. Threads that arrive meanwhile wait; then one of them leads and writes for all of them. A
flush takes as long for twenty entries as for one, so a slow disk limits the number of transactions, but not of charges.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from threading import Condition
from typing import Generic, TypeVar

from dpsql.errors.exceptions import Error, refuse

Request = TypeVar("Request")
Result = TypeVar("Result")


class Submission(Generic[Request, Result]):
    """The request of one thread and its outcome: `result`, or the `error` to raise in that thread."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.taken = False
        self.done = False

    def outcome(self) -> Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class _Queue(Generic[Request, Result]):
    """The waiting submissions of one process, and whether a thread leads (`busy`)."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.changed = Condition()
        self.waiting: list[Submission[Request, Result]] = []
        self.busy = False


class GroupCommit(Generic[Request, Result]):
    """A queue that `work` serves in batches. `work` sets `result` or `error` of every submission of a batch; an exception that
    it raises itself is raised in all their threads."""

    def __init__(self, work: Callable[[list[Submission[Request, Result]]], None]) -> None:
        self._work = work
        self._queue: _Queue[Request, Result] = _Queue()

    def submit(self, request: Request, timeout_seconds: float, purpose: str) -> Result:
        """Return the result of `work` for `request`. Raises ledger_locked (about `purpose`) if no batch takes it in time.

        The wait for a request that a batch has taken is not limited, because the request may have been written.
        """
        queue = self._queue
        if queue.process != os.getpid():  # a fork: waiting threads, which may hold the lock, are the parent's
            queue = self._queue = _Queue()
        mine: Submission[Request, Result] = Submission(request)
        batch: list[Submission[Request, Result]] = []
        try:  # includes taking the lead: Ctrl-C may come between any two steps, and a queue left busy blocks every charge
            with queue.changed:
                try:
                    self._wait(queue, mine, timeout_seconds, purpose)
                except BaseException:
                    queue.waiting = [submission for submission in queue.waiting if submission is not mine]
                    raise
                if not mine.done:
                    batch, queue.waiting, queue.busy = queue.waiting, [], True
                    for submission in batch:
                        submission.taken = True
            if batch:
                self._work(batch)
        except BaseException as error:
            if not batch:
                raise
            # Refusals are withdrawn as well: they may include amounts of other requests in the batch that were not charged.
            for submission in batch:
                submission.error = error if submission is mine else _for_another(error)
        finally:
            if batch:
                _release_leadership(queue, batch)
        return mine.outcome()

    def _wait(
        self,
        queue: _Queue[Request, Result],
        mine: Submission[Request, Result],
        timeout_seconds: float,
        purpose: str,
    ) -> None:
        """Wait until no thread leads or `mine` is done; the caller holds the lock of the queue."""
        deadline = time.monotonic() + timeout_seconds
        queue.waiting.append(mine)
        while queue.busy and not mine.done:
            left = None if mine.taken else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise refuse("ledger_locked", what=purpose, seconds=f"{timeout_seconds:g}")
            queue.changed.wait(left)


def _release_leadership(queue: _Queue[Request, Result], batch: list[Submission[Request, Result]]) -> None:
    """Release leadership and wake every thread of the batch."""
    with queue.changed:
        queue.busy = False
        for submission in batch:
            submission.done = True
        queue.changed.notify_all()


def _for_another(error: BaseException) -> Error:
    """Return the failure for another thread: a copy of an `Error`, or, after an interrupt, that the outcome is unknown."""
    return copy(error) if isinstance(error, Error) else refuse("ledger_commit_unknown", charged=True)
