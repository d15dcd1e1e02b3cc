"""Where the rows of a relation come from: columns as expressions over base columns, and conditions that every row meets.

A relation is read as a few branches (UNION ALL, rows of a LEFT JOIN with and without a partner); each row of it belongs to
one. Base columns are named by their way through the plan, so that two scans of one table have different columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    OTHER,
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
class Unmatched:
    """No row of `branch` has values equal to these: pairs of an expression of the row and one over the branch, both over base
    columns. `in_list`: as NOT IN means it, where NULL on either side leaves the row out, unless there is no row at all."""

    pairs: tuple[tuple[Expr, Expr], ...]
    branch: Branch
    in_list: bool = False


@dataclass(frozen=True)
class Branch:
    """`columns`: each column of the relation by its name; `conditions` are true for every row; `tables`: scans, as (way, table).
    `within`: base columns that never hold a value which their facts do not name; `unmatched`: rows that no row of the branch
    has a partner among."""

    columns: Mapping[str, Expr]
    conditions: tuple[Expr, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    within: frozenset[str] = frozenset()
    unmatched: tuple[Unmatched, ...] = ()

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
        made = {column.name: Column(way + column.name, column.facts) for column in node.columns}
        if isinstance(node, Scan):
            return [Branch(made, (), ((way, node.table),))]
        # Results have the keys that were listed for them, and means are kept within their bounds.
        return [Branch(made, within=frozenset(way + name for name in made))]
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
        return _met(node, way)
    if isinstance(node, Union_):
        return _united(node, way)
    if isinstance(node, Distinct):
        return branches(node.source, way)
    if isinstance(node, UnitWindow):
        made = {window.name: Column(f"{way}w.{window.name}", window.facts) for window in node.windows}
        sure = frozenset(made[window.name].name for window in node.windows if window.word in _COUNTS)
        return [_widened(branch, made, sure) for branch in branches(node.source, way + "s.")]
    # The type of the unit's own key stands where it is used. Rows without one are nobody's.
    unit = Column(f"{way}u.u", Facts(Type.NULL))
    made = {"u": unit} | {column[0]: Column(f"{way}u.{column[0]}", column[4]) for column in node.columns}
    sure = frozenset(made[column[0]].name for column in node.columns if column[1] in _COUNTS)
    return [
        _with(
            _widened(replace(one, columns={label: one.written(key) for label, key in node.keys}), made, sure),
            _there(unit),
        )
        for one in branches(node.source, way + "s.")
    ]


_COUNTS = ("count", "count_distinct", "row_number", "rank", "dense_rank")
"""Words whose results lie within their facts in any case: a unit has no more rows than it may have."""


def _widened(branch: Branch, made: Mapping[str, Column], sure: frozenset[str]) -> Branch:
    return replace(branch, columns={**branch.columns, **made}, within=branch.within | sure)


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
            found.append(replace(_pair(one, other, _bare(node)), columns={**here, **there}))
        if node.kind == "left":
            names = {f"b.{name}": _missing(value) for name, value in right[0].columns.items()}
            found.append(replace(_apart(one, right, _bare(node)), columns={**here, **names}))
    return found


def _apart(one: Branch, right: list[Branch], keys: Iterable[tuple[Expr, Expr]], in_list: bool = False) -> Branch:
    """Rows of `one` that meet no row of any of the branches."""
    pairs = list(keys)
    found = (Unmatched(tuple((one.written(a), other.written(b)) for a, b in pairs), other, in_list) for other in right)
    return replace(one, unmatched=(*one.unmatched, *found)) if pairs else one


def _pair(one: Branch, other: Branch, keys: Iterable[tuple[Expr, Expr]]) -> Branch:
    """Rows of `one`, each with a row of `other` that has equal keys."""
    equal = (Call("eq", (one.written(a), other.written(b)), Facts(Type.BOOLEAN)) for a, b in keys)
    conditions = (*one.conditions, *other.conditions, *equal)
    unmatched = (*one.unmatched, *other.unmatched)
    return Branch(one.columns, conditions, (*one.tables, *other.tables), one.within | other.within, unmatched)


def _met(node: SemiJoin, way: str) -> list[Branch]:
    """Rows that a semi-join keeps: each has met a row of the right side, unless it is negated."""
    kept = branches(node.left, way + "l.")
    try:
        right = branches(node.right, way + "r.")
    except Unknown:
        right = []
    if node.negated:
        if node.condition is not None or node.on_unit:
            return kept
        return [_apart(one, right, node.keys, node.in_list) for one in kept]
    if not 1 <= len(right) * len(kept) <= MOST_BRANCHES:
        return [_with(one, *(_there(one.written(a)) for a, _ in node.keys)) for one in kept]
    found = []
    for one in kept:
        for other in right:
            pair = _pair(one, other, node.keys)
            if node.condition is not None:
                beside = {OTHER + name: value for name, value in other.columns.items()}
                both = replace(pair, columns={**one.columns, **beside})
                pair = _with(pair, both.written(node.condition))
            found.append(pair)
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
