"""Keys whose equality implies the same privacy unit: declared foreign keys, and unique keys of one table on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpsql.plan.plan import Column, Expr, Filter, Join, Project, Relation, Scan, SemiJoin, UnitAggregate
from dpsql.policy import Policy, Table


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


def naming_unit(relation: Relation, keys: Sequence[Expr], policy: Policy) -> tuple[str, ...]:
    """Return columns among `keys` whose equal values belong to one unit, as the policy declares: all columns of a key of a
    protected table, or a foreign key on a table's path to the unit. Only keys that are never NULL count. Return () for none.

    Who groups by such keys groups within units, which `UnitAggregate` does whatever the rows hold: this decides what a question
    means, not whether it is safe.
    """
    columns: dict[tuple[int, ...], tuple[Table, set[str]]] = {}
    for key in keys:
        read = _source(relation, key)
        if read is None or not policy.is_protected(read.table):
            continue
        if [hop[1] for hop in policy.unit_path(read.table)[:1]] == [read.column]:
            return (read.column,)  # rows without this foreign key belong to no unit and are left out
        table = policy.tables[read.table]
        if read.column in table.primary_key or not table.columns[read.column].nullable:
            columns.setdefault(read.scan, (table, set()))[1].add(read.column)
    for table, names in columns.values():
        for declared in (table.primary_key, *table.unique):
            if declared and names.issuperset(declared):
                return declared
    return ()


def origin(relation: Relation, expression: Expr) -> tuple[str, str] | None:
    """Return the policy's table and column from which an expression over `relation` is read unchanged; None if it is computed."""
    read = _source(relation, expression, optional=True)
    return None if read is None else (read.table, read.column)


class _Source(NamedTuple):
    """A column of a table, and the scan that reads it: its path of sides of joins, 0 for the left one."""

    table: str
    column: str
    scan: tuple[int, ...]


def _source(relation: Relation, expression: Expr, optional: bool = False, scan: tuple[int, ...] = ()) -> _Source | None:
    """Return where an expression over `relation` is read unchanged; None if it is computed. `optional`: also from the side of an
    outer join that may have no partner."""
    while isinstance(expression, Column):
        name = expression.name
        if isinstance(relation, Scan):
            return _Source(relation.table, name, scan)
        if isinstance(relation, Join):
            right = not name.startswith("a.")
            if right and relation.kind == "left" and not optional:
                return None
            expression, scan = Column(name[2:], expression.facts), (*scan, int(right))
            relation = relation.right if right else relation.left
        elif isinstance(relation, SemiJoin):
            relation = relation.left
        elif isinstance(relation, (Project, UnitAggregate)):
            columns = dict(relation.columns if isinstance(relation, Project) else relation.keys)
            if name not in columns:
                return None
            expression, relation = columns[name], relation.source
        elif isinstance(relation, Filter):
            relation = relation.source
        else:
            return None
    return None
