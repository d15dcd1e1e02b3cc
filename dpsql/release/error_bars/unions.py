"""Tracing of UNION ALL of row-wise queries (such as ROLLUP): each row is a group of its branch's block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from dpsql.release.error_bars.rowwise import Traced, trace
from dpsql.release.remainder import ROW, Remainder, column

_BRANCH = 1 << 40
"""Upper bound of row numbers within a branch."""
_PLAIN = {"expressions", "from_", "where"}
_AROUND = {"expressions", "from_", "where", "order", "limit", "offset"}


@dataclass(frozen=True)
class Branches:
    """A remainder that is UNION ALL of row-wise queries over one block each, possibly inside further SELECTs. The last column of
    `tree` encodes branch and group number (`place_in_branch`). `parts`: for each branch, the trace of the remainder with this
    branch in place of the union."""

    tree: exp.Query
    parts: tuple[Traced, ...]


def place_in_branch(place: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the branch numbers and the group numbers within the branches' blocks."""
    return place // _BRANCH, place % _BRANCH


def trace_branches(remainder: Remainder) -> Branches | None:
    """Return the traces of the branches, or None if the remainder is no such UNION ALL."""
    tree = remainder.tree.copy()
    if tree.args.get("with_") is not None:
        return None
    around, union = _union(tree)
    branches = None if union is None else _branches(union)
    if union is None or branches is None or not all(_plain(branch, remainder) for branch in branches):
        return None
    names = [item.alias_or_name for item in branches[0].expressions]
    parts = []
    for branch in branches:
        if len(branch.expressions) != len(names):
            return None
        alone = _in_place(remainder.tree.copy(), branch, names)
        part = trace(replace(remainder, tree=alone, written=""))
        if part is None or part.intervals:
            return None
        parts.append(part)
    for number, branch in enumerate(branches):
        row = exp.Add(this=column(ROW), expression=exp.Literal.number(number * _BRANCH))
        branch.append("expressions", exp.Alias(this=row, alias=exp.to_identifier(ROW, quoted=True)))
    for select in around:
        if not any(isinstance(item, exp.Star) for item in select.expressions):
            select.append("expressions", column(ROW))
    return Branches(tree, tuple(parts))


def _union(tree: exp.Query) -> tuple[list[exp.Select], exp.Union | None]:
    """Return the SELECTs around a UNION ALL, from the outside in, and the union; no SELECTs and None for any other tree."""
    around: list[exp.Select] = []
    node: exp.Expr = tree
    while isinstance(node, exp.Select):
        if any(value for name, value in node.args.items() if name not in _AROUND):
            return [], None
        stars = [item for item in node.expressions if item.find(exp.Star)]
        if stars and (len(node.expressions) > 1 or not isinstance(stars[0], exp.Star) or any(stars[0].args.values())):
            return [], None
        around.append(node)
        source = node.args.get("from_")
        if source is None or not isinstance(source.this, exp.Subquery):
            return [], None
        alias = source.this.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [], None
        node = source.this.this
    ends = isinstance(node, exp.Union) and not any(node.args.get(part) for part in ("order", "limit", "offset"))
    return around, node if ends and isinstance(node, exp.Union) else None


def _plain(branch: exp.Select, remainder: Remainder) -> bool:
    """Return whether a branch is a plain SELECT (list, FROM a block, WHERE) without stars."""
    source = branch.args.get("from_")
    if source is None or any(value for name, value in branch.args.items() if name not in _PLAIN):
        return False
    named = isinstance(source.this, exp.Table) and remainder.block(source.this.name) is not None
    return named and not any(item.find(exp.Star) for item in branch.expressions)


def _in_place(tree: exp.Query, branch: exp.Select, names: list[str]) -> exp.Query:
    """Return the remainder with the union replaced by `branch`, under the column names of the first branch."""
    alone = branch.copy()
    items = [exp.alias_(item.unalias(), name, quoted=True) for item, name in zip(alone.expressions, names, strict=True)]
    alone.set("expressions", items)
    _, union = _union(tree)
    if union is tree or union is None:
        return alone
    union.replace(alone)
    return tree


def numbered(tree: exp.Query) -> exp.Query:
    """Return a copy of `tree` in which each branch of a UNION ALL has its number as last column, to distinguish equal rows."""
    copy = tree.copy()
    branches = _branches(copy)
    if branches is not None and isinstance(copy, exp.Union):
        for number, branch in enumerate(branches):
            literal = exp.Literal.number(number)
            branch.append("expressions", exp.Alias(this=literal, alias=exp.to_identifier(ROW, quoted=True)))
    return copy


def _branches(tree: exp.Expr) -> list[exp.Select] | None:
    """Return the SELECTs of nested UNION ALL, None if `tree` has anything else."""
    if isinstance(tree, exp.Subquery):
        return _branches(tree.this)
    if isinstance(tree, exp.Select):
        return None if tree.args.get("distinct") else [tree]
    if not isinstance(tree, exp.Union) or tree.args.get("distinct") or tree.args.get("by_name"):
        return None
    left, right = _branches(tree.this), _branches(tree.expression)
    return None if left is None or right is None else [*left, *right]
