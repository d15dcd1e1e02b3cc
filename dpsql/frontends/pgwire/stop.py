"""End of the wait for a statement: by a cancel request, by its timeout, or because its client is gone. Metrics of questions."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpsql.engine.fair_queue import watchdog
from dpsql.errors.custodian_log import TRACES, audit
from dpsql.errors.exceptions import BudgetRefusal, Error, Fault, InternalError, refuse

if TYPE_CHECKING:
    from dpsql.release.release import Release


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
        watch = None
        try:
            if seconds is not None and is_first:
                watch = watchdog()
                watch.enter(self, seconds)
            self.check()
            yield
        finally:
            if watch is not None:
                watch.leave(self)
            with self._lock:
                self._interrupts.pop()
                if is_first:
                    self._statement, self.requested, self.late = None, self.gone, False

    @contextmanager
    def waiting(self, seconds: float | None) -> Iterator[None]:
        """Let a statement be stopped while the context is open and its thread calls `check` repeatedly: there is nothing to
        interrupt."""
        with self.running(_nothing, seconds):
            yield

    def interrupt(self) -> None:
        """Stop the statement whose time is over. The watchdog calls this, which waits for nobody."""
        self.late = True
        self.ask()

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


# --- metrics of a server for its owner --------------------------------------------------------------------------------
# Questions by outcome, and times of stored answers.
#
# No number here comes from data: outcomes follow from questions, options and budgets, and times are recorded for stored
# answers alone, which read no data. The time of a measured answer is not recorded, because it may reveal something
# about the rows (privacy.md 10).

OUTCOMES = ("measured", "stored", "refused", "over budget", "fault", "stopped")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper ends in seconds; the last bucket has none."""


class Activity:
    """Counts of one server. Thread-safe."""

    def __init__(self, log_sql: bool = False) -> None:
        """`log_sql`: whether the audit log and traces contain the texts of questions, without the values of parameters."""
        self.log_sql = log_sql
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def answered(self, user: str, release: Release, seconds: float, sql: str | None = None) -> None:
        """Count an answer about data that took `seconds`; the audit log has a line for each charge."""
        receipt = release.receipt
        outcome = "stored" if receipt.reused else "measured"
        TRACES.note(user=user, outcome=outcome, receipt=receipt.id, sql=sql if self.log_sql else None)
        with self._lock:
            self._outcomes[outcome] += 1
            if receipt.reused:
                self._buckets[bisect_left(BUCKETS, seconds)] += 1
                self._seconds += seconds
        if not receipt.reused:
            audit("charge", user=user, receipt=receipt.id, charge=receipt.charged, sql=sql if self.log_sql else None)

    def failed(self, user: str, error: Error, sql: str | None = None) -> None:
        """Count a question that was not answered."""
        outcome = outcome_of(error)
        facts: dict[str, str | bool | None] = {
            "slug": error.slug,
            "charged": error.charged,
            "sql": sql if self.log_sql else None,
        }
        TRACES.note(user=user, outcome=outcome, **facts)
        with self._lock:
            self._outcomes[outcome] += 1
        audit(outcome.replace(" ", "_"), user=user, **facts)

    def outcomes(self) -> dict[str, int]:
        """Return the number of questions by outcome."""
        with self._lock:
            return {name: self._outcomes[name] for name in OUTCOMES}

    def stored_seconds(self) -> tuple[list[tuple[str, float]], float]:
        """Return the cumulative count of stored answers at each bucket's end, as in Prometheus, and the sum of their
        seconds."""
        with self._lock:
            counts, total = list(self._buckets), self._seconds
        ends = [*map(str, BUCKETS), "+Inf"]
        return [(end, float(sum(counts[: bucket + 1]))) for bucket, end in enumerate(ends)], total


def outcome_of(error: Error) -> str:
    """Return the outcome of a question that raised `error`."""
    if isinstance(error, BudgetRefusal):
        return "over budget"
    if error.sqlstate == "57014" and error.slug != "answer_late":
        return "stopped"
    return "fault" if isinstance(error, (Fault, InternalError)) else "refused"


class MetricsCollector:
    """A collector of the counts for `prometheus_client`, which is imported on first use."""

    def __init__(
        self, activity: Activity, gauges: Callable[[], Mapping[str, float]], budget: Callable[[], Mapping[str, float]]
    ) -> None:
        """`gauges`: current names and values; `budget`: the spent share of each scope's budget."""
        self._activity, self._gauges, self._budget = activity, gauges, budget

    def collect(self) -> list[Any]:
        """Yield every family of metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        questions = CounterMetricFamily("dpsql_questions", "Questions about data by outcome.", labels=["outcome"])
        for outcome, count in self._activity.outcomes().items():
            questions.add_metric([outcome], count)
        buckets, total = self._activity.stored_seconds()
        stored = HistogramMetricFamily("dpsql_stored_answer_seconds", "Time of answers from stored releases.")
        stored.add_metric([], buckets=buckets, sum_value=total)
        spent = GaugeMetricFamily(
            "dpsql_budget_spent_ratio", "Share of a scope's budget that is spent.", labels=["scope"]
        )
        for scope, share in self._budget().items():
            spent.add_metric([scope], share)
        gauges = [
            GaugeMetricFamily(f"dpsql_{name}", name.replace("_", " "), value) for name, value in self._gauges().items()
        ]
        return [questions, stored, spent, *gauges]


def metrics_text(collector: MetricsCollector) -> bytes:
    """Return the current metrics as Prometheus text. Raises ModuleNotFoundError without the extra `dpsql[metrics]`."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return bytes(generate_latest(registry))
