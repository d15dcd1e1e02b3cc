"""The exponential mechanism over the cells of a histogram (McSherry and Talwar 2007), for quantiles. Under the pure accountant
the cell is chosen by permute-and-flip, which costs as much: `exponential` proves that the following holds for it in epsilon.

A group has n rows, of which below(c) are in cells before c and h(c) in c itself. The goal is the value of rank t(n), the
*target*: a cell c with below(c) <= t(n) <= below(c) + h(c). The distance of any cell from this goal, in rows, is

    d(c) = max(0, below(c) - t(n), t(n) - below(c) - h(c)).

The mechanism returns c with a probability proportional to exp(-epsilon_0 d(c) / (2 M)), independently for each group. M follows
from the slope s = t(n + 1) - t(n) of the target: 0 <= s <= 1 and M = max(s, 1 - s) over all n.

- The quantile q, 0 < q < 1, has t(n) = q n, so s = q and M = max(q, 1 - q).
- The smallest value is released as the r-th smallest, t(n) = min(r - 1/2, n / 2): a target of 0 would hold for every cell below
  the data, and there may be many. The slope is 1/2 up to n = 2 r - 1 and 0 from there on, so M = 1. The largest value is
  released as the r-th largest, t(n) = n - min(r - 1/2, n / 2), with slopes 1/2 and 1.

How far d moves. An added row in cell x moves the target by s, below(c) by 1 for c > x, below(c) + h(c) by 1 for c >= x. So the
second argument of the maximum changes by 1 - s (c > x) or -s, the third by s (c < x) or -(1 - s): each by at most M, and so
does the maximum. Removing a row undoes that. So n_g added or removed rows move d(c) within [-M n_g, M n_g] for every cell c of
group g, and

    log P(c) / P'(c)  =  (epsilon_0 / (2 M)) (d'(c) - d(c)) - log of the ratio of the two normalising sums

lies, for all c, in one interval of length epsilon_0 n_g, which contains 0 because both are probability laws. Hence group g is
released with epsilon_0 n_g-DP, and with a *bounded range* of epsilon_0 n_g (Durfee and Rogers 2019), which is
(epsilon_0 n_g)^2 / 8-zCDP (Cesar and Rogers 2021). Groups are disjoint and their cells are chosen independently, so the losses of
all groups add up:

    epsilon = epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum n_g^2,

the L1 and the squared L2 norm of the vector of n_g, as for a count of rows. Under change_one n_g rows are removed and n'_g rows
added, so the range is epsilon_0 (n_g + n'_g), and the triangle inequality doubles both norms, as for counts (the factor is
included in `Sensitivity`).

Slices. A cell may be cut into k slices, over which its rows are spread evenly, so that a place among rows with equal values can
be chosen too. Then n, t, below and h are counted in parts: a row is k parts, one in each slice of its cell. All of the above
holds for parts: one part moves d by at most M parts, so n_g rows move it by at most M k n_g, and with the rate
epsilon_0 / (2 M k) per part the ranges are the same.

Ends of an error bar (after Drechsler, Globus-Harris, McMillan, Sarathy and Smith 2022). The low end of the bar of quantile q is
searched D rows below it, among n + D rows: D rows that belong to nobody are put into the first cell, and t(n) = q n. For the high
end they are put into the last cell, and t(n) = q n + D. These constant rows move nothing, and the slope is q, so all of the above
holds. A low end above the cell of the exact quantile has q n rows of the data before it, so its distance is at least D, whatever
n is: with c cells, this has a probability of at most c exp(-rate D).

Leaning choices, for bounds on totals (`planning.total_cuts`). The goal is a low cell with at most r - 1/2 rows above it, where
above(c) = n - below(c) - h(c); higher cells are penalised only by a public number lean c / b:

    d(c) = max(0, above(c) - (r - 1/2)) + lean c / b.

An added row in cell x adds 1 to above(c) for c < x and nothing for c >= x, so d(c) moves by an amount within [0, 1]: in the same
direction for all c, and the public number does not move. So n_g added rows move d(c) within [0, n_g], n_g removed rows within
[-n_g, 0]: an interval of length n_g, not 2 M n_g, and the rate may be epsilon_0 (McSherry and Talwar's factor of 2 is not
needed where scores move in one direction). With that rate log P(c) / P'(c) lies in an interval of length epsilon_0 n_g that
contains 0, and everything above holds; under change_one n'_g rows are added and n_g removed, and d(c) moves within [-n_g, n'_g].
A cell above all rows is less likely the farther it lies above them, only because of the lean: so lower bounds are preferred.

Permute-and-flip (McKenna and Sheldon 2020, "Permute-and-Flip: a new mechanism for differentially private selection", arXiv
2010.12603): a choice among cells that is on average never farther off than that of the exponential mechanism at the same epsilon.

The law. Cell c has distance d(c) >= 0 from the goal, and the least distance is 0. Each cell flips its own coin, which shows heads
with probability p(c) = exp(-rate d(c)), so that a cell of distance 0 always shows heads; one of the cells with heads is chosen
uniformly. The mechanism of McKenna and Sheldon asks cells in a random order until one shows heads. The first cell with heads in a
random order is uniform among those with heads, so both are the same law.

It is also the law of the cell with the largest E(c) - rate d(c), with independent E(c) of density exp(-x), x >= 0 (Ding,
Kifer, Steinke, Wang, Xiao and Zhang 2021, arXiv 2105.07260). The largest lies at some x >= 0, because of a cell with distance 0.
With y = exp(-x), cell c is at x with density p(c) y, and each other cell i is below with probability 1 - p(i) y. So

    P(c)  =  p(c) integral_0^1 prod_{i != c} (1 - p(i) y) dy.

That is the law above: given heads of c, H other cells show heads, and the integral is E[(1 - y)**H] = 1 / (1 + H) on average.

What it costs. Let a neighbour move d(c) by m(c), up to a constant that is the same for all c, with m(c) in an interval of
length s. Fix E(i) for all cells except c. Then c is chosen when E(c) exceeds a threshold
t(c) = max_{i != c} (E(i) - rate d(i)) + rate d(c), and the neighbour moves t(c) by at most rate s. For every t,
P(E > t + rate s) >= exp(-rate s) P(E > t), because P(E > t) = min(1, exp(-t)). The same holds on average over all E(i), and so
for every set of cells: the choice is (rate s)-DP. In words, the range of the moves is charged as for the exponential mechanism:
the statements of `exponential`, `most_frequent` and `end_rows` about how far distances move hold for both, with epsilon_0 n_g
for each group g in which a unit has n_g rows.

A bounded range does not hold: log P(c) / P'(c) may be anywhere in [-rate s, rate s]. So it is charged by epsilon. In zCDP, an
x-DP choice costs f(x) = x tanh(x / 2) (`privacy.loss`), up to four times as much as the exponential mechanism, which is therefore
used there. Cells of different groups are chosen independently, so their Renyi divergences add up. As f(x) / x rises, n_g <= m
with sum n_g = n cost at most (n / m) f(epsilon_0 m).

How far off it may be. A cell with d(c) > 0 is chosen with probability at most p(c) / 2, because a cell of distance 0 shows heads
as well. The exponential mechanism chooses it with probability at most p(c), because its weights sum to at least 1. So all cells
farther off than D together have a probability of at most their number times exp(-rate D), and half of that with permute-and-flip
(`share_of_weights`).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from dpsql.privacy.loss import PrivacyLoss, recomputed_rho_of_pure, rho_of_pure
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.rational_bounds import ln_upper, sqrt_lower
from dpsql.storage.records import dataclass, field, replace

# --- permute-and-flip -------------------------------------------------------------------------------------------------

EXPONENTIAL, PERMUTE_AND_FLIP = "exponential", "permute-and-flip"
CHOICE_MECHANISMS = (EXPONENTIAL, PERMUTE_AND_FLIP)
"""Mechanisms that choose a cell, given the distances of all cells."""


def mechanism_for(part: PrivacyLoss) -> str:
    """Return the mechanism with the smaller error for the loss `part`: permute-and-flip if it limits epsilon, the exponential
    mechanism if it limits rho alone."""
    return EXPONENTIAL if part.epsilon is None else PERMUTE_AND_FLIP


def check_mechanism(mechanism: str) -> None:
    if mechanism not in CHOICE_MECHANISMS:
        raise ValueError(f"no choice is made by: {mechanism}")


def share_of_weights(mechanism: str) -> Fraction:
    """Return the largest probability of a cell with d(c) > 0, as a multiple of exp(-rate d(c)), for any other distances."""
    return Fraction(1) if mechanism == EXPONENTIAL else Fraction(1, 2)


def choice_loss(mechanism: str, range_of_a_row: Fraction, sensitivity: Sensitivity) -> PrivacyLoss:
    """Return the privacy loss of one number for every group. `range_of_a_row`: the range of the moves of rate d(c) by one row;
    `sensitivity`: of the vector of n_g."""
    epsilon = range_of_a_row * sensitivity.l1
    if mechanism == EXPONENTIAL:
        return PrivacyLoss(epsilon, Fraction(0), range_of_a_row**2 * sensitivity.l2_squared / 8)
    most = min(sensitivity.linf, sensitivity.l1)
    return PrivacyLoss(epsilon, Fraction(0), Fraction(sensitivity.l1, most) * rho_of_pure(most * range_of_a_row))


def recomputed_choice_loss(mechanism: str, range_of_a_row: Fraction, sensitivity: Sensitivity) -> PrivacyLoss:
    """Return `choice_loss` recomputed: for permute-and-flip from the divergence of one group that moves as far as it may."""
    if mechanism == EXPONENTIAL:
        span = range_of_a_row
        return PrivacyLoss(span * sensitivity.l1, Fraction(0), span * span * sensitivity.l2_squared / 8)
    most = min(sensitivity.linf, sensitivity.l1)
    alone = recomputed_rho_of_pure(range_of_a_row * most)
    return PrivacyLoss(sensitivity.l1 * range_of_a_row, Fraction(0), alone * sensitivity.l1 / most)


# --- exponential ------------------------------------------------------------------------------------------------------


class RowChoice:
    """What laws of choices from the rows of a group have in common."""

    sensitivity: Sensitivity
    epsilon_0: Fraction
    mechanism: str

    @property
    def rate(self) -> Fraction:
        """The decrease of a log weight per row."""
        return self.epsilon_0

    @property
    def loss(self) -> PrivacyLoss:
        return choice_loss(self.mechanism, self.epsilon_0, self.sensitivity)

    def count_error(self, choices: int, beta: float) -> float:
        """Return a number d of rows by which what was chosen may have fewer than what has most; for any data, the difference
        exceeds d with probability at most `beta`.

        The probabilities of all choices beyond d add up to at most (choices - 1) exp(-rate d) (`share_of_weights`).
        """
        share = float(share_of_weights(self.mechanism))
        return max(0.0, log((choices - 1) * share / beta) / float(self.rate)) if choices > 1 else 0.0


MOST_DENOMINATOR = 10**6
"""Largest denominator of a quantile, so that targets of up to `MOST_ROWS` rows are exact in 64 bits."""
MOST_ROWS = 1 << 42
LEANING_DENOMINATOR = 32
"""Denominator of the distances of leaning choices, so that their lean is near the requested one."""
OUTSIDE = Fraction(1, 20)
"""Largest probability that a smallest or largest value lies outside the data, in groups with at least twice `rank` rows."""


@dataclass(frozen=True)
class Choice(RowChoice):
    """The law that chooses the quantile `quantile` of each group, from 0, the smallest value, to 1, the largest. `rank` is r >= 1
    for these two, and 0 for all others.

    `sensitivity`: of the vector of row counts n_g. `epsilon_0` > 0: the privacy loss per row. `slices`: the number k of slices
    per cell, and so of parts per row. `padding` != 0, for an end of an error bar: the number of rows put into the last cell or,
    if negative, into the first. `lean` > 0, for a leaning choice, which counts only rows above a cell: the amount by which the
    distance grows per cell, in units of 1 / `denominator` rows.
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
        """M, the largest amount by which one row moves a distance."""
        return max(self.quantile, 1 - self.quantile)

    @property
    def rate(self) -> Fraction:
        """The decrease of a log weight per part of distance: epsilon_0 / (2 M k) with k slices; epsilon_0 for a leaning choice,
        whose distances all move in one direction."""
        if self.lean:
            return self.epsilon_0
        return self.epsilon_0 / (2 * self.most_move * self.slices)

    @property
    def denominator(self) -> int:
        if self.lean:
            return LEANING_DENOMINATOR
        return 2 if self.rank else self.quantile.denominator

    def targets(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return t(n) times `denominator` for groups of n = `rows` parts, padding included. For a leaning choice t(n) is
        n - (r - 1/2), and cells above it have no distance. Raises OverflowError above `MOST_ROWS`, which no data reaches."""
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

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed from the weights: one row moves a log weight up or down by at most `rate` times the larger
        part of the row before or behind the target, evaluated for groups on both sides of every bend of the target."""
        if self.lean:
            return recomputed_choice_loss(self.mechanism, self._leaning_span(), self.sensitivity)
        bend = 2 * self.rank * self.slices
        sizes = np.array([0, bend, bend + 1], dtype=np.int64) + abs(self.padding) * self.slices
        steps = self.targets(sizes + 1) - self.targets(sizes)
        slopes = [Fraction(int(step), self.denominator) for step in steps]
        span = 2 * self.slices * self.rate * max(max(slope, 1 - slope) for slope in slopes)
        return recomputed_choice_loss(self.mechanism, span, self.sensitivity)

    def _leaning_span(self) -> Fraction:
        """Return how far apart one row moves two log weights, of a cell below the row and of a cell that is not below it, from
        groups on both sides of the rank."""
        sizes = np.arange(2 * self.rank + 2, dtype=np.int64)
        above = np.maximum(self.targets(sizes), 0)  # of a cell with all rows above it; of one with none it is 0
        moves = [Fraction(int(step), self.denominator) for step in np.diff(above)]
        return self.rate * (max(*moves, Fraction(0)) - min(*moves, Fraction(0)))

    def rank_error(self, cells: int, beta: float) -> float:
        """Return a distance d in rows that is exceeded with probability at most `beta` for any data.

        The probabilities of all slices beyond d add up to at most their number times exp(-rate d)
        (`exponential.share_of_weights`). For a leaning choice some cell has distance 0 plus at most lean (cells - 1) / b.
        """
        leaning = float(Fraction(self.lean * (cells - 1), self.denominator))
        spread = log(cells * self.slices * float(share_of_weights(self.mechanism)) / beta)
        return spread / float(self.rate * self.slices) + leaning


def epsilon_of_a_row(sensitivity: Sensitivity, part: PrivacyLoss) -> Fraction:
    """Return the largest epsilon_0 of a choice whose loss is within `part`: within its epsilon, or its rho if epsilon is None."""
    if part.epsilon is not None:
        return part.epsilon / sensitivity.l1
    assert part.rho is not None
    return sqrt_lower(8 * part.rho / sensitivity.l2_squared)


@dataclass(frozen=True)
class Lean:
    """The purpose of a leaning choice: a bound for sums in `groups` groups, on a grid where weights should fall by a factor of
    exp(-`fall`) from cell to cell."""

    groups: int
    fall: Fraction


def leaning_choice(sensitivity: Sensitivity, lean: Lean, part: PrivacyLoss) -> Choice:
    """Return the choice of a large value whose privacy loss is at most `part`.

    When C rises, noise of scale C / epsilon_0 in each of G groups grows as fast as the clamping of G / epsilon_0 units above C
    shrinks, so that many units should be above the choice; add 1 / epsilon_0 for the error of the choice itself.
    """
    epsilon_0, mechanism = epsilon_of_a_row(sensitivity, part), mechanism_for(part)
    rank = ceil((1 + lean.groups) / epsilon_0 + Fraction(1, 2))
    step = epsilon_0 / LEANING_DENOMINATOR
    return Choice(sensitivity, Fraction(1), epsilon_0, rank, 1, 0, mechanism, max(1, round(lean.fall / step)))


def choice_for(sensitivity: Sensitivity, quantile: Fraction, cells: int, part: PrivacyLoss, slices: int = 1) -> Choice:
    """Return the choice among `cells` cells of `slices` slices with the largest epsilon_0 whose loss is at most `part`.

    The smallest and the largest value get the least rank with which all slices outside the data have a total probability of at
    most OUTSIDE: their number times exp(-rate (rank - 1/2)), or half of that (`exponential.share_of_weights`).
    """
    epsilon_0, mechanism = epsilon_of_a_row(sensitivity, part), mechanism_for(part)
    likely = share_of_weights(mechanism) * cells * slices / OUTSIDE
    rank = ceil(ln_upper(likely) * 2 / epsilon_0 + Fraction(1, 2)) if quantile in (0, 1) else 0
    return Choice(sensitivity, quantile, epsilon_0, rank, slices, mechanism=mechanism)


def end_for(
    sensitivity: Sensitivity, quantile: Fraction, low: bool, cells: int, part: PrivacyLoss, missed: Fraction
) -> Choice:
    """Return the choice of the `low` or high end of an error bar beyond which the exact quantile lies with probability at most
    `missed`. It is one row farther out than D, because SQL's continuous quantiles lie between neighbouring rows."""
    mechanism = mechanism_for(part)
    bare = Choice(sensitivity, quantile, epsilon_of_a_row(sensitivity, part), padding=1, mechanism=mechanism)
    padding = ceil(ln_upper(max(Fraction(1), share_of_weights(mechanism) * cells / missed)) / bare.rate) + 1
    return replace(bare, padding=-padding if low else padding)
