"""The exponential mechanism over the values of a list (McSherry and Talwar 2007), for the most frequent one.

A group has h(c) rows with value c, of a list of values that does not depend on data. The mechanism returns c with a probability
proportional to exp(epsilon_0 h(c)), which is exp(-epsilon_0 d(c)) with the distance d(c) = max h - h(c), each group for itself.
Values that are equally frequent have equal chances.

Why there is no 2 below epsilon_0. A unit that is added has n_g rows in group g, wherever they are: h(c) grows by a(c) >= 0,
the sum of a(c) over all c is n_g, so every h(c) moves by a number in [0, n_g], all in one direction (a *monotonic*
utility). Then

    log P'(c) / P(c)  =  epsilon_0 a(c) - log of the ratio of the two normalising sums,

where the last term is one number for all c. So this lies in an interval of length epsilon_0 n_g, which contains 0, as both
are laws: group g is released with epsilon_0 n_g-DP (McSherry and Talwar's theorem 6 has 2 epsilon_0 for utilities that move
both ways), and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is (epsilon_0 n_g)^2 / 8-zCDP (Cesar
and Rogers 2021). A unit that is removed turns the ratio around. Groups are disjoint and chosen independently, so the losses
of all of them add up:

    epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2,

the L1 and the squared L2 norm of the vector of n_g, as of a count of rows. Under change_one n_g rows go and n'_g rows come: h(c)
moves by a number in [-n_g, n'_g], down for one value and up for another, so the range is epsilon_0 (n_g + n'_g), and the triangle
inequality doubles both norms, as it does for counts (the factor is inside `Sensitivity`).

Under the pure accountant the value is chosen by permute-and-flip, which is charged by the same range of moves
(`permute_and_flip`), so that epsilon_0 n_g holds for it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Law, Sensitivity
from dpsql.privacy.mechanisms.permute_and_flip import (
    EXPONENTIAL,
    check_mechanism,
    choice_loss,
    recomputed_choice_loss,
    share_of_weights,
)

MOST_FREQUENT = "most frequent value"
"""The word of the measurement (`dpsql.plan.measurements`)."""


@dataclass(frozen=True)
class MostFrequent:
    """The choice of the most frequent value of each group. `sensitivity`: of the vector of row counts n_g. `epsilon_0` > 0 is
    what one row costs. `mechanism`: how a value is chosen, given the counts."""

    sensitivity: Sensitivity
    epsilon_0: Fraction
    mechanism: str = EXPONENTIAL

    def __post_init__(self) -> None:
        if self.epsilon_0 <= 0 or self.sensitivity.is_zero:
            raise ValueError("a choice needs an epsilon above 0, and rows that can move")
        check_mechanism(self.mechanism)

    @property
    def rate(self) -> Fraction:
        """By how much the logarithm of a weight falls for each row that a value has less."""
        return self.epsilon_0

    @property
    def loss(self) -> PrivacyLoss:
        """The exact cost of one value for every group."""
        return choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` from the weights: by how much the logarithms of two values' weights move apart at most when a row of one
        of them comes, whichever of the two is more frequent."""
        moves = []
        for mine, other in ((0, 0), (0, 1), (1, 0), (0, 2)):
            before, after = max(mine, other), max(mine + 1, other)
            moves.append(-self.rate * (after - (mine + 1) - (before - mine)) + self.rate * (after - before))
        span = max(moves)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)

    def count_error(self, cells: int, beta: float) -> float:
        """By how many rows the value chosen is less frequent than the most frequent one, exceeded with a probability of at most
        `beta`, whatever the data.

        The weights of all values beyond d are at most (cells - 1) exp(-rate d) in sum (`permute_and_flip.share_of_weights`).
        """
        share = float(share_of_weights(self.mechanism))
        return max(0.0, log((cells - 1) * share / beta) / float(self.rate)) if cells > 1 else 0.0


@dataclass(frozen=True)
class MostFrequentPlan:
    """The most frequent of `cells` values of each group."""

    name: str
    cells: int
    law: Law

    word = MOST_FREQUENT

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """The one number that is released for each group."""
        return ((self.name, self.law),)

    @property
    def charged(self) -> tuple[Law, ...]:
        """Return this law alone: one release of all groups."""
        return (self.law,)
