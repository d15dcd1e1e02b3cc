"""Facts about a column before data is touched: type, closed interval, finite domain; interval arithmetic.

Bounds are exact (fractions, dates); they come from the policy and from the question, never from data. Values are clamped to them,
so a wrong interval can cost accuracy but never privacy (privacy.md 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from fractions import Fraction
from math import isfinite
from typing import Any

from dpsql.policy.values import MOST_DIGITS
from dpsql.storage.records import dataclass, field, hashed_once, replace


class Type(str, Enum):
    """SQL types. INTEGER has 64 bits, REAL is a double, TIMESTAMP has no time zone. List types occur only in columns of
    answers."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NULL = "null"
    INTEGER_LIST = "integer[]"
    REAL_LIST = "real[]"
    TEXT_LIST = "text[]"
    BOOLEAN_LIST = "boolean[]"
    DATE_LIST = "date[]"
    TIMESTAMP_LIST = "timestamp[]"

    @property
    def numeric(self) -> bool:
        """Return whether arithmetic is defined on values of the type."""
        return self in (Type.INTEGER, Type.REAL)

    @property
    def temporal(self) -> bool:
        """Return whether values of the type are points in time."""
        return self in (Type.DATE, Type.TIMESTAMP)


INT64 = (Fraction(-(2**63)), Fraction(2**63 - 1))


@hashed_once
@dataclass(frozen=True)
class Facts:
    """Facts about one expression. A bound of None is unknown (unbounded).

    `values` is a finite domain in key order; it may hold None when NULL is a separate group. `max_total`: the most that the
    policy lets one privacy unit add to a sum of this column. `outside`: for a column, the group key that represents all values
    outside its domain or bounds (None: they belong to no group). `scale`: for a column of decimals, the digits after the point.
    """

    type: Type
    lower: Any = None
    upper: Any = None
    values: tuple[Any, ...] | None = None
    nullable: bool = True
    max_total: Fraction | None = None
    outside: Any = None
    scale: int | None = field(default=None, metadata={"added": True})

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None

    def without_values(self) -> Facts:
        return replace(self, values=None)

    def size(self) -> int | None:
        """Return the number of values of the public domain; None when it is not finite."""
        if self.values is not None:
            return len(self.values)
        if self.type is Type.BOOLEAN:
            return 2
        if not self.bounded:
            return None
        if self.type is Type.INTEGER:
            return int(self.upper) - int(self.lower) + 1
        if self.type is Type.DATE:
            return int((self.upper - self.lower).days) + 1
        return None

    def domain(self) -> tuple[Any, ...] | None:
        """Return the public domain in key order, None when it is not finite. It may be long: call `size` first."""
        size = self.size()
        if self.values is not None or size is None:
            return self.values
        if self.type is Type.BOOLEAN:
            return (False, True)
        if self.type is Type.INTEGER:
            return tuple(range(int(self.lower), int(self.upper) + 1))
        return tuple(self.lower + timedelta(days=day) for day in range(size))


def literal_facts(value: Any) -> Facts:
    if value is None:
        return Facts(Type.NULL)
    if isinstance(value, bool):
        return Facts(Type.BOOLEAN, values=(value,), nullable=False)
    if isinstance(value, int):
        return Facts(Type.INTEGER, Fraction(value), Fraction(value), (value,), nullable=False)
    if isinstance(value, Fraction):
        return Facts(Type.REAL, value, value, (value,), nullable=False)
    if isinstance(value, float) and not isfinite(value):  # outside every interval
        return Facts(Type.REAL, nullable=False)
    if isinstance(value, str):
        return Facts(Type.TEXT, values=(value,), nullable=False)
    if isinstance(value, datetime):
        return Facts(Type.TIMESTAMP, value, value, (value,), nullable=False)
    if isinstance(value, date):
        return Facts(Type.DATE, value, value, (value,), nullable=False)
    raise TypeError(f"no SQL type for {type(value).__name__}")


def hull(parts: Sequence[Facts], type_: Type) -> Facts:
    """Return the facts of a value that is one of several (CASE, COALESCE): union of intervals and of finite domains."""
    typed = [part for part in parts if part.type is not Type.NULL]
    nullable = any(part.nullable for part in parts)
    lower = min((part.lower for part in typed), default=None) if all(p.lower is not None for p in typed) else None
    upper = max((part.upper for part in typed), default=None) if all(p.upper is not None for p in typed) else None
    values: tuple[Any, ...] | None = None
    if typed and all(part.values is not None for part in typed):
        values = tuple(dict.fromkeys(value for part in typed for value in part.values or () if value is not None))
    return in_decimals(Facts(type_, lower, upper, values, nullable), typed)


def digits_of(facts: Facts) -> int | None:
    """Return the digits after the point of decimals, of whole numbers and of constants; None for other numbers."""
    if facts.scale is not None or not facts.type.numeric:
        return facts.scale
    if facts.type is Type.INTEGER:
        return 0
    if not facts.bounded or facts.lower != facts.upper:
        return None
    constant = Fraction(facts.lower)
    return next((digits for digits in range(MOST_DIGITS) if 10**digits % constant.denominator == 0), None)


def in_decimals(facts: Facts, parts: Sequence[Facts], product: bool = False) -> Facts:
    """Return the facts of a real that is computed of `parts`, with the digits after the point in which it is exact: the most of
    the parts, or (`product`) all together. None of them are known where no part is a decimal, one is neither a decimal nor a
    whole number nor a constant, or the bounds have more than `MOST_DIGITS` digits."""
    if facts.type is not Type.REAL or not facts.bounded or all(part.scale is None for part in parts):
        return facts if facts.scale is None else replace(facts, scale=None)
    digits = [digits for digits in map(digits_of, parts) if digits is not None]
    if len(digits) < len(parts):
        return replace(facts, scale=None)
    scale = sum(digits) if product else max(digits)
    fits = max(abs(facts.lower), abs(facts.upper)) * 10**scale < 10**MOST_DIGITS
    return replace(facts, scale=scale if fits else None)


Interval = tuple[Any, Any]


def add(a: Interval, b: Interval) -> Interval:
    return (_both(a[0], b[0], lambda x, y: x + y), _both(a[1], b[1], lambda x, y: x + y))


def negate(a: Interval) -> Interval:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def multiply(a: Interval, b: Interval) -> Interval:
    """Return the hull of the four corner products; unknown if any end is unknown."""
    if None in a or None in b:
        return (None, None)
    corners = [x * y for x in a for y in b]
    return (min(corners), max(corners))


def divide(a: Interval, b: Interval) -> Interval:
    """Return the hull of the corner quotients; known only if the divisor's interval excludes zero."""
    if None in a or None in b or b[0] <= 0 <= b[1]:
        return (None, None)
    corners = [Fraction(x) / Fraction(y) for x in a for y in b]
    return (min(corners), max(corners))


def absolute(a: Interval) -> Interval:
    """Return [0 or the smaller absolute end, the larger absolute end]."""
    if None in a:
        return (Fraction(0), None)
    nearest = Fraction(0) if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return (nearest, max(abs(a[0]), abs(a[1])))


def square(a: Interval) -> Interval:
    """Return the interval of x * x, where both factors are the same value."""
    low, high = absolute(a)
    return (low * low, None if high is None else high * high)


def _both(x: Any, y: Any, combine: Any) -> Any:
    return None if x is None or y is None else combine(x, y)


@hashed_once
@dataclass(frozen=True)
class GroupFacts:
    """Facts about a block's groups besides its numbers. `complete`: the block has every group of the data (all keys are public).
    `counts` and `sums`: measures that are 0 for a group without rows; counts are never negative. `chosen`: measures that were
    chosen among values, so that no law bounds their distance from the exact ones. `ends`: for `chosen` measures whose error bars
    were measured: the measure, formulas of both ends, and the confidence of the bar."""

    complete: bool = True
    counts: frozenset[str] = frozenset()
    sums: frozenset[str] = frozenset()
    chosen: frozenset[str] = frozenset()
    ends: tuple[tuple[str, Any, Any, Fraction], ...] = ()


ANY_GROUPS = GroupFacts(complete=False)
"""Facts of a block about whose groups nothing is known."""
