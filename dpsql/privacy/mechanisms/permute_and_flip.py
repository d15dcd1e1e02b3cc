"""Permute-and-flip (McKenna and Sheldon 2020, "Permute-and-Flip: a new mechanism for differentially private selection", arXiv
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
x-DP choice costs f(x) = x tanh(x / 2) (`pure_to_zcdp`), up to four times as much as the exponential mechanism, which is therefore
used there. Cells of different groups are chosen independently, so their Renyi divergences add up. As f(x) / x rises, n_g <= m
with sum n_g = n cost at most (n / m) f(epsilon_0 m).

How far off it may be. A cell with d(c) > 0 is chosen with probability at most p(c) / 2, because a cell of distance 0 shows heads
as well. The exponential mechanism chooses it with probability at most p(c), because its weights sum to at least 1. So all cells
farther off than D together have a probability of at most their number times exp(-rate D), and half of that with permute-and-flip
(`share_of_weights`).
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.pure_to_zcdp import recomputed_rho_of_pure, rho_of_pure

EXPONENTIAL, PERMUTE_AND_FLIP = "exponential", "permute-and-flip"
CHOICE_MECHANISMS = (EXPONENTIAL, PERMUTE_AND_FLIP)
"""Mechanisms that choose a cell, given the distances of all cells."""


def mechanism_for(part: PrivacyLoss) -> str:
    """Return the mechanism with the smaller error for the loss `part`: permute-and-flip if it limits epsilon, the exponential
    mechanism if it limits rho alone."""
    return EXPONENTIAL if part.epsilon is None else PERMUTE_AND_FLIP


def check_mechanism(mechanism: str) -> None:
    """Raise ValueError unless `mechanism` is one of `CHOICE_MECHANISMS`."""
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
    """Return `choice_loss` recomputed independently: for permute-and-flip from the divergence of one group that moves as far as a
    group may."""
    if mechanism == EXPONENTIAL:
        span = range_of_a_row
        return PrivacyLoss(span * sensitivity.l1, Fraction(0), span * span * sensitivity.l2_squared / 8)
    most = min(sensitivity.linf, sensitivity.l1)
    alone = recomputed_rho_of_pure(range_of_a_row * most)
    return PrivacyLoss(sensitivity.l1 * range_of_a_row, Fraction(0), alone * sensitivity.l1 / most)
