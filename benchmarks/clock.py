"""Wall and processor time of alternating work, so that other load on the machine affects all sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One run: wall milliseconds, and milliseconds of processor time of all threads of this process."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Summary:
    """Several runs: median and least wall milliseconds, median processor milliseconds."""

    median: float
    least: float
    cpu: float
    runs: int


def timed(work: Callable[[], Any]) -> Sample:
    """Run `work` once and return its times."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Sample((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)


def in_turn(
    ways: Mapping[str, Callable[[], Any]], repeat: int, few: Mapping[str, int] | None = None
) -> dict[str, list[Sample]]:
    """Run `repeat` rounds with each way once per round, in this order; a way in `few` takes part in only that many rounds."""
    found: dict[str, list[Sample]] = {name: [] for name in ways}
    for at in range(repeat):
        for name, work in ways.items():
            if at < (few or {}).get(name, repeat):
                found[name].append(timed(work))
    return found


def summary(samples: Sequence[Sample]) -> Summary:
    """Return medians and the least wall time."""
    return Summary(
        statistics.median(one.wall for one in samples),
        min(one.wall for one in samples),
        statistics.median(one.cpu for one in samples),
        len(samples),
    )


def ratio(samples: Sequence[Sample], base: Sequence[Sample]) -> float:
    """Return the median of the ratios of wall times within each round; `samples` may have fewer rounds."""
    return statistics.median(one.wall / other.wall for one, other in zip(samples, base, strict=False))
