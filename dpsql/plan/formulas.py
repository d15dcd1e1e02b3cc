"""Formulas: a measure as arithmetic on noisy terms, which is free post-processing (privacy.md 4).

A formula is a frozen tree of terms (doubles in the unit of the answer), numbers and the operators below, and nothing else. It is
written as Python arithmetic, `(a - b) / 2`; `release.formulas` has all meanings of every operator in one table. Operations are
carried out in the order of the tree, in IEEE doubles, so that SQL and vectors give the same number to the last bit.

A measure may have two formulas. The *plug-in* formula is the aggregate of the exact sums with released sums in their place, and
error bars refer to it; the *estimate* is what is shown, with less error where noise is large (`Estimate`), and may read the size
of the noise (`Deviation`). Both are resolved once the noise of the terms is known: `plugged_in`, `estimated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date as date_type
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Union, cast

from dpsql.plan.intervals import Type
from dpsql.storage.records import dataclass, hashed_once


class Operator(Enum):
    """Operators of formulas.

    NULL_IF is NULL where both operands are equal, otherwise the first operand. WHOLE rounds a number that is an integer without
    noise to 64 bits, ROUND (of an analyst) any number, both halves away from zero. DATE is the day that many days after
    1970-01-01, TIMESTAMP the microsecond that many seconds after it, both rounded like WHOLE. AT_LEAST and LESS compare. These
    two, WHOLE, DATE and TIMESTAMP are only outermost. LEAST and GREATEST ignore NULL.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    NEGATE = "negate"
    LEAST = "least"
    GREATEST = "greatest"
    SQUARE_ROOT = "square root"
    NULL_IF = "null if"
    ROUND = "round"
    WHOLE = "whole"
    DATE = "date"
    TIMESTAMP = "timestamp"
    AT_LEAST = ">="
    LESS = "<"

    __hash__ = object.__hash__  # equal by identity: that of Enum runs in Python, for each operator of each formula


class _Arithmetic:
    """Python's operators on formulas; plain numbers are read as `Number`."""

    def __add__(self, other: Operand) -> Operation:
        return _operation(Operator.ADD, self, other)

    def __radd__(self, other: Operand) -> Operation:
        return _operation(Operator.ADD, other, self)

    def __sub__(self, other: Operand) -> Operation:
        return _operation(Operator.SUBTRACT, self, other)

    def __mul__(self, other: Operand) -> Operation:
        return _operation(Operator.MULTIPLY, self, other)

    def __rmul__(self, other: Operand) -> Operation:
        return _operation(Operator.MULTIPLY, other, self)

    def __truediv__(self, other: Operand) -> Operation:
        return _operation(Operator.DIVIDE, self, other)

    def __neg__(self) -> Operation:
        return _operation(Operator.NEGATE, self)

    def at_least(self, other: Operand) -> Operation:
        return _operation(Operator.AT_LEAST, self, other)

    def below(self, other: Operand) -> Operation:
        return _operation(Operator.LESS, self, other)


@dataclass(frozen=True)
class NoisyValue(_Arithmetic):
    """The released value of the basis term called `term`."""

    term: str


@dataclass(frozen=True)
class Number(_Arithmetic):
    """A double that follows from the text and the policy. Raises ValueError for a number that is not finite."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"{self.value} in a formula")
        object.__setattr__(self, "value", float(self.value) + 0.0)  # -0.0 as 0.0: they are equal but distinguishable


@dataclass(frozen=True)
class ReleasedNumber(_Arithmetic):
    """The single number of the `plan.Result` called `result`: a constant of the formula once it is released (`settled`)."""

    result: str


@hashed_once
@dataclass(frozen=True)
class Operation(_Arithmetic):
    """An operator with its operands."""

    operator: Operator
    operands: tuple[Formula, ...]


@dataclass(frozen=True)
class Deviation(_Arithmetic):
    """The standard deviation of the noise in `linear`, a sum of terms with fixed weights."""

    linear: Formula


@hashed_once
@dataclass(frozen=True)
class Estimate(_Arithmetic):
    """A measure with two formulas: `plug_in`, to which error bars refer, and `shrunk`, which is shown. Without noise both are the
    same number."""

    plug_in: Formula
    shrunk: Formula


_TERMS = "#terms"


@dataclass(frozen=True, eq=False)
class Element(_Arithmetic):
    """The value of a list at a released number, counted from 0 and taken modulo the list's length, so that every number selects a
    value. Only outermost. Lists of different types are different: (0, 1) is not (false, true), although they are equal in Python.
    Raises ValueError unless all values have one and the same type of `LISTED`."""

    values: tuple[Any, ...]
    number: Formula

    def __post_init__(self) -> None:
        if len({type(value) for value in self.values}) != 1 or type(self.values[0]) not in LISTED:
            raise ValueError("no list of values of one type")

    def _identity(self) -> tuple[object, ...]:
        return type(self.values[0]), self.values, self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


LISTED = (str, bool, int, float, date_type, datetime)
"""Types that the values of a list may have."""
Formula = Union[NoisyValue, Number, ReleasedNumber, Operation, Element, Deviation, Estimate]
Operand = Union[_Arithmetic, float, int]
MeasureFormula = tuple[str, Formula, Type]
"""Name of a measure, its formula over terms, and the type of the result."""


def formula(value: Operand | str) -> Formula:
    """Return `value` as a formula: a formula unchanged, a number as `Number`, a string as the term of that name."""
    if isinstance(value, _Arithmetic):
        return cast(Formula, value)  # all its subclasses are formulas
    if isinstance(value, str):
        return NoisyValue(value)
    assert isinstance(value, (int, float))
    return Number(float(value))


def _operation(operator: Operator, *operands: Operand) -> Operation:
    return Operation(operator, tuple(map(formula, operands)))


def least(*operands: Operand) -> Operation:
    return _operation(Operator.LEAST, *operands)


def greatest(*operands: Operand) -> Operation:
    return _operation(Operator.GREATEST, *operands)


def within(value: Operand, lower: Operand, upper: Operand) -> Operation:
    """Return `value` clamped to [lower, upper]."""
    return least(greatest(value, lower), upper)


def square_root(value: Operand) -> Operation:
    return _operation(Operator.SQUARE_ROOT, value)


def null_if(value: Operand, other: Operand) -> Operation:
    return _operation(Operator.NULL_IF, value, other)


def whole(value: Operand) -> Formula:
    """Return `value` rounded to an integer; an `Element` or an operation that rounds already is returned unchanged."""
    if isinstance(value, Element) or (isinstance(value, Operation) and value.operator is Operator.WHOLE):
        return value
    return _operation(Operator.WHOLE, value)


def date(days: Operand) -> Operation:
    """Return the day `days` days after 1970-01-01."""
    return _operation(Operator.DATE, days)


def timestamp(seconds: Operand) -> Operation:
    """Return the time `seconds` seconds after 1970-01-01 00:00."""
    return _operation(Operator.TIMESTAMP, seconds)


def _parts(value: Formula) -> tuple[Formula, ...]:
    if isinstance(value, Operation):
        return value.operands
    if isinstance(value, Element):
        return (value.number,)
    if isinstance(value, Deviation):
        return (value.linear,)
    return (value.plug_in, value.shrunk) if isinstance(value, Estimate) else ()


def terms_of(value: Formula) -> frozenset[str]:
    """Return the names of a formula's terms, which deep formulas keep: looking up an equal one costs a full comparison."""
    if isinstance(value, NoisyValue):
        return frozenset({value.term})
    fields = value.__dict__ if isinstance(value, (Operation, Estimate)) else {}
    if _TERMS not in fields:
        fields[_TERMS] = frozenset().union(*map(terms_of, _parts(value)))
    return cast(frozenset[str], fields[_TERMS])


def _rebuilt(value: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """Return `value` with `change` applied to each of its direct parts."""
    if isinstance(value, Operation):
        return Operation(value.operator, tuple(map(change, value.operands)))
    if isinstance(value, Element):
        return Element(value.values, change(value.number))
    if isinstance(value, Deviation):
        return Deviation(change(value.linear))
    if isinstance(value, Estimate):
        return Estimate(change(value.plug_in), change(value.shrunk))
    return value


def substituted(value: Formula, terms: Mapping[str, Formula]) -> Formula:
    """Return `value` with a formula in place of every term. Raises KeyError for a term that `terms` lacks."""
    if isinstance(value, NoisyValue):
        return terms[value.term]
    return _rebuilt(value, lambda part: substituted(part, terms))


@lru_cache(maxsize=4096)
def waits(value: Formula) -> bool:
    """Return whether a formula reads a number that is not released yet. Cached, because one part may occur in many places of a
    formula; equal formulas read the same numbers."""
    return isinstance(value, ReleasedNumber) or any(map(waits, _parts(value)))


def settled(value: Formula, released: Mapping[str, float]) -> Formula:
    """Return `value` with the numbers in `released` filled in, by the names of their results."""
    if isinstance(value, ReleasedNumber):
        return Number(released[value.result]) if value.result in released else value
    return _rebuilt(value, lambda part: settled(part, released)) if waits(value) else value


# --- noise ------------------------------------------------------------------------------------------------------------


def plugged_in(value: Formula) -> Formula:
    """Return `value` with the plug-in formula of every estimate."""
    return _plugged_in(value) if shrinks(value) else value


@lru_cache(maxsize=4096)
def _plugged_in(value: Formula) -> Formula:
    return _plugged_in(value.plug_in) if isinstance(value, Estimate) else _rebuilt(value, _plugged_in)


@lru_cache(maxsize=4096)
def shrinks(value: Formula) -> bool:
    return isinstance(value, Estimate) or any(shrinks(part) for part in _parts(value))


def estimated(value: Formula, deviations: Mapping[str, float]) -> Formula:
    """Return `value` with the shown formula in place of every estimate, for independent noise. `deviations` has the standard
    deviation of the noise of each term, in the unit of its values. Raises KeyError for a term that it lacks."""
    return _estimated(value, tuple((term, deviations[term]) for term in sorted(terms_of(value))))


@lru_cache(maxsize=1024)
def _estimated(value: Formula, term_deviations: tuple[tuple[str, float], ...]) -> Formula:
    """Return the formula of `estimated`. Cached, because questions that differ only in their rows have the same formulas under
    the same noise. Equal deviations, 0 and -0 included, give the same numbers: `Number` has only one zero."""
    deviations = dict(term_deviations)
    done: dict[int, Formula] = {}  # by identity: hashing a formula visits all of it

    def change(part: Formula) -> Formula:
        if id(part) not in done:
            done[id(part)] = replaced(part)
        return done[id(part)]

    def replaced(part: Formula) -> Formula:
        if isinstance(part, Estimate):
            noisy = any(deviations[term] for term in terms_of(part.shrunk))
            return change(part.shrunk if noisy else part.plug_in)
        if isinstance(part, Deviation):
            weights = weights_of(part.linear)
            return Number(math.hypot(*(weight * deviations[term] for term, weight in weights.items())))
        return _rebuilt(part, change)

    return change(value)


def weights_of(linear: Formula) -> dict[str, float]:
    """Return the weight of each term in a weighted sum of terms. Raises ValueError for any other formula."""
    if isinstance(linear, NoisyValue):
        return {linear.term: 1.0}
    if isinstance(linear, Operation) and linear.operator in _SUMS:
        first, *further = (weights_of(operand) for operand in linear.operands)
        sign = 1.0 if linear.operator is Operator.ADD else -1.0
        if not further:
            return {term: -weight for term, weight in first.items()}
        (second,) = further
        return {
            term: first.get(term, 0.0) + sign * second.get(term, 0.0) for term in sorted(first.keys() | second.keys())
        }
    if isinstance(linear, Operation) and linear.operator in (Operator.MULTIPLY, Operator.DIVIDE):
        left, right = linear.operands
        if isinstance(right, Number):
            factor = right.value if linear.operator is Operator.MULTIPLY else 1 / right.value
            return {term: weight * factor for term, weight in weights_of(left).items()}
        if isinstance(left, Number) and linear.operator is Operator.MULTIPLY:
            return {term: weight * left.value for term, weight in weights_of(right).items()}
    raise ValueError("the noise of a formula that is no sum of terms")


_SUMS = (Operator.ADD, Operator.SUBTRACT, Operator.NEGATE)
