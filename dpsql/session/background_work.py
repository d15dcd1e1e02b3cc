"""Measurement in background threads. The asker may stop waiting; a charged question still runs to its end.

An analyst who could stop a scan would learn, at a time of their choice, whether it had ended. So a timeout or a
cancel only ends the waiting. Before the charge it ends the question; afterwards only the policy's limits apply, the
release is stored, and asking again is free. Actions of the owner (closing, shutdown, the end of the process) do stop
scans.

Answers leave at response times (privacy.md 10): at once, at the next of a few round times, or at one fixed time.

Times count from the arrival of the question and apply to answers, refusals and faults alike, whatever was waited for in
between. An analyst's action (a timeout, a cancel) takes effect at a response time and never between two of them."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

from dpsql.engine.fair_queue import FairQueue
from dpsql.engine.served_tables import UNNAMED
from dpsql.errors.custodian_log import TRACES, registered
from dpsql.errors.exceptions import Error, refuse
from dpsql.policy import Policy
from dpsql.storage.memory import LiveObjects
from dpsql.storage.records import dataclass

PAD_SECONDS = 0.05


class Pace:
    """The response times of one question that arrived at `started` (a reading of time.monotonic)."""

    def __init__(self, policy: Policy, started: float | None = None) -> None:
        self._timing = policy.timing
        self._started = time.monotonic() if started is None else started
        constant = policy.constant_seconds
        self.latest = None if constant is None else self._started + float(constant)
        """The time at which the response is due whether or not there is an answer; None if there is no such time."""
        self._held = False

    def moment(self, now: float) -> float:
        """Return the first response time at or after `now`."""
        if self._timing == "padded":
            return now + padding(now - self._started)
        return now if self.latest is None else max(now, self.latest)

    def hold(self) -> None:
        """Sleep until the next response time; further calls do nothing."""
        if self._held:
            return
        self._held = True
        now = time.monotonic()
        seconds = self.moment(now) - now
        if seconds > 0:
            time.sleep(seconds)

    def left(self, timeout_seconds: float) -> float:
        """Return the seconds that a scan may still take, at most `timeout_seconds`."""
        if self.latest is None:
            return timeout_seconds
        return min(timeout_seconds, max(self.latest - time.monotonic(), _LEAST_SECONDS))


_LEAST_SECONDS = 0.001
"""Least time limit of a scan, because a limit of zero would mean no limit."""


def padding(elapsed_seconds: float) -> float:
    """Return the seconds to wait so that a response takes the next of 0.05, 0.1, 0.2, 0.4, ... seconds.

    Differences within one step cannot be observed. Data can still move a response to another step, so padding reduces what
    time reveals, but is not part of the guarantee.
    """
    step = PAD_SECONDS
    while step < elapsed_seconds:
        step *= 2
    return step - elapsed_seconds


# --- A circuit breaker: after a charged fault of the source, questions about its tables are refused without charge ---
# Otherwise every question about a damaged file would be charged and fail. A fault of the source closes the tables that
# the question read, until their data have another version, or for 30 seconds and then twice as long each time. After
# that time one question is let through, and its own charge shows whether the table can be read again. The refusal reveals
# that a read of this version of the table failed, which the asker who was charged for that read already knows. Faults
# are outside the guarantee (privacy.md 9).
#
# If the policy does not name the version of a server's data, each look-up returns another version (`UNNAMED`), which says
# nothing about changes: all of these count as one version.

FIRST_SECONDS, LONGEST_SECONDS = 30.0, 3600.0


@dataclass
class _Closed:
    version: str
    seconds: float
    until: float


class SourceBreaker:
    """The closed tables, shared by concurrent sessions of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._closed: dict[str, _Closed] = {}

    def require_open(self, versions: Mapping[str, str]) -> None:
        """Raise Fault source_closed if a read of one of these tables, in this version, failed recently.

        When the time is over, one question is let through, and the table is closed to others for the same time again.
        """
        with self._lock:
            now = self._clock()
            failed = []
            for table, version in versions.items():
                closed = self._closed.get(table)
                if closed is not None and closed.version != _named(version):
                    del self._closed[table]
                elif closed is not None:
                    failed.append((table, closed))
            for table, closed in failed:
                if now < closed.until:
                    raise refuse("source_closed", table=table)
            for _, closed in failed:
                closed.until = now + closed.seconds

    def failed(self, versions: Mapping[str, str]) -> None:
        """Close the tables of a question during which the source failed."""
        with self._lock:
            for table, version in versions.items():
                before = self._closed.get(table)
                is_same = before is not None and before.version == _named(version)
                seconds = min(2 * before.seconds, LONGEST_SECONDS) if before is not None and is_same else FIRST_SECONDS
                self._closed[table] = _Closed(_named(version), seconds, self._clock() + seconds)

    def succeeded(self, versions: Mapping[str, str]) -> None:
        """Open the tables of a question that was answered."""
        if self._closed:
            with self._lock:
                for table in versions:
                    self._closed.pop(table, None)


def _named(version: str) -> str:
    """Return the version of a table's data, with UNNAMED for every version without a name."""
    return UNNAMED if version.startswith(UNNAMED) else version


_NAG_SECONDS = 0.02
_STOPPING_SECONDS = 10.0

_Result = TypeVar("_Result")


class Work(Generic[_Result]):
    """The background measurement of one question, shared by three threads: one waits, one measures, and one may end
    the waiting."""

    def __init__(
        self, interrupt: Callable[[], None], *, asker: str, session: str, pace: Pace, goes_on: Callable[[], str]
    ) -> None:
        """`interrupt` stops the engine; `asker` and `session` own the question; `goes_on` tells the asker what happens to a
        charged question for which nobody waits."""
        self.interrupt, self.pace = interrupt, pace
        self._goes_on = goes_on
        self.asker, self.session = asker, session
        self.receipt = ""
        """Of the charge, from before it begins: how far a charge is shows in no error."""
        self._changed = threading.Condition()
        self._begun = False
        self._charged: bool | None = None
        self._closed = False
        self._answer: _Result | None = None
        self._error: Error | None = None
        self.left = False
        self.ended = False

    # --- the thread that measures -------------------------------------------------------------------------------------

    def start(self, measure: Callable[[], _Result]) -> None:
        """Measure in a daemon thread: `MeasurementQueue` stops queries at the process's end, and nothing else is waited for."""
        run = TRACES.carried(partial(self._run, measure))
        threading.Thread(target=run, name="dpsql-measure", daemon=True).start()

    def _run(self, measure: Callable[[], _Result]) -> None:
        try:
            self._answer = measure()
        except BaseException as error:
            self._error = registered(error, charged=self.is_charged)
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise `stopped` if the waiting has ended and no charge has begun."""
        if self.left and not self._begun:
            raise refuse("stopped", charge="")

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Enclose the charge; afterwards only the policy and the owner can stop the question. Raises `stopped`."""
        with self._changed:
            self.check()
            self._begun = True
        try:
            yield
        except BaseException:
            self._decide(charged=False)
            raise
        self._decide(charged=True)

    @property
    def is_charged(self) -> bool:
        """Return whether the charge was recorded."""
        return self._charged is True

    def _decide(self, charged: bool) -> None:
        with self._changed:
            self._charged = charged
            self._changed.notify_all()

    def require_open(self) -> None:
        """Raise answer_late if the response time came first: such an answer is not stored, so that its time stays unknown."""
        if self._closed:
            raise refuse("answer_late", charged=True)

    # --- the thread that waits ----------------------------------------------------------------------------------------

    def result(self) -> _Result:
        """Return the answer at its response time. Raises the error of the measurement; `stopped` if the waiting ended;
        answer_late if the response time comes first."""
        with self._changed:
            while not self._answerable():
                seconds = None if self.pace.latest is None else self.pace.latest - time.monotonic()
                if seconds is not None and seconds <= 0:
                    break
                self._changed.wait(seconds)
        self.pace.hold()
        with self._changed:
            if self.ended:
                return self._result()
            late = not self.left
            self.left = True
            # If it were stored after its only response time, asking again would reveal how late it was.
            self._closed = self.pace.latest is not None
            charged = self._begun and self._charged is not False
        if late:
            raise refuse("answer_late", charged=charged)
        if not charged:
            raise refuse("stopped", charge="")
        charge, hint = "; its charge stays", "" if self._closed else self._goes_on()
        raise refuse("stopped", charge=charge, hint=hint, charged=True)

    def fate(self) -> str:
        """Return in words what becomes of the question after the waiting has ended."""
        with self._changed:
            charged = self._begun and self._charged is not False
        return f"the question is charged: {self._goes_on()}" if charged else "nothing was charged"

    def _answerable(self) -> bool:
        return self.ended or (self.left and (not self._begun or self._charged is not None))

    def _result(self) -> _Result:
        if self._answer is None:
            assert self._error is not None
            raise self._error
        return self._answer

    # --- other threads ------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """End the waiting for the question."""
        with self._changed:
            self.left = True
            self._changed.notify_all()


class Waiting:
    """The works for which one call waits. After `leave`, the waiting for a work that comes later ends at once."""

    def __init__(self) -> None:
        self._works: list[Work[Any]] = []
        self._has_left = False

    def add(self, work: Work[Any]) -> None:
        self._works.append(work)
        if self._has_left:
            work.leave()

    def leave(self) -> None:
        """End the waiting for all of them."""
        self._has_left = True
        for work in list(self._works):
            work.leave()

    def fate(self) -> str:
        """Return in words what becomes of the last of them."""
        return self._works[-1].fate() if self._works else "nothing was charged"


CALL: ContextVar[Waiting] = ContextVar("dpsql call")
"""The works of a call that can be given up alone, beside other calls of its session."""


class MeasurementQueue:
    """The running measurements: at most `most` at once (None: no limit); for each asker at most `most_each`, and at
    most `most_left` abandoned ones (for which nobody waits). Places go to askers in turn (`FairQueue`). A session with
    an abandoned question waits for its end before it measures again, so that abandoning questions never causes more
    work than waiting for them. `breaker`: the tables of the source that failed recently."""

    def __init__(self, most: int | None = None, most_left: int = 1, most_each: int | None = None) -> None:
        self._most_left = most_left
        self._queue = FairQueue(most, most_each)
        self._running: set[Work[Any]] = set()
        self._listeners: dict[str, Callable[[int], None]] = {}
        self.breaker = SourceBreaker()
        _queues.add(self)

    @property
    def _changed(self) -> threading.Condition:
        return self._queue.changed

    @property
    def queue(self) -> FairQueue:
        """Return the queue of places."""
        return self._queue

    def tell(self, session: str, listener: Callable[[int], None] | None) -> None:
        """Register `listener`, called with its position once for each question that has to wait; None removes it."""
        if listener is None:
            self._listeners.pop(session, None)
        else:
            self._listeners[session] = listener

    @contextmanager
    def place(self, work: Work[Any]) -> Iterator[None]:
        """Hold a place for `work` while the context is open. Raises `stopped` if its waiting has ended."""
        with self._queue.place(
            work.asker,
            work.check,
            may_enter=lambda: self._may_enter(work),
            queued=self._listeners.get(work.session),
            entered=lambda: self._running.add(work),
        ):
            try:
                yield
            finally:
                with self._changed:
                    self._running.discard(work)

    def _may_enter(self, work: Work[Any]) -> bool:
        left = [other for other in self._running if other.left]
        same = sum(other.asker == work.asker for other in left)
        return same < self._most_left and all(other.session != work.session for other in left)

    def stop(self, session: str | None = None) -> int:
        """Stop the engine for the questions of one session, or of all sessions, and wait until they have ended.

        Returns how many have not ended after ten seconds because they wait in calls that cannot be interrupted.
        """
        deadline = time.monotonic() + _STOPPING_SECONDS
        with self._changed:
            while time.monotonic() < deadline:
                running = [question for question in self._running if session in (None, question.session)]
                if not running:
                    return 0
                for question in running:
                    question.interrupt()  # repeated, because an interrupt between two statements is lost
                self._changed.wait(_NAG_SECONDS)
            return len([question for question in self._running if session in (None, question.session)])

    def forget(self) -> None:
        """Reset the queue in a forked child: the measuring threads belong to the parent."""
        self._queue.forget()
        self._running = set()


_queues: LiveObjects[MeasurementQueue] = LiveObjects()


def _forget_all() -> None:
    for queue in _queues.all():
        queue.forget()


def _stop_all() -> None:
    """Stop all work: a process that ends while an engine is working is aborted."""
    for queue in _queues.all():
        queue.stop()


os.register_at_fork(after_in_child=_forget_all)
atexit.register(_stop_all)
