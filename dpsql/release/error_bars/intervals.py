"""Error bars of expressions over the groups of one block, row by row.

The release shows f(b + z), where z is noise from a public law; the interval covers the exact f(b) with the requested
confidence. Linear f: value +- the quantile of the noise. Other f: simulation by the rule in `ends`, which is the same for any
number of groups, but with fewer draws per group for more groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dpsql.release.error_bars.affine import Part, Weighed, half_widths, parts
from dpsql.release.error_bars.draws import Floats, known_law
from dpsql.release.error_bars.ends import Interval, hull_of
from dpsql.release.error_bars.extents import extent
from dpsql.release.error_bars.quotients import quotient, quotient_ends
from dpsql.release.error_bars.simulation import AT, Measures, ReleasedGroups, Simulation
from dpsql.release.formulas import numbers
from dpsql.release.remainder import DIALECT, ReleasedBlock, column, identifier
from dpsql.release.sandbox import Room, floats

_BASE = "dp#base"
_SAME = 1e-12
"""Largest difference at which two confidences count as equal: rounding of floats."""


def intervals(room: Room, groups: ReleasedGroups, expressions: Sequence[exp.Expr]) -> list[Interval]:
    """Return the interval of each expression (over the block's keys, measures and hidden columns); unknown where its value is
    not a number. Raises the refusals of `Room.query`."""
    measured = [measured_interval(tree, groups) for tree in expressions]
    unmeasured = [tree for tree, interval in zip(expressions, measured, strict=True) if interval is None]
    computed = iter(_noise_intervals(room, groups, unmeasured) if unmeasured else ())
    return [next(computed) if interval is None else interval for interval in measured]


def measured_name(tree: exp.Expr | None, block: ReleasedBlock) -> str | None:
    """Return the measure that an expression consists of, if the ends of its error bar were measured; else None."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    names = {name for name, *_ in block.groups.ends}
    return tree.name if isinstance(tree, exp.Column) and tree.name in names else None


def measured_interval(tree: exp.Expr, groups: ReleasedGroups) -> Interval | None:
    """Return the measured error bar of an expression, or None if none was measured. The bar is empty at a higher confidence than
    it was measured for."""
    block, measure = groups.block, measured_name(tree, groups.block)
    if measure is None:
        return None
    rows = slice(None) if groups.rows is None else groups.rows
    low, high, confidence = next(ends for name, *ends in block.groups.ends if name == measure)
    terms = {term.name: np.asarray(term.values, dtype=np.float64) for term in block.terms}
    value = next(formula for name, formula, _ in block.formulas if name == measure)
    middle, below, above = (numbers(formula, terms)[rows] for formula in (value, low, high))
    if groups.confidence > float(confidence) + _SAME:
        return Interval.nothing(middle.size)
    return Interval(middle, below, above, np.zeros(middle.size, dtype=bool))


def _noise_intervals(room: Room, groups: ReleasedGroups, expressions: Sequence[exp.Expr]) -> list[Interval]:
    """Return the interval of each expression, computed from the law of its noise."""
    table, terms = groups.table(), groups.terms()
    if not all(known_law(term) for term in terms.values()):
        return [Interval.nothing(table.num_rows) for _ in expressions]
    trees = [_over_terms(tree, groups.block.plug_ins) for tree in expressions]
    linear = [parts(tree, terms) for tree in trees]
    weights = [tree for sums in linear for part in sums or () for tree in (part.factor, *part.weights.values())]
    numbers = iter(_at_released(room, table, [*trees, *weights]))
    values = [next(numbers) for _ in trees]
    by_position: dict[int, Interval] = {}
    for index, sums in enumerate(linear):
        if any(name in groups.block.shown_from for part in sums or () for name in part.weights):
            continue
        weighed = [_weighed(part, numbers) for part in sums or ()]
        half = np.full(len(table), np.nan)
        if sums is not None and np.isfinite(values[index]).any():
            drawn = half_widths(weighed, terms, groups.confidence, groups.key) if sums else np.zeros(len(table))
            if drawn is None:
                continue
            half = drawn
        elif sums is None and np.isfinite(values[index]).any():
            continue
        by_position[index] = Interval.around(values[index], half)
    by_position |= _quotient_intervals(
        room, groups, table, {index: trees[index] for index in range(len(trees)) if index not in by_position},
        expressions, values,
    )  # fmt: skip
    open_ = [index for index in range(len(trees)) if index not in by_position]
    simulation = Simulation(groups, table)
    for index in open_:
        by_position[index] = simulation.interval(room, expressions[index], values[index])
    nothing = Interval.nothing(len(table))
    displayed = _displayed(room, groups.block, table, expressions)
    intervals_of_values = [by_position[position] for position in range(len(expressions))]
    return [
        nothing if _chosen(tree, groups.block) else interval.around_displayed(displayed.get(position, interval.value))
        for position, (tree, interval) in enumerate(zip(expressions, intervals_of_values, strict=True))
    ]


def _quotient_intervals(
    room: Room,
    groups: ReleasedGroups,
    table: pa.Table,
    trees: Mapping[int, exp.Expr],
    expressions: Sequence[exp.Expr],
    values: Sequence[Floats],
) -> dict[int, Interval]:
    """Return, by position, the intervals of those `trees` that are a quotient of two sums of terms. Skip a quotient with a term
    whose noise decided which groups are shown, because in these groups the noise has another law."""
    terms, intervals_of_quotients = groups.terms(), {}
    for index, tree in trees.items():
        fraction = quotient(tree, terms)
        if fraction is None or any(name in groups.block.shown_from for name in fraction.names):
            continue
        sides = _at_released(room, table, [fraction.above, fraction.below])
        low, high = quotient_ends(fraction, sides[0], sides[1], terms, groups.confidence, groups.key)
        within = extent(expressions[index], Measures(groups.block).extent)
        low, high = hull_of([(low, high)], within)
        intervals_of_quotients[index] = Interval.of(values[index], low, high, within)
    return intervals_of_quotients


def _displayed(room: Room, block: ReleasedBlock, table: pa.Table, expressions: Sequence[exp.Expr]) -> dict[int, Floats]:
    """Return, by position, the displayed values of `expressions` over estimates, which differ from their plug-in values."""
    positions = [
        position
        for position, tree in enumerate(expressions)
        if any(node.name in block.estimates for node in tree.find_all(exp.Column))
    ]
    if not positions:
        return {}
    trees = [_over_terms(expressions[position], block.measures) for position in positions]
    return dict(zip(positions, _at_released(room, table, trees), strict=True))


def _chosen(tree: exp.Expr, block: ReleasedBlock) -> bool:
    """Return whether an expression reads a chosen measure, whose error follows no known law."""
    return any(node.name in block.groups.chosen for node in tree.find_all(exp.Column))


def _over_terms(tree: exp.Expr, measures: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a copy of `tree` in which every measure is replaced by its formula over terms."""
    copy = exp.Paren(this=tree.copy())
    for node in list(copy.find_all(exp.Column)):
        if node.name in measures:
            node.replace(measures[node.name].copy())
    return copy


def _at_released(room: Room, table: pa.Table, trees: Sequence[exp.Expr]) -> list[Floats]:
    """Return the value of each tree at the released numbers, NaN where it is not a number."""
    items = [exp.Alias(this=tree.copy(), alias=identifier(f"v{position}")) for position, tree in enumerate(trees)]
    query = exp.Select(expressions=items, from_=exp.From(this=exp.Table(this=identifier(_BASE))), order=_order(AT))
    result = room.query(query.sql(dialect=DIALECT), {_BASE: table})
    return [floats(values) for values in result.columns]


def _order(*names: str) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=column(name)) for name in names])


def _weighed(part: Part, numbers: Iterator[Floats]) -> Weighed:
    factor = next(numbers)
    return Weighed({name: next(numbers) for name in part.weights}, factor, part.rounded)
