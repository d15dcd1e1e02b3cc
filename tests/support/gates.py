"""Noise gates whose noise a test chooses: none at all, or the same number everywhere."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, Selection
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.local_sensitivity import ProposeTestRelease, SmoothSensitivity
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent
from dpsql.privacy.mechanisms.partition_selection import Threshold, WeightedThreshold, on_noise_grid
from dpsql_audit.local_laws import in_order, number, ranked

Cells = NDArray[np.int64]


def exact_quantile(law: Choice, cells: int, cell: Cells, count: Cells) -> int:
    """Return the first cell at which the cumulative count reaches the target rank; the first cell for a group without rows."""
    if not cell.size:
        return 0
    law = replace(law, rank=min(law.rank, 1))  # a huge epsilon leaves no rows out of MIN and MAX
    through = np.cumsum(count)
    wanted = law.targets(through[-1:])[0]
    return int(cell[min(np.searchsorted(through * law.denominator, wanted), cell.size - 1)])


def exact_mode(law: MostFrequent, cells: int, cell: Cells, count: Cells) -> int:
    """Return the first of the cells with the most rows; the first cell for a group without rows."""
    return int(cell[np.argmax(count)]) if cell.size else 0


def exact_end_key(law: EndKey, cells: int, cell: Cells, count: Cells) -> int:
    """Return the key of the row at the end; the first key for a group without rows."""
    return int(cell[-1 if law.last else 0]) % law.keys if cell.size else 0


def exact_median(law: SmoothSensitivity, cells: int, cell: Cells, count: Cells) -> int:
    return ranked(in_order(dict(zip(cell.tolist(), count.tolist(), strict=True))), 0, cells - 1)


def exact_tested_number(law: ProposeTestRelease, cells: int, cell: Cells, count: Cells) -> int:
    return number(law, in_order(dict(zip(cell.tolist(), count.tolist(), strict=True))), cells - 1)


EXACT_NUMBERS: dict[type[Any], Callable[[Any, int, Cells, Cells], int]] = {
    Choice: exact_quantile,
    MostFrequent: exact_mode,
    EndKey: exact_end_key,
    SmoothSensitivity: exact_median,
    ProposeTestRelease: exact_tested_number,
}
"""Functions that return the noiseless number of a group, given its law, the number of cells, and the non-empty cells with their
counts."""


class NoiselessGate(Gate):
    """The gate at the limit of a huge epsilon: noise is zero, and private keys that at least `least` privacy units share appear.

    With a fixed small delta, both selection rules show the key of one unit with probability delta, and that of two units with a
    probability that tends to 1, which is `least` = 2; the weight of a unit is then that of a unit with the most keys. With 1,
    every key in the data appears; with None, the selection rule itself decides.
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

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """Return the limit of each group's law as epsilon grows."""
        histograms = histograms.taken_apart()
        numbers = np.zeros(groups.count, dtype=np.int64)
        for group, (start, end) in enumerate(zip(histograms.start, histograms.start[1:], strict=False)):
            cell, count = histograms.cell[start:end], histograms.count[start:end]
            numbers[group] = EXACT_NUMBERS[type(law)](law, histograms.cells, cell, count)
        return numbers

    def _draw(self, noise: Noise, count: int) -> NDArray[np.int64] | None:
        return None if isinstance(noise, Constant) else np.zeros(count, np.int64)


class ShiftedGate(Gate):
    """A gate that adds `more` steps of 2**20 to every number, so that a test can choose the released rows."""

    def __init__(self, more: int = 0) -> None:
        super().__init__()
        self.more = more

    def add(self, name: str, exact: Int128, noise: Any, groups: Any, drawn: object) -> Int128:
        added = [value + self.more * 2**20 for value in exact.to_ints()]
        return Int128.from_ints(value << max(0, -noise.shift) >> max(0, noise.shift) for value in added)
