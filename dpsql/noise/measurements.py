"""Functions that release measurements other than sums (`dpsql.plan.measurements`): from exact to noisy numbers.

A function gets the unsealed table of its own engine query from `perturb`, which alone opens exact answers, and takes every
random decision from the gate.
"""

from __future__ import annotations

from dpsql.noise.local_sensitivity import released_local
from dpsql.noise.most_frequent import released_end_keys, released_modes
from dpsql.noise.rank_histograms import ReleaseNumbers, released_quantiles
from dpsql.noise.sample_values import released_sample_mean, released_sample_values
from dpsql.plan.measurements import Register
from dpsql.privacy.mechanisms.end_rows import END_ROWS
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY
from dpsql.privacy.mechanisms.most_frequent import MOST_FREQUENT
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES

PARTS: Register[ReleaseNumbers] = Register(
    "noise",
    {
        RANK_HISTOGRAM: released_quantiles,
        MOST_FREQUENT: released_modes,
        END_ROWS: released_end_keys,
        LOCAL_SENSITIVITY: released_local,
        SAMPLE_VALUES: released_sample_values,
        SAMPLE_MEAN: released_sample_mean,
    },
)
