"""Permute-and-flip (McKenna and Sheldon 2020, "Permute-and-Flip: a new mechanism for differentially private selection", arXiv
2010.12603): the choice among cells that is never farther off, on average, than the exponential mechanism's at the same epsilon.

The law. Cell c has the distance d(c) >= 0 from what is wanted, and the least distance is 0. Each cell flips a coin of its own
that shows heads with probability p(c) = exp(-rate d(c)), so that a cell of distance 0 always does; one of the cells with
heads is chosen, each with the same chance. Their mechanism asks cells in a random order for heads until one shows them, and
the first one of a random order among those with heads is any of them with the same chance, so that both are one law.

It is also the law of the cell with the largest E(c) - rate d(c), with independent E(c) of density exp(-x), x >= 0 (Ding,
Kifer, Steinke, Wang, Xiao and Zhang 2021, arXiv 2105.07260). Given that the largest lies at x >= 0, where one of distance 0
keeps it, with y = exp(-x) the cell c is at x with the density p(c) y and all others are below with probability 1 - p(i) y
each. So

    P(c)  =  p(c) integral_0^1 prod_{i != c} (1 - p(i) y) dy.

That is the law above: given heads of c, H other cells show heads, and the integral is E[(1 - y)**H] = 1 / (1 + H) on average.

What it costs. Let a neighbour move d(c) by m(c), up to one number that is the same for all c, with m(c) in an interval of
length s. Fix E(i) of all cells but c. Then c is chosen when E(c) exceeds a threshold t(c) = max_{i != c} (E(i) - rate d(i)) +
rate d(c), and the neighbour moves t(c) by at most rate s. For every t, P(E > t + rate s) >= exp(-rate s) P(E > t), as P(E >
t) is min(1, exp(-t)). The same holds on average over all E(i), and so for every set of cells: the choice is (rate s)-DP. In
words, the range of the moves is charged as by the exponential mechanism: what `exponential`, `most_frequent` and `end_rows`
say about how far distances move holds for both, with epsilon_0 n_g for each group g of a unit with n_g rows there.

What does not hold is a bounded range: log P(c) / P'(c) may be anywhere in [-rate s, rate s]. So it is charged by epsilon. In
zCDP, an x-DP choice costs f(x) = x tanh(x / 2) (`pure_to_zcdp`), up to four times what the exponential mechanism does, which is
therefore used there. Groups are chosen independently, so their Renyi divergences add up. As f(x) / x rises, n_g <= m with
sum n_g = n cost at most (n / m) f(epsilon_0 m).

How far off it may be. A cell with d(c) > 0 is chosen with probability p(c) / 2 at most: one of distance 0 shows heads as
well. The exponential mechanism chooses it with probability p(c) at most, as its weights have a sum of at least 1. So cells
that are farther off than D have a chance of cells exp(-rate D) in all, and half of that by permute-and-flip
(`share_of_weights`).
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.pure_to_zcdp import recomputed_rho_of_pure, rho_of_pure

EXPONENTIAL, PERMUTE_AND_FLIP = "exponential", "permute-and-flip"
CHOICE_MECHANISMS = (EXPONENTIAL, PERMUTE_AND_FLIP)
"""How a cell is chosen, given the distances of all cells."""


def mechanism_for(part: PrivacyLoss) -> str:
    """Return the mechanism that is nearer at the price `part`: permute-and-flip where epsilon is counted, and where rho alone is
    counted the exponential mechanism."""
    return EXPONENTIAL if part.epsilon is None else PERMUTE_AND_FLIP


def check_mechanism(mechanism: str) -> None:
    """Raise ValueError for a word that is no mechanism of choices."""
    if mechanism not in CHOICE_MECHANISMS:
        raise ValueError(f"no choice is made by: {mechanism}")


def share_of_weights(mechanism: str) -> Fraction:
    """Return the largest chance of a cell with d(c) > 0, as a multiple of exp(-rate d(c)), whatever the other distances are."""
    return Fraction(1) if mechanism == EXPONENTIAL else Fraction(1, 2)


def choice_loss(mechanism: str, range_of_a_row: Fraction, sensitivity: Sensitivity) -> PrivacyLoss:
    """Return the cost of one number for every group. `range_of_a_row`: of the moves of rate d(c) by one row; `sensitivity`: of
    the vector of n_g."""
    epsilon = range_of_a_row * sensitivity.l1
    if mechanism == EXPONENTIAL:
        return PrivacyLoss(epsilon, Fraction(0), range_of_a_row**2 * sensitivity.l2_squared / 8)
    most = min(sensitivity.linf, sensitivity.l1)
    return PrivacyLoss(epsilon, Fraction(0), Fraction(sensitivity.l1, most) * rho_of_pure(most * range_of_a_row))


def recomputed_choice_loss(mechanism: str, range_of_a_row: Fraction, sensitivity: Sensitivity) -> PrivacyLoss:
    """`choice_loss` by the second road: of permute-and-flip from the divergence of one group that moves as far as one may."""
    if mechanism == EXPONENTIAL:
        span = range_of_a_row
        return PrivacyLoss(span * sensitivity.l1, Fraction(0), span * span * sensitivity.l2_squared / 8)
    most = min(sensitivity.linf, sensitivity.l1)
    alone = recomputed_rho_of_pure(range_of_a_row * most)
    return PrivacyLoss(sensitivity.l1 * range_of_a_row, Fraction(0), alone * sensitivity.l1 / most)
