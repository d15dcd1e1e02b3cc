"""From the exact histograms of a `plan.measurements.RankHistogram` to the cells that are released as quantiles.

The engine returns one row for each group and nonempty cell, so the work depends on the rows of the data and not on the grid.
Groups are those of the answer: public keys, or private keys that partition selection has already admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups, plain_column
from dpsql.privacy.mechanisms.contract import Law, Noise
from dpsql.privacy.mechanisms.rank_histogram import RankHistogramPlan
from dpsql.storage.records import dataclass, replace

CELL, COUNT = "cell", "rows"
"""Columns of the engine's table besides the keys: the number of a cell, and the number of rows in it (1 or more)."""
Numbers = Mapping[str, NDArray[np.int64]]
ReleaseNumbers = Callable[[Any, Any, Groups, "NumberGate"], Numbers]
"""A function of (engine's table, plan, groups, gate) that returns by name one integer per group."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """The rows in the cells of every group; most cells are empty. Group g has the cells `cell[start[g]:start[g + 1]]`, ascending,
    with `count` rows each; `cells` is the number of cells per group. If `width` is given, each of these is the first of `width`
    adjacent cells, all with `count` rows. The repr does not show numbers."""

    cells: int
    start: NDArray[np.int64]
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    width: NDArray[np.int64] | None = None

    def taken_apart(self) -> Histograms:
        """Return histograms with the same rows in which every nonempty cell is listed separately, without `width`."""
        if self.width is None:
            return self
        ends = np.concatenate([[0], np.cumsum(self.width)])
        of_span = np.repeat(np.arange(self.cell.size), self.width)
        cell = self.cell[of_span] + np.arange(of_span.size) - ends[of_span]
        return Histograms(self.cells, ends[self.start], cell, self.count[of_span])

    def __repr__(self) -> str:
        return f"<Histograms of {self.start.size - 1} groups: sealed>"


class NumberGate(Protocol):
    """The part of the gate that releases numbers drawn from exact histograms."""

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]: ...

    def release_sums(self, name: str, sums: NDArray[np.int64], noise: Noise, groups: Groups) -> NDArray[np.float64]: ...


def released_quantiles(
    table: Any, plan: RankHistogramPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return by quantile the number of a cell for each group. Raises Fault noise_answer for a table of the wrong shape."""
    return chosen_quantiles(laid_out(table, plan.cells, groups), plan, groups, gate)


def chosen_quantiles(
    whole: Histograms, plan: RankHistogramPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return by quantile the number of a cell of the exact histograms `whole` for each group.

    Quantiles of one histogram never cross: the numbers of every group are sorted, which is post-processing.
    """
    histograms = sliced(whole, plan.slices)
    indexes: dict[Fraction, NDArray[np.int64]] = {}
    for choice in sorted(plan.quantiles, key=lambda choice: choice.search.level):
        search = choice.search
        low = np.zeros(groups.count, dtype=np.int64) if search.low is None else indexes[search.low]
        high = np.full(groups.count, histograms.cells) if search.high is None else indexes[search.high]
        searched = histograms if search.low is search.high is None else between(histograms, low, high)
        chosen = _chosen(choice.name, searched, search.relative, choice.law, groups, gate)
        indexes[choice.quantile] = np.minimum(np.maximum(chosen, low), np.maximum(high - 1, low))
    ascending = sorted(plan.quantiles, key=lambda choice: choice.quantile)
    drawn = np.array([indexes[choice.quantile] for choice in ascending], dtype=np.int64).reshape(
        len(ascending), groups.count
    )
    ordered = np.sort(drawn // plan.slices, axis=0)
    numbers = {choice.name: ordered[rank] for rank, choice in enumerate(ascending)}
    of_quantile = {choice.quantile: ordered[rank] for rank, choice in enumerate(ascending)}
    return numbers | _ends(whole, plan, of_quantile, groups, gate)


def _ends(
    histograms: Histograms,
    plan: RankHistogramPlan,
    of_quantile: Mapping[Fraction, NDArray[np.int64]],
    groups: Groups,
    gate: NumberGate,
) -> dict[str, NDArray[np.int64]]:
    """Return the ends of error bars, extended so that a bar contains its number, which is post-processing."""
    numbers = {}
    for end in plan.ends:
        law = end.law
        chosen = _chosen(end.name, padded(histograms, law.padding), end.quantile, law, groups, gate)
        nearest = np.minimum if law.padding < 0 else np.maximum
        numbers[end.name] = nearest(chosen, of_quantile[end.quantile])
    return numbers


def _chosen(
    name: str, histograms: Histograms, quantile: Fraction, law: Law, groups: Groups, gate: NumberGate
) -> NDArray[np.int64]:
    """Return the cells that `law` chooses. Raises InternalError noise_plan unless `law` is a choice of `quantile`."""
    if getattr(law, "quantile", None) != quantile:
        raise refuse("noise_plan", charged=True, problem="a quantile that is chosen as another one")
    return gate.release_numbers(name, histograms, law, groups)


def padded(histograms: Histograms, padding: int) -> Histograms:
    """Return every group with `padding` additional rows in its last cell or, if it is negative, -`padding` in its first cell."""
    groups = histograms.start.size - 1
    return with_rows(histograms, 0 if padding < 0 else histograms.cells - 1, np.full(groups, abs(padding)))


def with_rows(histograms: Histograms, cell: int, rows: NDArray[np.int64]) -> Histograms:
    """Return the histograms with `rows` (0 or more for each group) additional rows in one cell."""
    groups = histograms.start.size - 1
    growing = np.flatnonzero(rows)
    group = np.concatenate([np.repeat(np.arange(groups), np.diff(histograms.start)), growing])
    numbered = group * histograms.cells + np.concatenate([histograms.cell, np.full(growing.size, cell)])
    different, index = np.unique(numbered, return_inverse=True)
    count = np.zeros(different.size, dtype=np.int64)
    np.add.at(count, index, np.concatenate([histograms.count, rows[growing]]))
    start = np.searchsorted(different, np.arange(groups + 1) * histograms.cells)
    return Histograms(histograms.cells, start, different % histograms.cells, count)


def sliced(histograms: Histograms, slices: int) -> Histograms:
    """Return the histograms with every cell cut into `slices`, each with one part of every row: `slices` parts are a row."""
    if slices == 1:
        return histograms
    width = np.full(histograms.cell.size, slices)
    return replace(histograms, cells=histograms.cells * slices, cell=histograms.cell * slices, width=width)


def between(histograms: Histograms, low: NDArray[np.int64], high: NDArray[np.int64]) -> Histograms:
    """Return the rows of each group from its place `low` to the place before `high`; none where high <= low."""
    of_span = np.repeat(np.arange(low.size), np.diff(histograms.start))
    width = np.int64(1) if histograms.width is None else histograms.width
    first = np.maximum(histograms.cell, low[of_span])
    inside = np.minimum(histograms.cell + width, high[of_span]) - first
    overlapping = inside > 0
    start = np.concatenate([[0], np.cumsum(overlapping)])[histograms.start]
    count, first, inside = histograms.count[overlapping], first[overlapping], inside[overlapping]
    return Histograms(histograms.cells, start, first, count, None if histograms.width is None else inside)


def laid_out(table: Any, cells: int, groups: Groups) -> Histograms:
    """Return the histograms in the engine's `table` (pyarrow.Table) by group. Rows whose keys are not a group of the answer, for
    example because selection has not admitted it, are omitted. Raises Fault noise_answer."""
    group = _numbers(table, groups)
    cell, count = (_integers(plain_column(table, name)) for name in (CELL, COUNT))
    inside = group < groups.count
    group, cell, count = group[inside], cell[inside], count[inside]
    if (cell < 0).any() or (cell >= cells).any() or (count < 1).any():
        raise refuse("noise_answer", charged=True)
    index = (
        group * cells + cell
    )  # below 2**63: the groups of an answer fit into memory, and a grid has at most 2**29 cells
    if not (index[1:] > index[:-1]).all():
        order = np.argsort(index)
        group, cell, count, index = group[order], cell[order], count[order], index[order]
        if (index[1:] == index[:-1]).any():
            raise refuse("noise_answer", charged=True)
    return Histograms(cells, np.searchsorted(group, np.arange(groups.count + 1)).astype(np.int64), cell, count)


def _integers(column: Any) -> NDArray[np.int64]:
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        raise refuse("noise_answer", charged=True)
    numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _numbers(table: Any, groups: Groups) -> NDArray[np.int64]:
    """Return for each row the number of its group, or `groups.count` if it is in none.

    Go key by key: rows and groups get the number of the combination of the keys so far, so that numbers stay below the number
    of groups whatever the keys are.
    """
    of_rows = np.zeros(table.num_rows, dtype=np.int64)
    of_groups = np.zeros(groups.count, dtype=np.int64)
    nowhere = np.zeros(table.num_rows, dtype=bool)
    for name in groups.keys.column_names:
        group_keys, column = plain_column(groups.keys, name), plain_column(table, name)
        try:
            if pa.types.is_integer(group_keys.type) and pa.types.is_integer(column.type):
                group_keys, column = group_keys.cast(pa.int64()), column.cast(pa.int64())
            values = group_keys.unique()
            indexes = pc.index_in(column, value_set=values.cast(column.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # This depends on the types of the column and of the keys, not on rows.
            raise refuse("noise_answer", charged=True) from None
        nowhere |= indexes.is_null().to_numpy(zero_copy_only=False)
        size = max(1, len(values))
        of_rows = of_rows * size + indexes.fill_null(0).to_numpy()
        of_groups = of_groups * size + pc.index_in(group_keys, value_set=values).to_numpy()
        combinations, of_groups = np.unique(of_groups, return_inverse=True)
        position = np.minimum(np.searchsorted(combinations, of_rows), max(0, combinations.size - 1))
        nowhere |= combinations[position] != of_rows if combinations.size else True
        of_rows = position
    if np.unique(of_groups).size != groups.count:
        raise refuse("noise_answer", charged=True)
    number = np.empty(groups.count, dtype=np.int64)
    number[of_groups] = np.arange(groups.count)
    return np.where(nowhere, groups.count, number[of_rows] if groups.count else groups.count)
