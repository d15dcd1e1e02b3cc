"""Noise in proportion to how far one unit moves the median (or mean) in data near the actual data: smooth sensitivity (Nissim,
Raskhodnikova and Smith 2007) and propose-test-release (Dwork and Lei 2009), with proofs for what is computed here.

**What moves.** A group has n rows in cells 0 to m, x_1 <= ... <= x_n; x_j = 0 for j <= 0 and x_j = m for j > n. Let F_D(t)
be x_j for j = ceil((n + t) / 2), for every integer t. The median is f(D) = F_D(0). Adding a row gives x'_j between x_(j-1)
and x_j for every j, and n + 1 rows, so F_D(t - 1) <= F_D'(t) <= F_D(t + 1); read from D' to D, this holds for removing a row.
One unit moves at most r rows of a group (Linf of the vector of row counts; under change_one the removed plus the added rows), so

    (1)  F_D(t - r) <= F_D'(t) <= F_D(t + r)  for neighbours D, D'.

With W_D(k) = F_D((k + 1) r) - F_D(-(k + 1) r), (1) says W_D(k) <= W_D'(k + 1), and |f(D) - f(D')| <= W_D(0). All are integers.

**Smooth sensitivity.** Let g_0 >= g_1 >= ... > 0 with g_k <= e^beta g_(k+1). S(D) = max over k >= 0 of g_k W_D(k) / g_0 is at
least |f(D) - f(D')|, and at most e^beta S(D'), by the line above. It is above 0, as W_D(k) = m from some k on. The release is
y = f(D) + s Z, s = S(D) / alpha, Z of density exp(-|z|) / 2, rounded to the nearest integer and clamped to [0, m], which is
post-processing. For neighbours, s' = S(D') / alpha and |f(D) - f(D')| <= alpha min(s, s'), and the logarithm of the ratio of
the densities at y is

    L = ln(s' / s) + |y - f(D')| / s' - |y - f(D)| / s.

If s' >= s, L <= beta + |f(D) - f(D')| / s' <= beta + alpha. If s' = e^-lambda s with 0 < lambda <= beta,
L <= alpha - lambda + |Z| (e^lambda - 1), which is above epsilon_0 only where |Z| > (epsilon_0 - alpha + lambda) / (e^lambda - 1),
a bound that falls as lambda rises. P(|Z| > z) = e^-z. So

    alpha + beta <= epsilon_0  and  exp(-(epsilon_0 - alpha + beta) / (e^beta - 1)) <= delta_0

make the group (epsilon_0, delta_0)-DP. (Nissim and others have beta = epsilon / (2 ln(2 / delta)), which is a little smaller.)

**Propose-test-release.** The query proposes a whole number b of steps. For a W with the two properties above let d(D) be the
smallest k >= 0 with W_D(k) > b; it exists, because b is below the largest W. d moves by at most 1 between neighbours. With
discrete Laplace noise Y of rate epsilon_1 the answer is refused, which is itself a private answer, unless d(D) + Y > T; else
it is f(D) + X, X discrete Laplace of rate epsilon_2 / b. If d = 0 on both sides, both neighbours are refused, except for events
of probability P(Y > T) <= delta_0. Otherwise W_D(0) <= b or W_D'(0) <= b, so |f(D) - f(D')| <= b, and both steps together are
(epsilon_1 + epsilon_2)-DP. T = ln(1 / (2 delta_0)) / epsilon_1 up to a step; the threshold ln(2 / delta_0) / (2 epsilon_1), which
is found in lecture notes, is passed with probability sqrt(delta_0 / 8).

**The mean** of n rows is f(D) = floor(2^F sum x_j / n), or floor(2^F m / 2) without rows. If a rows are added and b removed,
a + b <= r, both sides share n - b rows. The mean of the n rows is at most m b / n away from the mean of these, and the mean of
the n + a - b rows at most m a / (n + a - b). So the mean moves by at most m r / (n - r), and
W_D(k) = 2^F m r / (n - (k + 1) r), infinite where n <= (k + 1) r, has both properties, as n moves by at most r; a number that
moves by at most the integer b moves by at most b after rounding down.

**All groups.** A unit moves rows of at most l0 groups, which are released independently: epsilon_0, delta_0 and the rho of
epsilon_0 (`PrivacyLoss.pure`; of propose-test-release the rho of both noises) add up l0 times.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, expm1, floor, log

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import PrivacyLoss, pure_of_rho, recomputed_rho_of_pure
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Law, Noise, NumberPlan, Sensitivity, Uncharged
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.rational_bounds import exp_upper, ln_lower, ln_upper
from dpsql.storage.records import dataclass, replace

LOCAL_SENSITIVITY = "local sensitivity"
"""The name of this kind of measurement (`dpsql.plan.measurements`)."""
SMOOTH, PROPOSED = "smooth_sensitivity", "propose_test_release"
"""Values of `dp.mechanism`."""
REFUSED = -1
"""Value released in place of a number if the test is not passed."""
_BITS = 28
_ONE = 1 << _BITS
"""g_0; alpha and the fall of g are multiples of 1 / `_ONE`."""
_MOST_DISTANCES = 1 << 16
"""Largest number of weights; with more, a group takes too long."""
_MOST_ALPHA = 1 << 40
_UNIT = Sensitivity(1, 1, 1, 1)


@dataclass(frozen=True)
class SmoothSensitivity:
    """The law of the median with noise of scale S(D) / alpha, which is (epsilon_0, delta_0)-DP for each group.

    `sensitivity`: of the vector of row counts. alpha = `alpha` / 2**28. g falls by factors of 1 - `fall` / 2**28, rounded up.
    """

    sensitivity: Sensitivity
    epsilon_0: Fraction
    delta_0: Fraction
    alpha: int
    fall: int

    mechanism = SMOOTH

    def __post_init__(self) -> None:
        if self.sensitivity.is_zero or self.epsilon_0 <= 0 or not 0 < self.delta_0 < 1:
            raise ValueError("smooth sensitivity needs rows that can move, an epsilon and a delta above 0")
        if self.alpha < 1 or not 1 <= self.fall < _ONE:
            raise ValueError("no scale of noise")

    @property
    def weights(self) -> NDArray[np.int64]:
        """g_0, g_1, ... as integers; the last one holds for all larger distances."""
        return _weights(self.fall)

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss.pure(self.epsilon_0, self.delta_0).times(self.sensitivity.l0)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed from the finished weights: e^beta is the largest ratio of consecutive weights. Epsilon and
        delta are those that the two inequalities require, or the claimed ones if these are larger."""
        weights = self.weights.tolist()
        ratio = max(map(Fraction, weights[:-1], weights[1:]))
        alpha = Fraction(self.alpha, _ONE)
        epsilon = max(self.epsilon_0, alpha + ln_upper(ratio))
        delta = max(self.delta_0, _missed(epsilon - alpha, ratio))
        return PrivacyLoss(epsilon, delta, recomputed_rho_of_pure(epsilon)).times(self.sensitivity.l0)

    def rank_error(self, beta: float) -> float:
        """Return a bound of the noise, expressed as rows of rank, that is exceeded with probability `beta` if values are evenly
        spread around the median: W(k) is then as wide as (k + 1) r rows."""
        weights = self.weights
        scale = float((weights * (np.arange(weights.size) + 1)).max()) * self.sensitivity.linf / self.alpha
        return scale * log(1 / beta)


@lru_cache(maxsize=64)
def _weights(fall: int) -> NDArray[np.int64]:
    weights = [_ONE]
    while (lower := -(-weights[-1] * (_ONE - fall) // _ONE)) < weights[-1]:
        weights.append(lower)
    return np.array(weights, dtype=np.int64)


def _missed(slack: Fraction, ratio: Fraction) -> Fraction:
    """Return exp(-(slack + ln ratio) / (ratio - 1)), rounded up: `slack` = epsilon_0 - alpha, `ratio` = e^beta > 1."""
    return exp_upper(max(Fraction(-900), -(slack + ln_lower(ratio)) / (ratio - 1)))


def smooth_for(sensitivity: Sensitivity, part: PrivacyLoss) -> SmoothSensitivity:
    """Return a law whose loss is at most `part` (its epsilon, or its rho if epsilon is None, and its delta > 0): alpha is half of
    epsilon_0, and beta about as large as both inequalities allow. Raises Refusal local_epsilon."""
    groups = sensitivity.l0
    epsilon_0 = part.epsilon / groups if part.epsilon is not None else _pure(part, groups)
    delta_0 = part.delta / groups
    alpha = min(floor(epsilon_0 / 2 * _ONE), _MOST_ALPHA)
    least = ln_upper(1 / delta_0)
    low, high = 0.0, float(epsilon_0) / 2
    for _ in range(60):
        beta = (low + high) / 2
        allowed = (float(epsilon_0) / 2 + beta) >= float(least) * expm1(beta)
        low, high = (beta, high) if allowed else (low, beta)
    fall = floor(-expm1(-low) * _ONE)
    while fall >= 1 and not _allowed(epsilon_0, Fraction(alpha, _ONE), least, Fraction(_ONE, _ONE - fall)):
        fall -= 1 + fall // 1_000_000
    if alpha < 1 or fall < 1 or log(max(2.0, fall)) * _ONE / fall > _MOST_DISTANCES:
        raise refuse("local_epsilon", mechanism=SMOOTH)
    return SmoothSensitivity(sensitivity, epsilon_0, delta_0, alpha, fall)


def _allowed(epsilon_0: Fraction, alpha: Fraction, least: Fraction, ratio: Fraction) -> bool:
    """Return whether both inequalities hold with e^beta = `ratio` and ln(1 / delta_0) <= `least`."""
    return alpha + ln_upper(ratio) <= epsilon_0 and epsilon_0 - alpha + ln_lower(ratio) >= least * (ratio - 1)


def _pure(part: PrivacyLoss, shares: int) -> Fraction:
    """Return the epsilon whose rho is the rho of `part` divided by `shares`."""
    assert part.rho is not None
    return pure_of_rho(part.rho / shares)


@dataclass(frozen=True)
class ProposeTestRelease:
    """The law of the median, or with `mean` of the mean on a grid 2**`finer` times as fine, released if the test of `bound` > 0
    steps of that grid is passed. `test` is Y and `noise` is X; a number is refused unless d + Y > `threshold`."""

    sensitivity: Sensitivity
    bound: int
    test: Laplace
    noise: Laplace
    threshold: int
    delta_0: Fraction
    mean: bool = False
    finer: int = 0

    mechanism = PROPOSED

    def __post_init__(self) -> None:
        if self.sensitivity.is_zero or self.bound < 1 or not 0 < self.delta_0 < 1 or self.threshold < 0:
            raise ValueError("propose-test-release needs rows that can move, a bound and a delta above 0")
        if (self.test.sensitivity.l1, self.noise.sensitivity.l1) != (1, self.bound):
            raise ValueError("noise of another sensitivity")
        if self.test.shift or self.noise.shift or self.test.upper_tail(self.threshold + 1) > self.delta_0:
            raise ValueError("the test is passed more often than delta allows")

    @property
    def epsilon_0(self) -> Fraction:
        return sum((step.loss.epsilon or Fraction(0) for step in (self.test, self.noise)), Fraction(0))

    @property
    def loss(self) -> PrivacyLoss:
        both = self.test.loss + self.noise.loss
        return replace(both, delta=self.delta_0).times(self.sensitivity.l0)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` from both noises' recomputed losses, with the larger of `delta_0` and what the threshold needs."""
        both = self.test.recomputed_loss() + self.noise.recomputed_loss()
        delta = max(self.delta_0, self.test.upper_tail(self.threshold + 1))
        return replace(both, delta=delta).times(self.sensitivity.l0)

    def passing_distance(self, missed: float) -> int:
        """Return a distance d(D) from which on a number is refused with probability at most `missed`."""
        return self.threshold + 1 + ceil(log(1 / missed) * float(self.test.noise_scale))


def _laplace_for(moved: Sensitivity, part: PrivacyLoss) -> Noise:
    """Return the Laplace noise whose loss is at most the epsilon of `part`, or its rho if epsilon is None."""
    if part.epsilon is not None:
        return laplace.noise_for(moved, part.epsilon)
    assert part.rho is not None
    return laplace.noise_for_rho(moved, part.rho)


def propose_for(
    sensitivity: Sensitivity, part: PrivacyLoss, bound: int, mean: bool = False, finer: int = 0
) -> ProposeTestRelease:
    """Return the law of loss at most `part` (`smooth_for`), half for test, half for noise. Raises Refusal local_epsilon."""
    groups = sensitivity.l0
    share = part.times(Fraction(1, 2 * groups))
    test, noise = (_laplace_for(moved, share) for moved in (_UNIT, Sensitivity(1, bound, bound * bound, bound)))
    if not isinstance(test, Laplace) or not isinstance(noise, Laplace) or test.shift or noise.shift:
        raise refuse("local_epsilon", mechanism=PROPOSED)
    delta_0 = part.delta / groups
    return ProposeTestRelease(sensitivity, bound, test, noise, test.tail_point(delta_0) - 1, delta_0, mean, finer)


@dataclass(frozen=True)
class FollowsFrom(Uncharged):
    """The law of an end of an error bar that is computed from a released number, `width` steps away, at no privacy loss."""

    sensitivity: Sensitivity
    width: int

    mechanism = "derived"

    @property
    def epsilon_0(self) -> Fraction:
        """1, because an end is as exact as the number from which it is computed."""
        return Fraction(1)


@dataclass(frozen=True)
class LocalSensitivityPlan(NumberPlan):
    """The measurement of one number per group. If `width`, half the width of the error bar in steps, is given, both ends of the
    bar are released as well."""

    width: int | None = None

    word = LOCAL_SENSITIVITY

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        if self.width is None:
            return super().laws
        assert isinstance(self.law, ProposeTestRelease)
        return (*super().laws, *ends_that_follow(self.name, self.law.sensitivity, self.width))


def ends_that_follow(name: str, sensitivity: Sensitivity, width: int) -> tuple[tuple[str, Law], ...]:
    """Return name and law of both ends of the error bar of the number called `name`, which follow from it."""
    return tuple((end, FollowsFrom(sensitivity, width)) for end in ends_of(name))


def ends_of(name: str) -> tuple[str, str]:
    """Return the names of the low and the high end of the error bar of the number called `name`."""
    return f"{name}low", f"{name}high"
