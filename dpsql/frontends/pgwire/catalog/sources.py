"""Functions in FROM, as subqueries with PostgreSQL's columns, and the system columns of relations."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.macros import PREFIX
from dpsql.frontends.pgwire.catalog.shape import PG_CATALOG, SCHEMAS, relations

SETS: dict[str, tuple[tuple[str, str], ...]] = {
    "generate_subscripts": (("generate_subscripts", "generate_subscripts"),),
    "generate_series": (("generate_series", ""),),
    "string_to_table": (("string_to_table", "string_to_array"),),
    "regexp_split_to_table": (("regexp_split_to_table", "regexp_split_to_array"),),
    "pg_partition_ancestors": (("relid", "no_numbers"),),
    "pg_partition_tree": tuple((name, "no_numbers") for name in ("relid", "parentrelid", "isleaf", "level")),
    "pg_options_to_table": (("option_name", "no_texts"), ("option_value", "no_texts")),
    "aclexplode": (
        ("grantor", "no_numbers"), ("grantee", "no_numbers"), ("privilege_type", "no_texts"), ("is_grantable", "no_texts"),
    ),
    "json_array_elements": (("value", "json_elements"),),
    "json_array_elements_text": (("value", "json_texts"),),
    "json_each": (("key", "json_keys"), ("value", "json_values")),
    "json_each_text": (("key", "json_keys"), ("value", "json_value_texts")),
    "json_object_keys": (("json_object_keys", "json_keys"),),
    "_pg_expandarray": (("x", "unnested"), ("n", "element_numbers")),
}  # fmt: skip
SETS |= {name.replace("json", "jsonb"): SETS[name] for name in list(SETS) if name.startswith("json_")}
"""Functions that return sets: the columns in FROM, each with the macro that makes the list of its values."""
RECORDS = {"_pg_expandarray": "expandarray"}
"""Sets of records, with the macro that makes the list of these outside of FROM."""
_SYSTEM = {"tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"}


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """Return the named relations that a tree reads, except its own CTEs."""
    ctes = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    return [
        table for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not (table.name.lower() in ctes and not table.db)
    ]  # fmt: skip


def catalog_schema(table: exp.Table) -> str | None:
    """Return the catalog schema of a relation, None if it is no catalog relation."""
    schema, name = table.db.lower(), table.name.lower()
    if schema in SCHEMAS:
        return schema
    return PG_CATALOG if not schema and (PG_CATALOG, name) in relations() else None


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a macro."""
    return exp.Anonymous(this=PREFIX + name, expressions=[argument.copy() for argument in arguments])


def unnested(values: exp.Expr) -> exp.Expr:
    """Return the elements of a list as rows."""
    return exp.Anonymous(this="unnest", expressions=[values])


_TOKEN = re.compile(r'\s*(?:([{},])|"((?:[^"\\]|\\.)*)"|((?:[^{},"\\]|\\.)+))')
"""A sign, a quoted item or a plain item of a literal array."""


MOST_DIMENSIONS = 6
"""Limit on the dimensions of an array, as PostgreSQL has it."""


def list_literal(text: str) -> exp.Expr:
    """Return the array that a literal such as {a,"b c",{d}} means. Raises catalog_array."""
    stack, position = [exp.Array(expressions=[])], 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None or (len(stack) == 1 and match[1] != "{") or len(stack) > MOST_DIMENSIONS + 1:
            raise refuse("catalog_array", value=text)
        position = match.end()
        if match[1] == "{":
            stack.append(exp.Array(expressions=[]))
        elif match[1] == "}":
            inner = stack.pop()
            stack[-1].append("expressions", inner)
        elif match[2] is not None:
            stack[-1].append("expressions", exp.Literal.string(_ESCAPE.sub(r"\1", match[2])))
        elif match[3] is not None and match[3].strip():
            stack[-1].append("expressions", _item(_ESCAPE.sub(r"\1", match[3].strip())))
    if len(stack) != 1 or len(stack[0].expressions) != 1:
        raise refuse("catalog_array", value=text)
    array: exp.Expr = stack[0].expressions[0]
    return array


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def _item(text: str) -> exp.Expr:
    if text.upper() == "NULL":
        return exp.Null()
    number = len(text) <= 20 and text.lstrip("-").isdecimal()  # of more digits Python makes no number
    return exp.Literal.number(int(text)) if number else exp.Literal.string(text)


def lists_of(name: str, arguments: list[exp.Expr]) -> list[tuple[str, exp.Expr]] | None:
    """Return the columns of a set-returning function, each as a list of its values; None for any other function."""
    if name not in SETS:
        return None
    return [
        (column, call(macro, *arguments) if macro else exp.Anonymous(this=name, expressions=[a.copy() for a in arguments]))
        for column, macro in SETS[name]
    ]  # fmt: skip


def function_rows(node: exp.Expr) -> exp.Expr:
    """Return a function in FROM, whose arguments are translated already, as a subquery. `node.meta["function"]` is its name and
    `node.meta["lists"]` its columns if it returns a set."""
    alias: exp.TableAlias | None = node.args.get("alias")
    named = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
    label = str(node.meta["function"])
    if isinstance(node, exp.Unnest):
        lists = [("unnest", value) for value in node.expressions]
        ordinality = node.args.get("offset")
        if isinstance(ordinality, exp.Identifier):
            named.append(ordinality.name)
    else:
        lists, ordinality = node.meta.get("lists") or [], node.args.get("ordinality")
    columns = [(name, unnested(values.copy())) for name, values in lists] or [(label, node.this.copy())]
    if len(columns) == 1 and alias is not None and alias.name and columns[0][0] == label:
        columns = [(alias.name, columns[0][1])]  # the alias names the only column, too
    if ordinality:
        sizes = [exp.Anonymous(this="len", expressions=[values.copy()]) for _, values in lists]
        most: exp.Expr = exp.Anonymous(this="greatest", expressions=sizes) if sizes else exp.Literal.number(1)
        counted = exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), most])
        columns.append(("ordinality", unnested(counted)))
    if len(named) > len(columns):
        raise refuse(
            "catalog_columns", name=alias.name if alias is not None else label, has=len(columns), wanted=len(named)
        )
    names = named + [name for name, _ in columns[len(named) :]]
    rows = exp.select(*(exp.alias_(value, name, quoted=True) for name, (_, value) in zip(names, columns, strict=True)))
    inner = rows.subquery()
    inner.set(
        "alias",
        exp.TableAlias(this=exp.to_identifier(alias.name if alias is not None and alias.name else label, quoted=True)),
    )
    return inner


def plain_laterals(tree: exp.Expr) -> None:
    """Replace LATERAL f(x) by f(x) in FROM, which may read the sources before it anyway."""
    for lateral in list(tree.find_all(exp.Lateral)):
        source, alias = lateral.this, lateral.args.get("alias")
        if isinstance(source, exp.Func) and not isinstance(source, exp.Unnest):
            source = exp.Table(this=source, ordinality=lateral.args.get("ordinality"))
        source.set("alias", alias)
        lateral.replace(source)


def replace_system_columns(tree: exp.Expr) -> None:
    """Replace tableoid, xmin and the like of relations by their values: no row is ever changed here."""
    for column in list(tree.find_all(exp.Column)):
        if column.name in _SYSTEM and not column.this.quoted:
            relation = relation_of(column)
            if relation is None:
                continue
            oid = relations()[relation.db or PG_CATALOG, relation.name].oid
            value = {"tableoid": str(oid), "xmin": "1"}.get(column.name, "0")
            literal = exp.Literal.string("(0,1)") if column.name == "ctid" else exp.Literal.number(value)
            number = exp.cast(literal, exp.DataType.build("oid", dialect="postgres", udt=True))
            constant = literal if column.name == "ctid" else number
            is_output = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
            column.replace(exp.alias_(constant, column.name, quoted=True) if is_output else constant)


def relation_of(column: exp.Column) -> exp.Table | None:
    """Return the catalog relation in whose scope a column stands, by its qualifier or as the first one; None if it is of another
    source."""
    select: exp.Expr | None = column.find_ancestor(exp.Select)
    while select is not None:
        first = select.args.get("from_")
        sources = [] if first is None else [first.this, *(join.this for join in select.args.get("joins") or ())]
        for source in sources:
            if column.table and source.alias_or_name != column.table:
                continue
            is_relation = isinstance(source, exp.Table) and (source.db or PG_CATALOG, source.name) in relations()
            return source if is_relation else None
        select = select.find_ancestor(exp.Select)
    return None
