"""From exact histograms to the most frequent value of each group, or the key of most end rows, released as a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups
from dpsql.noise.rank_histograms import NumberGate, laid_out
from dpsql.privacy.mechanisms.end_rows import EndRowsPlan
from dpsql.privacy.mechanisms.most_frequent import MostFrequentPlan


def released_modes(
    table: Any, plan: MostFrequentPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return the number of a cell for each group. Raises Fault noise_answer for a table of the wrong shape."""
    histograms = laid_out(table, plan.cells, groups)
    return {plan.name: gate.release_numbers(plan.name, histograms, plan.law, groups)}


def released_end_keys(table: Any, plan: EndRowsPlan, groups: Groups, gate: NumberGate) -> dict[str, NDArray[np.int64]]:
    """Return the number of a key for each group. Raises Fault noise_answer for a table of the wrong shape."""
    histograms = laid_out(table, plan.cells, groups)
    return {plan.name: gate.release_numbers(plan.name, histograms, plan.law, groups)}
