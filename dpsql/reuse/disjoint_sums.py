"""Atoms: disjoint sums of stored cells, of which a derived answer is made.

The noise of two atoms is independent, because no cell is in both. A derived block hands its atoms to the public
remainder as its terms, with the law of their summed noise, and its measures as formulas over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import reduce
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.noise.group_layout import combinations_table
from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.formulas import Formula, NoisyValue, Number, substituted
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.mechanisms.registry import summed
from dpsql.release.remainder import ReleasedBlock
from dpsql.reuse.record import StoredTerm

MOST_ATOMS = 64
_MOST_CHOICES = 16
_MOST_WHOLE = (1 << 63) - 1024

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
Part = tuple[Fraction, StoredTerm, "frozenset[str]"]
"""Weight, stored term, and the fingerprints of the conditions that choose its cells."""


class Impossible(Exception):
    """The stored release does not hold what is asked for."""


def grid(priced: PricedBlock) -> pa.Table:
    """The groups of public keys that the block has, first key slowest."""
    return combinations_table(priced.noise.keys, priced.noise.listed)


def disjoint(
    wanted: Mapping[str, list[Part]], cells_of: Callable[[frozenset[str]], Mask]
) -> Iterator[tuple[StoredTerm, Mask, list[tuple[str, Fraction]]]]:
    """Each stored term cut into sets of cells that no two share, and the asked terms that each set is part of."""
    uses: dict[str, tuple[StoredTerm, list[tuple[str, Fraction, frozenset[str]]]]] = {}
    for name, parts in wanted.items():
        for weight, stored, chosen in parts:
            uses.setdefault(stored.name, (stored, []))[1].append((name, weight, chosen))
    for stored, users in uses.values():
        choices = list(dict.fromkeys(chosen for _, _, chosen in users))
        if len(choices) > _MOST_CHOICES:
            raise Impossible
        pattern = sum(cells_of(chosen).astype(np.int64) << at for at, chosen in enumerate(choices))
        for bits in np.unique(pattern):
            used = [(name, weight) for name, weight, chosen in users if bits >> choices.index(chosen) & 1]
            if used:
                yield stored, pattern == bits, used


class Atoms:
    """The block that is being made: atoms as its terms, and each asked term as a weighted sum of them."""

    def __init__(self, priced: PricedBlock, keys: pa.Table) -> None:
        self.one = priced
        self.keys = keys
        self.rows = keys.num_rows if priced.block.keys else 1
        self.terms: list[NoisyTerm] = []
        self.sums: dict[str, list[tuple[Fraction, NoisyTerm]]] = {term.name: [] for term in priced.block.terms}

    def add(
        self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions, used: list[tuple[str, Fraction]]
    ) -> None:
        """One atom: `values` of cells, each in the answer's `group`, and the asked terms with their weights.

        Groups that conditions on their own keys leave empty are 0; they get error bars like the others.
        """
        sizes = np.unique(np.bincount(group, minlength=self.rows))
        sizes = sizes[sizes > 0]
        if len(sizes) != 1 or len(self.terms) >= MOST_ATOMS:
            raise Impossible
        noise = summed(stored.noise, int(sizes[0]), stored.whole)
        if noise is None:
            raise Impossible
        wide = stored.whole and float(np.abs(values.astype(np.float64)).max()) * int(sizes[0]) >= _MOST_WHOLE
        total = np.zeros(self.rows, dtype=np.float64 if wide else values.dtype)
        np.add.at(total, group, values)
        if wide:
            total = np.clip(total, -_MOST_WHOLE, _MOST_WHOLE).astype(np.int64)
        unit = 2.0 ** (noise.shift - stored.grid)
        atom = NoisyTerm(f"a{len(self.terms)}", total, unit, noise, stored.grid, stored.whole)
        self.terms.append(atom)
        for name, weight in used:
            self.sums[name].append((weight, atom))

    def released(self, confidence: float) -> tuple[ReleasedBlock, dict[str, tuple[float, float]]]:
        """The block over its atoms, and the errors of the asked terms (see `Derived`)."""
        if not all(self.sums.values()):
            raise Impossible
        sums = {name: _weighted_sum(parts) for name, parts in self.sums.items()}
        formulas = tuple((name, substituted(formula, sums), type_) for name, formula, type_ in self.one.block.formulas)
        block = ReleasedBlock(
            self.one.block.name, self.keys, tuple(self.terms), formulas, self.rows, self.one.block.groups
        )
        return block, {name: _error(parts, confidence) for name, parts in self.sums.items()}


def _weighted_sum(parts: list[tuple[Fraction, NoisyTerm]]) -> Formula:
    """An asked term over its atoms, added up from the left."""
    summands: list[Formula] = [
        NoisyValue(atom.name) if weight == 1 else Number(float(weight)) * NoisyValue(atom.name)
        for weight, atom in parts
    ]
    return reduce(lambda total, summand: total + summand, summands)


def _error(parts: list[tuple[Fraction, NoisyTerm]], confidence: float) -> tuple[float, float]:
    deviation = sqrt(sum(float(weight) ** 2 * atom.standard_deviation() ** 2 for weight, atom in parts))
    if len(parts) == 1:
        weight, atom = parts[0]
        return abs(float(weight)) * atom.half_width(confidence), deviation
    return NormalDist().inv_cdf((1 + confidence) / 2) * deviation, deviation
