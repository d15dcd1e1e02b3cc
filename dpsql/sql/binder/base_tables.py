"""Base tables and projections as relations of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Column, Expr, Project, PublicInput, base_scan
from dpsql.policy import Policy, Table
from dpsql.policy.check import refusal
from dpsql.policy.yaml_text import Problems
from dpsql.sql.binder.equal_keys import kind
from dpsql.sql.binder.row_filters import filtered
from dpsql.sql.binder.scope import Bound, Kind, Protected, Released, same_unit
from dpsql.sql.lexer import place

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
        return Released(named_table(entry.name), names, facts, rows=rows, most_rows=most_rows, declared=declared)
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
    inner = tuple((f"p{number}", expression) for number, (_, expression) in enumerate(items))
    units = frozenset(name for name, expression in inner if same_unit(expression, below.unit_names))
    visible = tuple((label, Column(f"p{number}", _projected_facts(e))) for number, (label, e) in enumerate(items))
    kinds = {
        name: unit_kind
        for name, expression in inner
        if (unit_kind := kind(expression, below)) in (Kind.MIXED, Kind.IMAGE)
    }
    return Protected(Project(below.relation, inner), visible, units, unit_kinds=kinds)


def _projected_facts(expression: Expr) -> Facts:
    """Return the facts of a projected column. A computed value has no group of other values (`outside`)."""
    return expression.facts if isinstance(expression, Column) else replace(expression.facts, outside=None)
