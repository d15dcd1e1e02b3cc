"""Sums under a bound that is chosen first (`dp.max_total = auto`, `planning.total_cuts`): their terms, and the possible
bounds."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.functions.numeric import call, clamped
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Expr, Literal, ReleasedValue, Term, TermKind, TotalCut
from dpsql.privacy.mechanisms.exponential import Choice

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
    """Return the possible numbers of places: 1, and after that two per doubling, 2**k and 3 * 2**(k - 1), up to the first that is
    not below `most`."""
    numbers = [1]
    while numbers[-1] < most:
        last = numbers[-1]
        numbers.append(last + max(1, last // 2 if last & (last - 1) == 0 else last // 3))
    return tuple(numbers)


def places_facts(cut: TotalCut) -> Facts:
    """Return the facts about the number of places before it is released."""
    return Facts(Type.INTEGER, Fraction(1), Fraction(places_up_to(int(cut.most))[-1]), nullable=False)


def whole_share(cut: TotalCut) -> int:
    """Return the most that a unit adds under any number of places l, an equal integer for each of its l values: a number that all
    of `places_up_to` divide."""
    return math.lcm(*places_up_to(int(cut.most)))


def share_of(cut: TotalCut) -> Expr:
    """Return clamp(x / C, -1, 1), a row's part of the bound C, which is released earlier."""
    bound = ReleasedValue(cut.result, Facts(Type.REAL, cut.least, cut.most, nullable=False))
    ends = (Literal(end, literal_facts(end)) for end in (Fraction(-1), Fraction(1)))
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
