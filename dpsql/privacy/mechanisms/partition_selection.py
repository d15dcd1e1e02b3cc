"""Partition selection: which private keys appear (privacy.md 5).

Both rules look at the number of privacy units of a key, of which one unit moves every key it touches by at most one:
under add_remove because a unit counts once, under change_one because a replaced unit leaves a key (-1), enters one
(+1) or stays (0). The caller passes l0, the number of keys that can move, with the factor of `neighbours` inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, log, log1p

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import Refusal, refuse
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Selection
from dpsql.privacy.mechanisms.rational_bounds import exp_lower
from dpsql.privacy.pure_to_zcdp import pure_of_rho, recomputed_rho_of_pure

ONE = 1 << 62
"""Probabilities are integers over 2**62."""
_FRACTION_BITS = 64
MOST_COUNTS = 1 << 17
"""Longest table of keep probabilities; below the epsilon that needs more, the threshold rule is the one to take."""
_ENOUGH_EPSILON = 40


@dataclass(frozen=True)
class TruncatedGeometric:
    """Keep a key of n units with probability pi(n), the largest that (epsilon_per_key, delta_per_key)-DP allows.

    pi(0) = 0, pi(n + 1) = min(e**epsilon pi(n) + delta, 1 - e**-epsilon (1 - pi(n) - delta), 1)
    (Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", PoPETs 2022, arXiv 2006.03684,
    Theorem 1), rounded down to integers over 2**62 such that the conditions hold for the rounded table. One unit moves
    `l0` keys, each decided on its own: epsilon, delta and the rho of epsilon_per_key (`pure_to_zcdp`) add up l0 times.
    """

    column: str
    l0: int
    epsilon_per_key: Fraction
    delta_per_key: Fraction

    def __post_init__(self) -> None:
        if self.l0 < 1:
            raise ValueError("a unit that touches no key needs no selection")
        _keep_table(self.epsilon_per_key, self.delta_per_key)

    kind = "truncated_geometric"

    @property
    def table(self) -> NDArray[np.int64]:
        """Keep probabilities times 2**62 for 0, 1, 2, ... units; the last one holds for all larger counts."""
        return _keep_table(self.epsilon_per_key, self.delta_per_key)

    @property
    def loss(self) -> PrivacyLoss:
        """l0 independent (epsilon, delta)-DP decisions."""
        return PrivacyLoss.pure(self.epsilon_per_key, self.delta_per_key).scaled(self.l0)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss with the delta that the finished table needs, or delta_per_key where it needs less."""
        needed = max(self.delta_per_key, _needed_by_table(self.epsilon_per_key, self.delta_per_key))
        epsilon, rho = self.l0 * self.epsilon_per_key, self.l0 * recomputed_rho_of_pure(self.epsilon_per_key)
        return PrivacyLoss(epsilon, self.l0 * needed, rho)

    def half_point(self) -> int:
        """The smallest count kept with probability >= 1/2."""
        return int(np.searchsorted(self.table, ONE // 2))


@dataclass(frozen=True)
class Threshold:
    """Keep a key when its noisy count, released anyway, is at least `tau` (noise-grid units of `noise`).

    A key that only one neighbour has goes from 0 to at most linf; it then shows with probability
    P(noise >= tau - linf), the mass at the threshold counted. Keys that both have are protected by the noise of the
    count, whose loss is charged with the count. So only delta is charged here: l0 times that probability.
    """

    column: str
    l0: int
    noise: Noise
    tau: int
    delta: Fraction

    def __post_init__(self) -> None:
        if self.l0 < 1 or self.noise.sensitivity.is_zero:
            raise ValueError("a threshold needs a noisy count that a unit can move")
        if self.tau <= lone_count(self.noise) or self.l0 * self._lone_tail() > self.delta:
            raise ValueError("the threshold lets a lone unit through more often than delta allows")

    kind = "threshold"

    def _lone_tail(self) -> Fraction:
        return self.noise.upper_tail(self.tau - lone_count(self.noise))

    @property
    def loss(self) -> PrivacyLoss:
        """delta alone."""
        return PrivacyLoss(Fraction(0), self.delta, Fraction(0))

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss with the delta that the finished threshold needs, or `delta` where it needs less."""
        return PrivacyLoss(Fraction(0), max(self.delta, self.l0 * self._lone_tail()), Fraction(0))

    def half_point(self) -> int:
        """The smallest count whose noisy value reaches tau with probability >= 1/2."""
        return ceil(self.tau * Fraction(2) ** self.noise.shift)


def optimal(column: str, l0: int, allowed: PrivacyLoss) -> TruncatedGeometric:
    """The optimal rule for l0 keys per unit within `allowed`, whose epsilon or rho (not both) may be None: unlimited.

    Raises Refusal selection_delta or selection_epsilon when a share per key is too small for a table, ValueError when
    `allowed` limits neither epsilon nor rho.
    """
    if l0 < 1 or (allowed.epsilon is None and allowed.rho is None):
        raise ValueError("partition selection needs keys and a limit of epsilon or rho")
    shares = []
    if allowed.epsilon is not None:
        shares.append(allowed.epsilon / l0)
    if allowed.rho is not None:
        shares.append(pure_of_rho(allowed.rho / l0))
    return TruncatedGeometric(column, l0, min(shares), allowed.delta / l0)


def threshold(column: str, l0: int, noise: Noise, delta: Fraction) -> Threshold:
    """The lowest threshold on the count `column`, released with `noise`, that spends at most `delta` on l0 keys.

    Raises Refusal selection_delta for a delta that is 0 or out of range, ValueError for a count that cannot move.
    """
    share = delta / l0
    if not Fraction(1, 10**200) <= share < 1:
        raise refuse("selection_delta", delta=f"{float(delta):.3g}", keys=l0)
    return Threshold(column, l0, noise, lone_count(noise) + noise.tail_point(share), delta)


def lone_count(noise: Noise) -> int:
    """The most a key counts that one unit alone has, on the noise grid: exact when finer, floored when coarser."""
    count, shift = noise.sensitivity.linf, noise.shift
    return count >> shift if shift > 0 else count << -shift


def choose_selection(
    column: str, l0: int, allowed: PrivacyLoss, count_column: str | None = None, count_noise: Noise | None = None
) -> Selection:
    """The rule that keeps smaller groups within `allowed`: lower `half_point`; on a tie the threshold (cheaper).

    `column` counts units per key; it is the count `count_column` that the query releases with `count_noise` anyway, if
    there is one. The threshold spends allowed.delta only. To compare at the same price, pass the noise the count would
    have if the query's whole epsilon went to its terms, and in `allowed` what would be set aside for selection.
    Raises Refusal selection_delta or selection_epsilon when neither rule fits.
    """
    rules: list[Selection] = []
    if count_column is not None and count_noise is not None and not count_noise.sensitivity.is_zero:
        rules.append(threshold(count_column, l0, count_noise, allowed.delta))
    try:
        rules.append(optimal(column, l0, allowed))
    except Refusal:
        if not rules:
            raise
    return min(rules, key=lambda rule: rule.half_point())


@lru_cache(maxsize=128)
def _keep_table(epsilon: Fraction, delta: Fraction) -> NDArray[np.int64]:
    """The recursion of Theorem 1 in integers, every product rounded toward keeping less."""
    share = floor(delta * ONE)
    if share < 1 or delta >= 1:
        raise refuse("selection_delta", delta=f"{float(delta):.3g}", keys=1)
    growth = _growth(epsilon)
    if _expected_counts(float(growth / 2**_FRACTION_BITS), float(delta)) > MOST_COUNTS:
        raise refuse("selection_epsilon", epsilon=f"{float(epsilon):.3g}")
    table = [0]
    while table[-1] < ONE:
        last = table[-1]
        grown = (growth * last >> _FRACTION_BITS) + share
        dropped = max(0, ONE - last - share)
        shrunk = ONE - -((-dropped << _FRACTION_BITS) // growth)
        table.append(min(grown, shrunk, ONE))
    verify_table(table, epsilon, delta)
    array = np.array(table, dtype=np.int64)
    array.setflags(write=False)
    return array


@lru_cache(maxsize=128)
def _needed_by_table(epsilon: Fraction, delta: Fraction) -> Fraction:
    return needed_delta(_keep_table(epsilon, delta).tolist(), exp_lower(min(epsilon, Fraction(_ENOUGH_EPSILON))))


def _expected_counts(growth: float, delta: float) -> float:
    """Length of the table: pi(n) = delta (growth**n - 1) / (growth - 1) up to 1/2, then mirrored (ibid., Theorem 1)."""
    if growth <= 1:
        return 1 / delta
    return 2 * log1p((growth - 1) / (2 * delta)) / log(growth)


def _growth(epsilon: Fraction) -> int:
    """A lower bound of e**epsilon, times 2**64; more than e**40 changes no table."""
    return floor(exp_lower(min(epsilon, Fraction(_ENOUGH_EPSILON))) * (1 << _FRACTION_BITS))


def verify_table(table: Sequence[int], epsilon: Fraction, delta: Fraction) -> None:
    """Raise ValueError unless the keep probabilities `table` / 2**62 are (epsilon, delta)-DP between neighbours."""
    if not table or table[0] != 0 or any(after < before for before, after in pairwise(table)):
        raise ValueError("keep probabilities must rise from 0")
    if needed_delta(table, exp_lower(min(epsilon, Fraction(_ENOUGH_EPSILON)))) > delta:
        raise ValueError("keep probabilities rise faster than epsilon and delta allow")


def needed_delta(table: Sequence[int], ratio: Fraction) -> Fraction:
    """The least delta for which every step of `table` / 2**62 keeps both conditions with e**epsilon >= `ratio`.

    pi(n + 1) <= ratio pi(n) + delta (a kept key) and 1 - pi(n) <= ratio (1 - pi(n + 1)) + delta (a dropped one); the
    mirrored two follow because pi rises. Cleared of denominators: exact integers.
    """
    top, bottom = ratio.numerator, ratio.denominator
    worst = 0
    for before, after in pairwise(table):
        keep_excess = bottom * after - top * before
        drop_excess = bottom * (ONE - before) - top * (ONE - after)
        worst = max(worst, keep_excess, drop_excess)
    return Fraction(worst, bottom * ONE)
