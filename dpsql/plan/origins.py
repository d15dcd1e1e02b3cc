"""Where the rows of a relation come from: columns as expressions over base columns, and conditions that every row meets.

A relation is read as a few branches (UNION ALL, rows of a LEFT JOIN with and without a partner); each row of it belongs to
one. Base columns are named by their way through the plan, so that two scans of one table have different columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitWindow,
)

MOST_BRANCHES = 16


class Unknown(Exception):
    """A relation has more branches than are looked at, or a column of which nothing is known."""


@dataclass(frozen=True)
class Branch:
    """`columns`: each column of the relation by its name; `conditions` are true for every row; `tables`: base columns of
    scans, as (way, table)."""

    columns: Mapping[str, Expr]
    conditions: tuple[Expr, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()

    def written(self, expression: Expr) -> Expr:
        """`expression` over the relation, over base columns. Raises Unknown."""
        if isinstance(expression, Column):
            found = self.columns.get(expression.name)
            if found is None:
                raise Unknown
            untyped = isinstance(found, Column) and found.facts.type is Type.NULL
            return Column(found.name, expression.facts) if isinstance(found, Column) and untyped else found
        if isinstance(expression, Call):
            return replace(expression, arguments=tuple(map(self.written, expression.arguments)))
        return expression


def branches(node: Relation, way: str = "") -> list[Branch]:
    """The branches of a relation. Raises Unknown."""
    found = _branches(node, way)
    if len(found) > MOST_BRANCHES:
        raise Unknown
    return found


def _branches(node: Relation, way: str) -> list[Branch]:
    if isinstance(node, (Scan, ReleasedRows)):
        tables = ((way, node.table),) if isinstance(node, Scan) else ()
        return [Branch({column.name: Column(way + column.name, column.facts) for column in node.columns}, (), tables)]
    if isinstance(node, Filter):
        return [_with(one, one.written(node.predicate)) for one in branches(node.source, way)]
    if isinstance(node, Project):
        return [
            replace(one, columns={label: one.written(part) for label, part in node.columns})
            for one in branches(node.source, way)
        ]
    if isinstance(node, Join):
        return _joined(node, way)
    if isinstance(node, SemiJoin):
        kept = branches(node.left, way)
        # A row that is kept has met one: its keys are not NULL.
        return kept if node.negated else [_with(one, *(_there(one.written(a)) for a, _ in node.keys)) for one in kept]
    if isinstance(node, Union_):
        return _united(node, way)
    if isinstance(node, Distinct):
        return branches(node.source, way)
    if isinstance(node, UnitWindow):
        made = {window.name: Column(f"{way}w.{window.name}", window.facts) for window in node.windows}
        return [replace(one, columns={**one.columns, **made}) for one in branches(node.source, way + "s.")]
    # The type of the unit's own key stands where it is used.
    made = {"u": Column(f"{way}u.u", Facts(Type.NULL))}
    made |= {column[0]: Column(f"{way}u.{column[0]}", column[4]) for column in node.columns}
    return [
        replace(one, columns={**{label: one.written(key) for label, key in node.keys}, **made})
        for one in branches(node.source, way + "s.")
    ]


def _with(one: Branch, *conditions: Expr) -> Branch:
    return replace(one, conditions=(*one.conditions, *conditions))


def _there(value: Expr) -> Expr:
    boolean = Facts(Type.BOOLEAN, nullable=False)
    return Call("not", (Call("is_null", (value,), boolean),), boolean)


def _joined(node: Join, way: str) -> list[Branch]:
    """Rows that met a partner, and those of a LEFT JOIN without one: conditions on the right side say nothing of them."""
    found = []
    left, right = branches(node.left, way + "a."), branches(node.right, way + "b.")
    for one in left:
        here = {f"a.{name}": value for name, value in one.columns.items()}
        for other in right:
            there = {f"b.{name}": value for name, value in other.columns.items()}
            equal = (Call("eq", (one.written(a), other.written(b)), Facts(Type.BOOLEAN)) for a, b in _bare(node))
            conditions = (*one.conditions, *other.conditions, *equal)
            found.append(Branch({**here, **there}, conditions, (*one.tables, *other.tables)))
        if node.kind == "left":
            names = {f"b.{name}": _missing(value) for name, value in right[0].columns.items()}
            found.append(replace(one, columns={**here, **names}))
    return found


def _bare(node: Join) -> list[tuple[Expr, Expr]]:
    """The keys over the columns of each side as they are called there."""
    return [(_unprefixed(a), _unprefixed(b)) for a, b in node.keys]


def _unprefixed(expression: Expr) -> Expr:
    if isinstance(expression, Column):
        return Column(expression.name[2:], expression.facts)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(map(_unprefixed, expression.arguments)))
    return expression


def _missing(value: Expr) -> Literal:
    return Literal(None, replace(value.facts, nullable=True, values=None))


def _united(node: Union_, way: str) -> list[Branch]:
    """Columns are matched by position and named as in the first source."""
    found: list[Branch] = []
    names: list[str] = []
    for at, source in enumerate(node.sources):
        for one in branches(source, f"{way}{at}."):
            names = names or list(one.columns)
            renamed = dict(zip(names, one.columns.values(), strict=True)) if len(names) == len(one.columns) else None
            if renamed is None:
                raise Unknown
            found.append(replace(one, columns=renamed))
    return found
