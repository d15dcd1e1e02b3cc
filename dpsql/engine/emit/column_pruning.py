"""Removal of unused columns, so that the engine need not parse, bind and discard the columns of a wide table.

The rows and their multiplicity do not change: a column is left out of a SELECT over the same rows. All columns stay
wherever rows are distinguished by all of them: below DISTINCT and UNION, and below window functions, whose ties
the content breaks. The bounded view is always computed from all columns of the policy (`bounded_view`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpsql.plan.plan import (
    OTHER,
    BoundedBlock,
    Expr,
    Filter,
    Join,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    names_read,
)

Needed = frozenset[str] | None
"""Names of the columns that the relations above read; None: all columns."""


def narrowed(block: BoundedBlock) -> BoundedBlock:
    """Return the block over relations that have only the columns that it reads."""
    read: list[Expr | None] = [key.expression for key in block.keys]
    for term in block.terms:
        read += [term.value, term.filter]
    return replace(block, source=_narrowed(block.source, _names(read)))


def _narrowed(node: Relation, needed: Needed) -> Relation:
    if isinstance(node, Scan):
        columns = node.columns if needed is None else tuple(column for column in node.columns if column.name in needed)
        return Scan(node.table, columns or node.columns[:1])
    if isinstance(node, Filter):
        return Filter(_narrowed(node.source, _with(needed, [node.predicate])), node.predicate)
    if isinstance(node, Project):
        items = node.columns if needed is None else tuple(item for item in node.columns if item[0] in needed)
        items = items or node.columns[:1]
        return Project(_narrowed(node.source, _names(expression for _, expression in items)), items)
    if isinstance(node, Join):
        below = _with(needed, [part for pair in node.keys for part in pair])
        left, right = (
            _narrowed(side, _of_side(below, prefix)) for prefix, side in (("a.", node.left), ("b.", node.right))
        )
        return replace(node, left=left, right=right)
    if isinstance(node, SemiJoin):
        return _semi_join(node, needed)
    if isinstance(node, UnitAggregate):
        read: list[Expr | None] = [key for _, key in node.keys]
        for column in node.columns:
            read += [column[2], column[3]]
        return replace(node, source=_narrowed(node.source, _names(read)))
    if isinstance(node, Union_):
        return Union_(tuple(_narrowed(source, None) for source in node.sources))
    return node if isinstance(node, ReleasedRows) else replace(node, source=_narrowed(node.source, None))


def _semi_join(node: SemiJoin, needed: Needed) -> Relation:
    """Return the semi-join over pruned sides. Its condition names columns of both sides, with OTHER before those of the right."""
    both = _names([node.condition])
    of_right = frozenset(name.removeprefix(OTHER) for name in both if name.startswith(OTHER))
    left = _with(needed, [key for key, _ in node.keys])
    left = None if left is None else left | both
    right = _names(key for _, key in node.keys) | of_right
    return replace(node, left=_narrowed(node.left, left), right=_narrowed(node.right, right))


def _of_side(needed: Needed, prefix: str) -> Needed:
    return None if needed is None else frozenset(name[2:] for name in needed if name.startswith(prefix))


def _with(needed: Needed, expressions: Iterable[Expr | None]) -> Needed:
    return None if needed is None else needed | _names(expressions)


def _names(expressions: Iterable[Expr | None]) -> frozenset[str]:
    return frozenset(name for expression in expressions if expression is not None for name in names_read(expression))
