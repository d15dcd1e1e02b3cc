"""Mechanisms and price of bounded blocks: a function of SQL, policy and options only.

A question's budget is split evenly over everything that it measures: every basis term that a unit can move, and the partition
selection of every block that needs a measurement for it. "Evenly" refers to the unit of the accountant, epsilon or rho. Joint
sums of a block have one part together, or a few (`sharing`). With `dp.workload`, tables of the same sums over the same rows get
unequal shares (`workloads`). At the end every finished mechanism recomputes its loss independently (its second road); a
difference is a fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Generic, TypeVar

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.functions.canonical_measures import named_block
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.formulas import terms_of
from dpsql.plan.intervals import Type
from dpsql.plan.plan import BoundedBlock, Key, Relation, Term, TermKind, group_count
from dpsql.plan.stability import identity, owned
from dpsql.policy import Policy
from dpsql.pricing.budget_parts import BudgetParts, is_whole, measure_half_width, recomputed_loss, term_errors
from dpsql.pricing.joint_sums import IN_PARTS
from dpsql.pricing.measurements import PARTS, farthest
from dpsql.pricing.options import Options
from dpsql.pricing.running_totals import RunningTable
from dpsql.pricing.sensitivity import groups_per_unit
from dpsql.pricing.workloads import (
    Objective,
    Wishes,
    Workload,
    over_common_rows,
    planned,
    planned_laws_after,
    share_by_set,
    workloads_of,
)
from dpsql.privacy.accounting import Accountant
from dpsql.privacy.loss import Neighbours, PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.contract import KeyColumn, Noise, NoisePlan, Norm, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.partition_selection import (
    WEIGHT_BITS,
    Threshold,
    WeightedThreshold,
    choose_selection,
    threshold,
    weighted_sensitivity,
    weighted_threshold,
)
from dpsql.privacy.mechanisms.registry import Mechanism, require_allowed
from dpsql.storage.records import dataclass, field, replace

# --- The smallest epsilon at which a question's widest error bar is within a target, found with few pricings ---
# The search bisects between an epsilon that is too small and one that is enough, to 1 in 1000. Pricing a question of many
# tables and computing its bars takes long, and every error is nearly proportional to 1/epsilon. So a few guesses from this
# proportion first locate where the bisection leads, and only epsilons between the nearest guesses on both sides are priced. A
# question that is less proportional takes more pricings but gives the same answer, as long as bars get no wider with more
# epsilon.

_HALVINGS = 40
_GUESSES = 6
_NEAR = Fraction(1, 4000)
"""Relative distance of guesses from the proportional epsilon, so that the bisection meets few epsilons between them."""
_BILLION = 10**9
Priced = TypeVar("Priced")


@dataclass
class TargetSearch(Generic[Priced]):
    """A search for the smallest epsilon. `priced` returns the price of a question at an epsilon, `widest` its widest error
    bar."""

    priced: Callable[[Fraction], Priced]
    widest: Callable[[Priced], float]
    target: Fraction
    _enough: dict[Fraction, Priced] = field(default_factory=dict)
    _too_little: Fraction = Fraction(0)
    _width: float = math.inf
    """Widest bar at the most recent price."""

    def cheapest(self, least: Fraction, most: Fraction) -> Priced:
        """Return the price at the least sufficient epsilon from `least` to `most`. Raises Refusal target_error if none is."""
        # A target that needs less than `least` is met more exactly than requested: a question spends at least `least`.
        if least and self._is_enough(least):
            return self._enough[least]
        high = self._first(least, most)
        low = least
        self._guess(low, high)
        for _ in range(_HALVINGS):
            if high - low <= high / 1000:
                break
            epsilon = Fraction(round((low + high) / 2 * _BILLION), _BILLION)
            if epsilon <= low:
                break
            low, high = (low, epsilon) if self._is_known_enough(epsilon) else (epsilon, high)
        return self._enough[high] if high in self._enough else self.priced(high)

    def _first(self, least: Fraction, most: Fraction) -> Fraction:
        """Return an epsilon that is enough; a smaller one if bars are infinite, as noise that rounds to zero has none."""
        epsilon = most
        while not self._is_enough(epsilon):
            if not (epsilon > 1 and math.isinf(self._width)) or epsilon / 4 <= least:
                hint = f"the smallest error at the most epsilon a query may have is {self._width:.4g}"
                raise refuse("target_error", reason=f"it needs epsilon above {plain_decimal(most)}", way=hint)
            epsilon /= 4
        self._too_little = Fraction(0)  # larger epsilons failed only because bars were infinite
        return epsilon

    def _is_enough(self, epsilon: Fraction) -> bool:
        """Return whether the widest error bar at an epsilon is within the target; remember the price."""
        price = self.priced(epsilon)
        self._width = self.widest(price)
        if self._width <= self.target:
            self._enough[epsilon] = price
            return True
        self._too_little = max(self._too_little, epsilon)
        return False

    def _is_known_enough(self, epsilon: Fraction) -> bool:
        """Return whether an epsilon is enough, without pricing where earlier prices decide it."""
        if epsilon >= min(self._enough):
            return True
        return epsilon > self._too_little and self._is_enough(epsilon)

    def _guess(self, low: Fraction, high: Fraction) -> None:
        """Price the question at epsilons near the smallest sufficient one, on both sides of it."""
        epsilon = high
        for _ in range(_GUESSES):
            if not 0 < self._width < math.inf:
                return
            proportional = epsilon * Fraction(self._width) / self.target
            below = self._too_little < proportional * (1 - 2 * _NEAR)
            epsilon = Fraction(round(proportional * (1 - _NEAR if below else 1 + _NEAR) * _BILLION), _BILLION)
            if not max(low, self._too_little) < epsilon < min(self._enough):
                return
            self._is_enough(epsilon)


# --- counts that admit private keys -----------------------------------------------------------------------------------

# Counts that may admit private keys: the count of all rows, which is released anyway, and the sum of the units' weights.


def weighted_thresholds(
    column: str,
    block: BoundedBlock,
    neighbours: Neighbours,
    mechanisms: Sequence[Mechanism],
    noise_for: Callable[[Mechanism, Sensitivity], Noise],
    delta: Fraction,
) -> list[Threshold]:
    """Return thresholds on the units' weights, one for each mechanism: weights in its norm, noise as `noise_for` calibrates it.

    Assumes that a unit has half of the keys that it may have, or half of max_count if that is less. Raises Refusal
    selection_delta."""
    groups = block.caps.groups
    usual = (min([groups, *_clipped_rows(block)]) + 1) // 2
    rules: list[Threshold] = []
    for mechanism in mechanisms:
        norm = mechanism.norm or Norm.L1
        noise = noise_for(mechanism, weighted_sensitivity(groups, norm, neighbours.factor))
        rules.append(weighted_threshold(column, groups, norm, noise, delta, usual))
    return rules


def _clipped_rows(block: BoundedBlock) -> list[int]:
    """Return the bounds on a unit's rows to which counts are clipped."""
    counts = (term for term in block.terms if term.kind is TermKind.COUNT)
    return [max(1, term.clip.most >> term.finer) for term in counts if term.clip is not None]


def with_counted_rows(block: BoundedBlock) -> BoundedBlock:
    """Return `block` with its count of rows admitting private keys, where that is a separate term and no other admits them."""
    if block.selection_term is None or block.selection_term in {term.name for term in block.terms}:
        return block
    rows = next((term.name for term in block.terms if _counts_all_rows(term)), None)
    return block if rows is None else replace(block, selection_term=rows)


def _counts_all_rows(term: Term) -> bool:
    """Return whether a term is a separate count of all rows, as far as the clip of their units allows."""
    return term.kind is TermKind.COUNT and term.value is None and term.filter is None and not term.shares


def whole_rows(steps: int, grid: int) -> int:
    """Return a count in steps of 2**-grid rounded up to rows."""
    return -(-steps >> grid)


@dataclass(frozen=True)
class PricedBlock:
    """A bounded block with its mechanisms; `loss` is charged to the accountant."""

    block: BoundedBlock
    noise: NoisePlan
    loss: PrivacyLoss

    @cached_property
    def rows_read(self) -> Relation:
        """The source of the block with only the columns on which its numbers depend, for the name of its release."""
        return identity(self.block)

    @cached_property
    def named(self) -> BoundedBlock:
        """The block as the name of its release has it."""
        return named_block(replace(self.block, name="", formulas=(), source=self.rows_read))


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
    have noise for running totals (`running_totals`), with their numbers of values. Both are for questions without `target_error`.

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
    """Refuse `target_error` for too many sums to be priced repeatedly, which costs time alone. Raises Refusal target_error."""
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
    parts = dict.fromkeys((block.name for block in blocks), shares)
    wishes = Wishes(options.workload)
    return _measured(blocks, parts, policy, unplanned, wishes, None, shares.allowed, options.delta)


def _measured(
    blocks: tuple[BoundedBlock, ...],
    parts: Mapping[str, BudgetParts],
    policy: Policy,
    unplanned: tuple[Workload, ...],
    wishes: Wishes,
    sizes: Mapping[str, Fraction] | None,
    allowed: PrivacyLoss,
    delta: Fraction,
) -> Price:
    """Return the price of blocks that are measured with their `parts` of a budget: at most `allowed` and `delta` together.
    `unplanned`: the workloads among them; `sizes`: as `parts` of `workloads.planned`."""

    def noise_of(term: Term, block: BoundedBlock, share: Fraction) -> Noise:
        return parts[block.name].noise_of(policy.neighbours, term, block, share)

    power = 2 if parts[blocks[0].name].allowed.rho is None else 1
    workloads = planned(unplanned, blocks, noise_of, power, wishes, sizes)
    of_sets = share_by_set(workloads)
    total = again = PrivacyLoss.nothing()
    priced = []
    for block in blocks:
        parts[block.name].of_sets = of_sets
        priced.append(price_block(block, parts[block.name], policy))
        total, again = total + priced[-1].loss, again + recomputed(priced[-1], parts[block.name])
    require_within(total, again, allowed, delta)
    for block_price in priced:
        require_allowed(mechanisms_of(block_price), policy.mechanisms)
    return Price(tuple(priced), total, workloads)


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


def mechanisms_of(priced: PricedBlock) -> list[str]:
    """Return the words of all mechanisms and measurements that a block needs."""
    words = map(attrgetter("noise.mechanism"), priced.noise.terms)
    return [*words, *map(attrgetter("word"), priced.block.measurements)]


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


ARROW: dict[Type, pa.DataType] = {
    Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"), Type.NULL: pa.null(),
}  # fmt: skip


def key_array(key: Key) -> Any:
    """Return a public key's values as an array in the type of its expression (NULL alone, or no value, implies none)."""
    return pa.array(list(key.values or ()), ARROW[key.expression.facts.type])


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
            squares = {term.shares for term in measured.block.terms if term.kind in IN_PARTS}
            names -= {term.name for term in measured.block.terms if term.shares in squares}
            half_widths += _of_squares(
                measured, [noise for noise in noises if noise.shares in squares], measures, confidence
            )
        half_widths += [error.half_width for name, error in errors.items() if measures is None or name in names]
    return max(half_widths, default=0.0)


def _of_squares(
    priced: PricedBlock, noises: Sequence[TermNoise], measures: frozenset[tuple[str, str]], confidence: float
) -> list[float]:
    """Return the half widths of `measures` (COUNTs and SUMs) that follow from sums of shared squares or products."""
    names = {noise.name for noise in noises}
    return [
        measure_half_width(formula, noises, confidence)
        for measure, formula, _ in priced.block.formulas
        if (priced.block.name, measure) in measures and not names.isdisjoint(terms_of(formula))
    ]


# --- tables of several questions --------------------------------------------------------------------------------------

# Several questions priced together: their tables of the same sums over the same rows form one workload, under one charge.
# Each question has a budget, divided over what it measures as usual (`budget_parts`). The tables of a workload in all
# questions then divide their joint parts unequally (`workloads`); everything else keeps its own part. A block that several
# questions have is measured once. So all questions together cost no more than one after the other: each block is priced from
# its finished laws, the losses add up (basic composition, as in `PrivacyLoss.__add__`), and the second road adds them up
# again.


@dataclass(frozen=True, eq=False)
class AskedTogether:
    """One of several questions: its blocks, whose names are unique among all questions, and its options."""

    blocks: tuple[BoundedBlock, ...]
    options: Options


@dataclass(frozen=True, eq=False)
class PriceTogether:
    """Price of several questions. `measured_as`: for each of their blocks, the name of the block in `price` that is measured for
    it; `blocks`: the questions' blocks, with the count that admits private keys."""

    price: Price
    measured_as: Mapping[str, str]
    blocks: Mapping[str, BoundedBlock]


def price_together(
    questions: Sequence[AskedTogether], wishes: Wishes, policy: Policy, accountant: Accountant
) -> PriceTogether:
    """Return the mechanisms and the price of all questions. `wishes` may name blocks of any of them.

    Raises a refusal when the options allow no mechanism."""
    parts: dict[str, BudgetParts] = {}
    every: list[BoundedBlock] = []
    for question in questions:
        blocks = admitting_by_rows(question.blocks, question.options, policy, accountant)
        of_question = BudgetParts(blocks, question.options, accountant)
        parts |= dict.fromkeys((block.name for block in blocks), of_question)
        every += blocks
    measured_as = _measured_as(every, parts)
    blocks = tuple(block for block in every if measured_as[block.name] == block.name)
    unplanned = workloads_of(blocks)
    blocks = over_common_rows(blocks, unplanned, policy)
    weights: dict[str, Fraction] = {}
    for name, weight in wishes.weights.items():
        weights[measured_as[name]] = max(weight, weights.get(measured_as[name], weight))
    part_sizes = {name: _counted(of_question.loss) for name, of_question in parts.items()}
    allowed = PrivacyLoss.pure(Fraction(0))
    for question in questions:
        allowed = allowed + accountant.request(question.options.epsilon)
    delta = sum((question.options.delta for question in questions), Fraction(0))
    wishes = replace(wishes, weights=weights)
    price = _measured(blocks, parts, policy, unplanned, wishes, part_sizes, allowed, delta)
    return PriceTogether(price, measured_as, {block.name: block for block in every})


def _measured_as(blocks: Sequence[BoundedBlock], parts: Mapping[str, BudgetParts]) -> dict[str, str]:
    """Return for each block the name of the equal block that is measured: the one with the largest part of a budget."""
    alike: dict[str, list[str]] = {}
    for block in blocks:
        alike.setdefault(fingerprint(replace(block, name="", formulas=())), []).append(block.name)
    return {
        name: max(names, key=lambda other: _counted(parts[other].loss)) for names in alike.values() for name in names
    }


def _counted(loss: PrivacyLoss) -> Fraction:
    """Return a part of a budget in the unit of the accountant."""
    counted = loss.epsilon if loss.rho is None else loss.rho
    return Fraction(0) if counted is None else counted
