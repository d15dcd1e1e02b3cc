"""Set operations of protected relations: UNION of any rows; INTERSECT and EXCEPT of the privacy unit's keys.

Whether a unit is in a set of keys depends on its own rows alone: INTERSECT (EXCEPT) has one row for each unit of the first
side for which the other side has a row (has none). So adding a unit changes one row. UNION has the different rows of UNION ALL:
with the unit's key among the columns they are the unit's own, otherwise nobody's, as those of SELECT DISTINCT.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import WrongArguments, call, common_type
from dpsql.plan.intervals import Type, hull
from dpsql.plan.plan import Column, Distinct, Expr, SemiJoin, Union_, UnitAggregate
from dpsql.sql.binder.base_tables import project
from dpsql.sql.binder.per_unit_aggregation import UNIT_KEY
from dpsql.sql.binder.scope import Kind, Protected, same_unit
from dpsql.sql.lexer import place


def protected_sets(node: exp.SetOperation, sides: list[Protected]) -> Protected:
    """Return the UNION ALL of protected relations, matched by position, in their common types; or a set of units. Refuses other
    set operations."""
    for clause in ("order", "limit", "offset", "by_name"):
        if node.args.get(clause):
            raise refuse("rows_clause", what=clause.upper(), position=place(node))
    if isinstance(node, exp.Union):
        return _different(node, sides) if node.args.get("distinct") else stacked(node, sides)
    keys = [_unit_key(side) for side in sides]
    if any(key is None for key in keys) or not node.args.get("distinct"):
        hint = "aggregate each side first, or select the privacy unit's key alone on both sides"
        raise refuse("set_of_rows", reason="only UNION is, and sets of units", way=hint, position=place(node))
    first, second = sides
    pairs = tuple((a, b) for a, b in [keys] if a is not None and b is not None)
    negated = isinstance(node, exp.Except)
    rows = SemiJoin(first.relation, second.relation, pairs, on_unit=True, negated=negated, in_list=False)
    label, column = first.columns[0]
    units = Protected(UnitAggregate(rows, (), ()), (), frozenset({UNIT_KEY}))
    return project(units, [(label, Column(UNIT_KEY, column.facts))])


def _different(node: exp.Union, sides: list[Protected]) -> Protected:
    """Return the different rows of all sides. Repetitions within a side are left to the union."""
    opened = [replace(s, relation=s.relation.source) if isinstance(s.relation, Distinct) else s for s in sides]
    rows = stacked(node, opened)
    if not any(same_unit(column, rows.unit_names) for _, column in rows.columns):
        columns = tuple((label, Column(c.name, replace(c.facts, max_total=None))) for label, c in rows.columns)
        return Protected(Distinct(rows.relation), columns)
    labels = {c: f"u.{c.name}" for _, c in rows.columns if not same_unit(c, rows.unit_names)}
    keys = tuple((label, column) for column, label in labels.items())
    units = Protected(UnitAggregate(rows.relation, keys, ()), (), frozenset({UNIT_KEY}))
    return project(units, [(name, Column(labels.get(c, UNIT_KEY), c.facts)) for name, c in rows.columns])


def _unit_key(side: Protected) -> Column | None:
    """Return the only column of a side if it is the privacy unit's key, else None."""
    columns = [column for _, column in side.columns]
    return columns[0] if len(columns) == 1 and same_unit(columns[0], side.unit_names) else None


def stacked(node: exp.Expr, sides: list[Protected]) -> Protected:
    """Return all rows of all sides, matched by position, in their common types."""
    if len({len(side.columns) for side in sides}) != 1:
        raise refuse("set_of_rows", reason="the sides have different numbers of columns", way="", position=place(node))
    items: list[list[tuple[str, Expr]]] = [[] for _ in sides]
    for columns in zip(*(side.columns for side in sides), strict=True):
        try:
            type_ = common_type(tuple(column for _, column in columns))
        except WrongArguments as wrong:
            raise refuse("set_of_rows", reason=f"a column {wrong}", way="cast it", position=place(node)) from None
        for side, (_, column) in zip(items, columns, strict=True):
            cast = column.facts.type is not type_ and type_ is not Type.NULL
            side.append((columns[0][0], call(f"to_{type_.value}", column) if cast else column))
    parts = [project(side, item) for side, item in zip(sides, items, strict=True)]
    facts = [_merged([part.columns[n][1] for part in parts]) for n in range(len(parts[0].columns))]
    visible = tuple((label, column) for (label, _), column in zip(parts[0].columns, facts, strict=True))
    units = frozenset.intersection(*(part.unit_names for part in parts))
    # Two sides may have computed the same value from different keys.
    kinds = {name: Kind.MIXED for part in parts for name in part.units if name not in units}
    return Protected(Union_(tuple(part.relation for part in parts)), visible, units, unit_kinds=kinds)


def _merged(columns: list[Column]) -> Column:
    facts = [column.facts for column in columns]
    alike = len({(bounds.outside, bounds.values, bounds.lower, bounds.upper) for bounds in facts}) == 1
    merged = hull(facts, facts[0].type)
    return Column(
        columns[0].name, replace(merged, values=facts[0].values, outside=facts[0].outside) if alike else merged
    )
