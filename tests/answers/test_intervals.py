"""Aggregates of differences of timestamps: the numbers of their seconds, as the engine's intervals."""

import random

import duckdb
import pytest
from support.exact_session import same

from answers import test_functions
from dpsql.release.value_text import interval_text
from dpsql.session.session import Session

MOMENTS = (
    "s",
    "TIMESTAMP '2024-02-01 06:00:00'",
    "d::timestamp",
    "(s + INTERVAL '90 minutes')",
    "(d + INTERVAL '2 hours')",
)
AGGREGATES = ("AVG({})", "SUM({})", "AVG({}) FILTER (WHERE x > 0)", "MIN({})", "MAX({})", "MEDIAN({})", "quantile_disc({}, 0.25)",
              "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {})", "AVG(CASE WHEN b THEN {} END)")  # fmt: skip


world = test_functions.world
_DAY = 86_400_000_000
_CHOSEN = ("MIN", "MAX", "MEDIAN", "quantile", "PERCENTILE")


@pytest.mark.parametrize("seed", range(12))
def test_aggregates_of_intervals(world: tuple[duckdb.DuckDBPyConnection, Session], seed: int) -> None:
    rng, (connection, session) = random.Random(f"intervals {seed}"), world
    later, earlier = rng.sample(MOMENTS, 2)
    aggregate, keys = rng.choice(AGGREGATES), rng.choice(("", "b, "))
    text = f"SELECT {keys}{{}} AS v FROM facts{' GROUP BY b ORDER BY b' if keys else ''}"
    interval, seconds = (
        aggregate.format(f"{later} - {earlier}"),
        aggregate.format(f"EXTRACT(epoch FROM {later} - {earlier})"),
    )

    def asked(shown: str) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
        planned = session.plan(session.planner.parse(text.format(shown), None))
        return planned.keys, list(session.answer(planned).rows())

    (names, rows), (other_names, numbers) = asked(interval), asked(seconds)
    assert names == other_names
    for row, number in zip(rows, numbers, strict=True):
        micros = round(1e6 * float(str(number[-1] or 0)))
        days = int(micros / _DAY)  # toward zero, as the engine's
        wanted = None if number[-1] is None else interval_text(0, days, micros - days * _DAY)
        assert row == (*number[:-1], wanted)
    if not aggregate.startswith((*_CHOSEN, "SUM")):  # DuckDB sums no intervals
        exact = connection.execute(
            text.format(f"EXTRACT(epoch FROM {aggregate.format(f'{later} - {earlier}')})")
        ).fetchall()
        assert all(b[-1] is None or same(a[-1], b[-1]) for a, b in zip(numbers, exact, strict=True)), (numbers, exact)
