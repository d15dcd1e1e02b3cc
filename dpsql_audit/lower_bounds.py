"""Lower bounds of epsilon from samples of the installed noise: what a best possible observer could tell of the worst pair.

Two samples of the released numbers are drawn over the exact vectors of the two neighbours that replay found farthest apart. By
Neyman and Pearson the sum of log-likelihood ratios is the strongest statistic there is, for one question and for a whole session.
The threshold of the event is chosen on one half of the trials and confirmed on the other. From k of n trials, P is bounded by
Chernoff's inequality in its relative entropy form: n KL(k/n || p) <= ln(1 / alpha) fails with a probability of at most alpha.
(epsilon, delta)-DP implies P(S | D) <= e^epsilon P(S | D') + delta, so epsilon >= ln((P_low - delta) / P_high).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate
from dpsql.privacy.accounting import rho_to_epsilon
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise
from dpsql_audit.distances import moves, on_grid
from dpsql_audit.noise_laws import law_of
from dpsql_audit.observation import Measured

TRIALS = 4_000
ALPHA = 1e-6
MOST_ENTRIES = 500
"""The most entries that move in one question; of more, those that moved farthest are looked at, which only lowers the bound."""


DELTA = Fraction(1, 100)
"""Delta of lower bounds under rho: the claim is the epsilon to which rho converts there. Samples cannot reach smaller ones."""


@dataclass(frozen=True)
class LowerBound:
    """`epsilon`: no smaller epsilon is true at this delta, but for a probability of `alpha`; `trials` of each side."""

    epsilon: float
    delta: float
    trials: int
    alpha: float


def lower_bound(
    pairs: Sequence[tuple[Measured, Measured]], delta: float, trials: int = TRIALS, alpha: float = ALPHA
) -> LowerBound:
    """Return the bound for all blocks of `pairs` together: those of a question, or of all questions of a session.

    Terms that were released over keys that one side lacks are left out (their delta is checked by replay).
    """
    gate, ratios = Gate(), np.zeros((2, trials))
    for left, right in pairs:
        for name, noise in left.noises.items():
            if law_of(noise) is not None and name in right.terms:
                ratios += _log_ratios(gate, noise, left.terms[name], right.terms[name], trials)
    best = max(_confirmed(ratios[0], ratios[1], delta, alpha), _confirmed(-ratios[1], -ratios[0], delta, alpha))
    return LowerBound(max(0.0, best), delta, trials, alpha)


def bound_of_samples(
    likely: Sequence[float], unlikely: Sequence[float], delta: float, alpha: float = ALPHA
) -> LowerBound:
    """Return the bound from numbers that were released over two neighbours; events are that a number is beyond a threshold.

    Both have as many numbers, drawn independently of each other. Where the law of the noise has a monotone likelihood ratio, as
    Laplace's and Gauss's have, no other event is stronger (Karlin and Rubin 1956)."""
    sides = np.array(likely, dtype=np.float64), np.array(unlikely, dtype=np.float64)
    tries = ((sides[0], sides[1]), (sides[1], sides[0]), (-sides[0], -sides[1]), (-sides[1], -sides[0]))
    best = max(_confirmed(first, second, delta, alpha / 2) for first, second in tries)
    return LowerBound(max(0.0, best), delta, len(likely), alpha)


def claim_of(loss: PrivacyLoss) -> tuple[float, Fraction]:
    """Return the claimed epsilon and the delta at which it holds: the price's own delta, or `DELTA` where rho is converted."""
    if loss.epsilon is not None:
        return float(loss.epsilon), loss.delta
    assert loss.rho is not None
    return float(rho_to_epsilon(loss.rho, DELTA)), DELTA + loss.delta


def _log_ratios(
    gate: Gate, noise: Noise, left: dict[tuple[object, ...], int], right: dict[tuple[object, ...], int], trials: int
) -> NDArray[np.float64]:
    """ln(P(answer | left) / P(answer | right)) of `trials` answers over left (row 0), and of as many over right (row 1)."""
    moved = sorted(map(abs, moves(on_grid(noise, left), on_grid(noise, right)).values()), reverse=True)[:MOST_ENTRIES]
    law = law_of(noise)
    if not moved or law is None:
        return np.zeros((2, trials))
    steps = np.array(moved, dtype=np.float64)
    log_ratios = []
    for side in (0.0, 1.0):
        answers = vectors(gate, noise, trials, len(moved)).astype(np.float64) + side * steps
        if law.vector_log_ratio is not None:
            log_ratios.append(law.vector_log_ratio(noise, answers, steps))
        else:
            log_ratios.append(law.log_ratio(noise, answers, steps).sum(axis=1))
    return np.array(log_ratios)


def vectors(gate: Gate, noise: Noise, count: int, cells: int) -> NDArray[np.int64]:
    """Return `count` independent vectors of so many cells, as the gate draws them for `count` terms: shape (count, cells)."""
    law = law_of(noise)
    if law is None or law.vector_log_ratio is None:  # all values of a draw are independent
        (drawn,) = gate.draw([noise], Groups(pa.table({}), count * cells, True))
        assert drawn is not None
        return np.asarray(drawn[: count * cells]).reshape(count, cells)
    drawn_terms = gate.draw([noise] * count, Groups(pa.table({}), cells, True))
    return np.array([drawn for drawn in drawn_terms if drawn is not None])[:, :cells]


def _confirmed(likely: NDArray[np.float64], unlikely: NDArray[np.float64], delta: float, alpha: float) -> float:
    """Return the bound from the event {ratio >= c}; c is the best of 40 on the first half, and its bound is that of the
    second."""
    half = likely.size // 2
    points = np.unique(np.quantile(likely[:half], np.linspace(0.02, 0.98, 40)))
    chosen = max(points, key=lambda c: _bound(likely[:half], unlikely[:half], float(c), delta, alpha))
    return _bound(likely[half:], unlikely[half:], float(chosen), delta, alpha)


def _bound(likely: NDArray[np.float64], unlikely: NDArray[np.float64], c: float, delta: float, alpha: float) -> float:
    low = probability_low(int((likely >= c).sum()), likely.size, alpha / 2) - delta
    high = probability_high(int((unlikely >= c).sum()), unlikely.size, alpha / 2)
    return math.log(low / high) if low > 0 else 0.0


def probability_high(k: int, n: int, alpha: float) -> float:
    """Return the largest p with n KL(k/n || p) <= ln(1 / alpha): P(K <= k) is at most alpha for every larger p."""
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if n * _entropy(k / n, middle) <= math.log(1 / alpha) else (low, middle)
    return high


def probability_low(k: int, n: int, alpha: float) -> float:
    """Return the smallest p with n KL(k/n || p) <= ln(1 / alpha): P(K >= k) is at most alpha for every smaller one."""
    return 1 - probability_high(n - k, n, alpha)


def _entropy(a: float, p: float) -> float:
    """KL(Bernoulli(a) || Bernoulli(p)) in nats."""
    if p <= 0 or p >= 1:
        return 0.0 if a == p else math.inf
    first = a * math.log(a / p) if a > 0 else 0.0
    second = (1 - a) * math.log((1 - a) / (1 - p)) if a < 1 else 0.0
    return first + second
