"""EXPLAIN for analysts, one line for each topic: accuracy, price, the rows that count, and what would be cheaper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.plan.combinations import group_count
from dpsql.plan.expression_text import expression_text
from dpsql.plan.intervals import Type
from dpsql.plan.plan import TotalCut
from dpsql.plan.stability import tables
from dpsql.planning.expected_bars import ExpectedBars
from dpsql.planning.planner import Planned
from dpsql.policy import Policy
from dpsql.pricing.budget_shares import Objective
from dpsql.pricing.explain import PlannedOutput, running_lines, tile_count, tile_lines
from dpsql.pricing.explained_sums import TIMES_THE_CUT, TIMES_THE_PLACES, cut_text
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import price
from dpsql.pricing.total_cuts import EMPTY_CELLS, cut_at, units_above
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.registry import MECHANISMS
from dpsql.release.release import OutputColumn
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.value_text import half_width_text
from dpsql.session.budget import ChargeShare

_MOST_OUTPUTS = 12
_MOST_TILES = 50


def error_lines(
    columns: Sequence[OutputColumn],
    outputs: Sequence[PlannedOutput],
    bars: ExpectedBars,
    options: Options,
    stored: bool,
) -> tuple[str, ...]:
    """Return a line for each noisy column with the half width of its error bar, in the column's own unit, before it is
    measured.

    `bars`: the expected bars by position of the column. `stored`: a part of the answer comes from stored releases.
    """
    names = Counter(column.name for column in columns)
    lines = []
    for position, column in [(place, column) for place, column in enumerate(columns) if column.noisy][:_MOST_OUTPUTS]:
        rows = [row for row in outputs if column.name in row.output.split(", ") and row.l0]
        if names[column.name] > 1:  # the rows of EXPLAIN name outputs and cannot distinguish these
            rows = [] if position in bars.of_terms else [row for row in rows if row.error_95 is None]
        term = rows[0] if len(rows) == 1 and rows[0].error_95 is not None else None
        if position in bars.released and (term is None or column.of_groups):
            error = _released_text(*bars.released[position], options)
        elif column.of_groups:
            error = "error not known: it depends on which groups there are"
        elif position in bars.assumed:
            error = _assumed_text(bars.assumed[position], options)
        elif len(rows) > 1 and any(row.bound.endswith((TIMES_THE_CUT, TIMES_THE_PLACES)) for row in rows):
            error = "error bar comes with the answer"
        elif rows and rows[0].error_95 is None:
            bounds = {row.bound for row in rows if row.error_95 is None}
            alone = len(bounds) == 1 or names[column.name] == 1
            error = rows[0].bound.partition("; ")[2] if alone else "chosen; EXPLAIN VERBOSE shows its rank error"
        elif term is not None and term.error_95 is not None:
            width = term.error_95 if term.stored_error_95 is None else term.stored_error_95
            if column.type is Type.INTEGER:
                width = math.floor(width + 0.5)  # the shown number is rounded, and so is its bar
            error = f"\N{PLUS-MINUS SIGN} {half_width_text(width)} ({_confidence_text(options)})"
        elif position in bars.of_terms and not stored:
            error = f"\N{PLUS-MINUS SIGN} {half_width_text(bars.of_terms[position])} ({_confidence_text(options)})"
        else:
            error = "error bar comes with the answer"
        lines.append(f"{column.name}: {error}")
    return tuple(lines)


def _released_text(narrowest: float, widest: float, options: Options) -> str:
    """Return the text of the bars of all rows of a stored answer."""
    if math.isnan(widest):
        return "error not known"
    low, high = half_width_text(narrowest), half_width_text(widest)
    return f"\N{PLUS-MINUS SIGN} {high if low == high else f'{low} to {high}'} ({_confidence_text(options)})"


def groups_line(planned: Planned, outputs: Sequence[PlannedOutput]) -> str:
    """Return how many groups are measured, "" without keys. All groups of public keys are answered, also those that the data
    lack; which of private keys there are is not known before.

    `outputs`: the rows of EXPLAIN, from which follows the size below which a counted group may be noise alone.
    """
    keyed = [priced.block for priced in planned.own_blocks if priced.block.keys]
    if not keyed:
        return ""
    if any(key.values is None for block in keyed for key in block.keys):
        return "groups: unknown, those of private keys that enough units share"
    counts = [group_count([key.values for key in block.keys], block.combinations) for block in keyed]
    line = f"groups: {' and '.join(f'{count:,}' for count in counts)}, with or without rows"
    sizes = [row.error_95 for row in outputs if row.aggregate == "count(*)" and row.error_95 and row.output]
    return (
        f"{line}; HAVING COUNT(*) > {math.ceil(max(sizes)):,} leaves out those that may be noise alone"
        if sizes
        else line
    )


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
    """Return how many times narrower the noise of the question's terms is under `options`, from the least to the most; "" if
    there is no noise."""
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


def _assumed_text(width: float, options: Options) -> str:
    """Return the text of the half width of a bar that holds for groups of `dp.assume_rows` rows."""
    assumed = f"of groups with {options.assume_rows:,} rows"
    if not math.isfinite(width):
        return f"nothing would be known {assumed} (dp.assume_rows)"
    return f"\N{PLUS-MINUS SIGN} {half_width_text(width)} ({_confidence_text(options)}, {assumed})"


def _confidence_text(options: Options) -> str:
    return f"{float(options.confidence) * 100:.4g} %"


def price_line(price: ChargeShare | None, charged: str, stored: bool) -> str:
    """Return the line that says what the question would cost now."""
    if price is None:
        return "price: nothing, stored releases answer" if stored else "price: nothing"
    return f"price: {price.before()} ({charged})"


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
    return (
        f"measured as one ({objective}): {how}, and their totals agree",
        *tiles,
        *more,
    )


def workload_notices(planned: Planned) -> tuple[str, ...]:
    """Return a notice of the rows that the tables of a workload leave out, so that all of them sum over the same rows."""
    if planned.options.workload is Objective.RUNNING:
        return ()
    tiles = {tile.block for workload in planned.price.workloads for tile in workload.tiles}
    keys = {
        expression_text(key.expression): None
        for priced in planned.price.blocks
        if priced.block.name in tiles
        for key in priced.block.keys
        if key.drops
    }
    if not keys:
        return ()
    return (
        f"dp.workload: rows whose {', '.join(keys)} is none of the public keys are left out of every table and total",
    )


def target_notices(planned: Planned) -> tuple[str, ...]:
    """Return a notice of what `dp.target_error` means for numbers chosen among values; nothing for questions without both."""
    options = planned.options
    if options.target_error is None or not any(priced.block.measurements for priced in planned.price.blocks):
        return ()
    return (
        f"dp.target_error: quantiles, MIN, MAX and MODE are off by at most {plain_decimal(options.target_error)} rows of rank "
        f"in {_confidence_text(options)} of cases, in the worst case; how far that is in values follows from the data",
    )


def row_notices(planned: Planned, policy: Policy) -> tuple[str, ...]:
    """Return notices of the rows and groups of a unit that are left out because it may have too many; none if it cannot."""
    if policy.privacy_unit is None:
        return ()
    unit = _unit_word(policy)
    read = dict.fromkeys(name for priced in planned.price.blocks for name in sorted(tables(priced.block.source)))
    limited = [
        _rows(policy.tables[name].bounds.max_rows or 1, name)
        for name in read
        if policy.is_protected(name) and not (not policy.unit_joins(name) and _once(policy, name))
    ]
    notices = [f"at most {' and '.join(limited)} count for each {unit}; further ones are left out"]
    groups = {priced.block.caps.bounds.max_groups for priced in planned.price.blocks} - {None}
    more = [
        f"each {unit} counts in at most {most} groups (max_groups)" for most in sorted(map(int, filter(None, groups)))
    ]
    return (*(notices if limited else ()), *more)


def cut_notices(planned: Planned, policy: Policy, blocks: Sequence[ReleasedBlock] = ()) -> tuple[str, ...]:
    """Return notices of the chosen bounds to which a unit's contributions are cut (`dp.max_total = auto` and the like), and of
    the effects that error bars do not include. `blocks`: the released ones (none before anything is released)."""
    released = {block.name: block for block in blocks}
    priced = {block.block.name: block for block in planned.price.blocks}
    whose = _unit_word(policy)
    notices = []
    for cut in planned.plan.cuts:
        summed = cut_text(cut, planned.plan)
        ((_, law),) = priced[cut.block].noise.measurements[0].laws
        assert isinstance(law, Choice)
        missed = 1 - float(planned.options.confidence)
        most_above = units_above(cut, law, 0, missed)
        if cut.places:
            cell = int(released[cut.block].terms[0].values[0]) if cut.block in released else None
            notices.append(_places_notice(f"{summed}: ", whose, cut, law, cell, planned.options))
            continue
        if cut.block not in released:
            notices.append(
                f"{summed}: a part of the price chooses a bound on what one {whose} adds in all, near total number {law.rank} "
                "from the largest down (dp.max_total = auto); what is above it is left out, and error bars do not hold that; "
                f"where fewer than about {most_above:,} have values, the bound may be the policy's own, {cut_at(cut, 0):.4g}"
            )
            continue
        cell = int(released[cut.block].terms[0].values[0])
        if cell < EMPTY_CELLS:
            notices.append(
                f"{summed}: too few have values for a bound to be chosen (dp.max_total = auto), which may take up to "
                f"{most_above:,} of them; one {whose} adds at most {cut_at(cut, cell):.4g} in all, the policy's own bound, and "
                "noise is as large as that. SET dp.max_total = a number, or a larger dp.epsilon"
            )
            continue
        above = units_above(cut, law, cell, missed)
        notices.append(
            f"{summed}: one {whose} adds at most {cut_at(cut, cell):.4g} in all, a bound that was chosen for this answer "
            f"(dp.max_total = auto); of at most {above:,} who have more ({_confidence_text(planned.options)}), the rest is left "
            "out, and error bars do not hold that"
        )
    return tuple(notices)


def _places_notice(start: str, whose: str, cut: TotalCut, law: Choice, cell: int | None, options: Options) -> str:
    """Return the notice of how many values a unit contributes under `dp.max_values = auto`, or how that number will be chosen."""
    missed = 1 - float(options.confidence)
    enough = units_above(cut, law, 0, missed)
    if cell is None:
        return (
            f"{start}a part of the price chooses how many values each {whose} brings, near number {law.rank} of values that one "
            "has, from the largest down (dp.max_values = auto); values that nobody brings are left out, and error bars do not "
            f"hold that; where fewer than about {enough:,} have values, it may be {cut_at(cut, 0):.0f}, as many as one may have"
        )
    if cell < EMPTY_CELLS:
        return (
            f"{start}too few have values for a number to be chosen (dp.max_values = auto), which may take up to {enough:,} of "
            f"them; one {whose} brings up to {cut_at(cut, cell):.0f}, as many as one may have, and noise is as large as that. "
            "SET dp.max_values = a number, or a larger dp.epsilon"
        )
    above = units_above(cut, law, cell, missed)
    return (
        f"{start}one {whose} brings at most {cut_at(cut, cell):.0f} values, a number that was chosen for this answer "
        f"(dp.max_values = auto); at most {above:,} have more ({_confidence_text(options)}), of which those that nobody brings "
        "are left out, and error bars do not hold that"
    )


def _unit_word(policy: Policy) -> str:
    """Return the word for one privacy unit: the name of its column, if the asker may know that."""
    unit = policy.privacy_unit
    home = None if unit is None else policy.visible.get(unit.table)
    return unit.column if unit is not None and home is not None and unit.column in home.columns else "privacy unit"


def _rows(most: int, table: str) -> str:
    return f"{most:,} row{'' if most == 1 else 's'} of {table}"


def _once(policy: Policy, table: str) -> bool:
    """Return whether the policy promises that each unit has one row of `table`."""
    column = policy.unit_column(table)
    return column is not None and policy.tables[table].is_unique((column,))


def cheaper_line(charged: PrivacyLoss, options: Options, least: Fraction, *, squared: bool) -> str:
    """Return the line on what would lower the price: half the epsilon (whose price is `squared` under zCDP), or a larger
    target error if the question has one."""
    if charged != PrivacyLoss.nothing() and options.target_error is not None:
        return "cheaper: a larger dp.target_error; the same question again is free"
    half = options.epsilon / 2
    if charged == PrivacyLoss.nothing() or half < least:
        return ""
    part = "a quarter" if squared else "half"
    return (
        f"cheaper: SET dp.epsilon = {plain_decimal(half)} costs about {part} and makes errors about twice as large; "
        "the same question again is free"
    )
