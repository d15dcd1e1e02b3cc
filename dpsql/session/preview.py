"""EXPLAIN: what a question would cost, how accurate it would be, and where its answer would come from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpsql.engine.emit.measurements import texts
from dpsql.errors.exceptions import Error
from dpsql.plan.stability import tables
from dpsql.planning.expected_bars import ExpectedBars, expected_bars, made_up_blocks
from dpsql.planning.planner import Planned
from dpsql.pricing.explain import planned_outputs
from dpsql.pricing.pricing import is_charged
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.reconciled import AS_RELEASED, can_be_consistent, consistent_blocks
from dpsql.release.release import Release
from dpsql.release.sandbox import numeric
from dpsql.reuse.lookup import PaidBlock, shown_term_errors
from dpsql.session.budget import Remaining
from dpsql.session.context import SessionContext
from dpsql.session.explanation import (
    PrivacyPlan,
    cheaper_line,
    column_errors,
    mechanism_line,
    planned_groups,
    price_line,
    workload_lines,
)
from dpsql.session.notices import NoticedQuestion, Shown, notices
from dpsql.session.pipeline import stored_answer
from dpsql.session.rehearsal import rehearse

_MOST_GROUPS = 20_000
"""Most groups of stored releases for which EXPLAIN computes error bars: about a quarter of a second, linear in the groups."""


def preview(context: SessionContext, planned: Planned) -> PrivacyPlan:
    """Return the privacy plan of a question; nothing is charged, data is not touched. Raises the refusals of the question."""
    columns = rehearse(context.planner, context.sandbox, planned)
    if planned.plan.empty:
        planned = planned.without_blocks()
    lookup = context.stored_releases.find(planned, context.stages().fill, asking=False)
    planned, stored = lookup.planned, lookup.blocks
    blocks = planned.price.blocks
    missing = [priced for priced, release in zip(blocks, stored, strict=True) if release is None]
    charged = PrivacyLoss.nothing()
    for priced in missing:
        charged = charged + priced.loss
    if any(map(is_charged, missing)):
        context.planner.require_least(charged)
    confidence = planned.options.confidence
    errors, agreeing = _stored_errors(planned, stored)
    outputs = planned_outputs(
        planned.plan, planned.own_blocks, confidence, errors, planned.price.laws_after if agreeing else {}
    )
    answered = None if missing else _stored_answer(context, planned, stored)
    if answered is None:
        bars = expected_bars(planned.plan, planned.price, planned.options, context.sandbox)
    else:
        columns, bars = answered.columns, _released_bars(answered)
    budget = context.accounts.budget(planned.options)
    price = budget.price(context.planner.accountant.units(charged))
    question = NoticedQuestion(context, planned, columns)
    rows = notices(question, Shown.EXPLAIN)
    further = (
        price_line(price, len(missing) < len(blocks)),
        mechanism_line(planned, context.policy, context.planner.accountant),
        *(workload_lines(planned) if agreeing else (AS_RELEASED,)),
        f"budget: {budget.in_a_year}" if budget.in_a_year else "",
        *rows,
        cheaper_line(
            charged,
            planned.options,
            context.policy.per_query.min_epsilon,
            squared=context.planner.accountant.request(planned.options.epsilon).rho is not None,
        ),
    )
    return PrivacyPlan(
        outputs=outputs,
        loss=planned.price.loss,
        charged=charged,
        remaining=tuple(Remaining(budget).items()),
        stored=tuple(part.block.name for part in stored if part is not None),
        engine_sql=engine_sql(context, planned) if context.analyst is None else (),
        confidence=float(confidence),
        columns=tuple((column.name, column.type.value) for column in columns),
        notes=(
            *notices(question, Shown.DETAILS),
            *_expected_notes(bars, planned),
            *rows,
            *context.index.notes({table for priced in blocks for table in tables(priced.block.source)}),
            *context.stored_releases.notes(planned, stored),
        ),
        errors=column_errors(
            () if planned.plan.empty else columns, outputs, bars, planned.options, len(missing) < len(blocks)
        ),
        groups=planned_groups(planned, outputs),
        further=tuple(filter(None, further)),
    )


def _stored_answer(context: SessionContext, planned: Planned, stored: Sequence[PaidBlock | None]) -> Release | None:
    """Return the answer computed from stored releases; None if that needs to read tables, takes longer than EXPLAIN may, or
    fails."""
    released = tuple(part for part in stored if part is not None)
    if not released or planned.plan.public_inputs or sum(part.block.rows for part in released) > _MOST_GROUPS:
        return None
    try:
        release = stored_answer(context, planned, released)
        _ = release.bars  # computed here, where it may fail
    except Error:
        return None
    return release


def _released_bars(release: Release) -> ExpectedBars:
    """Return the narrowest and the widest bar of each column of noisy numbers that are not chosen, NaN if no row has one."""
    released = {}
    for position, noisy in enumerate(release.answered.noisy):
        numbers = len(release.table) and numeric(release.table.schema.field(position).type)
        if noisy and numbers and position not in release.answered.chosen:
            widths = np.asarray(release.bars.error.column(position).to_numpy(zero_copy_only=False), dtype=float)
            finite = widths[np.isfinite(widths)]
            released[position] = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    return ExpectedBars({}, {}, released)


def _stored_errors(
    planned: Planned, stored: Sequence[PaidBlock | None]
) -> tuple[dict[str, Mapping[str, tuple[float, float]]], bool]:
    """Return, by block, the errors that terms answered from the store will have in the answer, and whether the tables of
    every workload will agree with each other."""
    errors = {part.block.name: part.errors for part in stored if part is not None}
    workloads = planned.price.workloads
    if not errors or not workloads:
        return errors, True
    fresh = [priced for priced in planned.price.blocks if priced.block.name not in errors]
    made_up = made_up_blocks(fresh, planned.options)
    if made_up is None:
        return errors, True
    blocks = [part.block for part in stored if part is not None] + list(made_up)
    consistent = consistent_blocks(workloads, blocks, values=False)
    of_blocks = {block.name: shown_term_errors(block, float(planned.options.confidence)) for block in consistent}
    return {name: of_blocks[name] for name in errors}, all(
        can_be_consistent(workload, blocks) for workload in workloads
    )


def engine_sql(context: SessionContext, planned: Planned) -> tuple[tuple[str, str], ...]:
    """Return the generated SQL of each block. It reveals the owner's names for the data, the path to the privacy unit
    and the row filters of analysts."""
    emitter = context.emitter(context.index.views(for_display=True))
    return tuple((priced.block.name, sql) for priced in planned.price.blocks for sql in texts(emitter, priced.block))


def _expected_notes(bars: ExpectedBars, planned: Planned) -> tuple[str, ...]:
    """Return notes on the expected error bars of outputs that are neither plain COUNTs nor SUMs."""
    if not bars.assumed:
        return ()
    rows, names = planned.options.assume_rows, planned.plan.output_names
    widths = [(names[position], width) for position, width in bars.assumed.items()]
    finite = [f"{name} within about +/- {width:.4g}" for name, width in widths if math.isfinite(width)]
    nothing = [f"nothing known of {name}" for name, width in widths if not math.isfinite(width)]
    confidence = float(planned.options.confidence)
    return (
        f"{', '.join([*finite, *nothing])} in {confidence:.0%} of cases, if each group has {rows:,} rows (dp.assume_rows), "
        "most values near their lower bound",
    )
