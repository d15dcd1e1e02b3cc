"""Public keys that the query's own conditions leave: a combination is removed if no row of its group can satisfy them.

This is decided from the text and the rows of public tables, for each branch (`key_branches`): a combination remains if at
least one branch may have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dpsql.functions.key_branches import NO_ROWS, KeyBranch, KeyCombinations, PublicRows, Values
from dpsql.plan.combinations import Numbers
from dpsql.plan.origins import UnknownOrigin, branches
from dpsql.plan.plan import Expr, Relation

MOST_LISTED = 250_000
"""Largest number of combinations that are listed. If more remain, every combination of the remaining values is a group."""


@dataclass(frozen=True)
class RemainingKeys:
    """The remaining values of each key, in order. `numbers`: the remaining cells of the grid of these values (None: all)."""

    values: tuple[Values, ...]
    numbers: Numbers | None = None


def remaining(
    source: Relation, keys: Sequence[tuple[Expr, Values]], more: Sequence[Expr], public: PublicRows = NO_ROWS
) -> RemainingKeys:
    """Return the combinations of keys (expression over `source`, values) that a row of `source` may have if it also satisfies
    the conditions `more` on keys."""
    expressions, values = [key for key, _ in keys], [listed for _, listed in keys]
    try:
        parts_by_branch = [
            KeyBranch.from_branch(branch, expressions, values, map(branch.written, more), public).parts()
            for branch in branches(source)
        ]
    except UnknownOrigin:
        return RemainingKeys(tuple(values))
    return _union(values, [parts for parts in parts_by_branch if all(len(part.cells) for part in parts)])


def leaves_out(source: Relation, key: Expr, values: Values, public: PublicRows = NO_ROWS) -> bool:
    """Return whether a row of `source` may have a key outside `values`; False if the policy promises that there is no such row,
    True if that is unknown. `values`: all values of the key that follow from the policy's lists and bounds."""
    try:
        key_branches = [KeyBranch.from_branch(branch, [key], [values], (), public) for branch in branches(source)]
    except UnknownOrigin:
        return True
    return any(key_branch.leaves_out() for key_branch in key_branches)


def _union(values: list[Values], branch_parts: list[list[KeyCombinations]]) -> RemainingKeys:
    """Return the union of the branches, each of which has every combination of its parts' combinations."""
    positions_by_key = [
        {key: part.cells[:, index] for part in parts for index, key in enumerate(part.keys)} for parts in branch_parts
    ]
    remaining_positions = [
        np.unique(
            np.concatenate([np.empty(0, np.int64), *(cells_of_branch[index] for cells_of_branch in positions_by_key)])
        )
        for index in range(len(values))
    ]
    left = tuple(
        listed if len(positions) == len(listed) else tuple(listed[position] for position in positions.tolist())
        for listed, positions in zip(values, remaining_positions, strict=True)
    )
    size = prod(map(len, remaining_positions))
    counts = [prod(len(part.cells) for part in parts) for parts in branch_parts]
    if any(count == size for count in counts) or sum(counts) > MOST_LISTED or size >= 1 << 62 or not branch_parts:
        return RemainingKeys(left)
    every = np.unique(np.concatenate([_numbers(parts, remaining_positions) for parts in branch_parts]))
    return RemainingKeys(left) if len(every) == size else RemainingKeys(left, every)


def _numbers(parts: list[KeyCombinations], remaining_positions: list[Numbers]) -> Numbers:
    """Return the numbers of one branch's cells in the grid of remaining values."""
    strides = [prod(map(len, remaining_positions[index + 1 :])) for index in range(len(remaining_positions))]
    numbers = np.zeros(1, dtype=np.int64)
    for part in parts:
        part_numbers = np.zeros(len(part.cells), dtype=np.int64)
        for index, key in enumerate(part.keys):
            part_numbers += np.searchsorted(remaining_positions[key], part.cells[:, index]) * strides[key]
        numbers = (numbers[:, None] + part_numbers).ravel()
    return numbers
