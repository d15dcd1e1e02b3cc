"""Spellings of other systems, rewritten as DuckDB's: aggregates, lists of values, and brackets around joins.

Spark's and Trino's percentile_approx(x, q [, accuracy]), approx_percentile and percentile, and PostgreSQL's mode() WITHIN GROUP
(ORDER BY x). The accuracy limits the memory of an approximation; it is ignored, because dpsql does not approximate. For the same
reason APPROX_COUNT_DISTINCT(x) is COUNT(DISTINCT x). FETCH FIRST n ROWS ONLY is LIMIT n.

Casts are judged in the text, so that they mean the same over rows, over results and over public tables: those of literals that
have no such value are refused, and reals of single precision are read as double.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Type, literal_facts
from dpsql.plan.plan import Literal
from dpsql.sql.lexer import place

_APPROXIMATE = {"percentile_approx", "approx_percentile"}
_EXACT = "percentile"


def in_own_spelling(tree: exp.Query) -> exp.Query:
    """Return the tree in DuckDB's spellings, and without brackets around the first joins of a FROM: they have no effect, because
    joins are made from left to right."""
    for select in list(tree.find_all(exp.Select)):
        _without_brackets(select)
    for fetch in list(tree.find_all(exp.Fetch)):
        _as_limit(fetch)
    for listed in tree.find_all(exp.Values):
        _as_list(listed)
    for node in list(tree.find_all(exp.Anonymous, exp.WithinGroup, exp.ApproxDistinct)):
        respelt: exp.Expr | None
        if isinstance(node, exp.ApproxDistinct):
            respelt = _distinct_count(node)
        elif isinstance(node, exp.Anonymous):
            respelt = _percentile(node)
        else:
            respelt = _ordered_mode(node) if isinstance(node, exp.WithinGroup) else None
        if respelt is not None:
            node.replace(respelt)
    return tree


def _as_limit(fetch: exp.Fetch) -> None:
    """Read FETCH FIRST n ROWS ONLY as LIMIT n."""
    options = fetch.args.get("limit_options")
    if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
        fetch.replace(exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1)))


def _as_list(values: exp.Values) -> None:
    """Read x IN (VALUES (1), (2)) as x IN (1, 2)."""
    membership, rows = values.parent, values.expressions
    if isinstance(membership, exp.In) and membership.expressions == [values]:
        items = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in rows]
        if all(len(item) == 1 for item in items):
            membership.set("expressions", [item for (item,) in items])


def _without_brackets(select: exp.Select) -> None:
    clause = select.args.get("from_")
    while (
        clause is not None
        and isinstance(bracket := clause.this, exp.Subquery)
        and isinstance(bracket.this, (exp.Table, exp.Subquery))
    ):
        inner = bracket.this
        if any(value for name, value in bracket.args.items() if name not in ("this", "joins")):
            return
        joins = [
            *(inner.args.get("joins") or ()),
            *(bracket.args.get("joins") or ()),
            *(select.args.get("joins") or ()),
        ]
        inner.set("joins", None)
        clause.set("this", inner)
        select.set("joins", joins or None)


def _percentile(node: exp.Anonymous) -> exp.Expr | None:
    name, arguments = str(node.this).lower(), node.expressions
    if name == "var" and len(arguments) == 1:
        return exp.Variance(this=arguments[0])
    if name == _EXACT and len(arguments) == 2:
        return exp.PercentileCont(this=arguments[0], expression=arguments[1])
    if name not in _APPROXIMATE or not 2 <= len(arguments) <= 3:
        return None
    if len(arguments) == 3 and not (isinstance(arguments[2], exp.Literal) and not arguments[2].is_string):
        return None
    return exp.ApproxQuantile(this=arguments[0], quantile=arguments[1])


def _distinct_count(node: exp.ApproxDistinct) -> exp.Expr | None:
    """Return COUNT(DISTINCT x) for APPROX_COUNT_DISTINCT(x), None if it has an accuracy: the noise is the same without an
    approximation."""
    if node.args.get("accuracy") is not None:
        return None
    return exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)


def _ordered_mode(node: exp.WithinGroup) -> exp.Expr | None:
    """Return MODE(x) for MODE() WITHIN GROUP (ORDER BY x), whose order only names the values; None for other aggregates."""
    order = node.expression
    if not isinstance(node.this, exp.Mode) or node.this.args.get("this") is not None or len(order.expressions) != 1:
        return None
    return exp.Mode(this=order.expressions[0].this)


# --- casts ------------------------------------------------------------------------------------------------------------

NOT_FINITE = re.compile(r"\s*(nan|[+-]?inf(inity)?)\s*", re.IGNORECASE)
"""Texts of reals that are no finite numbers."""
_READ_AS = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), Type.INTEGER),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL), Type.REAL),
    exp.DType.BOOLEAN: Type.BOOLEAN,
}
_CALLED = {
    Type.INTEGER: ("an integer", "digits alone, as in '40'"),
    Type.REAL: ("a number", "it with a decimal point, as in '1234.5'"),
    Type.BOOLEAN: ("a truth value", "'true' or 'false'"),
}


def with_plain_casts(tree: exp.Query) -> exp.Query:
    """Return the tree with DOUBLE for FLOAT and REAL. Refuses (unreadable_literal) a cast, not a TRY_CAST, of a text literal that
    is no value of the type: it would be NULL, and the answer, which is charged, one about nothing."""
    for cast in tree.find_all(exp.Cast):
        if cast.to.this is exp.DType.FLOAT:
            cast.set("to", exp.DataType(this=exp.DType.DOUBLE))
        if not isinstance(cast, exp.TryCast):
            _check(cast)
    return tree


def _check(cast: exp.Cast) -> None:
    value, type_ = cast.this.unnest(), _READ_AS.get(cast.to.this)
    if type_ is None or not isinstance(value, exp.Literal) or not value.is_string:
        return
    text = str(value.this)
    if type_ is Type.REAL and NOT_FINITE.fullmatch(text):
        return
    if evaluate(call(f"to_{type_.value}", Literal(text, literal_facts(text))), {}) is None:
        called, such = _CALLED[type_]
        raise refuse("unreadable_literal", text=text, called=called, such=such, position=place(value))
