"""A plain SELECT from a public table as a relation of the plan: the policy's promises about the table hold for it, too."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Expr, Filter
from dpsql.sql.binder.base_tables import project
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import Bound, Protected, Released, Scope
from dpsql.sql.binder.stars import is_changed, written_out
from dpsql.sql.binder.trees import output_name

_CLAUSES = {"expressions", "from_", "where", "with_"}


def public_rows(node: exp.Select, bound: list[tuple[str, Bound]]) -> Protected | None:
    """Return the relation of SELECT columns and row expressions FROM one public table (or such a SELECT) WHERE condition; None
    for any other SELECT over results, whose rows are known only once it has run."""
    rows = _only_source(node, bound)
    if rows is None:
        return None
    scope = Scope([(bound[0][0], rows)])
    scalars = Scalars(scope)
    items: list[tuple[str, Expr]] = []
    try:
        for item in _written_out(node, bound):
            if item.is_star:
                items += scope.star(item.table if isinstance(item, exp.Column) else "", item)
            else:
                items.append((output_name(item), scalars.bind(item.unalias())))
        where = node.args.get("where")
        relation = rows.relation if where is None else Filter(rows.relation, scalars.boolean(where.this))
        return project(Protected(relation, rows.columns), items)
    except Error:
        return None


def _written_out(node: exp.Select, bound: list[tuple[str, Bound]]) -> list[exp.Expr]:
    """Return the items of a SELECT, with stars that have EXCLUDE and the like written out."""
    sources = [(alias, source) for alias, source in bound if isinstance(source, Released)]
    return [
        part for item in node.expressions for part in (written_out(item, sources, ()) if is_changed(item) else [item])
    ]


def _only_source(node: exp.Select, bound: list[tuple[str, Bound]]) -> Protected | None:
    if len(bound) != 1 or any(value for name, value in node.args.items() if name not in _CLAUSES):
        return None
    ((_, source),) = bound
    plain = not any(part.find(exp.AggFunc, exp.Window, exp.Subquery, exp.Select) for part in node.expressions)
    return labelled(source) if plain and isinstance(source, Released) else None


def labelled(source: Released) -> Protected | None:
    """Return the relation of a public table with its columns renamed to their labels in this query."""
    if source.rows is None or len(source.rows.columns) != len(source.columns):
        return None
    columns = (column for _, column in source.rows.columns)
    return Protected(source.rows.relation, tuple(zip(source.columns, columns, strict=True)))
