"""Combinations of public keys, where an answer does not have all of them.

The *grid* of public keys holds every combination of their values, the first key slowest. Conditions on several keys at once, keys
that depend on each other, and rows of public tables leave only a part of it; the rest belongs to no group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Combinations:
    """The groups of an answer as numbers of grid cells, ascending. `mark` is their fingerprint.

    `whole`: no row that the block reads has a missing combination; otherwise HAVING excluded groups that have rows.
    """

    mark: str
    whole: bool
    numbers: Numbers = field(compare=False, repr=False)

    def positions(self, sizes: Sequence[int]) -> list[Numbers]:
        """Return for each key the positions of the groups' values among the key's values; `sizes`: the number of values of each
        key."""
        return positions(self.numbers, sizes)


def positions(numbers: Numbers, sizes: Sequence[int]) -> list[Numbers]:
    """Return the positions of cells among the values of each key, one array per key."""
    by_key, rest = [], numbers
    for size in reversed(sizes):
        by_key.append(rest % size)
        rest = rest // size
    return by_key[::-1]


def combinations(numbers: Numbers, whole: bool) -> Combinations:
    """Return the combinations with these cell numbers, which are ascending and unique."""
    return Combinations(hashlib.sha256(np.ascontiguousarray(numbers, "<i8").tobytes()).hexdigest(), whole, numbers)


def group_count(values: Sequence[Sequence[object] | None], listed: Combinations | None) -> int:
    """Return the number of groups of public keys (1 without keys; a private key counts as one value)."""
    return len(listed.numbers) if listed is not None else prod(1 if value is None else len(value) for value in values)
