"""The exponential mechanism over the keys of the rows at an end of an order (McSherry and Talwar 2007), for ARG_MAX and ARG_MIN.

The rows of a group are in an order: by their cells, in which equal values are ordered by key. The `rows` last (or first) of them
are its *end rows*, or all of them where there are fewer; u(k) of them have key k. The mechanism returns k with a probability
proportional to exp(epsilon_0 u(k) / 2), each group for itself, so that the key that most of the end rows have is the likeliest.

Why not the key of the very last row: one row more can make any key that of the last row, so no such answer hides a row. The key
of most end rows is that of the last one where its key has a lead, and `count_error` says which lead is enough.

How far u moves. A row that comes and is one of the end rows adds 1 to its key, and where there were `rows` of them before, the
one that is nearest to the middle is none any more: -1 for its key. A row that comes elsewhere moves nothing. A row that goes
undoes one of these. So n_g rows that come, wherever they are, move u(k) by a(k) - b(k) with a, b >= 0, each with a sum of n_g
at most. The distance d(k) = max u - u(k) is what the sampler sees, and

    log P'(k) / P(k)  =  (epsilon_0 / 2) (a(k) - b(k)) - log of the ratio of the two normalising sums

lies in an interval of length epsilon_0 n_g, whatever k is, which contains 0, as both are laws: group g is released with
epsilon_0 n_g-DP and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is (epsilon_0 n_g)^2 / 8-zCDP (Cesar
and Rogers 2021). Neither the number of end rows nor that of cells is in this, so that both follow from the law alone. Groups are
disjoint and chosen independently, so the losses of all of them add up:

    epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2.

Under change_one n_g rows go and n'_g rows come, one after the other, and the triangle inequality doubles both norms, as it does
for counts (the factor is inside `Sensitivity`).

Under the pure accountant the key is chosen by permute-and-flip, which is charged by the same range of moves
(`permute_and_flip`), so that epsilon_0 n_g holds for it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Law, Sensitivity
from dpsql.privacy.mechanisms.exponential import MOST_ROWS, epsilon_of_a_row
from dpsql.privacy.mechanisms.permute_and_flip import (
    EXPONENTIAL,
    check_mechanism,
    choice_loss,
    mechanism_for,
    recomputed_choice_loss,
    share_of_weights,
)
from dpsql.privacy.mechanisms.rational_bounds import ln_upper

END_ROWS = "end rows"
"""The word of the measurement (`dpsql.plan.measurements`)."""
_MISSED = Fraction(1, 20)
_LEADS = 3
"""End rows, as a multiple of the lead that is enough: with one alone, a key would need all of them. In groups of normal values
whose means differ by a fifth of their deviation, 3 name the key with the largest mean twice as often as 1."""


@dataclass(frozen=True)
class EndKey:
    """The choice of the key that most of the `rows` >= 1 end rows of each group have, of keys 0 to `keys` - 1. Cells are ordered
    by value and then by key, cell c having the key c modulo `keys`; the end is the `last` cell or the first one.

    `sensitivity`: of the vector of row counts n_g. `epsilon_0` > 0 is what one row costs. `mechanism`: how a key
    is chosen, given the counts.
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
        """By how much the logarithm of a weight falls for each end row that a key has less: a row moves two keys."""
        return self.epsilon_0 / 2

    @property
    def loss(self) -> PrivacyLoss:
        """The exact cost of one key for every group."""
        return choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` from the weights: by how much those of two keys move apart when the row of one of them pushes one of the
        other out of the end rows, or comes as the first of all."""
        spans = []
        for rows in ([], [1] * self.rows, [1] * (self.rows - 1) + [0]):
            before, after = rows, [0, *rows][: self.rows]
            moves = [after.count(key) - before.count(key) for key in (0, 1)]
            spans.append(self.rate * (max(0, *moves) - min(0, *moves)))
        span = max(spans)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)

    def count_error(self, beta: float) -> float:
        """Return how many end rows less than the likeliest key the chosen one has, exceeded with a probability of at most `beta`,
        whatever the data."""
        share = float(share_of_weights(self.mechanism))
        return max(0.0, log((self.keys - 1) * share / beta) / float(self.rate)) if self.keys > 1 else 0.0

    def end_counts(
        self, count: NDArray[np.int64], before: NDArray[np.int64], total: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return how many of `count` rows in a cell are end rows: `before` rows of the group are in earlier cells, `total` in
        all. Shape of all: cells."""
        nearer = total - before - count if self.last else before
        return np.minimum(count, np.maximum(self.rows - nearer, 0))


def end_key_for(sensitivity: Sensitivity, keys: int, last: bool, part: PrivacyLoss) -> EndKey:
    """Return the choice with the largest epsilon_0 that costs at most `part`, among end rows for `_LEADS` leads that are
    enough."""
    epsilon_0, mechanism = epsilon_of_a_row(sensitivity, part), mechanism_for(part)
    lead = ln_upper(share_of_weights(mechanism) * max(1, keys - 1) / _MISSED) * 2 / epsilon_0
    return EndKey(sensitivity, epsilon_0, keys, min(max(1, ceil(_LEADS * lead)), MOST_ROWS), last, mechanism)


@dataclass(frozen=True)
class EndRowsPlan:
    """The key of most end rows of each group, read from a histogram of `cells` cells."""

    name: str
    cells: int
    law: Law

    word = END_ROWS

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """The one number that is released for each group."""
        return ((self.name, self.law),)

    @property
    def charged(self) -> tuple[Law, ...]:
        """Return this law alone: one release of all groups."""
        return (self.law,)
