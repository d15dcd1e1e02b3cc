"""Mechanisms and price of bounded blocks: a function of SQL, policy and options only.

A question's budget is split evenly over everything that it measures: every basis term that a unit can move, and the partition
selection of every block that needs a measurement for it. "Evenly" refers to the unit of the accountant, epsilon or rho. With
`dp.workload`, tables of the same sums over the same rows get unequal shares (`workloads`). At the end every finished mechanism
recomputes its loss independently (its second road); a difference is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.plan.combinations import group_count
from dpsql.plan.formulas import terms_of
from dpsql.plan.intervals import Type
from dpsql.plan.plan import BoundedBlock, Key, Term, TermKind
from dpsql.plan.stability import owned
from dpsql.policy import Policy
from dpsql.pricing.budget_parts import BudgetParts, is_whole, recomputed_loss
from dpsql.pricing.budget_shares import Objective
from dpsql.pricing.expected_error import measure_half_width, term_errors
from dpsql.pricing.measurements import PARTS, farthest
from dpsql.pricing.options import Options
from dpsql.pricing.private_keys import weighted_thresholds, whole_rows, with_counted_rows
from dpsql.pricing.sensitivity import groups_per_unit
from dpsql.pricing.square_roots import RunningTable
from dpsql.pricing.target_search import TargetSearch
from dpsql.pricing.workloads import (
    Wishes,
    Workload,
    over_common_rows,
    planned,
    planned_laws_after,
    share_by_set,
    workloads_of,
)
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import KeyColumn, Noise, NoisePlan, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.partition_selection import (
    WEIGHT_BITS,
    Threshold,
    WeightedThreshold,
    choose_selection,
    threshold,
)
from dpsql.privacy.mechanisms.registry import Mechanism


@dataclass(frozen=True)
class PricedBlock:
    """A bounded block with its mechanisms; `loss` is charged to the accountant."""

    block: BoundedBlock
    noise: NoisePlan
    loss: PrivacyLoss


@dataclass(frozen=True)
class Price:
    """All blocks of a question and their total loss. `workloads`: tables that are made consistent; `running`: sums with noise for
    running totals, with the errors of those totals."""

    blocks: tuple[PricedBlock, ...]
    loss: PrivacyLoss
    workloads: tuple[Workload, ...] = ()
    running: tuple[RunningTable, ...] = ()

    @property
    def laws_after(self) -> dict[tuple[str, str], Noise]:
        """The error laws that least squares leaves for the noise of workloads, by block and term."""
        noises = {priced.block.name: priced.noise.terms for priced in self.blocks}
        return planned_laws_after(self.workloads, noises) if self.workloads else {}


MOST_TARGETED_TERMS = 1000
_NO_LENGTHS: Mapping[str, int] = {}
Widest = Callable[[Price], float]
"""Function that returns the widest error bar expected for a question's outputs at a price."""


def price(
    blocks: tuple[BoundedBlock, ...],
    options: Options,
    policy: Policy,
    accountant: Accountant,
    widest: Widest | None = None,
    ranges: tuple[Workload, ...] = (),
    lengths: Mapping[str, int] = _NO_LENGTHS,
) -> Price:
    """Return the mechanisms and the price of `blocks`. `ranges`: workloads of `running_totals`; `lengths`: blocks whose sums may
    have noise for running totals (`square_roots`), with their numbers of values. Both are for questions without `target_error`.

    `widest` computes the error that `target_error` limits (None: the largest error of a term). For values that are chosen, the
    error in rows counts too (`measurements.farthest`). Raises Refusal when the options allow no mechanism."""
    if options.target_error is not None and blocks:
        _require_few_terms(blocks)
        of_sums = widest or partial(widest_term, options=options)

        def error(priced: Price) -> float:
            return max(farthest(priced.blocks, options.confidence), of_sums(priced))

        farthest(_priced(blocks, options, policy, accountant).blocks, options.confidence)  # refuses unbounded errors
        return _cheapest(blocks, options, policy, accountant, error)
    return _priced(blocks, options, policy, accountant, ranges, lengths)


def _require_few_terms(blocks: tuple[BoundedBlock, ...]) -> None:
    """Refuse `target_error` for more sums and counts than can be priced repeatedly: the search costs time and no budget. Raises
    Refusal target_error."""
    terms = sum(len(block.terms) for block in blocks)
    if terms > MOST_TARGETED_TERMS:
        reason = f"it needs {terms:,} sums and counts, and an epsilon is searched for at most {MOST_TARGETED_TERMS:,}"
        raise refuse("target_error", reason=reason, way="SET dp.epsilon instead, or ask in parts")


def _priced(
    blocks: tuple[BoundedBlock, ...],
    options: Options,
    policy: Policy,
    accountant: Accountant,
    ranges: tuple[Workload, ...] = (),
    lengths: Mapping[str, int] = _NO_LENGTHS,
) -> Price:
    if not blocks:
        return Price((), PrivacyLoss.nothing())
    blocks = admitting_by_rows(blocks, options, policy, accountant)
    unplanned = ranges
    if (
        options.workload
        and options.workload is not Objective.RUNNING
        and not any(block.reads_results for block in blocks)
    ):
        unplanned = workloads_of(blocks)
        blocks = over_common_rows(blocks, unplanned, policy)
    shares = BudgetParts(blocks, options, accountant, lengths)
    power = 2 if shares.allowed.rho is None else 1
    workloads = planned(unplanned, blocks, partial(shares.noise_of, policy.neighbours), power, Wishes(options.workload))
    shares.of_sets = share_by_set(workloads)
    priced = tuple(price_block(block, shares, policy) for block in blocks)
    total = again = PrivacyLoss.nothing()
    for block_price in priced:
        total, again = total + block_price.loss, again + recomputed(block_price, shares)
    require_within(total, again, shares.allowed, options.delta)
    return Price(priced, total, workloads)


def price_block(block: BoundedBlock, shares: BudgetParts, policy: Policy) -> PricedBlock:
    neighbours = policy.neighbours
    measured = [shares.measured(term, block, neighbours) for term in block.terms]
    terms = tuple(TermNoise(term.name, noise, term.grid, is_whole(term), term.shares) for term, noise in measured)
    block = replace(block, terms=tuple(term for term, _ in measured))
    keys = tuple(KeyColumn(key.name, None if key.values is None else key_array(key)) for key in block.keys)
    _check_grid(block, policy)
    selection, counted = _selection(block, terms, shares, policy)
    terms += counted
    if isinstance(selection, WeightedThreshold):
        block = replace(block, unit_weights=selection.weights)
    measurement_plans = tuple(
        PARTS.of(measurement.word).planned(
            measurement, block.caps, replace(shares.loss, delta=shares.delta), neighbours
        )
        for measurement in block.measurements
    )
    listed = None if block.combinations is None else block.combinations.numbers
    plan = NoisePlan(keys, terms, selection, measurement_plans, listed)
    loss = PrivacyLoss.nothing() if selection is None else selection.loss
    for noise in charged_noises(terms):
        loss = loss + shares.charged(noise)
    for law in plan.charged:
        loss = loss + shares.accountant.charge(law.loss, shares.delta)
    return PricedBlock(block, plan, loss)


def is_charged(priced: PricedBlock) -> bool:
    """Return whether some data could move what a block measures, or which of its keys appear."""
    return priced.loss != PrivacyLoss.nothing()


def charged_noises(terms: tuple[TermNoise, ...]) -> list[Noise]:
    """Return the noises whose losses add up. Terms that share each row have one law together, that of a single vector over all
    their groups, which is charged once."""
    by_vector: dict[str, Noise] = {}
    for term in terms:
        if by_vector.setdefault(term.shares or term.name, term.noise) != term.noise:
            raise refuse("internal", what="a shared row with two noises")
    return list(by_vector.values())


_ARROW = {
    Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip


def key_array(key: Key) -> Any:
    """Return the values of a public key as an array in the type of its expression (NULL alone, or no value at all, implies no
    type)."""
    return pa.array(list(key.values or ()), _ARROW[key.expression.facts.type])


def _check_grid(block: BoundedBlock, policy: Policy) -> None:
    if any(key.values is None for key in block.keys):
        return
    size = group_count([key.values for key in block.keys], block.combinations)
    if size > policy.per_query.max_public_groups:
        raise refuse("public_grid", size=size, most=policy.per_query.max_public_groups)


def _selection(
    block: BoundedBlock, terms: tuple[TermNoise, ...], shares: BudgetParts, policy: Policy
) -> tuple[Selection | None, tuple[TermNoise, ...]]:
    """Return the rule that admits private keys, and the noisy count that is measured for this rule alone, if there is one.

    Where the question releases the count of units anyway, a threshold on it costs only delta. Otherwise one part of the budget
    buys either the optimal rule or a noisy count with a threshold, whichever admits smaller groups. A unit that owns its rows
    divides one weight among its keys, so a unit with few keys counts more in each of them. The comparison assumes that a unit has
    half of the keys that it may have, or half of max_count if that is less.
    """
    column = block.selection_term
    if column is None:
        return None, ()
    l0 = groups_per_unit(block.caps, policy.neighbours)
    counted = next((term for term in terms if term.name == column), None)
    if counted is not None:
        return threshold(column, l0, counted.noise, shares.delta), ()
    rules = _thresholds(column, block, shares, policy)
    rule = choose_selection(column, l0, replace(shares.loss, delta=shares.delta), rules)
    if isinstance(rule, WeightedThreshold):
        return rule, (TermNoise(column, rule.noise, WEIGHT_BITS, False),)
    return rule, ((TermNoise(column, rule.noise, 0, True),) if rule.noise is not None else ())


def _thresholds(column: str, block: BoundedBlock, shares: BudgetParts, policy: Policy) -> list[Threshold]:
    """Return thresholds on a count of units that is measured for selection alone, each for one part of the budget."""
    neighbours = policy.neighbours
    if block.caps.groups == 1 or not owned(block.source, policy):
        units = Term(column, TermKind.UNITS, None, None, 1)
        noise = shares.measured(units, block, neighbours)[1]
        return [threshold(column, groups_per_unit(block.caps, neighbours), noise, shares.delta)]

    def noise_for(mechanism: Mechanism, moved: Sensitivity) -> Noise:
        return shares.accountant.noise_for(mechanism, moved, shares.loss, shares.delta)

    return weighted_thresholds(column, block, neighbours, shares.mechanisms, noise_for, shares.delta)


def admitting_by_rows(
    blocks: tuple[BoundedBlock, ...], options: Options, policy: Policy, accountant: Accountant
) -> tuple[BoundedBlock, ...]:
    """Let the released count of all rows admit private keys where that uses the budget better.

    A threshold on a count that is released anyway costs only delta, so no part of the budget goes to selection. It must exceed
    what a single unit can count with all its rows in one key (`lone_count`). The comparison follows from text, options and
    policy: the smaller product of the count's error and the size of a key that is shown with probability 1/2 wins. So a part of
    the budget is paid for a count of units where it reduces that size by a larger factor than it increases the noise.
    """
    by_rows = tuple(with_counted_rows(block) for block in blocks)
    if by_rows == blocks or options.delta == 0:
        return blocks
    free, paid = (BudgetParts(choice, options, accountant) for choice in (by_rows, blocks))

    def better(row_block: BoundedBlock, block: BoundedBlock) -> bool:
        """Return whether admission by rows has the smaller (or equal) product of error and size."""
        counted = next(term for term in row_block.terms if term.name == row_block.selection_term)
        errors = [shares.measured(counted, row_block, policy.neighbours)[1] for shares in (free, paid)]
        noisy = TermNoise(counted.name, errors[0], 0, True)
        rules = _selection(row_block, (noisy,), free, policy)[0], _selection(block, (), paid, policy)[0]
        rows, units = (rule.half_point() for rule in rules if rule is not None)
        sizes = whole_rows(rows, counted.grid), units
        products = [noise.expected_error() * size for noise, size in zip(errors, sizes, strict=True)]
        return products[0] <= products[1]

    return tuple(
        row_block if row_block is not block and better(row_block, block) else block
        for row_block, block in zip(by_rows, blocks, strict=True)
    )


def shown_half_of_the_time(priced: PricedBlock) -> tuple[int, str]:
    """Return the size of a private key that selection shows with probability 1/2, and what is counted: "units" or "rows".

    Raises ValueError for a block without private keys."""
    rule = priced.noise.selection
    if rule is None:
        raise ValueError("a block with private keys is needed")
    counted = next((term for term in priced.block.terms if term.name == rule.column), None)
    size = rule.half_point() if counted is None else whole_rows(rule.half_point(), counted.grid)
    rows = counted is not None and counted.kind is TermKind.COUNT and priced.block.caps.rows_per_unit > 1
    return size, "rows" if rows else "units"


def recomputed(block: PricedBlock, shares: BudgetParts) -> PrivacyLoss:
    """Return the loss of a block's finished mechanisms, each recomputed independently of its first loss (its second road)."""
    again = PrivacyLoss.nothing() if block.noise.selection is None else block.noise.selection.recomputed_loss()
    for noise in charged_noises(block.noise.terms):
        again = again + shares.accountant.charge(recomputed_loss(noise), shares.delta)
    for law in block.noise.charged:
        again = again + shares.accountant.charge(law.recomputed_loss(), shares.delta)
    return again


def require_within(total: PrivacyLoss, again: PrivacyLoss, allowed: PrivacyLoss, delta: Fraction) -> None:
    """Raise the fault price_disagrees unless the recomputed loss is within `total`, and `total` within `allowed` and `delta`."""
    for name in ("epsilon", "delta", "rho"):
        claimed, walked = getattr(total, name), getattr(again, name)
        if claimed is not None and (walked is None or walked > claimed):
            raise refuse("price_disagrees")
        limit = delta if name == "delta" else getattr(allowed, name)
        if limit is not None and (claimed is None or claimed > limit):
            raise refuse("price_disagrees")


def _cheapest(
    blocks: tuple[BoundedBlock, ...], options: Options, policy: Policy, accountant: Accountant, widest: Widest
) -> Price:
    """Return the smallest epsilon (to 1 in 1000) at which the `widest` error bar is within `target_error`."""
    target = options.target_error
    assert target is not None
    most = policy.budget.epsilon if policy.per_query.max_epsilon is None else policy.per_query.max_epsilon

    def priced(epsilon: Fraction) -> Price:
        return _priced(blocks, replace(options, epsilon=epsilon), policy, accountant)

    return TargetSearch(priced, widest, target).cheapest(policy.per_query.min_epsilon, most)


def widest_term(priced: Price, options: Options, measures: frozenset[tuple[str, str]] | None = None) -> float:
    """Return the largest half width of the quantities that terms represent. With `measures`, pairs of block and measure names,
    only terms that these measures read count."""
    confidence = float(options.confidence)
    half_widths, after = [], priced.laws_after
    for measured in priced.blocks:
        names = {
            name
            for measure, value, _ in measured.block.formulas
            if measures is None or (measured.block.name, measure) in measures
            for name in terms_of(value)
        }
        noises = [
            replace(noise, noise=after.get((measured.block.name, noise.name), noise.noise))
            for noise in measured.noise.terms
        ]
        errors = term_errors(measured.block, noises, confidence)
        if measures is not None:
            squares = {term.shares for term in measured.block.terms if term.kind in _IN_PARTS}
            names -= {term.name for term in measured.block.terms if term.shares in squares}
            half_widths += _of_squares(
                measured, [noise for noise in noises if noise.shares in squares], measures, confidence
            )
        half_widths += [error.half_width for name, error in errors.items() if measures is None or name in names]
    return max(half_widths, default=0.0)


_IN_PARTS = (TermKind.SQUARE_PART, TermKind.PRODUCT_PART, TermKind.PAIR_PART)


def _of_squares(
    priced: PricedBlock, noises: Sequence[TermNoise], measures: frozenset[tuple[str, str]], confidence: float
) -> list[float]:
    """Return the half widths of those `measures` (COUNTs and SUMs) that follow from sums of shared squares or products
    (`noises`)."""
    names = {noise.name for noise in noises}
    return [
        measure_half_width(formula, noises, confidence)
        for measure, formula, _ in priced.block.formulas
        if (priced.block.name, measure) in measures and not names.isdisjoint(terms_of(formula))
    ]
