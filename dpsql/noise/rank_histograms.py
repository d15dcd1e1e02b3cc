"""From the exact histograms of a `plan.measurements.RankHistogram` to the cells that are released as quantiles.

The engine returns one row for each group and cell that is not empty, so that the work follows the rows of the data and not
the grid. Groups are those of the answer: public keys, or private keys that partition selection has admitted before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups, plain_column
from dpsql.privacy.mechanisms.contract import Law
from dpsql.privacy.mechanisms.rank_histogram import RankHistogramPlan

CELL, COUNT = "cell", "rows"
"""Columns of the engine's table besides the keys: the number of a cell, and how many rows are in it (1 or more)."""
Numbers = Mapping[str, NDArray[np.int64]]
ReleaseNumbers = Callable[[Any, Any, Groups, "Chooser"], Numbers]
"""(the engine's table, the plan, the groups, the gate) to one integer per group for each name."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """Rows in the cells of every group, of which most are empty. Group g has `cell[start[g]:start[g + 1]]`, ascending, with
    `count` rows each; `cells` is the number of cells of a group. No repr of its numbers."""

    cells: int
    start: NDArray[np.int64]
    cell: NDArray[np.int64]
    count: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<Histograms of {self.start.size - 1} groups: sealed>"


class Chooser(Protocol):
    """The gate, as far as it chooses."""

    def choose(
        self, name: str, histograms: Histograms, quantile: Fraction, law: Law, groups: Groups
    ) -> NDArray[np.int64]: ...


def released_quantiles(
    table: Any, plan: RankHistogramPlan, groups: Groups, gate: Chooser
) -> dict[str, NDArray[np.int64]]:
    """The number of a cell for each group and quantile. Raises Fault noise_answer for a table of the wrong shape.

    Quantiles of one histogram never cross: every group's numbers are put in order, which is post-processing.
    """
    histograms = laid_out(table, plan.cells, groups)
    drawn = [gate.choose(one.name, histograms, one.quantile, one.law, groups) for one in plan.quantiles]
    rank = sorted(range(len(drawn)), key=lambda at: plan.quantiles[at].quantile)
    ordered = np.sort(np.array([drawn[at] for at in rank], dtype=np.int64).reshape(len(drawn), groups.count), axis=0)
    return {plan.quantiles[at].name: ordered[place] for place, at in enumerate(rank)}


def laid_out(table: Any, cells: int, groups: Groups) -> Histograms:
    """The engine's `table` (pyarrow.Table) by group. Rows of keys that are no group of the answer are left out, as groups are
    that selection has not admitted. Raises Fault noise_answer."""
    group = _numbers(table, groups)
    cell, count = (_integers(plain_column(table, name)) for name in (CELL, COUNT))
    inside = group < groups.count
    group, cell, count = group[inside], cell[inside], count[inside]
    if (cell < 0).any() or (cell >= cells).any() or (count < 1).any():
        raise refuse("noise_answer", charged=True)
    place = (
        group * cells + cell
    )  # below 2**63: the groups of an answer fit into memory, and a grid has 2**29 cells at most
    if not (place[1:] > place[:-1]).all():
        order = np.argsort(place)
        group, cell, count, place = group[order], cell[order], count[order], place[order]
        if (place[1:] == place[:-1]).any():
            raise refuse("noise_answer", charged=True)
    return Histograms(cells, np.searchsorted(group, np.arange(groups.count + 1)).astype(np.int64), cell, count)


def _integers(column: Any) -> NDArray[np.int64]:
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        raise refuse("noise_answer", charged=True)
    numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _numbers(table: Any, groups: Groups) -> NDArray[np.int64]:
    """For each row the number of its group, or `groups.count` where it is in none.

    Key by key: rows and groups get the number of the combination that they have so far, so that numbers stay below the
    number of groups whatever the keys are.
    """
    of_rows = np.zeros(table.num_rows, dtype=np.int64)
    of_groups = np.zeros(groups.count, dtype=np.int64)
    nowhere = np.zeros(table.num_rows, dtype=bool)
    for name in groups.keys.column_names:
        wanted, column = plain_column(groups.keys, name), plain_column(table, name)
        try:
            if pa.types.is_integer(wanted.type) and pa.types.is_integer(column.type):
                wanted, column = wanted.cast(pa.int64()), column.cast(pa.int64())
            values = wanted.unique()
            places = pc.index_in(column, value_set=values.cast(column.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # The types of the column and of the keys decide this, not rows.
            raise refuse("noise_answer", charged=True) from None
        nowhere |= places.is_null().to_numpy(zero_copy_only=False)
        size = max(1, len(values))
        of_rows = of_rows * size + places.fill_null(0).to_numpy()
        of_groups = of_groups * size + pc.index_in(wanted, value_set=values).to_numpy()
        known, of_groups = np.unique(of_groups, return_inverse=True)
        at = np.minimum(np.searchsorted(known, of_rows), max(0, known.size - 1))
        nowhere |= known[at] != of_rows if known.size else True
        of_rows = at
    if np.unique(of_groups).size != groups.count:
        raise refuse("noise_answer", charged=True)
    number = np.empty(groups.count, dtype=np.int64)
    number[of_groups] = np.arange(groups.count)
    return np.where(nowhere, groups.count, number[of_rows] if groups.count else groups.count)
