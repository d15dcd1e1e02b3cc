"""The text of a remainder in which expressions without a value are NULL, so that a query that is charged is answered.

Whether a text is a number, a product fits its type or a divisor is 0 may not be known before numbers are released. In SQL such
a value is an error, which would come after the charge. So a statement that fails for a value is run again as rewritten by this
module. Nothing else changes, and a statement that does not fail is never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from dpsql.sql.parser import parse_text

DIALECT = "duckdb"
_WIDEST: dict[exp.DType, str] = {
    exp.DType.INT: "BIGINT", exp.DType.SMALLINT: "BIGINT", exp.DType.TINYINT: "BIGINT",
    exp.DType.FLOAT: "DOUBLE",
}  # fmt: skip
_MOST_DIGITS = 38
_TRIED = (exp.Binary, exp.Unary, exp.Func)
_UNTRIED = (exp.Paren, exp.Cast, exp.TryCast, exp.Try, exp.AggFunc, exp.Dot, exp.Array, exp.Alias, exp.Any, exp.All)
_WHOLES = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""Nodes around a function whose arguments are wrapped in TRY, but not the function itself."""
_UNTRIABLE = (exp.AggFunc, exp.Window, exp.Query, exp.Exists)
_AS_ROWS = (exp.From, exp.Join, exp.Lateral, exp.In, exp.Any, exp.All, exp.SetOperation, exp.Subquery)
"""Nodes in which a subquery stands for rows, not for one value."""


def total_text(sql: str, days: bool) -> str:
    """Return `sql` rewritten so that no value fails. Casts to integers become casts to 64 bits, and casts to decimals keep every
    digit before the point, as docs/sql.md says; not with `days`, because DuckDB adds only integers of 32 bits to a day."""
    return _total(parse_text(sql), days).sql(dialect=DIALECT)


def _total(tree: exp.Expr, days: bool) -> exp.Expr:
    for node in reversed(list(tree.walk())):
        if isinstance(node, (exp.Mod, exp.IntDiv)):
            node.set("expression", exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0)))
        if isinstance(node, exp.Cast):
            node.replace(exp.TryCast(this=node.this.copy(), to=node.to.copy() if days else _widest(node.to)))
        elif isinstance(node, exp.Ntile):
            node.set("this", exp.Greatest(this=node.this.copy(), expressions=[exp.Literal.number(1)]))
        elif type(node) in _PARTIAL:
            _PARTIAL[type(node)](node)
        elif _may_be_tried(node):
            node.replace(exp.Try(this=node.copy()))
    return tree


def _parsed(sql: str) -> exp.Expr:
    return parse_text(sql)


def _one_value(node: exp.Subquery) -> None:
    """Make a subquery that stands for one value NULL if it has several rows."""
    as_rows = isinstance(node.parent, _AS_ROWS) and node.arg_key in ("this", "query", "expression")
    if not as_rows and node.parent is not None:
        rows = node.this.sql(dialect=DIALECT)
        node.replace(_parsed(f"(SELECT CASE WHEN count(*) < 2 THEN any_value(v) END FROM ({rows}) AS o(v))"))


def _row_limit(node: exp.Limit | exp.Offset) -> None:
    """Make a computed LIMIT or OFFSET 0 if it is negative or not a number."""
    if not isinstance(node.expression, exp.Literal):
        count = node.expression.sql(dialect=DIALECT)
        node.set("expression", _parsed(f"greatest(TRY_CAST(({count}) AS BIGINT), 0)"))


def _framed(node: exp.Window) -> None:
    """Make a window NULL for rows whose frame reaches a distance that is negative or has no value."""
    spec = node.args.get("spec")
    conditions = []
    if spec is None:
        return
    for key in ("start", "end"):
        end = spec.args.get(key)
        if isinstance(end, exp.Expr):
            zero = "0" if end.find(exp.Interval) is None else "INTERVAL 0 DAY"
            distance = end.sql(dialect=DIALECT)
            if spec.args.get("kind", "").upper() != "RANGE":
                distance = f"TRY_CAST({distance} AS BIGINT)"
            conditions.append(f"{distance} >= {zero}")
            spec.set(key, _parsed(f"coalesce(greatest({distance}, {zero}), {zero})"))
    if conditions:
        window = node.sql(dialect=DIALECT)
        node.replace(_parsed(f"CASE WHEN {' AND '.join(conditions)} THEN {window} END"))


def _bucket(node: exp.DateBin) -> None:
    """Make a time bucket NULL if its width is not above 0 or has both months and days."""
    width = node.this.sql(dialect=DIALECT)
    months = f"CAST(12 * date_part('year', {width}) + date_part('month', {width}) AS INTEGER)"
    kind = f"({months} = 0 OR to_months({months}) = {width})"
    node.replace(_parsed(f"CASE WHEN {width} > INTERVAL 0 DAY AND {kind} THEN {node.sql(dialect=DIALECT)} END"))


def _several(node: exp.Expr) -> None:
    """Make the list of the n first values (MAX, MIN, ARG_MAX, ARG_MIN) NULL unless n is a literal above 0."""
    count = node.args.get("count")
    if count is not None and not (isinstance(count, exp.Literal) and count.is_int and int(count.name) > 0):
        node.set("this", _parsed(f"CASE WHEN FALSE THEN {node.this.sql(dialect=DIALECT)} END"))
        node.set("count", exp.Literal.number(1))


_PARTIAL: dict[type[exp.Expr], Callable[[Any], None]] = {
    exp.Subquery: _one_value, exp.Limit: _row_limit, exp.Offset: _row_limit, exp.Window: _framed, exp.DateBin: _bucket,
    exp.Max: _several, exp.Min: _several, exp.ArgMax: _several, exp.ArgMin: _several,
}  # fmt: skip
"""Rewriters of nodes that have no value for some arguments and cannot be wrapped in TRY."""


def _may_be_tried(node: exp.Expr) -> bool:
    whole = isinstance(node, _TRIED) and not isinstance(node, _UNTRIED) and not isinstance(node.parent, _WHOLES)
    branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    negative = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    return whole and not branch and not negative and not node.find(*_UNTRIABLE)


def _widest(type_: exp.DataType) -> exp.DataType:
    """Return the widest type of the same kind as the target of a cast."""
    if type_.is_type(exp.DType.DECIMAL) and len(type_.expressions) == 2:
        return exp.DataType.build(f"DECIMAL({_MOST_DIGITS}, {type_.expressions[1].name})", dialect=DIALECT)
    name = _WIDEST.get(type_.this)
    return type_.copy() if name is None else exp.DataType.build(name, dialect=DIALECT)
