"""Metrics of a server for its owner: questions by outcome, and times of stored answers.

No number here comes from data: outcomes follow from questions, options and budgets, and times are recorded for stored answers
alone, which read no data. The time of a measured answer is not recorded, because it may reveal something about the rows
(privacy.md 10).
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dpsql.errors.custodian_log import audit
from dpsql.errors.exceptions import BudgetRefusal, Error, Fault, InternalError
from dpsql.errors.traces import TRACES

if TYPE_CHECKING:
    from dpsql.release.release import Release

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
