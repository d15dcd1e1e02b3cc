"""Comparisons with a threshold: which questions can be compared, in which direction one unit moves their sums, and the cost of a
run."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from dpsql.errors.exceptions import refuse
from dpsql.plan.formulas import NoisyValue, Operation, Operator
from dpsql.plan.plan import Term, TermKind
from dpsql.plan.stability import owned
from dpsql.policy import Policy
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.accounting import Accountant
from dpsql.privacy.loss import Neighbours, plain_decimal, pure_of_rho
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold, law_for
from dpsql.privacy.mechanisms.contract import Sensitivity, TermNoise
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.registry import ABOVE_THRESHOLD, require_allowed
from dpsql.storage.records import dataclass

_SUMS = (TermKind.SUM, TermKind.DISTINCT_SUM)


@dataclass(frozen=True)
class ComparedSum:
    """The single sum of a compared question. `direction`: 1 if an added unit can only raise it, -1 if it can only lower it, 0 if
    it may do both."""

    term: TermNoise
    sensitivity: Sensitivity
    direction: int

    def steps(self, threshold: Fraction, shift: int) -> int:
        """Return `threshold` in steps of the noise grid, rounded up: whole steps reach it exactly where the number does."""
        return ceil(threshold * Fraction(2) ** (self.term.grid - shift))


def compared_sum(priced: PricedBlock, policy: Policy) -> ComparedSum:
    """Return the single sum of a block, priced for Laplace noise. Raises Refusal watch_question for a block with anything
    else, and mechanism_off where the policy allows no comparisons."""
    require_allowed([ABOVE_THRESHOLD], policy.mechanisms)
    block, noise = priced.block, priced.noise
    if block.keys or block.measurements or len(block.terms) != 1 or len(noise.terms) != 1 or len(block.formulas) != 1:
        raise refuse("watch_question")
    (term,), (term_noise,), ((_, formula, _),) = block.terms, noise.terms, block.formulas
    if isinstance(formula, Operation) and formula.operator is Operator.WHOLE:
        (formula,) = formula.operands
    if formula != NoisyValue(term.name) or not isinstance(term_noise.noise, Laplace):
        raise refuse("watch_question")
    direction = _direction(term) if owned(block.source, policy) or policy.privacy_unit is None else 0
    if policy.neighbours is not Neighbours.ADD_REMOVE:
        direction = 0
    return ComparedSum(term_noise, term_noise.noise.sensitivity, direction)


def require_units(compared: ComparedSum, threshold: Fraction, least: int, policy: Policy) -> None:
    """Check that a sum above `threshold` implies that `least` privacy units are counted, with noise.

    A sum over no units is 0, and each added unit moves it by at most d (privacy.md 4), so a sum over n units is at most n d, and
    sum / d estimates n from below. A comparison shows either nothing or the sum with the noise of that estimate, which is at
    least the threshold (the gap of AboveThreshold is never negative). So with threshold >= least * d no group is shown in which
    fewer than `least` units are counted, with noise. Privacy does not depend on this check: min_units filters released numbers.
    Raises Refusal watch_units.
    """
    grid = Fraction(2) ** compared.term.grid
    most = Fraction(compared.sensitivity.l1, policy.neighbours.factor) / grid
    if threshold < least * most:
        raise refuse(
            "watch_units",
            least=f"{least:,}",
            threshold=plain_decimal(threshold),
            most=plain_decimal(Fraction(ceil(most * 1000), 1000)),
            needed=f"{ceil(least * most):,}",
        )


def _direction(term: Term) -> int:
    """Return the direction in which the rows of an added unit move a term.

    The rows of an added unit join those of all others and remove none (privacy.md 3: relations are computed unit by unit). So
    counts, also of distinct values, grow, and a sum moves in one direction if its clamped values have one sign.
    """
    if term.kind not in _SUMS or term.lower >= term.centre:
        return 1
    return -1 if term.upper <= term.centre else 0


def run_law(sums: Sequence[ComparedSum], accountant: Accountant, epsilon: Fraction) -> AboveThreshold:
    """Return the law of a run that may compare all of `sums`, at the loss that the accountant allows a question with
    `dp.epsilon = epsilon`.

    Raises Refusal watch_grids where the sums are rounded to different grids.
    """
    if len({compared.term.grid for compared in sums}) > 1:
        raise refuse("watch_grids")
    directions = {compared.direction for compared in sums}
    widest = max((compared.sensitivity for compared in sums), key=lambda moved: moved.l1)
    part = accountant.request(epsilon)
    pure = pure_of_rho(part.rho) if part.epsilon is None and part.rho is not None else part.epsilon
    assert pure is not None
    law = law_for(widest, pure, len(directions) == 1 and 0 not in directions)
    claimed, again = accountant.charge(law.loss, part.delta), accountant.charge(law.recomputed_loss(), part.delta)
    for name in ("epsilon", "rho"):
        allowed = getattr(part, name)
        if allowed is not None and not getattr(again, name) <= getattr(claimed, name) <= allowed:
            raise refuse("price_disagrees")
    return law


def comparable(compared: ComparedSum, law: AboveThreshold, grid: int, direction: int) -> bool:
    """Return whether a run with sums on `grid`, and of `direction` if its law is monotone, may also compare this sum."""
    same_way = not law.monotone or compared.direction == direction
    return compared.term.grid == grid and same_way and law.covers(compared.sensitivity)
