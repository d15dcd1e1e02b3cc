"""Formulas: a measure as arithmetic of noisy terms, which is free post-processing (privacy.md 4).

A formula is a frozen tree over terms (doubles in the unit of the answer), numbers and the operators below, and nothing
else. It is written as Python arithmetic, `(a - b) / 2`; `release.formulas` has the meaning of every operator, once as
SQL of the sandbox and once in vectors. Operations are carried out in the order of the tree, in IEEE doubles, so that
both give the same number to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Union

from dpsql.plan.intervals import Type


class Operator(Enum):
    """What may be computed of terms.

    NULL_IF is NULL where both operands are equal, else the first. WHOLE rounds to a 64-bit integer, halves away from
    zero. DATE is the day so many days after 1970-01-01, TIMESTAMP the microsecond so many seconds after it, both rounded as WHOLE
    is. AT_LEAST and LESS compare; they, WHOLE, DATE and TIMESTAMP stand outermost. LEAST and GREATEST leave out what is NULL.
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
    WHOLE = "whole"
    DATE = "date"
    TIMESTAMP = "timestamp"
    AT_LEAST = ">="
    LESS = "<"


class _Arithmetic:
    """Python's operators on formulas; plain numbers stand for `Number`."""

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
        """Whether this is `other` or more."""
        return _operation(Operator.AT_LEAST, self, other)

    def below(self, other: Operand) -> Operation:
        """Whether this is less than `other`."""
        return _operation(Operator.LESS, self, other)


@dataclass(frozen=True)
class NoisyValue(_Arithmetic):
    """The released value of the basis term called `term`."""

    term: str


@dataclass(frozen=True)
class Number(_Arithmetic):
    """A double that follows from the text and the policy. Raises ValueError for one that is not finite."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"{self.value} in a formula")
        object.__setattr__(self, "value", float(self.value) + 0.0)  # -0.0 equals 0.0 and would be told from it


@dataclass(frozen=True)
class Operation(_Arithmetic):
    """An operator with its operands. The hash is computed once: formulas are keys of caches, and deep."""

    operator: Operator
    operands: tuple[Formula, ...]

    def __hash__(self) -> int:
        known = self.__dict__
        if _HASH not in known:
            known[_HASH] = hash((self.operator, self.operands))
        return int(known[_HASH])

    def __getstate__(self) -> dict[str, Any]:
        return {"operator": self.operator, "operands": self.operands}  # hashes of texts differ between processes


_HASH = "#hash"
Formula = Union[NoisyValue, Number, Operation]
Operand = Union[_Arithmetic, float, int]
MeasureFormula = tuple[str, Formula, Type]
"""Name of a measure, its formula over terms, and the type of the result."""


def formula(value: Operand | str) -> Formula:
    """A formula as it is, a number as `Number`, a text as the term of that name."""
    if isinstance(value, (NoisyValue, Number, Operation)):
        return value
    if isinstance(value, str):
        return NoisyValue(value)
    assert isinstance(value, (int, float))
    return Number(float(value))


def _operation(operator: Operator, *operands: Operand) -> Operation:
    return Operation(operator, tuple(formula(operand) for operand in operands))


def least(*operands: Operand) -> Operation:
    """The smallest operand."""
    return _operation(Operator.LEAST, *operands)


def greatest(*operands: Operand) -> Operation:
    """The largest operand."""
    return _operation(Operator.GREATEST, *operands)


def within(value: Operand, lower: Operand, upper: Operand) -> Operation:
    """`value` kept in [lower, upper]."""
    return least(greatest(value, lower), upper)


def square_root(value: Operand) -> Operation:
    """The square root of what is 0 or more."""
    return _operation(Operator.SQUARE_ROOT, value)


def null_if(value: Operand, other: Operand) -> Operation:
    """`value`, or NULL where it equals `other`."""
    return _operation(Operator.NULL_IF, value, other)


def whole(value: Operand) -> Operation:
    """`value` rounded to an integer; one that is an integer stays as it is."""
    if isinstance(value, Operation) and value.operator is Operator.WHOLE:
        return value
    return _operation(Operator.WHOLE, value)


def date(days: Operand) -> Operation:
    """The day `days` days after 1970-01-01."""
    return _operation(Operator.DATE, days)


def timestamp(seconds: Operand) -> Operation:
    """The time `seconds` seconds after 1970-01-01 00:00."""
    return _operation(Operator.TIMESTAMP, seconds)


@lru_cache(maxsize=4096)
def terms_of(value: Formula) -> frozenset[str]:
    """Names of the terms in a formula."""
    if isinstance(value, NoisyValue):
        return frozenset({value.term})
    operands = value.operands if isinstance(value, Operation) else ()
    return frozenset().union(*(terms_of(operand) for operand in operands))


def substituted(value: Formula, terms: Mapping[str, Formula]) -> Formula:
    """`value` with a formula in place of every term. Raises KeyError for a term that has none."""
    if isinstance(value, NoisyValue):
        return terms[value.term]
    if isinstance(value, Number):
        return value
    return Operation(value.operator, tuple(substituted(operand, terms) for operand in value.operands))
