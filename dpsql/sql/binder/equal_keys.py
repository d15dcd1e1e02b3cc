"""The key of the privacy unit: expressions that are different for each unit, and keys whose equality implies the same unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpsql.functions.signatures import REGISTRY
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    Call,
    Column,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    columns_read,
)
from dpsql.policy import Policy, Table
from dpsql.sql.binder.scope import Kind, Protected, Scope

# --- the privacy unit's key behind expressions ------------------------------------------------------------------------
# Which have a different value for each unit, and which may not.
#
# GROUP BY with the key makes one row for each unit (`per_unit_aggregation`). So does GROUP BY with an injective
# function of the key. A function that is not proven injective would silently become a private key that hardly any two
# units share, so it is refused, unless it is a function that is meant to combine many keys (`uid % 10`).

_WRITTEN_APART = (Type.INTEGER, Type.TEXT, Type.DATE, Type.TIMESTAMP, Type.BOOLEAN)
"""Types whose equal values have equal texts and whose different values have different texts. Not reals: 0.0 equals -0.0."""
_EXACT_REALS = 2**53


def kind(node: Expr, columns: Protected | Scope) -> Kind:
    """Return how an expression over `columns` depends on the unit's key."""
    return _kind(node, columns.units)


def kept_apart(node: Expr) -> Column | None:
    """Return the column whose different values have different values of an expression; None if there is none, or it is not
    proven."""
    columns = {column.name: column for column in columns_read(node)}
    if len(columns) != 1 or _kind(node, dict.fromkeys(columns, Kind.KEY)) < Kind.IMAGE:
        return None
    return next(iter(columns.values()))


def _kind(node: Expr, units: Mapping[str, Kind]) -> Kind:
    if isinstance(node, Column):
        return units.get(node.name, Kind.OTHER)
    if not isinstance(node, Call) or not units:
        return Kind.OTHER
    kinds = [_kind(argument, units) for argument in node.arguments]
    if max(kinds, default=Kind.OTHER) is Kind.OTHER or node.facts.type is Type.BOOLEAN:
        return Kind.OTHER
    if _injective(node, kinds):
        return Kind.IMAGE
    return Kind.OTHER if REGISTRY[node.function].coarse else Kind.MIXED


def _injective(node: Call, kinds: list[Kind]) -> bool:
    """Return whether different keys have different values. Where the engine's function would fail (an integer beyond 64 bits),
    dpsql returns NULL for several keys; these stay separate rows, because SQL defines no answer there."""
    unit_arguments = [index for index, argument_kind in enumerate(kinds) if argument_kind is not Kind.OTHER]
    if node.function == "coalesce":
        return (
            unit_arguments[0] == 0 and kinds[0] >= Kind.IMAGE
        )  # rows without a key belong to no unit and are left out
    constants = [argument for index, argument in enumerate(node.arguments) if index != unit_arguments[0]]
    if len(unit_arguments) > 1 or kinds[unit_arguments[0]] < Kind.IMAGE or not all(map(_constant, constants)):
        return False
    type_, to = node.arguments[unit_arguments[0]].facts.type, node.facts.type
    if node.function in ("add", "sub", "neg", "floor", "ceil", "round"):
        return to is Type.INTEGER
    if node.function == "mul":
        return to is Type.INTEGER and all(isinstance(other, Literal) and other.value for other in constants)
    if node.function in ("concat", "concat_ws"):
        return type_ is Type.TEXT
    if node.function == "to_text":
        return type_ in _WRITTEN_APART
    if node.function == "to_real":
        facts = node.arguments[unit_arguments[0]].facts
        return type_ is Type.INTEGER and facts.bounded and max(abs(facts.lower), abs(facts.upper)) <= _EXACT_REALS
    widened = {
        "to_integer": (Type.INTEGER, Type.BOOLEAN),
        "to_date": (Type.DATE,),
        "to_timestamp": (Type.DATE, Type.TIMESTAMP),
    }
    return type_ in widened.get(node.function, ())


def _constant(node: Expr) -> bool:
    """Return whether an expression has the same value in all rows, which is not NULL."""
    if isinstance(node, Call):
        return not node.facts.nullable and all(map(_constant, node.arguments))
    return isinstance(node, Literal) and node.value is not None


# --- keys whose equality implies the same privacy unit ----------------------------------------------------------------

UNITS_WAY = (
    "compare the privacy unit's key on both sides, or columns that the owner declares as a foreign key or under same_unit (an "
    "order and its return)"
)


def along_key(left: Relation, right: Relation, pairs: list[tuple[Expr, Expr]], policy: Policy) -> bool:
    """Return whether equal keys belong to one unit: a pair is a foreign key that the policy declares between protected tables (in
    either direction), or two foreign keys to the same column, or a pair of which the owner says so (`same_unit`), or the pairs
    are a unique key of one table on both sides."""
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
        ends = ((left_column, right_column), (right_column, left_column))
        if any(policy.tables[table].same_unit.get(column) == other for (table, column), other in ends):
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
    protected table, or a foreign key on a table's path to the unit, or expressions with different values for different ones. Only
    keys that are never NULL count. Return () for none.

    Who groups by such keys groups within units, which `UnitAggregate` does whatever the rows hold: this decides what a question
    means, not whether it is safe.
    """
    columns: dict[tuple[int, ...], tuple[Table, set[str]]] = {}
    for key in keys:
        read = _source(relation, key, grouped_under=policy)
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
    """A column of a table, and the scan that reads it: its path of sides of joins, 0 for the left one, and the scans of all parts
    of a union."""

    table: str
    column: str
    scan: tuple[Any, ...]


def _source(
    relation: Relation,
    expression: Expr,
    optional: bool = False,
    scan: tuple[Any, ...] = (),
    grouped_under: Policy | None = None,
) -> _Source | None:
    """Return where an expression over `relation` is read unchanged; None if it is computed. `optional`: also from the side of an
    outer join that may have no partner. `grouped_under`: also if it only has different values for different ones, and from all
    parts of a union, under this policy."""
    while True:
        if grouped_under is not None:
            expression = kept_apart(expression) or expression
        if not isinstance(expression, Column):
            return None
        name = expression.name
        if isinstance(relation, Scan):
            return _Source(relation.table, name, scan)
        if isinstance(relation, Join):
            right = not name.startswith("a.")
            if right and relation.kind == "left" and not optional:
                return None
            expression, scan = Column(name[2:], expression.facts), (*scan, int(right))
            relation = relation.right if right else relation.left
        elif isinstance(relation, (Project, UnitAggregate)):
            columns = dict(relation.columns if isinstance(relation, Project) else relation.keys)
            if name not in columns:
                return None
            expression, relation = columns[name], relation.source
        elif (passing := _passing(relation, name)) is not None:
            relation = passing
        elif isinstance(relation, Union_) and grouped_under is not None:
            return _of_parts(relation, name, scan, grouped_under)
        else:
            return None


def _passing(relation: Relation, name: str) -> Relation | None:
    """Return the relation below whose columns `relation` passes on, if it passes on this one."""
    if isinstance(relation, SemiJoin):
        return relation.left
    of_windows = isinstance(relation, UnitWindow) and name in {window.name for window in relation.windows}
    return relation.source if isinstance(relation, (Filter, UnitWindow)) and not of_windows else None


def _of_parts(union: Union_, name: str, scan: tuple[Any, ...], policy: Policy) -> _Source | None:
    """Return where all parts of a union read a column: the same one, or one that foreign keys on the path to the unit name."""
    sources = []
    for part in union.sources:
        first = union.sources[0]
        if not isinstance(first, Project) or not isinstance(part, Project):
            return None
        position = [label for label, _ in first.columns].index(name)
        read = _source(part, Column(part.columns[position][0], Facts(Type.NULL)), grouped_under=policy)
        if read is None or not policy.is_protected(read.table):
            return None
        sources.append(read)
    scans = (*scan, tuple(read.scan for read in sources))
    if len({(read.table, read.column) for read in sources}) == 1:
        return sources[0]._replace(scan=scans)
    named = {_named_by(read, policy) for read in sources}
    return _Source(*named.pop(), scans) if len(named) == 1 else None


def _named_by(read: _Source, policy: Policy) -> tuple[str, str]:
    """Return the column that a foreign key on the path to the unit names, or any other column itself."""
    for table, column, parent, parent_column in policy.unit_path(read.table)[:1]:
        if (table, column) == (read.table, read.column):
            return parent, parent_column
    return read.table, read.column
