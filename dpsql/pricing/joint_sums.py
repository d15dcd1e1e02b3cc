"""Which sums of a block share each row between them, so that they cost one part of the budget together (privacy.md 4).

With a value x in [L, U] of width W, a row adds x - L to one sum and U - x to another: W in all, whatever x is. So both
together move as far as a count of rows alone, times W; COUNT, SUM and AVG follow from them. Measured apart, the count and
the sum would have half of the budget each. Laplace noise, whose price is the L1 distance, is that of the whole budget on
both sums: half as much on the shown SUM. Under Gaussian noise COUNT and AVG have what they had around the middle (the two
sums are count and centred sum turned by 45 degrees), and SUM has less.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dpsql.aggregates.contract import SharedPart
from dpsql.aggregates.registry import aggregate_of
from dpsql.plan.formulas import Formula, NoisyValue, Number
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Column, Expr, Measure
from dpsql.policy.bounds import ContributionBounds, smallest


class Sharing(Enum):
    """Treatment of rows without a value: not counted, counted in a term of their own, or read as the value 0."""

    LEFT_OUT = "left out"
    MISSING = "missing"
    NULL_IS_ZERO = "null is zero"


@dataclass(frozen=True)
class Shared:
    """The terms of one argument that share each row, from which COUNT, SUM and AVG follow.

    `low` is the sum of x - L, `high` that of x - U; a row that has q there has exactly q - W here, so no rounding lies
    between the two. `missing` (or None) has W for each row without a value. `width`: W. `everything`: `low` and `high`
    have a part of every row; where x may be missing, the terms are `absent`: a row without it has q = 0.
    """

    low: NoisyValue
    high: NoisyValue
    width: Number
    missing: NoisyValue | None
    everything: bool

    @property
    def counted(self) -> Formula:
        """The number of rows that `low` and `high` have a part of."""
        return (self.low - self.high) / self.width

    @property
    def rows(self) -> Formula | None:
        """The number of all rows, if it follows."""
        if self.everything:
            return self.counted
        return None if self.missing is None else (self.low - self.high + self.missing) / self.width


def can_be_missing(value: Expr) -> bool:
    """Return whether some row may have no value: NULL, or NaN, which counts as NULL."""
    return value.facts.nullable or value.facts.type is Type.REAL


def sharable(
    measures: tuple[Measure, ...], rows: int, bounds: ContributionBounds, stars: bool
) -> dict[tuple[Expr, Expr | None], Sharing]:
    """The arguments (with their FILTER) whose COUNT, SUM and AVG share each row, and how.

    `stars`: COUNT(*) may follow from one of them; it does from the first that has its FILTER. Left as they are: SUM alone,
    variances (they share S1 and n), and what is clipped, whose bound is on the sum.
    """
    if bounds.max_count is not None and bounds.max_count < rows:
        return {}
    sharings: dict[tuple[Expr, Expr | None], Sharing] = {}
    starred = {measure.filter for measure in measures if _counts_rows(measure)} if stars else set()
    parts: dict[tuple[Expr, Expr | None], list[SharedPart | None]] = {}
    for measure in measures:
        if measure.arguments and not measure.distinct:
            read = aggregate_of(measure.aggregate).shared
            parts.setdefault((measure.arguments[0], measure.filter), []).append(read)
    for (value, condition), read_by in parts.items():
        shared = [part for part in read_by if part is not None]
        if len(shared) < len(read_by) or not any(SharedPart.SUM in part for part in shared):
            continue
        if not _wide(value, rows, bounds):
            continue
        counted = any(SharedPart.COUNT in part for part in shared)
        star = condition in starred
        if not can_be_missing(value):
            if star or counted:
                sharings[value, condition] = Sharing.LEFT_OUT
                starred.discard(condition)
        elif counted:
            sharings[value, condition] = Sharing.MISSING if star else Sharing.LEFT_OUT
            starred.discard(condition)
        elif star:
            sharings[value, condition] = Sharing.NULL_IS_ZERO if value.facts.lower == 0 else Sharing.MISSING
            starred.discard(condition)
    return sharings


def _counts_rows(measure: Measure) -> bool:
    return measure.aggregate == "count" and (not measure.arguments or not can_be_missing(measure.arguments[0]))


def _wide(value: Expr, rows: int, bounds: ContributionBounds) -> bool:
    """Bounds apart from each other, and no bound on a unit's total that could clip it."""
    low, high = value.facts.lower, value.facts.upper
    if low is None or high is None or not low < high:
        return False
    declared = value.facts.max_total if isinstance(value, Column) else None
    total = smallest(bounds.max_total, declared)
    return total is None or max(abs(low), abs(high)) * rows <= total
