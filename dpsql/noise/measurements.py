"""The noise floor's parts of measurements that are no sums (`dpsql.plan.measurements`): from exact to noisy numbers.

A part is given the unsealed table of its own engine query by `perturb`, which alone opens exact answers, and takes every
random decision from the gate.
"""

from __future__ import annotations

from dpsql.noise.rank_histograms import ReleaseNumbers, released_quantiles
from dpsql.plan.measurements import Register
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM

PARTS: Register[ReleaseNumbers] = Register("noise", {RANK_HISTOGRAM: released_quantiles})
