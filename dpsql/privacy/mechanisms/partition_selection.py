"""Partition selection: which private keys appear (privacy.md 5).

The optimal rule reads the number of privacy units of a key. One unit moves this number by at most one for every key that it
touches: under add_remove because a unit counts once per key, under change_one because a replaced unit leaves a key (-1),
enters one (+1) or stays (0). The caller passes l0, the number of keys that can move, with the factor of `neighbours`
included. Thresholds read a noisy count: of units, of rows, or of units each of which divides one weight among its keys.

Delta of a threshold. Let A be the keys that only the neighbour D has and B those that only the other neighbour D' has; let a
bound the probability that D shows some key of A, and b that D' shows some key of B. Without the keys of A and B the answers
are (epsilon, 0)-close, because noise of that loss is added to the counts of the common keys (the rest is post-processing),
and the noise of different keys is independent. So for every set S of answers P(S) <= a + y / (1 - b) with
y = e**epsilon P'(S), and P(S) <= 1. If y >= (1 - a)(1 - b), then P(S) - y <= 1 - (1 - a)(1 - b) <= a + b; else
P(S) - y <= a + y b / (1 - b) <= a + (1 - a) b <= a + b: the rule costs delta a + b. For rho: given that no key of A or B is
shown, the answers on D and D' are those without these keys, which are rho-zCDP of each other, so the whole rule is
max(a, b)-approximate rho-zCDP (Bun and Steinke 2016, Definition 8.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, isqrt, log, log1p
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import Refusal, refuse
from dpsql.privacy.loss import PrivacyLoss, pure_of_rho, recomputed_rho_of_pure
from dpsql.privacy.mechanisms.contract import Noise, Norm, Selection, Sensitivity
from dpsql.privacy.mechanisms.rational_bounds import exp_lower
from dpsql.storage.records import dataclass

ONE = 1 << 62
"""Probabilities are integers over 2**62."""
_FRACTION_BITS = 64
MOST_COUNTS = 1 << 17
"""Longest table of keep probabilities; where a small epsilon would need a longer one, use the threshold rule instead."""
_ENOUGH_EPSILON = 40
WEIGHT_BITS = 24
WEIGHT = 1 << WEIGHT_BITS
"""Bound of the norm of one unit's weights over all its keys: 1, in steps of 2**-WEIGHT_BITS."""
MOST_UNITS = 1 << 62
"""A number of units larger than any key has."""


@dataclass(frozen=True)
class TruncatedGeometric:
    """A rule that keeps a key of n units with probability pi(n), the largest that (epsilon_per_key, delta_per_key)-DP allows.

    pi(0) = 0, pi(n + 1) = min(e**epsilon pi(n) + delta, 1 - e**-epsilon (1 - pi(n) - delta), 1)
    (Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", PoPETs 2022, arXiv 2006.03684,
    Theorem 1), rounded down to integers over 2**62 such that the DP conditions hold for the rounded table. One unit moves
    `l0` keys, which are decided independently: epsilon, delta and the rho of epsilon_per_key (`privacy.loss`) add up l0 times.
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
    noise: ClassVar[None] = None

    @property
    def table(self) -> NDArray[np.int64]:
        """Keep probabilities times 2**62 for 0, 1, 2, ... units; the last entry holds for all larger counts."""
        return _keep_table(self.epsilon_per_key, self.delta_per_key)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of l0 independent (epsilon, delta)-DP decisions."""
        return PrivacyLoss.pure(self.epsilon_per_key, self.delta_per_key).times(self.l0)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss with the larger of `delta_per_key` and the delta per key that the finished table needs."""
        needed = max(self.delta_per_key, _needed_by_table(self.epsilon_per_key, self.delta_per_key))
        epsilon, rho = self.l0 * self.epsilon_per_key, self.l0 * recomputed_rho_of_pure(self.epsilon_per_key)
        return PrivacyLoss(epsilon, self.l0 * needed, rho)

    def half_point(self) -> int:
        return int(np.searchsorted(self.table, ONE // 2))


@dataclass(frozen=True)
class Threshold:
    """A rule that keeps a key when its noisy count, which is released anyway, is at least `tau` (noise-grid units of `noise`).

    The count of a key that only one neighbour has goes from 0 to v <= linf; that neighbour shows the key with probability
    T(tau - v), where T(x) = P(noise >= x) includes the mass at x. Keys that both neighbours have are protected by the noise of
    the count, whose loss is charged with the count. So only delta is charged here: the sum of T(tau - v) over all keys that
    only one neighbour has; there are at most l0 of them, and their v add up to at most l1. The probability of an integer falls
    with its distance from 0, so T is convex from 0 on; for 0 <= v <= H < tau a chord bounds it:
    T(tau - v) <= T(tau) + (v / H) (T(tau - H) - T(tau)). The sum is at most (S / H) T(tau - H) + (l0 - S / H) T(tau), with S
    and H the values of l1 and linf on the noise grid.
    """

    column: str
    l0: int
    noise: Noise
    tau: int
    delta: Fraction

    def __post_init__(self) -> None:
        if self.l0 < 1 or self.noise.sensitivity.is_zero:
            raise ValueError("a threshold needs a noisy count that a unit can move")
        if self.tau <= self._most_of_lone_key() or self._lone_delta() > self.delta:
            raise ValueError("the threshold lets a lone unit through more often than delta allows")

    kind = "threshold"

    def _most_of_lone_key(self) -> int:
        return lone_count(self.noise)

    def _lone_delta(self) -> Fraction:
        """Return an upper bound of the probability that some key is shown that only one neighbour has."""
        return lone_delta(self.noise, self.l0, self.tau)

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(Fraction(0), self.delta, Fraction(0))

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss with the larger of `delta` and the delta that the finished threshold needs."""
        return PrivacyLoss(Fraction(0), max(self.delta, self._lone_delta()), Fraction(0))

    def half_point(self) -> int:
        """Return the smallest count whose noisy value reaches tau with probability >= 1/2."""
        return ceil(self.tau * Fraction(2) ** self.noise.shift)


@dataclass(frozen=True)
class WeightedThreshold(Threshold):
    """A threshold on the sum of the weights of a key's units: a unit in k keys has the weight for k in each of them.

    `weights` lists pairs (most, weight) by rising most: a unit in k keys has the first weight with k <= most. So a unit adds a
    vector of norm at most `WEIGHT`, in L1 with weights WEIGHT / k and in L2 with WEIGHT / sqrt(k), however many keys it has
    (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially private set union", ICML 2020, arXiv 2002.09745).
    A unit in k keys causes a key that no other unit has to be shown with probability at most k T(tau - weight): delta is the
    largest of these. `usual` is the number of keys per unit that `half_point` assumes.
    """

    weights: tuple[tuple[int, int], ...]
    usual: int

    kind = "weighted_threshold"

    def __post_init__(self) -> None:
        mosts = [0, *(most for most, _ in self.weights)]
        if any(after <= before for before, after in pairwise(mosts)) or self.l0 % mosts[-1] or self.usual > mosts[-1]:
            raise ValueError("weights are listed by rising numbers of keys, up to those that a unit can have")
        super().__post_init__()

    def _most_of_lone_key(self) -> int:
        return max(on_noise_grid(weight, self.noise) for _, weight in self.weights)

    def _lone_delta(self) -> Fraction:
        """Return the probability for the worst unit; under change_one twice, for the unit that leaves and the one that enters."""
        sides = self.l0 // self.weights[-1][0]
        return sides * max(
            most * _tail(self.noise, self.tau - on_noise_grid(weight, self.noise)) for most, weight in self.weights
        )

    def half_point(self) -> int:
        """Return the number of units, each in `usual` keys, with which a key is shown with probability 1/2."""
        weight = next(weight for most, weight in self.weights if self.usual <= most)
        return ceil(super().half_point() / Fraction(weight)) if weight else MOST_UNITS


def optimal(column: str, l0: int, allowed: PrivacyLoss) -> TruncatedGeometric:
    """Return the optimal rule for l0 keys per unit within `allowed`, whose epsilon or rho (not both) may be None for unlimited.

    Raises Refusal selection_delta or selection_epsilon when the share per key is too small for a table, ValueError when
    `allowed` limits neither epsilon nor rho or l0 is below 1.
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
    """Return the lowest threshold on the count `column`, released with `noise`, that spends at most `delta` on l0 keys.

    Raises Refusal selection_delta for a delta that is 0 or out of range, ValueError for a count that no unit can move.
    """
    _check_share(delta, l0)
    tau = _lowest(noise, l0, delta)
    return Threshold(column, l0, noise, tau, delta)


def _check_share(delta: Fraction, l0: int) -> None:
    if not Fraction(1, 10**200) <= delta / l0 < 1:
        raise refuse("selection_delta", delta=f"{float(delta):.3g}", keys=l0)


@lru_cache(maxsize=256)
def _lowest(noise: Noise, l0: int, delta: Fraction) -> int:
    """Return the lowest threshold above `lone_count` that delta allows, or one higher by less than a thousandth. Bisect between
    what the keys with a full count of `lone_count` alone need and what l0 keys with that count would need."""
    lone = lone_count(noise)
    low = lone + noise.tail_point(min(Fraction(1, 2), delta / _full_keys(noise, l0))) - 1
    high = lone + noise.tail_point(delta / l0)
    while high - low > max(1, high >> 10):
        middle = (low + high) // 2
        low, high = (low, middle) if lone_delta(noise, l0, middle) <= delta else (middle, high)
    return high


def lone_delta(noise: Noise, l0: int, tau: int) -> Fraction:
    """Return the bound in `Threshold` of the sum of T(tau - v) over l0 keys with v in [0, `lone_count`] that add up to l1."""
    full = _full_keys(noise, l0)
    most = full * _tail(noise, tau - lone_count(noise))
    return most if full == l0 else most + (l0 - full) * _tail(noise, tau)


@lru_cache(maxsize=4096)
def _tail(noise: Noise, least: int) -> Fraction:
    return noise.upper_tail(least)


def _full_keys(noise: Noise, l0: int) -> Fraction:
    """Return how many keys with a count of `lone_count` each make up the l1 sensitivity (S / H in `Threshold`), at most l0."""
    lone = lone_count(noise)
    return min(Fraction(l0), Fraction(on_noise_grid(noise.sensitivity.l1, noise), lone)) if lone else Fraction(l0)


def lone_count(noise: Noise) -> int:
    """Return the largest count of a key that only one unit has, on the noise grid: exact when finer, floored when coarser."""
    return on_noise_grid(noise.sensitivity.linf, noise)


def on_noise_grid(count: int, noise: Noise) -> int:
    """Return `count` on the grid on which `noise` is added: exact when it is finer than the row grid, floored when coarser."""
    return count >> noise.shift if noise.shift > 0 else count << -noise.shift


def weights_within(groups: int, norm: Norm) -> tuple[tuple[int, int], ...]:
    """Return pairs (most keys, weight) up to `groups` keys: the largest whole weights with norm at most WEIGHT in `most` keys.

    Numbers of keys that differ by at most a quarter share a pair, so that the SQL sent to the engine stays short.
    """
    mosts, most = [], 0
    while most < groups:
        most = min(groups, max(most + 1, most * 5 // 4))
        mosts.append(most)
    return tuple((most, WEIGHT // most if norm is Norm.L1 else isqrt(WEIGHT * WEIGHT // most)) for most in mosts)


def weighted_sensitivity(groups: int, norm: Norm, factor: int) -> Sensitivity:
    """Return the sensitivity of sums of `weights_within`; `factor` is 2 under change_one, else 1."""
    l1 = WEIGHT if norm is Norm.L1 else isqrt(groups * WEIGHT * WEIGHT)
    return Sensitivity(groups * factor, l1 * factor, (WEIGHT * factor) ** 2, WEIGHT * factor)


@lru_cache(maxsize=256)
def weighted_threshold(
    column: str, groups: int, norm: Norm, noise: Noise, delta: Fraction, usual: int
) -> WeightedThreshold:
    """Return a threshold as low as with equal weights of all units, under which units in fewer keys never have smaller weights.

    `noise` is calibrated to `weighted_sensitivity`. The unit in most keys sets tau. The weight of a unit in fewer keys is
    lowered where it would otherwise show a key that it alone has more often than delta allows. It stays at least the weight of
    the unit in most keys, because delta allows more for each of fewer keys. Raises Refusal selection_delta.
    """
    l0 = noise.sensitivity.l0
    _check_share(delta, l0)
    weights = weights_within(groups, norm)
    sides = l0 // groups
    tau = on_noise_grid(weights[-1][1], noise) + noise.tail_point(delta / l0)
    limited = []
    for most, weight in weights:
        beyond, share = tau - on_noise_grid(weight, noise), delta / (sides * most)
        lowered = beyond < 1 or _tail(noise, beyond) > share
        allowed = floor((tau - noise.tail_point(share)) * Fraction(2) ** noise.shift) if lowered else weight
        limited.append((most, allowed))
    return WeightedThreshold(column, l0, noise, tau, delta, tuple(limited), usual)


def choose_selection(column: str, l0: int, allowed: PrivacyLoss, thresholds: Sequence[Threshold] = ()) -> Selection:
    """Return the rule within `allowed` that keeps the smaller groups (lowest `half_point`); on a tie the first threshold, which
    is cheaper.

    `column` counts units per key. `thresholds` read counts whose noise costs as much as `allowed`. A threshold on a count that
    is released anyway costs delta alone and need not be compared here. Raises Refusal selection_delta or selection_epsilon when
    no rule fits.
    """
    rules: list[Selection] = list(thresholds)
    try:
        rules.append(optimal(column, l0, allowed))
    except Refusal:
        if not rules:
            raise
    return min(rules, key=lambda rule: rule.half_point())


@lru_cache(maxsize=128)
def _keep_table(epsilon: Fraction, delta: Fraction) -> NDArray[np.int64]:
    """Return the table of Theorem 1's recursion in integers, every product rounded toward keeping less."""
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
    """Return the expected length of the table: pi(n) = delta (growth**n - 1) / (growth - 1) up to 1/2, then mirrored (ibid.,
    Theorem 1)."""
    if growth <= 1:
        return 1 / delta
    return 2 * log1p((growth - 1) / (2 * delta)) / log(growth)


def _growth(epsilon: Fraction) -> int:
    """Return a lower bound of e**epsilon times 2**64; epsilon is capped at 40, above which no table changes."""
    return floor(exp_lower(min(epsilon, Fraction(_ENOUGH_EPSILON))) * (1 << _FRACTION_BITS))


def verify_table(table: Sequence[int], epsilon: Fraction, delta: Fraction) -> None:
    """Raise ValueError unless the keep probabilities `table` / 2**62 are (epsilon, delta)-DP between neighbours."""
    if not table or table[0] != 0 or any(after < before for before, after in pairwise(table)):
        raise ValueError("keep probabilities must rise from 0")
    if needed_delta(table, exp_lower(min(epsilon, Fraction(_ENOUGH_EPSILON)))) > delta:
        raise ValueError("keep probabilities rise faster than epsilon and delta allow")


def needed_delta(table: Sequence[int], ratio: Fraction) -> Fraction:
    """Return the least delta for which every step of `table` / 2**62 satisfies both conditions with e**epsilon >= `ratio`.

    pi(n + 1) <= ratio pi(n) + delta (a kept key) and 1 - pi(n) <= ratio (1 - pi(n + 1)) + delta (a dropped one); the
    two mirrored conditions follow because pi rises. Computed in exact integers, cleared of denominators.
    """
    top, bottom = ratio.numerator, ratio.denominator
    worst = 0
    for before, after in pairwise(table):
        keep_excess = bottom * after - top * before
        drop_excess = bottom * (ONE - before) - top * (ONE - after)
        worst = max(worst, keep_excess, drop_excess)
    return Fraction(worst, bottom * ONE)
