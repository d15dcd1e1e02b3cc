"""The contract of an aggregate: how it is called, what it measures, and what its result is.

All that tells one SQL aggregate from another stands in one `Aggregate` (a module of this package holds those of a
family). Privacy does not depend on formulas: they are arithmetic of noisy sums, and the sums bound each row by the facts
of its expression, whatever asks for them (privacy.md 4). A wrong formula is a wrong answer, never a leak. The type of a
result is relied on by later blocks, where an engine that finds another type would fail for some data and not for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from fractions import Fraction
from typing import Protocol

from dpsql.plan.formulas import Formula, whole
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Measure
from dpsql.privacy.mechanisms.exponential import Lean

Condition = Expr | None
"""FILTER (WHERE ...) of a measure."""


@dataclass(frozen=True)
class Squares:
    """Noisy sums that follow from one shared row: `count` of rows, `total` of the distances d from `centre`, `squares` of d^2."""

    count: Formula
    total: Formula
    squares: Formula
    centre: Fraction


@dataclass(frozen=True)
class Products:
    """Noisy sums of pairs of numbers: `count` of rows with both, `totals` of the distances from `centres`, and `product` of both
    distances' products; those of the first number first."""

    count: Formula
    totals: tuple[Formula, Formula]
    product: Formula
    centres: tuple[Fraction | float, Fraction | float]


@dataclass(frozen=True)
class PairSquares:
    """Noisy sums of pairs of numbers that follow from one shared row: those of `products`, and `squares` of both distances."""

    products: Products
    squares: tuple[Formula, Formula]


class Basis(Protocol):
    """The noisy numbers that formulas are made of; asking for an equal one again measures nothing more.

    Values are row expressions with known bounds. Sums are returned in the unit of the value, counts as numbers of rows.
    """

    def count(self, value: Expr | None, condition: Condition, clip: bool = False) -> Formula:
        """Return rows that pass `condition` and whose `value` is there; `clip`: under max_count, where it binds."""

    def units(self, condition: Condition) -> Formula:
        """Return distinct privacy units among rows that pass `condition`."""

    def distinct(self, value: Expr, condition: Condition, bounded: bool = False) -> Formula:
        """Return the number of distinct values among rows that pass `condition`; `bounded`: under max_values, where it binds."""

    def sum(self, value: Expr, condition: Condition, centred: bool) -> tuple[Formula, float | int]:
        """Return the sum of clamp(value) - centre, and the centre: about the middle of the bounds, or 0."""

    def distinct_sum(self, value: Expr, condition: Condition, centred: bool) -> tuple[Formula, float | int]:
        """Return the sum of clamp(value) - centre over distinct values, and the centre."""

    def clipped_sum(self, value: Expr, condition: Condition) -> Formula | None:
        """Return the sum of clamp(value) under max_total; None where no unit can exceed it."""

    def squares(self, value: Expr, condition: Condition) -> Squares | None:
        """Return the sums of squares and of values around the middle that share each row; None where they do not."""

    def products(self, values: tuple[Expr, Expr], condition: Condition) -> Products | None:
        """Return the sums of products and of both values around the middles that share each row; None where they do not."""

    def pair_squares(self, values: tuple[Expr, Expr], condition: Condition) -> PairSquares | None:
        """Return the same and the sums of both squares around the middles that share each row; None where they do not."""

    def total(self, value: Expr, condition: Condition) -> Formula:
        """Return the sum of clamp(value), from sums that are measured anyway where there are some."""

    def quantile(
        self, value: Expr, condition: Condition, quantile: Fraction, interpolated: bool, barred: bool
    ) -> Formula:
        """Return the value at rank `quantile` in [0, 1] of the rows, in its own type; `interpolated`: in that of SQL's continuous
        quantiles; `barred`: with an error bar, where the question asks for those."""

    def total_cut(self, value: Expr, condition: Condition, lean: Lean) -> Formula:
        """Return the number of the cell of a large value (an integer from 0 on), to which sums are cut."""

    def number(self, word: str, measure: Measure) -> Formula:
        """Return what `measure` asks for as a number of a measurement other than sums (`plan.measurements`): in the type of the
        aggregate's result. `word`: that of the measurement."""


class Arguments(Enum):
    """How the arguments of a call are read. `sql.binder.aggregates` has a rule for each."""

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
    """What an aggregate of one argument reads of sums that share each row (`pricing.joint_sums`)."""

    SUM = auto()
    COUNT = auto()
    SQUARES = auto()
    PRODUCTS = auto()
    PAIR_SQUARES = auto()


UnitFacts = Callable[[Measure, int], Facts]
"""Facts of an exact aggregate over 1 to so many rows of one unit."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate, called `word` in plans and stored releases.

    `spellings`: names of the parser's nodes (`StddevPop`) or, in lower case, of functions that it keeps as they are
    (`mean`), with how their arguments are read; none where another aggregate's rule leads here.
    `formula`: the measure over noisy sums; None where the aggregate exists among the rows of one unit only.
    `type`: of the result (None: that of the argument), `facts`: more about it, where noise leaves it in an interval.
    `distinct`: DISTINCT is understood. `centred`: measures the centred sum of its argument and its count.
    `shared`: what it reads of a shared row (None: it cannot be made of one).
    `zero_without_rows`: a group without rows has 0; `counts`: and never less than 0.
    `over_results`: may be called over released rows, where the sandbox computes it.
    `selects`: the result is one of the argument's values, so that over results it has their facts.
    `of_unit`: facts among the rows of one unit (None: not there), which `engine.emit.per_unit` computes by `word`.
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
        """Return the facts of this aggregate over results (`argument`: of its argument there, None: not known)."""
        if self.type is not None:
            return Facts(self.type)
        return argument if argument is None or self.selects else Facts(argument.type)

    def measured(self, basis: Basis, measure: Measure) -> tuple[Formula, Type]:
        """Return the formula of a measure, rounded where the result is an integer, and its type.

        Raises ValueError where the aggregate has none.
        """
        if self.formula is None:
            raise ValueError(f"{self.word} is not measured")
        type_, value = self.result(measure).type, self.formula(basis, measure)
        return (whole(value) if type_ is Type.INTEGER else value), type_
