"""Bars of row-wise expressions that are not linear in noise: formulas over arrays of draws, by the rule in `ends`.

All groups share the draws of a term (stratified, so that integrals over one term alone are almost exact); they differ in their
released numbers. If a clamped measure was released outside of its bounds, the bound is shown in its place: draws are taken
around the bound as well, or the bar would have no width although there is noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.plan.intervals import Type
from dpsql.release.error_bars.conditional import values_given_shown
from dpsql.release.error_bars.draws import Floats, deviates, stratified
from dpsql.release.error_bars.ends import Interval, hull_of, number_of_draws, percentiles
from dpsql.release.error_bars.extents import EVERYTHING, Extent, extent
from dpsql.release.error_bars.vectors import Vector, clamped, counted, vector
from dpsql.release.remainder import DIALECT, ROW, ReleasedBlock, ReleasedTerm, identifier
from dpsql.release.sandbox import Room, floats

_MOST_CELLS = 2_000_000
_PART_CELLS = 250_000
_DRAWN = "dp#drawn"
AT = "dp#at"
"""Hidden column: the number of a group among the requested ones."""


def typed(values: Floats, type_: Type | None) -> pa.Array:
    """Return numbers as a column of the sandbox in the type of a measure, NaN as NULL; dates and timestamps are days and
    microseconds as in `counted`."""
    nothing = np.isnan(values)
    if type_ is Type.DATE:
        return pa.array(np.where(nothing, 0, values).astype(np.int32), mask=nothing).cast(pa.date32())
    if type_ is Type.TIMESTAMP:
        return pa.array(np.where(nothing, 0, values).astype(np.int64), mask=nothing).cast(pa.timestamp("us"))
    if type_ is Type.BOOLEAN:
        return pa.array(values > 0.5, mask=nothing)
    if type_ is Type.INTEGER and np.all(np.abs(values[~nothing]) < 2.0**62):
        return pa.array(np.where(nothing, 0, values).astype(np.int64), mask=nothing)
    return pa.array(values, mask=nothing)


@dataclass(frozen=True, eq=False)
class ReleasedGroups:
    """The groups `rows` (numbers; None: all) of `block` with hidden columns `extra`, and the confidence and key of their bars."""

    block: ReleasedBlock
    extra: Mapping[str, Floats]
    rows: npt.NDArray[np.int64] | None
    confidence: float
    key: str

    def table(self) -> pa.Table:
        """Return keys, terms and hidden columns of the requested groups, numbered in their order."""
        table = self.block.table(self.extra)
        table = table if self.rows is None else table.take(pa.array(self.rows))
        return table.append_column(AT, pa.array(np.arange(len(table))))

    def terms(self) -> dict[str, ReleasedTerm]:
        """Return the block's terms by name."""
        return {term.name: term for term in self.block.terms}


class Measures:
    """The plug-in formulas of a block's measures as functions of its terms."""

    def __init__(self, block: ReleasedBlock) -> None:
        self.block = block
        self._parts: dict[str, tuple[Vector, Vector, Vector | None, Vector | None]] = {}
        for name, tree in block.plug_ins.items():
            number = counted(tree)
            inner, low, high = clamped(number)
            parts = [None if part is None else vector(part) for part in (number, inner, low, high)]
            assert parts[0] is not None and parts[1] is not None, "a formula with an operation that vectors lack"
            self._parts[name] = (parts[0], parts[1], parts[2], parts[3])

    def extent(self, node: exp.Column) -> Extent:
        """Return the interval that a measure of the block cannot leave; EVERYTHING for other columns."""
        tree = self.block.plug_ins.get(node.name)
        return EVERYTHING if tree is None else extent(tree, lambda _: EVERYTHING)

    def values(self, names: set[str], terms: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the measures `names` computed from arrays of terms."""
        with np.errstate(all="ignore"):
            return {name: self._parts[name][0](terms) for name in names}

    def outside(self, names: set[str], released: Mapping[str, Floats]) -> npt.NDArray[np.bool_]:
        """Return for each row whether the bounds change one of the measures `names` at the `released` terms (one column)."""
        result = np.zeros(len(next(iter(released.values()))), dtype=bool)
        with np.errstate(all="ignore"):
            for name in names:
                unbounded, bounded, _, _ = self._within_bounds(name, released)
                result |= np.broadcast_to((bounded != unbounded).reshape(-1), len(result))
        return result

    def around_bounds(
        self, names: set[str], released: Mapping[str, Floats], drawn: Mapping[str, Floats]
    ) -> dict[str, Floats]:
        """Return the measures at `drawn` terms, each shifted by what its bounds change at the `released` terms (one column)."""
        result: dict[str, Floats] = {}
        with np.errstate(all="ignore"):
            for name in names:
                whole, inner, low, _ = self._parts[name]
                if low is None:
                    result[name] = whole(drawn)
                    continue
                unbounded, bounded, least, most = self._within_bounds(name, released)
                result[name] = np.minimum(np.maximum(inner(drawn) + (bounded - unbounded), least), most)
        return result

    def _within_bounds(self, name: str, released: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return a measure before and after clamping, and its lower and upper bound."""
        whole, inner, low, high = self._parts[name]
        if low is None:
            value = whole(released)
            return value, value, value, value
        unbounded, least = inner(released), low(released)
        most = np.asarray(np.inf) if high is None else high(released)
        return unbounded, np.minimum(np.maximum(unbounded, least), most), least, most


def _draws(rows: int, confidence: float) -> int:
    """Return the number of draws. At the high confidence for rows that noise selected, bars end at rarer noise than the rarest of
    3,999 draws, so more draws are needed."""
    ends = math.ceil(2 / max(1 - confidence, 1 / _MOST_CELLS)) - 1
    return max(number_of_draws(rows, _MOST_CELLS), min(ends, _MOST_CELLS // max(1, rows)))


class Simulation:
    """Simulated draws of the groups of one answer."""

    def __init__(self, groups: ReleasedGroups, table: pa.Table) -> None:
        self.groups = groups
        self.table = table
        self.block = groups.block
        self.measures = Measures(groups.block)
        self.draws = _draws(table.num_rows, groups.confidence)
        self._noise: dict[str, Floats] = {}

    def interval(self, room: Room, expression: exp.Expr, value: Floats) -> Interval:
        """Return the bar of an expression over keys, plug-in measures and hidden columns of the block. `value`: the expression at
        the released numbers."""
        within = extent(expression, self.measures.extent)
        names = {node.name for node in expression.find_all(exp.Column)} & self.block.plug_ins.keys()
        pieces = [self._part(room, expression, names, value[part], part, within) for part in self._slices()]
        ends = [np.concatenate(column) for column in zip(*pieces, strict=True)] if pieces else [value, value]
        low, high = ends
        if self._shows_a_real(expression):  # draws without any spread leave only the bounds
            flat = ~(high > low)
            low, high = np.where(flat, within[0], low), np.where(flat, within[1], high)
        return Interval.of(value, low, high, within)

    def _slices(self) -> Iterator[slice]:
        size = max(1, _PART_CELLS // self.draws)
        return (slice(start, start + size) for start in range(0, self.table.num_rows, size))

    def _shows_a_real(self, expression: exp.Expr) -> bool:
        while isinstance(expression, (exp.Paren, exp.Alias)):
            expression = expression.this
        real = {name for name, _, type_ in self.block.formulas if type_ is Type.REAL}
        return isinstance(expression, exp.Column) and expression.name in real

    def _part(
        self, room: Room, expression: exp.Expr, names: set[str], value: Floats, part: slice, within: Extent
    ) -> tuple[Floats, Floats]:
        released, drawn = {}, {}
        for term in self.block.terms:
            numbers = floats(self.table.column(term.name))[part]
            released[term.name] = numbers[:, None]
            least = self.block.shown_from.get(term.name)
            uniform = self._uniform(term.name)
            if least is None:
                drawn[term.name] = released[term.name] - self._drawn(term.name)
            else:
                drawn[term.name] = values_given_shown(term, numbers, least, uniform)
        every = np.arange(*part.indices(self.table.num_rows))
        cells = self._cells(room, expression, self.measures.values(names, drawn), every)
        low, high = percentiles(cells, self.groups.confidence)
        with np.errstate(invalid="ignore"):
            ends = [(low, high), (2 * value - high, 2 * value - low)]
        outside = np.flatnonzero(self.measures.outside(names, released)) if names else np.empty(0, dtype=np.int64)
        if len(outside):
            some = ({name: values[outside] for name, values in group.items()} for group in (released, drawn))
            moved = self._cells(room, expression, self.measures.around_bounds(names, *some), every[outside])
            low, high = (np.full(len(value), np.nan) for _ in range(2))
            low[outside], high[outside] = percentiles(moved, self.groups.confidence)
            ends.append((low, high))
        return hull_of(ends, within)

    def _uniform(self, name: str) -> Floats:
        return stratified(f"{self.groups.key}/{name}", self.draws)

    def _drawn(self, name: str) -> Floats:
        if name not in self._noise:
            term = next(released_term for released_term in self.block.terms if released_term.name == name)
            self._noise[name] = deviates(term, self._uniform(name))
        return self._noise[name]

    def _cells(
        self, room: Room, expression: exp.Expr, measures: Mapping[str, Floats], numbers: npt.NDArray[np.int64]
    ) -> Floats:
        """Return the values of the expression for each row in `numbers` and each draw, shape (rows, draws)."""
        rows = len(numbers)
        hidden = {name: floats(self.table.column(name))[numbers][:, None] for name in self.groups.extra}
        keys = {node.name for node in expression.find_all(exp.Column)} - measures.keys() - hidden.keys()
        computed = None if keys else vector(expression)
        if computed is not None:
            with np.errstate(all="ignore"):
                cells = np.broadcast_to(computed({**measures, **hidden}), (rows, self.draws))
        else:
            cells = self._in_sandbox(room, expression, {**measures, **hidden}, numbers)
        return cells if np.isfinite(cells).all() else np.where(np.isfinite(cells), cells, np.nan)

    def _in_sandbox(
        self, room: Room, expression: exp.Expr, columns: Mapping[str, Floats], numbers: npt.NDArray[np.int64]
    ) -> Floats:
        rows, again = len(numbers), np.repeat(numbers, self.draws)
        # A table without columns has no rows, and there may be no keys, so add a column with the row number.
        rows_again = self.table.take(pa.array(again))
        table = pa.table({ROW: again, **{name: rows_again.column(name) for name in self.block.keys.column_names}})
        types = {name: type_ for name, _, type_ in self.block.formulas}
        for name, values in columns.items():
            flat = np.broadcast_to(values, (rows, self.draws)).reshape(-1)
            table = table.append_column(name, typed(flat, types.get(name)))
        as_double = exp.TryCast(this=expression.copy(), to=exp.DataType.build("double"))
        item = exp.Alias(this=as_double, alias=identifier("v"))
        query = exp.Select(expressions=[item], from_=exp.From(this=exp.Table(this=identifier(_DRAWN))))
        result = room.query(query.sql(dialect=DIALECT), {_DRAWN: table}, most_rows=2 * _PART_CELLS + _MOST_CELLS)
        return floats(result.column(0)).reshape(rows, self.draws)
