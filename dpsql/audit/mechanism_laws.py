"""The law of the noise that is really drawn: the installed gate at exact zero, against the distribution of the requested scale.

The test is the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant (Annals of Probability 18, 1990): for n
independent draws the largest distance between the empirical and the true distribution function is above
sqrt(ln(2 / alpha) / (2 n)) with a probability of at most alpha, whatever n and the law are. So false alarms are bounded exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsql.audit.noise_laws import law_of
from dpsql.noise.group_layout import Groups
from dpsql.noise.int128 import Int128
from dpsql.noise.perturb import Gate
from dpsql.privacy.mechanisms.contract import Noise

DRAWS = 200_000
ALPHA = 1e-7


@dataclass(frozen=True)
class LawChecked:
    """One law: its mechanism, its scale in grid units, the largest distance found and the largest that chance explains.
    `repeats`: the share of draws that are equal to the draw half a vector before, beside what the law makes of it."""

    mechanism: str
    scale: float
    distance: float
    allowed: float
    problem: str = ""


def check_law(noise: Noise, draws: int = DRAWS, alpha: float = ALPHA) -> LawChecked:
    """Draw from the real gate at exact zero, and compare with the law that the noise names."""
    groups = Groups(pa.table({"k0": pa.array(range(draws))}), draws, True)
    gate = Gate()
    (drawn,) = gate.draw([noise], groups)
    values = np.array(gate.add("t0", Int128.zeros(draws), noise, groups, drawn).to_ints(), dtype=np.float64)
    allowed = math.sqrt(math.log(2 / alpha) / (2 * draws))
    scale = float(noise.noise_scale)
    law = law_of(noise)
    if law is None:
        changed = bool(np.any(values))
        return LawChecked(noise.mechanism, scale, 0.0, allowed, "a constant is not 0" if changed else "")
    points, counts = np.unique(values, return_counts=True)
    empirical = np.cumsum(counts) / draws
    exact = law.distribution(noise, points)
    before = law.distribution(noise, points - 1)
    # Between two values that were drawn the empirical function stays, and the true one has grown most just before the next.
    lower = np.concatenate(([0.0], empirical[:-1]))
    distance = float(max(np.abs(empirical - exact).max(), np.abs(before - lower).max()))
    problem = f"the noise drawn is not {noise.mechanism} of scale {scale:.6g}" if distance > allowed else ""
    half = draws // 2
    again = float((values[:half] == values[half:]).mean())
    chance = law.repeat(noise) + math.sqrt(math.log(1 / alpha) / (2 * half))
    if again > chance and not problem:
        problem = f"cells share their noise: {again:.3g} of them repeat the cell half a vector before"
    return LawChecked(noise.mechanism, scale, distance, allowed, problem)
