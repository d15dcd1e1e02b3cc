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
(`exponential`), so the loss epsilon_0 n_g holds for it as well.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import NumberPlan, Sensitivity
from dpsql.privacy.mechanisms.exponential import (
    EXPONENTIAL,
    MOST_ROWS,
    RowChoice,
    check_mechanism,
    epsilon_of_a_row,
    mechanism_for,
    recomputed_choice_loss,
    share_of_weights,
)
from dpsql.privacy.mechanisms.rational_bounds import ln_upper
from dpsql.storage.records import dataclass

# The exponential mechanism over the keys of the rows at an end of an order (McSherry and Talwar 2007), for ARG_MAX and
# ARG_MIN.
#
# The rows of a group are ordered by their cells, in which equal values are ordered by key. The last (or first) `rows` rows are
# the *end rows* of the group, or all its rows if there are fewer; u(k) of the end rows have key k. The mechanism returns k with
# a probability proportional to exp(epsilon_0 u(k) / 2), independently for each group, so the key of most end rows is the
# likeliest.
#
# Why not the key of the very last row: one more row can make any key the key of the last row, so no such answer hides a row. The
# key of most end rows is that of the last row if this key has a lead; `count_error` says how large a lead is enough.
#
# How far u moves. An added row that is among the end rows adds 1 for its key; if there were already `rows` end rows, the one
# nearest to the middle drops out: -1 for its key. A row added elsewhere moves nothing. Removing a row undoes one of these moves.
# So n_g added rows, wherever they are, move u(k) by a(k) - b(k) with a, b >= 0, each with a sum of at most n_g. The sampler reads
# the distance d(k) = max u - u(k), and
#
#     log P'(k) / P(k)  =  (epsilon_0 / 2) (a(k) - b(k)) - log of the ratio of the two normalising sums
#
# lies, for all k, in one interval of length epsilon_0 n_g, which contains 0 because both are probability laws: group g is
# released with epsilon_0 n_g-DP and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is (epsilon_0
# n_g)^2 / 8-zCDP (Cesar and Rogers 2021). The loss involves neither the number of end rows nor that of cells, so both may
# follow from the law alone. Groups are disjoint and their keys are chosen independently, so the losses of all groups add up:
#
#     epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2.
#
# Under change_one n_g rows are removed and n'_g rows added, one after the other, and the triangle inequality doubles both norms,
# as for counts (the factor is included in `Sensitivity`).
#
# Under the pure accountant the key is chosen by permute-and-flip, which is charged by the same range of moves
# (`exponential`), so the loss epsilon_0 n_g holds for it as well.

END_ROWS = "end rows"
"""The name of this kind of measurement (`dpsql.plan.measurements`)."""
_MISSED = Fraction(1, 20)
_LEADS = 3
"""Number of end rows as a multiple of the lead that is enough: with a multiple of 1, a key would need all end rows. In groups of
normal values whose means differ by a fifth of their deviation, 3 names the key with the largest mean twice as often as 1."""


@dataclass(frozen=True)
class EndKey(RowChoice):
    """The law that chooses for each group one of the keys 0 to `keys` - 1, likeliest the key of most of its `rows` >= 1 end rows.
    Cells are ordered by value and then by key; cell c has key c modulo `keys`. End rows are taken from the last cell on if
    `last`, else from the first.

    `sensitivity`: of the vector of row counts n_g. `epsilon_0` > 0: the privacy loss per row. `mechanism`: how a key is chosen,
    given the counts.
    """

    sensitivity: Sensitivity
    epsilon_0: Fraction
    keys: int
    rows: int
    last: bool
    mechanism: str = EXPONENTIAL

    def __post_init__(self) -> None:
        if self.epsilon_0 <= 0 or self.sensitivity.is_zero or self.keys < 1 or self.rows < 1:
            raise ValueError("a choice needs an epsilon above 0, rows that can move, keys, and rows to choose from")
        check_mechanism(self.mechanism)

    @property
    def rate(self) -> Fraction:
        """The decrease of the log weight of a key per end row that it has fewer: half of epsilon_0, as a row moves two keys."""
        return self.epsilon_0 / 2

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed from how far the log weights of two keys move apart when a row of one of them pushes a row of
        the other out of the end rows, or is the first row of the group."""
        spans = []
        for rows in ([], [1] * self.rows, [1] * (self.rows - 1) + [0]):
            before, after = rows, [0, *rows][: self.rows]
            moves = [after.count(key) - before.count(key) for key in (0, 1)]
            spans.append(self.rate * (max(0, *moves) - min(0, *moves)))
        span = max(spans)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)

    def end_counts(
        self, count: NDArray[np.int64], before: NDArray[np.int64], total: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return how many of the `count` rows of each cell are end rows, if `before` rows of its group are in earlier cells and
        `total` in all cells. All arrays have one entry per cell."""
        nearer = total - before - count if self.last else before
        return np.minimum(count, np.maximum(self.rows - nearer, 0))


def end_key_for(sensitivity: Sensitivity, keys: int, last: bool, part: PrivacyLoss) -> EndKey:
    """Return the choice of largest epsilon_0 and loss at most `part`, from `_LEADS` times as many end rows as the lead needs."""
    epsilon_0, mechanism = epsilon_of_a_row(sensitivity, part), mechanism_for(part)
    lead = ln_upper(share_of_weights(mechanism) * max(1, keys - 1) / _MISSED) * 2 / epsilon_0
    return EndKey(sensitivity, epsilon_0, keys, min(max(1, ceil(_LEADS * lead)), MOST_ROWS), last, mechanism)


@dataclass(frozen=True)
class EndRowsPlan(NumberPlan):
    """The measurement of the key of most end rows of each group, from a histogram of `cells` cells."""

    word = END_ROWS


MOST_FREQUENT = "most frequent value"
"""The name of this kind of measurement (`dpsql.plan.measurements`)."""


@dataclass(frozen=True)
class MostFrequent(RowChoice):
    """The law that chooses the most frequent value of each group. `sensitivity`: of the vector of row counts n_g.
    `epsilon_0` > 0: the privacy loss per row. `mechanism`: how a value is chosen, given the counts."""

    sensitivity: Sensitivity
    epsilon_0: Fraction
    mechanism: str = EXPONENTIAL

    def __post_init__(self) -> None:
        if self.epsilon_0 <= 0 or self.sensitivity.is_zero:
            raise ValueError("a choice needs an epsilon above 0, and rows that can move")
        check_mechanism(self.mechanism)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed from how far the log weights of two values move apart at most when a row with one of them is
        added, whichever of the two is more frequent."""
        moves = []
        for mine, other in ((0, 0), (0, 1), (1, 0), (0, 2)):
            before, after = max(mine, other), max(mine + 1, other)
            moves.append(-self.rate * (after - (mine + 1) - (before - mine)) + self.rate * (after - before))
        span = max(moves)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)


@dataclass(frozen=True)
class MostFrequentPlan(NumberPlan):
    """The measurement of the most frequent of `cells` values in each group."""

    word = MOST_FREQUENT
