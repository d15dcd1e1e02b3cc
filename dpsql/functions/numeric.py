"""Row functions that a private block may use: argument types, result type, interval, nullability.

Every function is total: it never raises, whatever the data; where the engine's own function would (overflow, a text that is
not a number), the result is NULL. Binding refuses every function without an entry here (an allow-list, privacy.md 1).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from dpsql.functions.dates import DATE_PARTS, DIFF_UNITS, TRUNC_UNITS
from dpsql.functions.signatures import (
    NUMERIC,
    REGISTRY,
    Function,
    Infer,
    WrongArguments,
    always,
    any_nullable,
    call,
    common_type,
    comparable,
    function,
    interval_of,
    literal_int,
    want,
)
from dpsql.functions.text import MOST_PARTS
from dpsql.functions.values import (
    MOST_TEXT,
    clamped_value,
    compare,
    integral,
    midnight,
    numbered_bucket,
    power,
    remainder,
    rounded,
    to_boolean,
    to_date,
    to_integer,
    to_real,
    to_text,
    to_timestamp,
)
from dpsql.plan import intervals as ranges
from dpsql.plan.intervals import INT64, Facts, Interval, Type, in_decimals
from dpsql.plan.plan import Call, Expr, Literal, literal
from dpsql.policy.values import MOST_DIGITS
from dpsql.storage.records import replace

__all__ = [
    "DATE_PARTS", "DIFF_UNITS", "MOST_PARTS", "MOST_TEXT", "REGISTRY", "TRUNC_UNITS", "Function",
    "WrongArguments", "call", "common_type", "comparable",
]  # fmt: skip

LARGEST = Fraction(2**1024 - 2**970)
_FINEST = 2**1200


def _real(interval: Interval, nullable: bool) -> Facts:
    """Return the facts of a real in `interval`. Ends beyond doubles become unknown; long fractions are rounded outward."""
    low, high = interval
    if low is not None:
        low = Fraction(math.floor(low * _FINEST), _FINEST) if low.denominator > _FINEST else low
    if high is not None:
        high = Fraction(math.ceil(high * _FINEST), _FINEST) if high.denominator > _FINEST else high
    low, high = (None if end is None or abs(end) > LARGEST else end for end in (low, high))
    return Facts(Type.REAL, low, high, nullable=nullable)


def _result_number(arguments: tuple[Expr, ...], interval: Interval) -> Facts:
    """Return the facts of a number in `interval`: INTEGER if all arguments are, else REAL. An integer is NULL beyond 64 bits."""
    nullable = any_nullable(arguments)
    if any(argument.facts.type is Type.REAL for argument in arguments):
        return _real(interval, nullable)
    inside = None not in interval and INT64[0] <= interval[0] and interval[1] <= INT64[1]
    low, high = interval if inside else (None, None)
    return Facts(Type.INTEGER, low, high, nullable=nullable or not inside)


def _arithmetic(name: str, combine: Callable[[Interval, Interval], Interval]) -> Infer:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, NUMERIC, NUMERIC)
        left, right = arguments
        same = name == "mul" and left == right
        interval = ranges.square(interval_of(left)) if same else combine(interval_of(left), interval_of(right))
        return in_decimals(_result_number(arguments, interval), [left.facts, right.facts], name == "mul")

    return infer


function("add", meaning=operator.add)(_arithmetic("add", ranges.add))
function("sub", meaning=operator.sub)(_arithmetic("sub", lambda a, b: ranges.add(a, ranges.negate(b))))
function("mul", meaning=operator.mul, cost=50)(_arithmetic("mul", ranges.multiply))


@function("div", meaning=lambda a, b: float(a) / float(b), cost=50)
def _div(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of a division of reals, which is NULL if the divisor is zero."""
    want(arguments, NUMERIC, NUMERIC)
    interval, nullable = _quotient(*arguments)
    return _real(interval, any_nullable(arguments) or nullable)


def _quotient(dividend: Expr, divisor: Expr) -> tuple[Interval, bool]:
    """Return the interval of a quotient, and whether the divisor may be zero, so that the quotient is NULL. An integer other than
    zero is at least 1 or at most -1, so that its quotients are no larger than the dividend."""
    whole, (low, high) = divisor.facts.type is Type.INTEGER, interval_of(divisor)
    nullable = low is None or high is None or low <= 0 <= high
    if not nullable or not whole:
        return ranges.divide(interval_of(dividend), (low, high)), nullable
    least = Fraction(0) if low is not None and low >= 0 else Fraction(-1)
    most = Fraction(0) if high is not None and high <= 0 else Fraction(1)
    return ranges.multiply(interval_of(dividend), (least, most)), nullable


@function("intdiv", meaning=lambda a, b: int(Fraction(a, b)), cost=100, coarse=True)
def _intdiv(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of a division of integers toward zero, which is NULL if the divisor is zero."""
    want(arguments, Type.INTEGER, Type.INTEGER)
    (low, high), nullable = _quotient(*arguments)
    interval = (None, None) if low is None or high is None else (Fraction(math.trunc(low)), Fraction(math.trunc(high)))
    facts = _result_number(arguments, interval)
    return replace(facts, nullable=facts.nullable or nullable)


@function("mod", meaning=remainder, cost=100, coarse=True)
def _mod(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of the remainder, which has the sign of the dividend and is NULL if the divisor is zero."""
    want(arguments, Type.INTEGER, Type.INTEGER)
    low, high = interval_of(arguments[1])
    if low is None or high is None:
        return Facts(Type.INTEGER)
    most = max(abs(low), abs(high), Fraction(1)) - 1
    least, greatest = interval_of(arguments[0])
    floor = -most if least is None else min(max(least, -most), Fraction(0))
    ceiling = most if greatest is None else max(min(greatest, most), Fraction(0))
    return Facts(Type.INTEGER, floor, ceiling, nullable=any_nullable(arguments) or low <= 0 <= high)


@function("neg", meaning=operator.neg)
def _neg(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, NUMERIC)
    facts = _result_number(arguments, ranges.negate(interval_of(arguments[0])))
    return in_decimals(facts, [arguments[0].facts])


@function("abs", meaning=abs, nodes=("Abs",))
def _abs(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, NUMERIC)
    facts = _result_number(arguments, ranges.absolute(interval_of(arguments[0])))
    return in_decimals(facts, [arguments[0].facts])


function("sign", meaning=lambda x: (x > 0) - (x < 0), nodes=("Sign",), coarse=True)(
    always(Facts(Type.INTEGER, Fraction(-1), Fraction(1), nullable=False), NUMERIC)
)


def _whole(whole: Callable[[Fraction], int]) -> Infer:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, NUMERIC)
        ends = (None if end is None else Fraction(whole(end)) for end in interval_of(arguments[0]))
        lower, upper = ends
        return replace(arguments[0].facts.without_values(), lower=lower, upper=upper)

    return infer


function("floor", meaning=integral(math.floor), nodes=("Floor",), coarse=True)(_whole(math.floor))
function("ceil", meaning=integral(math.ceil), nodes=("Ceil",), coarse=True)(_whole(math.ceil))


@function("round", meaning=rounded, repeated=3, cost=100, coarse=True)
def _round(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of round(x) or round(x, digits), with a literal number of digits from 0 to 15."""
    digits = 0
    if len(arguments) == 2:
        value = arguments[1].value if isinstance(arguments[1], Literal) else None
        if type(value) is not int or not 0 <= value <= 15:
            raise WrongArguments("takes a literal number of digits from 0 to 15")
        digits = value
    want(arguments[:1], NUMERIC)
    step = Fraction(1, 10**digits)
    low, high = interval_of(arguments[0])
    return replace(
        arguments[0].facts.without_values(),
        lower=None if low is None else math.floor(low / step) * step,
        upper=None if high is None else math.ceil(high / step) * step,
    )


@function("power", meaning=power, cost=200)
def _power(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of x ** y as a real; its interval is known for a literal integer exponent from 1 to 8."""
    want(arguments, NUMERIC, NUMERIC)
    exponent = arguments[1].value if isinstance(arguments[1], Literal) else None
    low, high = interval_of(arguments[0])
    if type(exponent) is not int or not 1 <= exponent <= 8 or low is None or high is None:
        return Facts(Type.REAL)
    corners = [low**exponent, high**exponent, *([Fraction(0)] if low <= 0 <= high else [])]
    return _real((min(corners), max(corners)), any_nullable(arguments))


@function("clamp", meaning=clamped_value, spellings=("clamp",), repeated=4, coarse=True)
def _clamp(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of clamp(x, lower, upper) with literal bounds, which is NULL for NULL and for NaN."""
    want(arguments, NUMERIC, NUMERIC, NUMERIC)
    low, high = (a.value if isinstance(a, Literal) else None for a in arguments[1:])
    if low is None or high is None or low > high:
        raise WrongArguments("takes a literal lower and a literal upper bound, lower first")
    facts = arguments[0].facts
    lower = Fraction(low) if facts.lower is None else min(max(facts.lower, Fraction(low)), Fraction(high))
    upper = Fraction(high) if facts.upper is None else max(min(facts.upper, Fraction(high)), Fraction(low))
    real = any(a.facts.type is Type.REAL for a in arguments)
    possibly_nan = arguments[0].facts.type is Type.REAL and not arguments[0].facts.bounded
    within = Facts(Type.REAL if real else Type.INTEGER, lower, upper, nullable=facts.nullable or possibly_nan)
    return in_decimals(within, [argument.facts for argument in arguments])


def _widened(facts: Facts, type_: Type) -> Facts:
    """Return the facts of a date converted to a timestamp (midnight); other facts unchanged."""
    if type_ is not Type.TIMESTAMP or facts.type is not Type.DATE:
        return facts
    values = None if facts.values is None else tuple(midnight(value) for value in facts.values)
    return Facts(type_, midnight(facts.lower), midnight(facts.upper), values, facts.nullable)


def _hull(arguments: Sequence[Expr]) -> Facts:
    """Return the facts of a value that equals one of `arguments`."""
    type_ = common_type(tuple(arguments))
    return ranges.hull([_widened(argument.facts, type_) for argument in arguments], type_)


def _extreme(name: str) -> Infer:
    """Return the rule of least or greatest, which skip NULL: only an argument that is never NULL tightens their bound."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        type_ = common_type(arguments)
        if not (type_.numeric or type_.temporal or type_ in (Type.NULL, Type.TEXT)) or len(arguments) < 2:
            raise WrongArguments("takes two or more numbers, dates or texts")
        known_facts = [_widened(argument.facts, type_) for argument in arguments]
        any_of = ranges.hull(known_facts, type_)
        sure = [facts for facts in known_facts if not facts.nullable]
        lower, upper = any_of.lower, any_of.upper
        tight = [f.upper if name == "least" else f.lower for f in sure]
        bounds = [bound for bound in tight if bound is not None]
        if name == "least":
            upper = min([*bounds, *([upper] if upper is not None else [])], default=None)
        else:
            lower = max([*bounds, *([lower] if lower is not None else [])], default=None)
        return in_decimals(Facts(type_, lower, upper, nullable=not sure), known_facts)

    return infer


function("least", coarse=True)(_extreme("least"))
function("greatest", coarse=True)(_extreme("greatest"))


@function("coalesce")
def _coalesce(arguments: tuple[Expr, ...]) -> Facts:
    if not arguments:
        raise WrongArguments("takes one or more arguments")
    return replace(_hull(arguments), nullable=all(argument.facts.nullable for argument in arguments))


@function("nullif", repeated=2)
def _nullif(arguments: tuple[Expr, ...]) -> Facts:
    if len(arguments) != 2:
        raise WrongArguments("takes 2 arguments")
    comparable(arguments)
    return replace(arguments[0].facts, nullable=True)


@function("case")
def _case(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of CASE, with the arguments condition, value, condition, value, ..., value of ELSE."""
    for condition in arguments[:-1:2]:
        if condition.facts.type not in (Type.BOOLEAN, Type.NULL):
            raise WrongArguments("conditions must be boolean")
    results = (*arguments[1:-1:2], arguments[-1])
    return _hull(results)


def _compare(arguments: tuple[Expr, ...]) -> Facts:
    if len(arguments) != 2:
        raise WrongArguments("takes 2 arguments")
    comparable(arguments)
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


function("eq", meaning=partial(compare, test=operator.eq))(_compare)
function("ne", meaning=partial(compare, test=operator.ne))(_compare)
function("lt", meaning=partial(compare, test=operator.lt))(_compare)
function("le", meaning=partial(compare, test=operator.le))(_compare)
function("gt", meaning=partial(compare, test=operator.gt))(_compare)
function("ge", meaning=partial(compare, test=operator.ge))(_compare)


@function("not_distinct")
def _not_distinct(arguments: tuple[Expr, ...]) -> Facts:
    return replace(_compare(arguments), nullable=False)


@function("in")
def _in(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of x IN (literals)."""
    for item in arguments[1:]:
        if not isinstance(item, Literal):
            raise WrongArguments("takes literals in its list")
        comparable((arguments[0], item))
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


@function("place_in")
def _place_in(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of the number (from 0) of the first literal that x equals, which is NULL if it equals none."""
    _in(arguments)
    return Facts(Type.INTEGER, Fraction(0), Fraction(max(0, len(arguments) - 2)))


@function("and", "or")
def _and(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, *([Type.BOOLEAN] * len(arguments)))
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


function("not", meaning=operator.not_)(always(Facts(Type.BOOLEAN, nullable=False), Type.BOOLEAN))


@function("is_null")
def _is_null(arguments: tuple[Expr, ...]) -> Facts:
    return Facts(Type.BOOLEAN, nullable=False)


@function("is_true", "is_false")
def _is_true(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.BOOLEAN)
    return Facts(Type.BOOLEAN, nullable=False)


@function("width_bucket", meaning=numbered_bucket, repeated=7, coarse=True)
def _width_bucket(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of width_bucket(x, low, high, buckets), literal low < high: 0 below low, buckets + 1 from high on."""
    want(arguments, NUMERIC, NUMERIC, NUMERIC, Type.INTEGER)
    low, high = (a.value if isinstance(a, Literal) else None for a in arguments[1:3])
    if low is None or high is None or not low < high:
        raise WrongArguments("takes literal bounds, the lower first")
    literal_int(arguments[3], 1, 100_000)
    assert isinstance(arguments[3], Literal)
    nullable = any_nullable(arguments) or not math.isfinite(float(high) - float(low))
    nullable = nullable or arguments[0].facts.type is Type.REAL
    return Facts(Type.INTEGER, Fraction(0), Fraction(arguments[3].value + 1), nullable=nullable)


_CASTS: dict[Type, tuple[Type, ...]] = {
    Type.INTEGER: (Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN),
    Type.REAL: (Type.INTEGER, Type.REAL, Type.TEXT),
    Type.TEXT: (Type.INTEGER, Type.TEXT, Type.BOOLEAN, Type.DATE),
    Type.BOOLEAN: (Type.BOOLEAN, Type.INTEGER, Type.TEXT),
    Type.DATE: (Type.DATE, Type.TIMESTAMP, Type.TEXT),
    Type.TIMESTAMP: (Type.TIMESTAMP, Type.DATE, Type.TEXT),
}


def _cast(target: Type) -> Infer:
    """Return the rule of a total cast: NULL if the value has no counterpart (a text that is no number, a real beyond 64 bits)."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, _CASTS[target])
        facts = arguments[0].facts
        if facts.type is Type.NULL:
            return Facts(target)
        if facts.type is target:
            return facts
        if target.numeric and facts.type.numeric:
            low, high = facts.lower, facts.upper
            if target is Type.INTEGER:
                low = None if low is None else Fraction(math.floor(low))
                high = None if high is None else Fraction(math.ceil(high))
                return replace(_result_number((), (low, high)), nullable=True)
            return Facts(target, low, high, nullable=facts.nullable)
        if target is Type.INTEGER and facts.type is Type.BOOLEAN:
            return Facts(target, Fraction(0), Fraction(1), nullable=facts.nullable)
        if target is Type.TIMESTAMP and facts.type is Type.DATE:
            return _widened(facts, target)
        if target is Type.DATE and facts.type is Type.TIMESTAMP:
            lower, upper = (None if end is None else end.date() for end in (facts.lower, facts.upper))
            return Facts(target, lower, upper, nullable=facts.nullable)
        return Facts(target, nullable=True)

    return infer


function("to_integer", meaning=to_integer, repeated=2, per_byte=10, reads_text=True)(_cast(Type.INTEGER))
function("to_real", meaning=to_real, repeated=2, per_byte=10, reads_text=True)(_cast(Type.REAL))
function("to_text", meaning=to_text, cost=300)(_cast(Type.TEXT))
function("to_boolean", meaning=to_boolean, repeated=2, per_byte=60, reads_text=True)(_cast(Type.BOOLEAN))
function("to_date", meaning=to_date, repeated=2, per_byte=20, reads_text=True)(_cast(Type.DATE))
function("to_timestamp", meaning=to_timestamp, repeated=2, per_byte=20, reads_text=True)(_cast(Type.TIMESTAMP))


def clamped(value: Expr) -> Expr:
    """Return a value clamped to its own bounds, which is NULL for NaN."""
    return call("clamp", value, constant(value.facts.lower, value), constant(value.facts.upper, value))


DECIMAL = ("add", "sub", "mul")
"""Functions that compute decimals of decimals."""


def nearest_decimal(value: Expr) -> Expr:
    """Return a decimal, if it is a sum, difference or product, as the double that is nearest to it, as a column of decimals is:
    the float 0.3 - 0.1 is less than 0.2. Small ones of more digits than are rounded to stay as they are."""
    scale = value.facts.scale
    computed = isinstance(value, Call) and value.function in DECIMAL
    return call("round", value, literal(scale)) if computed and scale is not None and scale <= MOST_DIGITS else value


def both(condition: Expr | None, other: Expr) -> Expr:
    """Return the conjunction of a FILTER (None: no filter) and another condition."""
    return other if condition is None else call("and", condition, other)


def constant(value: Fraction | float | int, like: Expr) -> Literal:
    """Return a literal of the type of `like`."""
    exact = int(value) if like.facts.type is Type.INTEGER else Fraction(value)
    return literal(exact)


# --- elementary functions of reals, with one entry each ---------------------------------------------------------------
# Facts, meaning in Python, the parser's nodes, cost per row.
#
# Intervals are slightly wider than the exact ones, so that they include a C library's rounding errors. Where a function
# has no value (a root of a negative, a sine of infinity), the result is NULL.

_MARGIN = Fraction(1, 10**12)
"""Relative margin (of the end's size, or of 1 if that is larger) by which an end of an interval is moved outward: about ten
thousand roundings of a double."""
_MOST_EXPONENT = 700
"""Largest exponent for which bounds of exp are computed: exp of it is a double."""
_LARGEST = Fraction(2) ** 1000
_HALF_TURN = Fraction(31416, 10000)
"""A little more than pi."""


def _outward(low: float | Fraction | None, high: float | Fraction | None) -> Facts:
    return Facts(Type.REAL, _moved(low, -1), _moved(high, 1), nullable=True)


def _moved(end: float | Fraction | None, side: int) -> Fraction | None:
    exact = None if end is None else Fraction(end)
    return None if exact is None else exact + side * _MARGIN * max(abs(exact), Fraction(1))


@function("sqrt", meaning=math.sqrt, nodes=("Sqrt",), repeated=2, cost=50)
def _sqrt(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of sqrt(x), which is NULL for negative numbers."""
    want(arguments, NUMERIC)
    low, high = interval_of(arguments[0])
    root = None if high is None else Fraction(math.isqrt(math.ceil(max(high, 0))) + 1)
    return Facts(Type.REAL, Fraction(0), root, nullable=any_nullable(arguments) or low is None or low < 0)


def _logarithm(logarithm: Callable[[float], float]) -> Callable[[tuple[Expr, ...]], Facts]:
    """Return the rule of a logarithm: it increases, is NULL up to 0, and has no lower end if the argument may come near 0."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, NUMERIC)
        low, high = (
            logarithm(float(end)) if end is not None and 1 / _LARGEST <= end <= _LARGEST else None
            for end in interval_of(arguments[0])
        )
        return _outward(low, high)

    return infer


function("ln", meaning=lambda x: math.log(float(x)), nodes=("Ln",), repeated=2, cost=100)(_logarithm(math.log))
function("log10", meaning=lambda x: math.log10(float(x)), repeated=2, cost=100)(_logarithm(math.log10))


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


@function("exp", meaning=_exponential, nodes=("Exp",), cost=100)
def _exp(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of exp(x), which increases and is never negative."""
    want(arguments, NUMERIC)
    low, high = interval_of(arguments[0])
    lower = Fraction(0) if low is None or low < -_MOST_EXPONENT or low > _MOST_EXPONENT else Fraction(math.exp(low))
    upper = None if high is None or high > _MOST_EXPONENT else math.exp(max(high, -_MOST_EXPONENT))
    facts = _outward(lower * (1 - 2 * _MARGIN), upper)
    return Facts(Type.REAL, max(facts.lower, Fraction(0)), facts.upper)


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda x: function(float(x)) if math.isfinite(x) else None


def _within_one(function: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda x: function(float(x)) if -1 <= x <= 1 else None


_ONE, _QUARTER = Fraction(1), _HALF_TURN / 2
for _name, _meaning, _low, _high in (
    ("sin", _of_finite(math.sin), -_ONE, _ONE), ("cos", _of_finite(math.cos), -_ONE, _ONE),
    ("tan", _of_finite(math.tan), None, None),
    ("asin", _within_one(math.asin), -_QUARTER, _QUARTER), ("acos", _within_one(math.acos), Fraction(0), _HALF_TURN),
):  # fmt: skip
    function(_name, meaning=_meaning, nodes=(_name.capitalize(),), repeated=2, cost=100)(
        always(Facts(Type.REAL, _low, _high), NUMERIC)
    )
function("atan", meaning=lambda x: math.atan(float(x)), nodes=("Atan",), cost=100)(
    always(Facts(Type.REAL, -_QUARTER, _QUARTER), NUMERIC)
)
function("atan2", meaning=lambda y, x: math.atan2(float(y), float(x)), nodes=("Atan2",), cost=150)(
    always(Facts(Type.REAL, -_HALF_TURN, _HALF_TURN), NUMERIC, NUMERIC)
)


def _scaled(factor: Fraction) -> Callable[[tuple[Expr, ...]], Facts]:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, NUMERIC)
        interval: Interval = interval_of(arguments[0])
        low, high = (None if end is None or abs(end) > _LARGEST else end * factor for end in interval)
        return _outward(low, high)

    return infer


function("radians", meaning=lambda x: math.radians(float(x)), nodes=("Radians",))(_scaled(Fraction(math.pi) / 180))
function("degrees", meaning=lambda x: math.degrees(float(x)), nodes=("Degrees",))(_scaled(180 / Fraction(math.pi)))
