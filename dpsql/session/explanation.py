"""EXPLAIN: what a question would cost, how accurate each column would be, where its answer would come from, and cheaper ways; as
data (the privacy plan) and as text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.engine.emit.measurements import texts
from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.plan.plan import group_count
from dpsql.plan.stability import tables
from dpsql.planning.expected_bars import ExpectedBars, expected_bars, made_up_blocks
from dpsql.planning.planner import Planned
from dpsql.policy import Policy
from dpsql.pricing.explain import (
    PLUS_MINUS,
    PlannedOutput,
    confidence_text,
    describe_loss,
    planned_outputs,
    running_lines,
    tile_count,
    tile_lines,
)
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import is_charged, price
from dpsql.pricing.workloads import Objective
from dpsql.privacy.accounting import Accountant
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.registry import MECHANISMS
from dpsql.release.release import OutputColumn, Release
from dpsql.release.remainder import AS_RELEASED, can_be_consistent, consistent_blocks
from dpsql.release.sandbox import numeric
from dpsql.release.shape import rows_text
from dpsql.release.value_text import half_width_text
from dpsql.reuse.lookup import PaidBlock, shown_term_errors
from dpsql.session.budget import ChargeShare, Remaining
from dpsql.session.context import SessionContext
from dpsql.session.notices import NoticedQuestion, Shown, notices
from dpsql.session.pipeline import rehearse, stored_answer
from dpsql.storage.records import dataclass, replace

_MOST_OUTPUTS = 12
_MOST_TILES = 50
_PRICE = "price: "
_LATER = "error bar comes with the answer"
_SEVERAL = "chosen; EXPLAIN VERBOSE shows its rank error"
_BEHIND = "chosen among values, or computed from such; EXPLAIN VERBOSE shows the error of the choice"


@dataclass(frozen=True)
class ColumnError:
    """What is known of the error of one column of the answer before it is measured: half widths of its bars in the unit of the
    column, the narrowest and the widest, or in words the `reason` why there is none. `assumed_rows`: the number of rows of each
    group for which they hold (None: whatever the data are)."""

    name: str
    least: float | None = None
    most: float | None = None
    assumed_rows: int | None = None
    reason: str = ""

    @classmethod
    def of_widths(cls, name: str, least: float, most: float, assumed_rows: int | None = None) -> ColumnError:
        """Return the error of half widths; `most` is infinite if noise would leave no information, NaN if there is none."""
        if math.isfinite(most):
            return cls(name, least, most, assumed_rows)
        if assumed_rows is None:
            return cls(name, reason="error not known")
        return cls(name, reason=f"nothing would be known of groups with {rows_text(assumed_rows)} (dp.assume_rows)")

    def text(self, confidence: float) -> str:
        """Return the line of EXPLAIN."""
        if self.least is None or self.most is None:
            return f"{self.name}: {self.reason}"
        low, high = half_width_text(self.least), half_width_text(self.most)
        groups = "" if self.assumed_rows is None else f", of groups with {rows_text(self.assumed_rows)}"
        width = high if low == high else f"{low} to {high}"
        return f"{self.name}: {PLUS_MINUS} {width} ({confidence_text(confidence)}{groups})"


@dataclass(frozen=True)
class PlannedGroups:
    """The groups that are measured. `counts`: their number in each block, None for private keys, of which it is not known before.
    `alone`: counts of rows up to this size may be noise alone (None: no rows are counted)."""

    counts: tuple[int, ...] | None
    alone: float | None = None

    def text(self) -> str:
        """Return the line of EXPLAIN. All groups of public keys are answered, also those that the data lack."""
        if self.counts is None:
            return "groups: unknown, those of private keys that enough units share"
        if not any(self.counts):
            return "groups: 0"
        line = f"groups: {' and '.join(f'{count:,}' for count in self.counts)}, with or without rows"
        if self.alone is None:
            return line
        return f"{line}; HAVING COUNT(*) > {math.ceil(self.alone):,} leaves out those that may be noise alone"


@dataclass(frozen=True)
class PrivacyPlan:
    """All noisy outputs of a question, its price, and what is known about it before it runs.

    `loss` is the price without stored releases; `charged` is what would be charged now; `remaining` is what each scope has left
    before the question; `errors` and `groups` are what is known of noisy columns and of groups; `further`: sentences on price
    and rows; `engine_sql` has the generated text of each block that would run (for the owner only).
    """

    outputs: tuple[PlannedOutput, ...]
    loss: PrivacyLoss
    charged: PrivacyLoss
    remaining: tuple[tuple[str, str], ...]
    stored: tuple[str, ...]
    engine_sql: tuple[tuple[str, str], ...]
    confidence: float
    columns: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    errors: tuple[ColumnError, ...] = ()
    groups: PlannedGroups | None = None
    further: tuple[str, ...] = ()

    @property
    def price(self) -> str:
        return describe_loss(self.charged)

    @property
    def share(self) -> str:
        """The charge as a share of the budget, in words."""
        return next((line.removeprefix(_PRICE) for line in self.further if line.startswith(_PRICE)), self.price)

    @property
    def lines(self) -> tuple[str, ...]:
        """Sentences on the accuracy of each output, the groups, the price, and what to know about the rows."""
        groups = () if self.groups is None else (self.groups.text(),)
        return (*(error.text(self.confidence) for error in self.errors), *groups, *self.further)

    def rows(self) -> list[tuple[Any, ...]]:
        return [output.row() for output in self.outputs]

    def to_text(self) -> str:
        """Return the text of EXPLAIN: a few lines for people."""
        return "\n".join(self.lines)

    def details(self) -> str:
        """Return the text of EXPLAIN VERBOSE: the noise of each measured number, and the exact price."""
        lines = [output.text(self.confidence) for output in self.outputs]
        lines.append(f"price: {describe_loss(self.loss)}")
        if self.stored:
            lines.append(f"stored releases answer {', '.join(self.stored)}; now charged: {describe_loss(self.charged)}")
        lines += [f"remaining ({scope}): {left}" for scope, left in self.remaining]
        return "\n".join([*lines, *self.notes])


def column_errors(
    columns: Sequence[OutputColumn],
    outputs: Sequence[PlannedOutput],
    bars: ExpectedBars,
    options: Options,
    stored: bool,
) -> tuple[ColumnError, ...]:
    """Return what is known of the error of each noisy column before it is measured.

    `bars`: the expected bars by position of the column. `stored`: a part of the answer comes from stored releases.
    """
    names = Counter(column.name for column in columns)
    chosen = [row for row in outputs if row.error_95 is None and row.l0]
    of_bounds = any(row.figures.chosen_first for row in outputs)  # what is chosen is no number, but a bound on sums
    later = _BEHIND if not of_bounds and any(names.keys().isdisjoint(row.names) for row in chosen) else _LATER
    errors = []
    for position, column in [entry for entry in enumerate(columns) if entry[1].noisy][:_MOST_OUTPUTS]:
        rows = [row for row in outputs if column.name in row.names and row.l0]
        if names[column.name] > 1:  # the rows of EXPLAIN name outputs and cannot distinguish these
            rows = [] if position in bars.of_terms else [row for row in rows if row.error_95 is None]
        of_terms = None if stored else bars.of_terms.get(position)
        alone = names[column.name] == 1
        widths = (bars.released.get(position), bars.assumed.get(position), of_terms)
        errors.append(_column_error(column, rows, alone, *widths, options, later))
    return tuple(errors)


def _column_error(
    column: OutputColumn,
    rows: Sequence[PlannedOutput],
    alone: bool,
    released: tuple[float, float] | None,
    assumed: float | None,
    of_terms: float | None,
    options: Options,
    later: str,
) -> ColumnError:
    """Return what is known of one column's error. `rows`: the noisy numbers that it reads; `alone`: no other column has its name;
    `released`, `assumed` and `of_terms`: its entries in `ExpectedBars`; `later`: the reason if its error is not known yet."""
    width = rows[0].error_95 if len(rows) == 1 else None
    if released is not None and (width is None or column.of_groups):
        return ColumnError.of_widths(column.name, *released)
    if column.of_groups:
        return ColumnError(column.name, reason="error not known: it depends on which groups there are")
    if assumed is not None:
        return ColumnError.of_widths(column.name, assumed, assumed, options.assume_rows)
    if rows and rows[0].error_95 is None and not (len(rows) > 1 and any(row.figures.chosen_first for row in rows)):
        shared_error = alone or len({row.bound for row in rows if row.error_95 is None}) == 1
        return ColumnError(column.name, reason=rows[0].error if shared_error else _SEVERAL)
    if width is not None:
        width = width if rows[0].stored_error_95 is None else rows[0].stored_error_95
        if column.type is Type.INTEGER:
            width = float(math.floor(width + 0.5))  # the shown number is rounded, and so is its bar
    elif not any(row.figures.chosen_first for row in rows):
        width = of_terms
    return ColumnError(column.name, reason=later) if width is None else ColumnError.of_widths(column.name, width, width)


def planned_groups(planned: Planned, outputs: Sequence[PlannedOutput]) -> PlannedGroups | None:
    """Return what is known of the groups that are measured, None without keys.

    `outputs`: the rows of EXPLAIN, from which follows the size below which a counted group may be noise alone.
    """
    keyed = [priced.block for priced in planned.own_blocks if priced.block.keys]
    if not keyed:
        return None
    if any(key.values is None for block in keyed for key in block.keys):
        return PlannedGroups(None)
    counts = tuple(group_count([key.values for key in block.keys], block.combinations) for block in keyed)
    sizes = [row.error_95 for row in outputs if row.aggregate == "count(*)" and row.error_95 and row.names]
    return PlannedGroups(counts, max(sizes, default=None))


def mechanism_line(planned: Planned, policy: Policy, accountant: Accountant) -> str:
    """Return how much narrower the noise of `dp.mechanism = auto` is, if the question names a mechanism that auto never takes;
    and the noise without `dp.correlation`, if that is set. Otherwise return ""."""
    options = planned.options
    mechanism = MECHANISMS.get(options.mechanism)
    if mechanism is None or mechanism.offered or options.target_error is not None:
        return ""
    times = _times_narrower(planned, replace(options, mechanism="auto"), policy, accountant)
    if not times:
        return ""
    line = f"dp.mechanism = auto: the noise of each sum and count is {times} times narrower, for the same price"
    if not options.correlation:
        return line
    untied = _times_narrower(planned, replace(options, correlation=Fraction(0)), policy, accountant)
    return line if untied == "1" else f"{line}; with dp.correlation = 0 it is {untied} times narrower"


def _times_narrower(planned: Planned, options: Options, policy: Policy, accountant: Accountant) -> str:
    """Return how many times narrower the noise of the question's terms is under `options`, least to most; "" without noise."""
    default = price(tuple(priced.block for priced in planned.price.blocks), options, policy, accountant)
    confidence = float(options.confidence)
    ratios = [
        term.noise.half_width(confidence) / other.noise.half_width(confidence)
        for priced, priced_again in zip(planned.price.blocks, default.blocks, strict=True)
        for term, other in zip(priced.noise.terms, priced_again.noise.terms, strict=True)
        if other.noise.half_width(confidence) > 0
    ]
    if not ratios:
        return ""
    low, high = (f"{ratio:,.0f}" if ratio >= 1000 else f"{ratio:.3g}" for ratio in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


def price_line(price: ChargeShare | None, stored: bool) -> str:
    """Return the line that says what the question would cost now."""
    if price is None:
        return f"{_PRICE}nothing, stored releases answer" if stored else f"{_PRICE}nothing"
    return f"{_PRICE}{price.before()}"


def workload_lines(planned: Planned) -> tuple[str, ...]:
    """Return lines on the effect of `dp.workload`: each tile's error bars if all are measured as one, and if separately."""
    objective, price = planned.options.workload, planned.price
    if price.running:
        lines = running_lines(price, planned.options.confidence, _MOST_TILES)
        further = len(price.running) - len(lines)
        head = f"measured as one ({objective}): noise by the square root of the matrix of running totals"
        return (head, *lines, *((f"and {further} more sums",) if further else ()))
    if not price.workloads:
        return ()
    tiles = tile_lines(price, planned.options.confidence, _MOST_TILES)
    further = tile_count(price) - len(tiles)
    more = (f"and {further} more tiles",) if further else ()
    how = (
        "by wider and wider ranges, too"
        if objective is Objective.RUNNING
        else "every table is answered from all of them"
    )
    return (f"measured as one ({objective}): {how}, and their totals agree", *tiles, *more)


def cheaper_line(charged: PrivacyLoss, options: Options, least: Fraction, again: str, *, squared: bool) -> str:
    """Return the line on what would lower the price: half the epsilon (whose price is `squared` under zCDP), or a larger
    target error if the question has one. `again`: what asking the same again costs."""
    if charged != PrivacyLoss.nothing() and options.target_error is not None:
        return f"cheaper: a larger dp.target_error; the same question again {again}"
    half = options.epsilon / 2
    if charged == PrivacyLoss.nothing() or half < least:
        return ""
    part = "a quarter" if squared else "half"
    return (
        f"cheaper: SET dp.epsilon = {plain_decimal(half)} costs about {part} and makes errors about twice as large; "
        f"the same question again {again}"
    )


_MOST_GROUPS = 20_000
"""Most groups of stored releases for which EXPLAIN computes error bars: about a quarter of a second, linear in the groups."""


def preview(context: SessionContext, planned: Planned) -> PrivacyPlan:
    """Return the privacy plan of a question; nothing is charged, data is not touched. Raises the refusals of the question."""
    columns = rehearse(context.planner, context.sandbox, planned)
    if planned.plan.empty:
        planned = planned.without_blocks()
    lookup = context.stored_releases.find(planned, context.stages().fill, asking=False)
    planned, stored = lookup.planned, lookup.blocks
    if None in stored:
        planned.require_rows()
    blocks = planned.price.blocks
    missing = [priced for priced, release in zip(blocks, stored, strict=True) if release is None]
    charged = sum((priced.loss for priced in missing), PrivacyLoss.nothing())
    if any(map(is_charged, missing)):
        context.planner.require_least(charged)
    confidence = planned.options.confidence
    errors, agreeing = _stored_errors(planned, stored)
    outputs = planned_outputs(
        planned.plan, planned.own_blocks, confidence, errors, planned.price.laws_after if agreeing else {}
    )
    answered = None if missing else _stored_answer(context, planned, stored)
    if answered is None:
        bars = expected_bars(planned.plan, planned.price, planned.options, context.sandbox, planned.text)
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
            context.again(planned.options),
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
    """Return the answer from stored releases; None if that reads tables, takes longer than EXPLAIN may, or fails."""
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
    """Return each block's SQL, which reveals the owner's names, the path to the unit and row filters of analysts."""
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
