"""How many rows of a relation one privacy unit can change: stability, node by node (privacy.md 3)."""

from __future__ import annotations

import math

from dpsql.errors import refuse
from dpsql.plan import Filter, Join, Project, Relation, Scan, SemiJoin, Union_, UnitAggregate
from dpsql.policy import Policy

MOST_ROWS_PER_UNIT = 10**9


def rows_per_unit(relation: Relation, policy: Policy) -> int:
    """Most rows that appear or vanish when one unit is added or removed. Refuses what grows beyond all use.

    Each line is one row of the table in privacy.md 3; the bounded view (Scan) is the only place where a number enters.
    """
    rows = _rows(relation, policy)
    if rows > MOST_ROWS_PER_UNIT:
        raise refuse("too_many_rows_per_unit", rows=rows, most=MOST_ROWS_PER_UNIT)
    return rows


def _rows(relation: Relation, policy: Policy) -> int:
    if isinstance(relation, Scan):
        if not policy.is_protected(relation.table):
            return 0
        if policy.privacy_unit is None:
            return 1
        most = policy.tables[relation.table].max_rows
        if most is None:
            raise refuse("no_max_rows", table=relation.table)
        return most
    if isinstance(relation, (Filter, Project)):
        return _rows(relation.source, policy)
    if isinstance(relation, SemiJoin):
        # Whether a row of `left` stays depends on public rows, or on rows of its own unit (the emitted join compares
        # the units): adding a unit never changes another unit's rows.
        return _rows(relation.left, policy)
    if isinstance(relation, Union_):
        return sum(_rows(source, policy) for source in relation.sources)
    if isinstance(relation, Join):
        # A row of `left` meets at most `multiplicity` rows of `right`; with on_unit only rows of the same unit meet.
        left = _rows(relation.left, policy)
        if relation.on_unit:
            return left * min(relation.multiplicity, _rows(relation.right, policy))
        return left * relation.multiplicity
    sizes = [expression.facts.size() for _, expression in relation.keys]
    below = _rows(relation.source, policy)
    return min(below, math.prod(size for size in sizes if size is not None)) if None not in sizes else below
