"""Base tables and projections as relations of the plan."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.errors.suggestions import suggestion
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Project, PublicInput, Scan
from dpsql.policy import Column as PolicyColumn
from dpsql.policy import Policy, Table
from dpsql.sql.binder.scope import Bound, Kind, Protected, Released, same_unit
from dpsql.sql.binder.unit_keys import kind
from dpsql.sql.parse import place

MOST_COLUMNS = 500
SCHEMAS = ("main", "public")
"""What the tables of the policy may be qualified with."""


def facts_of(column: PolicyColumn) -> Facts:
    """What the policy says of a column."""
    type_ = Type(column.type)
    lower: Any = column.lower
    upper: Any = column.upper
    domain = column.domain
    known = [value for value in domain or () if value is not None]
    if known and (type_.numeric or type_.temporal):
        lower, upper = min(known), max(known)
    if type_.numeric:
        lower, upper = (None if bound is None else Fraction(bound) for bound in (lower, upper))
    values = None if domain is None else tuple(domain)
    return Facts(type_, lower, upper, values, column.nullable, column.max_total, column.outside)


def base_table(policy: Policy, node: exp.Table, public: dict[str, PublicInput]) -> Bound:
    """A table of the policy under its name there (names fold). Refuses every other name."""
    if not isinstance(node.this, exp.Identifier):
        raise refuse("table_function", position=place(node))
    qualified = [node.args[part] for part in ("catalog", "db") if node.args.get(part) is not None]
    if not all(isinstance(part, exp.Identifier) for part in qualified):
        raise refuse("syntax", detail="a name is missing beside a dot", position=place(node))
    schema = [part.name.lower() for part in qualified]
    if schema and (schema[-1] not in SCHEMAS or schema[:-1] not in ([], [policy.dataset.lower()])):
        raise refuse("unknown_table", name=".".join([*schema, node.name]), position=place(node), hint="")
    name = next((name for name in policy.tables if name.lower() == node.name.lower()), None)
    if name is None:
        raise refuse("unknown_table", name=node.name, position=place(node), hint=suggestion(node.name, policy.tables))
    if not policy.is_protected(name):
        scan = base_scan(policy.tables[name])
        entry = public.setdefault(name, PublicInput(f"pub_{name.lower()}", scan))
        names, facts = tuple(column.name for column in scan.columns), tuple(column.facts for column in scan.columns)
        rows = Protected(scan, tuple((column.name, column) for column in scan.columns))
        return Released(named_table(entry.name), names, facts, rows=rows)
    own = None if policy.unit_joins(name) else policy.unit_column(name)
    return _protected(policy.tables[name], own)


@lru_cache(maxsize=1024)
def _protected(table: Table, own: str | None) -> Protected:
    """The rows of a protected table; `own`: its column that holds the unit's key."""
    scan = base_scan(table)
    units = frozenset({own}) if own is not None else frozenset[str]()
    return Protected(scan, tuple((column.name, column) for column in scan.columns), units)


def named_table(name: str) -> exp.Table:
    """A table of the sandbox under a name of ours."""
    return exp.Table(this=exp.to_identifier(name))


@lru_cache(maxsize=1024)
def base_scan(table: Table) -> Scan:
    """All columns of a policy table; one value, whoever asks (`plan.canonical_text` writes it once)."""
    return Scan(table.name, tuple(Column(column.name, facts_of(column)) for column in table.columns.values()))


def project(below: Protected, items: list[tuple[str, Expr]]) -> Protected:
    """New columns over the rows of `below.relation`, named p0, p1, ... inside the plan."""
    if len(items) > MOST_COLUMNS:
        raise refuse("many_columns", most=MOST_COLUMNS)
    inner = tuple((f"p{number}", expression) for number, (_, expression) in enumerate(items))
    units = frozenset(name for name, expression in inner if same_unit(expression, below.unit_names))
    visible = tuple((label, Column(f"p{number}", _made(e))) for number, (label, e) in enumerate(items))
    kinds = {
        name: known for name, expression in inner if (known := kind(expression, below)) in (Kind.MIXED, Kind.IMAGE)
    }
    return Protected(Project(below.relation, inner), visible, units, unit_kinds=kinds)


def _made(expression: Expr) -> Facts:
    """Facts of a column that a projection makes. What is computed of a column has no group of other values of its own."""
    return expression.facts if isinstance(expression, Column) else replace(expression.facts, outside=None)
