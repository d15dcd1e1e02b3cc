"""Lists of quantiles: a call with several shares is a list of calls with one share each, measured from one histogram.

`QUANTILE_CONT(x, [0.1, 0.5])`, `PERCENTILE_CONT(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY x)`, and `APPROX_QUANTILES(x, n)` for the
shares 0, 1/n, ..., 1, which include the smallest and the largest value.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.sql.binder.scope import only
from dpsql.sql.parse import place

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
