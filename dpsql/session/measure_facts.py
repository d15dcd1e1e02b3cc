"""What the numbers of each measure are, besides noise (`release.shape.MeasureFacts`): from policy, text and options alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from dpsql.plan.plan import Block, Measure, Plan
from dpsql.policy import Policy
from dpsql.pricing.explained_sums import reading
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.pricing import PricedBlock
from dpsql.release.shape import MeasureFacts, RankError
from dpsql.session.clamp_notices import clamps_of


def measure_facts(
    plan: Plan, priced: Sequence[PricedBlock], policy: Policy, confidence: float, elsewhere: Collection[str]
) -> tuple[MeasureFacts, ...]:
    """Return the facts of each measure. `elsewhere`: blocks whose numbers come from another measurement than the planned one, so
    that their rank errors are not those of the plan."""
    blocks = {block.name: block for block in plan.blocks}
    choosing = {cut.block for cut in plan.cuts}
    facts = []
    for priced_block in priced:
        block = blocks[priced_block.block.name]
        ranks = {} if block.name in elsewhere else _ranks(block, priced_block, confidence)
        for measure in block.measures if block.name not in choosing else ():
            clamps = clamps_of(measure, block.source, policy)
            rank = ranks.get(measure.name)
            if clamps or rank is not None:
                counting = _counting(measure, block)
                facts.append(MeasureFacts(block.name, measure.name, measure.aggregate, clamps, rank, counting))
    return tuple(facts)


def _ranks(block: Block, priced: PricedBlock, confidence: float) -> dict[str, RankError]:
    """Return the rank errors of the measures that are one chosen number."""
    ranks: dict[str, RankError] = {}
    for measurement, plan in zip(priced.block.measurements, priced.noise.measurements, strict=True):
        part = PARTS.of(measurement.word)
        for name, _ in plan.laws:
            aim = part.explained(measurement, plan, name, confidence).aim
            rows = part.worst_error(measurement, plan, name, confidence) if aim else math.inf
            if math.isfinite(rows):
                ranks |= {measure.name: RankError(aim, rows) for measure in reading(name, block, priced)}
    return ranks


def _counting(measure: Measure, block: Block) -> str:
    """Return the measure of a block that counts the rows of another one, "" if none does."""
    return next(
        (
            other.name
            for other in block.measures
            if other.aggregate == "count" and not other.distinct and other.filter == measure.filter
            and other.per_group is None and (not other.arguments or other.arguments == measure.arguments[:1])
        ),
        "",
    )  # fmt: skip
