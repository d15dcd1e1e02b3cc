"""Workloads: tables of sums over the same rows by different keys, planned together and made consistent by least squares.

A tile is the table of one sum (or of one set of sums that share each row) in one block. The tiles of a workload sum the same
number over the same rows, so each is a marginal of one table by all keys (below). This module ensures that: rows whose
value is not a public value of a key belong to no group of a block with this key, so the blocks without the key exclude them, too.
Conditions only remove rows, so nothing else changes: stability, bounds and noise are those of ordinary blocks.

The budget of a workload's tiles is what they would have had separately, in equal parts; it is divided unequally among them
(below). Each tile's noise is calibrated to its share and priced from its finished law, so the charge is the sum of
prices as without a workload, and the second road checks it. Everything after that is post-processing of released numbers.

**Least squares.** Marginals of one table of sums are each measured with their own noise, and estimated from all of them. All
tiles count the same rows, each row in one cell, so summing a tile over one of its keys gives another tile. The space of tables
splits into orthogonal parts, one for each set S of keys: the component that depends only on the keys of S and has mean 0 along
each of them (the effects of an analysis of variance; Haberman 1974). A tile B contains every part with S a subset of B. In a
tile of N_B cells with noise of variance v_B in each, that part is measured with information 1 / (N_B v_B), up to a factor
common to all tiles, and the parts are independent where noise is. So generalised least squares needs no matrix: each part is
the mean over the tiles that contain it, weighted by their information, and a tile is the sum of its parts (as in HDMM:
McKenna, Miklau, Hay and Machanavajjhala 2018, arXiv 1808.03537, and ResidualPlanner: Xiao, He, Zhang and Kifer 2023, arXiv
2305.08175). This is the linear unbiased estimate of least variance (Gauss, Aitken), whatever the laws of the noise. All inputs
are public facts or released numbers: doubles are fine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import floor, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.functions.key_columns import within_domains
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import BoundedBlock, Expr, Filter, Key, Relation, Term, TermKind, literal
from dpsql.policy import Policy
from dpsql.privacy.mechanisms.contract import Noise, TermNoise
from dpsql.privacy.mechanisms.registry import can_be_weighted
from dpsql.privacy.mechanisms.weighted_sums import Cells, WeightedSum
from dpsql.storage.records import dataclass, field, replace

Floats = npt.NDArray[np.float64]

MOST_PARTS = 1024
"""Most parts of one workload; a part counts once for each tile that contains it."""
MOST_KEYS = 6
"""Most keys of one tile."""


@dataclass(frozen=True)
class Marginals:
    """Tiles over keys with `sizes` values each (at least 1); a tile names its keys by their positions, in the order of its axes.

    Cells of a tile are in the order of its axes, the first one slowest. `lengths`: where the last axes of tiles are the digits of
    a place, the number of places (empty: all places that the digits can express). Sums at further places are known to be 0;
    variances and weights count them as measured and so are upper bounds.
    """

    sizes: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...] = ()

    @property
    def too_many(self) -> bool:
        """Return whether a tile has more than MOST_KEYS keys, or the tiles more than MOST_PARTS parts."""
        keys = [len(tile) for tile in self.tiles]
        return max(keys) > MOST_KEYS or sum(2**count for count in keys) > MOST_PARTS

    @property
    def is_nested(self) -> bool:
        """Return whether the axes of every tile are the first axes of the first tile, as in a ROLLUP."""
        return all(tile == self.tiles[0][: len(tile)] for tile in self.tiles)

    def in_whole_numbers(self, values: Sequence[Floats]) -> list[Floats]:
        """Return nested tiles in whole numbers whose totals agree, each number at most 1 away from its own in `values`, which are
        consistent.

        The running totals of the first tile's cells are rounded, and a cell is the difference of two of these. So is any total of
        neighbouring cells. Tables by ranges of places are not shown and remain unchanged.
        """
        finest = values[0]
        totals = np.rint(np.cumsum(finest, axis=-1))
        whole = np.diff(totals, axis=-1, prepend=0.0)
        if self.lengths:
            return [whole, *values[1:]]
        return [whole.reshape((*tile.shape, -1)).sum(axis=-1) for tile in values]

    def measured_cells(self, number: int) -> int:
        cells = self.cells(self.tiles[number])
        return cells if not self.lengths else cells // self._places(number) * self.lengths[number]

    def _places(self, number: int) -> int:
        """Return the number of places that the digits of tile `number` can express."""
        digits = [key for key in self.tiles[number] if key >= len(self.sizes) - len(self.tiles)]
        return self.cells(digits)

    def cells(self, keys: Sequence[int]) -> int:
        return prod(self.sizes[key] for key in keys)

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """All subsets of the tiles' keys, each once, in ascending order of keys."""
        subsets = {
            part for tile in self.tiles for count in range(len(tile) + 1) for part in combinations(sorted(tile), count)
        }
        return tuple(sorted(subsets, key=lambda part: (len(part), part)))

    @cached_property
    def has_part(self) -> Floats:
        """1 where a tile (row) has a part (column), else 0."""
        return np.array([[float(set(part) <= set(tile)) for part in self.parts] for tile in self.tiles])

    @cached_property
    def dimensions(self) -> Floats:
        return np.array([float(prod(self.sizes[key] - 1 for key in part)) for part in self.parts])

    @cached_property
    def tile_cells(self) -> Floats:
        return np.array([float(self.cells(tile)) for tile in self.tiles])

    def information(self, variances: Floats) -> Floats:
        """Return the information about each part, given the variance of a cell of each tile (shape: tiles)."""
        return np.asarray((1 / (self.tile_cells * variances)) @ self.has_part)

    def variances_after(self, variances: Floats) -> Floats:
        """Return the variance of a cell of each tile after least squares, from the measured `variances`, of shape (tiles)."""
        return np.asarray(self.has_part @ (self.dimensions / self.information(variances)) / self.tile_cells**2)

    def reconciled(self, values: Sequence[Floats], variances: Floats) -> list[Floats]:
        """Return the tiles after least squares, of the shape of `values`, each tile as measured: (..., cells)."""
        lead = values[0].shape[:-1]
        information = self.information(variances)
        effects: dict[tuple[int, ...], Floats] = {}
        padded = [self._padded(np.asarray(measured, dtype=np.float64), n) for n, measured in enumerate(values)]
        for tile, measured, variance, cells in zip(self.tiles, padded, variances, self.tile_cells, strict=True):
            table = self._by_axis(measured, tile, lead)
            for number, part in enumerate(self.parts):
                if set(part) <= set(tile):
                    weight = 1 / (cells * variance) / information[number]
                    effect = weight * self._effect(table, part, len(lead))
                    effects[part] = effects[part] + effect if part in effects else effect
        return [self._cropped(self._tile(tile, effects, lead), number) for number, tile in enumerate(self.tiles)]

    def _padded(self, measured: Floats, number: int) -> Floats:
        """Return a tile with zeros at the places beyond the last one."""
        if not self.lengths:
            return measured
        by_place = measured.reshape((*measured.shape[:-1], -1, self.lengths[number]))
        more = self._places(number) - self.lengths[number]
        widths = [(0, 0)] * (by_place.ndim - 1) + [(0, more)]
        return np.pad(by_place, widths).reshape((*measured.shape[:-1], -1))

    def _cropped(self, table: Floats, number: int) -> Floats:
        """Return a tile without the places beyond the last one."""
        if not self.lengths:
            return table
        by_place = table.reshape((*table.shape[:-1], -1, self._places(number)))[..., : self.lengths[number]]
        return np.ascontiguousarray(by_place).reshape((*table.shape[:-1], -1))

    def _by_axis(self, measured: Floats, tile: tuple[int, ...], lead: tuple[int, ...]) -> Floats:
        """Return a tile with one axis for each key of the workload, of length 1 for keys that the tile lacks."""
        ascending = sorted(tile)
        table = measured.reshape((*lead, *(self.sizes[key] for key in tile)))
        axes = [*range(len(lead)), *(len(lead) + tile.index(key) for key in ascending)]
        table = table.transpose(axes)
        return table.reshape((*lead, *self._lengths(tile)))

    def _lengths(self, tile: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(size if key in tile else 1 for key, size in enumerate(self.sizes))

    def _effect(self, table: Floats, part: tuple[int, ...], lead: int) -> Floats:
        """Return the part of a table that depends on the keys of `part` alone: summed over the others, centred along each."""
        over = tuple(lead + key for key in range(len(self.sizes)) if key not in part)
        effect = table.sum(axis=over, keepdims=True) if over else table
        for key in part:
            effect = effect - effect.mean(axis=lead + key, keepdims=True)
        return np.asarray(effect)

    def _tile(self, tile: tuple[int, ...], effects: dict[tuple[int, ...], Floats], lead: tuple[int, ...]) -> Floats:
        """Return the sum of the parts of a tile; each cell gets its share of a part's sums."""
        cells = self.cells(tile)
        table = np.zeros((*lead, *self._lengths(tile)))
        for part, effect in effects.items():
            if set(part) <= set(tile):
                table = table + effect * (self.cells(part) / cells)
        ascending = sorted(tile)
        table = table.reshape((*lead, *(self.sizes[key] for key in ascending)))
        table = table.transpose([*range(len(lead)), *(len(lead) + ascending.index(key) for key in tile)])
        return np.ascontiguousarray(table).reshape((*lead, cells))

    def weights(self, number: int, variances: Floats) -> list[tuple[int, float, int]]:
        """Return the weights of measured cells whose sum is a cell of tile `number` after least squares.

        For each tile: its number, a weight, and how many of its cells have that weight. The result is the same for every cell,
        because the weight of a measured cell depends only on the keys in which the two cells agree.
        """
        relative = tuple(float(f"{variance / variances[0]:.12g}") for variance in variances)
        return list(_weights(self, relative)[number])


@lru_cache(maxsize=64)
def _weights(marginals: Marginals, variances: tuple[float, ...]) -> tuple[tuple[tuple[int, float, int], ...], ...]:
    """Return all tiles' `Marginals.weights`, which the unit of variances does not change: sums share the cached result."""
    measured = np.array(variances)
    share = dict(zip(marginals.parts, 1 / marginals.information(measured), strict=True))
    factors = 1 / (marginals.tile_cells * measured)
    return tuple(
        tuple(
            (other, weight * float(factors[other]), count)
            for other in range(len(marginals.tiles))
            for weight, count in _agreeing(marginals, number, other, share)
        )
        for number in range(len(marginals.tiles))
    )


def _agreeing(
    marginals: Marginals, number: int, other: int, share: dict[tuple[int, ...], float]
) -> list[tuple[float, int]]:
    """Return, for each set G of common keys, the weight in a cell of tile `number` of a cell of tile `other` that agrees with it
    in exactly G, and how many such cells there are.

    The weight is the sum over sets S of common keys of cells(S) share(S) / cells, times the product over S of 1 - 1/n where G has
    the key and of -1/n where it does not. It is computed key by key, in k 2**k steps for k keys instead of 4**k.
    """
    tile, measured = marginals.tiles[number], marginals.tiles[other]
    common = sorted(set(tile) & set(measured))
    subsets = [tuple(key for index, key in enumerate(common) if bits >> index & 1) for bits in range(1 << len(common))]
    weights = np.array([marginals.cells(part) * share[part] for part in subsets]) / marginals.cells(tile)
    for index, key in enumerate(common):
        by_key = weights.reshape(-1, 2, 1 << index)
        without, having = by_key[:, 0], by_key[:, 1]
        size = marginals.sizes[key]
        weights = np.stack([without - having / size, without + having * (1 - 1 / size)], axis=1).reshape(-1)
    elsewhere = marginals.cells([key for key in measured if key not in tile])
    counts = [elsewhere * prod(marginals.sizes[key] - 1 for key in common if key not in part) for part in subsets]
    return [(float(weight), count) for weight, count in zip(weights, counts, strict=True) if count and weight]


# --- shares of a budget -----------------------------------------------------------------------------------------------

# Division of a budget among tiles that are measured together: the shares that minimize an objective after least squares.
# The shares follow only from the shape of the tiles and the laws of their noise, never from data. They are computed in floats
# and rounded down to fractions before anything is priced: however inaccurate they are, the tiles together cost no more.

LEAST_SHARE = 1 / 64
"""Least share of every tile, relative to an even share."""
STEPS = 1 << 10
"""Shares are multiples of 1/1024 of an even share."""
_MOST_STARTS = 6
_ROUNDS = 60
_SHARPNESS = (8.0, 64.0, 512.0)
"""Sharpness of the smooth function that replaces a maximum, in consecutive rounds."""


class Objective(StrEnum):
    """Objective that a plan of tiles minimizes; false only for OFF.

    RELATIVE: the largest error of a tile, relative to the mean of its cells. ABSOLUTE: the mean over tiles of the error of a
    cell. RUNNING: the error of running totals over the last key (`running_totals`).
    """

    OFF = "off"
    RELATIVE = "relative"
    ABSOLUTE = "absolute"
    RUNNING = "running"

    def __bool__(self) -> bool:
        return self is not Objective.OFF


def objective_of(
    marginals: Marginals, variances: Floats, objective: Objective, weights: tuple[float, ...] = ()
) -> float:
    """Return the objective for the variances of a cell of each tile as shown, up to a factor for the unit of the sums and their
    total.

    `weights`: how much the error of each tile counts (empty: all count equally).
    """
    deviations = np.sqrt(variances) * (np.array(weights) if weights else 1.0)
    if objective is Objective.RELATIVE:
        return float(np.max(deviations * marginals.tile_cells))
    return float(np.mean(deviations))


@lru_cache(maxsize=256)
def shares(
    marginals: Marginals,
    relative_variances: tuple[float, ...],
    power: int,
    objective: Objective,
    weights: tuple[float, ...] = (),
) -> tuple[Fraction, ...]:
    """Return the share of each tile, relative to an even share: their sum is at most the number of tiles.

    `relative_variances`: variance of a cell of each tile at an even share, up to a common factor. A tile of share s has noise of
    variance proportional to s ** -power, with power 1 where rho is shared and 2 where epsilon is. `weights`: see `objective_of`.
    """
    even = np.array(relative_variances)
    count = len(even)
    starts = [np.zeros(count)]
    for tile in sorted(range(count), key=lambda number: -marginals.tile_cells[number])[:_MOST_STARTS]:
        start = np.zeros(count)
        start[tile] = np.log(8.0 * count)
        starts.append(start)
    counting = np.array(weights) if weights else np.ones(count)
    candidates = [in_steps(_descended(marginals, even, power, objective, start, counting)) for start in starts]

    def after(chosen: tuple[Fraction, ...]) -> float:
        variances = even / np.array([float(share) for share in chosen]) ** power
        return objective_of(marginals, marginals.variances_after(variances), objective, weights)

    return min(candidates, key=after)


def in_steps(descended: Floats) -> tuple[Fraction, ...]:
    """Return shares as fractions with the denominator STEPS, rounded down, but at least 1 / STEPS."""
    return tuple(Fraction(max(1, floor(share * STEPS)), STEPS) for share in descended)


def _of_logarithms(logarithms: Floats) -> Floats:
    """Return shares of mean 1, each at least LEAST_SHARE, that grow with `logarithms`."""
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(LEAST_SHARE + (1 - LEAST_SHARE) * len(weights) * weights / weights.sum())


def _descended(
    marginals: Marginals, even: Floats, power: int, objective: Objective, start: Floats, counting: Floats
) -> Floats:
    """Return shares after descent along the gradient from `start`. Steps grow while they help and shrink otherwise."""
    logarithms, step = start, 0.5
    for sharpness in _SHARPNESS if objective is Objective.RELATIVE else (0.0,):
        value, slope = _value_and_slope(marginals, even, power, sharpness, logarithms, counting)
        for _ in range(_ROUNDS):
            moved = logarithms - step * slope / (np.linalg.norm(slope) + 1e-12)
            next_value, next_slope = _value_and_slope(marginals, even, power, sharpness, moved, counting)
            if next_value < value:
                logarithms, value, slope, step = moved, next_value, next_slope, step * 1.3
            else:
                step *= 0.5
            if step < 1e-4:
                break
        step = 0.1
    return _of_logarithms(logarithms)


def _value_and_slope(
    marginals: Marginals, even: Floats, power: int, sharpness: float, logarithms: Floats, counting: Floats
) -> tuple[float, Floats]:
    """Return the logarithm of the objective (`sharpness` 0: the mean over tiles; otherwise a smooth maximum) and its gradient."""
    weights = np.exp(logarithms - logarithms.max())
    weights = weights / weights.sum()
    share = _of_logarithms(logarithms)
    precision = share**power / (even * marginals.tile_cells)
    information = precision @ marginals.has_part
    squares = marginals.has_part @ (marginals.dimensions / information)
    """Squared error of a tile's cell relative to the mean of its cells."""
    if sharpness:
        levels = np.log(squares) / 2 + np.log(counting)
        powers = np.exp(sharpness * (levels - levels.max()))
        value = float(levels.max() + np.log(powers.sum()) / sharpness)
        of_squares = powers / powers.sum() / (2 * squares)
    else:
        errors = counting * np.sqrt(squares) / marginals.tile_cells
        value = float(np.log(errors.sum()))
        of_squares = errors / errors.sum() / (2 * squares)
    of_parts = -(of_squares @ marginals.has_part) * marginals.dimensions / information**2
    of_shares = (marginals.has_part @ of_parts) * precision * power / share
    of_weights = (1 - LEAST_SHARE) * len(weights) * of_shares
    return value, np.asarray(weights * (of_weights - weights @ of_weights))


MOST_LISTED = 1000
"""Most values of a key to which blocks without this key are restricted."""
_KEY_TYPES = (Type.TEXT, Type.INTEGER, Type.BOOLEAN, Type.DATE)
_Axis = tuple[Expr, tuple[Any, ...]]
"""Expression of a key and its public values, in order."""


@dataclass(frozen=True)
class Tile:
    """Table of some sums in one block: `block` is its name, `terms` the names of the sums' terms (several share each row)."""

    block: str
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """Tiles of the same sums over the same rows. `marginals` has the tiles in the same order. `shares`: the share of each tile,
    relative to what it would have alone (given where tables are ranges, otherwise found when the workload is `planned`). `apart`:
    for each tile the noise that its sums would have alone."""

    marginals: Marginals
    tiles: tuple[Tile, ...]
    shares: tuple[Fraction, ...] = ()
    apart: tuple[tuple[Noise, ...], ...] = ()


NoiseOf = Callable[[Term, BoundedBlock, Fraction], Noise]
"""Function that returns the noise of a term at a fraction of what its set would have alone."""


@dataclass(frozen=True)
class Wishes:
    """Objective of a plan of tiles. `weights`: how much the errors of a block's tiles count (1 for blocks that are not named)."""

    objective: Objective
    weights: Mapping[str, Fraction] = field(default_factory=dict)


# --- tiles of a question --------------------------------------------------------------------------------------------


def workloads_of(blocks: Sequence[BoundedBlock]) -> tuple[Workload, ...]:
    """Return the workloads of a question: one for each sum that at least two blocks over the same rows have, except workloads
    that are too large (`Marginals.too_many`)."""
    by_source: dict[Relation, dict[tuple[Term, ...], list[Tile]]] = {}
    axes: dict[str, tuple[_Axis, ...]] = {}
    for block in blocks:
        of_block = axes_of(block)
        if of_block is None:
            continue
        axes[block.name], by_sums = of_block, by_source.setdefault(block.source, {})
        for terms in adding_up(block):
            sums = tuple(replace(term, name="", shares="shared" if term.shares else "") for term in terms)
            by_sums.setdefault(sums, []).append(Tile(block.name, tuple(term.name for term in terms)))
    tables: dict[tuple[str, ...], Marginals] = {}
    workloads = []
    for tiles in (tiles for by_sums in by_source.values() for tiles in by_sums.values() if len(tiles) > 1):
        names = tuple(tile.block for tile in tiles)
        if names not in tables:
            tables[names] = _marginals([axes[name] for name in names])
        workloads.append(Workload(tables[names], tuple(tiles)))
    return tuple(workload for workload in workloads if not workload.marginals.too_many)


def _marginals(of_tiles: Sequence[tuple[_Axis, ...]]) -> Marginals:
    """Return the tables by these keys, where keys are positions in the list of all keys."""
    axes = list(dict.fromkeys(axis for tile in of_tiles for axis in tile))
    indexes = tuple(tuple(axes.index(axis) for axis in tile) for tile in of_tiles)
    return Marginals(tuple(len(values) for _, values in axes), indexes)


def axes_of(block: BoundedBlock) -> tuple[_Axis, ...] | None:
    """Return the keys of a block whose groups are all combinations of public values, in order; None for any other block."""
    if block.reads_results or block.caps.bounds.drops_rows_by_group or block.combinations is not None:
        return None
    if not all(map(_usable, block.keys)):
        return None
    axes = tuple((key.expression, tuple(key.values or ())) for key in block.keys)
    return axes if len(set(axes)) == len(axes) else None


def _usable(key: Key) -> bool:
    """Return whether a key has all groups of its public values, and few enough values to be listed in a condition."""
    listed = key.values is not None and 0 < len(key.values) <= MOST_LISTED
    return listed and key.whole and key.expression.facts.type in _KEY_TYPES


def adding_up(block: BoundedBlock) -> list[tuple[Term, ...]]:
    """Return the sums of a block that add up over groups; sums that share each row are in one tuple."""
    by_set: dict[str, list[Term]] = {}
    for term in block.terms:
        by_set.setdefault(term.shares or term.name, []).append(term)
    return [tuple(terms) for terms in by_set.values() if all(map(_adds_up, terms))]


ADDING_UP = (TermKind.COUNT, TermKind.SUM, TermKind.SQUARE_PART, TermKind.PRODUCT_PART, TermKind.PAIR_PART)


def _adds_up(term: Term) -> bool:
    """Return whether sums over groups add up to that over their union: a clipped one does not, its clip reads all groups."""
    return term.kind in ADDING_UP and term.clip is None and term.magnitude > 0


def over_common_rows(
    blocks: Sequence[BoundedBlock], workloads: Sequence[Workload], policy: Policy
) -> tuple[BoundedBlock, ...]:
    """Return the blocks. Blocks with tiles are restricted to rows that belong to a group of every block of their workloads."""
    together = dict.fromkeys(tuple(tile.block for tile in workload.tiles) for workload in workloads)
    members = {name for names in together for name in names}
    own_keys = {
        block.name: dict(zip(axes_of(block) or (), block.keys, strict=True))
        for block in blocks
        if block.name in members
    }
    keys: dict[str, dict[_Axis, Key]] = {}
    for names in together:
        of_all = {axis: key for name in names for axis, key in own_keys[name].items()}
        for name in names:
            keys.setdefault(name, {}).update(of_all)
    return tuple(
        replace(block, source=_restricted(block, own_keys[block.name], keys[block.name], policy))
        if block.name in members
        else block
        for block in blocks
    )


def _restricted(
    block: BoundedBlock, own_axes: Mapping[_Axis, Key], keys: Mapping[_Axis, Key], policy: Policy
) -> Relation:
    source, missing = block.source, [key for axis, key in keys.items() if axis not in own_axes]
    for key in missing:
        source = Filter(source, _listed(key))
    return within_domains(source, missing, policy)


def _listed(key: Key) -> Expr:
    """Return the condition that a row has one of the public values of a key."""
    values = [value for value in key.values or () if value is not None]
    among = [call("in", key.expression, *map(literal, values))] if values else []
    missing = [call("is_null", key.expression)] if len(values) < len(key.values or ()) else []
    conditions = [*among, *missing]
    return conditions[0] if len(conditions) == 1 else call("or", *conditions)


# --- shares of the tiles --------------------------------------------------------------------------------------------


def planned(
    workloads: Iterable[Workload],
    blocks: Iterable[BoundedBlock],
    noise_of: NoiseOf,
    power: int,
    wishes: Wishes,
    parts: Mapping[str, Fraction] | None = None,
) -> tuple[Workload, ...]:
    """Return the workloads with their shares, except those for whose noise the law of weighted sums is unknown. `power`: noise of
    a share s has variance proportional to s ** -power, 1 under rho and 2 under epsilon. `parts`: what a sum of each block would
    have alone, in epsilon or rho (None: all the same)."""
    named = {block.name: block for block in blocks}
    plans = (_planned(workload, named, noise_of, power, wishes, parts) for workload in workloads)
    return tuple(workload for workload in plans if workload is not None)


def _planned(
    workload: Workload,
    blocks: Mapping[str, BoundedBlock],
    noise_of: NoiseOf,
    power: int,
    wishes: Wishes,
    parts: Mapping[str, Fraction] | None,
) -> Workload | None:
    """Return the workload with its shares, or None where the law of weighted sums of its noise is unknown or its noise is zero.

    The optimized shares are used if the finished noise laws confirm their advantage, otherwise the tiles' own shares. Shares are
    counted relative to the mean of what tiles have alone, and their sum is at most the number of tiles: together the tiles cost
    no more than separately.
    """
    objective = wishes.objective
    terms = [
        [next(term for term in blocks[tile.block].terms if term.name == name) for name in tile.terms]
        for tile in workload.tiles
    ]
    count = len(terms)
    by_itself = [Fraction(1) if parts is None else parts[tile.block] for tile in workload.tiles]
    own_shares = tuple(part * count / sum(by_itself) for part in by_itself)

    def laws(chosen: Sequence[Fraction]) -> tuple[tuple[Noise, ...], ...]:
        return tuple(
            tuple(noise_of(term, blocks[tile.block], share / own_share) for term in of_tile)
            for tile, of_tile, share, own_share in zip(workload.tiles, terms, chosen, own_shares, strict=True)
        )

    apart = laws(own_shares)
    # No tile gets more than all shares, so no noise is smaller than under these laws.
    least = laws((Fraction(count),) * count)
    if not all(can_be_weighted(noise) for tile in (*apart, *least) for noise in tile):
        return None
    if objective is Objective.RUNNING:
        return replace(workload, apart=apart)
    variances = _variances(laws((Fraction(1),) * count))
    relative = tuple(round(float(variance / variances[0]), 6) for variance in variances)
    counting = tuple(float(wishes.weights.get(tile.block, 1)) for tile in workload.tiles)
    weights = () if len(set(counting)) == 1 else counting
    chosen = shares(workload.marginals, relative, power, objective, weights)
    after = [
        objective_of(
            workload.marginals, workload.marginals.variances_after(_variances(laws(shared))), objective, weights
        )
        for shared in (chosen, own_shares)
    ]
    taken = chosen if after[0] < after[1] else own_shares
    return replace(
        workload, shares=tuple(share / part for share, part in zip(taken, own_shares, strict=True)), apart=apart
    )


def _variances(laws: Sequence[Sequence[Noise]]) -> Floats:
    """Return the variance of a cell of the first sum of each tile."""
    return np.array([tile[0].standard_deviation() ** 2 for tile in laws])


def share_by_set(workloads: Iterable[Workload]) -> dict[tuple[str, str], Fraction]:
    """Return the share of each set of sums relative to what it would have alone, by block and the name of its first sum."""
    return {
        (tile.block, tile.terms[0]): share
        for workload in workloads
        for tile, share in zip(workload.tiles, workload.shares, strict=True)
    }


# --- laws after least squares ---------------------------------------------------------------------------------------


def planned_laws_after(
    workloads: Iterable[Workload], noises: Mapping[str, Sequence[TermNoise]]
) -> dict[tuple[str, str], Noise]:
    """Return the law of each term's error after least squares, by block and term. `noises`: the planned ones of each block."""
    laws: dict[tuple[str, str], Noise] = {}
    for workload in workloads:
        for index in range(len(workload.tiles[0].terms)):
            names = [(tile.block, tile.terms[index]) for tile in workload.tiles]
            planned_noise = [next(noise for noise in noises[block] if noise.name == name) for block, name in names]
            cells = [Cells(noise.noise, 1.0, 1, rounding(noise.noise, noise.whole)) for noise in planned_noise]
            laws |= dict(zip(names, laws_after(workload.marginals, cells), strict=True))
    return laws


def variance(noise: Noise, whole: bool) -> float:
    """Return the variance of a measured cell, rounding included, in squared row-grid units."""
    return Cells(noise, 1.0, 1, rounding(noise, whole)).variance


def rounding(noise: Noise, whole: bool) -> float:
    """Return the variance of rounding a released count on a finer grid to a whole number: at most 1/12, in squared steps."""
    return 1 / 12 if whole and noise.shift < 0 else 0.0


def laws_after(marginals: Marginals, cells: Sequence[Cells]) -> tuple[WeightedSum, ...]:
    """Return the law of the error of a cell of each tile after least squares. `cells`: one measured cell of each tile."""
    variances = np.array([cell.variance for cell in cells])
    return tuple(
        WeightedSum(
            tuple(
                Cells(cells[other].noise, weight, count, cells[other].rounding)
                for other, weight, count in marginals.weights(number, variances)
            ),
            cells[number].noise.sensitivity,
        )
        for number in range(len(cells))
    )
