"""MEDIAN and quantiles inside a private block, in the spellings of DuckDB and PostgreSQL: the value, and which quantile of it."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import literal_facts
from dpsql.plan.plan import Expr, Literal, Measure
from dpsql.privacy.mechanisms.exponential import MOST_DENOMINATOR
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import only, same_unit
from dpsql.sql.parse import place

_ENDS: dict[type[exp.Expr], Fraction] = {exp.Min: Fraction(0), exp.Max: Fraction(1)}
_ORDERED_SETS = (exp.PercentileCont, exp.PercentileDisc)


def bind_quantile(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """The measure of a quantile, of MIN or of MAX: its arguments are the value and a literal from 0 to 1.

    Refuses values without bounds.
    """
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    function = inner.sql_name() if isinstance(inner, exp.Func) else inner.key.upper()
    value_node, share_node, descending = _parts(node, function)
    value = scalars.bind(value_node)
    facts = value.facts
    if not (facts.type.numeric or facts.type.temporal):
        reason = f"takes numbers, dates or timestamps, not {facts.type.value}"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(value_node))
    if not facts.bounded:
        text = value_node.sql("duckdb")
        of_unit = same_unit(value, scalars.scope.unit_names())
        hint = f"{text} names people: COUNT(DISTINCT {text}) counts them" if of_unit else None
        if facts.type.temporal:
            hint = f"the owner gives {text} bounds in the policy"
        clamped = f"{function}(clamp({text}, 0, 100))"
        raise refuse("unbounded", position=place(value_node), hint=hint, function=function, text=text, clamped=clamped)
    share = _ENDS.get(type(inner), Fraction(1, 2)) if share_node is None else _share(share_node, scalars, function)
    share = 1 - share if descending else share
    return Measure(name, word, (value, Literal(share, literal_facts(share))), False, condition)


def _parts(node: exp.Expr, function: str) -> tuple[exp.Expr, exp.Expr | None, bool]:
    """The value, the share (None: one half), and whether values are counted from the largest one."""
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
    """The literal share. Refuses lists: every quantile is asked for by itself."""
    if isinstance(node, exp.Array):
        reason = (
            "takes one share here; ask for each quantile in a column of its own: they are measured from one histogram"
        )
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
    bound = scalars.bind(node)
    value = bound.value if isinstance(bound, Literal) else None
    share = Fraction(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else Fraction(-1)
    if not 0 <= share <= 1 or MOST_DENOMINATOR % share.denominator:
        reason = "takes a literal share from 0 to 1 with at most six decimals"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
    return share
