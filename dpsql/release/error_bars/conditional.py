"""Confidence distributions of exact counts whose noisy counts are shown only because they are large.

A private key appears when its noisy count is at least a threshold, so the noise of counts that are shown is biased upward.
With Z the noise, t the count shown, c the threshold and b the exact count, F(b) = P(b + Z <= t given b + Z >= c) falls from
1 to 0 as b rises, and F at the exact count is uniform in (0, 1), given that the key is shown. So the b with F(b) = u for
uniform u are a confidence distribution of the exact count (for truncated normal laws Lee, Sun, Sun and Taylor 2016), exact
for the counts that are shown. Well above the threshold it is t - Z. A key is shown only if the data has it, so b >= 1.
"""

from __future__ import annotations

import math

import numpy as np

from dpsql.release.error_bars.draws import Floats, tabled
from dpsql.release.remainder import ReleasedTerm

_LEAST = 1.0


def values_given_shown(term: ReleasedTerm, released: Floats, shown_from: float, uniform: Floats) -> Floats:
    """Return draws of the exact values at the probabilities `uniform`, shape (rows, draws). `released` and `shown_from` (the
    threshold) are in the unit of the term."""
    step, mass = tabled(term.noise)
    reach = (len(mass) - 1) // 2
    unit = step * term.noise_unit
    below = np.concatenate(([0.0], np.cumsum(mass)))  # below[i] = P(noise < (i - reach) steps)
    above = np.concatenate((np.cumsum(mass[::-1])[::-1], [0.0]))  # above[i] = P(noise >= (i - reach) steps)
    offsets = np.maximum(np.rint((released - shown_from) / unit), 0).astype(np.int64)
    exact = np.empty((len(released), len(uniform)))
    for offset in np.unique(offsets):
        rows = offsets == offset
        if offset > 2 * reach:
            noise = np.searchsorted(below[1:], uniform) - reach
            exact[rows] = released[rows, None] - noise * unit
            continue
        most = max(reach, offset) + 1
        steps = np.arange(-reach, most + 1)  # candidates for the noise t - b
        first = np.clip(steps - offset + reach, 0, len(mass))  # index of the least noise with which the key is shown
        last = np.clip(steps + reach + 1, 0, len(mass))
        # Take the mass between from the tail where it is small, or it would be lost in rounding.
        between = np.where(steps > 0, above[first] - above[last], below[last] - below[first])
        admitted = above[first]
        share = np.where(admitted > 0, between / np.where(admitted > 0, admitted, 1.0), 1.0)
        share = np.maximum.accumulate(np.nan_to_num(share, nan=0.0))
        place = np.searchsorted(share, uniform)
        noise = np.where(place < len(steps), steps[np.minimum(place, len(steps) - 1)], math.inf)
        exact[rows] = released[rows, None] - noise * unit
    return np.maximum(exact, _LEAST)
