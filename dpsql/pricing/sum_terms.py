"""SUM terms of bounded values: their grids, and bounds on what one row adds (privacy.md 4)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Clip, Column, Expr, Term, TermKind
from dpsql.privacy.loss import plain_decimal

GRID_BITS = 52
"""Row values fill at most this many bits: |q| <= 2**52, so HUGEINT sums of fewer than 2**63 rows cannot overflow."""
KEPT_BITS = 30
"""As GRID_BITS, for a real column that is summed without arithmetic, so that a prepared copy keeps |q| <= 2**30 as a 32-bit
INTEGER.

What that costs: with b the term's largest |value - centre|, 2**29 <= b 2**grid < 2**30, so a row is rounded by at most half a
step, b 2**-30 (for AVG, where b is half the range, by range 2**-31), and n rows by n b 2**-30 in the worst case, when all of them
are rounded as far as possible in the same direction. One unit moves the term by at least b, so the scale of its noise is at least
b / epsilon, and the worst case stays below the share n epsilon 2**-30 of that: a hundredth at 10 million rows and epsilon 1, as
much as the noise at n epsilon = 2**30. Rounded independently (errors of variance step**2 / 12), n rows have an error of
sqrt(n / 3) b 2**-30, which reaches the noise at no realistic n.

The squares of a shared row (`joint_sums`) are squares of integers of KEPT_BITS, so that 64 bits hold them: exact squares of
rounded values, each of which is off by at most half a step.

Other values keep GRID_BITS. Expressions are computed for each row anyway, so more bits cost no time there. Squares and products
of VAR and CORR that are measured separately enter formulas that subtract large, nearly equal numbers. Sums of one unit's rows get
no noise. Terms clipped to less than one row may add have less noise accordingly, and have more than KEPT_BITS.
"""
MOST_GRID = 900
UNIT_BITS = 62
"""A unit's sum of a clipped term stays within 2**62 on its grid, so that the engine's 64 bits hold it, and 128 bits hold its
square and the sum of the squares of all its groups (at most the square of the sum)."""
FINER_BITS = 20
"""A clipped unit adds a share of each row in steps of 2**-20, on a grid that much finer than that of the rows."""
LEAST_FINER = 10
"""Least number of these bits, whatever the number of rows: a share is rounded down by at most a thousandth of the whole."""
LEAST_CLIP = 1_000
"""Least number of grid steps of a bound: rounding it down costs at most a thousandth."""


def summed(
    value: Expr, condition: Expr | None, centred: bool | Fraction, bits: int | None = None
) -> tuple[Term, float | int]:
    """Return the SUM term of a bounded value, and its centre: integers unchanged, reals on a power-of-two grid of `bits` (None:
    the default).

    `centred`: False for a sum around 0, True for the middle of the bounds, or a number that is one of the bounds.
    """
    low, high = value.facts.lower, value.facts.upper
    if low is None or high is None:  # products of bounded values whose bounds exceed doubles
        raise refuse("sum_out_of_range")
    if not value.facts.type.numeric:
        raise refuse("internal", what="a sum of values that are no numbers")
    if value.facts.type is not Type.INTEGER or max(abs(low), abs(high)) >= 2**GRID_BITS:
        return _real_sum(value, condition, centred, _bits(value) if bits is None else bits)
    lower, upper = int(low), int(high)
    centre = int(centred) if isinstance(centred, Fraction) else (lower + upper) // 2 if centred else 0
    magnitude = max(abs(lower - centre), abs(upper - centre))
    return Term("", TermKind.SUM, value, condition, magnitude, 0, lower, upper, centre), centre


def clipped(value: Expr, condition: Expr | None, total: Fraction, rows: int) -> Term:
    """Return the SUM term to which a unit with at most `rows` rows contributes at most `total` (in the unit of the value).

    On the grid, `rows` rows stay within 2**UNIT_BITS. The grid is `finer` bits finer than that of the rows' integers: FINER_BITS,
    or fewer where many rows leave no room. Integers too large for that are read as reals. A real has KEPT_BITS where a copy may
    keep it, and more where one row may exceed the total: noise is proportional to the total, and rounding has to be small in
    comparison. Refuses a total of fewer than LEAST_CLIP steps.
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
    """Return the bits of a real's grid, the same for prepared tables: KEPT_BITS for columns that a copy may store."""
    return KEPT_BITS if isinstance(value, Column) else GRID_BITS


def _real_sum(value: Expr, condition: Expr | None, centred: bool | Fraction, bits: int) -> tuple[Term, float]:
    """Return the SUM term of a real, and its centre, on the grid 2**-j with |clamp(x) - centre| * 2**j <= 2**bits.

    The engine computes fl(fl(x - centre) * 2**j) and rounds to an integer. IEEE subtraction is monotone and scaling by a power of
    two is exact, so the two ends, computed here in the same doubles, bound every row.
    """
    lower, upper = float(value.facts.lower), float(value.facts.upper)
    centre = float(centred) if isinstance(centred, Fraction) else lower / 2 + upper / 2 if centred else 0.0
    most = max(abs(lower - centre), abs(upper - centre))
    grid = 0 if most == 0 else min(bits - math.frexp(most)[1], MOST_GRID)
    magnitude = max(abs(grid_value(end, centre, grid)) for end in (lower, upper))
    return Term("", TermKind.SUM, value, condition, magnitude, grid, lower, upper, centre), centre


def grid_value(value: float, centre: float, grid: int) -> int:
    """Return the integer of one real on the grid, rounded as the engines' casts do: half to even."""
    return round(math.ldexp(value - centre, grid))
