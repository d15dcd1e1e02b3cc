"""Exact aggregates and window functions over the rows of one unit."""

from __future__ import annotations

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.columns import group_key
from dpsql.engine.emit.quantization import row_integer, summand
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import UNIT, Expr, Window
from dpsql.pricing.basis import GRID_BITS, summed


def unit_window(window: Window, ties: list[str], dialect: Dialect) -> str:
    """A window function of one unit's rows. Where a tie would be the engine's to break, `ties` does (the rows' keyed hash,
    then their content): which row is first must not depend on whose rows are beside, nor favour a value for all units."""
    parts = ", ".join([dialect.identifier(UNIT), *(group_key(key, dialect) for key in window.keys)])
    order = [
        f"{group_key(one.by, dialect)} {'DESC' if one.descending else 'ASC'} NULLS {'FIRST' if one.nulls_first else 'LAST'}"
        for one in window.order
    ]
    aggregate = window.word in ("count", "sum", "avg", "min", "max")
    if not aggregate and window.word not in ("rank", "dense_rank"):
        order += ties
    sorted_ = f" ORDER BY {', '.join(order)}" if order else ""
    over = f" OVER (PARTITION BY {parts}{sorted_})"
    if aggregate:
        return per_unit_aggregate(window.word, window.argument, window.filter, window.facts, dialect, over)
    argument = "" if window.argument is None else dialect.expression(window.argument)
    return f"{window.word}({argument}{f', {window.offset}' if window.word in ('lag', 'lead') else ''}){over}"


def per_unit_aggregate(
    word: str, argument: Expr | None, condition: Expr | None, facts: Facts, dialect: Dialect, over: str = ""
) -> str:
    """An exact aggregate of one unit's rows, in the type of its facts; `over` makes it one of a window."""
    filtered = ("" if condition is None else f" FILTER (WHERE {dialect.expression(condition)})") + over
    if argument is None:
        return f"count(*){filtered}"
    value = dialect.expression(argument)
    there = f"(CASE WHEN NOT {dialect.is_nan(value)} THEN {value} END)" if argument.facts.type is Type.REAL else value
    if word in ("count", "count_distinct"):
        return f"count({'DISTINCT ' if word == 'count_distinct' else ''}{there}){filtered}"
    if word in ("min", "max"):
        there = dialect.unsigned_zero(there) if argument.facts.type is Type.REAL else there
        return f"{word}({there}){filtered}"
    term = summed(argument, condition, False, GRID_BITS)[0]
    step = dialect.constant(2.0**-term.grid)
    total = f"sum({row_integer(term, summand(term, argument, value, dialect), dialect)}){filtered}"
    if word == "avg":
        return f"({dialect.real(total)} * {step} / count({there}){filtered})"
    return f"{dialect.real(total)} * {step}" if facts.type is Type.REAL else dialect.narrow(total)
