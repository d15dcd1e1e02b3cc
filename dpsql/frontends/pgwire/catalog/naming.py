"""Names that PostgreSQL gives to outputs without an alias (count, ?column?, case), which clients use, and types that are seen in
a text."""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from dpsql.frontends.pgwire.catalog.shape import SQL_NAMES, relations
from dpsql.sql.binder.scope import function_word


def output_names(tree: exp.Query) -> list[str]:
    """Return the name of each output."""
    return [output_name(select) for select in tree.selects]


def called(node: exp.Expr) -> str:
    """Return the name by which a function is called in the text, in lower case."""
    written = node.meta.get("word")
    if written is None and isinstance(node, exp.Func):
        written = node.name if isinstance(node, exp.Anonymous) else function_word(node)
    return str(written or "").lower()


def output_name(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives to an output without an alias."""
    return _named(node)[0]


_UNNAMED = ("?column?", 0)


def _named(node: exp.Expr) -> tuple[str, int]:
    """Return the name of an output and how strong it is: 2 that of a column or function, 1 that of a type or CASE, 0 none."""
    if isinstance(node, (exp.Alias, exp.Column)):
        return str(node.alias_or_name), 2
    if isinstance(node, exp.Cast):
        inner = _named(node.this)
        return inner if inner[1] == 2 else (internal_name(node.to), 1)
    if isinstance(node, (exp.Paren, exp.Collate, exp.Bracket, exp.Filter, exp.Window, exp.WithinGroup)):
        return _named(node.this)
    if isinstance(node, exp.Dot):
        return _named(node.expression) if isinstance(node.expression, exp.Func) else (str(node.name), 2)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        inner = _UNNAMED if default is None else _named(default)
        return inner if inner[1] == 2 else ("case", 1)
    if isinstance(node, (exp.Array, exp.Tuple)):
        return "array" if isinstance(node, exp.Array) else "row", 2
    if isinstance(node, exp.AtTimeZone):
        return "timezone", 2
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "btrim"), 2
    if node.meta.get("word") and not isinstance(node, exp.Connector):
        return called(node), 2
    if isinstance(node, exp.Explode):
        return "unnest", 2
    if isinstance(node, exp.Subquery):
        query = node.unnest()
        return _named(query.selects[0]) if isinstance(query, exp.Query) and query.selects else _UNNAMED
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Connector, exp.Binary, exp.Interval)):
        return _OWN_WORDS.get(type(node)) or called(node), 2
    return ("interval", 1) if isinstance(node, exp.Interval) else _UNNAMED


_OWN_WORDS: dict[type[exp.Expr], str] = {
    exp.CurrentVersion: "version", exp.ArrayAgg: "array_agg", exp.GroupConcat: "string_agg", exp.StrPosition: "position",
    exp.JSONArrayAgg: "json_agg",
}  # fmt: skip


def internal_name(to: exp.Expr) -> str:
    """Return the name under which pg_type has a type: int4 for integer."""
    if isinstance(to, exp.ObjectIdentifier):
        return str(to.this).lower()
    kind = to.args.get("kind")
    text = ((kind if isinstance(kind, exp.Expr) else to).sql("postgres", comments=False)).lower()
    if text == '"char"':
        return "char"
    word = text.split("(")[0].split("[")[0].rpartition(".")[2].replace('"', "").strip()
    return _INTERNAL.get(word, word)


_INTERNAL = {sql: short for short, sql in SQL_NAMES.items()} | {
    "int": "int4", "char": "bpchar", "decimal": "numeric", "varchar": "varchar", "timestamp": "timestamp", "time": "time",
    "timestamp with time zone": "timestamptz", "double": "float8", "float": "float8",
}  # fmt: skip


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


@cache
def column_types() -> dict[str, set[str]]:
    """Return the types that catalog columns of each name have."""
    types: dict[str, set[str]] = {}
    for relation in relations().values():
        for name, (type_, _) in relation.columns.items():
            types.setdefault(name, set()).add(type_)
    return types


def is_of(node: exp.Expr, types: set[str]) -> bool:
    """Return whether a value visibly has one of these types: a column of the catalogs, whose name is no alias in the question."""
    node = node.unnest()
    if not isinstance(node, exp.Column):
        return False
    outputs = node.root().find_all(exp.Alias)
    aliases = {
        output.alias
        for output in outputs
        if not (isinstance(output.this, exp.Column) and output.this.name == output.alias)
    }
    return node.name not in aliases and column_types().get(node.name, {""}) <= types
