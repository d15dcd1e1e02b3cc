"""Workloads: tables of sums over the same rows by different keys, planned together and made consistent by least squares.

A tile is the table of one sum (or of one set of sums that share each row) in one block. The tiles of a workload sum the same
number over the same rows, so each is a marginal of one table by all keys (`marginals`). This module ensures that: rows whose
value is not a public value of a key belong to no group of a block with this key, so the blocks without the key exclude them, too.
Conditions only remove rows, so nothing else changes: stability, bounds and noise are those of ordinary blocks.

The budget of a workload's tiles is what they would have had separately, in equal parts; it is divided unequally among them
(`marginals`). Each tile's noise is calibrated to its share and priced from its finished law, so the charge is the sum of
prices as without a workload, and the second road checks it. Everything after that is post-processing of released numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.functions.key_columns import within_domains
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import BoundedBlock, Expr, Filter, Key, Relation, Term, TermKind, literal
from dpsql.policy import Policy
from dpsql.pricing.marginals import Floats, Marginals, Objective, objective_of, shares
from dpsql.privacy.mechanisms.contract import Noise, TermNoise
from dpsql.privacy.mechanisms.registry import can_be_weighted
from dpsql.privacy.mechanisms.weighted_sums import Cells, WeightedSum

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
    """Return whether sums over groups add up to the sum over their union. A clipped sum does not: its clip depends on all groups
    of a block."""
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
    """Return the law of the error of each term of a tile after least squares, by block and term. `noises`: the planned noises of
    each block."""
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
