"""Measurement plans for several questions: tables over the same rows are measured together, under one charge.

Workloads join the questions of a plan: each question has a table of sums that another question (or itself) also has by other
keys. Each of them becomes a planned question whose price has the blocks of all. Whichever is asked first measures all blocks and
pays for all; the others find the releases in the store. The answer of a question uses its own blocks, after least squares over
all.

Everything here follows from texts, policy and options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsql.planning.planner import Planned, Planner, release_key
from dpsql.pricing.options import Reuse
from dpsql.pricing.pricing import AskedTogether, Price, PricedBlock, PriceTogether, price_together
from dpsql.pricing.workloads import Objective, Wishes
from dpsql.storage.records import dataclass, field, replace


@dataclass(frozen=True, eq=False)
class JointPlan:
    """Questions that are measured together. `places`: their positions among the given questions; `questions`: each with the
    blocks of all in its price; `price`: of all blocks, each once; `read_by`: for each block of `price`, the positions of the
    questions that read it."""

    places: tuple[int, ...]
    questions: tuple[Planned, ...]
    price: Price
    read_by: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Goal:
    """Objective of measurement plans. `weights`: by the position of a question, how much errors of its tables count (default
    1)."""

    objective: Objective = Objective.RELATIVE
    weights: Mapping[int, Fraction] = field(default_factory=dict)


def plan_together(planner: Planner, questions: Sequence[Planned], goal: Goal) -> tuple[JointPlan, ...]:
    """Return the measurement plans of the questions; a question that is in none is asked alone, as without plans."""
    alike: dict[Any, list[int]] = {}
    for index, question in enumerate(questions):
        if not alone_because(question):
            options = question.options
            alike.setdefault((options.project, options.mechanism, options.delta), []).append(index)
    plans: list[JointPlan] = []
    for indexes in alike.values():
        joined = _priced(planner, questions, indexes, goal)
        plans += [_measurement_plan(planner, questions, group, goal) for group in _joined(joined, indexes)]
    return tuple(sorted(plans, key=lambda plan: plan.places))


def alone_because(question: Planned) -> str:
    """Return the reason why a question is never measured with others, "" if it may be."""
    options = question.options
    reasons = {
        "it reads no protected rows": not question.plan.blocks or question.plan.empty,
        "it measures the same twice": len(set(question.keys)) < len(question.keys),
        "it is measured in stages": bool(question.plan.results),
        "its budget is searched for (dp.target_error)": options.target_error is not None,
        "it is compared with a threshold (dp.threshold)": options.threshold is not None,
        "it is measured by ranges (dp.workload = running)": options.workload is Objective.RUNNING,
        "it is measured anew each time (dp.reuse = off)": not options.reuse,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


NO_COMMON_TABLE = "no other table sums the same over the same rows by public keys, or more do than one plan can have"


def _priced(planner: Planner, questions: Sequence[Planned], indexes: Sequence[int], goal: Goal) -> PriceTogether:
    """Return the joint price of the questions at `indexes`; a block's name is the position of its question and its own name."""
    joint_questions = []
    for index in indexes:
        question = questions[index]
        policy = planner.bound_policy(question.statement)[0]
        blocks = planner.bounded_blocks(question.plan, question.options, policy)
        named = tuple(replace(block, name=f"{index}.{block.name}") for block in blocks)
        joint_questions.append(AskedTogether(named, question.options))
    weights = {
        block.name: goal.weights[index]
        for index, question in zip(indexes, joint_questions, strict=True)
        if index in goal.weights
        for block in question.blocks
    }
    return price_together(joint_questions, Wishes(goal.objective, weights), planner.policy, planner.accountant)


def _place(name: str) -> int:
    return int(name.partition(".")[0])


def _joined(priced: PriceTogether, indexes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the questions of each plan: those joined by a chain of workloads or common blocks that includes a workload."""
    blocks: dict[int, list[str]] = {index: [] for index in indexes}
    for name, measured in priced.measured_as.items():
        blocks[_place(name)].append(measured)
    root = {name: name for name in priced.measured_as.values()}

    def root_of(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    together = [[tile.block for tile in workload.tiles] for workload in priced.price.workloads]
    for names in (*together, *blocks.values()):
        for name in names[1:]:
            root[root_of(name)] = root_of(names[0])
    with_workload = {root_of(names[0]) for names in together}
    groups: dict[str, list[int]] = {}
    for index, names in blocks.items():
        if root_of(names[0]) in with_workload:
            groups.setdefault(root_of(names[0]), []).append(index)
    return [tuple(group) for group in groups.values()]


def _measurement_plan(
    planner: Planner, questions: Sequence[Planned], indexes: tuple[int, ...], goal: Goal
) -> JointPlan:
    priced = _priced(planner, questions, indexes, goal)
    read_by: dict[str, list[int]] = {}
    for name, measured in priced.measured_as.items():
        read_by.setdefault(measured, []).append(_place(name))
    keys = tuple(release_key(block, planner.policy) for block in priced.price.blocks)
    views = tuple(_view(questions[index], index, priced, keys, goal.objective) for index in indexes)
    return JointPlan(indexes, views, priced.price, {name: tuple(read) for name, read in read_by.items()})


def _view(question: Planned, index: int, priced: PriceTogether, keys: tuple[str, ...], objective: Objective) -> Planned:
    """Return a question with the blocks of a whole plan: its own, with their names and formulas, and the others."""
    own_blocks = {priced.measured_as[name]: priced.blocks[name] for name in priced.blocks if _place(name) == index}
    names = {
        block.block.name: own_blocks[block.block.name].name.partition(".")[2]
        if block.block.name in own_blocks
        else f"dp_other_{number}"
        for number, block in enumerate(priced.price.blocks)
    }

    def named(block: PricedBlock) -> PricedBlock:
        bounded = replace(block.block, name=names[block.block.name])
        if block.block.name in own_blocks:
            question_block = own_blocks[block.block.name]
            bounded = replace(bounded, formulas=question_block.formulas, groups=question_block.groups)
        return replace(block, block=bounded)

    workloads = tuple(
        replace(workload, tiles=tuple(replace(tile, block=names[tile.block]) for tile in workload.tiles))
        for workload in priced.price.workloads
    )
    price = Price(tuple(map(named, priced.price.blocks)), priced.price.loss, workloads)
    options = replace(question.options, workload=objective, reuse=Reuse.ON)
    return Planned(question.statement, options, question.plan, price, keys)
