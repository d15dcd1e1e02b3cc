"""Error bars of expressions over the groups of one block, row by row.

The release shows f(b + z), where z is noise from a public law; the interval covers the exact f(b) with the requested confidence.
An expression is read as a formula over noisy terms (`release.formulas`), and its form decides how:

- a weighted sum of terms: value +- the quantile of the sum of the noise (`laws.half_widths`);
- a quotient of two such sums, AVG among them: Fieller's set (`fieller`);
- any other: replicates of its noise, by the rule below. All groups share the draws of a term (stratified, so that integrals
  over one term alone are almost exact); they differ in their released numbers, and have fewer draws if there are more of them.
  If a clamped measure was released outside of its bounds, the bound is shown in its place: draws are taken around the bound as
  well, or the bar would have no width although there is noise.

Only expressions with other operations than those of formulas, and exact parts of expressions, are computed in the sandbox.

From simulated values to the ends of a bar there is one rule for all outputs and all numbers of groups. Let T be the output as a
function of the terms, t = b + z the released numbers, z noise from a known symmetric law, and z* a new draw from it. There are
two intervals for the exact T(b):

- the *percentiles* of T(t - z*): t - z* has the law of b given t under a flat prior, so this is exact wherever T is
  monotone in one term, whatever bounds T is clamped to (monotone functions preserve quantiles);
- the *reflected* interval, T(t) minus the percentiles of an error T(u + z*) - T(u): the basic bootstrap (Davison and Hinkley
  1997, 5.2), right where the noise shifts T (squares, spreads, extremes) and the percentiles count the shift twice.

T is the plug-in formula even where a shrunk estimate is shown (`plan.formulas`): replicates of an estimate that relies on
assumptions would vary less than the exact numbers may. The bar is only widened to contain the number shown.

Where T is nearly linear, both intervals are the same. Elsewhere each fails where the other holds, so the bar is their hull,
cut to the extent that T cannot leave. A draw for which T has no value may lie anywhere: it counts at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.noise.perturb import ReleasedTerm
from dpsql.plan.formulas import Formula, NoisyValue, terms_of
from dpsql.plan.intervals import Type
from dpsql.release.error_bars.fieller import Recognised, inverse_ends, quotient_ends, recognise, recognised
from dpsql.release.error_bars.laws import (
    Floats,
    deviates,
    half_widths,
    known_law,
    laws_of,
    stratified,
    values_given_shown,
)
from dpsql.release.formulas import EVERYTHING, Extent, clamped, extent, interval, numbers, read, typed
from dpsql.release.remainder import DIALECT, ROW, ReleasedBlock, identifier
from dpsql.release.sandbox import Scratch, floats, numeric
from dpsql.storage.records import dataclass

_MOST_CELLS = 2_000_000
_PART_CELLS = 250_000
_DRAWN = "dp#drawn"
_SAME = 1e-12
"""Largest difference at which two confidences count as equal: rounding of floats."""
_NUMBERS = (Type.INTEGER, Type.REAL)


# --- from simulated values to ends ------------------------------------------------------------------------------------

_DRAW_COUNTS = (3999, 1999, 999, 399, 199)
"""Numbers of draws for which the 0.5 % and 2.5 % points are order statistics (the next draw lies below the r-th of K draws with
probability r / (K + 1))."""
_FEWER = (79, 39)
"""Numbers of draws for which the 2.5 % point is an order statistic."""
_CONFIDENCE_OF_FEWER = 0.95 + 1e-9


def number_of_draws(rows: int, most_cells: int, most: int = _DRAW_COUNTS[0], confidence: float = 0.99) -> int:
    """Return the number of draws for each of `rows` numbers: fewer for more rows, but not fewer than the ends of 99 % bars need
    (of 95 % bars if `confidence` is at most 95 %)."""
    numbers = (*_DRAW_COUNTS, *_FEWER) if confidence <= _CONFIDENCE_OF_FEWER else _DRAW_COUNTS
    return next((k for k in numbers if k <= most and k * max(1, rows) <= most_cells), numbers[-1])


def percentiles(cells: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return each row's low and high percentile of `cells` (rows, draws), as order statistics; NaN is infinite at both ends."""
    draws = cells.shape[1]
    rank = max(int((1 - confidence) / 2 * (draws + 1) + 1e-9), 1) - 1
    lost = np.isnan(cells)
    if not lost.any():
        part = np.partition(cells, (rank, draws - 1 - rank), axis=1)
        return part[:, rank], part[:, draws - 1 - rank]
    low = np.partition(np.where(lost, -np.inf, cells), rank, axis=1)[:, rank]
    high = np.partition(np.where(lost, np.inf, cells), draws - 1 - rank, axis=1)[:, draws - 1 - rank]
    return low, high


@dataclass(frozen=True)
class Interval:
    """One interval per row, in doubles. Ends are NaN where nothing bounds them. `unknown`: the noise leaves no information, so
    the interval is all that the bounds of the output allow."""

    value: Floats
    low: Floats
    high: Floats
    unknown: npt.NDArray[np.bool_]

    @property
    def error(self) -> Floats:
        """The larger of the distances from the value to the ends: value +- error covers the interval."""
        with np.errstate(invalid="ignore"):  # an infinite value has no distance
            return np.asarray(np.maximum(np.maximum(self.value - self.low, self.high - self.value), 0.0))

    @classmethod
    def nothing(cls, rows: int) -> Interval:
        """Return intervals that were not computed, because the error is not known; a note gives the reason."""
        value, low, high = (np.full(rows, np.nan) for _ in range(3))
        return cls(value, low, high, np.zeros(rows, dtype=bool))

    def around_displayed(self, displayed: Floats) -> Interval:
        """Return the interval extended to contain `displayed`, which is shown in place of the value for which the interval was
        computed and estimates the same number with less error."""
        low, high = (np.where(np.isnan(displayed), end, displayed) for end in (self.low, self.high))
        low = np.where(np.isnan(self.low), np.nan, np.minimum(self.low, low))
        high = np.where(np.isnan(self.high), np.nan, np.maximum(self.high, high))
        return Interval(displayed, low, high, self.unknown)

    @classmethod
    def around(cls, value: Floats, half: Floats) -> Interval:
        """Return value +- half, without ends where either is not finite."""
        finite = np.isfinite(value) & np.isfinite(half)
        low, high = np.where(finite, value - half, np.nan), np.where(finite, value + half, np.nan)
        return cls(value, low, high, np.zeros(len(value), dtype=bool))

    @classmethod
    def merged(cls, pieces: list[tuple[npt.NDArray[np.bool_], Interval]]) -> Interval:
        """Return the intervals of all rows from pairs (mask of rows, their intervals)."""
        whole = cls.nothing(len(pieces[0][0]))
        for rows, piece in pieces:
            whole.value[rows], whole.low[rows], whole.high[rows] = piece.value, piece.low, piece.high
            whole.unknown[rows] = piece.unknown
        return whole

    @classmethod
    def of(cls, value: Floats, low: Floats, high: Floats, within: Extent) -> Interval:
        """Return the interval with these ends; `unknown` where it is not smaller than the extent `within`."""
        unknown = ~((low > within[0]) | (high < within[1]))
        bounded = np.isfinite(low) & np.isfinite(high)
        return cls(value, np.where(bounded, low, np.nan), np.where(bounded, high, np.nan), unknown | ~bounded)


def hull_of(ends: list[tuple[Floats, Floats]], within: Extent) -> tuple[Floats, Floats]:
    """Return the smallest interval around all `ends` (NaN is ignored), cut to `within`."""
    low = np.fmax(np.fmin.reduce([low for low, _ in ends]), within[0])
    high = np.fmin(np.fmax.reduce([high for _, high in ends]), within[1])
    return np.asarray(low), np.asarray(high)


# --- expressions over groups ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedGroups:
    """The groups `rows` (numbers; None: all) of `block` with hidden columns `extra`, and the confidence and key of their bars."""

    block: ReleasedBlock
    extra: Mapping[str, Floats]
    rows: npt.NDArray[np.int64] | None
    confidence: float
    key: str

    @cached_property
    def numbers(self) -> npt.NDArray[np.int64]:
        return np.arange(self.block.rows) if self.rows is None else self.rows

    @cached_property
    def terms(self) -> dict[str, ReleasedTerm]:
        return {term.name: term for term in self.block.terms}

    @cached_property
    def released(self) -> dict[str, Floats]:
        return {name: np.asarray(term.values, dtype=np.float64)[self.numbers] for name, term in self.terms.items()}


# --- which rule -------------------------------------------------------------------------------------------------------


def intervals(enter: Callable[[], Scratch], groups: ReleasedGroups, expressions: Sequence[exp.Expr]) -> list[Interval]:
    """Return the interval of each expression (over the block's keys, measures and hidden columns); unknown where its value is
    not a number. `enter` opens the scratch for what the sandbox computes. Raises the refusals of `Scratch.query`."""
    bars = _Bars(enter, groups)
    drawable = all(known_law(term) for term in groups.block.terms)
    result = []
    for tree in expressions:
        of_tree = measured_interval(tree, groups)
        if of_tree is None and (not drawable or _reads(tree, groups.block.groups.chosen)):
            of_tree = Interval.nothing(len(groups.numbers))  # the error of a chosen measure follows no known law
        result.append(bars.interval(tree) if of_tree is None else of_tree)
    return result


def measured_name(tree: exp.Expr | None, block: ReleasedBlock) -> str | None:
    """Return the measure that an expression consists of, if the ends of its error bar were measured; else None."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    names = {name for name, *_ in block.groups.ends}
    return tree.name if isinstance(tree, exp.Column) and tree.name in names else None


def measured_interval(tree: exp.Expr, groups: ReleasedGroups) -> Interval | None:
    """Return the measured bar of an expression, None if none was measured; empty at a higher confidence than measured."""
    block, measure = groups.block, measured_name(tree, groups.block)
    if measure is None:
        return None
    low, high, confidence = next(ends for name, *ends in block.groups.ends if name == measure)
    value = next(formula for name, formula, _ in block.formulas if name == measure)
    middle, below, above = (numbers(formula, groups.released) for formula in (value, low, high))
    if groups.confidence > float(confidence) + _SAME:
        return Interval.nothing(middle.size)
    return Interval(middle, below, above, np.zeros(middle.size, dtype=bool))


def _reads(tree: exp.Expr, names: frozenset[str]) -> bool:
    return any(node.name in names for node in tree.find_all(exp.Column))


class _Bars:
    """The bars of expressions over the groups of one answer."""

    def __init__(self, enter: Callable[[], Scratch], groups: ReleasedGroups) -> None:
        self.groups, self.block = groups, groups.block
        self.computed = _Sandboxed(enter, groups)
        self.measures = Measures(groups.block)
        self.exact: dict[str, Floats] = {name: values[groups.numbers] for name, values in groups.extra.items()}
        """Values of the exact columns and exact parts of expressions, by name."""
        self.simulation = _Simulation(groups, self.measures, self.computed, self.exact)

    def interval(self, tree: exp.Expr) -> Interval:
        formula = read(tree, self.leaf)
        names = {node.name for node in tree.find_all(exp.Column)} & self.block.plug_ins.keys()
        measured = self.measures.values(names, self.groups.released)
        value = self.simulation.value(tree, formula, measured)
        bar = self.from_law(tree, formula, value)
        estimates = {
            name: self.block.estimates[name][self.groups.numbers] for name in names & self.block.estimates.keys()
        }
        if estimates:
            return bar.around_displayed(self.simulation.value(tree, formula, {**measured, **estimates}))
        return bar

    def leaf(self, node: exp.Expr) -> Formula | None:
        """Return what a column, or an expression without noise, is in a formula: the name of a measure or of exact values."""
        if isinstance(node, exp.Column):
            types = {name: type_ for name, _, type_ in self.block.formulas}
            if node.name in types:
                return NoisyValue(node.name) if types[node.name] in _NUMBERS else None
            if node.name not in self.exact:
                keys = self.block.keys.column(node.name)
                values = floats(keys) if numeric(keys.type) else np.full(self.block.rows, np.nan)
                self.exact[node.name] = values[self.groups.numbers]
            return NoisyValue(node.name)
        if isinstance(node, exp.Paren) or _reads(node, frozenset(self.block.plug_ins)):
            return None
        if not any(True for _ in node.find_all(exp.Column)) and read(node, lambda part: None) is not None:
            return None
        name = f"dp#e{len(self.exact)}"
        self.exact[name] = self.computed.values(node, {})
        return NoisyValue(name)

    def recognised(self, formula: Formula) -> Recognised:
        """Return a formula as a sum of terms, a quotient of such sums, or an exact number by a sum."""
        names = sorted(terms_of(formula) & self.block.plug_ins.keys())
        measures = tuple((name, self.block.plug_ins[name]) for name in names)
        laws = tuple(
            laws_of({part for _, measure in measures for part in terms_of(measure)}, self.groups.terms).items()
        )
        exact = {name: values for name, values in self.exact.items() if name in terms_of(formula)}
        return recognised(formula, measures, laws) if not exact else recognise(formula, measures, laws, exact)

    def from_law(self, tree: exp.Expr, formula: Formula | None, value: Floats) -> Interval:
        """Return the bar of an expression with this `value` at the released numbers."""
        if not np.isfinite(value).any():
            return Interval.around(value, value)
        form, quotient, inverse = (None, None, None) if formula is None else self.recognised(formula)
        # In groups that are shown for the noise of a term, that noise has another law.
        weighed = form if form is not None else () if inverse is None else inverse[2]
        names = quotient.laws.keys() if quotient is not None else {name for part in weighed for name in part.weights}
        if formula is None or names & self.block.shown_from.keys():
            return self.simulation.interval(tree, formula, value)
        half = (
            None
            if form is None and inverse is None
            else half_widths(weighed, self.groups.terms, self.groups.confidence)
        )
        if form is not None and half is not None:
            return Interval.around(value, np.broadcast_to(half, value.shape))
        columns = {**self.groups.released, **self.exact}
        if quotient is not None:
            above, below = (numbers(side, columns) for side in (quotient.above, quotient.below))
            within = interval(formula, self.measures.extent)
            low, high = hull_of([quotient_ends(quotient, above, below, self.groups.confidence)], within)
            return Interval.of(value, low, high, within)
        if inverse is not None and half is not None:
            above, below = (numbers(side, columns) for side in inverse[:2])
            return Interval.of(value, *inverse_ends(above, below, half), EVERYTHING)
        return self.simulation.interval(tree, formula, value)


# --- measures ---------------------------------------------------------------------------------------------------------


class Measures:
    """The plug-in formulas of a block's measures as functions of its terms."""

    def __init__(self, block: ReleasedBlock) -> None:
        self.block = block

    def extent(self, name: str) -> Extent:
        """Return the interval that a measure of the block cannot leave; EVERYTHING for other columns."""
        return self.block.extents.get(name, EVERYTHING)

    def values(self, names: Iterable[str], terms: Mapping[str, Floats]) -> dict[str, Floats]:
        return {name: numbers(self.block.plug_ins[name], terms) for name in names}

    def clamps(self, name: str, released: Mapping[str, Floats]) -> tuple[Formula, Floats, Floats, Floats]:
        """Return a measure before it is clamped, what its bounds change at the `released` terms (one column), and the bounds."""
        inner, low, high = clamped(self.block.plug_ins[name])
        if low is None:
            return self.block.plug_ins[name], np.zeros(1), np.asarray(-np.inf), np.asarray(np.inf)
        value, least = numbers(inner, released), numbers(low, released)
        most = np.asarray(np.inf) if high is None else numbers(high, released)
        with np.errstate(all="ignore"):
            return inner, np.minimum(np.maximum(value, least), most) - value, least, most

    def outside(self, names: set[str], released: Mapping[str, Floats]) -> npt.NDArray[np.bool_]:
        """Return for each row whether the bounds change one of the measures `names` at the `released` terms (one column)."""
        rows = len(next(iter(released.values())))
        moves = [np.broadcast_to((self.clamps(name, released)[1] != 0).reshape(-1), rows) for name in names]
        return np.logical_or.reduce(moves) if moves else np.zeros(rows, dtype=bool)

    def around_bounds(
        self, names: set[str], released: Mapping[str, Floats], drawn: Mapping[str, Floats]
    ) -> dict[str, Floats]:
        """Return the measures at `drawn` terms, each shifted by what its bounds change at the `released` terms (one column)."""
        result: dict[str, Floats] = {}
        for name in names:
            inner, move, least, most = self.clamps(name, released)
            with np.errstate(all="ignore"):
                result[name] = np.minimum(np.maximum(numbers(inner, drawn) + move, least), most)
        return result


# --- replicates -------------------------------------------------------------------------------------------------------


class _Sandboxed:
    """Expressions over the requested groups, computed by the sandbox."""

    def __init__(self, enter: Callable[[], Scratch], groups: ReleasedGroups) -> None:
        self.scratch, self.groups = cache(enter), groups

    def values(self, tree: exp.Expr, columns: Mapping[str, Floats]) -> Floats:
        """Return the value for each requested group, NaN where it is not a number; `columns` hold measures and hidden columns."""
        rows = np.arange(len(self.groups.numbers))
        return self.cells(tree, {name: values[:, None] for name, values in columns.items()}, rows, 1)[:, 0]

    def cells(self, tree: exp.Expr, columns: Mapping[str, Floats], rows: npt.NDArray[np.int64], draws: int) -> Floats:
        """Return the value for each of the requested groups in `rows` and each draw, shape (rows, draws)."""
        block = self.groups.block
        again = np.repeat(self.groups.numbers[rows], draws)
        # A table without columns has no rows, and there may be no keys, so add a column with the row number.
        table = pa.table(
            {ROW: again, **{name: block.keys.column(name).take(again) for name in block.keys.column_names}}
        )
        types = {name: type_ for name, _, type_ in block.formulas}
        for name, values in columns.items():
            table = table.append_column(
                name, typed(np.broadcast_to(values, (len(rows), draws)).reshape(-1), types.get(name))
            )
        item = exp.Alias(this=tree.copy(), alias=identifier("v"))
        query = exp.Select(expressions=[item], from_=exp.From(this=exp.Table(this=identifier(_DRAWN))))
        text = query.sql(dialect=DIALECT)
        result = self.scratch().query(text, {_DRAWN: table}, most_rows=2 * _PART_CELLS + _MOST_CELLS)
        return floats(result.column(0)).reshape(len(rows), draws)


def _draws(rows: int, confidence: float) -> int:
    """Return the number of draws. At the high confidence for rows that noise selected, bars end at rarer noise than the rarest of
    3,999 draws, so more draws are needed."""
    ends = math.ceil(2 / max(1 - confidence, 1 / _MOST_CELLS)) - 1
    return max(number_of_draws(rows, _MOST_CELLS), min(ends, _MOST_CELLS // max(1, rows)))


class _Simulation:
    """Simulated draws of the groups of one answer."""

    def __init__(
        self, groups: ReleasedGroups, measures: Measures, computed: _Sandboxed, exact: Mapping[str, Floats]
    ) -> None:
        self.groups, self.block, self.measures = groups, groups.block, measures
        self.computed, self.exact = computed, exact
        self.draws = _draws(len(groups.numbers), groups.confidence)
        self._noise: dict[str, Floats] = {}

    def value(self, tree: exp.Expr, formula: Formula | None, measures: Mapping[str, Floats]) -> Floats:
        """Return an expression at these numbers of the measures, NaN where it is not a number."""
        rows = (len(self.groups.numbers),)
        if formula is not None:
            value = np.broadcast_to(numbers(formula, {**measures, **self.exact}), rows)
        else:
            hidden = {name: self.exact[name] for name in self.groups.extra}
            columns = {name: np.broadcast_to(values, rows) for name, values in {**measures, **hidden}.items()}
            value = self.computed.values(tree, columns)
        return np.where(np.isfinite(value), value, np.nan)

    def interval(self, tree: exp.Expr, formula: Formula | None, value: Floats) -> Interval:
        """Return the bar of an expression over keys, plug-in measures and hidden columns. `value`: it at the released numbers."""
        within = (
            extent(tree, lambda column: self.measures.extent(column.name))
            if formula is None
            else interval(formula, self.measures.extent)
        )
        names = {node.name for node in tree.find_all(exp.Column)} & self.block.plug_ins.keys()
        pieces = [self._part(tree, formula, names, value[part], part, within) for part in self._slices()]
        ends = [np.concatenate(column) for column in zip(*pieces, strict=True)] if pieces else [value, value]
        low, high = ends
        if self._shows_a_real(tree):  # draws without any spread leave only the bounds
            flat = ~(high > low)
            low, high = np.where(flat, within[0], low), np.where(flat, within[1], high)
        return Interval.of(value, low, high, within)

    def _slices(self) -> Iterator[slice]:
        size = max(1, _PART_CELLS // self.draws)
        return (slice(start, start + size) for start in range(0, len(self.groups.numbers), size))

    def _shows_a_real(self, tree: exp.Expr) -> bool:
        while isinstance(tree, (exp.Paren, exp.Alias)):
            tree = tree.this
        real = {name for name, _, type_ in self.block.formulas if type_ is Type.REAL}
        return isinstance(tree, exp.Column) and tree.name in real

    def _part(
        self, tree: exp.Expr, formula: Formula | None, names: set[str], value: Floats, part: slice, within: Extent
    ) -> tuple[Floats, Floats]:
        released, drawn = {}, {}
        for name in sorted(frozenset().union(*(terms_of(self.block.plug_ins[name]) for name in names))):
            term = self.groups.terms[name]
            values = self.groups.released[name][part]
            released[name] = values[:, None]
            least = self.block.shown_from.get(name)
            if least is None:
                drawn[name] = released[name] - self._drawn(name)
            else:
                drawn[name] = values_given_shown(term, values, least, self._uniform(name))
        every = np.arange(*part.indices(len(self.groups.numbers)))
        cells = self._cells(tree, formula, self.measures.values(names, drawn), every)
        low, high = percentiles(cells, self.groups.confidence)
        with np.errstate(invalid="ignore"):
            ends = [(low, high), (2 * value - high, 2 * value - low)]
        outside = np.flatnonzero(self.measures.outside(names, released)) if names else np.empty(0, dtype=np.int64)
        if len(outside):
            some = ({name: values[outside] for name, values in group.items()} for group in (released, drawn))
            moved = self._cells(tree, formula, self.measures.around_bounds(names, *some), every[outside])
            low, high = (np.full(len(value), np.nan) for _ in range(2))
            low[outside], high[outside] = percentiles(moved, self.groups.confidence)
            ends.append((low, high))
        return hull_of(ends, within)

    def _uniform(self, name: str) -> Floats:
        return stratified(f"{self.groups.key}/{name}", self.draws)

    def _drawn(self, name: str) -> Floats:
        if name not in self._noise:
            self._noise[name] = deviates(self.groups.terms[name], self._uniform(name))
        return self._noise[name]

    def _cells(
        self, tree: exp.Expr, formula: Formula | None, measures: Mapping[str, Floats], rows: npt.NDArray[np.int64]
    ) -> Floats:
        """Return the values of the expression for each of the requested groups in `rows` and each draw, shape (rows, draws)."""
        exact = {name: values[rows][:, None] for name, values in self.exact.items()}
        if formula is None:
            hidden = {name: exact[name] for name in self.groups.extra}
            number = exp.TryCast(this=tree.copy(), to=exp.DataType.build("double"))
            cells = self.computed.cells(number, {**measures, **hidden}, rows, self.draws)
        else:
            cells = np.broadcast_to(numbers(formula, {**measures, **exact}), (len(rows), self.draws))
        return cells if np.isfinite(cells).all() else np.where(np.isfinite(cells), cells, np.nan)
