"""Comparisons of rows, `(a, b) IN ((1, 2), (3, 4))`, and of texts with several patterns, rewritten as plain comparisons.

`(a, b) = (1, 2)` is `a = 1 AND b = 2`, and IN is the OR of these, also where a value is NULL (PostgreSQL 16 documentation, 9.25.1
and 9.25.5). `(a, b) IN (SELECT x, y ...)` is `EXISTS (SELECT 1 FROM (SELECT x, y ...) AS q WHERE q.x = a AND q.y = b)` where only
rows that satisfy it are kept; elsewhere the two differ, because EXISTS is FALSE where IN is NULL. `x LIKE ANY ('a%', 'b%')` is
`x LIKE 'a%' OR x LIKE 'b%'`; ALL becomes AND.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.sql.reserved_names import OWN_NAMES

MOST_COMPARISONS = 1_000
COLUMN = f"{OWN_NAMES}c"
"""Prefix of the column names of a subquery in IN that is compared with a row: no query can have such names."""
_Pattern = (exp.Like, exp.ILike)
_KEEPING = (exp.And, exp.Or, exp.Paren)


def with_plain_comparisons(tree: exp.Query) -> exp.Query:
    """Return the tree with comparisons of rows and of lists of patterns replaced by plain comparisons."""
    for node in list(tree.find_all(exp.In, exp.EQ, exp.NEQ, *_Pattern)):
        if isinstance(node, _Pattern):
            _replace_patterns(node)
        elif (row := _row(node.this)) is not None:
            _replace_rows(node, row)
    return tree


def _row(node: exp.Expr | None) -> list[exp.Expr] | None:
    """Return the values of a row of two or more, `(a, b)` or `ROW(a, b)`; None for any other expression."""
    bare = node.unnest() if node is not None else None
    written = isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and str(bare.this).upper() == "ROW")
    return list(bare.expressions) if bare is not None and written and len(bare.expressions) > 1 else None


def _replace_rows(node: exp.Expr, row: list[exp.Expr]) -> None:
    if isinstance(node, (exp.EQ, exp.NEQ)):
        other = _row(node.expression)
        if other is not None:
            equal = _equal(node, row, other)
            node.replace(exp.Paren(this=equal if isinstance(node, exp.EQ) else exp.Not(this=exp.Paren(this=equal))))
        return
    if node.args.get("query") is not None:
        _replace_subquery(node, row)
        return
    listed = node.expressions
    if len(listed) == 1 and isinstance(listed[0], exp.Values):
        listed = listed[0].expressions
    rows = [_row(item) for item in listed]
    if not rows or any(values is None for values in rows):
        return
    if len(rows) * len(row) > MOST_COMPARISONS:
        raise refuse("clause", what=f"IN with more than {MOST_COMPARISONS} values in its rows", position=_place(node))
    alternatives = [_equal(node, row, values) for values in rows if values is not None]
    node.replace(exp.Paren(this=_joined(exp.Or, alternatives)))


def _replace_subquery(node: exp.Expr, row: list[exp.Expr]) -> None:
    query = node.args["query"]
    if not _keeps_rows(node):
        reason = "rows of several values are compared with it under NOT, or outside a condition"
        hint = "write NOT EXISTS (SELECT 1 FROM ... WHERE x = a AND y = b) in place of (a, b) NOT IN (SELECT x, y FROM ...)"
        raise refuse("semi_join", reason=reason, way=hint, position=_place(node))
    selected = query.this.unnest().selects if isinstance(query, exp.Subquery) else []
    if not any(item.is_star for item in selected) and len(selected) != len(row):
        _refuse_lengths(node, len(row), len(selected))
    names = [f"{COLUMN}{number}" for number in range(len(row))]
    compared = [
        exp.EQ(this=exp.column(exp.to_identifier(name, quoted=True)), expression=value.copy())
        for name, value in zip(names, row, strict=True)
    ]
    alias = exp.TableAlias(
        this=exp.to_identifier(f"listed rows {COLUMN}", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    source = exp.Subquery(this=query.this, alias=alias)
    inner = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=source))
    inner.set("where", exp.Where(this=_joined(exp.And, compared)))
    node.replace(exp.Exists(this=inner))


def _keeps_rows(node: exp.Expr) -> bool:
    """Return whether only rows that satisfy `node` are kept: in WHERE, HAVING or QUALIFY, inside only AND, OR and brackets."""
    above = node.parent
    while isinstance(above, _KEEPING):
        above = above.parent
    return isinstance(above, (exp.Where, exp.Having, exp.Qualify))


def _replace_patterns(node: exp.Expr) -> None:
    every = isinstance(node.expression, exp.All)
    if not isinstance(node.expression, (exp.Any, exp.All)):
        return
    listed = node.expression.this.unnest()
    patterns = listed.expressions if isinstance(listed, (exp.Tuple, exp.Array)) else [listed]
    if not patterns or len(patterns) > MOST_COMPARISONS or not all(isinstance(p, exp.Literal) for p in patterns):
        return
    negated = bool(node.args.get("negate"))
    plain = [type(node)(this=node.this.copy(), expression=pattern) for pattern in patterns]
    compared = [exp.Not(this=comparison) if negated else comparison for comparison in plain]
    node.replace(exp.Paren(this=_joined(exp.And if every else exp.Or, compared)))


def _equal(node: exp.Expr, row: Sequence[exp.Expr], other: Sequence[exp.Expr]) -> exp.Expr:
    if len(row) != len(other):
        _refuse_lengths(node, len(row), len(other))
    return _joined(exp.And, [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in zip(row, other, strict=True)])


def _joined(connector: type[exp.Connector], parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the parts connected in halves, so that 1,000 of them are nested ten levels deep."""
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    sides = [_joined(connector, half) for half in (parts[:middle], parts[middle:])]
    left, right = (exp.Paren(this=side) if isinstance(side, exp.Connector) else side for side in sides)
    return connector(this=left, expression=right)


def _refuse_lengths(node: exp.Expr, left_length: int, right_length: int) -> None:
    detail = f"a row of {left_length} values is compared with one of {right_length}"
    raise refuse("syntax", detail=detail, position=_place(node))


def _place(node: exp.Expr) -> int | None:
    starts = [part.meta["start"] + 1 for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)
