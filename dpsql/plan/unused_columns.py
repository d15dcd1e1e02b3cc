"""Relations without the columns that nothing above them reads.

For an engine (`narrowed`) the rows and their multiplicity do not change: a column is left out of a SELECT over the same rows. All
columns stay wherever rows are distinguished by all of them: below DISTINCT and UNION, and below window functions, whose ties the
content breaks. The bounded view is always computed from all columns of the policy (`engine.emit.bounded_view`).

For the name of a release (`identity`, `family`) what breaks ties is left out as well. Which rows of a unit stay under max_rows,
and which of equal rows comes first in a window, is a choice by a secret hash of all columns. With a new column a new measurement
would choose other rows, but the stored one answers the same question: any choice is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from dpsql.plan.plan import (
    OTHER,
    BoundedBlock,
    Call,
    Column,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    ReleasedRows,
    ReleasedValue,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    columns_read,
    names_read,
)
from dpsql.plan.stability import parts
from dpsql.policy import Policy
from dpsql.policy.versions import mark

Needed = frozenset[str] | None
"""Names of the columns that the relations above read; None: all columns."""


def narrowed(block: BoundedBlock) -> BoundedBlock:
    """Return the block over relations that have only the columns that it reads."""
    read: list[Expr | None] = [key.expression for key in block.keys]
    for term in block.terms:
        read += [term.value, term.filter]
    return replace(block, source=Narrowing(ties=True).narrow(block.source, _names(read)))


def identity(block: BoundedBlock) -> Relation:
    """Return the source of a block with only the columns on which its numbers depend, for the name of its release."""
    read = ([key.expression for key in block.keys], block.terms, block.measurements)
    return Narrowing(least=0).narrow(block.source, frozenset(column.name for part in read for column in _columns(part)))


def family(relation: Relation) -> Relation:
    """Return a relation with only the columns that itself reads, for a name that blocks over it share, whatever they read."""
    return Narrowing(least=0, projected=True).narrow(relation, frozenset())


def scans(relation: Relation) -> Iterator[Scan]:
    """Yield the base tables of a relation, repeated ones as well."""
    if isinstance(relation, Scan):
        yield relation
    for part in parts(relation):
        yield from scans(part)


def marks_read(source: Relation, policy: Policy) -> dict[str, str]:
    """Return the marks of the tables and columns that a relation reads (`policy.versions`), by name."""
    names = {name for scan in scans(source) for name in (scan.table, *(f"{scan.table}.{c.name}" for c in scan.columns))}
    return {name: str(mark(policy, name)) for name in sorted(names)}


@dataclass(frozen=True)
class Narrowing:
    """One way to leave out columns. `least`: a relation keeps at least so many, because SQL has no rows without columns; `ties`:
    the content of rows breaks ties in windows; `projected`: all items of a projection stay, because only they say what its names
    mean."""

    least: int = 1
    ties: bool = False
    projected: bool = False

    def narrow(self, node: Relation, needed: Needed) -> Relation:
        """Return a relation with the needed columns."""
        if isinstance(node, Scan):
            columns = node.columns if needed is None else tuple(entry for entry in node.columns if entry.name in needed)
            return Scan(node.table, columns or node.columns[: self.least])
        if isinstance(node, Filter):
            return Filter(self.narrow(node.source, _with(needed, [node.predicate])), node.predicate)
        if isinstance(node, Project):
            everything = needed is None or self.projected
            items = node.columns if everything else tuple(item for item in node.columns if item[0] in (needed or ()))
            items = items or node.columns[: self.least]
            return Project(self.narrow(node.source, _names(expression for _, expression in items)), items)
        if isinstance(node, Join):
            below = _with(needed, [part for pair in node.keys for part in pair])
            left, right = (
                self.narrow(side, _of_side(below, prefix)) for prefix, side in (("a.", node.left), ("b.", node.right))
            )
            return replace(node, left=left, right=right)
        if isinstance(node, SemiJoin):
            return self._semi_join(node, needed)
        if isinstance(node, UnitAggregate):
            read: list[Expr | None] = [key for _, key in node.keys]
            for column in node.columns:
                read += [column[2], column[3]]
            return replace(node, source=self.narrow(node.source, _names(read)))
        if isinstance(node, Union_):
            return Union_(tuple(self.narrow(source, None) for source in node.sources))
        if isinstance(node, UnitWindow) and not self.ties and needed is not None:
            windows = frozenset(column.name for column in _columns(node.windows))
            return replace(node, source=self.narrow(node.source, needed | windows))
        return node if isinstance(node, ReleasedRows) else replace(node, source=self.narrow(node.source, None))

    def _semi_join(self, node: SemiJoin, needed: Needed) -> Relation:
        """Return the semi-join over pruned sides. Its condition names columns of both sides, with OTHER before those of the
        right."""
        both = _names([node.condition])
        of_right = frozenset(name.removeprefix(OTHER) for name in both if name.startswith(OTHER))
        left = _with(needed, [key for key, _ in node.keys])
        left = None if left is None else left | both
        right = _names(key for _, key in node.keys) | of_right
        return replace(node, left=self.narrow(node.left, left), right=self.narrow(node.right, right))


def _columns(part: Any) -> Iterator[Column]:
    """Yield all columns in a part of a plan, whatever its class is."""
    if isinstance(part, (Column, Call, Literal, ReleasedValue)):
        yield from columns_read(part)
    elif isinstance(part, (tuple, list, frozenset)):
        for item in part:
            yield from _columns(item)
    elif is_dataclass(part):
        for entry in fields(part):
            yield from _columns(getattr(part, entry.name))


def _of_side(needed: Needed, prefix: str) -> Needed:
    return None if needed is None else frozenset(name[2:] for name in needed if name.startswith(prefix))


def _with(needed: Needed, expressions: Iterable[Expr | None]) -> Needed:
    return None if needed is None else needed | _names(expressions)


def _names(expressions: Iterable[Expr | None]) -> frozenset[str]:
    return frozenset(name for expression in expressions if expression is not None for name in names_read(expression))
