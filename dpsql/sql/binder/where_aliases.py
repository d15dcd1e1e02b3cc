"""Aliases of the SELECT list in WHERE, replaced by the items' expressions as in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.scope import Scope
from dpsql.sql.parse import place

MOST_WRITTEN = 20_000
"""Largest number of nodes written in place of aliases in one WHERE."""


def where_written_out(node: exp.Select, scope: Scope) -> exp.Where | None:
    """Return WHERE with aliases of the SELECT list replaced by the expressions that they name; columns of FROM take precedence.

    Refuses (aggregate_in_where) an alias of an aggregate or a window, which is computed after WHERE, and (heavy_expression)
    aliases that would be replaced by more than `MOST_WRITTEN` nodes.
    """
    where: exp.Where | None = node.args.get("where")
    outputs = {item.alias.lower(): item.this for item in node.expressions if isinstance(item, exp.Alias) and item.alias}
    if where is None or not outputs:
        return where
    named = [column for column in _own_columns(where) if column.name.lower() in outputs and not scope.has(column)]
    if not named:
        return where
    if sum(sum(1 for _ in outputs[column.name.lower()].walk()) for column in named) > MOST_WRITTEN:
        raise refuse("heavy_expression", position=place(named[0]))
    positions = {place(column) for column in named}
    written: exp.Where = where.copy()
    for column in list(_own_columns(written)):
        if column.name.lower() not in outputs or place(column) not in positions:
            continue
        output = outputs[column.name.lower()]
        if has_aggregate(output) or output.find(exp.Window):
            raise refuse("aggregate_in_where", name=column.name, position=place(column))
        column.replace(exp.Paren(this=output.copy()))
    return written


def _own_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns that are named without a table, outside of subqueries."""
    if isinstance(node, exp.Column):
        if not node.table and not isinstance(node.this, exp.Star):
            yield node
        return
    for part in node.iter_expressions():
        if not isinstance(part, (exp.Select, exp.SetOperation)):
            yield from _own_columns(part)
