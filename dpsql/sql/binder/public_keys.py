"""Public keys of a block: the values that conditions leave, the rows that lists leave out, and keys treated as private ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.functions.key_branches import PublicRows
from dpsql.functions.key_narrowing import RemainingKeys, leaves_out, remaining
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.combinations import Combinations, combinations, group_count
from dpsql.plan.plan import Expr, Key, Relation
from dpsql.policy import Policy


@dataclass(frozen=True)
class BlockKeys:
    """The keys of one block, and the combinations of their values that are groups (None: all)."""

    keys: tuple[Key, ...]
    combinations: Combinations | None = None


def narrowed(source: Relation, keys: Sequence[Key], conditions: Sequence[Expr], policy: Policy) -> BlockKeys:
    """Return the keys with only the values that satisfy the relation's conditions and `conditions` on the shown groups' keys."""
    public = [index for index, key in enumerate(keys) if key.values is not None]
    if not public:
        return BlockKeys(tuple(keys))
    rows = public_rows(policy)
    listed = [(keys[position].expression, keys[position].values or ()) for position in public]
    within = remaining(source, listed, (), rows)
    left = remaining(source, listed, conditions, rows) if conditions else within
    narrowed_keys = list(keys)
    for position, inside, values in zip(public, within.values, left.values, strict=True):
        if values != keys[position].values:
            narrowed_keys[position] = replace(
                keys[position], values=values, left=fingerprint(values), whole=values == inside
            )
    if left.numbers is None or len(public) < len(keys):
        return BlockKeys(tuple(narrowed_keys))
    return BlockKeys(tuple(narrowed_keys), combinations(left.numbers, _count(left) == _count(within)))


def _count(narrowed: RemainingKeys) -> int:
    return group_count(narrowed.values, None) if narrowed.numbers is None else len(narrowed.numbers)


def noted(
    source: Relation, keys: Sequence[Key], named: Mapping[str, tuple[str, ...]], policy: Policy
) -> dict[str, tuple[str, ...]]:
    """Return, for each key whose groups may not cover all rows, the columns it is computed from. `keys`: with all values that
    the policy's lists and bounds allow; `named`: the columns of each key."""
    rows = public_rows(policy)
    public = [key for key in keys if key.values is not None]
    return {key.name: named[key.name] for key in public if leaves_out(source, key.expression, key.values or (), rows)}


def shortened(block_keys: BlockKeys, most: int, selecting: bool) -> BlockKeys:
    """Return the keys. If there are more than `most` groups and partition selection is available (`selecting`), the keys with the
    most values are treated as private keys until the rest has at most `most` combinations."""
    keys = list(block_keys.keys)
    if not selecting or group_count([key.values for key in keys], block_keys.combinations) <= most:
        return block_keys
    while group_count([key.values or None for key in keys], None) > most:
        widest = max(keys, key=lambda key: len(key.values or ()))
        keys[keys.index(widest)] = replace(widest, values=None)
    return BlockKeys(tuple(keys))


def public_rows(policy: Policy) -> PublicRows:
    """Return the rows of the public tables that are small enough to be held in memory."""
    return {name: table.rows for name, table in policy.tables.items() if table.rows is not None}
