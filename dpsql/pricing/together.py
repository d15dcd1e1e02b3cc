"""Several questions priced together: their tables of the same sums over the same rows form one workload, under one charge.

Each question has a budget, divided over what it measures as usual (`budget_parts`). The tables of a workload in all questions
then divide their joint parts unequally (`workloads`); everything else keeps its own part. A block that several questions have is
measured once. So all questions together cost no more than one after the other: each block is priced from its finished laws, the
losses add up (basic composition, as in `PrivacyLoss.__add__`), and the second road adds them up again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.plan import BoundedBlock, Term
from dpsql.policy import Policy
from dpsql.pricing.budget_parts import BudgetParts
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import Price, admitting_by_rows, price_block, recomputed, require_within
from dpsql.pricing.workloads import Wishes, over_common_rows, planned, share_by_set, workloads_of
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise


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

    def noise_of(term: Term, block: BoundedBlock, share: Fraction) -> Noise:
        return parts[block.name].noise_of(policy.neighbours, term, block, share)

    weights: dict[str, Fraction] = {}
    for name, weight in wishes.weights.items():
        weights[measured_as[name]] = max(weight, weights.get(measured_as[name], weight))
    power = 2 if all(of_question.allowed.rho is None for of_question in parts.values()) else 1
    part_sizes = {name: _counted(of_question.loss) for name, of_question in parts.items()}
    workloads = planned(unplanned, blocks, noise_of, power, replace(wishes, weights=weights), part_sizes)
    of_sets = share_by_set(workloads)
    total = again = PrivacyLoss.nothing()
    priced = []
    for block in blocks:
        parts[block.name].of_sets = of_sets
        priced.append(price_block(block, parts[block.name], policy))
        total, again = total + priced[-1].loss, again + recomputed(priced[-1], parts[block.name])
    allowed = PrivacyLoss.pure(Fraction(0))
    for question in questions:
        allowed = allowed + accountant.request(question.options.epsilon)
    require_within(total, again, allowed, sum((question.options.delta for question in questions), Fraction(0)))
    return PriceTogether(Price(tuple(priced), total, workloads), measured_as, {block.name: block for block in every})


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
