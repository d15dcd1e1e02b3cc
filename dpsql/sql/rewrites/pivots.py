"""PIVOT in FROM, rewritten as an equivalent SELECT: an aggregate with a FILTER for each listed value.

`source PIVOT (SUM(x) FOR k IN ('a', 'b') GROUP BY g)` is
`(SELECT g, SUM(x) FILTER (WHERE k = 'a') AS a, SUM(x) FILTER (WHERE k = 'b') AS b FROM source GROUP BY g)`. Without GROUP BY,
rows are grouped by the columns of the source that are neither in an aggregate nor after FOR, so its columns must be known from
the text. Names of columns are DuckDB's. Values that are not listed belong to no column, as in SQL.
`(PIVOT source ON k IN ('a', 'b') USING SUM(x) GROUP BY g)` is the same; without USING it counts rows, and without IN the
values are those that the policy lists.

UNPIVOT in FROM, rewritten as an equivalent UNION ALL: a SELECT for each listed column.

`t UNPIVOT (v FOR k IN (a, b))`, and `(UNPIVOT t ON a, b INTO NAME k VALUE v)`, is
`(SELECT * EXCLUDE (a, b), 'a' AS k, a AS v FROM t WHERE a IS NOT NULL UNION ALL
  SELECT * EXCLUDE (a, b), 'b' AS k, b AS v FROM t WHERE b IS NOT NULL)`; INCLUDE NULLS leaves the conditions out. A row of `t`
becomes at most one row for each listed column; the bound on rows per unit of UNION ALL counts these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.sql.lexer import place

# --- PIVOT ------------------------------------------------------------------------------------------------------------

_NAMING = ("columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming")
"""Slots in which the parser stores names of columns; they are ignored, because names are derived from the listed values."""
_CLAUSE = ("expressions", "fields", "group", "alias", *_NAMING)
_STATEMENT = ("this", "expressions", "using", "group")

Listed = Callable[[exp.Expr, exp.Column], Sequence[exp.Expr]]


def without_pivots(tree: exp.Query, listed: Listed | None = None) -> exp.Query:
    """Return the tree with a SELECT in place of each PIVOT. Refuses (pivot) unsupported forms of PIVOT.

    `listed`: returns the values of a column of a source, for `PIVOT source ON k`, which is left as it is without it."""
    for pivot in list(tree.find_all(exp.Pivot)):
        source = pivot.parent
        if isinstance(source, (exp.Subquery, exp.CTE)) and source.this is pivot:
            keys = [key for key in pivot.expressions if isinstance(key, exp.Column)]
            if listed is None and keys:
                continue
            for key in keys:
                key.replace(exp.In(this=key.copy(), expressions=list(listed(pivot.this, key)) if listed else []))
            _replace_statement(pivot)
        elif isinstance(source, (exp.Table, exp.Subquery)) and isinstance(source.parent, exp.From):
            _replace(source, pivot)
        else:
            raise _refusal("pivot", pivot, "it stands behind the first table of FROM alone")
    return tree


def _replace_statement(pivot: exp.Pivot) -> None:
    """Replace `PIVOT source ON k IN ('a', 'b') USING SUM(x) GROUP BY g`, in brackets or as a CTE."""
    _check_parts("pivot", pivot, _STATEMENT)
    source = pivot.this
    if not isinstance(source, (exp.Table, exp.Subquery)) or source.args.get("pivots"):
        raise _refusal("pivot", pivot, "one table or subquery stands before ON")
    aggregates = pivot.args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]
    clause = exp.Pivot(expressions=aggregates, fields=pivot.expressions, group=pivot.args.get("group"))
    pivot.replace(exp.Select(expressions=[exp.Star()], from_=exp.From(this=source)))
    source.set("pivots", [clause])
    _replace(source, clause)


def _replace(source: exp.Table | exp.Subquery, pivot: exp.Pivot) -> None:
    if len(source.args["pivots"]) != 1:
        raise _refusal("pivot", pivot, "it is a second PIVOT beside another")
    _check_parts("pivot", pivot, _CLAUSE)
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not isinstance(fields[0].this, exp.Column):
        raise _refusal(
            "pivot", pivot, "one column stands behind FOR or ON, with a list of values, as in k IN ('a', 'b')"
        )
    key, listed = fields[0].this, fields[0].expressions
    aggregates = pivot.expressions
    if not all(isinstance(item.unalias(), exp.AggFunc) for item in aggregates):
        raise _refusal("pivot", pivot, "aggregates alone stand before FOR")
    if len(aggregates) > 1 and not all(isinstance(item, exp.Alias) for item in aggregates):
        raise _refusal("pivot", pivot, "several aggregates need names, as in SUM(x) AS total")
    items = [
        exp.alias_(_filtered(item.unalias(), key, value), _named(name, item), quoted=True)
        for value, name in map(_value, listed) for item in aggregates
    ]  # fmt: skip
    if not items:
        raise _refusal("pivot", pivot, "values are listed one by one")
    groups = _groups(source, pivot, {key.name.lower(), *_columns(aggregates)})
    alias = pivot.args.get("alias")
    source.set("pivots", None)
    select = exp.Select(expressions=[*(group.copy() for group in groups), *items])
    if groups:
        select.set("group", exp.Group(expressions=groups))
    source.replace(exp.Subquery(this=select, alias=alias))
    select.set("from_", exp.From(this=source))


def _groups(source: exp.Table | exp.Subquery, pivot: exp.Pivot, used: set[str]) -> list[exp.Expr]:
    """Return the columns that group the rows of a PIVOT. `used`: the names of all other columns, in lower case."""
    group = pivot.args.get("group")
    if group is not None:
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise _refusal("pivot", pivot, "its GROUP BY lists columns alone")
        return list(group.expressions)
    inner = source.this.unnest() if isinstance(source, exp.Subquery) else None
    names = [item.alias_or_name for item in inner.expressions] if isinstance(inner, exp.Select) else []
    if not names or not all(names) or any(item.is_star for item in getattr(inner, "expressions", ())):
        raise _refusal("pivot", pivot, "which columns group its rows is not said")
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
        raise _refusal("pivot", item, "literal values stand behind IN, texts in quotes")
    if isinstance(item, exp.PivotAlias):
        return value, item.args["alias"].name
    if isinstance(value, exp.Null):
        return value, "NULL"
    return value, value.name if isinstance(value, exp.Literal) else value.sql("duckdb").lower()


def _named(name: str, aggregate: exp.Expr) -> str:
    return f"{name}_{aggregate.alias}" if isinstance(aggregate, exp.Alias) else name


# --- UNPIVOT ----------------------------------------------------------------------------------------------------------

MOST_COLUMNS = 50
_LABEL = "column's name"
"""Key of the `meta` of a literal that is the name of a column as the question writes it."""
_UNPIVOT = ("this", "expressions", "fields", "alias", "unpivot", "include_nulls", "into")


def without_unpivots(tree: exp.Query) -> exp.Query:
    """Return the tree with a UNION ALL in place of each UNPIVOT. Refuses (unpivot) unsupported forms of UNPIVOT."""
    for pivot in list(tree.find_all(exp.Pivot)):
        if not pivot.args.get("unpivot"):
            continue
        _check_parts("unpivot", pivot, _UNPIVOT)
        source = pivot.parent
        if isinstance(source, (exp.Subquery, exp.CTE)) and source.this is pivot:
            _stack_statement(source, pivot)
        elif isinstance(source, (exp.Table, exp.Subquery)) and source.args.get("pivots") == [pivot]:
            _stack_clause(source, pivot)
        else:
            raise _refusal("unpivot", pivot, "it stands behind one table or subquery, without a second one beside it")
    return tree


def with_declared_labels(select: exp.Select, labels: Iterable[str]) -> exp.Select:
    """Return a SELECT that `without_unpivots` wrote with the column's name as its source writes it, `labels`, and not as the
    question does; any other SELECT unchanged."""
    written = [item.this for item in select.expressions if isinstance(item, exp.Alias) and item.this.meta_get(_LABEL)]
    if not written:
        return select
    declared = {label.lower(): label for label in labels}
    select = select.copy()
    for item in select.expressions:
        if item.unalias().meta_get(_LABEL):
            item.set("this", exp.Literal.string(declared.get(item.this.name.lower(), item.this.name)))
    return select


def _stack_clause(source: exp.Table | exp.Subquery, pivot: exp.Pivot) -> None:
    """Replace `source UNPIVOT (v FOR k IN (a, b AS 'name'))`."""
    fields, values = pivot.args.get("fields") or [], pivot.expressions
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or len(values) != 1:
        raise _refusal("unpivot", pivot, "one column of values stands before FOR, one of names behind it")
    alias = pivot.args.get("alias")
    source.set("pivots", None)
    rows = _stacked(pivot, source.copy(), fields[0].expressions, fields[0].this.name, values[0].name)
    source.replace(exp.Subquery(this=rows, alias=alias))


def _stack_statement(source: exp.Subquery | exp.CTE, pivot: exp.Pivot) -> None:
    """Replace `(UNPIVOT source ON a, b INTO NAME k VALUE v)`; without INTO the columns are called name and value."""
    into = pivot.args.get("into")
    values = into.expressions if into is not None else [exp.column("value")]
    if len(values) != 1:
        raise _refusal("unpivot", pivot, "one column of values stands behind VALUE")
    name = into.this.name if into is not None else "name"
    source.set("this", _stacked(pivot, pivot.this, pivot.expressions, name, values[0].name))


def _stacked(pivot: exp.Pivot, source: exp.Expr, listed: list[exp.Expr], name: str, value: str) -> exp.Query:
    """Return the rows of `source` once for each listed column, with that column's label as `name` and its content as `value`."""
    columns = [_stacked_column(pivot, item) for item in listed]
    if not columns or len(columns) > MOST_COLUMNS:
        raise _refusal("unpivot", pivot, f"1 to {MOST_COLUMNS} columns are listed one by one")
    kept_columns = exp.Star(except_=[exp.to_identifier(column.name, quoted=True) for column, _ in columns])
    rows: exp.Query | None = None
    for column, label in columns:
        name_of_column = exp.Literal.string(label or column.name)
        if not label:
            name_of_column.meta[_LABEL] = True
        items = [
            kept_columns.copy(),
            exp.alias_(name_of_column, name, quoted=True),
            exp.alias_(column.copy(), value, quoted=True),
        ]
        select = exp.Select(expressions=items, from_=exp.From(this=source.copy()))
        if not pivot.args.get("include_nulls"):
            select.set("where", exp.Where(this=exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))))
        rows = select if rows is None else exp.Union(this=rows, expression=select, distinct=False)
    assert rows is not None
    return rows


def _stacked_column(pivot: exp.Pivot, item: exp.Expr) -> tuple[exp.Column, str]:
    """Return a listed column and the label that the text gives it, "" for none."""
    column, label = item, ""
    if isinstance(item, (exp.PivotAlias, exp.Alias)):
        column, label = item.this, item.args["alias"].name
    if not isinstance(column, exp.Column) or column.table or isinstance(column.this, exp.Star):
        raise _refusal("unpivot", pivot, "names of columns are listed one by one")
    return column, label


# --- both -------------------------------------------------------------------------------------------------------------


def _check_parts(slug: str, pivot: exp.Pivot, understood: Sequence[str]) -> None:
    """Refuse (pivot, unpivot) parts other than `understood`, which would have no effect."""
    more = [name for name, part in pivot.args.items() if part and name not in understood]
    if more:
        raise _refusal(slug, pivot, f"it has {more[0].strip('_').replace('_', ' ').upper()}")


def listed_values(values: Sequence[Any] | None, node: exp.Expr) -> list[exp.Expr]:
    """Return a column's values as PIVOT lists them, sorted by their texts. Refuses (pivot) an unknown or a large set."""
    present: list[Any] = sorted((value for value in values or () if value is not None), key=str)
    if not present or len(present) > MOST_COLUMNS:
        reason = (
            f"its column has no list of at most {MOST_COLUMNS} values in the policy; write them, as in k IN ('a', 'b')"
        )
        raise _refusal("pivot", node, reason)
    return [exp.Literal.string(str(v)) if isinstance(v, date) else exp.convert(v) for v in present]


def _refusal(slug: str, node: exp.Expr, reason: str) -> Error:
    return refuse(slug, reason=reason, position=place(node))
