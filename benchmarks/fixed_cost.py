"""The fixed cost of one question on a small table, step by step, in the three ways analysts ask."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.data import build, write_policy
from benchmarks.stages import stopwatch
from dpsql.session import open_session

ROWS = 1_000
WARM = 3
QUESTION = (
    "SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM purchases "
    "WHERE items < {literal} GROUP BY region ORDER BY n DESC"
)


@dataclass(frozen=True)
class FixedCost:
    """Own milliseconds of each step (median) in one way of asking; `raw` is the same question on plain DuckDB."""

    way: str
    raw: float
    steps: dict[str, float]


def fixed_cost(folder: Path, repeat: int) -> list[FixedCost]:
    """`distinct`: another literal each time; `again`: planned before, charged and computed each time; `stored`:
    answered from the stored release."""
    database = build(folder, ROWS)
    policy = write_policy(folder, database, "row")
    start = time.time_ns()  # no question was asked with these literals before, whatever the store of releases holds
    literals = {"distinct": range(start, start + repeat + WARM), "again": [start] * (repeat + WARM)}
    literals["stored"] = literals["again"]
    raw = _raw(database, repeat)
    found = []
    for way, values in literals.items():
        with open_session(policy, create_ledger=True) as session, stopwatch() as watch:
            session.execute(f"SET dp.reuse = {'off' if way == 'again' else 'on'}")
            for value in values:
                watch.time(partial(session.execute, QUESTION.format(literal=value)))
            found.append(FixedCost(way, raw, watch.medians(WARM)))
    return found


def _raw(database: Path, repeat: int) -> float:
    samples = []
    with duckdb.connect(str(database), read_only=True) as connection:
        for at in range(repeat + WARM):
            start = time.perf_counter()
            connection.sql(QUESTION.format(literal=at)).to_arrow_table()
            samples.append((time.perf_counter() - start) * 1000)
    return statistics.median(samples[WARM:])
