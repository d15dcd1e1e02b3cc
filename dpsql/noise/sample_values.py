"""From the values of samples to the cells that are released as quantiles of them (`plan.measurements.SampleValues`).

The engine returns, for each group and cell, how many samples have their value there. Every group has as many values as there are
samples, whatever the data: samples that the engine has no value of are put into the cell in the middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups
from dpsql.noise.rank_histograms import Chooser, Histograms, chosen_quantiles, laid_out, with_rows
from dpsql.privacy.mechanisms.sample_values import SampleValuesPlan


def released_sample_values(
    table: Any, plan: SampleValuesPlan, groups: Groups, gate: Chooser
) -> dict[str, NDArray[np.int64]]:
    """The number of a cell for each group and quantile. Raises Fault noise_answer for a table of the wrong shape."""
    return chosen_quantiles(completed(laid_out(table, plan.cells, groups), plan), plan, groups, gate)


def completed(histograms: Histograms, plan: SampleValuesPlan) -> Histograms:
    """Every group with `plan.samples` values. Raises Fault noise_answer for a group that has more."""
    through = np.concatenate([[0], np.cumsum(histograms.count)])
    missing = plan.samples - (through[histograms.start[1:]] - through[histograms.start[:-1]])
    if (missing < 0).any():
        raise refuse("noise_answer", charged=True)
    return with_rows(histograms, plan.middle, missing)
