"""Candidate values of a base column: its domain, or one value of each cell of its line.

Within a cell, every comparison with a constant and every known step function has one value, so that one candidate of each cell
gives each of them all values that it can have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

from dpsql.functions.dates import unit_of
from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_questions import Candidates, Span, inside, reads_result
from dpsql.functions.public_domains import MOST_VALUES, starts
from dpsql.functions.values import bucket
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal, names_read
from dpsql.storage.memory import RecentValues
from dpsql.storage.records import dataclass, field

_COMPARING = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "in", "not_distinct"))
_STEPPING = frozenset(("floor", "ceil", "round", "to_integer", "intdiv", "width_bucket"))
_GRAINS = ("second", "minute", "hour", "day", "month", "quarter", "year")
_PARTS = {**{unit: unit for unit in _GRAINS}, **dict.fromkeys(("week", "dow", "isodow", "doy"), "day")}
_SAMPLES = 8
"""Places that are tried for each whole value of a step function."""
_EXACT = 2**52
LEAST_CHARACTER = "\x01"
"""Character that, behind a text, gives a text before each longer one of other characters."""

_domains: RecentValues[Candidates | None] = RecentValues(256, 4 * MOST_VALUES)


def domain(column: Column, facts: Facts | None = None) -> Candidates | None:
    """Return the values that the policy names for a column, and NULL if it may be NULL; None if there is no such list."""
    facts = facts or column.facts
    return _domains.get((column.name, facts), partial(_domain, column, facts), len(facts.values or ()))


def _domain(column: Column, facts: Facts) -> Candidates | None:
    missing = ((None,),) if facts.nullable or None in (facts.values or ()) else ()
    if facts.type is Type.BOOLEAN and facts.values is None:
        return Candidates((column.name,), ((True,), (False,), *missing))
    size = facts.size()
    if size is None or size > MOST_VALUES:
        return None
    if facts.values is not None:
        real = facts.type is Type.REAL
        present = dict.fromkeys(float(v) if real else v for v in facts.values if v is not None)
        return Candidates((column.name,), (*((value,) for value in present), *missing))
    first, last = (int(end) if facts.type is Type.INTEGER else end for end in (facts.lower, facts.upper))
    return Candidates((column.name,), missing, Span(first, last))


@dataclass
class Uses:
    """How expressions read one column: the constants that it is compared with, units of time, and step functions. `compared`:
    only comparisons are noted, every other use is unknown."""

    column: Column
    points: list[Any] = field(default_factory=list)
    grains: set[str] = field(default_factory=set)
    widths: set[tuple[int, Any]] = field(default_factory=set)
    steps: dict[Expr, None] = field(default_factory=dict)
    unknown: bool = False
    compared: bool = False

    def read(self, expression: Expr, unknown: Callable[[Column], Expr]) -> Expr:
        """Note the uses in `expression`. Return it with every use of another kind rewritten by `unknown`."""
        if isinstance(expression, Column) and expression.name == self.column.name:
            self.unknown = True
            return unknown(expression)
        if isinstance(expression, Call) and self._noted(expression):
            return expression
        return inside(expression, lambda part: self.read(part, unknown))

    def _noted(self, call: Call) -> bool:
        """Return whether a call is constant in each cell, and note where its cells end."""
        named = [argument for argument in call.arguments if names_read(argument)]
        if len(named) != 1 or names_read(call) != {self.column.name} or reads_result(call):
            return False
        constants = [argument for argument in call.arguments if argument is not named[0]]
        if not isinstance(named[0], Column):
            return not self.compared and self._is_step(call)
        if call.function == "is_null":
            return True
        if call.function in _COMPARING:
            return self._is_compared([evaluate(other, {}) for other in constants])
        if self.compared:
            return False
        grain = _grain(call)
        if grain is not None and self.column.facts.type.temporal:
            self.grains.add(grain)
            return True
        width, *since = constants if call.function == "time_bucket" else [None]
        if isinstance(width, Literal) and since and isinstance(since[0], Literal):
            self.widths.add((width.value, since[0].value))
            return True
        return self._is_step(call)

    def _is_compared(self, constants: Iterable[Any]) -> bool:
        """Note the constants with which the column is compared, if they are of a comparable type."""
        type_, points = self.column.facts.type, []
        for constant in constants:
            if constant is None:
                continue
            near = _points(constant, type_)
            if near is None:
                return False
            points += near
        self.points += points
        return True

    def _is_step(self, call: Call) -> bool:
        """Note a monotone function with whole values: floor, ceil, round, a cast or whole division of a linear expression."""
        if not self.column.facts.type.numeric or call.function not in _STEPPING:
            return False
        if not all(isinstance(argument, Literal) for argument in call.arguments[1:]):
            return False
        if call.function == "round" and len(call.arguments) > 1 and getattr(call.arguments[1], "value", None) != 0:
            return False
        if not _is_linear(call.arguments[0]) or (self.steps and call not in self.steps):
            return False
        self.steps[call] = None
        return True


def _is_linear(expression: Expr) -> bool:
    """Return whether an expression is a column under + - * / with constants, which is monotone even after rounding."""
    if isinstance(expression, Column):
        return True
    if not isinstance(expression, Call) or expression.function not in ("add", "sub", "mul", "div", "neg", "to_real"):
        return False
    named = [argument for argument in expression.arguments if names_read(argument)]
    if len(named) != 1 or (expression.function == "div" and named[0] is not expression.arguments[0]):
        return False
    return _is_linear(named[0])


def _grain(call: Call) -> str | None:
    """Return the unit of time on which a function of a moment depends; None if it is no such function."""
    first = call.arguments[0]
    unit = first.value if isinstance(first, Literal) else None
    if call.function == "date_trunc":
        return "day" if unit == "week" else unit if unit in _GRAINS else None
    if call.function == "date_part":
        return _PARTS.get(str(unit))
    if call.function == "date_diff":
        return "day" if unit == "week" else unit if unit in _GRAINS else None
    if call.function == "strftime":
        form = call.arguments[1]
        return unit_of(form.value) if isinstance(form, Literal) else None
    return {"to_date": "day", "last_day": "day"}.get(call.function)


def _points(constant: Any, type_: Type) -> list[Any] | None:
    """Return a constant and its neighbours among the values of a type; None if they are not known."""
    if type_ is Type.TEXT:
        return [constant] if isinstance(constant, str) and min(constant, default="a") > LEAST_CHARACTER else None
    if isinstance(constant, (bool, str)) or type_ is Type.BOOLEAN:
        return [] if type_ is Type.BOOLEAN and isinstance(constant, bool) else None
    if type_.numeric:
        if isinstance(constant, date):
            return None
        if type_ is Type.REAL:
            number = float(constant)
            return [math.nextafter(number, -math.inf), number, math.nextafter(number, math.inf)]
        if isinstance(constant, float) and not math.isfinite(constant):
            return []
        whole = math.floor(constant)
        exact = isinstance(constant, int) or abs(whole) < _EXACT
        return [whole - 1, whole, whole + 1, whole + 2] if exact else None
    if not isinstance(constant, date):
        return None
    moment = constant if isinstance(constant, datetime) else datetime(constant.year, constant.month, constant.day)
    if type_ is Type.DATE:
        return [day for step in (-1, 0, 1) if (day := _moved(moment.date(), timedelta(days=step))) is not None]
    return [time for step in (-1, 0, 1) if (time := _moved(moment, timedelta(microseconds=step))) is not None]


def _moved(value: Any, step: timedelta) -> Any:
    try:
        return value + step
    except OverflowError:
        return None


_ENDS: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (-(2**63), 2**63 - 1),
    Type.REAL: (-math.inf, math.inf, math.nan),
    Type.DATE: (date.min, date.max),
    Type.TIMESTAMP: (datetime.min, datetime.max),
}


def cells(uses: Uses, within: bool) -> Candidates | None:
    """Return one value of each cell of a column's line; `within`: only of the part between its bounds. None if some function of
    it has cells that are not known, or too many."""
    facts, type_ = uses.column.facts, uses.column.facts.type
    if type_ is Type.BOOLEAN or (facts.values is not None and within):
        return domain(uses.column)
    if type_ is Type.NULL:
        return None
    if type_ is Type.TEXT:
        return None if within else _listed(uses.column, [*_between(uses.points), None])
    bounded = within and facts.bounded
    if (within and not bounded) or (not bounded and (uses.grains or uses.widths or uses.steps)):
        return None
    low, high = (_end(facts.lower, type_), _end(facts.upper, type_)) if bounded else (None, None)
    values: list[Any] = [low, high] if bounded else list(_ENDS[type_])
    values += uses.points
    try:
        for starts in (
            _starts(uses, low, high),
            *(_representatives(step, uses.column, low, high) for step in uses.steps),
        ):
            values += starts
    except (_Unknown, OverflowError):
        return None
    if bounded:
        values = [value for value in values if low <= value <= high]
    elif type_ is Type.INTEGER:
        values = [value for value in values if -(2**63) <= value < 2**63]
    return _listed(uses.column, [*values, *((None,) if facts.nullable or not within else ())])


def _between(texts: Iterable[str]) -> list[str]:
    """Return texts and one of each gap between them: they are ordered by code points, and nothing is before the empty text."""
    ordered = sorted({*texts, ""})
    return [*ordered, *(text + LEAST_CHARACTER for text in ordered)]


def _listed(column: Column, values: Iterable[Any]) -> Candidates | None:
    rows = tuple((value,) for value in dict.fromkeys(values))
    return Candidates((column.name,), rows) if len(rows) <= MOST_VALUES else None


def _end(value: Any, type_: Type) -> Any:
    if type_ is Type.REAL:
        return float(value)
    if type_ is Type.INTEGER:
        return int(value)
    midnight = isinstance(value, datetime) or type_ is Type.DATE
    return value if midnight else datetime(value.year, value.month, value.day)


class _Unknown(Exception):
    """The cells of a function are unknown, or too many."""


def _starts(uses: Uses, low: Any, high: Any) -> Iterator[Any]:
    """Yield the starts of the finest unit of time, and of all buckets."""
    for seconds, since in uses.widths:
        if (high - low) / timedelta(seconds=seconds) > MOST_VALUES:
            raise _Unknown
        start = bucket(low, seconds, since)
        while start <= high:
            yield max(start, low)
            start += timedelta(seconds=seconds)
    if not uses.grains:
        return
    unit, type_ = min(uses.grains, key=_GRAINS.index), uses.column.facts.type
    if type_ is Type.DATE and unit in ("hour", "minute", "second"):
        unit = "day"
    begun = starts(Facts(type_, low, high), unit)
    if begun is None:
        raise _Unknown
    yield from (max(start, low) for start in begun)


def _representatives(step: Expr, column: Column, low: Any, high: Any) -> Iterator[Any]:
    """Yield some place for each value of a monotone step function, found at evenly spaced places and checked to be contiguous."""
    first, last = (evaluate(step, {column.name: end}) for end in (low, high))
    if first is None or last is None or not abs(last - first) * _SAMPLES <= MOST_VALUES:
        raise _Unknown
    count = int(abs(last - first)) * _SAMPLES + _SAMPLES
    whole = column.facts.type is Type.INTEGER
    indexes: dict[Any, Any] = {}
    for index in range(count + 1):
        exact = Fraction(low) + (Fraction(high) - Fraction(low)) * index / count
        point = math.floor(exact) if whole else min(max(float(exact), low), high)
        indexes.setdefault(evaluate(step, {column.name: point}), point)
    if None in indexes or len(indexes) != abs(last - first) + 1:
        raise _Unknown
    yield from indexes.values()
