"""Medians and means with noise in proportion to their local sensitivity: from exact histograms to released numbers.

Proofs and symbols are in `privacy.mechanisms.local_sensitivity`. Everything is computed in integers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups
from dpsql.noise.rank_histograms import Histograms, NumberGate, laid_out
from dpsql.noise.samplers import Integers, Randomness, Truths, Words, bernoulli, guard, tails, words
from dpsql.privacy.mechanisms.local_sensitivity import (
    REFUSED,
    LocalSensitivityPlan,
    ProposeTestRelease,
    SmoothSensitivity,
    ends_of,
)

# An exact sampler of continuous Laplace noise rounded to integers, with a separate rational scale for every value.
# Y = s Z, P(|Z| > z) = e**-z, s = denominator / numerator. The nearest integer of |Y| is k or more where |Z| >= (k - 1/2) / s, so
# with probability exp(-(2 k - 1) numerator / (2 denominator)). Let X be an integer with P(X >= x) = exp(-x / (2 denominator)):
# then floor((X + numerator) / (2 numerator)) >= k where X >= (2 k - 1) numerator, which has the same probability.
# X = u + 2 denominator V, where u is below 2 denominator and accepted with probability exp(-u / (2 denominator)), and
# P(V >= v) = e**-v (Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Algorithm 2). Nothing else is rounded; there are no floats.

MOST_DENOMINATOR = 1 << 48
"""Upper bound of 2 denominator, so that X stays below 2**57 and coins have room for `_MOST_STEPS` steps."""
_MOST_STEPS = 1 << 12
_MOST_ROUNDS = 1 << 10
_TOP = np.uint64((1 << 64) - 1)


def rounded_laplace(numerator: int, denominators: Integers, randomness: Randomness) -> Integers:
    """Return for each of `denominators` >= 1 one integer: denominator / numerator times continuous Laplace noise of scale 1,
    rounded to the nearest integer; `numerator` >= 1. Raises Fault noise_guard."""
    guard(1 <= numerator <= MOST_DENOMINATOR)
    guard(bool((denominators >= 1).all() and (denominators <= MOST_DENOMINATOR // 2).all()))
    bounds = 2 * denominators.astype(np.uint64)
    rest = _kept_rests(bounds, randomness).astype(np.int64)
    whole = tails(Fraction(1), Fraction(0)).draw(words(bounds.size, randomness, 16), randomness).astype(np.int64)
    magnitude = (rest + whole * bounds.astype(np.int64) + numerator) // (2 * numerator)
    negative = (words(bounds.size, randomness, 16) & 1).astype(bool)
    return np.where(negative, -magnitude, magnitude)


def _kept_rests(bounds: Words, randomness: Randomness) -> Words:
    """Return for each bound an integer u in [0, bound) with P(u) proportional to exp(-u / bound)."""
    rests = np.zeros(bounds.size, dtype=np.uint64)
    waiting = np.arange(bounds.size)
    for _ in range(_MOST_ROUNDS):
        if not waiting.size:
            return rests
        below = bounds[waiting]
        drawn = _below(below, randomness)
        accepted = _survives(drawn, below, randomness)
        rests[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
    guard(False)
    return rests


def _below(bounds: Words, randomness: Randomness) -> Words:
    """Return a uniform integer in [0, bound) for each bound; words from the last whole multiple on are drawn again."""
    shares = _TOP // bounds
    drawn = words(bounds.size, randomness).copy()
    outside = (drawn >= shares * bounds).nonzero()[0]
    while outside.size:
        drawn[outside] = words(outside.size, randomness)
        outside = outside[drawn[outside] >= (shares * bounds)[outside]]
    return np.asarray(drawn // shares)


def _survives(numerators: Words, bounds: Words, randomness: Randomness) -> Truths:
    """Return independent booleans that are True with probability exp(-numerator / bound): with A_k Bernoulli(numerator / (k
    bound)), the first k with A_k = 0 is odd with that probability (ibid., Algorithm 1)."""
    odd = np.ones(bounds.size, dtype=bool)
    index, step = np.arange(bounds.size), 1
    while index.size:
        guard(step < _MOST_STEPS)
        on = bernoulli(numerators[index], bounds[index] * np.uint64(step), randomness)
        index = index[on]
        step += 1
        odd[index] = step % 2 == 1
    return odd


class Ranks:
    """The rows of every group by rank: x_j, which is 0 for j <= 0 and the last cell for j > n."""

    def __init__(self, histograms: Histograms) -> None:
        histograms = histograms.taken_apart()
        self._start, count = histograms.start, histograms.count
        self.last = histograms.cells - 1
        self._cell = np.append(histograms.cell, self.last)
        # Cumulated over all groups: rows, and cells times rows. No data has 2**46 rows of 2**17 cells.
        self._through = np.concatenate([[0], np.cumsum(count)])
        totals = np.concatenate([[0], np.cumsum(histograms.cell * count)])
        self._before = self._through[self._start[:-1]]
        self.rows: Integers = self._through[self._start[1:]] - self._before
        self.total: Integers = totals[self._start[1:]] - totals[self._start[:-1]]

    @property
    def groups(self) -> int:
        return int(self.rows.size)

    def cells_at(self, steps: Integers, group: Integers | int = 0) -> Integers:
        """Return F_D(t) for each t of `steps`, in the group `group`."""
        rows = self.rows[group]
        rank = (rows + steps + 1) // 2
        index = np.searchsorted(self._through[1:], self._before[group] + np.minimum(np.maximum(rank, 1), rows))
        return np.asarray(np.where(rank <= 0, 0, np.where(rank > rows, self.last, self._cell[index])))

    def spread(self, distance: Integers, rows: int, group: Integers | int = 0) -> Integers:
        """Return W_D(k) for each k of `distance`, if a unit moves at most `rows` rows."""
        reach = (distance + 1) * self.moved(rows)
        return np.asarray(self.cells_at(reach, group) - self.cells_at(-reach, group))

    def moved(self, rows: int) -> int:
        """Return `rows`, or a smaller number that already covers all rows of every group, so that no product wraps."""
        return min(rows, int(self.rows.max(initial=0)) + 1)

    def widening(self, rows: int) -> tuple[Integers, Integers]:
        """Return arrays of groups and k that contain, for each group, k = 0 and all k where W_D(k) is above W_D(k - 1).

        If t rows are in the cells before a cell, F_D((k + 1) r) is in that cell or behind it from (k + 1) r >= 2 t + 1 - n on. If
        t rows are in a cell or before it, F_D(-(k + 1) r) is in that cell or before it from (k + 1) r >= n - 2 t on.
        """
        every = np.arange(self.groups)
        of_cell = np.repeat(every, np.diff(self._start))
        group = np.concatenate([every, of_cell])
        through = np.concatenate([np.zeros_like(every), self._through[1:] - self._before[of_cell]])
        n = self.rows[group]
        reach = np.concatenate([2 * through + 1 - n, n - 2 * through])
        return np.tile(group, 2), np.maximum(-(-reach // self.moved(rows)) - 1, 0)


def released_local(
    table: Any, plan: LocalSensitivityPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return the number of each group, `REFUSED` if its test was not passed, and, with `plan.width`, both ends of its error bar.
    Raises Fault noise_answer for a table of the wrong shape."""
    histograms = laid_out(table, plan.cells, groups)
    number = gate.release_numbers(plan.name, histograms, plan.law, groups)
    if plan.width is None:
        return {plan.name: number}
    assert isinstance(plan.law, ProposeTestRelease)
    last = (plan.cells - 1) << plan.law.finer
    # SQL's median lies between the two middle values, which are at most `bound` apart; this is the lower one. A mean was rounded
    # down.
    above = plan.width + (1 if plan.law.mean else plan.law.bound)
    low, high = np.maximum(number - plan.width, 0), np.minimum(number + above, last)
    ends = zip(ends_of(plan.name), (low, high), strict=True)
    return {plan.name: number} | {name: np.where(number == REFUSED, REFUSED, end) for name, end in ends}


def smooth_medians(histograms: Histograms, law: SmoothSensitivity, draws: int, randomness: Randomness) -> Integers:
    """Return the noisy median of every group, clamped to the grid. `draws`: the least number of values to draw."""
    ranks = Ranks(histograms)
    # A grid of one cell has no spread; noise drawn for it is clamped to that cell.
    scales = np.maximum(largest_spread(ranks, law), 1)
    padded = np.concatenate([scales, np.full(max(0, draws - scales.size), ranks.last + 1)])
    noise = rounded_laplace(law.alpha, padded, randomness)[: scales.size]
    return np.asarray(np.clip(medians(ranks) + noise, 0, ranks.last))


def medians(ranks: Ranks) -> Integers:
    """Return F_D(0) of every group."""
    return ranks.cells_at(np.zeros(ranks.groups, dtype=np.int64), np.arange(ranks.groups))


def largest_spread(ranks: Ranks, law: SmoothSensitivity) -> Integers:
    """Return the largest g_k W_D(k) over all k for every group. Because g falls, it is at a k where W_D grows. From the last
    weight on, the largest W_D is the whole grid."""
    weights = law.weights
    group, k = ranks.widening(law.sensitivity.linf)
    weighted = weights[np.minimum(k, weights.size - 1)] * ranks.spread(k, law.sensitivity.linf, group)
    largest = np.zeros(ranks.groups, dtype=np.int64)
    np.maximum.at(largest, group, weighted)
    return largest


def tested_numbers(histograms: Histograms, law: ProposeTestRelease, test: Integers, noise: Integers) -> Integers:
    """Return the noisy number of every group, clamped to the grid, or `REFUSED`. `test` and `noise` were drawn from the law's own
    `test` and `noise`, at least one value per group."""
    ranks = Ranks(histograms)
    exact = means(ranks, law.finer) if law.mean else medians(ranks)
    passed = distance(ranks, law) + test[: ranks.groups] > law.threshold
    noisy = np.clip(exact + noise[: ranks.groups], 0, ranks.last << law.finer)
    return np.where(passed, noisy, REFUSED)


def distance(ranks: Ranks, law: ProposeTestRelease) -> Integers:
    """Return d(D) of every group: the smallest k for which W_D(k) is above the bound."""
    rows = law.sensitivity.linf
    if law.mean:
        least = -(-(ranks.last << law.finer) * rows // law.bound)
        most = int(ranks.rows.max(initial=0))
        return np.maximum(0, (ranks.rows - min(least, most + 1)) // min(rows, most + 1))
    group = np.arange(ranks.groups)
    low, high = np.zeros_like(ranks.rows), ranks.rows // ranks.moved(rows) + 1
    for _ in range(int(high.max(initial=0)).bit_length()):
        middle = (low + high) // 2
        above = ranks.spread(middle, rows, group) > law.bound
        low, high = np.where(above, low, np.minimum(middle + 1, high)), np.where(above, middle, high)
    return high


def means(ranks: Ranks, finer: int) -> Integers:
    """Return floor(2^F sum x_j / n) of every group, or half of the grid for groups without rows."""
    whole, rest = np.divmod(ranks.total, np.maximum(ranks.rows, 1))
    exact = (whole << finer) + (rest << finer) // np.maximum(ranks.rows, 1)
    return np.where(ranks.rows > 0, exact, (ranks.last << finer) // 2)
