"""The law of the noise that is really drawn: the installed gate at exact zero, against the distribution of the requested scale.

The test is the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant (Annals of Probability 18, 1990): for n
independent draws the largest distance between the empirical and the true distribution function is above
sqrt(ln(2 / alpha) / (2 n)) with a probability of at most alpha, whatever n and the law are. So false alarms are bounded exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups
from dpsql.noise.int128 import Int128
from dpsql.noise.perturb import Gate
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace

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
    if not isinstance(noise, (Laplace, Gaussian)):
        changed = bool(np.any(values))
        return LawChecked(noise.mechanism, scale, 0.0, allowed, "a constant is not 0" if changed else "")
    points, counts = np.unique(values, return_counts=True)
    empirical = np.cumsum(counts) / draws
    exact = distribution(noise, points)
    before = distribution(noise, points - 1)
    # Between two values that were drawn the empirical function stays, and the true one has grown most just before the next.
    lower = np.concatenate(([0.0], empirical[:-1]))
    distance = float(max(np.abs(empirical - exact).max(), np.abs(before - lower).max()))
    problem = f"the noise drawn is not {noise.mechanism} of scale {scale:.6g}" if distance > allowed else ""
    half = draws // 2
    again = float((values[:half] == values[half:]).mean())
    chance = _chance_of_a_repeat(noise) + math.sqrt(math.log(1 / alpha) / (2 * half))
    if again > chance and not problem:
        problem = f"cells share their noise: {again:.3g} of them repeat the cell half a vector before"
    return LawChecked(noise.mechanism, scale, distance, allowed, problem)


def distribution(noise: Laplace | Gaussian, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(noise <= point) for integers `points`, from the law's definition, in doubles."""
    if isinstance(noise, Laplace):
        rate = float(Fraction(noise.s, noise.t))
        tail = np.exp(-rate * (np.abs(points + 0.5) + 0.5)) / (1 + math.exp(-rate))
        return np.where(points >= 0, 1 - tail, tail)
    sigma = float(noise.sigma)
    reach = int(12 * sigma) + 12
    if reach > 10_000_000:  # steps are so small that the sum is the integral, to 1e-13
        erf = np.vectorize(math.erf)
        result: NDArray[np.float64] = (1 + erf((points + 0.5) / (sigma * math.sqrt(2)))) / 2
        return result
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(support**2) / (2 * sigma * sigma))
    total = np.cumsum(mass)
    at = np.clip(points.astype(np.int64) + reach, -1, 2 * reach)
    return np.where(at < 0, 0.0, (total / total[-1])[np.maximum(at, 0)])


def _chance_of_a_repeat(noise: Laplace | Gaussian) -> float:
    """P(two independent draws are equal): at most the largest probability of one value."""
    if isinstance(noise, Laplace):
        rate = noise.s / noise.t
        return math.tanh(rate / 2)
    return min(1.0, 1 / (float(noise.sigma) * math.sqrt(2 * math.pi)))
