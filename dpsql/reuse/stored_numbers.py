"""Stored numbers of measurements that are not sums, and the names of their measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.measurements import EndRows, LocalNumber, MostFrequentValue, RankHistogram, SampleMean, SampleValues
from dpsql.privacy.mechanisms.rank_histogram import Search


@dataclass(frozen=True)
class StoredNumber:
    """A released number of a measurement. `measure` names the value, its filter and its cells; `what` labels the number within
    that measure; `mechanism` is the law by which it was chosen, for a quantile after the search `search`."""

    name: str
    word: str
    measure: str
    what: str
    mechanism: Any
    search: Search | None = None


def measure_of(measurement: RankHistogram | MostFrequentValue | EndRows | LocalNumber | SampleMean) -> str:
    """Return the name of a measurement's measure (the value, its bounds, cells, filter and key), which depends neither on the
    name of the measurement nor on the numbers that are chosen from it."""
    key = measurement.key if isinstance(measurement, EndRows) else None
    more = (measurement.samples, measurement.by_unit) if isinstance(measurement, (SampleValues, SampleMean)) else ()
    return fingerprint((measurement.word, measurement.value, replace(measurement.term, name=""), key, *more))
