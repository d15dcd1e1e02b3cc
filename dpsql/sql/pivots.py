"""PIVOT in FROM, rewritten as an equivalent SELECT: an aggregate with a FILTER for each listed value.

`source PIVOT (SUM(x) FOR k IN ('a', 'b') GROUP BY g)` is
`(SELECT g, SUM(x) FILTER (WHERE k = 'a') AS a, SUM(x) FILTER (WHERE k = 'b') AS b FROM source GROUP BY g)`. Without GROUP BY,
rows are grouped by the columns of the source that are neither in an aggregate nor after FOR, so its columns must be known from
the text. Names of columns are DuckDB's. Values that are not listed belong to no column, as in SQL.
`(PIVOT source ON k IN ('a', 'b') USING SUM(x) GROUP BY g)` is the same; without USING it counts rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse

_NAMING = ("columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming")
"""Slots in which the parser stores names of columns; they are ignored, because names are derived from the listed values."""
_CLAUSE = ("expressions", "fields", "group", "alias", *_NAMING)
_STATEMENT = ("this", "expressions", "using", "group")


def without_pivots(tree: exp.Query) -> exp.Query:
    """Return the tree with a SELECT in place of each PIVOT. Refuses (pivot) unsupported forms of PIVOT."""
    for pivot in list(tree.find_all(exp.Pivot)):
        source = pivot.parent
        if isinstance(source, (exp.Subquery, exp.CTE)) and source.this is pivot:
            _replace_statement(pivot)
        elif isinstance(source, (exp.Table, exp.Subquery)) and isinstance(source.parent, exp.From):
            _replace(source, pivot)
        else:
            raise _refusal(pivot, "it stands behind the first table of FROM alone")
    return tree


def _replace_statement(pivot: exp.Pivot) -> None:
    """Replace `PIVOT source ON k IN ('a', 'b') USING SUM(x) GROUP BY g`, in brackets or as a CTE."""
    _check_parts(pivot, _STATEMENT)
    source = pivot.this
    if not isinstance(source, (exp.Table, exp.Subquery)) or source.args.get("pivots"):
        raise _refusal(pivot, "one table or subquery stands before ON")
    aggregates = pivot.args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]
    clause = exp.Pivot(expressions=aggregates, fields=pivot.expressions, group=pivot.args.get("group"))
    pivot.replace(exp.Select(expressions=[exp.Star()], from_=exp.From(this=source)))
    source.set("pivots", [clause])
    _replace(source, clause)


def _replace(source: exp.Table | exp.Subquery, pivot: exp.Pivot) -> None:
    if len(source.args["pivots"]) != 1:
        raise _refusal(pivot, "it is a second PIVOT beside another")
    _check_parts(pivot, _CLAUSE)
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not isinstance(fields[0].this, exp.Column):
        raise _refusal(pivot, "one column stands behind FOR or ON, with a list of values, as in k IN ('a', 'b')")
    key, listed = fields[0].this, fields[0].expressions
    aggregates = pivot.expressions
    if not all(isinstance(item.unalias(), exp.AggFunc) for item in aggregates):
        raise _refusal(pivot, "aggregates alone stand before FOR")
    if len(aggregates) > 1 and not all(isinstance(item, exp.Alias) for item in aggregates):
        raise _refusal(pivot, "several aggregates need names, as in SUM(x) AS total")
    items = [
        exp.alias_(_filtered(item.unalias(), key, value), _named(name, item), quoted=True)
        for value, name in map(_value, listed) for item in aggregates
    ]  # fmt: skip
    if not items:
        raise _refusal(pivot, "values are listed one by one")
    groups = _groups(source, pivot, {key.name.lower(), *_columns(aggregates)})
    alias = pivot.args.get("alias")
    source.set("pivots", None)
    select = exp.Select(expressions=[*(group.copy() for group in groups), *items])
    if groups:
        select.set("group", exp.Group(expressions=groups))
    source.replace(exp.Subquery(this=select, alias=alias))
    select.set("from_", exp.From(this=source))


def _check_parts(pivot: exp.Pivot, understood: Sequence[str]) -> None:
    """Refuse (pivot) a PIVOT with parts other than `understood`, which would have no effect."""
    more = [name for name, part in pivot.args.items() if part and name not in understood]
    if more:
        raise _refusal(pivot, f"it has {more[0].strip('_').replace('_', ' ').upper()}")


def _groups(source: exp.Table | exp.Subquery, pivot: exp.Pivot, used: set[str]) -> list[exp.Expr]:
    """Return the columns that group the rows of a PIVOT. `used`: the names of all other columns, in lower case."""
    group = pivot.args.get("group")
    if group is not None:
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise _refusal(pivot, "its GROUP BY lists columns alone")
        return list(group.expressions)
    inner = source.this.unnest() if isinstance(source, exp.Subquery) else None
    names = [item.alias_or_name for item in inner.expressions] if isinstance(inner, exp.Select) else []
    if not names or not all(names) or any(item.is_star for item in getattr(inner, "expressions", ())):
        raise _refusal(pivot, "which columns group its rows is not said")
    return [exp.column(name, quoted=True) for name in names if name.lower() not in used]


def _columns(aggregates: Sequence[exp.Expr]) -> set[str]:
    return {column.name.lower() for item in aggregates for column in item.find_all(exp.Column)}


def _filtered(aggregate: exp.Expr, key: exp.Column, value: exp.Expr) -> exp.Expr:
    compared = exp.NullSafeEQ if isinstance(value, exp.Null) else exp.EQ
    return exp.Filter(
        this=aggregate.copy(), expression=exp.Where(this=compared(this=key.copy(), expression=value.copy()))
    )


def _value(item: exp.Expr) -> tuple[exp.Expr, str]:
    """Return a listed value and the name of its column."""
    value = item.this if isinstance(item, exp.PivotAlias) else item
    bare = value.this if isinstance(value, exp.Neg) else value
    if not isinstance(bare, (exp.Literal, exp.Boolean, exp.Null)):
        raise _refusal(item, "literal values stand behind IN, texts in quotes")
    if isinstance(item, exp.PivotAlias):
        return value, item.args["alias"].name
    if isinstance(value, exp.Null):
        return value, "NULL"
    return value, value.name if isinstance(value, exp.Literal) else value.sql("duckdb").lower()


def _named(name: str, aggregate: exp.Expr) -> str:
    return f"{name}_{aggregate.alias}" if isinstance(aggregate, exp.Alias) else name


def _refusal(node: exp.Expr, reason: str) -> Error:
    starts = [part.meta["start"] + 1 for part in node.walk() if "start" in part.meta]
    return refuse("pivot", reason=reason, position=min(starts, default=None))
