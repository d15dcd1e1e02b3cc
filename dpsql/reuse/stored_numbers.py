"""Stored numbers of measurements that are no sums, and the name of what they measure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.measurements import EndRows, LocalNumber, MostFrequentValue, RankHistogram, SampleMean, SampleValues
from dpsql.privacy.mechanisms.rank_histogram import Search


@dataclass(frozen=True)
class StoredNumber:
    """A released number of a measurement. `measure` names the value, its filter and its cells; `what` says which number of
    that it is; `mechanism` is the law that it was chosen by, of a quantile after `search`."""

    name: str
    word: str
    measure: str
    what: str
    mechanism: Any
    search: Search | None = None


def measure_of(measurement: RankHistogram | MostFrequentValue | EndRows | LocalNumber | SampleMean) -> str:
    """Return the name of what a measurement counts in which cells (the value, its bounds, its filter, a key), whatever it is
    called and whatever is chosen from it."""
    key = measurement.key if isinstance(measurement, EndRows) else None
    more = (measurement.samples, measurement.by_unit) if isinstance(measurement, (SampleValues, SampleMean)) else ()
    return fingerprint((measurement.word, measurement.value, replace(measurement.term, name=""), key, *more))
