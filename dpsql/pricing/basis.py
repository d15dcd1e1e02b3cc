"""The basis of a block: sums of one bounded integer per row, each measured once (privacy.md 4)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import both, call, clamped
from dpsql.plan.formulas import Formula, NoisyValue, Number
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Clip, Column, Expr, Measure, Term, TermKind
from dpsql.policy.bounds import ContributionBounds, smallest
from dpsql.pricing.joint_sums import Shared, Sharing, can_be_missing, sharable
from dpsql.privacy.loss import plain_decimal

GRID_BITS = 52
"""Row values fill at most this many bits: |q| <= 2**52, so HUGEINT sums of fewer than 2**63 rows cannot overflow."""
KEPT_BITS = 30
"""The same for a real column that is summed as it is, so that a prepared copy keeps |q| <= 2**30 as a 32-bit INTEGER.

What that costs: with b the term's largest |value - centre|, 2**29 <= b 2**grid < 2**30, so a row is rounded by at most
half a step, b 2**-30 (for AVG, where b is half the range, by range 2**-31), and n rows by n b 2**-30 in the worst case,
when all of them are rounded the same way as far as it goes. One unit moves the term by b at least, so the scale of its
noise is b / epsilon at least, and the worst case stays below the share n epsilon 2**-30 of that: a hundredth at 10
million rows and epsilon 1, as much as the noise at n epsilon = 2**30. Rounded independently (errors of variance
step**2 / 12) n rows come to sqrt(n / 3) b 2**-30, which no n that exists brings to the noise.

Expressions keep GRID_BITS: they are computed for each row anyway, and more bits cost no time there. So do squares and
products of VAR and CORR, whose formulas subtract large numbers that are nearly equal; sums of one unit's rows, to which
no noise is added; and terms clipped to less than one row may add, whose noise is that much smaller, have more than KEPT_BITS.
"""
MOST_GRID = 900
UNIT_BITS = 62
"""A unit's sum of a clipped term stays within 2**62 on its grid, so that the engine's 64 bits hold it, and 128 bits its
square and the sum of the squares of all its groups (at most the square of the sum)."""
FINER_BITS = 20
"""A clipped unit adds a share of each row in steps of 2**-20, on a grid that much finer than that of the rows."""
LEAST_FINER = 10
"""The fewest of these bits, whatever the number of rows: a share is rounded down by a thousandth of the whole at most."""
LEAST_CLIP = 1_000
"""The fewest grid steps of a bound: rounding it down costs at most a thousandth."""
CENTRED = ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
"""Aggregates that measure the centred sum of their argument and its count."""


class Basis:
    """Basis terms found so far; asking for an equal term again gives the same name."""

    def __init__(
        self,
        measures: tuple[Measure, ...],
        one_row: bool,
        rows: int,
        bounds: ContributionBounds,
        sharing: bool = False,
        stars: bool = True,
        groups: int = 1,
    ) -> None:
        """`one_row`: a unit has at most one row, so that counting units is counting rows. `rows`: rows_per_unit.

        `sharing`: terms that can share each row do, COUNT(*) among them with `stars`. `groups`: how many the answer has, as far
        as that is public.
        """
        self.one_row = one_row
        self.rows = rows
        self.bounds = bounds
        self.groups = groups
        self.terms: list[Term] = []
        self.measurements: list[Any] = []
        """Of other kinds than sums (`plan.Measurement`); each kind looks after its own."""
        self._unnamed: list[Term] = []
        self.centred = {
            (measure.arguments[0], measure.filter)
            for measure in measures
            if measure.aggregate in CENTRED and not measure.distinct
        }
        self.shared: dict[tuple[Expr, Expr | None], Shared] = {}
        self.stars: dict[Expr | None, Shared] = {}
        if sharing:
            for summand, how in sharable(measures, rows, bounds, stars).items():
                self._share(*summand, how)

    def _name(self, term: Term) -> NoisyValue:
        if term in self._unnamed:
            return NoisyValue(self.terms[self._unnamed.index(term)].name)
        name = f"t{len(self.terms)}"
        self._unnamed.append(term)
        self.terms.append(replace(term, name=name))
        return NoisyValue(name)

    def _share(self, value: Expr, condition: Expr | None, how: Sharing) -> None:
        """The set of terms of one argument, named like its first term."""
        plain = summed(value, condition, Fraction(value.facts.lower))[0]
        high = summed(value, condition, Fraction(value.facts.upper))[0]
        name = f"t{len(self.terms)}"
        everything = how is Sharing.NULL_IS_ZERO
        first = self._name(replace(plain, shares=name, absent=everything))
        second = self._name(replace(high, shares=name, absent=everything))
        third = None
        if how is Sharing.MISSING:
            missing = both(condition, call("is_null", clamped(value)))
            third = self._name(Term("", TermKind.COUNT, None, missing, plain.magnitude, plain.grid, shares=name))
        width = Number(float(Fraction(plain.magnitude) / Fraction(2) ** plain.grid))
        found = Shared(first, second, width, third, everything or not can_be_missing(value))
        self.shared[value, condition] = found
        if found.rows is not None:
            self.stars.setdefault(condition, found)

    def count(self, value: Expr | None, condition: Expr | None, clip: bool = False) -> Formula:
        """The rows that pass `condition` and whose `value` is there; `clip`: under max_count, where it binds."""
        if value is not None and not can_be_missing(value):
            value = None
        known = self.stars.get(condition) if value is None else self.shared.get((value, condition))
        if known is not None and (rows := known.rows if value is None else known.counted) is not None:
            return rows
        most = self.bounds.max_count
        if not clip or most is None or most >= self.rows:
            return self._name(Term("", TermKind.COUNT, value, condition, 1))
        scale = 1 << FINER_BITS
        clipped_to = Clip(most * scale)
        return self._name(
            Term("", TermKind.COUNT, value, condition, scale, FINER_BITS, clip=clipped_to, finer=FINER_BITS)
        )

    def units(self, condition: Expr | None) -> Formula:
        """Distinct privacy units among rows that pass `condition`."""
        return self._name(Term("", TermKind.COUNT if self.one_row else TermKind.UNITS, None, condition, 1))

    def known_units(self) -> str | None:
        """The term that counts all units of a group, if it is measured."""
        kind = TermKind.COUNT if self.one_row else TermKind.UNITS
        wanted = Term("", kind, None, None, 1)
        return self.terms[self._unnamed.index(wanted)].name if wanted in self._unnamed else None

    def distinct(self, value: Expr, condition: Expr | None) -> Formula:
        """Distinct values; one row moves their number by at most one."""
        return self._name(Term("", TermKind.DISTINCT, value, condition, 1))

    def distinct_sum(self, value: Expr, condition: Expr | None, centred: bool) -> tuple[Formula, float | int]:
        """Sum of clamp(value) - centre over distinct values; one row brings or takes at most one of them in its group."""
        term, centre = summed(value, condition, centred, GRID_BITS)
        return self._name(replace(term, kind=TermKind.DISTINCT_SUM)), centre

    def sum(self, value: Expr, condition: Expr | None, centred: bool) -> tuple[Formula, float | int]:
        """Sum of clamp(value) - centre on the grid; returns the term and the centre (the lower end in a shared row)."""
        if (known := self.shared.get((value, condition))) is not None:
            return known.low, summed(value, condition, Fraction(value.facts.lower))[1]
        term, centre = summed(value, condition, centred)
        return self._name(term), centre

    def clipped_sum(self, value: Expr, condition: Expr | None) -> Formula | None:
        """The term of a sum under max_total (the question's, or that of the column that is summed), around no centre;
        None where no unit can exceed it."""
        declared = value.facts.max_total if isinstance(value, Column) else None
        total = smallest(self.bounds.max_total, declared)
        if total is None or max(abs(value.facts.lower), abs(value.facts.upper)) * self.rows <= total:
            return None
        return self._name(clipped(value, condition, total, self.rows))


def summed(
    value: Expr, condition: Expr | None, centred: bool | Fraction, bits: int | None = None
) -> tuple[Term, float | int]:
    """The SUM term of a bounded value: integers as they are, reals on a power-of-two grid of `bits` (None: as usual).

    `centred`: around 0, around the middle of the bounds, or around a number that is one of them.
    """
    low, high = value.facts.lower, value.facts.upper
    if value.facts.type is not Type.INTEGER or max(abs(low), abs(high)) >= 2**GRID_BITS:
        return _real_sum(value, condition, centred, _bits(value) if bits is None else bits)
    lower, upper = int(low), int(high)
    centre = int(centred) if isinstance(centred, Fraction) else (lower + upper) // 2 if centred else 0
    magnitude = max(abs(lower - centre), abs(upper - centre))
    return Term("", TermKind.SUM, value, condition, magnitude, 0, lower, upper, centre), centre


def clipped(value: Expr, condition: Expr | None, total: Fraction, rows: int) -> Term:
    """The SUM term of which a unit with at most `rows` rows has at most `total` in all (in the unit of the value).

    On the grid `rows` rows stay within 2**UNIT_BITS, and it is `finer` bits finer than that of the rows' integers:
    FINER_BITS, fewer where many rows leave no room. Integers too large for that are read as reals. A real has KEPT_BITS
    where a copy may keep it, and more where one row may add more than the total: noise is of the total's size, to which
    rounding has to be small. Refuses a total that is fewer than LEAST_CLIP steps.
    """
    room = UNIT_BITS - (rows - 1).bit_length()
    low, high = value.facts.lower, value.facts.upper
    most = max(abs(low), abs(high))
    if value.facts.type is Type.INTEGER and most < 2 ** min(room - LEAST_FINER, GRID_BITS):
        finer = min(FINER_BITS, room - int(most).bit_length())
        term = Term("", TermKind.SUM, value, condition, int(most), 0, int(low), int(high))
        steps = total * 2**finer
    else:
        bits = KEPT_BITS if total >= most and isinstance(value, Column) else max(KEPT_BITS, room - FINER_BITS)
        bits = min(bits, room - LEAST_FINER)
        finer = min(FINER_BITS, room - bits)
        term, _ = _real_sum(value, condition, False, bits)
        steps = total * Fraction(2) ** term.grid
    if steps < LEAST_CLIP:
        raise refuse("max_total_small", total=plain_decimal(total), most=f"{float(most):.4g}", rows=rows)
    grid = term.grid + finer
    clip = Clip(math.floor(total * Fraction(2) ** grid))
    return replace(term, magnitude=term.magnitude << finer, grid=grid, clip=clip, finer=finer)


def _bits(value: Expr) -> int:
    """How many bits the grid of a real has, whether or not the table is prepared: KEPT_BITS for what a copy may keep."""
    return KEPT_BITS if isinstance(value, Column) else GRID_BITS


def _real_sum(value: Expr, condition: Expr | None, centred: bool | Fraction, bits: int) -> tuple[Term, float]:
    """The grid of a real: 2**-j with |clamp(x) - centre| * 2**j <= 2**bits.

    The engine computes fl(fl(x - centre) * 2**j) and rounds to an integer. IEEE subtraction is monotone and scaling
    by a power of two is exact, so the two ends computed here in the same doubles bound every row.
    """
    lower, upper = float(value.facts.lower), float(value.facts.upper)
    centre = float(centred) if isinstance(centred, Fraction) else lower / 2 + upper / 2 if centred else 0.0
    most = max(abs(lower - centre), abs(upper - centre))
    grid = 0 if most == 0 else min(bits - math.frexp(most)[1], MOST_GRID)
    magnitude = max(abs(grid_value(end, centre, grid)) for end in (lower, upper))
    return Term("", TermKind.SUM, value, condition, magnitude, grid, lower, upper, centre), centre


def grid_value(value: float, centre: float, grid: int) -> int:
    """The integer of one real on the grid, rounded as the engines' casts do: half to even."""
    return round(math.ldexp(value - centre, grid))
