"""Public keys of a block: the values that conditions leave, the rows that lists leave out, and keys treated as private ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.functions.key_narrowing import PublicRows, RemainingKeys, leaves_out, remaining
from dpsql.functions.public_domains import domain_of
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.origins import UnknownOrigin, branches
from dpsql.plan.plan import Block, Combinations, Expr, Key, Relation, columns_read, combinations, group_count
from dpsql.policy import Policy
from dpsql.sql.binder.context import BindingContext


@dataclass(frozen=True)
class BlockKeys:
    """The keys of one block, and the combinations of their values that are groups (None: all). `within`: the keys with all values
    that rows of the block may have, also those that HAVING leaves out."""

    keys: tuple[Key, ...]
    combinations: Combinations | None = None
    within: tuple[Key, ...] = ()


def narrowed(source: Relation, keys: Sequence[Key], conditions: Sequence[Expr], context: BindingContext) -> BlockKeys:
    """Return the keys with only the values that rows satisfying the relation's conditions, and `conditions` on the shown groups'
    keys, can have."""
    if not keys:
        return BlockKeys(())
    rows, listed = public_rows(context.policy), [(key.expression, key.values) for key in keys]
    within = remaining(source, listed, (), rows, context.public_values)
    left = remaining(source, listed, conditions, rows, context.public_values) if conditions else within
    narrowed_keys, whole = [], []
    for key, inside, values in zip(keys, within.values, left.values, strict=True):
        whole.append(replace(key, values=inside))
        new = values is not None and values != key.values
        mark = fingerprint(values) if new else key.left
        narrowed_keys.append(replace(key, values=values, left=mark, whole=values == inside) if new else key)
    if left.numbers is None or any(key.values is None for key in narrowed_keys):
        return BlockKeys(tuple(narrowed_keys), None, tuple(whole))
    return BlockKeys(tuple(narrowed_keys), combinations(left.numbers, _count(left) == _count(within)), tuple(whole))


def as_read(block: Block) -> Block:
    """Return a block whose keys are marked as narrowed only if they have other values than their own expression: below a name of
    a subquery that was no domain, in the query's own words it may be one."""
    keys = tuple(
        replace(key, left="") if key.left and key.left == fingerprint(domain_of(key.expression)) else key
        for key in block.keys
    )
    return block if keys == block.keys else replace(block, keys=keys)


def _count(narrowed: RemainingKeys) -> int:
    return group_count(narrowed.values, None) if narrowed.numbers is None else len(narrowed.numbers)


def noted(
    source: Relation, keys: Sequence[Key], named: Mapping[str, tuple[str, ...]], context: BindingContext
) -> dict[str, tuple[str, ...]]:
    """Return, for each key whose groups may not cover all rows, the columns it is computed from. `keys`: with all values that
    rows may have by the policy; `named`: the columns of each key."""
    rows = public_rows(context.policy)
    public = [key for key in keys if key.values is not None]
    return {
        key.name: _base_columns(source, key.expression, context.policy) or named[key.name]
        for key in public
        if leaves_out(source, key.expression, rows, context.public_values)
    }


def _base_columns(source: Relation, key: Expr, policy: Policy) -> tuple[str, ...]:
    """Return the names in the policy of the columns a key is computed from; none unless all of them are known."""
    try:
        origins = [(branch.written(key), dict(branch.tables)) for branch in branches(source)]
    except UnknownOrigin:
        return ()
    names = {}
    for column, tables in ((column, tables) for written, tables in origins for column in columns_read(written)):
        path, dot, name = column.name.rpartition(".")
        table = tables.get(path + dot)
        names[name] = table is not None and name in policy.tables[table].columns
    return tuple(names) if all(names.values()) else ()


def shortened(block_keys: BlockKeys, most: int, selecting: bool) -> BlockKeys:
    """Return the keys. If there are more than `most` groups and partition selection is available (`selecting`), the keys with the
    most values are treated as private keys until the rest has at most `most` combinations."""
    keys = list(block_keys.keys)
    if not selecting or group_count([key.values for key in keys], block_keys.combinations) <= most:
        return block_keys
    while group_count([key.values or None for key in keys], None) > most:
        widest = max(keys, key=lambda key: len(key.values or ()))
        keys[keys.index(widest)] = replace(widest, values=None)
    return replace(block_keys, keys=tuple(keys), combinations=None)


def public_rows(policy: Policy) -> PublicRows:
    """Return the rows of the public tables that are small enough to be held in memory."""
    return {name: table.rows for name, table in policy.tables.items() if table.rows is not None}
