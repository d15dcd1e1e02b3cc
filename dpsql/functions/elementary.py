"""Elementary functions of reals, with one entry each: facts, meaning in Python, the parser's nodes, cost per row.

Intervals are slightly wider than the exact ones, so that they include a C library's rounding errors. Where a function has
no value (a root of a negative, a sine of infinity), the result is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.functions.signatures import NUMERIC, any_nullable, function, interval_of, want
from dpsql.plan.intervals import Facts, Interval, Type
from dpsql.plan.plan import Expr

_MARGIN = Fraction(1, 10**12)
"""Relative margin (of the end's size, or of 1 if that is larger) by which an end of an interval is moved outward: about ten
thousand roundings of a double."""
_MOST_EXPONENT = 700
"""Largest exponent for which bounds of exp are computed: exp of it is a double."""
_LARGEST = Fraction(2) ** 1000
_HALF_TURN = Fraction(31416, 10000)
"""A little more than pi."""


def _outward(low: float | Fraction | None, high: float | Fraction | None, nullable: bool = True) -> Facts:
    return Facts(Type.REAL, _moved(low, -1), _moved(high, 1), nullable=nullable)


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
    """Return the rule of a logarithm, which increases and is NULL if the argument is not positive; it has no lower end if the
    argument may come near 0."""

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


def _between(low: Fraction | int | None, high: Fraction | int | None) -> Callable[[tuple[Expr, ...]], Facts]:
    """Return the rule of a function of one real whose values lie in [low, high] for all arguments."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, NUMERIC)
        return Facts(Type.REAL, None if low is None else Fraction(low), None if high is None else Fraction(high))

    return infer


function("sin", meaning=_of_finite(math.sin), nodes=("Sin",), repeated=2, cost=100)(_between(-1, 1))
function("cos", meaning=_of_finite(math.cos), nodes=("Cos",), repeated=2, cost=100)(_between(-1, 1))
function("tan", meaning=_of_finite(math.tan), nodes=("Tan",), repeated=2, cost=100)(_between(None, None))
function("asin", meaning=_within_one(math.asin), nodes=("Asin",), repeated=2, cost=100)(
    _between(-_HALF_TURN / 2, _HALF_TURN / 2)
)
function("acos", meaning=_within_one(math.acos), nodes=("Acos",), repeated=2, cost=100)(_between(0, _HALF_TURN))
function("atan", meaning=lambda x: math.atan(float(x)), nodes=("Atan",), cost=100)(
    _between(-_HALF_TURN / 2, _HALF_TURN / 2)
)


@function("atan2", meaning=lambda y, x: math.atan2(float(y), float(x)), nodes=("Atan2",), cost=150)
def _atan2(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of atan2(y, x), the angle of the point (x, y)."""
    want(arguments, NUMERIC, NUMERIC)
    return Facts(Type.REAL, -_HALF_TURN, _HALF_TURN)


def _scaled(factor: Fraction) -> Callable[[tuple[Expr, ...]], Facts]:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, NUMERIC)
        interval: Interval = interval_of(arguments[0])
        low, high = (None if end is None or abs(end) > _LARGEST else end * factor for end in interval)
        return _outward(low, high)

    return infer


function("radians", meaning=lambda x: math.radians(float(x)), nodes=("Radians",))(_scaled(Fraction(math.pi) / 180))
function("degrees", meaning=lambda x: math.degrees(float(x)), nodes=("Degrees",))(_scaled(180 / Fraction(math.pi)))
