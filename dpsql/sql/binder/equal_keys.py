"""Keys whose equality implies the same privacy unit: declared foreign keys, and unique keys of one table on both sides."""

from __future__ import annotations

from dpsql.plan.plan import Column, Expr, Filter, Join, Project, Relation, Scan, SemiJoin
from dpsql.policy import Policy


def along_key(left: Relation, right: Relation, pairs: list[tuple[Expr, Expr]], policy: Policy) -> bool:
    """Return whether equal keys belong to one unit: a pair is a foreign key that the policy declares between protected tables (in
    either direction), or two foreign keys to the same column, or the pairs are a unique key of one table on both sides."""
    if _same_rows(left, right, pairs, policy):
        return True
    for a, b in pairs:
        left_column, right_column = origin(left, a), origin(right, b)
        if (
            left_column is None
            or right_column is None
            or not (policy.is_protected(left_column[0]) and policy.is_protected(right_column[0]))
        ):
            continue
        targets = [policy.tables[table].foreign_keys.get(column) for table, column in (left_column, right_column)]
        if targets[0] == right_column or targets[1] == left_column:
            return True
        if targets[0] is not None and targets[0] == targets[1] and policy.is_protected(targets[0][0]):
            return True
    return False


def _same_rows(left: Relation, right: Relation, pairs: list[tuple[Expr, Expr]], policy: Policy) -> bool:
    """Return whether equal keys identify one row of a protected table that is on both sides."""
    named: dict[str, set[str]] = {}
    for a, b in pairs:
        place_left, place_right = origin(left, a), origin(right, b)
        if place_left is not None and place_left == place_right:
            named.setdefault(place_left[0], set()).add(place_left[1])
    return any(
        policy.is_protected(table) and policy.tables[table].is_unique(tuple(sorted(columns)))
        for table, columns in named.items()
    )


def origin(relation: Relation, expression: Expr) -> tuple[str, str] | None:
    """Return the policy's table and column from which an expression over `relation` is read unchanged; None if it is computed."""
    if not isinstance(expression, Column):
        return None
    name = expression.name
    if isinstance(relation, Scan):
        return relation.table, name
    if isinstance(relation, Join):
        side = relation.left if name.startswith("a.") else relation.right
        return origin(side, Column(name[2:], expression.facts))
    if isinstance(relation, SemiJoin):
        return origin(relation.left, expression)
    if isinstance(relation, Filter):
        return origin(relation.source, expression)
    if isinstance(relation, Project):
        return origin(relation.source, dict(relation.columns)[name])
    return None
