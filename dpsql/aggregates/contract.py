"""The contract of an aggregate: how it is called, what it measures, and what its result is; and the register of all aggregates.

One `Aggregate` describes everything in which one SQL aggregate differs from another; each module of this package holds a
family of them. Privacy does not depend on formulas: they are arithmetic on noisy sums, and every sum bounds each row by the
facts of its expression, whichever formula uses it (privacy.md 4). A wrong formula is a wrong answer, never a leak. Later
blocks rely on the type of a result: with another type, an engine would fail for some data and not for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, Flag, auto
from fractions import Fraction
from typing import Protocol

from dpsql.errors.exceptions import refuse
from dpsql.plan.formulas import Formula, whole
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Measure
from dpsql.privacy.mechanisms.exponential import Lean
from dpsql.storage.records import dataclass, field

Condition = Expr | None
"""Condition in FILTER (WHERE ...) of a measure; None without one."""


@dataclass(frozen=True)
class Squares:
    """Noisy sums that follow from terms that share each row: `count` of rows, `total` of the distances d from `centre`, and
    `squares` of d^2."""

    count: Formula
    total: Formula
    squares: Formula
    centre: Fraction


@dataclass(frozen=True)
class Products:
    """Noisy sums over pairs of numbers: `count` of rows with both, `totals` of each number's distances from its centre in
    `centres` (the first number's first), and `product` of the products of both distances."""

    count: Formula
    totals: tuple[Formula, Formula]
    product: Formula
    centres: tuple[Fraction | float, Fraction | float]


@dataclass(frozen=True)
class PairSquares:
    """Noisy sums over pairs of numbers that follow from terms that share each row: those of `products`, and for each number
    `squares` of its distances."""

    products: Products
    squares: tuple[Formula, Formula]


class Basis(Protocol):
    """The noisy numbers that formulas are made of; a repeated request for an equal number measures nothing more.

    Values are row expressions with known bounds. Sums are returned in the unit of the value, counts as numbers of rows.
    """

    def count(self, value: Expr | None, condition: Condition, clip: bool = False) -> Formula:
        """Return the count of rows that satisfy `condition` and whose `value` is not NULL. With `clip`, bound each unit's count
        by max_count where that can bind."""

    def units(self, condition: Condition) -> Formula:
        """Return the number of distinct privacy units among rows that satisfy `condition`."""

    def distinct(self, value: Expr, condition: Condition, bounded: bool = False) -> Formula:
        """Return the number of distinct values among rows that satisfy `condition`. With `bounded`, a unit brings at most
        max_values of them where that can bind."""

    def sum(self, value: Expr, condition: Condition, centred: bool) -> tuple[Formula, float | int]:
        """Return the sum of clamp(value) - centre, and the centre: about the midpoint of the bounds if `centred`, else 0 (or the
        lower bound if the sum's terms share each row)."""

    def distinct_sum(self, value: Expr, condition: Condition, centred: bool) -> tuple[Formula, float | int]:
        """Return the sum of clamp(value) - centre over distinct values, and the centre."""

    def clipped_sum(self, value: Expr, condition: Condition) -> Formula | None:
        """Return the sum of clamp(value) with each unit's total bounded by max_total; None where no unit can exceed it."""

    def squares(self, value: Expr, condition: Condition) -> Squares | None:
        """Return the sums of values and squares around the midpoint of the bounds, if their terms share each row; else None."""

    def products(self, values: tuple[Expr, Expr], condition: Condition) -> Products | None:
        """Return the sums of both values and of their products around the midpoints, if their terms share each row; else None."""

    def pair_squares(self, values: tuple[Expr, Expr], condition: Condition) -> PairSquares | None:
        """Return the sums of `products` and of both squares around the midpoints, if all terms share each row; else None."""

    def total(self, value: Expr, condition: Condition) -> Formula:
        """Return the sum of clamp(value), computed from sums that are measured anyway where there are any."""

    def quantile(
        self, value: Expr, condition: Condition, quantile: Fraction, interpolated: bool, barred: bool
    ) -> Formula:
        """Return the value at rank `quantile` in [0, 1] of the rows, in the value's type or, if `interpolated`, in that of SQL's
        continuous quantiles. With `barred`, give it an error bar if the query asks for error bars."""

    def total_cut(self, value: Expr, condition: Condition, lean: Lean) -> Formula:
        """Return the number (an integer from 0 on) of the cell of a large value, which becomes the bound of sums."""

    def number(self, word: str, measure: Measure) -> Formula:
        """Return the number that the measurement called `word`, one not made of sums (`plan.measurements`), gives for `measure`,
        in the type of the aggregate's result."""


class Arguments(Enum):
    """Ways of reading the arguments of a call. `sql.binder.aggregates` has a rule for each."""

    ROWS = "*, a value, or DISTINCT and a value"
    CONDITION = "a condition"
    COUNTED_CONDITION = "a condition, as FILTER (WHERE ...) of COUNT(*)"
    NUMBER = "a bounded number"
    PAIR = "two bounded numbers"
    UNIT_VALUE = "any value among the rows of one unit, where the result is exact; else a bounded value"
    QUANTILE = "a bounded value, and which quantile of it"
    MODE = "a value of which few are possible"
    END_ROW = "a value of which few are possible, and a bounded value that orders rows"
    SAMPLES = "an expression over aggregates, its bounds, a number of samples, and how they are combined"


class SharedPart(Flag):
    """Sums that an aggregate reads, of those that terms sharing each row can give (`pricing.joint_sums`)."""

    SUM = auto()
    COUNT = auto()
    SQUARES = auto()
    PRODUCTS = auto()
    PAIR_SQUARES = auto()


UnitFacts = Callable[[Measure, int], Facts]
"""Function from a measure and a number n to the facts of an exact aggregate over 1 to n rows of one unit."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate, called `word` in plans and stored releases.

    `spellings`: names of the parser's nodes (`StddevPop`) or, in lower case, of functions unknown to the parser (`mean`), with
    how their arguments are read; empty if the aggregate is reached through another one's rule.
    `formula`: the measure over noisy sums; None if the aggregate exists only over the rows of one unit.
    `type`: of the result (None: that of the argument). `facts`: more about the result, where it stays in an interval with noise.
    `distinct`: DISTINCT is accepted. `centred`: it measures the centred sum of its argument and its count.
    `shared`: the sums that it reads from terms that share each row (None: it cannot be computed from such terms).
    `zero_without_rows`: a group without rows has 0. `counts`: the result is never below 0.
    `over_results`: it may be called over released rows, where the sandbox computes it.
    `selects`: the result is one of the argument's values, so that over results it has their facts.
    `of_unit`: facts over the rows of one unit, which `engine.emit.per_unit` computes by `word`; None if not available there.
    """

    word: str
    spellings: Mapping[str, Arguments] = field(default_factory=dict)
    formula: Callable[[Basis, Measure], Formula] | None = None
    type: Type | None = Type.REAL
    facts: Callable[[Measure], Facts] | None = None
    distinct: bool = False
    centred: bool = False
    shared: SharedPart | None = None
    zero_without_rows: bool = False
    counts: bool = False
    over_results: bool = True
    selects: bool = False
    of_unit: UnitFacts | None = None

    def result(self, measure: Measure) -> Facts:
        """Return the facts of a released measure of this aggregate."""
        if self.facts is not None:
            return self.facts(measure)
        return Facts(self.type or measure.arguments[0].facts.type)

    def over(self, argument: Facts | None) -> Facts | None:
        """Return the facts of this aggregate over results, None if unknown. `argument`: the facts of its argument, if known."""
        if self.type is not None:
            return Facts(self.type)
        return argument if argument is None or self.selects else Facts(argument.type)

    def measured(self, basis: Basis, measure: Measure) -> tuple[Formula, Type]:
        """Return the formula of a measure, rounded if the result is an integer, and the type of the result.

        Raises ValueError if the aggregate has no formula.
        """
        if self.formula is None:
            raise ValueError(f"{self.word} is not measured")
        type_, value = self.result(measure).type, self.formula(basis, measure)
        return (whole(value) if type_ is Type.INTEGER else value), type_


_BY_WORD: dict[str, Aggregate] = {}
_BY_SPELLING: dict[str, tuple[Aggregate, Arguments]] = {}


def register(aggregate: Aggregate) -> Aggregate:
    """Add an aggregate and return it. Raises ValueError if its word or a spelling is taken."""
    taken = [spelling for spelling in aggregate.spellings if spelling in _BY_SPELLING]
    if aggregate.word in _BY_WORD or taken:
        raise ValueError(f"{aggregate.word}: registered already{f', as {taken}' if taken else ''}")
    _BY_WORD[aggregate.word] = aggregate
    _BY_SPELLING.update({spelling: (aggregate, rule) for spelling, rule in aggregate.spellings.items()})
    return aggregate


def unregister(word: str) -> None:
    """Remove an aggregate (for tests)."""
    for spelling in _BY_WORD.pop(word).spellings:
        del _BY_SPELLING[spelling]


def aggregate_of(word: str) -> Aggregate:
    """Return the aggregate of a measure. Raises InternalError for a word that is not registered."""
    if word not in _BY_WORD:
        raise refuse("internal", what=f"an aggregate that is not registered: {word}")
    return _BY_WORD[word]


def spelled(spelling: str) -> tuple[Aggregate, Arguments] | None:
    """Return the aggregate of a node type's or function's name (in lower case), and how its arguments are read; or None."""
    return _BY_SPELLING.get(spelling)


def aggregates() -> Iterator[Aggregate]:
    """Return all aggregates in the order of registration."""
    return iter(tuple(_BY_WORD.values()))
