"""Names that PostgreSQL gives to outputs without an alias (count, ?column?, case): clients use them."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.binder.sql_words import function_word


def output_names(tree: exp.Query) -> list[str]:
    """Return the name of each output."""
    return [_output_name(select) for select in tree.selects]


def _output_name(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives to an output without an alias."""
    if isinstance(node, (exp.Alias, exp.Column)):
        return str(node.alias_or_name)
    if isinstance(node, (exp.Cast, exp.Paren, exp.Collate, exp.Bracket)):
        inner = _output_name(node.this)
        if inner == "?column?" and isinstance(node, exp.Cast):
            return node.to.sql("postgres").lower().split("(")[0]
        return inner
    if isinstance(node, exp.Dot):
        return _output_name(node.expression) if isinstance(node.expression, exp.Func) else str(node.name)
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Explode):
        return "unnest"
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Boolean):
        return "bool"
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Connector, exp.Binary)):
        postgres_names = {exp.CurrentVersion: "version", exp.ArrayAgg: "array_agg", exp.GroupConcat: "string_agg"}
        return postgres_names.get(type(node), function_word(node).lower())
    if isinstance(node, exp.Subquery):
        query = node.unnest()
        return _output_name(query.selects[0]) if isinstance(query, exp.Query) else "?column?"
    return "?column?"


def name_outputs(tree: exp.Query, names: list[str]) -> None:
    """Give these names, as aliases, to the outputs without an alias."""
    select: exp.Expr = tree
    while isinstance(select, (exp.SetOperation, exp.Subquery)):
        select = select.this
    if not isinstance(select, exp.Select):
        return
    for node, name in zip(list(select.expressions), names, strict=True):
        if not isinstance(node, (exp.Alias, exp.Column, exp.Star)) and not node.is_star:
            node.replace(exp.alias_(node.copy(), name, quoted=True))
