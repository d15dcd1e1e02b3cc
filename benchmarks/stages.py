"""The time of each step of one query, measured by a stopwatch around the pipeline's functions."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dpsql.planning.planner
import dpsql.session.pipeline
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.emit.emitter import Emitter
from dpsql.ledger.ledger import Ledger
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.store import ReleaseStore

STEPS: tuple[tuple[Any, str, str], ...] = (
    (dpsql.planning.planner, "parse", "parse"),
    (dpsql.planning.planner, "bind", "bind"),
    (dpsql.planning.planner, "bounded", "rewrite"),
    (dpsql.planning.planner, "price", "price"),
    (dpsql.planning.planner, "fingerprint", "fingerprint"),
    (dpsql.session.pipeline, "rehearse", "rehearse"),
    (Emitter, "block", "emit"),
    (Ledger, "reserve", "ledger: reserve"),
    (DuckDBEngine, "run", "engine"),
    (dpsql.session.pipeline, "perturb", "perturb"),
    (ReleaseStore, "nearest", "store: look up"),
    (ReleaseStore, "put", "store: keep"),
    (Ledger, "resolve", "ledger: note"),
    (Ledger, "accounts", "ledger: budget"),
    (dpsql.session.pipeline, "make_release", "release"),
    (Sandbox, "query", "sandbox"),
)
REST = "session"


class Stopwatch:
    """Own milliseconds of each step: a nested step (the sandbox in the release) is subtracted from the outer one."""

    def __init__(self) -> None:
        self.samples: list[dict[str, float]] = []
        self._now: defaultdict[str, float] = defaultdict(float)
        self._inside: list[float] = []

    def step(self, label: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return `work`, timed under `label`."""

        def timed(*arguments: Any, **named: Any) -> Any:
            self._inside.append(0.0)
            start = time.perf_counter()
            try:
                return work(*arguments, **named)
            finally:
                spent = time.perf_counter() - start
                self._now[label] += (spent - self._inside.pop()) * 1000
                if self._inside:
                    self._inside[-1] += spent

        return timed

    def time(self, work: Callable[[], object]) -> None:
        """Run one query; its steps become one sample."""
        self._now.clear()
        self.step(REST, work)()
        self.samples.append(dict(self._now))

    def medians(self, warm: int = 0) -> dict[str, float]:
        """Return step -> median milliseconds without the first `warm` queries, in the order of `STEPS`, and "total"."""
        samples = self.samples[warm:]
        labels = [*(label for _, _, label in STEPS), REST]
        rows = {label: statistics.median(sample.get(label, 0.0) for sample in samples) for label in labels}
        total = statistics.median(sum(sample.values()) for sample in samples)
        return {label: value for label, value in rows.items() if value > 0} | {"total": total}


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Yield a stopwatch around every step; remove it at the end."""
    watch, before = Stopwatch(), [(place, name, getattr(place, name)) for place, name, _ in STEPS]
    try:
        for place, name, label in STEPS:
            setattr(place, name, watch.step(label, getattr(place, name)))
        yield watch
    finally:
        for place, name, work in before:
            setattr(place, name, work)
