"""Consistent tiles of a workload, by least squares over released numbers and the laws of their noise.

Every tile is answered from all measured tiles (`pricing.marginals`). This reads only released numbers and public laws, so it is
post-processing. A cell of the result has the error of a weighted sum of all measured cells, whose law is known. Cells are not
independent of each other, so their replicates are drawn for measured cells and made consistent as well (`measured_again`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import frexp, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.pricing.marginals import Marginals
from dpsql.pricing.workloads import Workload, laws_after, rounding
from dpsql.privacy.mechanisms.contract import Floats, SeriesNoise
from dpsql.privacy.mechanisms.registry import can_be_weighted
from dpsql.privacy.mechanisms.weighted_sums import Cells, WeightedSum
from dpsql.release.remainder import NoisyNumbers, ReleasedBlock, ReleasedTerm

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
class ConsistentTerm(NoisyNumbers):
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
class PooledTerm(NoisyNumbers):
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
