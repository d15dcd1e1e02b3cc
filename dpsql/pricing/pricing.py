"""From bounded blocks to mechanisms and a price: a function of SQL, policy and options only.

A question's budget is split evenly over the things it measures: every basis term that a unit can move, and the
partition selection of every block that needs one of its own. "Evenly" is in what the accountant counts, epsilon or
rho. Then the finished mechanisms are asked for their loss again, by the second road of each; a difference is a fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.plan.combinations import group_count
from dpsql.plan.formulas import terms_of
from dpsql.plan.intervals import Type
from dpsql.plan.plan import BoundedBlock, Caps, Key, Term, TermKind
from dpsql.policy import Policy
from dpsql.pricing.expected_error import term_errors
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.options import Options
from dpsql.pricing.sensitivity import groups_per_unit, sensitivity
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.loss import Neighbours, PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.contract import KeyColumn, Noise, NoisePlan, Norm, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.partition_selection import choose_selection, threshold
from dpsql.privacy.mechanisms.registry import MECHANISMS, Mechanism, askable


@dataclass(frozen=True)
class PricedBlock:
    """A bounded block with its mechanisms; `loss` is what the accountant is told."""

    block: BoundedBlock
    noise: NoisePlan
    loss: PrivacyLoss


@dataclass(frozen=True)
class Price:
    """All blocks of a question and their loss together."""

    blocks: tuple[PricedBlock, ...]
    loss: PrivacyLoss


Widest = Callable[[Price], float]
"""The widest error bar that is expected of a question's outputs at a price."""


def price(
    blocks: tuple[BoundedBlock, ...],
    options: Options,
    policy: Policy,
    accountant: Accountant,
    widest: Widest | None = None,
) -> Price:
    """Mechanisms and price. `widest` is what `target_error` speaks of, the errors of the terms unless it is given. Raises a
    refusal when the options allow no mechanism."""
    if options.target_error is not None and any(block.measurements for block in blocks):
        raise refuse("target_error_choice")
    if options.target_error is not None and blocks:
        return _cheapest(blocks, options, policy, accountant, widest or (lambda priced: widest_term(priced, options)))
    return _priced(blocks, options, policy, accountant)


def _priced(blocks: tuple[BoundedBlock, ...], options: Options, policy: Policy, accountant: Accountant) -> Price:
    if not blocks:
        return Price((), PrivacyLoss.nothing())
    shares = _Shares(blocks, options, policy, accountant)
    priced = tuple(_price_block(block, shares, policy) for block in blocks)
    total = PrivacyLoss.nothing()
    for one in priced:
        total = total + one.loss
    _compare(priced, total, shares)
    return Price(priced, total)


class _Shares:
    """How much of the question's budget each measured thing gets."""

    def __init__(
        self, blocks: tuple[BoundedBlock, ...], options: Options, policy: Policy, accountant: Accountant
    ) -> None:
        self.options = options
        self.accountant = accountant
        self.mechanisms = _mechanisms(options, accountant)
        self.allowed = accountant.request(options.epsilon)
        self.selecting = [block for block in blocks if block.selection_term is not None]
        if self.selecting and options.delta == 0:
            names = ", ".join(key.name for block in self.selecting for key in block.keys if key.values is None)
            raise refuse("selection_needs_delta", keys=f"private keys ({names})")
        measured = sum(len(sets_of(block)) for block in blocks)
        others = sum(
            PARTS.of(measurement.word).parts(measurement) for block in blocks for measurement in block.measurements
        )
        apart = sum(1 for block in self.selecting if block.selection_term not in {t.name for t in block.terms})
        self.parts = max(1, measured + apart + others)
        spending = [mechanism.word for mechanism in self.mechanisms if accountant.spends_delta(mechanism)]
        sharing = len(self.selecting) + (measured + apart if spending else 0)
        if spending and measured + apart and options.delta == 0:
            raise refuse("mechanism_needs_delta", mechanism=spending[0].capitalize())
        self.delta = options.delta / max(1, sharing)
        self.loss = self.allowed.divided(self.parts)
        """One part, in what the accountant counts."""

    def measured(self, term: Term, block: BoundedBlock, neighbours: Neighbours) -> tuple[Term, Noise]:
        """The term and its noise: the mechanism asked for, or the one with the lower expected error.

        A clip is made in the norm of the mechanism, and left out where the bounded view alone keeps every unit within.
        """
        choices = []
        moved = _moved(term, block, neighbours) if term.clip is None else None
        for mechanism in self.mechanisms:
            one = term if moved is not None else _clipped_in(term, mechanism.norm, block.caps, neighbours)
            norms = moved or _moved(one, block, neighbours)
            choices.append((one, self.accountant.noise_for(mechanism, norms, self.loss, self.delta)))
        return min(choices, key=lambda choice: choice[1].expected_error())

    def charged(self, noise: Noise) -> PrivacyLoss:
        """What the accountant counts for one noise."""
        return self.accountant.charge(_loss(noise), self.delta)


def _mechanisms(options: Options, accountant: Accountant) -> tuple[Mechanism, ...]:
    """Those that may be used: the one that is asked for, or all that are counted without more delta."""
    if options.mechanism != "auto":
        return (MECHANISMS[options.mechanism],)
    return tuple(mechanism for mechanism in askable() if not accountant.spends_delta(mechanism))


@lru_cache(maxsize=1024, typed=True)
def _loss(noise: Noise) -> PrivacyLoss:
    return noise.loss


@lru_cache(maxsize=1024, typed=True)
def _recomputed_loss(noise: Noise) -> PrivacyLoss:
    """The second road of one mechanism: walked once for each, whichever questions use it."""
    return noise.recomputed_loss()


def _moved(term: Term, block: BoundedBlock, neighbours: Neighbours) -> Sensitivity:
    """How far one unit moves a term; a term that shares each row: all terms of its set, as one vector.

    A row adds to the terms of a set at most `magnitude` in all, so that the L1 norm of what a unit adds to a group is that
    of one term, n_g b; no L2 or Linf norm is above L1. Its entries are those of one term for each term of the set.
    """
    moved = sensitivity(term, block.caps, neighbours)
    sharing = sum(1 for other in block.terms if other.shares == term.shares) if term.shares else 1
    return replace(moved, l0=moved.l0 * sharing)


def _clipped_in(term: Term, norm: Norm | None, caps: Caps, neighbours: Neighbours) -> Term:
    """A term under max_total or max_count with the norm of its clip; without a clip where that could bind no unit."""
    assert term.clip is not None
    free = sensitivity(replace(term, clip=None), caps, neighbours)
    most = term.clip.most * neighbours.factor
    if most >= free.l1 if norm is Norm.L1 else most * most >= free.l2_squared:
        return replace(term, clip=None)
    return replace(term, clip=replace(term.clip, norm=norm))


def _price_block(block: BoundedBlock, shares: _Shares, policy: Policy) -> PricedBlock:
    neighbours = policy.neighbours
    measured = [shares.measured(term, block, neighbours) for term in block.terms]
    terms = tuple(TermNoise(term.name, noise, term.grid, _whole(term), term.shares) for term, noise in measured)
    block = replace(block, terms=tuple(term for term, _ in measured))
    keys = tuple(KeyColumn(key.name, None if key.values is None else key_array(key)) for key in block.keys)
    _check_grid(block, policy)
    selection, counted = _selection(block, terms, shares, policy)
    terms += counted
    others = tuple(
        PARTS.of(measurement.word).planned(measurement, block.caps, shares.loss, neighbours)
        for measurement in block.measurements
    )
    listed = None if block.combinations is None else block.combinations.numbers
    plan = NoisePlan(keys, terms, selection, others, listed)
    loss = PrivacyLoss.nothing() if selection is None else selection.loss
    for noise in charged_noises(terms):
        loss = loss + shares.charged(noise)
    for law in plan.laws:
        loss = loss + shares.accountant.charge(law.loss, shares.delta)
    return PricedBlock(block, plan, loss)


def is_charged(priced: PricedBlock) -> bool:
    """Whether some data could move what a block measures, or which of its keys appear."""
    return priced.loss != PrivacyLoss.nothing()


def sets_of(block: BoundedBlock) -> set[str]:
    """What a block is charged for: a term that can move, or a set of terms that share each row."""
    return {term.shares or term.name for term in block.terms if term.magnitude}


def charged_noises(terms: tuple[TermNoise, ...]) -> list[Noise]:
    """The noises whose losses add up. Terms that share each row have one law between them, that of one vector over all
    groups of all of them, which is charged once."""
    found: dict[str, Noise] = {}
    for term in terms:
        if found.setdefault(term.shares or term.name, term.noise) != term.noise:
            raise refuse("internal", what="a shared row with two noises")
    return list(found.values())


def _whole(term: Term) -> bool:
    return term.kind not in (TermKind.SUM, TermKind.DISTINCT_SUM) and not term.shares


_ARROW = {
    Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip


def key_array(key: Key) -> Any:
    """The values of a public key in the type of its expression (NULL alone, or no value at all, has none of its own)."""
    return pa.array(list(key.values or ()), _ARROW[key.expression.facts.type])


def _check_grid(block: BoundedBlock, policy: Policy) -> None:
    if any(key.values is None for key in block.keys):
        return
    size = group_count([key.values for key in block.keys], block.combinations)
    if size > policy.per_query.max_public_groups:
        raise refuse("public_grid", size=size, most=policy.per_query.max_public_groups)


def _selection(
    block: BoundedBlock, terms: tuple[TermNoise, ...], shares: _Shares, policy: Policy
) -> tuple[Selection | None, tuple[TermNoise, ...]]:
    """The rule that admits private keys, and the noisy count that it needs for itself, if it does.

    Where the question releases the count of units anyway, a threshold on it costs delta alone. Else one part of the
    budget buys either the optimal rule or a noisy count with a threshold: the one that admits smaller groups.
    """
    column = block.selection_term
    if column is None:
        return None, ()
    l0 = groups_per_unit(block.caps, policy.neighbours)
    counted = next((term for term in terms if term.name == column), None)
    if counted is not None:
        return threshold(column, l0, counted.noise, shares.delta), ()
    units = Term(column, TermKind.UNITS, None, None, 1)
    hidden = TermNoise(column, shares.measured(units, block, policy.neighbours)[1], 0, True)
    rule = choose_selection(column, l0, replace(shares.loss, delta=shares.delta), column, hidden.noise)
    return rule, ((hidden,) if rule.kind == "threshold" else ())


def _compare(priced: tuple[PricedBlock, ...], total: PrivacyLoss, shares: _Shares) -> None:
    """The second road: every finished mechanism states its loss anew; it must not exceed what is charged or asked."""
    again = PrivacyLoss.nothing()
    for one in priced:
        if one.noise.selection is not None:
            again = again + one.noise.selection.recomputed_loss()
        for noise in charged_noises(one.noise.terms):
            again = again + shares.accountant.charge(_recomputed_loss(noise), shares.delta)
        for law in one.noise.laws:
            again = again + shares.accountant.charge(law.recomputed_loss(), shares.delta)
    asked = shares.allowed
    for name in ("epsilon", "delta", "rho"):
        told, found = getattr(total, name), getattr(again, name)
        if told is not None and (found is None or found > told):
            raise refuse("price_disagrees")
        limit = shares.options.delta if name == "delta" else getattr(asked, name)
        if limit is not None and (told is None or told > limit):
            raise refuse("price_disagrees")


def _cheapest(
    blocks: tuple[BoundedBlock, ...], options: Options, policy: Policy, accountant: Accountant, widest: Widest
) -> Price:
    """The smallest epsilon (to 1 in 1000) at which the `widest` error bar is within `target_error`."""
    target = options.target_error
    assert target is not None
    most = policy.budget.epsilon if policy.per_query.max_epsilon is None else policy.per_query.max_epsilon
    best: Price | None = None
    low, high = policy.per_query.min_epsilon, most
    if low:
        # A target that takes less is met with more than it asks for: a question spends the least that one may.
        found = _priced(blocks, replace(options, epsilon=low), policy, accountant)
        if widest(found) <= target:
            return found
    for _ in range(40):
        epsilon = high if best is None else Fraction(round((low + high) / 2 * 10**9), 10**9)
        if epsilon <= low:
            break
        found = _priced(blocks, replace(options, epsilon=epsilon), policy, accountant)
        if widest(found) <= target:
            best, high = found, epsilon
        elif best is None and high > 1 and math.isinf(widest(found)):
            high /= 4  # noise that rounds to nothing cannot be simulated, and more of it may be within the target
        elif best is None:
            way = f"the smallest error at the most epsilon a query may have is {widest(found):.4g}"
            raise refuse("target_error", reason=f"it needs epsilon above {plain_decimal(most)}", way=way)
        else:
            low = epsilon
        if high - low <= high / 1000:
            break
    assert best is not None
    return best


def widest_term(priced: Price, options: Options, measures: frozenset[str] | None = None) -> float:
    """The widest error of what terms stand for; `measures`: of those alone that are in one of these."""
    confidence = float(options.confidence)
    found = []
    for one in priced.blocks:
        shown = {
            name
            for measure, value, _ in one.block.formulas
            if measures is None or measure in measures
            for name in terms_of(value)
        }
        errors = term_errors(one.block, one.noise.terms, confidence)
        found += [error.half_width for name, error in errors.items() if measures is None or name in shown]
    return max(found, default=0.0)
