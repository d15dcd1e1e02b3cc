"""The exponential mechanism over the cells of a histogram (McSherry and Talwar 2007), for quantiles. Under the pure accountant
the cell is chosen by permute-and-flip, which costs as much: `permute_and_flip` says why what follows holds for it in epsilon.

A group has n rows, of which below(c) are in cells before c and h(c) in c itself. What is wanted is the value of rank t(n), the
*target*: a cell c with below(c) <= t(n) <= below(c) + h(c). How far another cell is from that, in rows, is its distance

    d(c) = max(0, below(c) - t(n), t(n) - below(c) - h(c)).

The mechanism returns c with a probability proportional to exp(-epsilon_0 d(c) / (2 M)), each group for itself, where M bounds the
slope s = t(n + 1) - t(n) of the target: 0 <= s <= 1 and M = max(s, 1 - s) over all n.

- The quantile q, 0 < q < 1, has t(n) = q n, so s = q and M = max(q, 1 - q).
- The smallest value is the r-th smallest, t(n) = min(r - 1/2, n / 2): a target of 0 would hold for every cell below the data,
  and there may be many. The slope is 1/2 up to n = 2 r - 1 and 0 from there on, so M = 1. The largest value is the r-th
  largest, t(n) = n - min(r - 1/2, n / 2), with slopes 1/2 and 1.

How far d moves. One row more, in cell x, moves the target by s, below(c) by 1 for c > x, below(c) + h(c) by 1 for c >= x. So the
second argument of the maximum changes by 1 - s (c > x) or -s, the third by s (c < x) or -(1 - s): each by M at most, and with
it the maximum. A row less undoes that. So n_g rows that come or go move d(c) within [-M n_g, M n_g] for every cell c of group g,
and

    log P(c) / P'(c)  =  (epsilon_0 / (2 M)) (d'(c) - d(c)) - log of the ratio of the two normalising sums

lies in an interval of length epsilon_0 n_g, whatever c is, which contains 0, as both are laws. Hence group g is released with
epsilon_0 n_g-DP, and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is (epsilon_0 n_g)^2 / 8-zCDP (Cesar
and Rogers 2021). Groups are disjoint and chosen independently, so the losses of all of them add up:

    epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2,

the L1 and the squared L2 norm of the vector of n_g, as of a count of rows. Under change_one n_g rows go and n'_g rows come, so
the range is epsilon_0 (n_g + n'_g), and the triangle inequality doubles both norms, as it does for counts (the factor is
inside `Sensitivity`).

Slices. A cell may be cut into k slices, over which its rows are spread evenly, so that a place among rows of one value can be
chosen too. Then n, t, below and h are counted in units of which a row is k, one in each slice of its cell. All of the above
holds for units: one unit moves d by M units at most, so n_g rows by M k n_g, and with the rate epsilon_0 / (2 M k) for each
unit the ranges are the same.

Ends of an error bar (after Drechsler, Globus-Harris, McMillan, Sarathy and Smith 2022). The low end of the bar of quantile q is
sought D rows below it, among n + D rows: D that are no one's are put into the first cell, and t(n) = q n. For the high end they
are put into the last cell, and t(n) = q n + D. Rows that are always there move nothing, and the slope is q, so all of the above
holds. A low end above the cell of the exact quantile has q n rows of the data before it, so a distance of D or more, whatever
n is: with c cells, that has a chance of at most c exp(-rate D).

Leaning choices, for bounds on totals (`planning.total_cuts`). What is wanted is a low cell with no more than r - 1/2 rows above
it, above(c) = n - below(c) - h(c), and nothing tells against a higher one but a public number lean c / b:

    d(c) = max(0, above(c) - (r - 1/2)) + lean c / b.

One row more, in cell x, adds 1 to above(c) for c < x and nothing for c >= x, so that d(c) moves by an amount within [0, 1]: in
one direction, whatever c is, and the public number does not move. So n_g rows that come move d(c) within [0, n_g], n_g that go
in [-n_g, 0]: an interval of length n_g, not 2 M n_g, and the rate may be epsilon_0 (McSherry and Talwar's factor of 2 is not
needed where scores move in one direction). With that rate log P(c) / P'(c) lies in an interval of length epsilon_0 n_g that
contains 0, and everything above holds; under change_one n'_g rows come and n_g go, and d(c) moves within [-n_g, n'_g]. A cell
above all rows is the less likely the farther it lies above them, by the lean alone: so lower bounds are preferred.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.permute_and_flip import (
    EXPONENTIAL,
    check_mechanism,
    choice_loss,
    mechanism_for,
    recomputed_choice_loss,
    share_of_weights,
)
from dpsql.privacy.mechanisms.rational_bounds import ln_upper, sqrt_lower

MOST_DENOMINATOR = 10**6
"""Of a quantile, so that targets of up to `MOST_ROWS` rows are exact in 64 bits."""
MOST_ROWS = 1 << 42
LEANING_DENOMINATOR = 32
"""Of the distances of leaning choices, so that their lean is near what is asked for."""
OUTSIDE = Fraction(1, 20)
"""A smallest or largest value lies outside the data with at most this probability, where a group has twice `rank` rows."""


@dataclass(frozen=True)
class Choice:
    """The choice of the quantile `quantile` of each group: from 0, the smallest value, to 1, the largest. `rank` >= 1 is r of
    these two, and 0 for all others.

    `sensitivity`: of the vector of row counts n_g. `epsilon_0` > 0 is what one row costs. `slices`: of each cell; a row is so
    many units. `padding` != 0: of an end of an error bar; so many rows are put into the last cell, or, below 0, into the
    first one. `lean` > 0: how much is added to a distance for each cell, in units of 1 / `denominator` rows (of a leaning
    choice, which looks at rows above a cell alone).
    """

    sensitivity: Sensitivity
    quantile: Fraction
    epsilon_0: Fraction
    rank: int = 0
    slices: int = 1
    padding: int = 0
    mechanism: str = EXPONENTIAL
    lean: int = field(default=0, metadata={"added": True})

    def __post_init__(self) -> None:
        if self.lean < 0 or (self.lean and (self.quantile != 1 or self.padding or self.slices != 1)):
            raise ValueError("the largest value alone leans, over whole cells")
        if not 0 <= self.quantile <= 1 or self.quantile.denominator > MOST_DENOMINATOR:
            raise ValueError(f"no quantile: {self.quantile}")
        if self.epsilon_0 <= 0 or self.sensitivity.is_zero or self.slices < 1:
            raise ValueError("a choice needs an epsilon above 0, rows that can move, and cells")
        if (self.rank >= 1) is not (self.quantile in (0, 1) and not self.padding) or self.rank < 0:
            raise ValueError("the smallest and the largest value have a rank, and no other quantile or end has")
        check_mechanism(self.mechanism)

    @property
    def most_move(self) -> Fraction:
        """M: how far one row moves a distance at most."""
        return max(self.quantile, 1 - self.quantile)

    @property
    def rate(self) -> Fraction:
        """By how much the logarithm of a weight falls for each unit of distance: epsilon_0 / (2 M k) with k slices; epsilon_0 for
        a leaning choice, whose distances all move in one direction."""
        if self.lean:
            return self.epsilon_0
        return self.epsilon_0 / (2 * self.most_move * self.slices)

    @property
    def denominator(self) -> int:
        """Return what `targets` are multiples of the inverse of."""
        if self.lean:
            return LEANING_DENOMINATOR
        return 2 if self.rank else self.quantile.denominator

    def targets(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """t(n) times `denominator` for groups of n = `rows` units, padding included; of a leaning choice n - (r - 1/2), what is
        above which is not looked at. Raises OverflowError beyond `MOST_ROWS`, which do not exist."""
        if rows.size and int(rows.max()) > MOST_ROWS:
            raise OverflowError("too many rows")
        if self.lean:
            return (2 * (rows - self.rank) + 1) * (self.denominator // 2)
        padding = abs(self.padding) * self.slices
        if not self.rank:
            sought = (rows - padding) * self.quantile.numerator
            return np.asarray(sought + (padding * self.denominator if self.padding > 0 else 0))
        inside = np.minimum(rows, (2 * self.rank - 1) * self.slices)
        halves = inside if self.quantile == 0 else np.asarray(2 * rows - inside)
        return halves * (self.denominator // 2)

    @property
    def loss(self) -> PrivacyLoss:
        """The exact cost of one number for every group."""
        return choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` from the weights: one row moves the logarithm of a weight up or down by at most `rate` times the larger
        part of a row that is before or behind the target, as groups on both sides of every bend of the target show."""
        if self.lean:
            return recomputed_choice_loss(self.mechanism, self._leaning_span(), self.sensitivity)
        bend = 2 * self.rank * self.slices
        sizes = np.array([0, bend, bend + 1], dtype=np.int64) + abs(self.padding) * self.slices
        steps = self.targets(sizes + 1) - self.targets(sizes)
        slopes = [Fraction(int(step), self.denominator) for step in steps]
        span = 2 * self.slices * self.rate * max(max(slope, 1 - slope) for slope in slopes)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)

    def _leaning_span(self) -> Fraction:
        """Return how far apart one row moves two log weights: of a cell below it and of one that it is not above, by groups on
        both sides of the rank."""
        sizes = np.arange(2 * self.rank + 2, dtype=np.int64)
        above = np.maximum(self.targets(sizes), 0)  # of a cell with all rows above it; of one with none it stays 0
        moves = [Fraction(int(step), self.denominator) for step in np.diff(above)]
        return self.rate * (max(*moves, Fraction(0)) - min(*moves, Fraction(0)))

    def rank_error(self, cells: int, beta: float) -> float:
        """Return a distance d in rows that is exceeded with a probability of at most `beta`, whatever the data.

        The weights of all slices beyond d are at most slices exp(-rate d) in sum (`permute_and_flip.share_of_weights`). A
        leaning choice has a cell with a distance of 0 and lean (cells - 1) / b on top at most.
        """
        leaning = float(Fraction(self.lean * (cells - 1), self.denominator))
        spread = log(cells * self.slices * float(share_of_weights(self.mechanism)) / beta)
        return spread / float(self.rate * self.slices) + leaning


def epsilon_of_a_row(sensitivity: Sensitivity, part: PrivacyLoss) -> Fraction:
    """Return the largest epsilon_0 of a choice that costs at most `part`: its epsilon, or its rho where epsilon is None."""
    if part.epsilon is not None:
        return part.epsilon / sensitivity.l1
    assert part.rho is not None
    return sqrt_lower(8 * part.rho / sensitivity.l2_squared)


@dataclass(frozen=True)
class Lean:
    """What a leaning choice is for: a bound on what is added in `groups` groups, on a grid on which weights are to fall by
    exp(-`fall`) from cell to cell."""

    groups: int
    fall: Fraction


def leaning_choice(sensitivity: Sensitivity, lean: Lean, part: PrivacyLoss) -> Choice:
    """Return the choice of a large value that costs at most `part`.

    Noise of scale C / epsilon_0 in each of G groups costs as much as G / epsilon_0 units above C lose by a higher C, so that many
    are to be above the choice; 1 / epsilon_0 more, as far as the choice itself errs.
    """
    epsilon_0, mechanism = epsilon_of_a_row(sensitivity, part), mechanism_for(part)
    rank = ceil((1 + lean.groups) / epsilon_0 + Fraction(1, 2))
    step = epsilon_0 / LEANING_DENOMINATOR
    return Choice(sensitivity, Fraction(1), epsilon_0, rank, 1, 0, mechanism, max(1, round(lean.fall / step)))


def choice_for(sensitivity: Sensitivity, quantile: Fraction, cells: int, part: PrivacyLoss, slices: int = 1) -> Choice:
    """Return the choice among `cells` cells of `slices` slices with the largest epsilon_0 that costs at most `part`.

    The smallest and the largest value have the rank from which slices outside the data have a chance of their number times
    exp(-rate (rank - 1/2)) <= OUTSIDE in sum at most, or half of that (`permute_and_flip.share_of_weights`).
    """
    epsilon_0, mechanism = epsilon_of_a_row(sensitivity, part), mechanism_for(part)
    likely = share_of_weights(mechanism) * cells * slices / OUTSIDE
    rank = ceil(ln_upper(likely) * 2 / epsilon_0 + Fraction(1, 2)) if quantile in (0, 1) else 0
    return Choice(sensitivity, quantile, epsilon_0, rank, slices, mechanism=mechanism)


def end_for(
    sensitivity: Sensitivity, quantile: Fraction, low: bool, cells: int, part: PrivacyLoss, missed: Fraction
) -> Choice:
    """Return the choice of the `low` or high end of an error bar, which the exact quantile is beyond with a probability of at
    most `missed`: one row farther than D, as SQL's continuous quantiles lie between neighbouring rows."""
    mechanism = mechanism_for(part)
    bare = Choice(sensitivity, quantile, epsilon_of_a_row(sensitivity, part), padding=1, mechanism=mechanism)
    padding = ceil(ln_upper(max(Fraction(1), share_of_weights(mechanism) * cells / missed)) / bare.rate) + 1
    return replace(bare, padding=-padding if low else padding)
