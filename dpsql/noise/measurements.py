"""Functions that release measurements other than sums (`dpsql.plan.measurements`): from exact to noisy numbers.

A function gets the unsealed table of its own engine query from `perturb`, which alone opens exact answers, and takes every
random decision from the gate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups
from dpsql.noise.local_sensitivity import released_local
from dpsql.noise.rank_histograms import (
    Histograms,
    NumberGate,
    ReleaseNumbers,
    chosen_quantiles,
    laid_out,
    released_quantiles,
    with_rows,
)
from dpsql.plan.measurements import Register
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY, ends_of
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT, EndRowsPlan, MostFrequentPlan
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES, SampleMeanPlan, SampleValuesPlan

# --- From the values of samples to the cells that are released as their quantiles, or to their noisy sums ---
# (`plan.measurements.SampleValues` and `SampleMean`).
#
# The engine returns for each group and cell how many samples have their value there. Every group has as many values as there are
# samples, whatever the data: samples for which the engine has no value are put into the cell in the middle.


def released_sample_values(
    table: Any, plan: SampleValuesPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return by quantile the number of a cell for each group. Raises Fault noise_answer for a table of the wrong shape."""
    return chosen_quantiles(completed(laid_out(table, plan.cells, groups), plan), plan, groups, gate)


def completed(histograms: Histograms, plan: SampleValuesPlan) -> Histograms:
    """Return the histograms with `plan.samples` values in every group. Raises Fault noise_answer for a group that has more."""
    missing = _missing(histograms, plan.samples)
    return with_rows(histograms, plan.middle, missing)


def released_sample_mean(
    table: Any, plan: SampleMeanPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return the noisy sum of each group, clamped to its range, and both ends of its error bar. Raises Fault noise_answer for a
    table of the wrong shape."""
    sums = sample_sums(laid_out(table, plan.cells, groups), plan)
    noisy = gate.release_sums(plan.name, sums, plan.law.noise, groups)
    low, high = plan.range
    number = np.floor(np.clip(noisy, low, high)).astype(np.int64)
    ends = zip(ends_of(plan.name), (number - plan.width, number + plan.width), strict=True)
    return {plan.name: number} | {name: np.clip(end, low, high) for name, end in ends}


def sample_sums(histograms: Histograms, plan: SampleMeanPlan) -> NDArray[np.int64]:
    """Return the sum of (cell - middle) over the samples of every group. Raises Fault noise_answer for a group with more than
    `plan.samples` samples."""
    _missing(histograms, plan.samples)
    return _in_groups(histograms, (histograms.cell - plan.middle) * histograms.count)


def _missing(histograms: Histograms, samples: int) -> NDArray[np.int64]:
    """Return how many samples of each group have no value. Raises Fault noise_answer if a group has more than `samples`."""
    missing = samples - _in_groups(histograms, histograms.count)
    if (missing < 0).any():
        raise refuse("noise_answer", charged=True)
    return missing


def _in_groups(histograms: Histograms, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum over each group of `numbers`, one for each nonempty cell."""
    through = np.concatenate([[0], np.cumsum(numbers)])
    return np.asarray(through[histograms.start[1:]] - through[histograms.start[:-1]])


# From exact histograms to the most frequent value of each group, or the key of most end rows, released as a number.


def released_choice(
    table: Any, plan: MostFrequentPlan | EndRowsPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return the number of a cell, or of a key, for each group. Raises Fault noise_answer for a table of the wrong shape."""
    histograms = laid_out(table, plan.cells, groups)
    return {plan.name: gate.release_numbers(plan.name, histograms, plan.law, groups)}


PARTS: Register[ReleaseNumbers] = Register(
    "noise",
    {
        RANK_HISTOGRAM: released_quantiles,
        MOST_FREQUENT: released_choice,
        END_ROWS: released_choice,
        LOCAL_SENSITIVITY: released_local,
        SAMPLE_VALUES: released_sample_values,
        SAMPLE_MEAN: released_sample_mean,
    },
)
