"""EXPLAIN: what a question would cost, how accurate it would be, and where its answer would come from."""

from __future__ import annotations

import math

from dpsql.engine.emit.measurements import texts
from dpsql.plan.stability import tables
from dpsql.planning.expected_bars import expected_bars
from dpsql.planning.planner import Planned
from dpsql.pricing.explain import PrivacyPlan, planned_outputs
from dpsql.pricing.pricing import is_charged
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import group_notices
from dpsql.session.budget import Remaining
from dpsql.session.context import SessionContext
from dpsql.session.rehearsal import rehearse
from dpsql.session.stages import notes as stage_notes


def preview(context: SessionContext, planned: Planned) -> PrivacyPlan:
    """Return the privacy plan of a question; nothing is charged, data is not touched. Raises what asking would refuse."""
    columns = rehearse(context.planner, context.sandbox, planned)
    order = stage_notes(planned)
    look = context.shelf.find(planned, context.stages().fill, asking=False)
    planned, stored = look.planned, look.found
    blocks = planned.price.blocks
    emitter = context.emitter(context.index.views(shown=True))
    missing = [priced for priced, release in zip(blocks, stored, strict=True) if release is None]
    charged = PrivacyLoss.nothing()
    for priced in missing:
        charged = charged + priced.loss
    if any(map(is_charged, missing)):
        context.planner.require_least(charged)
    confidence = planned.options.confidence
    return PrivacyPlan(
        outputs=planned_outputs(
            planned.plan, blocks, confidence, {part.block.name: part.errors for part in stored if part is not None}
        ),
        loss=planned.price.loss,
        charged=charged,
        remaining=tuple(Remaining(context.accounts.budget(planned.options.project)).items()),
        stored=tuple(part.block.name for part in stored if part is not None),
        engine_sql=tuple((priced.block.name, sql) for priced in blocks for sql in texts(emitter, priced.block)),
        confidence=float(confidence),
        columns=tuple((column.name, column.type.value) for column in columns),
        notes=(
            *order,
            *_expected_notes(context, planned),
            *group_notices(columns, planned.plan.blocks),
            *context.index.notes({table for priced in blocks for table in tables(priced.block.source)}),
            *context.shelf.notes(planned, stored),
        ),
    )


def _expected_notes(context: SessionContext, planned: Planned) -> tuple[str, ...]:
    """How wide the bars of outputs will be that are no COUNT or SUM as they stand."""
    found = expected_bars(planned.plan, planned.price, planned.options, context.sandbox)
    if not found:
        return ()
    rows = planned.options.assume_rows
    known = [f"{name} within about +/- {width:.4g}" for name, width in found.items() if math.isfinite(width)]
    nothing = [f"nothing known of {name}" for name, width in found.items() if not math.isfinite(width)]
    confidence = float(planned.options.confidence)
    return (
        f"{', '.join([*known, *nothing])} in {confidence:.0%} of cases, if each group has {rows:,} rows (dp.assume_rows), "
        "most values near their lower bound",
    )
