"""Row expressions: sqlglot nodes on an allow-list become calls of `dpsql.functions.numeric`, with types and ranges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.canonical_conditions import FOLDED, canonical_condition
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import REGISTRY, WrongArguments, call, nearest_decimal
from dpsql.functions.public_domains import as_key
from dpsql.functions.row_costs import MOST_NANOSECONDS, cost, part_read, way_out
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Literal, literal, names_read
from dpsql.privacy.loss import exact_number
from dpsql.sql.binder.function_hints import (
    COMPARISONS,
    check_listed,
    comparison_hint,
    expression_hint,
    unknown_function,
)
from dpsql.sql.binder.scope import Scope, lacks_argument, only, sql_word, wrong_call
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.comparisons import with_extremes

WHOLE = "whole"
"""Key of a quotient's `meta`: it is whole if both sides are integers."""
SHORT_TRUTHS = "short_truths"
"""Key of `meta` of concat(...) that writes truth values as t and f."""
MOST_IN_LIST = 2_000
MOST_WEIGHT = 30_000

NO_OUTPUTS: Mapping[str, exp.Expr] = {}


class MissingArgument(Exception):
    """An argument that should be bound is missing."""


class Scalars:
    """Binder of row expressions over one scope. Every refusal carries the position of the node it is about.

    `outputs`: the expressions of a SELECT list by alias, which may be named where no column of the scope has that name.
    """

    def __init__(self, scope: Scope, outputs: Mapping[str, exp.Expr] = NO_OUTPUTS) -> None:
        self.scope = scope
        self.outputs = outputs
        self._bound_outputs: dict[str, Expr | None] = {}
        self._weights: dict[int, tuple[Call, int]] = {}

    def bind(self, node: exp.Expr | None) -> Expr:
        """Return the row expression of `node`. Refuses whatever is not on the allow-list.

        sqlglot also parses a function that lacks some of its arguments; a missing argument (None) is detected here and refused at
        the node that lacks it.
        """
        if node is None:
            raise MissingArgument
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise not_allowed(node)
        try:
            return handler(self, node)
        except MissingArgument:
            raise lacks_argument(node) from None

    def resolve(self, node: exp.Column) -> Expr:
        """Return the column that `node` names, or else the output, bound once. Refuses unknown names, and circles of outputs."""
        name = node.name.lower()
        if node.table or name not in self.outputs or self.scope.has(node):
            return self.scope.resolve(node)
        if name not in self._bound_outputs:
            self._bound_outputs[name] = None
            self._bound_outputs[name] = self.bind(self.outputs[name])
        return self._bound_outputs[name] or self.scope.resolve(node)

    def boolean(self, node: exp.Expr) -> Expr:
        """Return the row expression of a condition. Refuses (not_boolean) other types than BOOLEAN and NULL."""
        bound = self.bind(node)
        if bound.facts.type not in (Type.BOOLEAN, Type.NULL):
            raise refuse("not_boolean", type=bound.facts.type.value, position=place(node))
        return bound

    def call(self, name: str, node: exp.Expr, *arguments: Expr) -> Expr:
        """Return the call of the registered function `name`, with texts read as dates where they are compared with dates.
        Refuses wrong arguments with the reason, misspelt listed values, and slow or long expressions."""
        try:
            read = [part_read(name, argument) for argument in _meet(name, arguments, node)]
            if name in _DECIDING:
                read = list(map(nearest_decimal, read))
            bound = call(name, *read)
        except WrongArguments as wrong:
            hint = comparison_hint(name, arguments)
            raise wrong_call(_word(name), str(wrong), node, hint=hint) from None
        if name in COMPARISONS:
            check_listed(read, node)
        if bound.facts.type in FOLDED and all(isinstance(argument, Literal) for argument in bound.arguments):
            # As a constant, a pattern that a tool joins from parts is a literal, and now() truncated to its month gives the same
            # query all month long, which is answered from the store.
            constant = evaluate(bound, {})
            if constant is not None:
                return literal(constant)
        reads_none = not any(isinstance(argument, Column) for argument in bound.arguments)
        if _leaves_calendar(bound) or (reads_none and not isinstance(node, exp.TryCast) and _fails(bound)):
            raise refuse("no_value", function=sql_word(node), position=place(node))
        if name in _DIVISIONS and isinstance(divisor := bound.arguments[1], Literal) and divisor.value == 0:
            raise refuse(
                "no_value", function=f"{'/' if isinstance(node, exp.Div) else _word(name)} 0", position=place(node)
            )
        if REGISTRY[name].reads_text and cost(bound) > MOST_NANOSECONDS:
            raise refuse("slow_expression", way=way_out(bound), position=place(node))
        weight = 1 + REGISTRY[name].repeated * sum(self._weight(argument) for argument in bound.arguments)
        if weight > MOST_WEIGHT:
            raise refuse("heavy_expression", position=place(node))
        self._weights[id(bound)] = (bound, weight)
        return bound

    def _weight(self, bound: Expr) -> int:
        """Return the length of an expression when written out: BETWEEN, and functions with `repeated`, write parts twice."""
        stored = self._weights.get(id(bound))
        if stored is not None:
            return stored[1]
        return 1 + sum(map(self._weight, bound.arguments)) if isinstance(bound, Call) else 1


_DIVISIONS = ("div", "intdiv", "mod")


def _leaves_calendar(bound: Call) -> bool:
    """Return whether a shift by a constant leads every day out of the years 1 to 9999, where it has no value."""
    if (
        not bound.function.startswith("add_")
        or not isinstance(steps := bound.arguments[1], Literal)
        or steps.value is None
    ):
        return False
    days = datetime if bound.arguments[0].facts.type is Type.TIMESTAMP else date
    end = days.min if steps.value > 0 else days.max
    return evaluate(call(bound.function, literal(end), steps), {}) is None


def _fails(bound: Call) -> bool:
    """Return whether a function of constants has no value for them, as `sqrt(-1)`, `1 / 0` and integers beyond 64 bits: an engine
    refuses the text or gives NULL, and the answer would be one about nothing. Texts of infinity and NaN are numbers."""
    arguments = bound.arguments
    has_meaning = REGISTRY[bound.function].meaning is not None and bound.function != "to_real"
    if not has_meaning or not all(map(_is_constant, arguments)):
        return False
    return all(evaluate(argument, {}) is not None for argument in arguments) and evaluate(bound, {}) is None


def _is_constant(expression: Expr) -> bool:
    """Return whether an expression is a literal or a function of literals alone."""
    if not isinstance(expression, Call):
        return isinstance(expression, Literal)
    return expression.function in REGISTRY and all(isinstance(argument, Literal) for argument in expression.arguments)


def _word(name: str) -> str:
    if name.startswith("to_"):
        return f"CAST to {name[3:].upper()}"
    return {"add": "+", "sub": "-", "neg": "+ or -", "mul": "*", "div": "/", "intdiv": "//", "mod": "%", "eq": "=", "ne": "<>",
            "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.get(name, name.upper())  # fmt: skip


def _aggregated(node: exp.Expr) -> bool:
    """Return whether `node` is inside an aggregate of the same SELECT."""
    outside = node.find_ancestor(exp.AggFunc, exp.Select)
    return isinstance(outside, exp.AggFunc)


def not_allowed(node: exp.Expr) -> Exception:
    if isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation, exp.Exists)):
        return refuse("subquery_in_rows", position=place(node))
    if isinstance(node, exp.Window) and _aggregated(node):
        return refuse("window_in_aggregate", position=place(node))
    if isinstance(node, exp.Window):
        return refuse("window_over_rows", position=place(node))
    if isinstance(node, exp.AggFunc):
        return refuse("nested_aggregate", function=sql_word(node), position=place(node))
    if isinstance(node, exp.Func):
        return unknown_function(node)
    return refuse("unknown_expression", what=sql_word(node), position=place(node), hint=expression_hint(node))


# --- texts that stand for dates -------------------------------------------------------------------------------------

_COMPARING = {"eq", "ne", "lt", "le", "gt", "ge", "in", "not_distinct", "nullif"}
_MEETING = {"eq", "ne", "lt", "le", "gt", "ge", "in", "not_distinct", "nullif", "coalesce", "case", "least", "greatest"}


def _meet(name: str, arguments: tuple[Expr, ...], node: exp.Expr) -> tuple[Expr, ...]:
    """Convert arguments to a common type: a text compared with a date is read as a date (as in PostgreSQL), and a date compared
    with a timestamp becomes its midnight."""
    types = {argument.facts.type for argument in arguments}
    if types == {Type.BOOLEAN, Type.TEXT} and name in _MEETING and name != "case":  # whose conditions meet no result
        return tuple(_as_truth(argument) for argument in arguments)
    numbers = types & {Type.INTEGER, Type.REAL}
    if numbers and Type.TEXT in types and name in _COMPARING:
        return tuple(_as_number(argument, Type.REAL in numbers, node) for argument in arguments)
    target = Type.TIMESTAMP if Type.TIMESTAMP in types else Type.DATE if Type.DATE in types else None
    date_arguments = {"date_diff": slice(1, 3), "date_part": slice(1, 2), "date_trunc": slice(1, 2)}
    if name not in _MEETING and name not in date_arguments:
        return arguments
    if target is None:
        return arguments
    chosen = range(len(arguments))[date_arguments.get(name, slice(None))]
    return tuple(_as_temporal(a, target, node) if i in chosen else a for i, a in enumerate(arguments))


_DECIDING = _COMPARING | {"floor", "ceil", "round", "to_integer", "width_bucket"}
"""Functions whose value jumps where a computed decimal is a little off."""


def _as_truth(argument: Expr) -> Expr:
    """Return a literal text as the truth value that it names, as engines read `smoker = 't'`; anything else unchanged."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return argument
    value = evaluate(call("to_boolean", argument), {})
    return argument if value is None else literal(value)


_NUMBERS = {False: re.compile(r"\s*[+-]?[0-9]+\s*"), True: re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*")}


def _as_number(argument: Expr, real: bool, node: exp.Expr) -> Expr:
    """Return a literal text as the number that it names (`nights = '3'`), if engines hold it (bad_number); others unchanged."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return argument
    if not _NUMBERS[real].fullmatch(argument.value):
        return argument
    number = _number(argument.value.strip(), node)
    return literal(Fraction(number) if real else number)


def _as_temporal(argument: Expr, target: Type, node: exp.Expr) -> Expr:
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return literal(temporal(argument.value, target, node))
    if argument.facts.type is Type.DATE and target is Type.TIMESTAMP:
        if isinstance(argument, Literal):
            return literal(datetime.combine(argument.value, datetime.min.time()))
        return call("to_timestamp", argument)
    return argument


_MOMENT = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2})(:\d\d(?::\d\d(?:\.\d+)?)?)\s?(Z|[+-]\d\d(?::?\d\d)?)?)?\s*",
    re.ASCII,
)
"""Texts that engines read as dates and timestamps: Python's reader takes weeks and others, too, which they do not."""
_DAYS = {
    "today": "write CURRENT_DATE", "now": "write CURRENT_TIMESTAMP", "yesterday": "write CURRENT_DATE - 1",
    "tomorrow": "write CURRENT_DATE + 1", "epoch": "write TIMESTAMP '1970-01-01'",
}  # fmt: skip


def _in_two_digits(text: str) -> str:
    """Return a text of `_MOMENT` with two digits for the month, the day and the hour; empty for another text."""
    if (match := _MOMENT.fullmatch(text)) is None:
        return ""
    year, month, day, hour, rest, zone = match.groups()
    days = f"{year}-{month:0>2}-{day:0>2}"
    return days if hour is None else f"{days} {hour:0>2}{rest}{zone or ''}"


def temporal(text: str, target: Type, node: exp.Expr | None, zoned: bool = False) -> date | datetime:
    """Parse a date or timestamp. A date loses its time, as engines read such a text for a date. If it is `zoned`, an offset from
    UTC is taken into account, which without a zone PostgreSQL ignores. Refuses any other text (bad_date)."""
    try:
        parsed = datetime.fromisoformat(_in_two_digits(text))
    except ValueError:
        hint = _DAYS.get(text.strip().lower())
        raise refuse("bad_date", text=text, type=target.value, position=place(node), hint=hint) from None
    if parsed.tzinfo is not None:
        if parsed.utcoffset() and not zoned:
            raise refuse("bad_date", text=text, type=target.value, position=place(node))
        try:
            parsed = parsed.astimezone(UTC)
        except OverflowError:
            raise refuse("bad_date", text=text, type=target.value, position=place(node)) from None
        parsed = parsed.replace(tzinfo=None)  # 'Z' as JavaScript writes it; the engine's timestamps are in UTC too
    return parsed.date() if target is Type.DATE else parsed


# --- one handler per node type --------------------------------------------------------------------------------------

Handler = Callable[[Scalars, Any], Expr]
HANDLERS: dict[type[exp.Expr], Handler] = {}


def handles(*types: type[exp.Expr]) -> Callable[[Handler], Handler]:
    def enter(handler: Handler) -> Handler:
        for type_ in types:
            HANDLERS[type_] = handler
        return handler

    return enter


class KeyScalars(Scalars):
    """Binder of GROUP BY expressions, in their canonical form or `as_written`: in a column with policy key `outside`, values
    outside its domain are read as that label, also where a subquery computes another column from it."""

    as_written = False

    def bind(self, node: exp.Expr | None) -> Expr:
        """Bind as `Scalars.bind` does."""
        bound = super().bind(node)
        if not isinstance(node, exp.Column) or not isinstance(bound, Column):
            return bound if self.as_written else canonical_condition(bound)
        return self.scope.labels.get(bound.name) or as_key(bound)


@handles(exp.Column)
def _column(self: Scalars, node: exp.Column) -> Expr:
    if isinstance(node.this, exp.Star):
        raise refuse("raw_rows", position=place(node))
    only(node, "this", "table")
    return self.resolve(node)


@handles(exp.Subquery, exp.Exists)
def _subquery(self: Scalars, node: exp.Expr) -> Expr:
    """Bind a scalar subquery, where the scope allows one."""
    if self.scope.subquery is None:
        raise not_allowed(node)
    return self.scope.subquery(node)


@handles(exp.Paren)
def _paren(self: Scalars, node: exp.Paren) -> Expr:
    only(node, "this")
    return self.bind(node.this)


@handles(exp.Literal)
def _literal(self: Scalars, node: exp.Literal) -> Expr:
    return literal(literal_value(node))


def literal_value(node: exp.Literal) -> Any:
    """Return the text, int or Fraction of a literal node. Refuses numbers beyond what the engine can hold."""
    if node.is_string:
        return str(node.this)
    return _number(str(node.this).replace("_", ""), node)


def _number(text: str, node: exp.Expr) -> int | Fraction:
    try:
        number = exact_number(text)
    except ValueError:
        raise refuse("bad_number", text=text, position=place(node)) from None
    whole = text.lstrip("+-").isdecimal()
    if abs(number) >= 2**63 if whole else abs(number) > Fraction(10) ** 300:
        raise refuse("bad_number", text=text, position=place(node))
    return int(number) if whole else number


@handles(exp.Boolean)
def _boolean(self: Scalars, node: exp.Boolean) -> Expr:
    return literal(bool(node.this))


@handles(exp.Null)
def _null(self: Scalars, node: exp.Null) -> Expr:
    return literal(None)


@handles(exp.CurrentDate, exp.CurrentTimestamp)
def now(self: Scalars, node: exp.Expr) -> Expr:
    """Return the time of planning, which is a constant of the query; `Planner` does not cache such a plan."""
    only(node)
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    return literal(now.date() if isinstance(node, exp.CurrentDate) else now)


@handles(exp.Neg)
def _neg(self: Scalars, node: exp.Neg) -> Expr:
    only(node, "this")
    inner = self.bind(node.this)
    if isinstance(inner, Literal) and isinstance(inner.value, (int, Fraction)) and not isinstance(inner.value, bool):
        return literal(-inner.value)
    if isinstance(node.this, exp.Neg) and isinstance(inner, Call) and inner.function == "neg":
        return inner.arguments[0]
    return self.call("neg", node, inner)


_BINARY: dict[type[exp.Expr], str] = {
    exp.Mul: "mul", exp.IntDiv: "intdiv", exp.Mod: "mod", exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt",
    exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge", exp.Nullif: "nullif", exp.Like: "like", exp.ILike: "ilike",
    exp.Pow: "power", exp.NullSafeEQ: "not_distinct", exp.Div: "div",
}  # fmt: skip


@handles(*_BINARY)
def _binary(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "expression", "typed", "safe", "negate")
    if isinstance(node.expression, (exp.Any, exp.All)) and isinstance(node.expression.this, exp.Query):
        return self.bind(with_extremes(node))
    if (moments := _compared_difference(self, node)) is not None:
        return self.call(_BINARY[type(node)], node, *moments)
    left, right = self.bind(node.this), self.bind(node.expression)
    whole = node.meta_get(WHOLE) and {left.facts.type, right.facts.type} <= {Type.INTEGER, Type.NULL}
    whole = whole and self.scope.estimates.isdisjoint(names_read(left) | names_read(right))
    name = "intdiv" if whole else _BINARY[type(node)]
    result = _folded(node, left, right) or self.call(name, node, left, right)
    return self.call("not", node, result) if node.args.get("negate") else result


def moments_of(self: Scalars, node: exp.Expr) -> tuple[Expr, Expr] | None:
    """Return the two moments, of which one is a timestamp at least, whose difference an expression is; None for any other."""
    bare = node.unnest()
    if not isinstance(bare, exp.Sub) or isinstance(bare.expression.unnest(), (exp.Interval, exp.Mul, exp.Literal)):
        return None
    only(bare, "this", "expression")
    sides = (self.bind(bare.this), self.bind(bare.expression))
    types = {side.facts.type for side in sides}
    if Type.TIMESTAMP not in types or not types <= {Type.TIMESTAMP, Type.DATE}:
        return None
    later, earlier = (_as_temporal(side, Type.TIMESTAMP, bare) for side in sides)
    return later, earlier


def _compared_difference(self: Scalars, node: exp.Expr) -> tuple[Expr, Expr] | None:
    """Return a and b + INTERVAL of a - b > INTERVAL, and of other comparisons with an interval of days and less."""
    interval = node.expression.unnest() if isinstance(node, exp.Predicate) else None
    if not isinstance(interval, exp.Interval) or (moments := moments_of(self, node.this)) is None:
        return None
    function, steps = literal_interval(interval, node)
    if function == "add_months":
        raise refuse("bad_interval", position=place(interval))
    return moments[0], self.call(function, node, moments[1], literal(steps))


def _folded(node: exp.Expr, left: Expr, right: Expr) -> Literal | None:
    """Return the literal of a sum, difference or product of literal numbers, exact as those of DECIMALs are in the engine
    (0.06 + 0.01 is 0.07); None for anything else, and where the result is not below 2**53."""
    if not (isinstance(left, Literal) and isinstance(right, Literal)):
        return None
    a, b = left.value, right.value
    if type(a) not in (int, Fraction) or type(b) not in (int, Fraction):
        return None
    value = a + b if isinstance(node, exp.Add) else a - b if isinstance(node, exp.Sub) else a * b
    if abs(value) >= 2**31 and value != -(2**31) and _is_short(node):
        hint = "engines compute with such numbers in 32 bits: write one of them as CAST(2000000000 AS BIGINT)"
        raise refuse("no_value", function=sql_word(node), position=place(node), hint=hint)
    exact = isinstance(node, (exp.Add, exp.Sub, exp.Mul)) and abs(value) < 2**53
    return literal(value) if exact else None


def _is_short(node: exp.Expr) -> bool:
    """Return whether engines compute a constant in 32 bits: of integers below 2**31 without a wider type."""
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        return _is_short(node.this) and _is_short(node.expression)
    if isinstance(node, (exp.Paren, exp.Neg)):
        return _is_short(node.this)
    if isinstance(node, exp.Cast):
        return node.to.is_type(exp.DType.INT, exp.DType.SMALLINT, exp.DType.TINYINT)
    return isinstance(node, exp.Literal) and node.is_int and int(node.name.replace("_", "")) < 2**31


@handles(exp.NullSafeNEQ)
def _distinct_from(self: Scalars, node: exp.NullSafeNEQ) -> Expr:
    only(node, "this", "expression")
    return self.call("not", node, self.call("not_distinct", node, self.bind(node.this), self.bind(node.expression)))


@handles(exp.Add, exp.Sub)
def _add(self: Scalars, node: exp.Expr) -> Expr:
    """Bind + and - of numbers, date +/- days, date - date (days), and point in time +/- INTERVAL."""
    only(node, "this", "expression")
    sign = 1 if isinstance(node, exp.Add) else -1
    first, second = node.this.unnest(), node.expression.unnest()
    if isinstance(second, exp.Interval):
        return _shift(self, node, self.bind(node.this), second, sign)
    if sign == 1 and isinstance(first, exp.Interval):
        return _shift(self, node, self.bind(node.expression), first, sign)
    by = _multiplied(node.expression)
    if by is not None:
        return _shift_by(self, node, self.bind(node.this), by, sign)
    left, right = self.bind(node.this), self.bind(node.expression)
    if sign == 1 and left.facts.type is Type.INTEGER and right.facts.type is Type.DATE:
        left, right = right, left
    if left.facts.type is Type.DATE and right.facts.type is Type.INTEGER:
        days = right if sign == 1 else self.call("neg", node, right)
        return self.call("add_days", node, left, days)
    if left.facts.type is Type.DATE and sign == -1 and right.facts.type in (Type.DATE, Type.TEXT):
        return self.call("date_diff", node, literal("day"), right, left)
    return _folded(node, left, right) or self.call("add" if sign == 1 else "sub", node, left, right)


_INTERVALS = {
    "second": ("add_seconds", 1), "minute": ("add_seconds", 60), "hour": ("add_seconds", 3600),
    "day": ("add_days", 1), "week": ("add_days", 7), "month": ("add_months", 1), "quarter": ("add_months", 3),
    "year": ("add_months", 12),
}  # fmt: skip


def _shift(self: Scalars, node: exp.Expr, base: Expr, interval: exp.Interval, sign: int) -> Expr:
    number = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    is_moment = isinstance(base, Literal) and isinstance(base.value, date)
    if is_moment and interval.text("unit").upper() == "MICROSECOND" and re.fullmatch("-?[0-9]{1,9}", number):
        moment = _as_temporal(base, Type.TIMESTAMP, node)
        assert isinstance(moment, Literal)
        return literal(moment.value + timedelta(microseconds=sign * int(number)))
    function, steps = literal_interval(interval, node)
    return self.call(function, node, _with_time(base, function, node), literal(sign * steps))


def _with_time(base: Expr, function: str, node: exp.Expr) -> Expr:
    """Return a date to which seconds are added as the timestamp of its midnight, anything else unchanged."""
    return _as_temporal(base, Type.TIMESTAMP, node) if function == "add_seconds" else base


def literal_interval(interval: exp.Interval, node: exp.Expr) -> tuple[str, int]:
    """Return the function that adds a literal INTERVAL (add_days, ...) and its number of steps."""
    only(interval, "this", "unit")
    unit = str(interval.text("unit")).lower().rstrip("s")
    amount = interval.this.unnest() if isinstance(interval.this, exp.Expr) else None
    negative = isinstance(amount, exp.Neg)
    inner = amount.this if isinstance(amount, exp.Neg) else amount
    number = inner.name if isinstance(inner, exp.Literal) else ""
    if unit not in _INTERVALS or not re.fullmatch("-?[0-9]{1,9}", number):
        raise refuse("bad_interval", position=place(interval) or place(node))
    function, factor = _INTERVALS[unit]
    return function, factor * int(number) * (-1 if negative else 1)


def _multiplied(node: exp.Expr) -> tuple[exp.Interval, exp.Expr] | None:
    """Return the interval and the factor of INTERVAL '1 minute' * expression, in either order; None for anything else."""
    product = node.unnest()
    if not isinstance(product, exp.Mul):
        return None
    for interval, times in ((product.this, product.expression), (product.expression, product.this)):
        if isinstance(interval, exp.Interval):
            only(product, "this", "expression")
            return interval, times
    return None


_WHOLE = ("floor", "ceil", "round")


def _shift_by(self: Scalars, node: exp.Expr, base: Expr, by: tuple[exp.Interval, exp.Expr], sign: int) -> Expr:
    """Return a shift by an integer number of intervals; floor(x), ceil(x) and round(x) of a real count as integers."""
    function, steps = literal_interval(by[0], node)
    times = self.bind(by[1])
    if isinstance(times, Call) and times.function in _WHOLE and len(times.arguments) == 1:
        times = self.call("to_integer", node, times)
    base = _with_time(base, function, node)
    return self.call(function, node, base, self.call("mul", node, literal(sign * steps), times))


@handles(exp.And, exp.Or)
def _logic(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "expression")
    parts = tuple(self.boolean(part) for part in node.flatten())
    return self.call("and" if isinstance(node, exp.And) else "or", node, *parts)


@handles(exp.Not)
def _not(self: Scalars, node: exp.Not) -> Expr:
    only(node, "this")
    return self.call("not", node, self.boolean(node.this))


@handles(exp.Is)
def _is(self: Scalars, node: exp.Is) -> Expr:
    only(node, "this", "expression")
    if isinstance(node.expression, exp.Null):
        return self.call("is_null", node, self.bind(node.this))
    if isinstance(node.expression, exp.Boolean):
        return self.call("is_true" if node.expression.this else "is_false", node, self.bind(node.this))
    raise not_allowed(node)


@handles(exp.Between)
def _between(self: Scalars, node: exp.Between) -> Expr:
    only(node, "this", "low", "high")
    value = self.bind(node.this)
    low = self.call("ge", node, value, self.bind(node.args["low"]))
    return self.call("and", node, low, self.call("le", node, value, self.bind(node.args["high"])))


@handles(exp.In)
def _in(self: Scalars, node: exp.In) -> Expr:
    if node.args.get("query") is not None:
        raise refuse("subquery_in_rows", position=place(node))
    only(node, "this", "expressions")
    if len(node.expressions) > MOST_IN_LIST:
        raise refuse("long_list", most=MOST_IN_LIST, position=place(node))
    return self.call("in", node, self.bind(node.this), *(self.bind(item) for item in node.expressions))


@handles(exp.Case, exp.If)
def _case(self: Scalars, node: exp.Expr) -> Expr:
    is_case = isinstance(node, exp.Case)
    only(node, *(("this", "ifs", "default") if is_case else ("this", "true", "false")))
    arguments: list[Expr] = []
    compared = self.bind(node.this) if is_case and node.this is not None else None
    for branch in node.args["ifs"] if is_case else (node,):
        only(branch, "this", "true", *(() if is_case else ("false",)))
        if compared is None:
            arguments.append(self.boolean(branch.this))
        else:
            arguments.append(self.call("eq", branch, compared, self.bind(branch.this)))
        arguments.append(self.bind(branch.args["true"]))
    default = node.args.get("default" if is_case else "false")
    arguments.append(literal(None) if default is None else self.bind(default))
    return self.call("case", node, *arguments)


@handles(exp.Coalesce, exp.Least, exp.Greatest)
def _many(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "expressions", "ignore_nulls", "is_nvl", "is_null")
    names: dict[type[exp.Expr], str] = {exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest"}
    return self.call(names[type(node)], node, *(self.bind(part) for part in (node.this, *node.expressions)))
