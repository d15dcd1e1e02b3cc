"""The basis of a block: sums of one bounded integer per row, each measured once (privacy.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import Any, TypeVar

from dpsql.aggregates.contract import PairSquares, Products, SharedPart, Squares, aggregate_of
from dpsql.aggregates.moments import can_be_missing, present
from dpsql.functions.numeric import both, call, clamped
from dpsql.plan.formulas import Formula, NoisyValue, Number, ReleasedNumber
from dpsql.plan.plan import Clip, Column, Expr, Measure, ReleasedValue, Term, TermKind, TotalCut, literal
from dpsql.policy.types import ContributionBounds, smallest
from dpsql.pricing import local_sensitivity
from dpsql.pricing.joint_sums import (
    Shared,
    SharedPairs,
    SharedProducts,
    SharedSquares,
    Sharing,
    factors_of,
    multiplied,
    pair_parts,
    product_parts,
    sharable,
    square_parts,
    squared,
    wide,
    with_squares,
)
from dpsql.pricing.measurements import REQUESTS
from dpsql.pricing.rank_histograms import cell_value, end_values, leaning, measured, with_ends
from dpsql.pricing.sample_values import MeanRequest
from dpsql.pricing.sum_terms import (
    FINER_BITS,
    GRID_BITS,
    clipped,
    in_steps,
    places_facts,
    share_of,
    summed,
    whole_share,
)
from dpsql.privacy.mechanisms.exponential import Lean
from dpsql.storage.records import replace

Cuts = Mapping[tuple[Expr, "Expr | None", bool], TotalCut]
"""Bounds per unit that are chosen privately, keyed by value, condition, and whether the bound limits a number of distinct
values."""


class TermBasis:
    """The terms of a block, collected one by one; entering an equal term again returns the name of the first."""

    def __init__(
        self,
        measures: tuple[Measure, ...],
        one_row: bool,
        rows: int,
        bounds: ContributionBounds,
        sharing: bool = False,
        stars: bool = True,
        groups: int = 1,
        bars: Fraction | None = None,
        means: MeanRequest | None = None,
        cuts: Cuts | None = None,
        squares: bool = False,
    ) -> None:
        """Collect the terms of `measures`. `one_row`: a unit has at most one row, so counting units is counting rows. `rows`:
        rows_per_unit.

        `sharing`: terms share each row where they can; COUNT(*) takes part with `stars`, variances and covariances with
        `squares`. `groups`: number of groups of the answer, as far as it is public. `bars`: confidence of the error bars that are
        measured for quantiles (None: no error bars). `means`: options of means of samples. `cuts`: bounds per unit that are
        chosen privately.
        """
        self.cuts = cuts or {}
        self.one_row = one_row
        self.rows = rows
        self.bounds = bounds
        self.groups = groups
        self.bars = bars
        self.means = means or MeanRequest()
        self.ends: dict[Formula, tuple[Formula, Formula]] = {}
        """Both ends of the error bar of a value that is not a sum, keyed by the formula of the value."""
        self.terms: list[Term] = []
        self.measurements: list[Any] = []
        """Measurements other than sums (`plan.Measurement`); each kind of measurement enters its own."""
        self._names: dict[Term, str] = {}
        self.centred = {
            (measure.arguments[0], measure.filter)
            for measure in measures
            if aggregate_of(measure.aggregate).centred and not measure.distinct
        }
        self.shared: dict[tuple[Expr, Expr | None], Shared | SharedSquares] = {}
        self.stars: dict[Expr | None, Shared | SharedSquares | SharedProducts | SharedPairs] = {}
        self.pairs: dict[tuple[Expr, Expr, Expr | None], SharedProducts | SharedPairs] = {}
        if sharing:
            uncut = tuple(measure for measure in measures if not self._is_cut(measure))
            self._share_rows(uncut, stars, squares)

    def _share_rows(self, measures: tuple[Measure, ...], stars: bool, squares: bool) -> None:
        """Enter the sets of terms that share each row. Pairs come first: measures of a single argument may follow from them."""
        pairs = tuple(multiplied(measures, self.bounds, self.rows) if squares else ())
        with_own, of_squares = with_squares(measures), squared(measures)
        for first, second, condition in pairs:
            if (first, second, condition) in of_squares or self._tells_squares((first, second), condition, with_own):
                self._share_pairs((first, second), condition)
        for first, second, condition in pairs:
            if (first, second, condition) not in self.pairs and (first, second, condition) not in of_squares:
                self._share_products((first, second), condition, with_own)
        shared = sharable(measures, self.rows, self.bounds, stars, squares, self.shared.keys(), self.stars.keys())
        for summand, how in shared.items():
            (self._share_squares if summand in with_own else self._share)(*summand, how)

    def _tells_squares(
        self, values: tuple[Expr, Expr], condition: Expr | None, with_own: set[tuple[Expr, Expr | None]]
    ) -> bool:
        """Return whether a requested variance (`with_own`) follows from the squares of a pair: the nine sums of that set have
        less noise than products and squares measured separately."""
        return any(
            (value, condition) in with_own and not can_be_missing(other) and wide(value, self.rows, self.bounds)
            for value, other in (values, values[::-1])
        )

    def _name(self, term: Term) -> NoisyValue:
        if term not in self._names:
            self._names[term] = f"t{len(self.terms)}"
            self.terms.append(replace(term, name=self._names[term]))
        return NoisyValue(self._names[term])

    def _share(self, value: Expr, condition: Expr | None, how: Sharing) -> None:
        """Add the set of terms of one argument; the set is named after its first term."""
        steps, power = in_steps(value)
        plain = summed(steps, condition, Fraction(steps.facts.lower))[0]
        high = summed(steps, condition, Fraction(steps.facts.upper))[0]
        name = f"t{len(self.terms)}"
        everything = how is Sharing.NULL_IS_ZERO
        first = self._name(replace(plain, shares=name, absent=everything))
        second = self._name(replace(high, shares=name, absent=everything))
        third = None
        if how is Sharing.MISSING:
            missing = both(condition, call("is_null", clamped(value)))
            third = self._name(Term("", TermKind.COUNT, None, missing, plain.magnitude, plain.grid, shares=name))
        width = Number(float(Fraction(plain.magnitude) / Fraction(2) ** plain.grid))
        every = everything or not can_be_missing(value)
        self._follow(value, condition, Shared(first, second, width, third, every, power))

    def _share_squares(self, value: Expr, condition: Expr | None, how: Sharing) -> None:
        """Add the set of terms of one argument and its squares; the set is named after its first term."""
        name, parts = f"t{len(self.terms)}", square_parts(value, condition)
        first, second, third = (self._name(replace(part, shares=name)) for part in parts)
        magnitude, grid = parts[0].magnitude, parts[0].grid
        missing = None
        if how is Sharing.MISSING:
            absent = both(condition, call("is_null", clamped(value)))
            missing = self._name(Term("", TermKind.COUNT, None, absent, magnitude, grid, shares=name, place=3))
        width = Fraction(isqrt(magnitude)) / Fraction(2) ** (grid // 2)
        lower, everything = Fraction(parts[0].lower), not can_be_missing(value)
        self._follow(value, condition, SharedSquares((first, second, third), width, lower, missing, everything))

    def _share_products(
        self, values: tuple[Expr, Expr], condition: Expr | None, with_own: set[tuple[Expr, Expr | None]]
    ) -> None:
        """Add the set of terms of the products of two arguments; the set is named after its first term. `with_own`: arguments
        whose squares a measure reads; those do not follow from products."""
        both_there = present(values, condition)
        name, parts = f"t{len(self.terms)}", product_parts(values, both_there)
        if not parts:
            return
        names = [self._name(replace(part, shares=name)) for part in parts]
        shared = SharedProducts((names[0], names[1], names[2], names[3]), *_ends_of(parts[0]))
        self._follow_pair(values, condition, shared, with_own)

    def _share_pairs(self, values: tuple[Expr, Expr], condition: Expr | None) -> None:
        """Add the set of terms of the squares of two arguments; the set is named after its first term."""
        both_there = present(values, condition)
        name, parts = f"t{len(self.terms)}", pair_parts(values, both_there)
        if not parts:
            return
        shared = SharedPairs(tuple(self._name(replace(part, shares=name)) for part in parts), *_ends_of(parts[0]))
        self._follow_pair(values, condition, shared, set())

    def _follow_pair(
        self,
        values: tuple[Expr, Expr],
        condition: Expr | None,
        shared: SharedProducts | SharedPairs,
        apart: set[tuple[Expr, Expr | None]],
    ) -> None:
        """Enter the set of terms of a pair. Measures of one argument follow from it too where the other argument is never
        missing, except for arguments that get a set of their own (`apart`)."""
        self.pairs[*values, condition] = shared
        self.stars.setdefault(present(values, condition), shared)
        for index, (value, other) in enumerate((values, values[::-1])):
            if can_be_missing(other) or not wide(value, self.rows, self.bounds):
                continue
            if (value, condition) not in self.shared and (value, condition) not in apart:
                self._follow(value, condition, shared.column(index, not can_be_missing(value)))

    def _follow(self, value: Expr, condition: Expr | None, shared: Shared | SharedSquares) -> None:
        """Enter a set of terms. The count of its argument follows from it; of all rows, too, unless `shared.rows` is None."""
        self.shared[value, condition] = shared
        if shared.rows is not None:
            self.stars.setdefault(condition, shared)

    def count(self, value: Expr | None, condition: Expr | None, clip: bool = False) -> Formula:
        """Return the count of rows that satisfy `condition` and whose `value` is not NULL. With `clip`, bound each unit's count
        by max_count where that can bind."""
        if value is not None and not can_be_missing(value):
            value = None
        shared = self.stars.get(condition) if value is None else self.shared.get((value, condition))
        if shared is not None and (rows := shared.rows if value is None else shared.counted) is not None:
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
        """Return the number of distinct privacy units among rows that satisfy `condition`."""
        return self._name(Term("", TermKind.COUNT if self.one_row else TermKind.UNITS, None, condition, 1))

    def known_units(self) -> str | None:
        """Return the name of the term that counts all units of a group, or None if no such term is measured."""
        kind = TermKind.COUNT if self.one_row else TermKind.UNITS
        return self._names.get(Term("", kind, None, None, 1))

    def distinct(self, value: Expr, condition: Expr | None, bounded: bool = False) -> Formula:
        """Return the number of distinct values, which one row changes by at most 1. With `bounded`, a unit brings at most
        max_values of them where that can bind."""
        if bounded and (cut := self.cuts.get((value, condition, True))) is not None:
            return self._in_places(cut)
        most = self.bounds.max_values
        slots = literal(most) if bounded and most is not None and most < self.rows else None
        return self._name(Term("", TermKind.DISTINCT, value, condition, 1, places=slots))

    def _in_places(self, cut: TotalCut) -> Formula:
        """Return the number of distinct values where a unit brings at most l, released in an earlier step: l / b times a sum to
        which each value adds b / l. So the term, its sensitivity b and its noise do not depend on l (`planning.total_cuts`)."""
        whole = whole_share(cut)
        slots = ReleasedValue(cut.result, places_facts(cut))
        term = Term("", TermKind.DISTINCT_SHARE, cut.value, cut.filter, whole, places=slots)
        return ReleasedNumber(cut.result) * self._name(term) / Number(float(whole))

    def distinct_sum(self, value: Expr, condition: Expr | None, centred: bool) -> tuple[Formula, float | int]:
        """Return the sum of clamp(value) - centre over distinct values, and the centre. One row moves at most one of them."""
        steps, power = in_steps(value)
        term, centre = summed(steps, condition, centred, GRID_BITS)
        total = self._name(replace(term, kind=TermKind.DISTINCT_SUM))
        return _unscaled(total, power), _unscaled(centre, power)

    def sum(self, value: Expr, condition: Expr | None, centred: bool) -> tuple[Formula, float | int]:
        """Return the sum of clamp(value) - centre on the grid, and the centre (the lower bound if the terms share each row)."""
        if (shared := self.shared.get((value, condition))) is not None:
            low = shared.low if shared.power == 1 else shared.low / float(shared.power)
            return low, summed(value, condition, Fraction(value.facts.lower))[1]
        steps, power = in_steps(value)
        term, centre = summed(steps, condition, centred)
        total = self._name(term)
        return (total, centre) if power == 1 else (total / float(power), centre / power)

    def squares(self, value: Expr, condition: Expr | None) -> Squares | None:
        """Return the sums around the bounds' midpoint that follow from the argument's shared squares, or None without them."""
        shared = self.shared.get((value, condition))
        return shared.squares if isinstance(shared, SharedSquares) else None

    def products(self, values: tuple[Expr, Expr], condition: Expr | None) -> Products | None:
        """Return the sums around the midpoints of the bounds that follow from the pair's shared terms, or None without them."""
        shared = self.pairs.get((*values, condition))
        return None if shared is None else shared.products

    def pair_squares(self, values: tuple[Expr, Expr], condition: Expr | None) -> PairSquares | None:
        """Return the sums of `products` and of both squares around the midpoints of the bounds, which follow from the pair's
        shared squares, or None without them."""
        shared = self.pairs.get((*values, condition))
        return shared.pair_squares if isinstance(shared, SharedPairs) else None

    def total(self, value: Expr, condition: Expr | None) -> Formula:
        """Return the sum of clamp(value). Where a centred or shared sum and the count are measured, it follows, free."""
        centred, shared = ((value, condition) in measured for measured in (self.centred, self.shared))
        term, centre = self.sum(value, condition, centred)
        around = centre != 0 if shared else centred
        parts = self.shared.get((value, condition))
        if not around:
            return term
        if parts is not None and parts.power > 1:  # whole steps until the end, so that no float rounds them
            lower = float(round(centre * parts.power))
            return _unscaled(parts.low + lower * self.count(value, condition), parts.power)
        counted = parts.counted if isinstance(parts, SharedSquares) else None
        return term + float(centre) * (counted or self.count(value, condition))

    def _is_cut(self, measure: Measure) -> bool:
        summing = SharedPart.SUM in (aggregate_of(measure.aggregate).shared or SharedPart(0))
        return summing and (measure.arguments[0], measure.filter, False) in self.cuts

    def clipped_sum(self, value: Expr, condition: Expr | None) -> Formula | None:
        """Return the sum (centre 0) under the smaller max_total of question and column; None where no unit can exceed it."""
        if (cut := self.cuts.get((value, condition, False))) is not None:
            return self._cut_sum(cut)
        declared = value.facts.max_total if isinstance(value, Column) else None
        total = smallest(self.bounds.max_total, declared)
        if total is None or max(abs(value.facts.lower), abs(value.facts.upper)) * self.rows <= total:
            return None
        steps, power = in_steps(value)
        return _unscaled(self._name(clipped(steps, condition, total * power, self.rows)), power)

    def _cut_sum(self, cut: TotalCut) -> Formula:
        """Return a sum whose bound C per unit is released in an earlier step: C times the sum of clamp(x / C, -1, 1), to which a
        unit contributes at most 1 in total. So the term, its bounds and its noise do not depend on C (`planning.total_cuts`)."""
        share = share_of(cut)
        if self.rows == 1:
            return ReleasedNumber(cut.result) * self._name(summed(share, cut.filter, False)[0])
        return ReleasedNumber(cut.result) * self._name(clipped(share, cut.filter, Fraction(1), self.rows))

    def quantile(
        self, value: Expr, condition: Expr | None, quantile: Fraction, interpolated: bool, barred: bool
    ) -> Formula:
        """Return the value at rank `quantile`, chosen among the cells of a rank histogram."""
        value, power = in_steps(value)
        name, term = measured(self.measurements, self.groups, value, condition, quantile)
        formula = _unscaled(cell_value(value, term, name, interpolated and power == 1)[0], power)
        if barred and self.bars is not None and value.facts.type.numeric:
            low, high = end_values(value, term, with_ends(self.measurements, name, self.bars))
            self.ends[formula] = _unscaled(low, power), _unscaled(high, power)
        return formula

    def total_cut(self, value: Expr, condition: Expr | None, lean: Lean) -> Formula:
        """Return the number of the cell that is chosen near the largest values and whose end bounds a sum per unit."""
        name, term = leaning(self.measurements, value, condition, lean)
        return cell_value(value, term, name, False)[0]

    def local(self, measure: Measure, request: local_sensitivity.LocalRequest) -> Formula:
        """Return a measure with noise that is scaled to its local sensitivity."""
        formula, ends = local_sensitivity.measured(self.measurements, self.groups, measure, request)
        if ends is not None:
            self.ends[formula] = ends
        return formula

    def number(self, word: str, measure: Measure) -> Formula:
        """Return the released number that `measure` requests of the measurement `word` (`pricing.measurements.REQUESTS`)."""
        formula, ends = REQUESTS.of(word)(self, measure)
        if ends is not None:
            self.ends[formula] = ends
        return formula


_Steps = TypeVar("_Steps", Formula, float)


def _unscaled(steps: _Steps, power: int) -> _Steps:
    """Return the number that whole steps are, of which `power` make one."""
    return steps if power == 1 else steps / float(power)


def _ends_of(term: Term) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """Return the widths and the lower bounds of the two arguments of a PRODUCT_PART or PAIR_PART."""
    first, second = factors_of(term)
    widths = (
        Fraction(first.magnitude) / Fraction(2) ** first.grid,
        Fraction(second.magnitude) / Fraction(2) ** second.grid,
    )
    return widths, (Fraction(first.lower), Fraction(second.lower))
