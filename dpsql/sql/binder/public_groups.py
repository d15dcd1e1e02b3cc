"""Refusals of GROUP BY over results and public tables that DuckDB would raise: raised earlier, and with the position."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.parse import place


def check_public_groups(node: exp.Select) -> None:
    """Refuse a GROUP BY position that does not exist (group_position). If GROUP BY has columns and positions alone, or there is
    none but an aggregate, also refuse a column of the list that is not grouped (not_grouped)."""
    group = node.args.get("group")
    if group is None:
        if node.args.get("from_") is not None and any(has_aggregate(item) for item in node.expressions):
            _check_grouped(node.expressions, set())
        return
    if any(group.args.get(name) for name in ("all", "rollup", "cube", "grouping_sets", "totals")):
        return
    names: set[str] = set()
    for part in group.expressions:
        item = part
        if isinstance(part, exp.Literal) and not part.is_string and part.name.isdecimal():
            if not 1 <= int(part.name) <= len(node.expressions):
                most = len(node.expressions)
                raise refuse("group_position", number=part.name, most=most, position=place(part))
            item = node.expressions[int(part.name) - 1]
        if not isinstance(item.unalias(), exp.Column):
            return  # an expression, which the list may repeat in a different form
        names |= {item.unalias().name.lower(), item.alias.lower() or item.unalias().name.lower()}
    aliased = {item.alias.lower(): item.unalias() for item in node.expressions if item.alias}
    if any(not isinstance(aliased.get(name, exp.column(name)), exp.Column) for name in names):
        return
    names |= {aliased[name].name.lower() for name in names if name in aliased}
    _check_grouped(node.expressions, names)


def _check_grouped(items: Sequence[exp.Expr], names: set[str]) -> None:
    for item in items:
        bare = item.unalias()
        if isinstance(bare, exp.Column) and not isinstance(bare.this, exp.Star) and bare.name.lower() not in names:
            raise refuse("not_grouped", name=bare.name, position=place(bare))
