"""The public keys of a block: what conditions leave of them, what their lists leave out, and which appear as private keys do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.functions.key_branches import PublicRows
from dpsql.functions.key_narrowing import Remaining, leaves_out, remaining
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.combinations import Combinations, combinations, group_count
from dpsql.plan.plan import Expr, Key, Relation
from dpsql.policy import Policy


@dataclass(frozen=True)
class BlockKeys:
    """The keys of one block, and which of their combinations are groups (None: all)."""

    keys: tuple[Key, ...]
    combinations: Combinations | None = None


def narrowed(source: Relation, keys: Sequence[Key], shown: Sequence[Expr], policy: Policy) -> BlockKeys:
    """The keys that conditions leave; `shown`: conditions on keys without which a group is not shown."""
    public = [index for index, key in enumerate(keys) if key.values is not None]
    if not public:
        return BlockKeys(tuple(keys))
    rows = public_rows(policy)
    asked = [(keys[at].expression, keys[at].values or ()) for at in public]
    within = remaining(source, asked, (), rows)
    left = remaining(source, asked, shown, rows) if shown else within
    found = list(keys)
    for at, inside, values in zip(public, within.values, left.values, strict=True):
        if values != keys[at].values:
            found[at] = replace(keys[at], values=values, left=fingerprint(values), whole=values == inside)
    if left.numbers is None or len(public) < len(keys):
        return BlockKeys(tuple(found))
    return BlockKeys(tuple(found), combinations(left.numbers, _count(left) == _count(within)))


def _count(of: Remaining) -> int:
    return group_count(of.values, None) if of.numbers is None else len(of.numbers)


def noted(
    source: Relation, keys: Sequence[Key], named: Mapping[str, tuple[str, ...]], policy: Policy
) -> dict[str, tuple[str, ...]]:
    """Of keys of which rows may have no group the columns that they are made of. `keys`: with all values that the policy's lists
    and bounds make of them; `named`: the columns of each."""
    rows = public_rows(policy)
    public = [key for key in keys if key.values is not None]
    return {key.name: named[key.name] for key in public if leaves_out(source, key.expression, key.values or (), rows)}


def shortened(known: BlockKeys, most: int, selecting: bool) -> BlockKeys:
    """Where there would be more than `most` groups, the widest keys appear as private keys do, if selection is to be had."""
    keys = list(known.keys)
    if not selecting or group_count([key.values for key in keys], known.combinations) <= most:
        return known
    while group_count([key.values or None for key in keys], None) > most:
        widest = max(keys, key=lambda key: len(key.values or ()))
        keys[keys.index(widest)] = replace(widest, values=None)
    return BlockKeys(tuple(keys))


def public_rows(policy: Policy) -> PublicRows:
    """The rows of public tables that are few enough to be looked at."""
    return {name: table.rows for name, table in policy.tables.items() if table.rows is not None}
