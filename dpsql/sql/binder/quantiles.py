"""MEDIAN and quantiles inside a private block, in the spellings of DuckDB and PostgreSQL: the value and the share.

A call with several shares is a list of calls with one share each, measured from one histogram.

`QUANTILE_CONT(x, [0.1, 0.5])`, `PERCENTILE_CONT(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY x)`, and `APPROX_QUANTILES(x, n)` for the
shares 0, 1/n, ..., 1, which include the smallest and the largest value.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr, Literal, Measure, literal
from dpsql.privacy.mechanisms.exponential import MOST_DENOMINATOR
from dpsql.sql.binder.listed_values import check_ordered
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import only
from dpsql.sql.binder.sql_words import sql_word
from dpsql.sql.lexer import place

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
    return Measure(name, word, (value, literal(share)), False, condition)


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
    """Return the literal share. Refuses lists, which are allowed only as outputs (`single_quantiles`)."""
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


# --- lists ------------------------------------------------------------------------------------------------------------

MOST_SHARES = 101
"""Largest number of shares in one call: all percentiles and both ends."""
_CALLS = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_DECIMALS = 6


def single_quantiles(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the calls with one share each, in the order of the list, for an aggregate with a list of shares; None for any other
    aggregate. Refuses lists that are empty or too long."""
    call = node
    while isinstance(call, (exp.Filter, exp.WithinGroup)):
        call = call.this
    if isinstance(call, exp.ApproxQuantiles):
        return [_with_call(node, single) for single in _equal_parts(call)]
    if not isinstance(call, _CALLS):
        return None
    slot = next((slot for slot, value in call.args.items() if isinstance(value, exp.Array)), None)
    if slot is None:
        return None
    shares = call.args[slot].expressions
    if not 1 <= len(shares) <= MOST_SHARES:
        reason = f"takes from 1 to {MOST_SHARES} shares in a list"
        raise refuse("wrong_arguments", function=call.sql_name(), reason=reason, position=place(call.args[slot]))
    calls = [call.copy() for _ in shares]
    for single, share in zip(calls, shares, strict=True):
        single.set(slot, share.copy())
    return [_with_call(node, single) for single in calls]


def _with_call(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    """Return `node` with `call` in place of the call below its FILTER and WITHIN GROUP."""
    if not isinstance(node, (exp.Filter, exp.WithinGroup)):
        return call
    copy = node.copy()
    copy.set("this", _with_call(node.this, call))
    return copy


def _equal_parts(call: exp.ApproxQuantiles) -> list[exp.Expr]:
    """Return the quantiles that APPROX_QUANTILES(x, n) lists, to six decimals."""
    only(call, "this", "expression")
    count = call.args.get("expression")
    number = int(count.name) if isinstance(count, exp.Literal) and not count.is_string and count.name.isdecimal() else 0
    if not 1 <= number < MOST_SHARES:
        reason = f"takes a value and a number of parts from 1 to {MOST_SHARES - 1}"
        raise refuse("wrong_arguments", function=call.sql_name(), reason=reason, position=place(count) or place(call))
    shares = [exp.Literal.number(f"{part / number:.{_DECIMALS}f}") for part in range(number + 1)]
    return [exp.Quantile(this=call.this.copy(), quantile=share) for share in shares]
