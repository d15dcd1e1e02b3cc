"""The reuse floor's parts of measurements that are no sums (`dpsql.plan.measurements`): how they are written down and read.

A released number is stored with what it is and which mechanism chose it. A release is given again for the very question; other
questions are not derived from such numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.measurements import RankHistogram, Register
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM, RankHistogramPlan


@dataclass(frozen=True)
class StoredNumber:
    """A released number of a measurement. `measure` names the value, its filter and its cells; `what` says which number of
    that it is; `mechanism` is the law that it was chosen by."""

    name: str
    word: str
    measure: str
    what: str
    mechanism: Any


class MeasurementRecord(Protocol):
    """How one kind of measurement is written down."""

    def written(self, measurement: Any, plan: Any) -> list[dict[str, Any]]:
        """Its released numbers as plain JSON, each with its name."""

    def read(self, facts: Mapping[str, Any]) -> StoredNumber:
        """One of them. Raises KeyError, TypeError or ValueError for what this version did not write."""


class RankHistogramRecord:
    """Quantiles, with the exponential mechanism that chose them."""

    def written(self, measurement: RankHistogram, plan: RankHistogramPlan) -> list[dict[str, Any]]:
        return [
            {
                "name": one.name, "measure": fingerprint(measurement.term), "what": str(one.quantile),
                "mechanism": _law_facts(one.law),
            }
            for one in plan.quantiles
        ]  # fmt: skip

    def read(self, facts: Mapping[str, Any]) -> StoredNumber:
        quantile, law = Fraction(facts["what"]), _law(facts["mechanism"])
        if law.quantile != quantile:
            raise ValueError("a quantile that was chosen as another one")
        return StoredNumber(facts["name"], RANK_HISTOGRAM, facts["measure"], facts["what"], law)


def _law_facts(law: Any) -> dict[str, Any]:
    moved = law.sensitivity
    return {
        "mechanism": law.mechanism, "sensitivity": [moved.l0, moved.l1, moved.l2_squared, moved.linf],
        "quantile": str(law.quantile), "epsilon_0": str(law.epsilon_0), "rank": law.rank,
    }  # fmt: skip


def _law(facts: Mapping[str, Any]) -> Choice:
    if facts["mechanism"] != Choice.mechanism:
        raise ValueError(f"no choice is called {facts['mechanism']}")
    moved, quantile, epsilon_0 = facts["sensitivity"], facts["quantile"], facts["epsilon_0"]
    return Choice(Sensitivity(*moved), Fraction(quantile), Fraction(epsilon_0), facts["rank"])


PARTS: Register[MeasurementRecord] = Register("reuse", {RANK_HISTOGRAM: RankHistogramRecord()})


def written(measurements: tuple[Any, ...], plans: tuple[Any, ...]) -> dict[str, Any]:
    """What a description says of measurements: nothing where there are none, so that other releases are as they were."""
    if not measurements:
        return {}
    both = zip(measurements, plans, strict=True)
    return {
        "measurements": [{"word": one.word, "numbers": PARTS.of(one.word).written(one, plan)} for one, plan in both]
    }


def read(facts: Mapping[str, Any]) -> tuple[StoredNumber, ...]:
    """The numbers that `written` described. Raises KeyError, TypeError or ValueError for any other kind."""
    known = set(PARTS)
    entries = facts.get("measurements", [])
    if any(entry["word"] not in known for entry in entries):
        raise ValueError("a measurement of a kind that is not known")
    return tuple(PARTS.of(entry["word"]).read(number) for entry in entries for number in entry["numbers"])
