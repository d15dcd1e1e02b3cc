"""MEDIAN, quantiles, MODE, rows at an end and SAMPLE_AGGREGATE inside a private block. Of a quantile: the value and the share.

A call with several shares is a list of calls with one share each, measured from one histogram.

`QUANTILE_CONT(x, [0.1, 0.5])`, `PERCENTILE_CONT(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY x)`, and `APPROX_QUANTILES(x, n)` for the
shares 0, 1/n, ..., 1, which include the smallest and the largest value.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from dpsql.aggregates.sample_aggregate import MEAN, MEDIAN
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import both, call
from dpsql.functions.public_domains import MOST_LISTED, is_whole_range, listed
from dpsql.functions.sample_statistics import SPELLED, STATISTICS, Operands, Statistic, statistic_call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal, Measure, literal
from dpsql.privacy.mechanisms.exponential import MOST_DENOMINATOR
from dpsql.sql.binder.scalars import MissingArgument, Scalars
from dpsql.sql.binder.scope import only, same_unit, sql_text, sql_word, wrong_call
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.spellings import MOST_SHARES, equal_parts

# --- aggregates that release one of the rows' values, MODE, ARG_MAX and ARG_MIN ---------------------------------------
# Allowed if text and policy list the values.


def bind_mode(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """Return the measure of the most frequent value. Refuses values neither listed nor bounded integers or dates."""
    (value_node,) = _arguments(node, "this")
    value = scalars.bind(value_node)
    if not is_whole_range(value) and listed(value) is None:
        raise _not_listed(word.upper(), value, value_node, scalars)
    return Measure(name, word, (value,), False, condition)


def bind_end_row(name: str, word: str, node: exp.Expr, scalars: Scalars, condition: Expr | None) -> Measure:
    """Return the measure of the key in the row with the largest or smallest value. Refuses keys and values without limits."""
    function = word.upper()
    key_node, value_node = _arguments(node, "this", "expression")
    key, value = scalars.bind(key_node), scalars.bind(value_node)
    if listed(key) is None:
        raise _not_listed(function, key, key_node, scalars)
    check_ordered(function, value, value_node, scalars)
    return Measure(name, word, (key, value), False, condition)


def check_ordered(function: str, value: Expr, node: exp.Expr, scalars: Scalars) -> None:
    """Refuse a value whose range is not public: a number, date or timestamp without bounds, any other value without a list."""
    if isinstance(value, Literal):
        raise wrong_call(function, "takes a value of the rows, not a constant", node)
    if value.facts.type.numeric or value.facts.type.temporal:
        check_bounded(function, value, node, scalars)
    elif listed(value) is None:
        raise _not_listed(function, value, node, scalars)


def check_bounded(function: str, value: Expr, node: exp.Expr, scalars: Scalars) -> None:
    """Refuse a number, date or timestamp without bounds."""
    if value.facts.bounded:
        return
    text = sql_text(node)
    hint = _of_people(text, value, scalars)
    if value.facts.type.temporal:
        hint = f"the owner gives {text} bounds in the policy"
    clamped = f"{function}(clamp({text}, 0, 100))"
    raise refuse("unbounded", position=place(node), hint=hint, function=function, text=text, clamped=clamped)


def spelling(node: exp.Expr) -> str:
    """Return the registry's name of a call: the node's type, or the name of a function unknown to the parser."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node).__name__


def operands_of(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """Return the arguments of a call, whether sqlglot has a node type for its function or not."""
    if isinstance(node, exp.Anonymous):
        return tuple(node.expressions)
    return tuple(part for part in (node.this, node.args.get("expression")) if part is not None)


def counted(node: exp.Expr) -> tuple[exp.Expr | None, bool]:
    """Return what a COUNT counts (None: all rows), and whether it counts different values. Refuses (distinct_many) several."""
    only(node, "this", "big_int")
    if node.this is None or isinstance(node.this, exp.Star):
        only(node.this or node, "big_int")
        return None, False
    if not isinstance(node.this, exp.Distinct):
        return node.this, False
    only(node.this, "expressions")
    if len(node.this.expressions) != 1 or isinstance(node.this.expressions[0], exp.Tuple):
        raise refuse("distinct_many", position=place(node))
    return node.this.expressions[0], True


def _arguments(node: exp.Expr, *slots: str) -> tuple[exp.Expr, ...]:
    """Return a call's arguments in the order of `slots`, those of its node; functions without a node have that order."""
    if isinstance(node, exp.Anonymous):
        arguments = node.expressions
    else:
        only(node, *slots)
        arguments = [node.args[slot] for slot in slots if node.args.get(slot) is not None]
    if len(arguments) < len(slots):
        raise MissingArgument
    if len(arguments) > len(slots):
        raise wrong_call(node, f"takes {len(slots)} argument{'s' if len(slots) > 1 else ''}")
    for argument in arguments:
        if isinstance(argument, (exp.Distinct, exp.Order)):
            raise wrong_call(node, "takes all rows, in no order", argument)
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
    """Return a hint if the value is the privacy unit's key, else None. It is a name even if it is a number: with bounds its sum
    could be answered, but would mean nothing."""
    of_unit = same_unit(value, scalars.scope.unit_names())
    return f"{text} names people: COUNT(DISTINCT {text}) counts them" if of_unit else None


# --- MEDIAN and quantiles inside a private block, in the spellings of DuckDB and PostgreSQL ---------------------------

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
        raise wrong_call(function, reason, value_node)
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
            raise wrong_call(function, "is written percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", node)
        only(node.this, "this")
        ordered = order.expressions[0]
        only(ordered, "this", "desc", "nulls_first")
        return ordered.this, node.this.this, bool(ordered.args.get("desc"))
    only(node, "this", "expression", "quantile")
    share = node.args.get("expression") or node.args.get("quantile")
    if isinstance(node.this, exp.Distinct):
        raise wrong_call(function, "takes all rows: a quantile of distinct values is not proven here", node)
    if share is None and not isinstance(node, (exp.Median, *_ENDS)):
        raise wrong_call(function, "takes a value and a share from 0 to 1", node)
    return node.this, share, False


def _share(node: exp.Expr, scalars: Scalars, function: str) -> Fraction:
    """Return the literal share. Refuses lists, which are allowed only as outputs (`single_quantiles`)."""
    if isinstance(node, exp.Array):
        reason = "takes one share here; a list of shares is an output of a SELECT over protected rows"
        raise wrong_call(function, reason, node)
    share = _literal(node, scalars)
    if share is None or not 0 <= share <= 1 or MOST_DENOMINATOR % share.denominator:
        raise wrong_call(function, "takes a literal share from 0 to 1 with at most six decimals", node)
    return share


# --- lists ------------------------------------------------------------------------------------------------------------

_CALLS = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)


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
        raise wrong_call(call.sql_name(), f"takes from 1 to {MOST_SHARES} shares in a list", call.args[slot])
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
    if not (quantiles := equal_parts(call)):
        count = call.args.get("expression")
        reason = f"takes a value and a number of parts from 1 to {MOST_SHARES - 1}"
        raise wrong_call(call.sql_name(), reason, count, call)
    return quantiles


# --- SAMPLE_AGGREGATE inside a private block --------------------------------------------------------------------------
# An expression over aggregates, its bounds, the number of samples of units, and how their values are combined.

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
    raise wrong_call(FUNCTION, reason, nearest)


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
        statistic = SPELLED.get(spelling(inner))
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
        value, distinct = counted(node)
        if value is None:
            return statistic_call(STATISTICS["count_rows"], (), condition)
        return statistic_call(
            STATISTICS["count_distinct" if distinct else "count"], (self._rows.bind(value),), condition
        )

    def _arguments(self, statistic: Statistic, node: exp.Expr) -> tuple[Expr, ...]:
        """Return the bound arguments of an aggregate. Refuses numbers without bounds."""
        if not isinstance(node, exp.Anonymous):
            only(node, "this", "expression")
        operands = operands_of(node)
        if not operands:
            raise MissingArgument
        if len(operands) != statistic.arity:
            raise wrong_call(statistic.word.upper(), f"takes {statistic.arity} arguments", node)
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
            raise wrong_call(statistic.word.upper(), f"takes numbers here, not {facts.type.value}", node)
        if not all(_usable(Fraction(end)) for end in (facts.lower, facts.upper)):
            reason = "takes numbers here whose bounds are 0 or from 1e-100 to 1e100 in size"
            raise wrong_call(statistic.word.upper(), reason, node)


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and spelling(node) in SPELLED)
