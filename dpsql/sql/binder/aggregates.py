"""Aggregates inside a private block: sqlglot nodes become measures, whose arguments must be bounded as each aggregate needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from dpsql.aggregates.contract import Aggregate, Arguments, spelled
from dpsql.aggregates.distances import can_be_missing
from dpsql.errors.exceptions import refuse
from dpsql.functions.sample_statistics import SPELLED
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr, Measure
from dpsql.sql.binder.group_bounds import within_group_bounds
from dpsql.sql.binder.listed_values import bind_end_row, bind_mode
from dpsql.sql.binder.quantiles import bind_quantile
from dpsql.sql.binder.sample_aggregate import bind_sample_aggregate
from dpsql.sql.binder.scalars import MissingArgument, Scalars
from dpsql.sql.binder.scope import Kind, lacks_argument, only, same_unit
from dpsql.sql.binder.sql_words import sql_text, sql_word
from dpsql.sql.binder.unit_keys import kind
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.bigquery import PER_GROUP

_LISTS = (exp.ArrayAgg, exp.GroupConcat, exp.JSONObjectAgg)
LEAKING = (*_LISTS, exp.AnyValue, exp.First, exp.Last)


def spelling(node: exp.Expr) -> str:
    """Return the registry's name of a call: the node's type, or the name of a function unknown to the parser."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node).__name__


def function_name(spelling: str) -> str:
    """Return the SQL name of the aggregate registered under `spelling`."""
    if spelling[0].islower():
        return spelling
    call = getattr(exp, spelling)(this=exp.column("x"))
    return str(call.sql(dialect="duckdb")).split("(", maxsplit=1)[0].lower()


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate call (with or without FILTER or WITHIN GROUP)."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return spelled(spelling(node)) is not None
    return isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping)


def counts_rows(node: exp.Expr) -> bool:
    """Return whether an aggregate call is 0 over no rows; every other aggregate is NULL there."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return counts_rows(node.this)
    entry = spelled(spelling(node))
    return entry is not None and entry[0].counts


def has_aggregate(node: exp.Expr) -> bool:
    """Return whether an expression contains an aggregate, outside of subqueries; in a window, the window's function itself does
    not count, only its arguments, PARTITION BY and ORDER BY."""
    if isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation)):
        return False
    if isinstance(node, exp.Window):
        inside = list(node.this.iter_expressions())
        inside += [part for name in ("partition_by", "order") for part in _listed(node.args.get(name))]
        return any(has_aggregate(part) for part in inside)
    return is_aggregate(node) or any(has_aggregate(part) for part in node.iter_expressions())


def _listed(value: object) -> list[exp.Expr]:
    return value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []


def bind_measure(name: str, node: exp.Expr, scalars: Scalars, per_unit: bool = False) -> Measure:
    """Return the measure of an aggregate call. Refuses aggregates and arguments that are not bounded.

    `per_unit`: inside a per-unit aggregation, where MIN and MAX of any value are exact functions of the unit's rows.
    """
    try:
        return _measure(name, node, scalars, per_unit)
    except MissingArgument:
        raise lacks_argument(node) from None


@dataclass(frozen=True)
class _Call:
    """A call of an aggregate to be bound. `operands`: its arguments in the order of the text."""

    name: str
    node: exp.Expr
    operands: tuple[exp.Expr, ...]
    aggregate: Aggregate
    scalars: Scalars
    condition: Expr | None
    per_unit: bool


def _measure(name: str, node: exp.Expr, scalars: Scalars, per_unit: bool) -> Measure:
    condition: Expr | None = None
    inner = node
    if isinstance(inner, exp.Filter):
        only(inner, "this", "expression")
        condition = scalars.boolean(inner.expression.this)
        inner = inner.this
    bounds = inner.args.get(PER_GROUP)
    if bounds is not None:
        inner = type(inner)(**{slot: part for slot, part in inner.args.items() if slot != PER_GROUP})
    entry = spelled(spelling(inner.this if isinstance(inner, exp.WithinGroup) else inner))
    if entry is None or (isinstance(inner, exp.WithinGroup) and entry[1] is not Arguments.QUANTILE):
        raise _unknown(inner.this if isinstance(inner, exp.WithinGroup) else inner)
    aggregate, arguments = entry
    if arguments in _OF_ONE_VALUE:
        inner, conditions = _without_case(inner)
        for chosen in map(scalars.boolean, conditions):
            condition = chosen if condition is None else scalars.call("and", node, condition, chosen)
    call = _Call(name, inner, _operands(inner), aggregate, scalars, condition, per_unit)
    measure = RULES[arguments](call)
    return measure if bounds is None else within_group_bounds(measure, node, bounds, per_unit)


_OF_ONE_VALUE = (Arguments.ROWS, Arguments.NUMBER, Arguments.UNIT_VALUE, Arguments.QUANTILE, Arguments.MODE)


def _without_case(inner: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """Return the call of f(CASE WHEN c THEN x END) as f(x), and the conditions c: it is f(x) FILTER (WHERE c), because aggregates
    skip NULL. One question in two forms must have one plan."""
    conditions: list[exp.Expr] = []
    while (value := _value(inner)) is not None and (branch := _only_branch(value.unnest())) is not None:
        conditions.append(branch[0])
        inner = inner.copy()
        cast(exp.Expr, _value(inner)).replace(branch[1].copy())
    return inner, conditions


def _value(inner: exp.Expr) -> exp.Expr | None:
    """Return the argument whose NULLs a call skips, x in f(x), f(DISTINCT x) and f(q) WITHIN GROUP (ORDER BY x); else None."""
    value = inner.expression if isinstance(inner, exp.WithinGroup) else inner.this
    if isinstance(value, (exp.Order, exp.Distinct)):
        value = value.expressions[0] if len(value.expressions) == 1 else None
    value = value.this if isinstance(value, exp.Ordered) else value
    return value if isinstance(value, exp.Expr) else None


def _only_branch(value: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """Return condition and value of CASE WHEN condition THEN value [ELSE NULL] END, or of IF with two arguments; else None."""
    if isinstance(value, exp.Case) and value.this is None and len(value.args["ifs"]) == 1:
        choice, other = value.args["ifs"][0], value.args.get("default")
    elif isinstance(value, exp.If):
        choice, other = value, value.args.get("false")
    else:
        return None
    if other is not None and not isinstance(other.unnest(), exp.Null):
        return None
    return choice.this, choice.args["true"]


OF_ONE_PERSON = "COUNT, SUM, AVG, MIN and MAX are computed for each person"
"""Hint where another aggregate is asked for over the rows of one privacy unit."""


def _unknown(node: exp.Expr, where: str = "") -> Exception:
    if isinstance(node, LEAKING):
        hint = (
            None
            if isinstance(node, _LISTS)
            else "MODE(x) is the most frequent of few values, QUANTILE_DISC(x, 0.5) the middle"
        )
        return refuse("row_list", function=f"{sql_word(node)}{where}", position=place(node), hint=hint)
    hint = OF_ONE_PERSON if where else None
    if not where and spelling(node) in SPELLED:
        hint = (
            f"SAMPLE_AGGREGATE({node.sql('duckdb')}, lower, upper) is the median of it over samples of the rows, between "
            "bounds that you give; `dpsql help sql` has more"
        )
    return refuse("unknown_aggregate", function=f"{sql_word(node)}{where}", position=place(node), hint=hint)


def _operands(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """Return the arguments of a call, whether sqlglot has a node type for its function or not."""
    if isinstance(node, exp.Anonymous):
        return tuple(node.expressions)
    return tuple(part for part in (node.this, node.args.get("expression")) if part is not None)


# --- a rule for each way of reading arguments -----------------------------------------------------------------------


def _rows(call: _Call) -> Measure:
    """Return the measure of COUNT(*), COUNT(x) or COUNT(DISTINCT x). With the unit's key as x, each unit counts once."""
    node, scalars = call.node, call.scalars
    only(node, "this", "big_int")
    if node.this is None or isinstance(node.this, exp.Star):
        only(node.this or node, "big_int")
        return Measure(call.name, "count", (), False, call.condition)
    if not isinstance(node.this, exp.Distinct):
        argument = scalars.bind(node.this)
        arguments = (argument,) if can_be_missing(argument) else ()
        return Measure(call.name, "count", arguments, False, call.condition)
    only(node.this, "expressions")
    if len(node.this.expressions) != 1:
        raise refuse("distinct_many", position=place(node))
    argument = scalars.bind(node.this.expressions[0])
    if kind(argument, scalars.scope) >= Kind.IMAGE:
        return Measure(call.name, "count_units", (), True, call.condition)
    return Measure(call.name, "count_distinct", (argument,), True, call.condition)


def _counted_condition(call: _Call) -> Measure:
    only(call.node, "this")
    condition = call.scalars.boolean(call.node.this)
    if call.condition is not None:
        condition = call.scalars.call("and", call.node, call.condition, condition)
    return Measure(call.name, call.aggregate.word, (), False, condition)


def _condition(call: _Call) -> Measure:
    only(call.node, "this")
    return Measure(call.name, call.aggregate.word, (call.scalars.boolean(call.node.this),), False, call.condition)


def _unit_value(call: _Call) -> Measure:
    if not call.per_unit:
        return bind_quantile(call.name, "quantile_disc", call.node, call.scalars, call.condition)
    only(call.node, "this")
    return Measure(call.name, call.aggregate.word, (call.scalars.bind(call.node.this),), False, call.condition)


def _quantile(call: _Call) -> Measure:
    if call.per_unit:
        raise _unknown(
            call.node.this if isinstance(call.node, exp.WithinGroup) else call.node, " over one person's rows"
        )
    return bind_quantile(call.name, call.aggregate.word, call.node, call.scalars, call.condition)


def _among_rows(bind: Callable[..., Measure]) -> Callable[[_Call], Measure]:
    """Return the rule of an aggregate that cannot be computed exactly over the rows of one unit."""

    def rule(call: _Call) -> Measure:
        if call.per_unit:
            raise _unknown(call.node, " over one person's rows")
        return bind(call.name, call.aggregate.word, call.node, call.scalars, call.condition)

    return rule


def _numbers(call: _Call, count: int) -> Measure:
    """Return the measure of an aggregate of `count` numbers. Refuses numbers without known bounds."""
    word, node = call.aggregate.word.upper(), call.node
    if not isinstance(node, exp.Anonymous):
        only(node, "this", "expression")
    operands, distinct = call.operands, bool(call.operands) and isinstance(call.operands[0], exp.Distinct)
    if distinct:
        only(operands[0], "expressions")
        if not call.aggregate.distinct or count != 1 or len(operands) != 1 or len(operands[0].expressions) != 1:
            raise refuse("sum_distinct", function=word, position=place(node))
        operands = tuple(operands[0].expressions)
    if not operands:
        raise MissingArgument
    arguments = tuple(_as_number(call.scalars, part) for part in operands[:count])
    if len(operands) != count:
        reason = f"takes {count} argument{'s' if count > 1 else ''}"
        raise refuse("wrong_arguments", function=word, reason=reason, position=place(node))
    for argument, part in zip(arguments, operands, strict=True):
        _check_bounded(word, argument, part, call.scalars)
    return Measure(call.name, call.aggregate.word, arguments, distinct, call.condition)


def _as_number(scalars: Scalars, part: exp.Expr) -> Expr:
    """Return a numeric argument; a condition counts as 1 if true and 0 if false, as in DuckDB."""
    argument = scalars.bind(part)
    return argument if argument.facts.type is not Type.BOOLEAN else scalars.call("to_integer", part, argument)


def _check_bounded(word: str, argument: Expr, part: exp.Expr, scalars: Scalars) -> None:
    """Refuse arguments that are not numbers, and numbers without bounds."""
    if not argument.facts.type.numeric:
        reason = f"takes numbers, not {argument.facts.type.value}"
        raise refuse("wrong_arguments", function=word, reason=reason, position=place(part))
    if not argument.facts.bounded:
        text = sql_text(part)
        clamped = f"{word}(clamp({text}, 0, 100))"
        # A unit's key is a name even if it is a number: with bounds its sum could be answered, but would mean nothing.
        of_unit = same_unit(argument, scalars.scope.unit_names())
        hint = f"{text} names people: COUNT(DISTINCT {text}) counts them" if of_unit else None
        raise refuse("unbounded", position=place(part), hint=hint, function=word, text=text, clamped=clamped)


RULES: dict[Arguments, Callable[[_Call], Measure]] = {
    Arguments.ROWS: _rows,
    Arguments.CONDITION: _condition,
    Arguments.COUNTED_CONDITION: _counted_condition,
    Arguments.NUMBER: lambda call: _numbers(call, 1),
    Arguments.PAIR: lambda call: _numbers(call, 2),
    Arguments.UNIT_VALUE: _unit_value,
    Arguments.QUANTILE: _quantile,
    Arguments.MODE: _among_rows(bind_mode),
    Arguments.END_ROW: _among_rows(bind_end_row),
    Arguments.SAMPLES: _among_rows(bind_sample_aggregate),
}
