"""UNPIVOT in FROM, rewritten as an equivalent UNION ALL: a SELECT for each listed column.

`t UNPIVOT (v FOR k IN (a, b))`, and `(UNPIVOT t ON a, b INTO NAME k VALUE v)`, is
`(SELECT * EXCLUDE (a, b), 'a' AS k, a AS v FROM t WHERE a IS NOT NULL UNION ALL
  SELECT * EXCLUDE (a, b), 'b' AS k, b AS v FROM t WHERE b IS NOT NULL)`; INCLUDE NULLS leaves the conditions out. A row of `t`
becomes at most one row for each listed column; the bound on rows per unit of UNION ALL counts these.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse

MOST_COLUMNS = 50
_LABEL = "column's name"
"""Key of the `meta` of a literal that is the name of a column as the question writes it."""
_PARTS = ("this", "expressions", "fields", "alias", "unpivot", "include_nulls", "into")


def without_unpivots(tree: exp.Query) -> exp.Query:
    """Return the tree with a UNION ALL in place of each UNPIVOT. Refuses (unpivot) unsupported forms of UNPIVOT."""
    for pivot in list(tree.find_all(exp.Pivot)):
        if not pivot.args.get("unpivot"):
            continue
        more = [name for name, part in pivot.args.items() if part and name not in _PARTS]
        if more:
            raise _refusal(pivot, f"it has {more[0].strip('_').replace('_', ' ').upper()}")
        source = pivot.parent
        if isinstance(source, (exp.Subquery, exp.CTE)) and source.this is pivot:
            _replace_statement(source, pivot)
        elif isinstance(source, (exp.Table, exp.Subquery)) and source.args.get("pivots") == [pivot]:
            _replace_clause(source, pivot)
        else:
            raise _refusal(pivot, "it stands behind one table or subquery, without a second one beside it")
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


def _replace_clause(source: exp.Table | exp.Subquery, pivot: exp.Pivot) -> None:
    """Replace `source UNPIVOT (v FOR k IN (a, b AS 'name'))`."""
    fields, values = pivot.args.get("fields") or [], pivot.expressions
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or len(values) != 1:
        raise _refusal(pivot, "one column of values stands before FOR, one of names behind it")
    alias = pivot.args.get("alias")
    source.set("pivots", None)
    rows = _stacked(pivot, source.copy(), fields[0].expressions, fields[0].this.name, values[0].name)
    source.replace(exp.Subquery(this=rows, alias=alias))


def _replace_statement(source: exp.Subquery | exp.CTE, pivot: exp.Pivot) -> None:
    """Replace `(UNPIVOT source ON a, b INTO NAME k VALUE v)`; without INTO the columns are called name and value."""
    into = pivot.args.get("into")
    values = into.expressions if into is not None else [exp.column("value")]
    if len(values) != 1:
        raise _refusal(pivot, "one column of values stands behind VALUE")
    name = into.this.name if into is not None else "name"
    source.set("this", _stacked(pivot, pivot.this, pivot.expressions, name, values[0].name))


def _stacked(pivot: exp.Pivot, source: exp.Expr, listed: list[exp.Expr], name: str, value: str) -> exp.Query:
    """Return the rows of `source` once for each listed column, with that column's label as `name` and its content as `value`."""
    columns = [_listed(pivot, item) for item in listed]
    if not columns or len(columns) > MOST_COLUMNS:
        raise _refusal(pivot, f"1 to {MOST_COLUMNS} columns are listed one by one")
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


def _listed(pivot: exp.Pivot, item: exp.Expr) -> tuple[exp.Column, str]:
    """Return a listed column and the label that the text gives it, "" for none."""
    column, label = item, ""
    if isinstance(item, (exp.PivotAlias, exp.Alias)):
        column, label = item.this, item.args["alias"].name
    if not isinstance(column, exp.Column) or column.table or isinstance(column.this, exp.Star):
        raise _refusal(pivot, "names of columns are listed one by one")
    return column, label


def _refusal(node: exp.Expr, reason: str) -> Error:
    starts = [part.meta["start"] + 1 for part in node.walk() if "start" in part.meta]
    return refuse("unpivot", reason=reason, position=min(starts, default=None))
