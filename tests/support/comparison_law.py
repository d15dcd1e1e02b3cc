"""The exact distribution of AboveThreshold's answers, from its definition, in floats: a sum over the threshold's noise."""

import math
from collections.abc import Sequence

import numpy as np

from dpsql.privacy.mechanisms.laplace import Laplace

Answers = tuple[int, int | None]
"""The number of the query that is above the threshold, counted from 1, and its gap; (0, None) if there is none."""
_TELLING = 20
"""Gaps are listed for only so many of the first and of the last queries: those between them behave like their neighbours."""


def answers_law(noise: Laplace, sums: Sequence[int], threshold: int, gaps: int = 120) -> dict[Answers, float]:
    """Return the probabilities of answers to queries with these exact sums: each gap below `gaps` in one of the first or last
    queries, and the answer that no query is above."""
    rate = noise.s / noise.t
    ratio = math.exp(-rate)
    reach = math.ceil(45 / rate)
    z = np.arange(-reach, reach + 1)
    chance = (1 - ratio) / (1 + ratio) * np.exp(-rate * np.abs(z))
    law: dict[Answers, float] = {}
    for number, exact in enumerate(sums, 1):
        edge = threshold + z - exact
        if number <= _TELLING or number > len(sums) - _TELLING:
            moved = np.abs(np.arange(gaps)[:, np.newaxis] + edge)
            masses = (1 - ratio) / (1 + ratio) * np.exp(-rate * moved) @ chance
            law |= {(number, gap): float(mass) for gap, mass in enumerate(masses)}
        chance = chance * np.where(
            edge > 0,
            1 - np.exp(-rate * np.maximum(edge, 0)) / (1 + ratio),
            np.exp(-rate * (1 - np.minimum(edge, 0))) / (1 + ratio),
        )
    law[0, None] = float(chance.sum())
    return law
