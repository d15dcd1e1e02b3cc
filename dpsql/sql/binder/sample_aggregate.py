"""SAMPLE_AGGREGATE inside a private block: an expression over aggregates, its bounds, the number of samples of units, and how
their values are combined."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from dpsql.aggregates.sample_aggregate import MEAN, MEDIAN
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import both, call
from dpsql.functions.sample_statistics import SPELLED, STATISTICS, Operands, Statistic, statistic_call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal, Measure, literal
from dpsql.sql.binder.listed_values import check_ordered
from dpsql.sql.binder.quantiles import bind_quantile
from dpsql.sql.binder.scalars import MissingArgument, Scalars
from dpsql.sql.binder.scope import only
from dpsql.sql.binder.sql_words import sql_word
from dpsql.sql.lexer import place

FUNCTION = "SAMPLE_AGGREGATE"
SAMPLES = 100
"""Number of samples if the query gives none."""
_FEWEST_SAMPLES, _MOST_SAMPLES = 2, 1_000_000
_MOST_STATISTICS = 20
_LARGEST = Fraction(10) ** 100
"""Ends of bounds are 0 or from 10**-100 to 10**100 in size, so that squares and products of values stay within doubles."""
_SUBQUERIES = (exp.Subquery, exp.Select, exp.SetOperation, exp.Exists, exp.In, exp.Window)


def bind_sample_aggregate(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """Return the measure. Its arguments: the expression over statistics as a real number, its lower and upper bound, the number
    of samples, and `MEAN` if their values are combined by the mean.

    Refuses aggregates that are not statistics of `functions.sample_statistics`, columns outside of aggregates, and bounds that
    are not literals.
    """
    parts = list(node.expressions)
    if not 3 <= len(parts) <= 5:
        reason = "takes an expression over aggregates, its lower and upper bound, and perhaps a number of samples and"
        _refuse(node, f"{reason} '{MEDIAN}' or '{MEAN}'")
    lower, upper = (_number(part, scalars) for part in parts[1:3])
    if not float(lower) < float(upper):
        _refuse(parts[1], "takes a lower bound below the upper one")
    samples = _samples(parts[3], scalars) if len(parts) >= 4 else SAMPLES
    combined = (literal(MEAN),) if len(parts) == 5 and _is_mean(parts[4], scalars) else ()
    inner = SampleScalars(scalars, condition)
    value = inner.bind(parts[0])
    if not inner.statistics:
        _refuse(parts[0], "takes an expression over aggregates, such as CORR(x, y)")
    if len(inner.statistics) > _MOST_STATISTICS:
        _refuse(parts[0], f"takes an expression over {_MOST_STATISTICS} aggregates at most")
    if not value.facts.type.numeric:
        _refuse(parts[0], f"takes an expression whose value is a number, not {value.facts.type.value}")
    real = call("to_real", value) if value.facts.type is Type.INTEGER else value
    return Measure(name, word, (real, *(literal(part) for part in (lower, upper, samples)), *combined), False, None)


def _refuse(node: exp.Expr, reason: str) -> NoReturn:
    nearest: exp.Expr | None = node  # NULL has no position in the text
    while nearest is not None and place(nearest) is None:
        nearest = nearest.parent
    raise refuse("wrong_arguments", function=FUNCTION, reason=reason, position=place(nearest))


def _literal(node: exp.Expr, scalars: Scalars) -> Fraction | None:
    bound = scalars.bind(node)
    value = bound.value if isinstance(bound, Literal) else None
    return Fraction(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else None


def _number(node: exp.Expr, scalars: Scalars) -> Fraction:
    number = _literal(node, scalars)
    if number is None or not _usable(number):
        _refuse(node, "takes bounds that are literal numbers, 0 or from 1e-100 to 1e100 in size")
    return number


def _is_mean(node: exp.Expr, scalars: Scalars) -> bool:
    """Return whether samples are combined by their mean. Refuses words other than MEAN and MEDIAN."""
    bound = scalars.bind(node)
    word = bound.value.lower() if isinstance(bound, Literal) and isinstance(bound.value, str) else None
    if word not in (MEAN, MEDIAN):
        _refuse(node, f"combines samples by '{MEDIAN}' or '{MEAN}'")
    return word == MEAN


def _usable(end: Fraction) -> bool:
    return end == 0 or 1 / _LARGEST <= abs(end) <= _LARGEST


def _samples(node: exp.Expr, scalars: Scalars) -> int:
    number = _literal(node, scalars)
    if number is None or number.denominator != 1 or not _FEWEST_SAMPLES <= number <= _MOST_SAMPLES:
        _refuse(node, f"takes a literal number of samples from {_FEWEST_SAMPLES} to {_MOST_SAMPLES}")
    return int(number)


class SampleScalars(Scalars):
    """Binder of an expression over statistics: aggregates become calls of statistics; columns are allowed only inside them."""

    def __init__(self, rows: Scalars, condition: Expr | None) -> None:
        """Bind over the scope of `rows`, which binds the arguments of aggregates. `condition`: FILTER of the whole expression."""
        super().__init__(rows.scope)
        self._rows = rows
        self._condition = condition
        self.statistics: dict[Call, None] = {}

    def bind(self, node: exp.Expr | None) -> Expr:
        """Bind as `Scalars.bind` does, with aggregates replaced by calls of statistics."""
        if isinstance(node, _SUBQUERIES):
            _refuse(node, "takes an expression over aggregates alone, without subqueries, lists and windows")
        if isinstance(node, exp.Column):
            _refuse(node, f"takes columns inside of aggregates: {node.sql('duckdb')} has a value for each row")
        if node is None or not _is_aggregate(node):
            return super().bind(node)
        bound = self._statistic(node)
        self.statistics[bound] = None
        return bound

    def _statistic(self, node: exp.Expr) -> Call:
        condition, aggregate = self._condition, node
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            condition = both(condition, self._rows.boolean(node.expression.this))
            aggregate = node.this
        inner = aggregate.this if isinstance(aggregate, exp.WithinGroup) else aggregate
        statistic = SPELLED.get(_spelling(inner))
        if statistic is None or (aggregate is not inner and statistic.operands is not Operands.QUANTILE):
            names = ", ".join(sorted(STATISTICS))
            _refuse(inner, f"knows no {sql_word(inner)} of a sample; it knows {names}")
        if statistic.word == "count":
            return self._count(inner, condition)
        if statistic.operands is Operands.QUANTILE:
            measure = bind_quantile("", statistic.word, aggregate, self._rows, None)
            self._check_number(statistic, measure.arguments[0], inner)
            return statistic_call(statistic, measure.arguments, condition)
        return statistic_call(statistic, self._arguments(statistic, inner), condition)

    def _count(self, node: exp.Expr, condition: Expr | None) -> Call:
        only(node, "this", "big_int")
        counted = node.this
        if counted is None or isinstance(counted, exp.Star):
            only(counted or node, "big_int")
            return statistic_call(STATISTICS["count_rows"], (), condition)
        if not isinstance(counted, exp.Distinct):
            return statistic_call(STATISTICS["count"], (self._rows.bind(counted),), condition)
        only(counted, "expressions")
        if len(counted.expressions) != 1:
            raise refuse("distinct_many", position=place(node))
        return statistic_call(STATISTICS["count_distinct"], (self._rows.bind(counted.expressions[0]),), condition)

    def _arguments(self, statistic: Statistic, node: exp.Expr) -> tuple[Expr, ...]:
        """Return the bound arguments of an aggregate. Refuses numbers without bounds."""
        if isinstance(node, exp.Anonymous):
            operands = list(node.expressions)
        else:
            only(node, "this", "expression")
            operands = [part for part in (node.this, node.args.get("expression")) if part is not None]
        if not operands:
            raise MissingArgument
        if len(operands) != statistic.arity:
            raise refuse(
                "wrong_arguments",
                function=statistic.word.upper(), reason=f"takes {statistic.arity} arguments", position=place(node),
            )  # fmt: skip
        if any(isinstance(operand, (exp.Distinct, exp.Order)) for operand in operands):
            _refuse(node, "takes aggregates of all rows of a sample, not of distinct values or in an order")
        arguments = tuple(self._rows.bind(operand) for operand in operands)
        if statistic.operands is not Operands.VALUE:
            for argument, operand in zip(arguments, operands, strict=True):
                check_ordered(statistic.word.upper(), argument, operand, self._rows)
                self._check_number(statistic, argument, operand)
        return arguments

    def _check_number(self, statistic: Statistic, argument: Expr, node: exp.Expr) -> None:
        facts = argument.facts
        if not facts.type.numeric:
            reason = f"takes numbers here, not {facts.type.value}"
            raise refuse("wrong_arguments", function=statistic.word.upper(), reason=reason, position=place(node))
        if not all(_usable(Fraction(end)) for end in (facts.lower, facts.upper)):
            reason = "takes numbers here whose bounds are 0 or from 1e-100 to 1e100 in size"
            raise refuse("wrong_arguments", function=statistic.word.upper(), reason=reason, position=place(node))


def _spelling(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node).__name__


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and _spelling(node) in SPELLED)
