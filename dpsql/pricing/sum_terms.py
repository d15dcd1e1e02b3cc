"""SUM terms of bounded values: their grids, and bounds on what one row adds (privacy.md 4)."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import call, clamped
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Clip, Column, Expr, ReleasedValue, Term, TermKind, TotalCut, literal
from dpsql.privacy.loss import plain_decimal
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.storage.records import replace

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


def in_steps(value: Expr) -> tuple[Expr, int]:
    """Return bounded decimals as the whole number of their last digits, and how many of these make one; other values unchanged,
    and 1.

    A column is read as the double that is nearest to its decimal; multiplied by a power of ten it is less than half a step from
    the whole number, because bounds have at most `MOST_DIGITS` digits (`policy.check`, `plan.intervals.in_decimals`). So are
    differences, products and choices of decimals, whose own rounding is a few parts in 2**53.
    """
    if value.facts.scale is None or not value.facts.bounded:
        return value, 1
    power = 10**value.facts.scale
    return call("to_integer", call("mul", clamped(value), literal(power))), power


def clipped(value: Expr, condition: Expr | None, total: Fraction, rows: int) -> Term:
    """Return the SUM term to which a unit with at most `rows` rows contributes at most `total` (in the unit of the value).

    On the grid, `rows` rows stay within 2**UNIT_BITS. The grid is `finer` bits finer than that of the rows' integers: FINER_BITS,
    or fewer where many rows leave no room. Integers too large for that are read as reals. A real has KEPT_BITS where a copy may
    keep it, and more where one row may exceed the total: noise is proportional to the total, and rounding has to be small in
    comparison. Refuses a total of fewer than LEAST_CLIP steps.
    """
    left_bits = UNIT_BITS - (rows - 1).bit_length()
    low, high = value.facts.lower, value.facts.upper
    most = max(abs(low), abs(high))
    if value.facts.type is Type.INTEGER and most < 2 ** min(left_bits - LEAST_FINER, GRID_BITS):
        finer = min(FINER_BITS, left_bits - int(most).bit_length())
        term = Term("", TermKind.SUM, value, condition, int(most), 0, int(low), int(high))
        steps = total * 2**finer
    else:
        bits = KEPT_BITS if total >= most and isinstance(value, Column) else max(KEPT_BITS, left_bits - FINER_BITS)
        bits = min(bits, left_bits - LEAST_FINER)
        finer = min(FINER_BITS, left_bits - bits)
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


# --- sums under chosen bounds -----------------------------------------------------------------------------------------

# Sums under a bound that is chosen first (`dp.max_total = auto`, `planning.total_cuts`): their terms, and the possible
# bounds.

EMPTY_CELLS = 12
"""Number of first cells, which hold no totals. Where too few units have values for the choice to follow them, it is one of these
cells in 98 of 100 cases, because weights of cells fall by exp(-1/3) from each cell to the next (`planning.total_cuts.FALL`). Then
the bound is the largest possible one, that of the policy."""
WIDE_CELLS, WIDE_DOUBLINGS = 6, 2
"""Number of the next cells, the first of which holds all totals up to `TotalCut.least`, and doublings from the end of each to the
end of the next. Few units suffice to pass them; they are for policies that allow thousands of times what any unit has."""
STEPS = 4
"""Cells per doubling after those: a bound is at most 19 % above the total for which it is chosen."""


def places_up_to(most: int) -> tuple[int, ...]:
    """Return the possible numbers of places: 1, then two per doubling (2**k, 3 * 2**(k - 1)), up to the first from `most` on."""
    numbers = [1]
    while numbers[-1] < most:
        last = numbers[-1]
        numbers.append(last + max(1, last // 2 if last & (last - 1) == 0 else last // 3))
    return tuple(numbers)


def places_facts(cut: TotalCut) -> Facts:
    """Return the facts about the number of places before it is released."""
    return Facts(Type.INTEGER, Fraction(1), Fraction(places_up_to(int(cut.most))[-1]), nullable=False)


def whole_share(cut: TotalCut) -> int:
    """Return the most that a unit adds, equal integers for l values, whatever l is: all of `places_up_to` divide it."""
    return math.lcm(*places_up_to(int(cut.most)))


def share_of(cut: TotalCut) -> Expr:
    """Return clamp(x / C, -1, 1), a row's part of the bound C, which is released earlier."""
    bound = ReleasedValue(cut.result, Facts(Type.REAL, cut.least, cut.most, nullable=False))
    ends = (literal(end) for end in (Fraction(-1), Fraction(1)))
    return call("clamp", call("div", clamped(cut.value), bound), *ends)


def is_share(term: Term | None, cut: TotalCut) -> bool:
    """Return whether a term sums `share_of` a cut (whose bound may be released already) or counts values under its places."""
    if term is not None and cut.places:
        return (term.kind, term.value, term.filter) == (TermKind.DISTINCT_SHARE, cut.value, cut.filter)
    if term is None or not isinstance(term.value, Call) or term.filter != cut.filter:
        return False
    ratio = term.value.arguments[0]
    same = term.value.function == "clamp" and isinstance(ratio, Call) and ratio.function == "div"
    return same and isinstance(ratio, Call) and ratio.arguments[0] == clamped(cut.value)


def last_cell(cut: TotalCut) -> int:
    """Return the number of the first cell whose end is not below any total."""
    if cut.places:
        return EMPTY_CELLS + len(places_up_to(int(cut.most))) - 1
    doublings = math.log2(cut.most / cut.least)
    wide = WIDE_CELLS * WIDE_DOUBLINGS
    if doublings <= wide:
        return EMPTY_CELLS + math.ceil(doublings / WIDE_DOUBLINGS)
    return EMPTY_CELLS + WIDE_CELLS + math.ceil(STEPS * (doublings - wide))


def cut_at(cut: TotalCut, cell: int) -> float:
    """Return the end of a cell, but at most the largest possible total; this also where an empty cell is chosen. For places it is
    the released number, which may exceed what a unit has."""
    if cut.places:
        return float(places_up_to(int(cut.most))[-1 if cell < EMPTY_CELLS else cell - EMPTY_CELLS])
    if cell < EMPTY_CELLS:
        return float(cut.most)
    wide = min(cell - EMPTY_CELLS, WIDE_CELLS)
    doublings = wide * WIDE_DOUBLINGS + (cell - EMPTY_CELLS - wide) / STEPS
    return min(float(cut.least) * math.pow(2.0, doublings), float(cut.most))


def units_above(cut: TotalCut, law: Choice, cell: int, missed: float) -> int:
    """Return a bound on the number of units above the end of the chosen cell (for an empty cell: on all units with values), which
    is exceeded with a probability of at most `missed`.

    With c* a cell of distance 0, the distance plus the lean of the chosen cell c exceeds that of c* by at most x = ln(cells
    share / missed) / rate, except with that probability (`Choice.rank_error`). So at most x + lean (c* - c) units beyond the r-th
    largest total are above it.
    """
    leaning = law.rank_error(last_cell(cut) + 1, missed) - float(Fraction(law.lean * cell, law.denominator))
    return math.ceil(law.rank + leaning)
