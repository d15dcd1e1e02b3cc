"""Joint sums: sums of a block that share each row between them, so that they cost one part of the budget together (privacy.md 4).

With a value x in [L, U] of width W, a row adds x - L to one sum and U - x to another: W in total, whatever x is. So both sums
together change by as much as a count of rows alone, times W; COUNT, SUM and AVG follow from them. Measured separately, the count
and the sum would have half of the budget each. Laplace noise, whose price is the L1 distance, has the scale of the whole budget
on both sums: half as much noise on the shown SUM. Under Gaussian noise COUNT and AVG have the same noise as with a sum around the
midpoint (the two sums are the count and the centred sum rotated by 45 degrees), and SUM has less.

**Squares** (Bernstein polynomials of degree 2; arXiv 2509.04919, used by DPSQL+, arXiv 2602.22699). With q = x - L, a row adds
(W - q)^2, 2 q (W - q) and q^2 to three sums, none of them negative: (q + W - q)^2 = W^2 in total, whatever x is. So the three
together change by as much as a count of rows times W^2 in L1, and by no more in any other norm: what a unit adds to a group of
n_g rows has at most the norms of one sum of magnitude W^2 (`budget_parts._moved`). On one integer grid a row's parts add up to
W^2 exactly, because they are computed from one rounded q. The three sums add up to n W^2; W q = q (W - q) + q^2, so half of the
second plus the last is W times the sum of q; the last is the sum of q^2: COUNT, SUM, AVG and VAR follow, by arithmetic on
released numbers.

Measured separately, n, sum d and sum (d^2 - W^2 / 8) around the midpoint (|d| <= W / 2) would have a third of epsilon each. With
Laplace noise, for W = 1 and epsilon = 1, the error of a variance v of n values with mean m (from the midpoint) has, to first
order, a sum of squared scales of 1 / n^2 times

    apart:   9/64 + 9 m^2 + 9 (m^2 + 1/8 - v)^2,
    shared:  (1/4 + m + k)^2 + (1/4 - k)^2 + (1/4 - m + k)^2,   k = m^2 - v.

Over all m sharing has 1.6 to 1.7 times less noise, near the bounds 1.9 times less; with m = 0 it has about as much (3 % more at
v = 1/12, 11 % more in the worst case, m = 0 and v = 1/8: values far from the midpoint on both sides). So squares are shared where
Laplace noise is paid in epsilon. Under zCDP the L2 norm roughly sets the cost: three measurements have sqrt(3) times, not 3
times, the noise of one, and sharing gains nothing on average, so there squares are measured separately.

**Products.** With q = y - L of width V and r = x - L' of width W a row adds (V - q)(W - r), q (W - r), (V - q) r and q r to four
sums, none of them negative: V W in total, the product of V - q + q and W - r + r. So the four together change by as much as a
count of rows times V W, as above. They add up to V W n, the second plus the last is W times the sum of q, and the last is the sum
of q r: COVAR and the means of pairs follow. With Laplace noise the error of a covariance is half of the error with a fourth of
epsilon for each of n, sum dy, sum dx and sum dy dx around the midpoints, wherever the values lie: for V = W = 1, means a and b
from the midpoints and covariance c, the sums of squared scales are to first order 1 + 4 a^2 + 4 b^2 + 16 (a b - c)^2 apart, and a
fourth of that shared. With Gaussian noise both are the same: the four sums, halved, are an orthogonal transform of the sums
around the midpoints, at their sensitivities. So products are shared where squares are; elsewhere both variances are measured with
COVAR and keep it small where it is mostly noise (for shared products, `estimates.beyond_noise` does that).

**Squares of pairs.** CORR and least squares lines read n, both sums, both squares and the products. With q and r as above a row
adds a_i b_j to nine sums, i and j from 0 to 2, where a is (V - q)^2, 2 q (V - q), q^2 and b is (W - r)^2, 2 r (W - r), r^2. None
is negative, because q is in [0, V] and r in [0, W], and their total is V^2 W^2: the sum over i and j is the sum of a times the
sum of b, (q + V - q)^2 (r + W - r)^2. So n_g rows of a group change the nine sums together by n_g V^2 W^2 in L1, whichever rows
are added or removed, and by no more in any other norm; all groups of a unit by rows_per_unit V^2 W^2, under change_one by twice
that. All nine are computed from the same two integers q and r of a row: the identity is one of integers and holds exactly. One
vector with one Laplace law costs what one sum of magnitude V^2 W^2 costs.

The sums over j are W^2 times the squares of the first number alone, the sums over i V^2 times the squares of the second; n, sums
and squares follow from them as above. Because (q^2 - (V - q)^2) (r^2 - (W - r)^2) = 2 V dy 2 W dx, 4 V W sum dy dx follows from
the four sums with i and j in {0, 2}. With V = W = 1, scales 1 / epsilon and sums around the midpoints, in units of the scale, the
noise of n is 3 (squared Laplace scales add up), of sum dy dx 1/2, of a sum sqrt(3/2) and of a sum of d^2 3/4; with a sixth of
epsilon each these are 6, 3/2, 3 and (from d^2 - 1/8) 3/4, or more away from the midpoints, where the error of n counts. For means
in the middle nine tenths of the bounds, the first-order error of CORR falls by a factor of 2.1 to 3.0, and so does that of a
slope. Six entries of degree 2 in total suffice for the same sums, but at 1.1 times the error and without an exact meaning, so
there are nine. With Gaussian noise six measurements have sqrt(6) times the noise of one, and nothing is gained.

Sums of degree 4 fit in 38 digits if q and r have at most twice PAIR_BITS together: V^2 W^2 <= 2^80, times 2^41 rows. Two reals
have PAIR_BITS each; a real paired with an integer has the bits that the integer leaves. Integers with wider bounds are read as
reals, on such a grid.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from dpsql.aggregates.contract import Arguments, PairSquares, Products, SharedPart, Squares, aggregate_of
from dpsql.aggregates.moments import can_be_missing
from dpsql.functions.numeric import call
from dpsql.plan.formulas import Formula, NoisyValue, Number
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Measure, Term, TermKind
from dpsql.policy.types import ContributionBounds, smallest
from dpsql.pricing.sum_terms import KEPT_BITS, MOST_GRID, summed
from dpsql.storage.records import dataclass, replace

PAIR_BITS = 20
"""Half of the bits that the two integers of a row have together where their squares are multiplied.

A real with that many bits is rounded by at most half a step, which is its width times 2**-20. If all values are rounded the same
way, n rows change a sum by n times that, which equals its noise at n epsilon = 2**20; if rounding is independent, this happens at
no realistic n. A shift of all values alike changes no correlation and no slope."""


class Sharing(Enum):
    """Treatment of rows without a value: not counted, counted in a term of their own, or read as the value 0."""

    LEFT_OUT = "left out"
    MISSING = "missing"
    NULL_IS_ZERO = "null is zero"


@dataclass(frozen=True)
class Shared:
    """Terms of one argument that share each row, or sums of a pair's terms, from which COUNT, SUM and AVG follow.

    `low` is the sum of x - L, `high` the sum of x - U; a row that adds q to `low` adds exactly q - W to `high`, so rounding does
    not separate them. `missing` (or None) adds W for each row without a value. `width`: W. `everything`: every row contributes to
    `low` and `high`; where x may be missing, the terms are then `absent`: a row without x has q = 0. `power`: how many steps of
    the terms make one (`sum_terms.in_steps`).
    """

    low: Formula
    high: Formula
    width: Number
    missing: NoisyValue | None
    everything: bool
    power: int = 1

    @property
    def counted(self) -> Formula:
        return (self.low - self.high) / self.width

    @property
    def rows(self) -> Formula | None:
        """Return the number of all rows, None where it does not follow."""
        if self.everything:
            return self.counted
        return None if self.missing is None else (self.low - self.high + self.missing) / self.width


@dataclass(frozen=True)
class SharedSquares:
    """Terms of one argument, by `place`, that share each row's W^2, and `missing` as in `Shared`. `width`: W; `lower`: L.

    For one argument of a pair (`SharedPairs.column`) they are sums of the pair's terms."""

    parts: tuple[Formula, Formula, Formula]
    width: Fraction
    lower: Fraction
    missing: NoisyValue | None
    everything: bool
    power: ClassVar[int] = 1

    @property
    def counted(self) -> Formula:
        first, second, third = self.parts
        return (first + second + third) / float(self.width**2)

    @property
    def rows(self) -> Formula | None:
        """Return the number of all rows, None where it does not follow."""
        if self.everything:
            return self.counted
        first, second, third = self.parts
        return None if self.missing is None else (first + second + third + self.missing) / float(self.width**2)

    @property
    def low(self) -> Formula:
        """Return the sum of x - L."""
        return (self.parts[2] + self.parts[1] / 2.0) / float(self.width)

    @property
    def squares(self) -> Squares:
        """Return the sums around the midpoint: d = q - W / 2, so that 2 W d = q^2 - (W - q)^2 and
        4 d^2 = q^2 - 2 q (W - q) + (W - q)^2."""
        first, second, third = self.parts
        total = (third - first) / float(2 * self.width)
        return Squares(self.counted, total, (third - second + first) / 4.0, self.lower + self.width / 2)


def square_parts(value: Expr, condition: Expr | None) -> tuple[Term, ...]:
    """Return the unnamed terms of the squares of one argument; none where integers or grids would be too large for them."""
    low = summed(value, condition, Fraction(value.facts.lower), KEPT_BITS)[0]
    if low.magnitude > 2**KEPT_BITS or abs(2 * low.grid) > MOST_GRID:
        return ()
    square = replace(low, kind=TermKind.SQUARE_PART, magnitude=low.magnitude**2, grid=2 * low.grid)
    return tuple(replace(square, place=index) for index in range(3))


@dataclass(frozen=True)
class SharedProducts:
    """Terms of a pair of arguments, by `place` (`factors_of`), that share each row's V W. `widths`: V, W; `lowers`: L, L'."""

    parts: tuple[NoisyValue, NoisyValue, NoisyValue, NoisyValue]
    widths: tuple[Fraction, Fraction]
    lowers: tuple[Fraction, Fraction]

    def column(self, index: int, everything: bool) -> Shared:
        """Return the sums of the first (0) or the second number (1) over the rows that have both.

        `everything`: all rows have both."""
        neither, first, second, both_ = self.parts
        other = float(self.widths[1 - index])
        above, below = (first, second) if index == 0 else (second, first)
        width = Number(float(self.widths[index]))
        return Shared((both_ + above) / other, -(neither + below) / other, width, None, everything)

    @property
    def counted(self) -> Formula:
        neither, first, second, both_ = self.parts
        return (neither + first + second + both_) / float(self.widths[0] * self.widths[1])

    @property
    def rows(self) -> Formula:
        """Return the number of rows that have both, which are those that `aggregates.distances.present` leaves."""
        return self.counted

    @property
    def products(self) -> Products:
        """Return the sums around the midpoints: dy = q - V / 2 and dx = r - W / 2."""
        neither, first, second, both_ = self.parts
        of_first = (both_ + first - second - neither) / float(2 * self.widths[1])
        of_second = (both_ + second - first - neither) / float(2 * self.widths[0])
        middles = tuple(low + width / 2 for low, width in zip(self.lowers, self.widths, strict=True))
        product = (both_ + neither - first - second) / 4.0
        return Products(self.counted, (of_first, of_second), product, (middles[0], middles[1]))


@dataclass(frozen=True)
class SharedPairs:
    """Terms of the squares of a pair of arguments, by `place` 3 i + j, that share each row's V^2 W^2. `widths`: V, W; `lowers`:
    L, L'."""

    parts: tuple[NoisyValue, ...]
    widths: tuple[Fraction, Fraction]
    lowers: tuple[Fraction, Fraction]

    def column(self, index: int, everything: bool = True) -> SharedSquares:
        """Return the squares of the first (0) or the second number (1) over the rows that have both.

        `everything`: all rows have both."""
        grid = [self.parts[3 * number : 3 * number + 3] for number in range(3)]
        lines = grid if index == 0 else list(zip(*grid, strict=True))
        other = float(self.widths[1 - index] ** 2)
        first, second, third = ((line[0] + line[1] + line[2]) / other for line in lines)
        return SharedSquares((first, second, third), self.widths[index], self.lowers[index], None, everything)

    @property
    def rows(self) -> Formula:
        """Return the number of rows that have both, which are those that `aggregates.distances.present` leaves."""
        total: Formula = self.parts[0]
        for part in self.parts[1:]:
            total = total + part
        return total / float(self.widths[0] ** 2 * self.widths[1] ** 2)

    @property
    def counted(self) -> Formula:
        return self.rows

    @property
    def pair_squares(self) -> PairSquares:
        """Return the sums around the midpoints: (q^2 - (V - q)^2) (r^2 - (W - r)^2) = 4 V W dy dx."""
        first, second = (self.column(index).squares for index in (0, 1))
        neither, of_second, of_first, both_ = (self.parts[index] for index in (0, 2, 6, 8))
        product = (both_ + neither - of_first - of_second) / float(4 * self.widths[0] * self.widths[1])
        centres = (first.centre, second.centre)
        return PairSquares(
            Products(self.rows, (first.total, second.total), product, centres), (first.squares, second.squares)
        )

    @property
    def products(self) -> Products:
        """Return the sums around the midpoints that products need, out of `pair_squares`."""
        return self.pair_squares.products


def pair_parts(values: tuple[Expr, Expr], condition: Expr | None) -> tuple[Term, ...]:
    """Return the unnamed terms of the squares of two arguments; none where integers or grids would be too large for them."""
    part = Term("", TermKind.PAIR_PART, call("mul", *_in_pair_bits(values)), condition, 0)
    first, second = factors_of(part)
    magnitude, grid = (first.magnitude * second.magnitude) ** 2, 2 * (first.grid + second.grid)
    too_large = max(first.magnitude, second.magnitude) > 2**KEPT_BITS or magnitude > 2 ** (4 * PAIR_BITS)
    if too_large or not magnitude or abs(grid) > MOST_GRID:
        return ()
    return tuple(replace(part, magnitude=magnitude, grid=grid, place=index) for index in range(9))


def _in_pair_bits(values: tuple[Expr, Expr]) -> tuple[Expr, ...]:
    """Return two arguments, integers as reals where their bounds are too wide for both; the grids follow from the bits."""
    bits = [_whole_bits(value) or PAIR_BITS for value in values]
    if sum(bits) <= 2 * PAIR_BITS and max(bits) <= KEPT_BITS:
        return values
    return tuple(call("to_real", value) if (_whole_bits(value) or 0) > PAIR_BITS else value for value in values)


def _pair_bits(values: tuple[Expr, ...]) -> tuple[int, int]:
    """Return the bits of the grids of two arguments. Integers take the bits that their bounds need."""
    first, second = (min(KEPT_BITS, 2 * PAIR_BITS - (_whole_bits(other) or PAIR_BITS)) for other in reversed(values))
    return first, second


def _whole_bits(value: Expr) -> int | None:
    """Return the number of bits of an integer's distance from its lower bound; None for reals."""
    return int(value.facts.upper - value.facts.lower).bit_length() if value.facts.type is Type.INTEGER else None


def product_parts(values: tuple[Expr, Expr], condition: Expr | None) -> tuple[Term, ...]:
    """Return the unnamed terms of the products of two arguments; none where integers or grids would be too large for them."""
    product = Term("", TermKind.PRODUCT_PART, call("mul", *values), condition, 0)
    first, second = factors_of(product)
    magnitude, grid = first.magnitude * second.magnitude, first.grid + second.grid
    if max(first.magnitude, second.magnitude) > 2**KEPT_BITS or not magnitude or abs(grid) > MOST_GRID:
        return ()
    return tuple(replace(product, magnitude=magnitude, grid=grid, place=index) for index in range(4))


def factors_of(term: Term) -> tuple[Term, Term]:
    """Return the SUMs around the lower bounds of the two arguments. A PRODUCT_PART multiplies their integers of a row, q and r: q
    if the first bit of `place` is set, else V - q; r if the second is set, else W - r. A PAIR_PART multiplies parts of their
    squares."""
    assert isinstance(term.value, Call)
    values = term.value.arguments
    bits = _pair_bits(values) if term.kind is TermKind.PAIR_PART else (KEPT_BITS, KEPT_BITS)
    first, second = (
        summed(value, term.filter, Fraction(value.facts.lower), most)[0]
        for value, most in zip(values, bits, strict=True)
    )
    return first, second


def indexes_of(term: Term) -> list[tuple[int, int]]:
    """Return, for each argument of a term that multiplies parts of powers, the power (1, or 2 for squares) and which of its parts
    the term has, counted from 0 for the part of the distance from the upper bound alone."""
    if term.kind is TermKind.SQUARE_PART:
        return [(2, term.place)]
    if term.kind is TermKind.PRODUCT_PART:
        return [(1, term.place & 1), (1, term.place >> 1)]
    return [(2, term.place // 3), (2, term.place % 3)]


IN_PARTS = (TermKind.SQUARE_PART, TermKind.PRODUCT_PART, TermKind.PAIR_PART)


def multiplied(
    measures: tuple[Measure, ...], bounds: ContributionBounds, rows: int
) -> list[tuple[Expr, Expr, Expr | None]]:
    """Return the pairs of arguments, with their FILTER, of which at least one measure can be computed from products or squares
    (`squared`) that share each row."""
    if bounds.max_count is not None and bounds.max_count < rows:
        return []
    read_by: dict[tuple[Expr, Expr, Expr | None], list[SharedPart | None]] = {}
    for measure in measures:
        if _of_pair(measure):
            first, second = measure.arguments
            read_by.setdefault((first, second, measure.filter), []).append(aggregate_of(measure.aggregate).shared)
    return [
        pair
        for pair, parts in read_by.items()
        if not {SharedPart.PRODUCTS, SharedPart.PAIR_SQUARES}.isdisjoint(parts)
        and _spread(pair[0])
        and _spread(pair[1])
    ]


def squared(measures: tuple[Measure, ...]) -> set[tuple[Expr, Expr, Expr | None]]:
    """Return the pairs of arguments, with their FILTER, whose squares a measure reads."""
    return {
        (measure.arguments[0], measure.arguments[1], measure.filter)
        for measure in measures
        if aggregate_of(measure.aggregate).shared == SharedPart.PAIR_SQUARES
    }


def _of_pair(measure: Measure) -> bool:
    return Arguments.PAIR in aggregate_of(measure.aggregate).spellings.values()


def _spread(value: Expr) -> bool:
    return value.facts.bounded and bool(value.facts.lower < value.facts.upper)


def sharable(
    measures: tuple[Measure, ...],
    rows: int,
    bounds: ContributionBounds,
    stars: bool,
    squares: bool = False,
    entered: Collection[tuple[Expr, Expr | None]] = (),
    conditions: Collection[Expr | None] = (),
) -> dict[tuple[Expr, Expr | None], Sharing]:
    """Return the arguments (with their FILTER) whose COUNT, SUM and AVG (with `squares` also variances) share each row, and how.

    `stars`: COUNT(*) may follow from one of them, which is the first with its FILTER that needs no further sum for it. Measures
    that choose a value (quantiles, MIN, MAX, MODE) read no sums, so they change nothing here. Not shared: SUM alone, variances
    and CORR without `squares` (they share S1 and n), clipped sums, whose bound is on the sum, and what follows from other sums:
    arguments that are `entered`, and COUNT(*) under FILTERs whose COUNT(*) follows already (`conditions`).
    """
    if bounds.max_count is not None and bounds.max_count < rows:
        return {}
    sharings: dict[tuple[Expr, Expr | None], Sharing] = {}
    starred = {measure.filter for measure in measures if counts_rows(measure)} - {*conditions} if stars else set()
    parts: dict[tuple[Expr, Expr | None], SharedPart] = {}
    for measure in measures:
        read = aggregate_of(measure.aggregate).shared
        if read is None or not measure.arguments or measure.distinct:
            continue
        summand = measure.arguments[0], measure.filter
        apart = SharedPart.PAIR_SQUARES in read and not squares
        if summand not in entered and (apart or not _of_pair(measure)):
            parts[summand] = parts.get(summand, SharedPart(0)) | read
    for (value, condition), read in sorted(parts.items(), key=_steps_to_rows):
        squared = SharedPart.SQUARES in read
        if SharedPart.PAIR_SQUARES in read or not (squared or SharedPart.SUM in read):
            continue
        if not wide(value, rows, bounds) or (squared and not (squares and square_parts(value, condition))):
            continue
        counted = squared or SharedPart.COUNT in read
        star = condition in starred
        if not can_be_missing(value):
            if star or counted:
                sharings[value, condition] = Sharing.LEFT_OUT
                starred.discard(condition)
        elif counted:
            sharings[value, condition] = Sharing.MISSING if star else Sharing.LEFT_OUT
            starred.discard(condition)
        elif star:
            as_zero = value.facts.lower == 0 and not squared
            sharings[value, condition] = Sharing.NULL_IS_ZERO if as_zero else Sharing.MISSING
            starred.discard(condition)
    return sharings


def _steps_to_rows(part: tuple[tuple[Expr, Expr | None], SharedPart]) -> int:
    """Return 0 where the sums of an argument give the number of all rows, 1 where a NULL has to count as 0, otherwise 2."""
    (value, _), read = part
    if not can_be_missing(value):
        return 0
    return 1 if value.facts.lower == 0 and not read & (SharedPart.SQUARES | SharedPart.COUNT) else 2


def in_parts(measures: tuple[Measure, ...]) -> bool:
    """Return whether a measure reads squares or products, of one argument or a pair, that may share each row."""
    parts = SharedPart.SQUARES | SharedPart.PRODUCTS | SharedPart.PAIR_SQUARES
    return any(parts & (aggregate_of(measure.aggregate).shared or SharedPart(0)) for measure in measures)


def with_squares(measures: tuple[Measure, ...]) -> set[tuple[Expr, Expr | None]]:
    """Return the arguments, with their FILTER, whose squares a measure reads."""
    return {
        (measure.arguments[0], measure.filter)
        for measure in measures
        if aggregate_of(measure.aggregate).shared == SharedPart.SQUARES and not measure.distinct
    }


def counts_rows(measure: Measure) -> bool:
    """Return whether a measure is the number of rows, or follows from it."""
    return measure.aggregate == "count" and (not measure.arguments or not can_be_missing(measure.arguments[0]))


def wide(value: Expr, rows: int, bounds: ContributionBounds) -> bool:
    """Return whether an argument's bounds are different integers on its grid, without a bound on totals that could clip it."""
    low, high = value.facts.lower, value.facts.upper
    if low is None or high is None or not low < high or not summed(value, None, Fraction(low))[0].magnitude:
        return False
    declared = value.facts.max_total if isinstance(value, Column) else None
    total = smallest(bounds.max_total, declared)
    return total is None or max(abs(low), abs(high)) * rows <= total
