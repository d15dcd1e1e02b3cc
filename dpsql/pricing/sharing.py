"""Which of several bases of a block has the smallest error: each sum measured alone, or in joint sums (`joint_sums`).

A question shows numbers, so their errors decide. The error of a number is the first-order standard deviation of its noise, with
the law in force: the noise of a term is its sensitivity divided by its part of the budget (`NoiseLaw`). The error of a chosen
number (a quantile, MIN, MAX, MODE) and the size of a group that selection admits grow alike as the part shrinks. The basis with
the smallest mean logarithm of errors is taken, so that it matters by which factor an error changes, and not its unit.

**No number loses.** Joint sums leave more of the budget to everything else, and COUNT, which is the sum of several of them, may
pay for that: with Laplace noise it has sqrt(2) times the noise of one sum, while its part grows from 1 / 4 to 1 / 3 beside two
medians. There a set of joint sums gets more than one part, `SetParts`, just as many as keep every number at most as noisy as if
each sum were measured alone. So another aggregate never costs the others more than the parts of the budget that its own sums
would take.

**Soundness.** Nothing here decides what is charged. The parts of a question are counted with their weights and its budget is
divided by their sum (`budget_parts`); every mechanism is calibrated to the sensitivity of its terms and to its part, whatever the
choice was, and the finished mechanisms are added up twice and compared with the budget (`pricing.require_within`). A basis reads
text, policy and options only, so neighbouring data have the same one. Assumed rows (`sharing`) stand for data, which may
make a choice worse, never an answer less private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter

from dpsql.functions.evaluate import evaluate
from dpsql.plan.formulas import Estimate, Formula, MeasureFormula, NoisyValue, Number, Operation, Operator
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Caps, Column, Expr, ReleasedValue, Term, TermKind
from dpsql.pricing.joint_sums import IN_PARTS, factors_of, indexes_of
from dpsql.pricing.sensitivity import sensitivity
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.contract import Norm
from dpsql.storage.records import dataclass

# --- assumed rows -----------------------------------------------------------------------------------------------------

# Rows that are assumed where an expected error depends on values: between their bounds, a tenth of the way up on average.
# Columns vary almost independently, and no row is without a value. Nothing here is read from data.

_ROWS = 64
_MEAN = 0.1
_Bounded = tuple[Expr, float, float]
"""A value and its bounds."""


def assumed_value(term: Term) -> float:
    """Return what one assumed row adds to a term on average, in the unit of the answer."""
    if term.kind in (TermKind.SUM, TermKind.DISTINCT_SUM):
        return _mean([value for (value,) in _rows(term)]) - float(term.centre)
    if term.kind in IN_PARTS:
        factors = (term,) if term.kind is TermKind.SQUARE_PART else factors_of(term)
        parts = zip(factors, zip(*_rows(*factors), strict=True), indexes_of(term), strict=True)
        return _mean(list(map(math.prod, zip(*(_parts(*part) for part in parts), strict=True))))
    return 0.0 if term.shares else 1.0  # a shared count is that of rows without a value


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _parts(term: Term, values: tuple[float, ...], of_power: tuple[int, int]) -> list[float]:
    """Return what values add to one part of a power (`joint_sums.indexes_of`)."""
    (power, index), lower, upper = of_power, float(term.lower), float(term.upper)
    if power == 1:
        return [value - lower for value in values] if index else [upper - value for value in values]
    if index == 1:
        return [2 * (upper - value) * (value - lower) for value in values]
    return [(value - lower) ** 2 if index else (upper - value) ** 2 for value in values]


def _rows(*terms: Term) -> list[tuple[float, ...]]:
    """Return the values of sums of bounded values in the assumed rows."""
    return _rows_of(
        tuple((term.value, float(term.lower), float(term.upper)) for term in terms if term.value is not None)
    )


@lru_cache(maxsize=256)
def _rows_of(values: tuple[_Bounded, ...]) -> list[tuple[float, ...]]:
    """Return the values in the assumed rows. The parts of a sum, and most questions of a session, ask for the same ones."""
    inputs = {named.name: named for value, _, _ in values for named in _inputs(value)}
    names = sorted(inputs.items())
    rows = []
    for row in range(_ROWS):
        indexes = [((2 * index + 1) * row + 5 * index) % _ROWS for index in range(len(names))]
        row_values = {name: _assumed(column, index) for (name, column), index in zip(names, indexes, strict=True)}
        rows.append(tuple(_value(*value, row_values) for value in values))
    return rows


def _value(expression: Expr, low: float, high: float, row: dict[str, float | int | None]) -> float:
    """Return the value of a sum in one row: a tenth of the way up where it cannot be computed."""
    value = None if None in row.values() else evaluate(expression, row)
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return low + (high - low) * _MEAN
    return min(max(float(value), low), high)


@lru_cache(maxsize=1024)
def _assumed(column: Column | ReleasedValue, index: int) -> float | int | None:
    """Return the value of a numeric column (or released value) with bounds in one of `_ROWS` rows."""
    lower, upper = column.facts.lower, column.facts.upper
    if column.facts.type not in (Type.INTEGER, Type.REAL) or lower is None or upper is None:
        return None
    value = float(lower) + (float(upper) - float(lower)) * float(((index + 0.5) / _ROWS) ** (1 / _MEAN - 1))
    return round(value) if column.facts.type is Type.INTEGER else value


def _inputs(expression: Expr) -> list[Column | ReleasedValue]:
    if isinstance(expression, (Column, ReleasedValue)):
        return [expression]
    arguments = expression.arguments if isinstance(expression, Call) else ()
    return [named for argument in arguments for named in _inputs(argument)]


# --- sharing ----------------------------------------------------------------------------------------------------------

SetParts = tuple[tuple[str, Fraction], ...]
"""Sets of joint sums that take another number of parts of the budget than one."""
_ASSUMED_ROWS = 1e6
"""Rows of a group: so many that noise is small beside every number, and errors are those of the first order."""
_STEPS = 16
"""Parts are multiples of 1/16."""
_MOST_PARTS = 4
_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class NoiseLaw:
    """How the noise of a term follows from its sensitivity in `norm` and its part of the budget: proportional to the sensitivity
    and to the part to the power of -`power`, 1 where epsilon is divided and 1/2 where rho is."""

    norm: Norm = Norm.L2
    power: float = 0.5

    @property
    def shares_squares(self) -> bool:
        """Return whether variances come from sums that share each row: if all noise is Laplace, and epsilon is charged."""
        return self.norm is Norm.L1 and self.power == 1

    def spread(self, term: Term, caps: Caps) -> float:
        """Return the noise of a term with the whole budget, in the unit of the answer, up to a factor that all terms have."""
        moved = sensitivity(term, caps, Neighbours.ADD_REMOVE) if term.clip is None else None
        if moved is None:
            assert term.clip is not None
            most = float(term.clip.most)
        else:
            most = float(moved.l1) if self.norm is Norm.L1 else math.sqrt(moved.l2_squared)
        return most * 2.0**-term.grid


@dataclass(frozen=True, eq=False)
class MeasuredBasis:
    """One way to measure a block: `terms`, and `formulas` of measures over them and over chosen numbers. `choices`: parts of the
    budget for numbers that are chosen, and for partition selection."""

    terms: tuple[Term, ...]
    formulas: tuple[MeasureFormula, ...]
    choices: int

    @property
    def sets(self) -> dict[str, bool]:
        """Return the names of the sets of terms that are charged, and whether each is one of joint sums."""
        return {term.shares or term.name: bool(term.shares) for term in self.terms if term.magnitude}


@dataclass(frozen=True)
class _Errors:
    """Errors of the measures of a basis, by set of terms, if each had the whole budget (none for chosen numbers)."""

    sets: Mapping[str, bool]
    choices: int
    alone: tuple[Mapping[str, float], ...]
    power: float

    def total(self, weight: Fraction) -> Fraction:
        """Return the parts of the budget where a set of joint sums takes `weight` of them."""
        return sum((weight if joint else Fraction(1) for joint in self.sets.values()), Fraction(self.choices))

    def after(self, weight: Fraction) -> list[float]:
        """Return the error of each measure where a set of joint sums takes `weight` parts; 0 for what has no noise."""
        total = self.total(weight)
        factors = {name: float(total / (weight if joint else 1)) ** self.power for name, joint in self.sets.items()}
        return [math.hypot(*(error * factors[name] for name, error in of_sets.items())) for of_sets in self.alone]

    def mean_logarithm(self, weight: Fraction) -> float:
        """Return the sum of the logarithms of the errors of all measures and choices."""
        errors = [error for error in self.after(weight) if error]
        return sum(map(math.log, errors)) + self.choices * self.power * math.log(self.total(weight))


def most_exact(
    alone: MeasuredBasis, joint: Sequence[MeasuredBasis], caps: Caps, law: NoiseLaw
) -> tuple[MeasuredBasis, SetParts]:
    """Return the basis with the smallest errors, and the parts of its sets of joint sums. Of equal ones, the first of `joint`."""
    apart = _errors(alone, caps, law)
    limits = apart.after(Fraction(1))
    best, least = alone, apart.mean_logarithm(Fraction(1)) + 1e-9
    parts: SetParts = ()
    for basis in joint:
        errors = _errors(basis, caps, law)
        for step in range(_STEPS, _MOST_PARTS * _STEPS + 1):
            weight = Fraction(step, _STEPS)
            if all(error <= limit * _SLACK for error, limit in zip(errors.after(weight), limits, strict=True)):
                mean = errors.mean_logarithm(weight)
                if mean <= least:
                    sets = tuple((name, weight) for name, shared in errors.sets.items() if shared and weight != 1)
                    best, parts, least = basis, sets, mean - 1e-9
                break
    return best, parts


def _errors(basis: MeasuredBasis, caps: Caps, law: NoiseLaw) -> _Errors:
    terms = {term.name: term for term in basis.terms}
    values = {name: _ASSUMED_ROWS * assumed_value(term) for name, term in terms.items()}
    alone = []
    for _, formula, _ in basis.formulas:
        of_sets: dict[str, float] = {}
        for name, slope in _slopes(formula, values).items():
            term = terms[name]
            if term.magnitude and slope:
                key = term.shares or name
                of_sets[key] = math.hypot(of_sets.get(key, 0.0), slope * law.spread(term, caps))
        alone.append(of_sets)
    return _Errors(basis.sets, basis.choices, tuple(alone), law.power)


_Slopes = dict[str, float]


def _slopes(formula: Formula, values: Mapping[str, float]) -> _Slopes:
    """Return the derivative of a plug-in formula by each term; none for numbers that are chosen."""
    try:
        return _derivative(formula, values, {})[1]
    except KeyError:  # a number that is not a sum
        return {}


def _derivative(
    formula: Formula, values: Mapping[str, float], entered: dict[Operation, tuple[float, _Slopes]]
) -> tuple[float, _Slopes]:
    """Return the value of a plug-in formula and its derivative by each term, at `values` of the terms. Raises KeyError for other
    numbers than these. `entered`: those of operations seen before, because one part may stand in many places of a formula.

    Numbers that an earlier stage releases count as 1, roundings as what they round."""
    if isinstance(formula, NoisyValue):
        return values[formula.term], {formula.term: 1.0}
    if isinstance(formula, Number):
        return formula.value, {}
    if isinstance(formula, Estimate):
        return _derivative(formula.plug_in, values, entered)
    if not isinstance(formula, Operation):
        return 1.0, {}
    if formula not in entered:
        entered[formula] = _operated(
            formula.operator, [_derivative(part, values, entered) for part in formula.operands]
        )
    return entered[formula]


def _operated(operator: Operator, operands: list[tuple[float, _Slopes]]) -> tuple[float, _Slopes]:
    """Return the value and the derivative of an operation on operands with these values and derivatives."""
    if operator is Operator.LEAST:
        return min(operands, key=itemgetter(0))
    if operator is Operator.GREATEST:
        return max(operands, key=itemgetter(0))
    value, slopes = operands[0]
    if operator is Operator.NEGATE:
        return -value, _weighted((slopes, -1.0))
    if operator is Operator.SQUARE_ROOT:
        root = math.sqrt(max(value, 0.0))
        return root, _weighted((slopes, 0.5 / root if root else 0.0))
    if len(operands) == 1 or operator not in _ARITHMETIC:
        return value, slopes
    result, weights = _ARITHMETIC[operator](value, operands[1][0])
    return result, _weighted((slopes, weights[0]), (operands[1][1], weights[1]))


def _weighted(*parts: tuple[_Slopes, float]) -> _Slopes:
    """Return the sum of derivatives, each times its weight."""
    total: _Slopes = {}
    for slopes, weight in parts:
        for name, slope in slopes.items():
            total[name] = total.get(name, 0.0) + slope * weight
    return total


_ARITHMETIC: dict[Operator, Callable[[float, float], tuple[float, tuple[float, float]]]] = {
    Operator.ADD: lambda a, b: (a + b, (1.0, 1.0)),
    Operator.SUBTRACT: lambda a, b: (a - b, (1.0, -1.0)),
    Operator.MULTIPLY: lambda a, b: (a * b, (b, a)),
    Operator.DIVIDE: lambda a, b: (a / b, (1 / b, -a / b / b)) if b else (0.0, (0.0, 0.0)),
}
"""Value of an operation on two numbers, and its derivatives by both."""
