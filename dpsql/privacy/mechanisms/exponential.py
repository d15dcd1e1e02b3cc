"""The exponential mechanism over the cells of a histogram (McSherry and Talwar 2007), for quantiles.

A group has n rows, of which below(c) are in cells before c and above(c) in cells after it. The quantile q is any cell c with
below(c) <= q n and above(c) <= (1 - q) n; how far another cell is from that, in rows, is its distance

    d(c) = max(0, below(c) - q n, above(c) - (1 - q) n).

The mechanism returns c with a probability proportional to exp(-epsilon_0 d(c) / (2 M)), M = max(q, 1 - q), each group for itself.

How far d moves. One row more in cell x adds 1 to n, and 1 to below(c) for c > x or to above(c) for c < x. So the second argument
of the maximum changes by 1 - q (c > x) or -q, the third by q (c < x) or -(1 - q): each by M at most, and with it the maximum. A
row less undoes that. So n_g rows that come or go move d(c) within [-M n_g, M n_g] for every cell c of group g, and

    log P(c) / P'(c)  =  (epsilon_0 / (2 M)) (d'(c) - d(c)) - log of the ratio of the two normalising sums

lies in an interval of length epsilon_0 n_g, whatever c is, which contains 0, as both are laws. Hence group g is released with
epsilon_0 n_g-DP, and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is (epsilon_0 n_g)^2 / 8-zCDP (Cesar
and Rogers 2021). Groups are disjoint and chosen independently, so the losses of all of them add up:

    epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2,

the L1 and the squared L2 norm of the vector of n_g, as of a count of rows. Under change_one n_g rows go and n'_g rows come, so
the range is epsilon_0 (n_g + n'_g), and the triangle inequality doubles both norms, as it does for counts (the factor is
inside `Sensitivity`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.rational_bounds import sqrt_lower


@dataclass(frozen=True)
class Choice:
    """The choice of the quantile `quantile` (from 0 to 1) of each group. `sensitivity`: of the vector of row counts n_g.
    `epsilon_0` > 0 is what one row costs."""

    sensitivity: Sensitivity
    quantile: Fraction
    epsilon_0: Fraction

    mechanism = "exponential"

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1 or self.epsilon_0 <= 0 or self.sensitivity.is_zero:
            raise ValueError("a choice needs a quantile from 0 to 1, an epsilon above 0, and rows that can move")

    @property
    def rate(self) -> Fraction:
        """By how much the logarithm of a weight falls for each row of distance: epsilon_0 / (2 M)."""
        return self.epsilon_0 / (2 * max(self.quantile, 1 - self.quantile))

    @property
    def loss(self) -> PrivacyLoss:
        """The exact cost of one number for every group."""
        rho = self.epsilon_0**2 * self.sensitivity.l2_squared / 8
        return PrivacyLoss(self.epsilon_0 * self.sensitivity.l1, Fraction(0), rho)

    def recomputed_loss(self) -> PrivacyLoss:
        """`loss` from the weights: one row moves the logarithm of a weight up or down by at most `rate` times M."""
        most = self.quantile if 2 * self.quantile > 1 else 1 - self.quantile
        up = down = self.rate * most
        span = up + down
        return PrivacyLoss(span * self.sensitivity.l1, Fraction(0), span * span * self.sensitivity.l2_squared / 8)

    def rank_error(self, cells: int, beta: float) -> float:
        """A distance d in rows that is exceeded with a probability of at most `beta`, whatever the data.

        The weights of all cells beyond d are at most cells exp(-rate d) in sum, and a cell at distance 0 has the weight 1.
        """
        return math.log(cells / beta) / float(self.rate)


def choice_for(sensitivity: Sensitivity, quantile: Fraction, part: PrivacyLoss) -> Choice:
    """The choice with the largest epsilon_0 that costs at most `part`: its epsilon, or its rho where epsilon is None."""
    if part.epsilon is not None:
        return Choice(sensitivity, quantile, part.epsilon / sensitivity.l1)
    assert part.rho is not None
    return Choice(sensitivity, quantile, sqrt_lower(8 * part.rho / sensitivity.l2_squared))
