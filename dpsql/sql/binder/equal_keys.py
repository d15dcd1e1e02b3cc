"""The key of the privacy unit: expressions that are different for each unit, and keys whose equality implies the same unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.functions.canonical_measures import filter_of_case
from dpsql.functions.numeric import nearest_decimal
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
    PublicInput,
    Relation,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    base_scan,
    columns_read,
)
from dpsql.policy import Policy, Table
from dpsql.policy.check import refusal
from dpsql.policy.yaml_text import Problems
from dpsql.sql.binder.row_filters import filtered
from dpsql.sql.binder.scope import Bound, Kind, Protected, Released, Scope, same_unit
from dpsql.sql.lexer import place
from dpsql.storage.records import replace

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
    """Return the column whose different values have different values of an expression; None if none is proven."""
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
    if (value := filter_of_case(node, None)[0]) is not node and _kind(value, units) >= Kind.IMAGE:
        return Kind.PARTIAL
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


# --- base tables and projections as relations of the plan -------------------------------------------------------------

MOST_COLUMNS = 500
UNCOUNTED = 1_000
"""Assumed number of rows of a public table whose rows have not been counted (`planner`)."""


def base_table(policy: Policy, node: exp.Table, public: dict[str, PublicInput]) -> Bound:
    """Return the policy's table that `node` names (names fold to lower case). Refuses every other name."""
    if not isinstance(node.this, exp.Identifier):
        raise refuse("table_function", position=place(node))
    qualified = [node.args[part] for part in ("catalog", "db") if node.args.get(part) is not None]
    if not all(isinstance(part, exp.Identifier) for part in qualified):
        raise refuse("syntax", detail="a name is missing beside a dot", position=place(node))
    path = (*(part.name for part in qualified), node.name)
    table = policy.table_at(*path)
    if table is None:
        raise no_such_table(policy, path, place(node))
    name = table.name
    if table.public:
        scan = base_scan(table)
        entry = public.setdefault(name, PublicInput(f"pub_{name.lower()}", scan))
        names, facts = tuple(column.name for column in scan.columns), tuple(column.facts for column in scan.columns)
        rows = Protected(scan, tuple((column.name, column) for column in scan.columns))
        most_rows = UNCOUNTED if table.row_count is None else table.row_count
        declared = frozenset(
            (frozenset(map(names.index, keys)), name, ", ".join(keys))
            for keys in (table.primary_key, *table.unique)
            if keys and set(keys) <= set(names)
        )
        return Released(
            named_table(entry.name),
            names,
            facts,
            rows=rows,
            most_rows=most_rows,
            declared=declared,
            exact=frozenset(range(len(names))),
        )
    unit_column = None if policy.unit_joins(name) else policy.unit_column(name)
    return _protected(policy.tables[name], tuple(table.columns), policy.row_filter(name), unit_column)


def no_such_table(policy: Policy, path: Sequence[str], position: int | None) -> Error:
    """Return the refusal of a table name that the policy lacks. `path`: the parts of the name in the query."""
    written = ".".join(path)
    named = policy.table(path[-1])
    names = {table.qualified_name for table in policy.visible.values()} | set(policy.visible)
    hint = suggestion(written, names) if named is None else f"write {named.qualified_name}"
    return refuse("unknown_table", name=written, position=position, hint=hint)


@lru_cache(maxsize=1024)
def _protected(table: Table, names: tuple[str, ...], condition: str | None, unit_column: str | None) -> Protected:
    """Return the rows of a protected table that satisfy `condition`, with its visible columns `names`. `unit_column`: the column
    that holds the unit's key, visible or not."""
    scan = base_scan(table)
    units = frozenset({unit_column}) if unit_column is not None else frozenset[str]()
    visible = tuple((column.name, column) for column in scan.columns if column.name in names)
    return Protected(scan if condition is None else filtered(scan, condition), visible, units)


def row_filters(policy: Policy) -> dict[str, Expr]:
    """Return the conditions on the rows that exist for the policy's asker, by table."""
    access = policy.access or {}
    return {
        name: filtered(base_scan(policy.tables[name]), about.where).predicate
        for name, about in access.items()
        if about.where is not None
    }


def check_row_filters(policy: Policy) -> None:
    """Raise policy_invalid if a row filter of any analyst is not a condition over the rows of its table."""
    problems = Problems(policy.origin.lines)
    add_row_filter_problems(policy, problems)
    if problems:
        raise refusal(policy.origin.name, problems.listed())


def add_row_filter_problems(policy: Policy, problems: Problems) -> None:
    """Add a problem for each row filter that is not a condition over the rows of its table. A filter of a table that has a
    problem itself is not read: its columns may be missing from `policy`."""
    for name, analyst in policy.analysts.items():
        for table, access in (analyst.access or {}).items():
            if access.where is None or problems.within(("tables", table)):
                continue
            try:
                filtered(base_scan(policy.tables[table]), access.where)
            except Error as error:
                problems.add(("analysts", name, "where", table), error.message)


def named_table(name: str) -> exp.Table:
    """Return a reference to the sandbox table `name`."""
    return exp.Table(this=exp.to_identifier(name))


def project(below: Protected, items: list[tuple[str, Expr]]) -> Protected:
    """Return new columns over the rows of `below.relation`, named p0, p1, ... inside the plan."""
    if len(items) > MOST_COLUMNS:
        raise refuse("many_columns", most=MOST_COLUMNS)
    inner = tuple((f"p{number}", nearest_decimal(expression)) for number, (_, expression) in enumerate(items))
    units = frozenset(name for name, expression in inner if same_unit(expression, below.unit_names))
    visible = tuple((label, Column(f"p{number}", _projected_facts(e))) for number, (label, e) in enumerate(items))
    kinds = {
        name: unit_kind
        for name, expression in inner
        if (unit_kind := kind(expression, below)) in (Kind.MIXED, Kind.PARTIAL, Kind.IMAGE)
    }
    return Protected(Project(below.relation, inner), visible, units, unit_kinds=kinds)


def _projected_facts(expression: Expr) -> Facts:
    """Return the facts of a projected column. A computed value has no group of other values (`outside`)."""
    return expression.facts if isinstance(expression, Column) else replace(expression.facts, outside=None)
