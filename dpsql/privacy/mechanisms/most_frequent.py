"""The exponential mechanism over the values of a list (McSherry and Talwar 2007), for the most frequent value.

A group has h(c) rows with value c, where c is from a list that does not depend on data. The mechanism returns c with a
probability proportional to exp(epsilon_0 h(c)), which is exp(-epsilon_0 d(c)) up to a factor with the distance
d(c) = max h - h(c), independently for each group. Equally frequent values have equal probabilities.

Why epsilon_0 is not divided by 2. An added unit has n_g rows in group g, wherever they are: h(c) grows by a(c) >= 0, and
the sum of a(c) over all c is n_g, so every h(c) moves by a number in [0, n_g], all in one direction (a *monotonic*
utility). Then

    log P'(c) / P(c)  =  epsilon_0 a(c) - log of the ratio of the two normalising sums,

where the last term is the same for all c. So this lies in an interval of length epsilon_0 n_g, which contains 0 because both
are probability laws: group g is released with epsilon_0 n_g-DP (McSherry and Talwar's theorem 6 has 2 epsilon_0 for utilities
that move both ways), and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is (epsilon_0 n_g)^2 / 8-zCDP
(Cesar and Rogers 2021). Removing a unit inverts the ratio. Groups are disjoint and their values are chosen independently, so the
losses of all groups add up:

    epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2,

the L1 and the squared L2 norm of the vector of n_g, as for a count of rows. Under change_one n_g rows are removed and n'_g rows
added: h(c) moves by a number in [-n_g, n'_g], down for one value and up for another, so the range is epsilon_0 (n_g + n'_g), and
the triangle inequality doubles both norms, as for counts (the factor is included in `Sensitivity`).

Under the pure accountant the value is chosen by permute-and-flip, which is charged by the same range of moves
(`permute_and_flip`), so the loss epsilon_0 n_g holds for it as well.
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
"""The name of this kind of measurement (`dpsql.plan.measurements`)."""


@dataclass(frozen=True)
class MostFrequent:
    """The law that chooses the most frequent value of each group. `sensitivity`: of the vector of row counts n_g.
    `epsilon_0` > 0: the privacy loss per row. `mechanism`: how a value is chosen, given the counts."""

    sensitivity: Sensitivity
    epsilon_0: Fraction
    mechanism: str = EXPONENTIAL

    def __post_init__(self) -> None:
        if self.epsilon_0 <= 0 or self.sensitivity.is_zero:
            raise ValueError("a choice needs an epsilon above 0, and rows that can move")
        check_mechanism(self.mechanism)

    @property
    def rate(self) -> Fraction:
        """The decrease of the log weight of a value per row that it has fewer."""
        return self.epsilon_0

    @property
    def loss(self) -> PrivacyLoss:
        """The exact privacy loss of one value for every group."""
        return choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed from how far the log weights of two values move apart at most when a row with one of them is
        added, whichever of the two is more frequent."""
        moves = []
        for mine, other in ((0, 0), (0, 1), (1, 0), (0, 2)):
            before, after = max(mine, other), max(mine + 1, other)
            moves.append(-self.rate * (after - (mine + 1) - (before - mine)) + self.rate * (after - before))
        span = max(moves)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)

    def count_error(self, cells: int, beta: float) -> float:
        """Return a number d of rows by which the chosen value may be less frequent than the most frequent one; for any data, the
        difference exceeds d with probability at most `beta`.

        The probabilities of all values beyond d add up to at most (cells - 1) exp(-rate d) (`permute_and_flip.share_of_weights`).
        """
        share = float(share_of_weights(self.mechanism))
        return max(0.0, log((cells - 1) * share / beta) / float(self.rate)) if cells > 1 else 0.0


@dataclass(frozen=True)
class MostFrequentPlan:
    """The measurement of the most frequent of `cells` values in each group."""

    name: str
    cells: int
    law: Law

    word = MOST_FREQUENT

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """Name and law of the one number that is released for each group."""
        return ((self.name, self.law),)

    @property
    def charged(self) -> tuple[Law, ...]:
        """This law alone: the values of all groups are one release."""
        return (self.law,)
