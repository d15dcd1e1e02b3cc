"""Error bars of expressions over the groups of one block, row by row.

An interval covers the exact answer's expression f(b) with the confidence asked for, where the release shows f(b + z)
and z is noise of a public law. Linear f: value +- the quantile of the noise. Other f: the quantiles of f(t - z*) over
replicates z* (t = b + z is released): exact for monotone functions of one term, because t - z* has the law of b given
t under a flat prior. Beyond `_MOST_CELLS` numbers the delta method (first order, steps of one standard deviation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.release.error_bars.affine import Part, Weighed, half_widths, parts
from dpsql.release.error_bars.draws import Floats, deviates, known_law, stratified
from dpsql.release.remainder import DIALECT, NoisyTerm, ReleasedBlock, column, identifier
from dpsql.release.sandbox import Room, floats

_MOST_CELLS = 2_000_000
_MOST_DRAWS = 4000
_LEAST_DRAWS = 200
_BASE, _DRAWS, _DRAW, _AT = "dp#base", "dp#draws", "dp#draw", "dp#at"


@dataclass(frozen=True)
class Interval:
    """One for each row, doubles; NaN where it is unknown."""

    value: Floats
    low: Floats
    high: Floats

    @property
    def error(self) -> Floats:
        """The larger distance from the value to an end: value +- error covers the interval."""
        return np.asarray(np.maximum(np.maximum(self.value - self.low, self.high - self.value), 0.0))

    @classmethod
    def unknown(cls, rows: int) -> Interval:
        """Nothing is known."""
        nan = np.full(rows, np.nan)
        return cls(nan, nan, nan)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups `rows` (numbers, None: all) of `block` with hidden columns `extra`, and where their bars come from."""

    block: ReleasedBlock
    extra: Mapping[str, Floats]
    rows: npt.NDArray[np.int64] | None
    confidence: float
    key: str

    def table(self) -> pa.Table:
        """Keys, terms and hidden columns of the groups asked for, numbered in their order."""
        table = self.block.table(self.extra)
        table = table if self.rows is None else table.take(pa.array(self.rows))
        return table.append_column(_AT, pa.array(np.arange(len(table))))

    def terms(self) -> dict[str, NoisyTerm]:
        """The block's terms by name."""
        return {term.name: term for term in self.block.terms}


def intervals(room: Room, groups: Groups, expressions: Sequence[exp.Expr]) -> list[Interval]:
    """The interval of each expression (over the block's keys, measures and hidden columns); unknown for what is no
    number. Raises the refusals of `Room.query`."""
    table, terms = groups.table(), groups.terms()
    if not all(known_law(term) for term in terms.values()):
        return [Interval.unknown(table.num_rows) for _ in expressions]
    trees = [_over_terms(tree, groups.block) for tree in expressions]
    linear = [parts(tree, terms) for tree in trees]
    weights = [tree for known in linear for part in known or () for tree in (part.factor, *part.weights.values())]
    numbers = iter(_at_released(room, table, [*trees, *weights]))
    values = [next(numbers) for _ in trees]
    found: dict[int, Interval] = {}
    for at, known in enumerate(linear):
        weighed = [_weighed(part, numbers) for part in known or ()]
        half = np.full(len(table), np.nan)
        if known is not None and np.isfinite(values[at]).any():
            drawn = half_widths(weighed, terms, groups.confidence, groups.key) if known else np.zeros(len(table))
            if drawn is None:
                continue
            half = drawn
        elif known is None and np.isfinite(values[at]).any():
            continue
        found[at] = _usable(values[at], values[at] - half, values[at] + half)
    open_ = [at for at in range(len(trees)) if at not in found]
    for at, ends in zip(open_, _replicated(room, groups, table, [trees[at] for at in open_]), strict=True):
        found[at] = _usable(values[at], *ends)
    nothing = Interval.unknown(len(table))
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
    query = exp.Select(expressions=items, from_=exp.From(this=exp.Table(this=identifier(_BASE))), order=_order(_AT))
    result = room.query(query.sql(dialect=DIALECT), {_BASE: table})
    return [floats(values) for values in result.columns]


def _order(*names: str) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=column(name)) for name in names])


def _weighed(part: Part, numbers: Iterator[Floats]) -> Weighed:
    factor = next(numbers)
    return Weighed({name: next(numbers) for name in part.weights}, factor, part.rounded)


def _usable(value: Floats, low: Floats, high: Floats) -> Interval:
    """Unknown wherever the value or an end is missing or not finite."""
    known = np.isfinite(value) & np.isfinite(low) & np.isfinite(high)
    return Interval(value, np.where(known, low, np.nan), np.where(known, high, np.nan))


def _replicated(room: Room, groups: Groups, table: pa.Table, trees: Sequence[exp.Expr]) -> list[tuple[Floats, Floats]]:
    """The ends of each tree, for every row."""
    if not trees:
        return []
    draws = min(_MOST_DRAWS, _MOST_CELLS // max(1, table.num_rows * len(trees)))
    if draws < _LEAST_DRAWS:
        return _delta(room, groups, table, trees)
    noise = {term.name: deviates(term, stratified(f"{groups.key}/{term.name}", draws)) for term in groups.block.terms}
    return [_percentiles(cells, groups.confidence) for cells in _cells(room, table, trees, noise)]


def _percentiles(cells: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Order statistics of each row; a replicate without a value may lie anywhere, so it counts at both ends."""
    draws = cells.shape[1]
    rank = max(int((1 - confidence) / 2 * (draws + 1)), 1) - 1
    lost = ~np.isfinite(cells)
    low = np.sort(np.where(lost, -np.inf, cells), axis=1)[:, rank]
    high = np.sort(np.where(lost, np.inf, cells), axis=1)[:, draws - 1 - rank]
    return low, high


def _cells(room: Room, table: pa.Table, trees: Sequence[exp.Expr], noise: Mapping[str, Floats]) -> list[Floats]:
    """Each tree at t - z for every row and draw: arrays (rows, draws), from one query."""
    draws = len(next(iter(noise.values())))
    drawn = pa.table({**{f"z#{name}": pa.array(z) for name, z in noise.items()}, _DRAW: pa.array(np.arange(draws))})
    items: list[exp.Expr] = [column(name, _BASE) for name in table.column_names if name not in noise]
    for name in noise:
        shifted = exp.Sub(this=column(name, _BASE), expression=column(f"z#{name}", _DRAWS))
        items.append(exp.Alias(this=shifted, alias=identifier(name)))
    items.append(column(_DRAW, _DRAWS))
    cross = exp.Join(this=exp.Table(this=identifier(_DRAWS)), kind="CROSS")
    inner = exp.Select(expressions=items, from_=exp.From(this=exp.Table(this=identifier(_BASE))), joins=[cross])
    results = []
    for tree in trees:
        as_double = exp.TryCast(this=tree.copy(), to=exp.DataType.build("double"))
        outer = exp.Select(
            expressions=[exp.Alias(this=as_double, alias=identifier("v"))],
            from_=exp.From(this=exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=identifier("r")))),
            order=_order(_AT, _DRAW),
        )
        result = room.query(outer.sql(dialect=DIALECT), {_BASE: table, _DRAWS: drawn}, most_rows=2 * _MOST_CELLS)
        results.append(floats(result.column(0)).reshape(table.num_rows, draws))
    return results


def _delta(room: Room, groups: Groups, table: pa.Table, trees: Sequence[exp.Expr]) -> list[tuple[Floats, Floats]]:
    """First order: each term moved by one standard deviation to both sides; the slopes scale the terms' own half
    widths, and independent errors add in squares (Casella and Berger 2002, 5.5.4)."""
    terms = [term for term in groups.block.terms if term.standard_deviation() > 0]
    moves = {term.name: np.zeros(1 + 2 * len(terms)) for term in groups.block.terms}
    for at, term in enumerate(terms):
        moves[term.name][[1 + 2 * at, 2 + 2 * at]] = term.standard_deviation() * np.array([1.0, -1.0])
    found = []
    for cells in _cells(room, table, trees, moves):
        square = np.zeros(len(cells))
        for at, term in enumerate(terms):
            slope = (cells[:, 2 + 2 * at] - cells[:, 1 + 2 * at]) / 2
            square += (slope * term.half_width(groups.confidence) / term.standard_deviation()) ** 2
        half = np.sqrt(square)
        found.append((cells[:, 0] - half, cells[:, 0] + half))
    return found
