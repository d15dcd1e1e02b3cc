"""Aggregates inside a private block: from sqlglot nodes to measures, with what each needs to be bounded."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr, Measure
from dpsql.sql.binder.scalars import MissingArgument, Scalars
from dpsql.sql.binder.scope import Kind, lacks_argument, only, same_unit
from dpsql.sql.binder.unit_keys import kind
from dpsql.sql.parse import place


@dataclass(frozen=True)
class Shape:
    """`word`: our name of the aggregate; `numbers`: how many bounded numeric arguments it takes."""

    word: str
    numbers: int


SHAPES: dict[type[exp.Expr], Shape] = {
    exp.Sum: Shape("sum", 1),
    exp.Avg: Shape("avg", 1),
    exp.Variance: Shape("var_samp", 1),
    exp.VariancePop: Shape("var_pop", 1),
    exp.Stddev: Shape("stddev_samp", 1),
    exp.StddevSamp: Shape("stddev_samp", 1),
    exp.StddevPop: Shape("stddev_pop", 1),
    exp.CovarPop: Shape("covar_pop", 2),
    exp.CovarSamp: Shape("covar_samp", 2),
    exp.Corr: Shape("corr", 2),
    exp.RegrSlope: Shape("regr_slope", 2),
    exp.RegrIntercept: Shape("regr_intercept", 2),
    exp.RegrR2: Shape("regr_r2", 2),
    exp.RegrCount: Shape("regr_count", 2),
    exp.RegrAvgx: Shape("regr_avgx", 2),
    exp.RegrAvgy: Shape("regr_avgy", 2),
}
OTHER_WORDS = {"mean": exp.Avg}
LEAKING = (exp.ArrayAgg, exp.GroupConcat, exp.AnyValue, exp.First, exp.Last, exp.JSONObjectAgg)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call (with or without FILTER or WITHIN GROUP)."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in OTHER_WORDS
    return isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression aggregates: outside of subqueries, and in windows only what the window is over."""
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
    """The measure of an aggregate call. Refuses aggregates and arguments that are not bounded.

    `per_unit`: inside a per-unit aggregation, where MIN and MAX of any value are exact functions of the unit's rows.
    """
    try:
        return _measure(name, node, scalars, per_unit)
    except MissingArgument:
        raise lacks_argument(node) from None


def _measure(name: str, node: exp.Expr, scalars: Scalars, per_unit: bool) -> Measure:
    condition: Expr | None = None
    inner = node
    if isinstance(inner, exp.Filter):
        only(inner, "this", "expression")
        condition = scalars.boolean(inner.expression.this)
        inner = inner.this
    if isinstance(inner, exp.Anonymous):
        inner = OTHER_WORDS[str(inner.this).lower()](this=inner.expressions[0] if inner.expressions else exp.Star())
        inner.meta.update(node.meta)
    if isinstance(inner, exp.Count):
        return _count(name, inner, scalars, condition)
    if isinstance(inner, exp.CountIf):
        only(inner, "this")
        both = scalars.boolean(inner.this)
        if condition is not None:
            both = scalars.call("and", inner, condition, both)
        return Measure(name, "count", (), False, both)
    if isinstance(inner, (exp.LogicalAnd, exp.LogicalOr)):
        only(inner, "this")
        word = "bool_and" if isinstance(inner, exp.LogicalAnd) else "bool_or"
        return Measure(name, word, (scalars.boolean(inner.this),), False, condition)
    if per_unit and isinstance(inner, (exp.Min, exp.Max)):
        only(inner, "this")
        return Measure(
            name, "min" if isinstance(inner, exp.Min) else "max", (scalars.bind(inner.this),), False, condition
        )
    shape = SHAPES.get(type(inner))
    if shape is None:
        raise refuse(
            "row_list" if isinstance(inner, LEAKING) else "unknown_aggregate",
            function=inner.sql_name() if isinstance(inner, exp.Func) else inner.key.upper(),
            position=place(inner),
        )
    return _numeric(name, shape, inner, scalars, condition)


def _count(name: str, node: exp.Count, scalars: Scalars, condition: Expr | None) -> Measure:
    only(node, "this", "big_int")
    if node.this is None or isinstance(node.this, exp.Star):
        only(node.this or node, "big_int")
        return Measure(name, "count", (), False, condition)
    if not isinstance(node.this, exp.Distinct):
        argument = scalars.bind(node.this)
        return Measure(
            name, "count", (argument,) if argument.facts.nullable or _real(argument) else (), False, condition
        )
    only(node.this, "expressions")
    if len(node.this.expressions) != 1:
        raise refuse("distinct_many", position=place(node))
    argument = scalars.bind(node.this.expressions[0])
    if kind(argument, scalars.scope) >= Kind.IMAGE:
        return Measure(name, "count_units", (), True, condition)
    return Measure(name, "count_distinct", (argument,), True, condition)


def _real(argument: Expr) -> bool:
    """NaN counts as NULL, so a real is never certainly there."""
    return argument.facts.type is Type.REAL


def _numeric(name: str, shape: Shape, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """SUM, AVG and the like: numeric arguments whose interval is known."""
    only(node, "this", "expression")
    first, distinct = node.this, isinstance(node.this, exp.Distinct)
    if distinct:
        only(first, "expressions")
        if shape.numbers != 1 or len(first.expressions) != 1 or node.args.get("expression") is not None:
            raise refuse("sum_distinct", function=shape.word.upper(), position=place(node))
        first = first.expressions[0]
    nodes = [first, node.args.get("expression")][: shape.numbers]
    arguments = tuple(scalars.bind(part) for part in nodes if part is not None)
    if len(arguments) != shape.numbers or (shape.numbers == 1 and node.args.get("expression") is not None):
        reason = f"takes {shape.numbers} argument{'s' if shape.numbers > 1 else ''}"
        raise refuse("wrong_arguments", function=shape.word.upper(), reason=reason, position=place(node))
    for argument, part in zip(arguments, nodes, strict=True):
        assert part is not None
        if not argument.facts.type.numeric:
            reason = f"takes numbers, not {argument.facts.type.value}"
            raise refuse("wrong_arguments", function=shape.word.upper(), reason=reason, position=place(part))
        if not argument.facts.bounded:
            text = part.sql("duckdb")
            clamped = f"{shape.word.upper()}(clamp({text}, 0, 100))"
            # A key is a name written in digits: bounds would make its sum answerable, and no more meaningful.
            of_unit = same_unit(argument, scalars.scope.unit_names())
            hint = f"{text} names people: COUNT(DISTINCT {text}) counts them" if of_unit else None
            facts = {"function": shape.word.upper(), "text": text, "clamped": clamped}
            raise refuse("unbounded", position=place(part), hint=hint, **facts)
    return Measure(name, shape.word, arguments, distinct, condition)
