"""Noise gates whose noise a test chooses: none at all, or the same number everywhere."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.audit.local_laws import in_order, number, ranked
from dpsql.noise.group_layout import Groups
from dpsql.noise.int128 import Int128
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, Selection
from dpsql.privacy.mechanisms.end_rows import EndKey
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.local_sensitivity import ProposeTestRelease, SmoothSensitivity
from dpsql.privacy.mechanisms.most_frequent import MostFrequent
from dpsql.privacy.mechanisms.partition_selection import Threshold, WeightedThreshold, on_noise_grid


class NoiselessGate(Gate):
    """The gate at the limit of a huge epsilon: noise is zero, and private keys that `least` privacy units share appear.

    With delta fixed and small, both rules of selection show one unit's key with probability delta, and two units' with a
    probability that tends to 1: that is `least` = 2; weights of units are then those of a unit in most keys. With 1 every key of the data appears, with None those that the rule admits.
    """

    def __init__(self, least: int | None = None) -> None:
        super().__init__()
        self.least = least

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        if self.least is None:
            return super().select(name, counts, selection, groups)
        if not isinstance(selection, Threshold):
            return counts.at_least(self.least)
        unit = selection.weights[-1][1] if isinstance(selection, WeightedThreshold) else 1
        return counts.at_least(on_noise_grid(self.least * unit, selection.noise))

    def choose(
        self, name: str, histograms: Histograms, quantile: Fraction, law: Law, groups: Groups
    ) -> NDArray[np.int64]:
        """The first cell up to which as many rows are as the target asks for; the first of all in a group without rows."""
        assert isinstance(law, Choice)
        law = replace(
            law, rank=min(law.rank, 1)
        )  # a huge epsilon leaves nothing out of the smallest and the largest value
        histograms = histograms.taken_apart()
        found = np.zeros(groups.count, dtype=np.int64)
        for group, (start, end) in enumerate(zip(histograms.start, histograms.start[1:], strict=False)):
            through = np.cumsum(histograms.count[start:end])
            if through.size:
                wanted = law.targets(through[-1:])[0]
                at = min(np.searchsorted(through * law.denominator, wanted), through.size - 1)
                found[group] = histograms.cell[start + at]
        return found

    def choose_most(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """The first of the cells with the most rows; the first of all in a group without rows."""
        assert isinstance(law, MostFrequent)
        chosen = np.zeros(groups.count, dtype=np.int64)
        for group, (start, end) in enumerate(zip(histograms.start, histograms.start[1:], strict=False)):
            if end > start:
                chosen[group] = histograms.cell[start + np.argmax(histograms.count[start:end])]
        return chosen

    def choose_end_key(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """The key of the row at the end; the first key in a group without rows."""
        assert isinstance(law, EndKey)
        chosen = np.zeros(groups.count, dtype=np.int64)
        for group, (start, end) in enumerate(zip(histograms.start, histograms.start[1:], strict=False)):
            if end > start:
                chosen[group] = histograms.cell[end - 1 if law.last else start] % law.keys
        return chosen

    def release_local(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """The exact median or mean."""
        assert isinstance(law, (SmoothSensitivity, ProposeTestRelease))
        last = histograms.cells - 1
        exact = np.zeros(groups.count, dtype=np.int64)
        for group, (start, end) in enumerate(zip(histograms.start, histograms.start[1:], strict=False)):
            rows = dict(zip(histograms.cell[start:end].tolist(), histograms.count[start:end].tolist(), strict=True))
            cells = in_order(rows)
            is_smooth = isinstance(law, SmoothSensitivity)
            exact[group] = ranked(cells, 0, last) if is_smooth else number(law, cells, last)
        return exact

    def _draw(self, noise: Noise, count: int) -> NDArray[np.int64] | None:
        return None if isinstance(noise, Constant) else np.zeros(count, np.int64)


class ShiftedGate(Gate):
    """Adds `more` steps of 2**20 to every number: released rows that a test can choose."""

    def __init__(self, more: int = 0) -> None:
        super().__init__()
        self.more = more

    def add(self, name: str, exact: Int128, noise: Any, groups: Any, drawn: object) -> Int128:
        added = [value + self.more * 2**20 for value in exact.to_ints()]
        return Int128.from_ints(value << max(0, -noise.shift) >> max(0, noise.shift) for value in added)
