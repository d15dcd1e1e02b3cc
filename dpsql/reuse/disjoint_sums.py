"""Disjoint sums of stored cells, from which a derived answer is computed.

The noise of two disjoint sums is independent: no cell is in both, and cells whose noise is correlated enter only one sum for
each group (`add_vector`). A derived block passes the sums to the public remainder as its terms, with the law of their summed
noise, and its measures as formulas over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import reduce
from math import hypot
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.noise.group_layout import combinations_table
from dpsql.noise.perturb import ChosenNumber, NoisyTerm
from dpsql.plan.formulas import Formula, NoisyValue, Number, substituted
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.mechanisms.registry import series_law, summed
from dpsql.release.reconciled import MOST_WEIGHTS, PooledTerm, pooled
from dpsql.release.remainder import ReleasedBlock
from dpsql.reuse.record import StoredTerm

MOST_SUMS = 64
_MOST_CHOICES = 16
_MOST_WHOLE = (1 << 63) - 1024

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
Part = tuple[Fraction, StoredTerm, "frozenset[str]"]
"""Weight, stored term, and the fingerprints of the conditions that choose its cells."""


class Impossible(Exception):
    """The stored release does not contain the answer."""


def grid(priced: PricedBlock) -> pa.Table:
    """Return the block's groups of public keys; the first key varies slowest."""
    return combinations_table(priced.noise.keys, priced.noise.listed)


def disjoint(
    parts_by_term: Mapping[str, list[Part]], cells_of: Callable[[frozenset[str]], Mask]
) -> Iterator[tuple[StoredTerm, Mask, list[tuple[str, Fraction]]]]:
    """Partition the cells of each stored term. Yield it with each set of cells and the terms (with weights) that use the set."""
    uses: dict[str, tuple[StoredTerm, list[tuple[str, Fraction, frozenset[str]]]]] = {}
    for name, parts in parts_by_term.items():
        for weight, stored, chosen in parts:
            uses.setdefault(stored.name, (stored, []))[1].append((name, weight, chosen))
    for stored, users in uses.values():
        choices = list(dict.fromkeys(chosen for _, _, chosen in users))
        if len(choices) > _MOST_CHOICES:
            raise Impossible
        pattern = sum(cells_of(chosen).astype(np.int64) << bit for bit, chosen in enumerate(choices))
        for bits in np.unique(pattern):
            used = [(name, weight) for name, weight, chosen in users if bits >> choices.index(chosen) & 1]
            if used:
                yield stored, pattern == bits, used


class DisjointSums:
    """The derived block under construction: its terms are disjoint sums, and each term of the query is a weighted sum of them.
    `numbers`: stored numbers that a mechanism chose, under the names by which the query reads them."""

    def __init__(self, priced: PricedBlock, keys: pa.Table) -> None:
        self.priced = priced
        self.keys = keys
        self.rows = keys.num_rows if priced.block.keys else 1
        self.terms: list[NoisyTerm | PooledTerm] = []
        self.vectors: set[str] = set()
        """Names of the stored terms with correlated noise that already have sums."""
        self.numbers: list[ChosenNumber] = []
        self.sums: dict[str, list[tuple[Fraction, NoisyTerm | PooledTerm]]] = {
            term.name: [] for term in priced.block.terms
        }

    def add(
        self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions, used: list[tuple[str, Fraction]]
    ) -> None:
        """Add the sum of `values` (one for each cell) by `group` of the answer. `used`: the terms that use it, with weights.

        Groups left empty by conditions on their own keys are 0 and get error bars like the others. Raises Impossible if
        groups have different numbers of cells, because their noise then has different laws.
        """
        sizes = np.unique(np.bincount(group, minlength=self.rows))
        sizes = sizes[sizes > 0]
        if len(sizes) != 1 or len(self.terms) >= MOST_SUMS:
            raise Impossible
        noise = summed(stored.noise, int(sizes[0]), stored.whole)
        if noise is None:
            raise Impossible
        unit = 2.0 ** (noise.shift - stored.grid)
        total = self._totals(stored, values, group)
        self._append(NoisyTerm(f"a{len(self.terms)}", total, unit, noise, stored.grid, stored.whole), used)

    def add_vector(
        self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions, used: list[tuple[str, Fraction]]
    ) -> None:
        """Add the sums of a vector whose cells have correlated noise: `values` and `group` of all its cells, group -1 for cells
        that are not summed.

        Groups may have different numbers of cells. Raises Impossible for other laws, and if the same vector already has a
        sum: the noise of both would not be independent.
        """
        law, cells = series_law(stored.noise), np.flatnonzero(group >= 0)
        if law is None or stored.name in self.vectors or len(self.terms) >= MOST_SUMS:
            raise Impossible
        if not cells.size or self.rows * group.size > MOST_WEIGHTS:
            raise Impossible
        self.vectors.add(stored.name)
        name, total = f"a{len(self.terms)}", self._totals(stored, values[cells], group[cells])
        if np.array_equal(group, np.arange(self.rows)):
            self._append(NoisyTerm(name, total, 2.0 ** (law.shift - stored.grid), law, stored.grid, stored.whole), used)
        else:
            self._append(pooled(name, total, group, law, stored.grid, stored.whole), used)

    def _append(self, summed_cells: NoisyTerm | PooledTerm, used: list[tuple[str, Fraction]]) -> None:
        self.terms.append(summed_cells)
        for name, weight in used:
            self.sums[name].append((weight, summed_cells))

    def _totals(self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions) -> npt.NDArray[Any]:
        """Return the sums of cells by group; whole sums are clamped to 64 bits."""
        most = int(np.bincount(group).max())
        wide = stored.whole and float(np.abs(values.astype(np.float64)).max()) * most >= _MOST_WHOLE
        total = np.zeros(self.rows, dtype=np.float64 if wide else values.dtype)
        np.add.at(total, group, values)
        return np.clip(total, -_MOST_WHOLE, _MOST_WHOLE).astype(np.int64) if wide else total

    def released(self, confidence: float) -> tuple[ReleasedBlock, dict[str, tuple[float, float]]]:
        """Return the block over its disjoint sums, and the errors of the terms of the query (see `Derived.errors`)."""
        if not all(self.sums.values()):
            raise Impossible
        sums = {name: _weighted_sum(parts) for name, parts in self.sums.items()}
        read = sums | {number.name: NoisyValue(number.name) for number in self.numbers}
        formulas = tuple(
            (name, substituted(formula, read), type_) for name, formula, type_ in self.priced.block.formulas
        )
        terms: tuple[NoisyTerm | PooledTerm | ChosenNumber, ...] = (*self.terms, *self.numbers)
        block = ReleasedBlock(self.priced.block.name, self.keys, terms, formulas, self.rows, self.priced.block.groups)
        return block, {name: _error(parts, confidence) for name, parts in self.sums.items()}


def _weighted_sum(parts: list[tuple[Fraction, NoisyTerm | PooledTerm]]) -> Formula:
    """Return the formula of a term as a sum over disjoint sums, evaluated from the left."""
    summands: list[Formula] = [
        NoisyValue(summand.name) if weight == 1 else Number(float(weight)) * NoisyValue(summand.name)
        for weight, summand in parts
    ]
    return reduce(lambda total, part: total + part, summands)


def _error(parts: list[tuple[Fraction, NoisyTerm | PooledTerm]], confidence: float) -> tuple[float, float]:
    deviation = hypot(*(float(weight) * summand.standard_deviation() for weight, summand in parts))
    if len(parts) == 1:
        weight, summand = parts[0]
        return abs(float(weight)) * summand.half_width(confidence), deviation
    return NormalDist().inv_cdf((1 + confidence) / 2) * deviation, deviation
