"""The public remainder of a query with its released tables: what the sandbox runs, and how its rows are identified.

A released block enters the sandbox as its keys and noisy terms. Its measures are computed there, except estimates, which
enter as values. Every row has a hidden number, so that an answer in which each row is one group of one block (a
*row-wise* remainder: projections, filters, orders and limits) can be traced back to the groups that it shows, whatever
names the analyst chose.

Tiles of a workload are made consistent, by least squares over released numbers and the laws of their noise.

Every tile is answered from all measured tiles (`pricing.workloads`). This reads only released numbers and public laws, so it is
post-processing. A cell of the result has the error of a weighted sum of all measured cells, whose law is known. Cells are not
independent of each other, so their replicates are drawn for measured cells and made consistent as well (`measured_again`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property, lru_cache
from math import frexp, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.noise.perturb import ReleasedTerm
from dpsql.plan.formulas import (
    Formula,
    MeasureFormula,
    Operation,
    Operator,
    estimated,
    greatest,
    plugged_in,
    shrinks,
    whole,
)
from dpsql.plan.intervals import ANY_GROUPS, GroupFacts, Type
from dpsql.pricing.pricing import ARROW
from dpsql.pricing.workloads import Marginals, Workload, laws_after, rounding
from dpsql.privacy.mechanisms.contract import Constant, Floats, Noise, Sensitivity, SeriesNoise, TermNoise
from dpsql.privacy.mechanisms.registry import can_be_weighted
from dpsql.privacy.mechanisms.weighted_sums import Cells, WeightedSum
from dpsql.release.formulas import Extent, formula_sql, interval, numbers
from dpsql.sql.parser import parse_text
from dpsql.storage.records import dataclass, field, replace

DIALECT = "duckdb"
_own_interval = lru_cache(maxsize=1024)(interval)
ROW = "dp#row"
"""Hidden column: the number of a group in its block (0..); "#" distinguishes it from generated names like k0."""

EXAMPLES: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (0, 1), Type.REAL: (0.0, 1.0), Type.TEXT: ("no number", "no day"), Type.BOOLEAN: (False, True),
    Type.DATE: (date(2000, 1, 1), date(2000, 1, 2)), Type.TIMESTAMP: (datetime(2000, 1, 1), datetime(2000, 1, 2)),
    Type.NULL: (None, None),
}  # fmt: skip
"""Two values of each type, for rows whose values do not matter; the texts are neither numbers nor days."""


@dataclass(frozen=True, eq=False)
class ReleasedBlock:
    """The noisy answer of one private block: `keys` (columns k0..) and `terms`, one row for each group in key order.

    `formulas`: each measure as a formula over the terms, including estimates. `shown_from`: for a term by which groups were
    admitted, the least noisy value of a group that is shown. The block is public: it may be pickled and stored.
    """

    name: str
    keys: pa.Table
    terms: tuple[ReleasedTerm, ...]
    formulas: tuple[MeasureFormula, ...]
    rows: int
    groups: GroupFacts = ANY_GROUPS
    shown_from: Mapping[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        computed = ("estimates", "extents", "measures", "plug_ins")
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    @cached_property
    def plug_ins(self) -> dict[str, Formula]:
        """The plug-in formula of each measure: over exact sums it is the aggregate. Error bars refer to it."""
        return {name: plugged_in(formula) for name, formula, _ in self.formulas}

    @cached_property
    def extents(self) -> dict[str, Extent]:
        """The interval that each measure cannot leave, whatever the noise."""
        return {name: _own_interval(formula) for name, formula in self.plug_ins.items()}

    @property
    def estimated(self) -> frozenset[str]:
        """The names of `estimates`."""
        return frozenset(name for name, formula, _ in self.formulas if shrinks(formula))

    @cached_property
    def estimates(self) -> dict[str, npt.NDArray[np.float64]]:
        """The values, NaN for NULL, of the measures that are shown as estimates instead of the plug-in formula."""
        deviations = {term.name: term.standard_deviation() for term in self.terms}
        terms = {term.name: np.asarray(term.values, dtype=np.float64) for term in self.terms}
        formulas = {name: estimated(formula, deviations) for name, formula, _ in self.formulas if shrinks(formula)}
        return {name: np.broadcast_to(numbers(formula, terms), self.rows) for name, formula in formulas.items()}

    @cached_property
    def measures(self) -> dict[str, exp.Expr]:
        """Each measure as it is shown, as an expression over the columns of the table."""
        columns = {name: column(_hidden(name)) for name in self.estimated}
        return {name: columns.get(name) or formula_sql(formula) for name, formula in self.plug_ins.items()}

    def as_plugged_in(self) -> ReleasedBlock:
        """Return the block without estimates: AVG is the released sum divided by the released count."""
        return replace(self, formulas=tuple((name, plugged_in(value), type_) for name, value, type_ in self.formulas))

    def with_counts_from_zero(self) -> ReleasedBlock:
        """Return the block with every negative count raised to 0."""
        return replace(
            self,
            formulas=tuple(
                (name, _from_zero(value) if name in self.groups.counts else value, type_)
                for name, value, type_ in self.formulas
            ),
        )

    def table(self, extra: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
        """Return the table of keys, terms, estimates, row numbers and `extra` columns."""
        columns: dict[str, Any] = {name: self.keys.column(name) for name in self.keys.column_names}
        for term in self.terms:
            columns[term.name] = pa.array(np.asarray(term.values, dtype=np.float64))
        columns |= {_hidden(name): pa.array(values, from_pandas=True) for name, values in self.estimates.items()}
        columns[ROW] = pa.array(np.arange(self.rows, dtype=np.int64))
        for name, values in extra.items():
            columns[name] = pa.array(values, pa.float64(), from_pandas=True)
        return pa.table(columns)

    def query(self, extra: Sequence[str] = ()) -> exp.Select:
        """Return the query of keys, measures and hidden columns over the registered table, which is named like the block."""
        items: list[exp.Expr] = [column(name) for name in self.keys.column_names]
        items += [exp.Alias(this=tree.copy(), alias=identifier(name)) for name, tree in self.measures.items()]
        items += [column(name) for name in (ROW, *extra)]
        return exp.Select(expressions=items, from_=exp.From(this=exp.Table(this=identifier(self.name))))

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys.column_names, *(name for name, _, _ in self.formulas))


def _hidden(measure: str) -> str:
    """Return the name of the hidden column with the estimates of a measure."""
    return f"dp#{measure}"


def _from_zero(value: Formula) -> Formula:
    """Return the formula of a count with negative values replaced by 0."""
    if isinstance(value, Operation) and value.operator is Operator.WHOLE:
        return whole(greatest(value.operands[0], 0))
    return greatest(value, 0)


@dataclass(frozen=True, eq=False)
class StandIn(ReleasedTerm):
    """A term that was not measured, with made-up values and the noise that it would have; a chosen number has none."""

    name: str
    values: npt.NDArray[np.float64]
    noise: Noise = field(default_factory=lambda: Constant(Sensitivity(0, 0, 0, 0)))
    noise_unit: float = 1.0
    whole: bool = False

    @classmethod
    def of_law(cls, law: TermNoise, values: npt.NDArray[np.float64]) -> StandIn:
        """Return the term of a planned measurement."""
        return cls(law.name, values, law.noise, 2.0 ** (law.noise.shift - law.grid), law.whole)


def unanswered(
    name: str,
    key_types: Sequence[Type],
    terms: Sequence[str],
    formulas: tuple[MeasureFormula, ...],
    groups: GroupFacts = ANY_GROUPS,
    rows: int = 0,
    laws: Sequence[TermNoise] = (),
) -> ReleasedBlock:
    """Return a block for rehearsing a remainder before anything is charged: without rows, or with the first `rows` values of
    `EXAMPLES`. `laws`: the noise of its terms (others have none)."""
    keys = pa.table(
        {f"k{number}": pa.array(EXAMPLES[type_][:rows], ARROW[type_]) for number, type_ in enumerate(key_types)}
    )
    values, of_term = np.arange(rows, dtype=np.float64), {law.name: law for law in laws}
    numbers = tuple(
        StandIn.of_law(of_term[term], values) if term in of_term else StandIn(term, values) for term in terms
    )
    return ReleasedBlock(name, keys, numbers, formulas, rows, groups)


@dataclass(frozen=True, eq=False)
class Remainder:
    """The public remainder (a tree over tables named like the blocks and the public tables) and all its tables.

    `written` is the text of the tree if it is already known.
    """

    tree: exp.Query
    names: tuple[str, ...]
    blocks: tuple[ReleasedBlock, ...]
    public: Mapping[str, pa.Table]
    written: str = ""

    @property
    def text(self) -> str:
        return self.written or self.tree.sql(dialect=DIALECT)

    def block(self, name: str) -> ReleasedBlock | None:
        return next((block for block in self.blocks if block.name == name), None)

    @cached_property
    def seed(self) -> str:
        """The seed of draws for bars: a function of the released numbers, so that a repeated answer has the same bars."""
        digest = hashlib.sha256()
        for block in self.blocks:
            digest.update(f"{block.name}/{block.rows}/".encode())
            for term in block.terms:
                digest.update(np.ascontiguousarray(term.values).tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the tree as text, which is shorter and independent of the parser's build."""
        return {**self.__dict__, "tree": self.text, "public": dict(self.public)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "tree": parse_text(state["tree"])})


def runnable(
    tree: exp.Query,
    remainder: Remainder,
    extra: Mapping[str, Sequence[str]],
    adapt: Callable[[exp.Select], exp.Select] = lambda query: query,
) -> str:
    """Return the SQL text of `tree` with every block replaced by its query, modified by `adapt`. `tree` itself is changed.
    `extra`: the names of hidden columns of each block."""
    for table in list(tree.find_all(exp.Table)):
        block = remainder.block(table.name)
        if block is None:
            continue
        alias = table.args.get("alias") or exp.TableAlias(this=identifier(block.name))
        table.replace(exp.Subquery(this=adapt(block.query(extra.get(block.name, ()))), alias=alias))
    return tree.sql(dialect=DIALECT)


def column(name: str, table: str = "") -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


TWO_ROUNDINGS = 1 / 6
"""The variance of the rounding error in the difference of two totals that were rounded to whole numbers."""
AS_RELEASED = (
    "dp.workload: tables are shown as they were released, some of them computed from the stored cells of others"
)


@dataclass(frozen=True, eq=False)
class Joint:
    """The measured tiles of one sum: `terms` as released, in the order of `marginals`, and the name of each tile's block."""

    marginals: Marginals
    terms: tuple[ReleasedTerm, ...]
    blocks: tuple[str, ...]

    @property
    def cells(self) -> tuple[Cells, ...]:
        """One measured cell of each tile."""
        return tuple(Cells(term.noise, 1.0, 1, rounding(term.noise, term.whole)) for term in self.terms)

    @property
    def variances(self) -> Floats:
        """The variance of a measured cell of each tile, up to a common factor."""
        return np.array([cell.variance for cell in self.cells])

    @property
    def whole(self) -> bool:
        """Return whether all tiles can be whole numbers whose totals agree."""
        return self.marginals.is_nested and all(term.whole for term in self.terms)

    def estimates(self, values: Sequence[Floats]) -> list[Floats]:
        """Return the tiles after least squares, computed from measured tiles `values`."""
        tiles = self.marginals.reconciled(values, self.variances)
        return self.marginals.in_whole_numbers(tiles) if self.whole else tiles

    def consistent(self) -> list[Floats]:
        """Return the released tiles after least squares; real numbers are rounded to remove the rounding errors of doubles."""
        measured = [np.asarray(term.values, dtype=np.float64) for term in self.terms]
        after = self.estimates(measured)
        if self.whole:
            return after
        step = _rounding_step(measured)
        return [np.rint(tile / step) * step + 0.0 for tile in after]


def _rounding_step(measured: Sequence[Floats]) -> float:
    """Return the power of two, about 2**-42 of the largest measured number, to which estimates are rounded.

    Least squares in doubles errs by about 2**-48 of the largest number. Grids of sums are powers of two, so the 0 of a key
    without rows is shown as 0 if there is no noise, and sums of a thousand rounded numbers are exact in any order.
    """
    largest = max((float(np.abs(tile).max()) for tile in measured if tile.size), default=0.0)
    return float(2.0 ** max(frexp(largest)[1] - 42, -1000))


@dataclass(frozen=True, eq=False)
class ConsistentTerm(ReleasedTerm):
    """One term of a tile after least squares. `tile`: the number of the tile in `joint`. Counts are whole numbers if tiles are
    nested; otherwise they are real numbers, which a formula rounds."""

    name: str
    values: npt.NDArray[Any]
    noise: WeightedSum
    noise_unit: float
    joint: Joint
    tile: int
    whole: bool = False


def consistent_blocks(
    workloads: Sequence[Workload], blocks: Sequence[ReleasedBlock], *, values: bool = True
) -> tuple[ReleasedBlock, ...]:
    """Return the released blocks of a query with the tiles of its workloads made consistent. Without `values`, numbers stay
    unchanged and only their errors are those after least squares (for a hypothetical release). A workload is left as released
    unless all its tiles are present, each with its own noise (`can_be_consistent`)."""
    named = {block.name: block for block in blocks}
    for workload in workloads:
        if not can_be_consistent(workload, blocks):
            continue
        for index in range(len(workload.tiles[0].terms)):
            terms = tuple(_term(named[tile.block], tile.terms[index]) for tile in workload.tiles)
            joint = Joint(workload.marginals, terms, tuple(tile.block for tile in workload.tiles))
            after = joint.consistent() if values else [np.asarray(term.values) for term in terms]
            for number, law in enumerate(laws_after(joint.marginals, joint.cells)):
                term = terms[number]
                unit = term.noise_unit * 2.0**-term.noise.shift
                error = replace(law, rounding=TWO_ROUNDINGS) if joint.whole else law
                consistent = ConsistentTerm(term.name, after[number], error, unit, joint, number, joint.whole)
                name = workload.tiles[number].block
                named[name] = _with_term(named[name], consistent)
    return tuple(named[block.name] for block in blocks)


def can_be_consistent(workload: Workload, blocks: Sequence[ReleasedBlock]) -> bool:
    """Return whether all tiles of a workload are among `blocks`, each cell with its own noise, whose law is known.

    Tiles derived as sums of stored cells do not qualify, because they share their noise with another tile.
    """
    named = {block.name: block for block in blocks}
    for number, tile in enumerate(workload.tiles):
        block = named.get(tile.block)
        if block is None or block.rows != workload.marginals.measured_cells(number):
            return False
        terms = {term.name: term for term in block.terms}
        if not all(name in terms and can_be_weighted(terms[name].noise) for name in tile.terms):
            return False
    return True


def inconsistent_notice(workload: Workload, blocks: Sequence[ReleasedBlock]) -> tuple[str, ...]:
    """Return a notice if a workload is shown as released, without being made consistent; else nothing."""
    if can_be_consistent(workload, blocks):
        return ()
    return (AS_RELEASED,)


def _term(block: ReleasedBlock, name: str) -> ReleasedTerm:
    return next(term for term in block.terms if term.name == name)


def _with_term(block: ReleasedBlock, consistent: ConsistentTerm) -> ReleasedBlock:
    return replace(block, terms=tuple(consistent if term.name == consistent.name else term for term in block.terms))


@lru_cache(maxsize=4)
def measured_again(joint: Joint, draw: Any, seed: str, draws: int) -> list[Floats]:
    """Return replicates of the errors of all tiles after least squares, each of shape (draws, cells).

    `draw` returns noise of a term for a key, shape (draws, cells), independent for each measured cell.
    """
    noise = [
        draw(term, f"{seed}/{block}/{term.name}/measured", draws)
        for block, term in zip(joint.blocks, joint.terms, strict=True)
    ]
    return joint.estimates(noise)


# --- pooled series -------------------------------------------------------------------------------------------------

# Sums of released cells whose noise is not independent, derived from a table that was measured for running totals.
#
# They read only released numbers, so they are post-processing. A sum of cells has normal noise, whose standard deviation follows
# from the covariance of the whole vector (`SeriesNoise.variances`). Sums of different groups share noise, so their replicates and
# covariances are computed by summing those of the vector in the same way.

MOST_WEIGHTS = 4_000_000
"""Largest number of groups times cells."""


@dataclass(frozen=True, eq=False)
class PooledTerm(ReleasedTerm):
    """One sum of cells of a released vector for each group. `law`: of the vector, with noise steps of size `unit`; `group`: for
    each cell the number of its group, or -1 if it is in none.

    `noise` is the law of the sum with the largest error, just as the law of a single cell is that of the last cell: bars of the
    other sums may be wider than necessary, but not narrower.
    """

    name: str
    values: npt.NDArray[Any]
    law: SeriesNoise
    unit: float
    group: npt.NDArray[np.int64]
    noise: WeightedSum
    noise_unit: float
    whole: bool

    def of_cells(self, weights: Floats) -> Floats:
        """Return the weights of cells, shape (sums, cells), from `weights` of groups, shape (sums, groups)."""
        return np.where(self.group >= 0, weights[:, self.group], 0.0)

    def variances(self, weights: Floats) -> Floats:
        """Return the variances of sums of groups with `weights` of shape (sums, groups), in squares of the units of `values`."""
        return np.asarray(self.law.variances(self.of_cells(weights)) * self.unit**2)

    def summed(self, noise: Floats) -> Floats:
        """Return `noise` of cells, shape (draws, cells), summed by group."""
        cells = np.flatnonzero(self.group >= 0)
        total = np.zeros((len(self.values), len(noise)))
        np.add.at(total, self.group[cells], noise[:, cells].T)
        return np.asarray(total.T)


def pooled(
    name: str, values: npt.NDArray[Any], group: npt.NDArray[np.int64], law: SeriesNoise, grid: int, whole: bool
) -> PooledTerm:
    """Return the term of sums of a vector's cells by group; `values` are the sums, one per group."""
    unit = 2.0 ** (law.shift - grid)
    weights = (group[None, :] == np.arange(len(values))[:, None]).astype(np.float64)
    deviation = sqrt(float(law.variances(weights).max())) * 2.0**law.shift
    share = deviation / law.standard_deviation()
    noise = WeightedSum((Cells(law, share, 1),), law.sensitivity)
    return PooledTerm(name, values, law, unit, group, noise, 2.0**-grid, whole)
