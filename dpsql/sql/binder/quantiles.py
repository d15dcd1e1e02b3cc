"""MEDIAN and quantiles inside a private block, in the spellings of DuckDB and PostgreSQL: the value and the share."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type, literal_facts
from dpsql.plan.plan import Expr, Literal, Measure
from dpsql.privacy.mechanisms.exponential import MOST_DENOMINATOR
from dpsql.sql.binder.listed_values import check_ordered
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import only
from dpsql.sql.binder.sql_words import sql_word
from dpsql.sql.parse import place

_ENDS: dict[type[exp.Expr], Fraction] = {exp.Min: Fraction(0), exp.Max: Fraction(1)}
_CONTINUOUS = "quantile_cont"
_ORDERED_SETS = (exp.PercentileCont, exp.PercentileDisc)


def bind_quantile(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """Return the measure of a quantile, of MIN or of MAX. Its arguments are the value and a literal from 0 to 1.

    Refuses numbers, dates and timestamps without bounds, and other values without a list.
    """
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    function = sql_word(inner)
    value_node, share_node, descending = _parts(node, function)
    value = scalars.bind(value_node)
    facts = value.facts
    if word == _CONTINUOUS and facts.type in (Type.TEXT, Type.BOOLEAN):
        reason = f"lies between values, which {facts.type.value}s have not: write QUANTILE_DISC(x, 0.5)"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(value_node))
    check_ordered(function, value, value_node, scalars)
    share = _ENDS.get(type(inner), Fraction(1, 2)) if share_node is None else _share(share_node, scalars, function)
    share = 1 - share if descending else share
    return Measure(name, word, (value, Literal(share, literal_facts(share))), False, condition)


def _parts(node: exp.Expr, function: str) -> tuple[exp.Expr, exp.Expr | None, bool]:
    """Return the value, the share (None: one half), and whether values are counted from the largest one."""
    if isinstance(node, exp.WithinGroup):
        only(node, "this", "expression")
        order = node.expression
        if not isinstance(node.this, _ORDERED_SETS) or node.this.args.get("expression") or len(order.expressions) != 1:
            reason = "is written percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"
            raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
        only(node.this, "this")
        ordered = order.expressions[0]
        only(ordered, "this", "desc", "nulls_first")
        return ordered.this, node.this.this, bool(ordered.args.get("desc"))
    only(node, "this", "expression", "quantile")
    share = node.args.get("expression") or node.args.get("quantile")
    if isinstance(node.this, exp.Distinct):
        reason = "takes all rows: a quantile of distinct values is not proven here"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
    if share is None and not isinstance(node, (exp.Median, *_ENDS)):
        raise refuse(
            "wrong_arguments", function=function, reason="takes a value and a share from 0 to 1", position=place(node)
        )
    return node.this, share, False


def _share(node: exp.Expr, scalars: Scalars, function: str) -> Fraction:
    """Return the literal share. Refuses lists, which are allowed only as outputs (`quantile_lists`)."""
    if isinstance(node, exp.Array):
        reason = "takes one share here; a list of shares is an output of a SELECT over protected rows"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
    bound = scalars.bind(node)
    value = bound.value if isinstance(bound, Literal) else None
    share = Fraction(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else Fraction(-1)
    if not 0 <= share <= 1 or MOST_DENOMINATOR % share.denominator:
        reason = "takes a literal share from 0 to 1 with at most six decimals"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
    return share
