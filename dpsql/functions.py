"""The row functions a private block may use: argument types, result type, interval, nullability. Nothing else is known.

Every function is total: for no data does it raise; where the engine's own function would (overflow, a text that is
no number), the result is NULL. Binding refuses whatever has no entry here (an allow-list, privacy.md 1).
"""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from dpsql import ranges
from dpsql.plan import Call, Expr, Literal
from dpsql.ranges import INT64, Facts, Interval, Type


class WrongArguments(Exception):
    """The function exists and does not take these arguments; the text says what it takes."""


Infer = Callable[[tuple[Expr, ...]], Facts]


@dataclass(frozen=True)
class Function:
    """`infer` gives the facts of the result from the arguments, or raises `WrongArguments`."""

    name: str
    infer: Infer


REGISTRY: dict[str, Function] = {}
MOST_TEXT = 10_000
"""Concatenated and replaced texts are cut here: doubled again and again, a person's text could fill the memory."""
MOST_PARTS = 20
REPEATED = {
    "clamp": 4, "width_bucket": 7, "sqrt": 2, "ln": 2, "log10": 2, "add_days": 2, "add_months": 2, "add_seconds": 2,
    "nullif": 2, "to_integer": 2, "to_real": 2, "to_boolean": 2, "to_date": 2, "to_timestamp": 2,
}  # fmt: skip
"""How often an engine's text names the argument, where it names it more than once."""
DATE_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DIFF_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PART_RANGE = {
    "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dow": (0, 6), "isodow": (1, 7),
    "doy": (1, 366), "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip


def call(name: str, *arguments: Expr) -> Call:
    """The call of a registered function, with its facts. Raises WrongArguments."""
    return Call(name, arguments, REGISTRY[name].infer(arguments))


def _function(*names: str) -> Callable[[Infer], Infer]:
    def enter(infer: Infer) -> Infer:
        for name in names:
            REGISTRY[name] = Function(name, infer)
        return infer

    return enter


def _want(arguments: tuple[Expr, ...], *wanted: tuple[Type, ...] | Type) -> None:
    """One entry per argument: the types it may have; NULL literals fit everywhere."""
    if len(arguments) != len(wanted):
        raise WrongArguments(f"takes {len(wanted)} argument{'s' if len(wanted) != 1 else ''}, got {len(arguments)}")
    for position, (argument, types) in enumerate(zip(arguments, wanted, strict=True), 1):
        allowed = types if isinstance(types, tuple) else (types,)
        if argument.facts.type not in (*allowed, Type.NULL):
            names = " or ".join(type_.value for type_ in allowed)
            raise WrongArguments(f"argument {position} must be {names}, not {argument.facts.type.value}")


def _interval(argument: Expr) -> Interval:
    return (argument.facts.lower, argument.facts.upper)


def _nullable(arguments: tuple[Expr, ...]) -> bool:
    return any(argument.facts.nullable for argument in arguments)


NUMERIC = (Type.INTEGER, Type.REAL)
TEMPORAL = (Type.DATE, Type.TIMESTAMP)


LARGEST = Fraction(2**1024 - 2**970)
_FINEST = 2**1200


def _real(interval: Interval, nullable: bool) -> Facts:
    """A real in `interval`; ends that no double holds are unknown, long fractions are rounded outward."""
    low, high = interval
    if low is not None:
        low = Fraction(math.floor(low * _FINEST), _FINEST) if low.denominator > _FINEST else low
    if high is not None:
        high = Fraction(math.ceil(high * _FINEST), _FINEST) if high.denominator > _FINEST else high
    low, high = (None if end is None or abs(end) > LARGEST else end for end in (low, high))
    return Facts(Type.REAL, low, high, nullable=nullable)


def _result_number(arguments: tuple[Expr, ...], interval: Interval) -> Facts:
    """INTEGER if all arguments are, else REAL; an integer that may pass 64 bits becomes NULL there."""
    nullable = _nullable(arguments)
    if any(argument.facts.type is Type.REAL for argument in arguments):
        return _real(interval, nullable)
    inside = None not in interval and INT64[0] <= interval[0] and interval[1] <= INT64[1]
    low, high = interval if inside else (None, None)
    return Facts(Type.INTEGER, low, high, nullable=nullable or not inside)


def _arithmetic(name: str, combine: Callable[[Interval, Interval], Interval]) -> None:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        _want(arguments, NUMERIC, NUMERIC)
        left, right = arguments
        same = name == "mul" and left == right
        interval = ranges.square(_interval(left)) if same else combine(_interval(left), _interval(right))
        return _result_number(arguments, interval)

    REGISTRY[name] = Function(name, infer)


_arithmetic("add", ranges.add)
_arithmetic("sub", lambda a, b: ranges.add(a, ranges.negate(b)))
_arithmetic("mul", ranges.multiply)


@_function("div")
def _div(arguments: tuple[Expr, ...]) -> Facts:
    """Division of reals; NULL where the divisor is zero."""
    _want(arguments, NUMERIC, NUMERIC)
    interval = ranges.divide(_interval(arguments[0]), _interval(arguments[1]))
    return _real(interval, _nullable(arguments) or interval[0] is None)


@_function("intdiv")
def _intdiv(arguments: tuple[Expr, ...]) -> Facts:
    """Division of integers toward zero; NULL where the divisor is zero."""
    _want(arguments, Type.INTEGER, Type.INTEGER)
    low, high = ranges.divide(_interval(arguments[0]), _interval(arguments[1]))
    interval = (None, None) if low is None or high is None else (Fraction(math.trunc(low)), Fraction(math.trunc(high)))
    known = _result_number(arguments, interval)
    return replace(known, nullable=known.nullable or low is None)


@_function("mod")
def _mod(arguments: tuple[Expr, ...]) -> Facts:
    """Remainder with the sign of the dividend; NULL where the divisor is zero."""
    _want(arguments, Type.INTEGER, Type.INTEGER)
    low, high = _interval(arguments[1])
    if low is None or high is None:
        return Facts(Type.INTEGER)
    most = max(abs(low), abs(high), Fraction(1)) - 1
    least, greatest = _interval(arguments[0])
    floor = -most if least is None else min(max(least, -most), Fraction(0))
    ceiling = most if greatest is None else max(min(greatest, most), Fraction(0))
    return Facts(Type.INTEGER, floor, ceiling, nullable=_nullable(arguments) or low <= 0 <= high)


@_function("neg")
def _neg(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, NUMERIC)
    return _result_number(arguments, ranges.negate(_interval(arguments[0])))


@_function("abs")
def _abs(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, NUMERIC)
    return _result_number(arguments, ranges.absolute(_interval(arguments[0])))


@_function("sign")
def _sign(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, NUMERIC)
    return Facts(Type.INTEGER, Fraction(-1), Fraction(1), nullable=_nullable(arguments))


def _whole(name: str, whole: Callable[[Fraction], int]) -> None:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        _want(arguments, NUMERIC)
        ends = (None if end is None else Fraction(whole(end)) for end in _interval(arguments[0]))
        lower, upper = ends
        return replace(arguments[0].facts.without_values(), lower=lower, upper=upper)

    REGISTRY[name] = Function(name, infer)


_whole("floor", math.floor)
_whole("ceil", math.ceil)


@_function("round")
def _round(arguments: tuple[Expr, ...]) -> Facts:
    """round(x) or round(x, digits) with a literal number of digits from 0 to 15."""
    digits = 0
    if len(arguments) == 2:
        value = arguments[1].value if isinstance(arguments[1], Literal) else None
        if type(value) is not int or not 0 <= value <= 15:
            raise WrongArguments("takes a literal number of digits from 0 to 15")
        digits = value
    _want(arguments[:1], NUMERIC)
    step = Fraction(1, 10**digits)
    low, high = _interval(arguments[0])
    return replace(
        arguments[0].facts.without_values(),
        lower=None if low is None else math.floor(low / step) * step,
        upper=None if high is None else math.ceil(high / step) * step,
    )


@_function("sqrt")
def _sqrt(arguments: tuple[Expr, ...]) -> Facts:
    """NULL for negative numbers."""
    _want(arguments, NUMERIC)
    low, high = _interval(arguments[0])
    root = None if high is None else Fraction(math.isqrt(math.ceil(max(high, 0))) + 1)
    return Facts(Type.REAL, Fraction(0), root, nullable=_nullable(arguments) or low is None or low < 0)


@_function("ln", "log10", "exp")
def _transcendental(arguments: tuple[Expr, ...]) -> Facts:
    """NULL where there is no value. Without an interval: the question clamps the result itself."""
    _want(arguments, NUMERIC)
    return Facts(Type.REAL)


@_function("power")
def _power(arguments: tuple[Expr, ...]) -> Facts:
    """x ** y as a real; an interval is known for a literal exponent from 1 to 8."""
    _want(arguments, NUMERIC, NUMERIC)
    exponent = arguments[1].value if isinstance(arguments[1], Literal) else None
    low, high = _interval(arguments[0])
    if type(exponent) is not int or not 1 <= exponent <= 8 or low is None or high is None:
        return Facts(Type.REAL)
    corners = [low**exponent, high**exponent, *([Fraction(0)] if low <= 0 <= high else [])]
    return _real((min(corners), max(corners)), _nullable(arguments))


@_function("clamp")
def _clamp(arguments: tuple[Expr, ...]) -> Facts:
    """clamp(x, lower, upper) with literal bounds; NULL (and NaN) stays NULL."""
    _want(arguments, NUMERIC, NUMERIC, NUMERIC)
    low, high = (a.value if isinstance(a, Literal) else None for a in arguments[1:])
    if low is None or high is None or low > high:
        raise WrongArguments("takes a literal lower and a literal upper bound, lower first")
    known = arguments[0].facts
    lower = Fraction(low) if known.lower is None else min(max(known.lower, Fraction(low)), Fraction(high))
    upper = Fraction(high) if known.upper is None else max(min(known.upper, Fraction(high)), Fraction(low))
    real = any(a.facts.type is Type.REAL for a in arguments)
    possibly_nan = arguments[0].facts.type is Type.REAL and not arguments[0].facts.bounded
    return Facts(Type.REAL if real else Type.INTEGER, lower, upper, nullable=known.nullable or possibly_nan)


def common_type(arguments: tuple[Expr, ...]) -> Type:
    """The one type that several alternatives share; INTEGER and REAL meet in REAL, DATE and TIMESTAMP in TIMESTAMP."""
    types = {argument.facts.type for argument in arguments} - {Type.NULL}
    if not types:
        return Type.NULL
    if types == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    if types == {Type.DATE, Type.TIMESTAMP}:
        return Type.TIMESTAMP
    if len(types) > 1:
        raise WrongArguments("mixes " + " and ".join(sorted(type_.value for type_ in types)))
    return types.pop()


def midnight(value: Any) -> Any:
    """The timestamp that a date stands for among timestamps; a timestamp as it is."""
    return datetime.combine(value, datetime.min.time()) if type(value) is date else value


def _widened(facts: Facts, type_: Type) -> Facts:
    """Facts of a date that stands for its midnight among timestamps; the others as they are."""
    if type_ is not Type.TIMESTAMP or facts.type is not Type.DATE:
        return facts
    values = None if facts.values is None else tuple(midnight(value) for value in facts.values)
    return Facts(type_, midnight(facts.lower), midnight(facts.upper), values, facts.nullable)


def _hull(arguments: Sequence[Expr]) -> Facts:
    """Facts of a value that is one of `arguments`."""
    type_ = common_type(tuple(arguments))
    return ranges.hull([_widened(argument.facts, type_) for argument in arguments], type_)


def _extreme(name: str) -> None:
    """least/greatest skip NULL, so only an argument that is never NULL bounds the result from its side."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        type_ = common_type(arguments)
        if not (type_.numeric or type_.temporal or type_ is Type.NULL) or len(arguments) < 2:
            raise WrongArguments("takes two or more numbers or dates")
        known_facts = [_widened(argument.facts, type_) for argument in arguments]
        any_of = ranges.hull(known_facts, type_)
        sure = [facts for facts in known_facts if not facts.nullable]
        lower, upper = any_of.lower, any_of.upper
        tight = [f.upper if name == "least" else f.lower for f in sure]
        known = [bound for bound in tight if bound is not None]
        if name == "least":
            upper = min([*known, *([upper] if upper is not None else [])], default=None)
        else:
            lower = max([*known, *([lower] if lower is not None else [])], default=None)
        return Facts(type_, lower, upper, nullable=not sure)

    REGISTRY[name] = Function(name, infer)


_extreme("least")
_extreme("greatest")


@_function("coalesce")
def _coalesce(arguments: tuple[Expr, ...]) -> Facts:
    if not arguments:
        raise WrongArguments("takes one or more arguments")
    return replace(_hull(arguments), nullable=all(argument.facts.nullable for argument in arguments))


@_function("nullif")
def _nullif(arguments: tuple[Expr, ...]) -> Facts:
    if len(arguments) != 2:
        raise WrongArguments("takes 2 arguments")
    comparable(arguments)
    return replace(arguments[0].facts, nullable=True)


@_function("case")
def _case(arguments: tuple[Expr, ...]) -> Facts:
    """Arguments: condition, value, condition, value, ..., value of ELSE."""
    for condition in arguments[:-1:2]:
        if condition.facts.type not in (Type.BOOLEAN, Type.NULL):
            raise WrongArguments("conditions must be boolean")
    results = (*arguments[1:-1:2], arguments[-1])
    return _hull(results)


def comparable(arguments: tuple[Expr, ...]) -> None:
    """Raise WrongArguments unless all arguments can be compared with each other."""
    common_type(arguments)


@_function("eq", "ne", "lt", "le", "gt", "ge")
def _compare(arguments: tuple[Expr, ...]) -> Facts:
    comparable(arguments)
    return Facts(Type.BOOLEAN, nullable=_nullable(arguments))


@_function("not_distinct")
def _not_distinct(arguments: tuple[Expr, ...]) -> Facts:
    comparable(arguments)
    return Facts(Type.BOOLEAN, nullable=False)


@_function("in")
def _in(arguments: tuple[Expr, ...]) -> Facts:
    """x IN (literals)."""
    for item in arguments[1:]:
        if not isinstance(item, Literal):
            raise WrongArguments("takes literals in its list")
        comparable((arguments[0], item))
    return Facts(Type.BOOLEAN, nullable=_nullable(arguments))


@_function("and", "or")
def _and(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, *([Type.BOOLEAN] * len(arguments)))
    return Facts(Type.BOOLEAN, nullable=_nullable(arguments))


@_function("not")
def _not(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.BOOLEAN)
    return Facts(Type.BOOLEAN, nullable=_nullable(arguments))


@_function("is_null")
def _is_null(arguments: tuple[Expr, ...]) -> Facts:
    return Facts(Type.BOOLEAN, nullable=False)


@_function("is_true", "is_false")
def _is_true(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.BOOLEAN)
    return Facts(Type.BOOLEAN, nullable=False)


@_function("like", "ilike")
def _like(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.TEXT, Type.TEXT)
    if not isinstance(arguments[1], Literal):
        raise WrongArguments("takes a literal pattern")
    return Facts(Type.BOOLEAN, nullable=_nullable(arguments))


@_function("starts_with", "ends_with", "contains")
def _text_test(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.TEXT, Type.TEXT)
    return Facts(Type.BOOLEAN, nullable=_nullable(arguments))


@_function("lower", "upper", "trim", "ltrim", "rtrim")
def _text_map(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.TEXT)
    return Facts(Type.TEXT, nullable=_nullable(arguments))


@_function("left", "right")
def _left(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.TEXT, Type.INTEGER)
    _literal_int(arguments[1], 0, 10_000)
    return Facts(Type.TEXT, nullable=_nullable(arguments))


@_function("substr")
def _substr(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.TEXT, *([Type.INTEGER] * (len(arguments) - 1)))
    if len(arguments) not in (2, 3):
        raise WrongArguments("takes 2 or 3 arguments")
    for argument in arguments[1:]:
        _literal_int(argument, 1 if argument is arguments[1] else 0, 10_000)
    return Facts(Type.TEXT, nullable=_nullable(arguments))


def _literal_int(argument: Expr, low: int, high: int) -> None:
    value = argument.value if isinstance(argument, Literal) else None
    if type(value) is not int or not low <= value <= high:
        raise WrongArguments(f"takes a literal integer from {low} to {high}")


@_function("concat")
def _concat(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, *([Type.TEXT] * len(arguments)))
    if not 1 <= len(arguments) <= MOST_PARTS:
        raise WrongArguments(f"takes 1 to {MOST_PARTS} texts")
    return Facts(Type.TEXT, nullable=_nullable(arguments))


@_function("replace")
def _replace(arguments: tuple[Expr, ...]) -> Facts:
    """The two texts are literals: a replacement taken from a column could make a row's text grow without end."""
    _want(arguments, Type.TEXT, Type.TEXT, Type.TEXT)
    if not all(isinstance(a, Literal) and isinstance(a.value, str) and len(a.value) <= 20 for a in arguments[1:]):
        raise WrongArguments("takes literal texts of at most 20 characters to find and to put")
    return Facts(Type.TEXT, nullable=_nullable(arguments))


@_function("length")
def _length(arguments: tuple[Expr, ...]) -> Facts:
    _want(arguments, Type.TEXT)
    values = arguments[0].facts.values
    upper = None if values is None else Fraction(max((len(v) for v in values if v is not None), default=0))
    return Facts(Type.INTEGER, Fraction(0), upper, nullable=_nullable(arguments))


@_function("date_trunc")
def _date_trunc(arguments: tuple[Expr, ...]) -> Facts:
    """First argument: a literal unit. Dates stay dates (units from day up), timestamps stay timestamps."""
    unit = _unit(arguments, TRUNC_UNITS)
    _want(arguments, Type.TEXT, TEMPORAL)
    facts = arguments[1].facts
    if facts.type is Type.DATE and unit in ("hour", "minute", "second"):
        raise WrongArguments("takes a unit from day up for a date")
    lower, upper = (None if end is None else truncated(unit, end) for end in (facts.lower, facts.upper))
    return replace(facts.without_values(), lower=lower, upper=upper)


def truncated(unit: str, value: Any) -> Any:
    """The start of the year, quarter, ... or second that a date or timestamp is in; weeks start on Monday."""
    day = value.date() if isinstance(value, datetime) else value
    if unit in ("hour", "minute", "second"):
        kept = {"hour": (0, 0), "minute": (value.minute, 0), "second": (value.minute, value.second)}[unit]
        return value.replace(minute=kept[0], second=kept[1], microsecond=0)
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    start = day if unit == "day" else day - timedelta(days=day.weekday()) if unit == "week" else day.replace(month=month, day=1)
    return midnight(start) if isinstance(value, datetime) else start


@_function("date_part")
def _date_part(arguments: tuple[Expr, ...]) -> Facts:
    part = _unit(arguments, DATE_PARTS)
    _want(arguments, Type.TEXT, TEMPORAL)
    facts = arguments[1].facts
    if part == "year":
        low = None if facts.lower is None else Fraction(facts.lower.year)
        high = None if facts.upper is None else Fraction(facts.upper.year)
        return Facts(Type.INTEGER, low, high, nullable=facts.nullable)
    if facts.type is Type.DATE and part in ("hour", "minute", "second"):
        raise WrongArguments("a date has no time of day")
    least, most = _PART_RANGE[part]
    return Facts(Type.INTEGER, Fraction(least), Fraction(most), nullable=facts.nullable)


@_function("date_diff")
def _date_diff(arguments: tuple[Expr, ...]) -> Facts:
    """date_diff(unit, start, end): unit boundaries crossed from start to end."""
    unit = _unit(arguments, DIFF_UNITS)
    _want(arguments, Type.TEXT, TEMPORAL, TEMPORAL)
    start, end = arguments[1].facts, arguments[2].facts
    if len({start.type, end.type} - {Type.NULL}) > 1:
        raise WrongArguments("takes two dates or two timestamps")
    low = high = None
    if start.bounded and end.bounded:
        low = Fraction(difference(unit, start.upper, end.lower))
        high = Fraction(difference(unit, start.lower, end.upper))
    return Facts(Type.INTEGER, low, high, nullable=_nullable(arguments))


def difference(unit: str, start: Any, end: Any) -> int:
    """Boundaries of `unit` from start to end (two dates or two timestamps); weeks are whole ones, as DuckDB has them."""
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    if months is not None:
        return int((end.year * 12 + end.month - 1) // months - (start.year * 12 + start.month - 1) // months)
    if unit == "week":
        return math.trunc((truncated("day", midnight(end)) - truncated("day", midnight(start))).days / 7)
    seconds = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}[unit]
    apart: timedelta = truncated(unit, midnight(end)) - truncated(unit, midnight(start))
    return (apart.days * 86400 + apart.seconds) // seconds


@_function("add_days")
def _add_days(arguments: tuple[Expr, ...]) -> Facts:
    """A date or timestamp and an integer number of days; NULL outside the calendar."""
    _want(arguments, TEMPORAL, Type.INTEGER)
    facts, days = arguments[0].facts, arguments[1].facts
    if not (facts.bounded and days.bounded):
        return Facts(facts.type)
    try:
        lower, upper = (b + timedelta(days=int(d)) for b, d in ((facts.lower, days.lower), (facts.upper, days.upper)))
    except OverflowError:
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=_nullable(arguments))


@_function("add_months")
def _add_months(arguments: tuple[Expr, ...]) -> Facts:
    """A date or timestamp and a literal number of months (SQL's + INTERVAL)."""
    _want(arguments, TEMPORAL, Type.INTEGER)
    _literal_int(arguments[1], -(10**6), 10**6)
    return _moved(arguments, moved_by_months)


def _moved(arguments: tuple[Expr, ...], move: Callable[[Any, int], Any]) -> Facts:
    """Facts of a date moved by a literal number of steps, where `move` is monotone in the date."""
    facts, steps = arguments[0].facts, arguments[1]
    if not facts.bounded or not isinstance(steps, Literal):
        return Facts(facts.type)
    try:
        lower, upper = (move(end, steps.value) for end in (facts.lower, facts.upper))
    except (OverflowError, ValueError):
        return Facts(facts.type)
    return Facts(facts.type, lower, upper, nullable=facts.nullable)


def moved_by_months(value: Any, months: int) -> Any:
    """The same day of another month, or that month's last. Raises ValueError outside the years 1 to 9999."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1] if 1 <= year <= 9999 else value.day
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


@_function("add_seconds")
def _add_seconds(arguments: tuple[Expr, ...]) -> Facts:
    """A timestamp and a literal number of seconds."""
    _want(arguments, Type.TIMESTAMP, Type.INTEGER)
    _literal_int(arguments[1], -(10**6), 10**6)
    return _moved(arguments, lambda value, seconds: value + timedelta(seconds=seconds))


def _unit(arguments: tuple[Expr, ...], units: tuple[str, ...]) -> str:
    unit = arguments[0].value if arguments and isinstance(arguments[0], Literal) else None
    if unit not in units:
        raise WrongArguments("takes one of these units as a literal: " + ", ".join(units))
    return str(unit)


@_function("width_bucket")
def _width_bucket(arguments: tuple[Expr, ...]) -> Facts:
    """width_bucket(x, low, high, buckets): 0 below low, buckets + 1 from high on; literal low < high and buckets."""
    _want(arguments, NUMERIC, NUMERIC, NUMERIC, Type.INTEGER)
    low, high = (a.value if isinstance(a, Literal) else None for a in arguments[1:3])
    if low is None or high is None or not low < high:
        raise WrongArguments("takes literal bounds, the lower first")
    _literal_int(arguments[3], 1, 100_000)
    assert isinstance(arguments[3], Literal)
    nullable = _nullable(arguments) or not math.isfinite(float(high) - float(low))
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


def _cast(target: Type) -> None:
    """A total cast: NULL where the value has no counterpart (a text that is no number, a real beyond 64 bits)."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        _want(arguments, _CASTS[target])
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
            ends = [None if end is None else end.date() for end in (facts.lower, facts.upper)]
            return Facts(target, *ends, nullable=facts.nullable)
        return Facts(target, nullable=True)

    REGISTRY[f"to_{target.value}"] = Function(f"to_{target.value}", infer)


for _target in _CASTS:
    _cast(_target)
