"""Aggregates that release one of the rows' values, MODE, ARG_MAX and ARG_MIN: allowed if text and policy list the values."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.value_lists import MOST_LISTED, is_whole_range, listed
from dpsql.plan.plan import Expr, Literal, Measure
from dpsql.sql.binder.scalars import MissingArgument, Scalars
from dpsql.sql.binder.scope import only, same_unit
from dpsql.sql.binder.sql_words import sql_text, sql_word
from dpsql.sql.lexer import place


def bind_mode(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """Return the measure of the most frequent value. Refuses values that are neither listed nor integers or dates within
    bounds."""
    (value_node,) = _arguments(node, "this")
    value = scalars.bind(value_node)
    if not is_whole_range(value) and listed(value) is None:
        raise _not_listed(word.upper(), value, value_node, scalars)
    return Measure(name, word, (value,), False, condition)


def bind_end_row(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """Return the measure of the key in the row with the largest or the smallest value. Refuses keys without a list and values
    without bounds."""
    function = word.upper()
    key_node, value_node = _arguments(node, "this", "expression")
    key, value = scalars.bind(key_node), scalars.bind(value_node)
    if listed(key) is None:
        raise _not_listed(function, key, key_node, scalars)
    check_ordered(function, value, value_node, scalars)
    return Measure(name, word, (key, value), False, condition)


def check_ordered(function: str, value: Expr, node: exp.Expr, scalars: Scalars) -> None:
    """Refuse a value whose range is not public: a number, date or timestamp without bounds, any other value without a list."""
    facts = value.facts
    if isinstance(value, Literal):
        reason = "takes a value of the rows, not a constant"
        raise refuse("wrong_arguments", function=function, reason=reason, position=place(node))
    if not (facts.type.numeric or facts.type.temporal):
        if listed(value) is None:
            raise _not_listed(function, value, node, scalars)
        return
    if facts.bounded:
        return
    text = sql_text(node)
    hint = _of_people(text, value, scalars)
    if facts.type.temporal:
        hint = f"the owner gives {text} bounds in the policy"
    clamped = f"{function}(clamp({text}, 0, 100))"
    raise refuse("unbounded", position=place(node), hint=hint, function=function, text=text, clamped=clamped)


def _arguments(node: exp.Expr, *slots: str) -> tuple[exp.Expr, ...]:
    """Return the arguments of a call in the order of `slots`, the slots of its node; a function without a node type has them in
    the same order."""
    if isinstance(node, exp.Anonymous):
        arguments = node.expressions
    else:
        only(node, *slots)
        arguments = [node.args[slot] for slot in slots if node.args.get(slot) is not None]
    if len(arguments) < len(slots):
        raise MissingArgument
    if len(arguments) > len(slots):
        reason = f"takes {len(slots)} argument{'s' if len(slots) > 1 else ''}"
        raise refuse("wrong_arguments", function=sql_word(node), reason=reason, position=place(node))
    for argument in arguments:
        if isinstance(argument, (exp.Distinct, exp.Order)):
            raise refuse(
                "wrong_arguments",
                function=sql_word(node),
                reason="takes all rows, in no order",
                position=place(argument),
            )
    return tuple(arguments)


def _not_listed(function: str, value: Expr, node: exp.Expr, scalars: Scalars) -> Exception:
    text = sql_text(node)
    facts = value.facts
    coarser = f"floor({text})" if facts.type.numeric else f"date_trunc('day', {text})"
    few = f"write {coarser} instead of {text}; or " if facts.bounded else ""
    counted = f"SELECT {text}, COUNT(*) FROM ... GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
    return refuse(
        "not_listed",
        position=place(node), hint=_of_people(text, value, scalars), function=function, text=text, most=MOST_LISTED,
        few=few, counted=counted,
    )  # fmt: skip


def _of_people(text: str, value: Expr, scalars: Scalars) -> str | None:
    """Return a hint if the value is the privacy unit's key, else None."""
    of_unit = same_unit(value, scalars.scope.unit_names())
    return f"{text} names people: COUNT(DISTINCT {text}) counts them" if of_unit else None
