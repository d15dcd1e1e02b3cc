"""Stored means of samples: their stored form, and the choice of the one that answers a question at its confidence.

The ends of an error bar follow from the released mean and the law of its noise, which is stored with it. So a stored mean can
be given an error bar of any confidence (post-processing), whatever bar it was released with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.measurements import SampleMean
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.local_sensitivity import FollowsFrom, ends_of
from dpsql.privacy.mechanisms.registry import from_json, to_json
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, NoisySampleMean, SampleMeanPlan, bar_steps
from dpsql.reuse.stored_numbers import StoredNumber, measure_of


@dataclass(frozen=True)
class EndOfBar:
    """An end of an error bar that follows from a released number: `away` steps from it, within `low` and `high`."""

    away: int
    low: int
    high: int

    def ends(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ends of the bars of released `numbers`."""
        return np.clip(numbers + self.away, self.low, self.high)


class SampleMeanRecord:
    """The stored form of the noisy mean of the values of samples, and of the ends of its error bar."""

    def written(self, measurement: SampleMean, plan: SampleMeanPlan) -> list[dict[str, Any]]:
        labels, measure = self.labels(measurement), measure_of(measurement)
        return [
            {"name": name, "measure": measure, "what": labels[name], "mechanism": _mean_facts(law)}
            for name, law in plan.laws
        ]

    def read(self, facts: Mapping[str, Any]) -> StoredNumber:
        return StoredNumber(facts["name"], SAMPLE_MEAN, facts["measure"], facts["what"], _mean_law(facts["mechanism"]))

    def labels(self, measurement: SampleMean) -> dict[str, str]:
        """Return the labels under which the numbers are stored; `answering` decides which stored numbers answer a question."""
        kind = f"{SAMPLE_MEAN} {measurement.mechanism}"
        ends = zip(ends_of(measurement.name), ("low", "high"), strict=True)
        return {measurement.name: kind} | {name: f"{kind} {side} {measurement.confidence}" for name, side in ends}

    def plan_of(self, measurement: SampleMean, numbers: Sequence[StoredNumber]) -> SampleMeanPlan:
        """Return the plan of the stored mean, the only element of `numbers`, with the error bar that the question asks for."""
        (number,) = numbers
        width = bar_steps(number.mechanism.noise, measurement.confidence)
        return SampleMeanPlan(
            number.name, measurement.cells, number.mechanism, measurement.samples, measurement.middle, width
        )

    def answering(
        self, measurement: SampleMean, plan: SampleMeanPlan, numbers: Sequence[StoredNumber]
    ) -> tuple[SampleMeanPlan, dict[str, tuple[StoredNumber, EndOfBar | None]]] | None:
        """Return the plan of the stored mean among `numbers` of the same measure, and under each name that the question reads
        the mean or the end of its bar; None if no mean is stored.

        If the question names a mechanism, only a mean with the noise of that mechanism answers it; otherwise any does.
        """
        means = (number for number in numbers if isinstance(number.mechanism, NoisySampleMean))
        any_noise, word = measurement.mechanism == "auto", plan.law.mechanism
        mean = next((number for number in means if any_noise or number.mechanism.mechanism == word), None)
        if mean is None:
            return None
        released = self.plan_of(measurement, [mean])
        laws, (low, high) = dict(released.laws), ends_of(measurement.name)
        end = replace(mean, mechanism=laws[ends_of(mean.name)[0]])
        ends = {
            name: (end, EndOfBar(away, *released.range))
            for name, away in ((low, -released.width), (high, released.width))
        }
        return released, {measurement.name: (mean, None), **ends}


def _mean_facts(law: Any) -> dict[str, Any]:
    moved = law.sensitivity
    facts = {"mechanism": law.mechanism, "sensitivity": [moved.l0, moved.l1, moved.l2_squared, moved.linf]}
    if isinstance(law, FollowsFrom):
        return facts | {"width": law.width}
    return facts | {"steps": law.steps, "noise": to_json(law.noise)}


def _mean_law(facts: Mapping[str, Any]) -> NoisySampleMean | FollowsFrom:
    moved = Sensitivity(*facts["sensitivity"])
    if facts["mechanism"] == FollowsFrom.mechanism:
        return FollowsFrom(moved, facts["width"])
    return NoisySampleMean(moved, facts["steps"], from_json(facts["noise"]))
