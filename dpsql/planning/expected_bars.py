"""Error bars of a question's outputs before anything is measured: from text, policy, options and one assumption.

The error of COUNT and SUM is that of their terms. All other errors (of AVG, VAR, a difference, a sum over groups) depend on the
number of rows and on their values. So a noiseless release is simulated in which every group has `dp.assume_rows` rows with values
between their bounds, a tenth of the way up on average; its error bars, computed like those of any release, are the expected ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Plan, Term
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import Price, PricedBlock, widest_term
from dpsql.pricing.sharing import assumed_value
from dpsql.privacy.mechanisms.contract import KeyColumn, TermNoise
from dpsql.privacy.mechanisms.registry import is_shared
from dpsql.release.error_bars import Bars, answer, bars
from dpsql.release.error_bars.answers import shape_of
from dpsql.release.error_bars.rowwise import Traced
from dpsql.release.remainder import ReleasedBlock, Remainder, StandIn, consistent_blocks
from dpsql.release.sandbox import Sandbox
from dpsql.storage.records import dataclass, field, replace

_PRIVATE_GROUPS = 10
"""Number of groups that is simulated for private keys, because the actual number is unknown."""
_MOST_GROUPS = 2_000
_DIRECT = frozenset({"count", "count_units", "count_distinct", "sum", "count_if"})


@dataclass(frozen=True)
class ExpectedBars:
    """Half widths of noisy numbers, by position among the outputs, the widest of all rows. `of_terms`: outputs that are a COUNT
    or SUM without further arithmetic, whatever the data are; `assumed`: all others, for groups of `dp.assume_rows` rows, infinite
    where noise would leave no information. `released`: the narrowest and the widest half width in an answer that is stored
    already, NaN where no row has one."""

    of_terms: Mapping[int, float]
    assumed: Mapping[int, float]
    released: Mapping[int, tuple[float, float]] = field(default_factory=dict)


_NOTHING = ExpectedBars({}, {})


def expected_bars(plan: Plan, priced: Price, options: Options, sandbox: Sandbox, text: str = "") -> ExpectedBars:
    """Return the half widths of the outputs of a question that are not chosen and do not depend on the set of groups. `text`: the
    public remainder as SQL, if it is known.

    Empty where none can be computed: for remainders that read results of stages or public tables, for public keys whose values an
    earlier stage determines, and for sums whose noise follows from a bound that is chosen (`total_cuts`).
    """
    if not plan.blocks or plan.cuts or not _blocks_alone(plan):
        return _NOTHING
    if any(
        key.values is not None and not len(key.values)
        for priced_block in priced.blocks
        for key in priced_block.noise.keys
    ):
        return _NOTHING
    made_up = made_up_blocks(priced.blocks, options)
    if made_up is None:
        return _NOTHING
    names, consistent = {each.name for each in plan.blocks}, consistent_blocks(priced.workloads, made_up, values=False)
    blocks = tuple(block for block in consistent if block.name in names)
    remainder = Remainder(plan.remainder, plan.output_names, blocks, {}, text)
    try:
        traced = shape_of(remainder).traced
        direct = _direct(plan, traced)
        if traced is not None and not priced.workloads and _has_equal_rows(traced, blocks):
            remainder = replace(remainder, blocks=tuple(map(_first_group, blocks)))
        answered = answer(sandbox, remainder, float(options.confidence), simultaneous=False)
        computed = bars(sandbox, answered)
    except Error:
        return _NOTHING
    widths = {
        position: _widest(computed, position)
        for position, noisy in enumerate(answered.noisy)
        if noisy and position not in answered.of_groups | answered.chosen
        if len(answered.table) and _a_number(answered.table, position)
    }
    return ExpectedBars(
        {position: width for position, width in widths.items() if position in direct},
        {position: width for position, width in widths.items() if position not in direct},
    )


def _blocks_alone(plan: Plan) -> bool:
    """Return whether the public remainder reads only blocks."""
    names = {block.name for block in plan.blocks} | {entry.alias for entry in plan.remainder.find_all(exp.CTE)}
    return all(table.name in names for table in plan.remainder.find_all(exp.Table))


def widest_bar(plan: Plan, priced: Price, options: Options, sandbox: Sandbox) -> float:
    """Return the widest error bar of all outputs: exact for outputs that are single terms, simulated for others."""
    widths = expected_bars(plan, priced, options, sandbox).assumed
    if not widths:
        return widest_term(priced, options)
    measured = frozenset(
        (block.name, m.name) for block in plan.blocks for m in block.measures if m.aggregate in _DIRECT
    )
    return max([*widths.values(), widest_term(priced, options, measured)])


def _widest(computed: Bars, position: int) -> float:
    errors = np.asarray(computed.error.column(position).to_numpy(zero_copy_only=False), dtype=float)
    unknown = np.asarray(computed.unknown.column(position).to_numpy(zero_copy_only=False), dtype=bool)
    return float(np.max(np.where(unknown | ~np.isfinite(errors), np.inf, errors)))


def _a_number(table: pa.Table, position: int) -> bool:
    type_ = table.schema.field(position).type
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _has_equal_rows(traced: Traced, blocks: Sequence[ReleasedBlock]) -> bool:
    """Return whether every group of simulated blocks yields rows with the same bars: no key decides which rows exist or enters a
    noisy number, and no noise depends on the position of a group."""
    keys = {name for block in blocks for name in block.keys.column_names}
    computed = (
        output for output in traced.outputs if output is not None and not isinstance(output.unnest(), exp.Column)
    )
    if None in traced.outputs or any(node.name in keys for output in computed for node in output.find_all(exp.Column)):
        return False
    if any(True for _ in traced.tree.find_all(exp.Where, exp.Qualify, exp.Offset)):
        return False
    return not any(is_shared(term.noise) for block in blocks for term in block.terms)


def _first_group(block: ReleasedBlock) -> ReleasedBlock:
    terms = tuple(replace(term, values=term.values[:1]) for term in block.terms if isinstance(term, StandIn))
    return replace(block, keys=block.keys.slice(0, 1), terms=terms, rows=min(1, block.rows))


def _direct(plan: Plan, traced: Traced | None) -> frozenset[int]:
    """Return the positions of outputs that are a COUNT or SUM without further arithmetic."""
    if traced is None:
        return frozenset()
    measures = {m.name: m for block in plan.blocks if block.name == traced.block for m in block.measures}
    positions = set()
    for position, output in enumerate(traced.outputs):
        column = None if output is None else output.unnest()
        if isinstance(column, exp.Column) and column.name in measures and measures[column.name].aggregate in _DIRECT:
            positions.add(position)
    return frozenset(positions)


def _groups(priced: PricedBlock) -> int:
    return math.prod(_PRIVATE_GROUPS if key.values is None else len(key.values) for key in priced.noise.keys)


def made_up_blocks(priced: Sequence[PricedBlock], options: Options) -> tuple[ReleasedBlock, ...] | None:
    """Return simulated released blocks, without noise, whose groups have `dp.assume_rows` rows each; None for too many groups."""
    if sum(map(_groups, priced)) > _MOST_GROUPS:
        return None
    return tuple(_made_up_block(each, int(options.assume_rows)) for each in priced)


def _made_up_block(priced: PricedBlock, rows: int) -> ReleasedBlock:
    keys = _keys(priced.noise.keys)
    groups = len(keys) if priced.noise.keys else 1
    named = {term.name: term for term in priced.block.terms}
    terms = tuple(_term(named.get(noisy.name), noisy, rows, groups) for noisy in priced.noise.terms)
    chosen = tuple(
        StandIn(name, np.zeros(groups), whole=True)
        for measurement in priced.noise.measurements
        for name, _ in measurement.laws
    )
    facts = replace(priced.block.groups, ends=())  # nothing is measured, so no error bar is either
    return ReleasedBlock(priced.block.name, keys, (*terms, *chosen), priced.block.formulas, groups, facts)


def _keys(columns: Sequence[KeyColumn]) -> pa.Table:
    """Return every combination of the public values (numbered stand-ins for private keys), first key slowest."""
    values = [
        pa.array([str(number) for number in range(_PRIVATE_GROUPS)]) if column.values is None else column.values
        for column in columns
    ]
    sizes = [len(part) for part in values]
    total = math.prod(sizes)
    key_columns, below = {}, total
    for column, part, size in zip(columns, values, sizes, strict=True):
        below //= size
        indexes = np.arange(min(total, _MOST_GROUPS + 1)) // below % size
        key_columns[column.name] = part.take(pa.array(indexes))
    return pa.table(key_columns)


def _term(term: Term | None, noisy: TermNoise, rows: int, groups: int) -> StandIn:
    return StandIn.of_law(noisy, np.full(groups, float(rows) if term is None else rows * assumed_value(term)))
