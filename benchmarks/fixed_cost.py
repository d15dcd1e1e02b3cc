"""The fixed cost of one query on a small table: compared with plain DuckDB, and by step."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import duckdb

from benchmarks.clock import in_turn, summary
from benchmarks.data import build, write_policy
from benchmarks.stages import stopwatch
from dpsql.session.session import open_session

ROWS = 1_000
WARM = 3
QUESTION = (
    "SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM purchases "
    "WHERE items < {literal} GROUP BY region ORDER BY n DESC"
)
TARGETS = {"distinct": 5.0, "again": 5.0, "stored": 2.0}
"""Target milliseconds above plain DuckDB."""


@dataclass(frozen=True)
class FixedCost:
    """One way of querying. `median`, `cpu`: milliseconds of whole queries, alternating with plain DuckDB (`raw`, `raw_cpu`);
    `over`: median of the differences within each round; `steps`: own milliseconds of each step (median)."""

    way: str
    median: float
    cpu: float
    raw: float
    raw_cpu: float
    over: float
    target: float
    steps: dict[str, float]


def fixed_cost(folder: Path, repeat: int) -> list[FixedCost]:
    """Measure `distinct`: another literal each time; `again`: planned before, charged and computed each time; `stored`: answered
    from the stored release."""
    database = build(folder, ROWS)
    policy = write_policy(folder, database, "row")
    literals = count(time.time_ns())  # never used before, whatever the store of releases contains
    sessions = {way: open_session(policy, create_ledger=True) for way in TARGETS}
    raw = duckdb.connect(str(database), read_only=True)
    try:
        sessions["again"].execute("SET dp.reuse = off")
        same = QUESTION.format(literal=next(literals))
        asks: dict[str, Callable[[], object]] = {
            "raw": lambda: raw.sql(QUESTION.format(literal=next(literals))).to_arrow_table(),
            "distinct": lambda: sessions["distinct"].execute(QUESTION.format(literal=next(literals))).table,
            "again": lambda: sessions["again"].execute(same).table,
            "stored": lambda: sessions["stored"].execute(same).table,
        }
        samples = {way: found[WARM:] for way, found in in_turn(asks, repeat + WARM).items()}
        plain = summary(samples["raw"])
        found = []
        for way, target in TARGETS.items():
            own = summary(samples[way])
            over = statistics.median(a.wall - b.wall for a, b in zip(samples[way], samples["raw"], strict=True))
            steps = _steps(asks[way], repeat)
            found.append(FixedCost(way, own.median, own.cpu, plain.median, plain.cpu, over, target, steps))
        return found
    finally:
        raw.close()
        for session in sessions.values():
            session.close()


def _steps(ask: Callable[[], object], repeat: int) -> dict[str, float]:
    with stopwatch() as watch:
        for _ in range(repeat):
            watch.time(ask)
    return watch.medians()
