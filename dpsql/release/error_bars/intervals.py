"""Error bars of expressions over the groups of one block, row by row.

An interval covers the exact answer's expression f(b) with the confidence asked for, where the release shows f(b + z)
and z is noise of a public law. Linear f: value +- the quantile of the noise. Other f: simulated, as `ends` says, with the
same law for any number of groups: more groups have fewer draws each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dpsql.release.error_bars.affine import Part, Weighed, half_widths, parts
from dpsql.release.error_bars.draws import Floats, known_law
from dpsql.release.error_bars.ends import Interval
from dpsql.release.error_bars.simulation import AT, Groups, Simulation
from dpsql.release.remainder import DIALECT, ReleasedBlock, column, identifier
from dpsql.release.sandbox import Room, floats

_BASE = "dp#base"


def intervals(room: Room, groups: Groups, expressions: Sequence[exp.Expr]) -> list[Interval]:
    """The interval of each expression (over the block's keys, measures and hidden columns); unknown for what is no
    number. Raises the refusals of `Room.query`."""
    table, terms = groups.table(), groups.terms()
    if not all(known_law(term) for term in terms.values()):
        return [Interval.nothing(table.num_rows) for _ in expressions]
    trees = [_over_terms(tree, groups.block) for tree in expressions]
    linear = [parts(tree, terms) for tree in trees]
    weights = [tree for known in linear for part in known or () for tree in (part.factor, *part.weights.values())]
    numbers = iter(_at_released(room, table, [*trees, *weights]))
    values = [next(numbers) for _ in trees]
    found: dict[int, Interval] = {}
    for at, known in enumerate(linear):
        if any(name in groups.block.shown_from for part in known or () for name in part.weights):
            continue
        weighed = [_weighed(part, numbers) for part in known or ()]
        half = np.full(len(table), np.nan)
        if known is not None and np.isfinite(values[at]).any():
            drawn = half_widths(weighed, terms, groups.confidence, groups.key) if known else np.zeros(len(table))
            if drawn is None:
                continue
            half = drawn
        elif known is None and np.isfinite(values[at]).any():
            continue
        found[at] = Interval.around(values[at], half)
    open_ = [at for at in range(len(trees)) if at not in found]
    simulation = Simulation(groups, table)
    for at in open_:
        found[at] = simulation.interval(room, expressions[at], values[at])
    nothing = Interval.nothing(len(table))
    return [nothing if _chosen(tree, groups.block) else found[at] for at, tree in enumerate(expressions)]


def _chosen(tree: exp.Expr, block: ReleasedBlock) -> bool:
    """Whether an expression reads a measure that was chosen, whose error no law of noise describes."""
    return any(node.name in block.groups.chosen for node in tree.find_all(exp.Column))


def _over_terms(tree: exp.Expr, block: ReleasedBlock) -> exp.Expr:
    """`tree` with every measure written out over terms."""
    copy = exp.Paren(this=tree.copy())
    for node in list(copy.find_all(exp.Column)):
        if node.name in block.measures:
            node.replace(block.measures[node.name].copy())
    return copy


def _at_released(room: Room, table: pa.Table, trees: Sequence[exp.Expr]) -> list[Floats]:
    """Each tree at the released numbers, NaN where it is no number."""
    items = [exp.Alias(this=tree.copy(), alias=identifier(f"v{at}")) for at, tree in enumerate(trees)]
    query = exp.Select(expressions=items, from_=exp.From(this=exp.Table(this=identifier(_BASE))), order=_order(AT))
    result = room.query(query.sql(dialect=DIALECT), {_BASE: table})
    return [floats(values) for values in result.columns]


def _order(*names: str) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=column(name)) for name in names])


def _weighed(part: Part, numbers: Iterator[Floats]) -> Weighed:
    factor = next(numbers)
    return Weighed({name: next(numbers) for name in part.weights}, factor, part.rounded)
