"""Public keys that the question's own conditions leave: a combination goes when no row of its group can pass them.

This is decided from the text and the rows of public tables, branch by branch (`key_branches`): a combination remains when one
of the branches may have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dpsql.functions.key_branches import NO_ROWS, KeyBranch, Part, PublicRows, Values
from dpsql.plan.combinations import Numbers
from dpsql.plan.origins import Unknown, branches
from dpsql.plan.plan import Expr, Relation

MOST_LISTED = 250_000
"""Combinations that are listed one by one. Where more remain, every combination of the values that remain is a group."""


@dataclass(frozen=True)
class Remaining:
    """Of each key the values that remain, in the order they had; `numbers`: of the grid of these the cells that do, where
    they are not all."""

    values: tuple[Values, ...]
    numbers: Numbers | None = None


def remaining(
    source: Relation, keys: Sequence[tuple[Expr, Values]], more: Sequence[Expr], public: PublicRows = NO_ROWS
) -> Remaining:
    """Of keys (expression over `source`, values) the combinations that some row of `source` may have which also fulfils the
    conditions `more` on keys."""
    expressions, values = [key for key, _ in keys], [listed for _, listed in keys]
    try:
        found = [
            KeyBranch.of(branch, expressions, values, map(branch.written, more), public).parts()
            for branch in branches(source)
        ]
    except Unknown:
        return Remaining(tuple(values))
    return _union(values, [parts for parts in found if all(len(part.cells) for part in parts)])


def leaves_out(source: Relation, key: Expr, values: Values, public: PublicRows = NO_ROWS) -> bool:
    """Whether some row of `source` may have a key that is none of `values`, of which the policy does not promise that there is
    no such row. True where that is not known. `values`: all that the policy's lists and bounds make of the key."""
    try:
        found = [KeyBranch.of(branch, [key], [values], (), public) for branch in branches(source)]
    except Unknown:
        return True
    return any(one.leaves_out() for one in found)


def _union(values: list[Values], found: list[list[Part]]) -> Remaining:
    """The union of branches, each of which has every combination of what its parts have."""
    own = [{key: part.cells[:, index] for part in parts for index, key in enumerate(part.keys)} for parts in found]
    kept = [
        np.unique(np.concatenate([np.empty(0, np.int64), *(one[index] for one in own)])) for index in range(len(values))
    ]
    left = tuple(
        listed if len(positions) == len(listed) else tuple(listed[at] for at in positions.tolist())
        for listed, positions in zip(values, kept, strict=True)
    )
    size = prod(map(len, kept))
    counts = [prod(len(part.cells) for part in parts) for parts in found]
    if any(count == size for count in counts) or sum(counts) > MOST_LISTED or size >= 1 << 62 or not found:
        return Remaining(left)
    every = np.unique(np.concatenate([_numbers(parts, kept) for parts in found]))
    return Remaining(left) if len(every) == size else Remaining(left, every)


def _numbers(parts: list[Part], kept: list[Numbers]) -> Numbers:
    """The cells of one branch in the grid of the values that are kept."""
    strides = [prod(map(len, kept[index + 1 :])) for index in range(len(kept))]
    found = np.zeros(1, dtype=np.int64)
    for part in parts:
        own = np.zeros(len(part.cells), dtype=np.int64)
        for index, key in enumerate(part.keys):
            own += np.searchsorted(kept[key], part.cells[:, index]) * strides[key]
        found = (found[:, None] + own).ravel()
    return found
