"""Answers to blocks computed from a stored release: post-processing, so they cost nothing.

Why this is sound (docs/reuse.md): counts and sums add up over disjoint groups of public keys. So a stored release
answers a block over the same relation that keeps some of its keys (a roll-up), admits only some of its groups (a
slice: conditions on its keys), or measures some of its terms; distinct counts only if no groups are added up. The
answer is a weighted sum of *disjoint sums*: no stored cell belongs to two of them, so their noise is independent, and
error bars are right for everything that the public remainder computes from them (`disjoint_sums`). Chosen numbers
(quantiles, most frequent values) do not add up: they answer only a question about the same rows in the same groups. But
counts of each value also answer questions about quantiles of that value (`disjoint_sums`).

Joint sums. Counts and sums also follow, as weighted sums, from stored sets of sums that share each row (`pricing.joint_sums`).

A set around both ends sums q and q - W of each row, and the difference of its sums is W times the number of rows. A set of
squares sums (W - q)^2, 2 q (W - q) and q^2: all three add up to W^2 times the number of rows, and the last plus half of the
second is W times the sum of q. Because q (q + W - q) is W q, products of pairs follow from the squares of pairs in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from fractions import Fraction
from itertools import chain
from math import isqrt, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.aggregates.moments import can_be_missing, presence
from dpsql.functions.canonical_conditions import needed
from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import call
from dpsql.noise.group_layout import among
from dpsql.noise.perturb import ChosenNumber
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import RankHistogram
from dpsql.plan.plan import Call, Column, Expr, Literal, Term, TermKind, names_read
from dpsql.pricing.joint_sums import factors_of, pair_parts, square_parts
from dpsql.pricing.pricing import PricedBlock, key_array
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.registry import is_shared
from dpsql.release.remainder import ReleasedBlock, StandIn
from dpsql.reuse.disjoint_sums import (
    CountedNumber,
    DisjointSums,
    Impossible,
    Mask,
    Part,
    cells_of,
    counted_numbers,
    disjoint,
    grid,
    ranked_counts,
)
from dpsql.reuse.measurements import Match, errors_in_words, matches
from dpsql.reuse.record import (
    ADDITIVE,
    NO_VALUE,
    SELECTION,
    Stored,
    StoredFactor,
    StoredKey,
    StoredTerm,
    base_of,
    conjuncts,
    measure_of,
    ranked_by,
    selection_of,
    value_mark,
)
from dpsql.storage.records import dataclass, replace

Weighted = list[tuple[Fraction, StoredTerm]]


def counts_of_sets(stored: Sequence[StoredTerm], term: Term) -> Iterator[Weighted]:
    """Yield, for each set from which it follows, the number of rows that `term` counts, ignoring its conditions: all rows, or
    those with a value. A count that shares rows with sums is in steps of these sums."""
    if term.shares:
        yield from _missing(stored, term)
        return
    for name in dict.fromkeys(t.shares for t in stored if t.shares):
        members = [t for t in stored if t.shares == name]
        parts = [t for t in members if t.kind == TermKind.SQUARE_PART.value]
        weights = _squared_count(parts) if parts else _ends_count(members, term.value)
        missing = [(weights[0][0], t) for t in members if t.kind == TermKind.COUNT.value] if weights else []
        if weights and term.value is None and (weights[0][1].everything or missing):
            yield weights + missing
        if weights and term.value is not None and _measures(weights[0][1], term.value):
            yield weights


def sum_of_squares(stored: Sequence[StoredTerm], term: Term) -> Weighted:
    """Return a SUM around any centre from a set of squares of its value; empty if none is stored, and for other kinds."""
    absent = term.absent and term.value is not None and can_be_missing(term.value)
    if term.kind is not TermKind.SUM or term.clip is not None or absent or term.value is None:
        return []
    parts = _parts_of(stored, term.value)
    width = parts[0].width if parts else None
    if not width:
        return []
    rows = (parts[0].centre - Fraction(term.centre)) / width**2
    weights = [(rows, parts[0]), (rows + 1 / (2 * width), parts[1]), (rows + 1 / width, parts[2])]
    return [(weight, part) for weight, part in weights if weight]


def product_of_squares(stored: Sequence[StoredTerm], term: Term) -> Weighted:
    """Return a part of a pair's products from the pair's stored squares; empty if none are stored, and for other kinds."""
    if term.kind is not TermKind.PRODUCT_PART or not isinstance(term.value, Call):
        return []
    first, second = term.value.arguments
    parts = pair_parts((first, second), None)
    by_measure = {t.measure: t for t in stored if t.kind == TermKind.PAIR_PART.value}
    if not parts or any(measure_of(part) not in by_measure for part in parts):
        return []
    width, other = (Fraction(factor.magnitude) / Fraction(2) ** factor.grid for factor in factors_of(parts[0]))
    below, above = (Fraction(1), Fraction(1, 2), Fraction(0)), (Fraction(0), Fraction(1, 2), Fraction(1))
    of_first, of_second = (above if term.place & bit else below for bit in (1, 2))
    weights = [a * b / (width * other) for a in of_first for b in of_second]
    return [(weight, by_measure[measure_of(part)]) for weight, part in zip(weights, parts, strict=True) if weight]


def parts_of_pairs(stored: Sequence[StoredTerm], term: Term) -> Iterator[Weighted]:
    """Yield, for each set of products or squares of pairs from which it follows, a COUNT, a SUM around any centre, or a part of
    the squares of one number, over the rows that have both numbers.

    With q in [0, V] the powers of degree d (1 or 2) add up to V^d: so 1 is their sum / V^d, and q is (0, 1), or (0, 1/2, 1) / V.
    The weights for one number are multiplied by the weights of 1 for the other.
    """
    mark = value_mark(term.value) if term.value is not None and _adds_up(term.value) else None
    if term.clip is not None or (term.value is not None and mark is None) or (term.shares and term.value is None):
        return
    for name in dict.fromkeys(t.shares for t in stored if t.factors):
        parts = {t.place: t for t in stored if t.shares == name}
        degree = 2 if len(parts) == 9 else 1
        factors = parts[0].factors
        indexes = range(2) if term.value is None else [i for i in range(2) if factors[i].value == mark]
        said = _of_factor(term, factors[indexes[0]], degree) if indexes else []
        if not said:
            continue
        by_factor = [[1 / factor.width**degree] * (degree + 1) for factor in factors]
        by_factor[indexes[0]] = said
        weights = [
            (a * b, parts[3 * first + second if degree == 2 else first + 2 * second])
            for first, a in enumerate(by_factor[0])
            for second, b in enumerate(by_factor[1])
        ]
        yield [(weight, part) for weight, part in weights if weight]


def _of_factor(term: Term, factor: StoredFactor, degree: int) -> list[Fraction]:
    """Return the weights with which a term sums the parts of one number, by their power; empty for other kinds.

    A real has fewer bits in a pair than alone, so its width differs by a rounding: squares are scaled to the requested width.
    """
    rows = [1 / factor.width**degree] * (degree + 1)
    if term.kind is TermKind.COUNT:
        return rows
    if term.kind is TermKind.SUM and not (term.absent and term.value is not None and can_be_missing(term.value)):
        powers = [Fraction(power) / degree / factor.width ** (degree - 1) for power in range(degree + 1)]
        moved = factor.lower - Fraction(term.centre)
        return [power + moved * row for power, row in zip(powers, rows, strict=True)]
    if term.kind is TermKind.SQUARE_PART and degree == 2:
        width = Fraction(isqrt(term.magnitude)) / Fraction(2) ** (term.grid // 2)
        return [(width / factor.width) ** 2 if index == term.place else Fraction(0) for index in range(3)]
    return []


def _missing(stored: Sequence[StoredTerm], term: Term) -> Iterator[Weighted]:
    """Yield the count of rows without a value in steps of W, from one in steps of W^2. The caller compares conditions."""
    measure = measure_of(replace(term, magnitude=term.magnitude**2, grid=2 * term.grid))
    for other in stored:
        if other.measure == measure:
            yield [(Fraction(2) ** term.grid / term.magnitude, other)]


def _ends_count(members: Sequence[StoredTerm], value: Expr | None) -> Weighted:
    sums = [t for t in members if t.kind == TermKind.SUM.value]
    if len(sums) != 2 or (value is not None and sums[0].absent):
        return []
    low, high = sums
    weight = 1 / (high.centre - low.centre)
    return [(weight, low), (-weight, high)]


def _squared_count(parts: Sequence[StoredTerm]) -> Weighted:
    return [(1 / part.width**2, part) for part in parts if part.width]


def _adds_up(value: Expr) -> bool:
    """Return whether values are bounded numbers, which are summed; dates and times are only counted."""
    return value.facts.bounded and value.facts.type in (Type.INTEGER, Type.REAL)


def _measures(stored: StoredTerm, value: Expr) -> bool:
    if not _adds_up(value):
        return False
    if stored.kind == TermKind.SQUARE_PART.value:
        return stored.measure in {measure_of(part) for part in square_parts(value, None)}
    return stored.measure == measure_of(summed(value, None, False)[0])


def _parts_of(stored: Sequence[StoredTerm], value: Expr) -> list[StoredTerm]:
    """Return the stored squares of a value, by place; empty if any of them is missing."""
    if not _adds_up(value):
        return []
    by_measure = {t.measure: t for t in stored if t.kind == TermKind.SQUARE_PART.value}
    parts = [by_measure[measure] for part in square_parts(value, None) if (measure := measure_of(part)) in by_measure]
    return parts if len(parts) == 3 else []


# Checks that stored groups contain all rows of a question, whatever their value of a key: only then may groups be summed.


def covers(key: StoredKey, values: Sequence[Any], conditions: Sequence[Expr]) -> bool:
    """Return whether every row that satisfies `conditions` (on the key alone) has one of the key's stored `values`."""
    nulls = key.nulls or any(evaluate(condition, {key.name: None}) is not True for condition in conditions)
    listed = key.complete or any(_pins(condition, key, values) for condition in conditions)
    return nulls and (listed or _lie_between(values, conditions))


def _pins(condition: Expr, key: StoredKey, values: Sequence[Any]) -> bool:
    """Return whether a condition is key = literal or key IN (literals), and every literal is one of the stored values."""
    if not isinstance(condition, Call) or condition.function not in ("eq", "in"):
        return False
    column, *literals = condition.arguments  # canonical: literals stand on the right
    if not isinstance(column, Column) or not all(isinstance(literal, Literal) for literal in literals):
        return False
    tests = [replace(condition, function="eq", arguments=(column, literal)) for literal in literals]
    return all(any(evaluate(test, {key.name: value}) is True for value in values) for test in tests)


def _lie_between(values: Sequence[Any], conditions: Sequence[Expr]) -> bool:
    """Return whether the conditions bound the key from both sides, and all days or whole numbers in between are stored. In the
    canonical form such bounds are `>=` and `<=` with the literal on the right."""
    stored = {_place(value) for value in values}
    least: list[int] = []
    most: list[int] = []
    for condition in conditions:
        if isinstance(condition, Call) and condition.function in ("ge", "le"):
            left, right = condition.arguments
            bound = _place(right.value) if isinstance(left, Column) and isinstance(right, Literal) else None
            if bound is not None and left.facts.type in (Type.INTEGER, Type.DATE):
                (least if condition.function == "ge" else most).append(bound)
    if not least or not most:
        return False
    return set(range(max(least), min(most) + 1)) <= stored if min(most) - max(least) <= len(stored) else False


def _place(value: Any) -> int | None:
    """Return a whole number unchanged, a date as its day number, and None for any other value."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal()
    return value if isinstance(value, int) and not isinstance(value, bool) else None


MOST_TESTED = 100_000
"""The most combinations of key values for which a condition or a computed key is evaluated."""
_ROUNDING = 1e-9
_TESTS = frozenset((
    "eq", "ne", "lt", "le", "gt", "ge", "in", "not", "and", "or", "is_null", "is_true", "is_false", "not_distinct",
))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Derived:
    """An answer computed from `stored`. `same`: it consists of all stored numbers, unchanged, and no others.

    `errors`: for each term of the block its half width at the confidence of the query, in units of the answer (exact for
    a single disjoint sum, by the normal law for a sum of several), and its standard deviation. `how`: the computation in
    words for the analyst. `matches`: the numbers that a mechanism chose rather than perturbed, or that follow from counts.
    """

    block: ReleasedBlock
    stored: Stored
    same: bool
    errors: Mapping[str, tuple[float, float]]
    how: str
    matches: tuple[Match | CountedNumber, ...] = ()


def derive(priced: PricedBlock, stored: Stored, confidence: float, naming: bool = True) -> Derived | None:
    """Answer `priced` from `stored`, a release over the same relation (`record.base_of`); return None if that is impossible.

    `naming`: whether `Derived.how` may name the keys of the release, which may be hidden from the asker.
    """
    try:
        return _Derivation(priced, stored, naming).answer(confidence)
    except Impossible:
        return None


def at_least_as_accurate(priced: PricedBlock, derived: Derived, confidence: float) -> bool:
    """Return whether no term of the derived answer has a larger half width or standard deviation than a fresh
    measurement of `priced`, and no number was chosen with less epsilon."""
    fresh = fresh_errors(priced, confidence)
    return all(match.error_ratio <= 1 for match in derived.matches) and all(
        error <= allowed * (1 + _ROUNDING)
        for name, pair in derived.errors.items()
        for error, allowed in zip(pair, fresh[name], strict=True)
    )


def fresh_errors(priced: PricedBlock, confidence: float) -> dict[str, tuple[float, float]]:
    """Return half width and standard deviation of each term of a fresh measurement of `priced`, in units of the answer."""
    nothing = np.empty(0)
    terms = [StandIn.of_law(term, nothing) for term in priced.noise.terms]
    return {term.name: (term.half_width(confidence), term.standard_deviation()) for term in terms}


class _Derivation:
    def __init__(self, priced: PricedBlock, stored: Stored, naming: bool) -> None:
        self.priced = priced
        self.naming = naming
        self.stored = stored
        self.keys = {key.expression: key for key in stored.keys}
        self.source_conditions = base_of(priced.block.source)[1]
        self.conditions: dict[str, Expr] = dict(self.source_conditions)
        self.masks: dict[str, Mask] = {}
        self.retained = [self._retained(key.expression) for key in priced.block.keys]
        self.dropped = [key for key in stored.keys if key not in self.retained]

    def answer(self, confidence: float) -> Derived:
        bounds = self.priced.block.caps.bounds
        caps_matter = bounds.drops_rows_by_group or self.stored.bounds.drops_rows_by_group
        # A unit's clipping factor and the values it contributes depend on all groups together: other groups do not add up.
        caps_matter |= any(term.clip is not None or term.places is not None for term in self.priced.block.terms)
        numbers = self._numbers(confidence)
        counted = () if numbers is not None else self._from_counts(confidence)
        caps_matter |= bool(numbers)  # the quantile of some groups does not follow from quantiles of other groups
        parts_by_term = {term.name: self._parts(term) for term in self.priced.block.terms}
        chosen = any(part[2] for parts in parts_by_term.values() for part in parts)
        private = any(not key.public for key in self.stored.keys)
        computed = not all(isinstance(key, StoredKey) for key in self.retained)
        one_to_one = not chosen and not computed and not self.dropped and (private or self._same_groups())
        if (caps_matter or private) and not one_to_one:
            raise Impossible
        if self.stored.gaps and self.dropped:
            raise Impossible  # some of the groups to be summed are missing
        if caps_matter and bounds != self.stored.bounds:
            raise Impossible
        if not self._same_rows():
            raise Impossible
        if private and not (self._shown_as_early() and self.stored.conditions == self.source_conditions.keys()):
            raise Impossible
        sums = self._private(parts_by_term) if private else self._public(parts_by_term)
        sums.numbers = [*self._placed(numbers or (), private), *(number.placed for number in counted)]
        block, errors = sums.released(confidence)
        measured = [term for term in self.stored.terms if term.kind != SELECTION]
        plain = all(len(parts) == 1 and parts[0][0] == 1 for parts in parts_by_term.values())
        same = (
            one_to_one
            and plain
            and len(measured) == len(parts_by_term)
            and len(numbers or ()) == len(self.stored.numbers)
        )
        words = self._words(chosen, same, numbers or (), counted)
        return Derived(block, self.stored, same, errors, words, numbers or counted)

    def _numbers(self, confidence: float) -> tuple[Match, ...] | None:
        """Return the stored numbers for the question's measurements: empty without any, None if one of them is not stored."""
        measurements, plans = self.priced.block.measurements, self.priced.noise.measurements
        numbers = matches(measurements, plans, self.stored.numbers, confidence)
        if numbers and self.stored.conditions != self.source_conditions.keys():
            raise Impossible
        return numbers

    def _from_counts(self, confidence: float) -> tuple[CountedNumber, ...]:
        """Compute the quantiles of the question from stored counts of each value. Raises Impossible for other measurements."""
        numbers: list[CountedNumber] = []
        for measurement, plan in zip(self.priced.block.measurements, self.priced.noise.measurements, strict=True):
            if not isinstance(measurement, RankHistogram) or measurement.word != RANK_HISTOGRAM:
                raise Impossible
            key = self._stored_key(measurement.value)
            ((weight, term, chosen), *more) = self._parts(Term("", TermKind.COUNT, None, measurement.term.filter, 1))
            if more or weight != 1 or key in self.retained:
                raise Impossible
            codes, values = self._combinations([key.name])
            cells = cells_of(measurement, key.name, [value for (value,) in values])[codes]
            group, groups = self._groups()
            inside = np.logical_and.reduce([group >= 0, *(self._mask(mark) for mark in chosen)])
            released = self.stored.table.column(term.name).to_numpy()
            counts = ranked_counts(term, released[inside], cells[inside], group[inside], groups)
            numbers += counted_numbers(measurement, plan, counts, confidence)
        return tuple(numbers)

    def _placed(self, numbers: Sequence[Match], private: bool) -> list[ChosenNumber]:
        """Return stored numbers in the order of the answer's groups, which are the groups of the stored release."""
        if not numbers:
            return []
        rows = self.stored.table.num_rows
        order = np.arange(rows) if private else np.argsort(self._groups()[0])
        read = ((m.name, m.end, self.stored.table.column(m.number.name).to_numpy()[order]) for m in numbers)
        return [ChosenNumber(name, end.ends(values) if end else values) for name, end, values in read]

    def _same_rows(self) -> bool:
        """Return whether caps keep the same rows for the question as they kept for the stored release.

        Caps choose among the rows that pass WHERE, regardless of FILTER, so moving a condition from one to the other changes
        the rows. Rows of a group are ranked by all values and conditions of its sums, so another set of sums keeps other rows.
        Rows, and the values that a unit contributes, are ranked by hashes that depend on the order of the keys.
        """
        drops_rows, terms = self.stored.bounds.drops_rows_by_group, self.priced.block.terms
        if (drops_rows or any(term.places for term in terms)) and self.retained != list(self.stored.keys):
            return False
        if not drops_rows or self.stored.conditions != self.source_conditions.keys():
            return not drops_rows
        return self.stored.bounds.max_rows_per_group is None or ranked_by(self.priced.block.terms) == {
            (term.measure, term.centre, term.grid, term.conditions)
            for term in self.stored.terms
            if term.kind != SELECTION and (term.measure not in NO_VALUE or term.conditions)
        }

    def _shown_as_early(self) -> bool:
        """Return whether the stored release shows private keys of groups as small as the question itself would show."""
        required, stored = selection_of(self.priced), self.stored.selection
        return bool(required and stored) and stored[0] == required[0] and stored[2] <= required[2]

    # --- terms of the block from stored terms -------------------------------------------------------------------------

    def _stored_key(self, expression: Expr) -> StoredKey:
        stored_key = self.keys.get(fingerprint(expression))
        if stored_key is None:
            raise Impossible
        return stored_key

    def _retained(self, expression: Expr) -> StoredKey | Expr:
        """Return the stored key equal to an expression; otherwise the expression rewritten as a function of stored keys."""
        if fingerprint(expression) in self.keys:
            return self._stored_key(expression)
        computed = self._replaced(expression, everywhere=True)
        if not names_read(computed):
            raise Impossible
        return computed

    def _parts(self, term: Term) -> list[Part]:
        """Return `term` as a weighted sum of stored terms: the same term, or one with another centre, moved by the count.

        sum of (x - a) = sum of (x - b) + (b - a) times the number of rows; either sum may include rows with x NULL, as 0.
        """
        condition = conjuncts(term.filter)
        self.conditions |= condition
        required = frozenset(self.source_conditions) | frozenset(condition)
        if term.kind is TermKind.COUNT:
            return self._counted(term, required)
        centre = Fraction(term.centre)
        candidates = [(t, self._chosen(t, required)) for t in self._measuring(measure_of(term))]
        candidates.sort(key=lambda pair: (pair[0].centre, pair[0].absent) != (centre, term.absent))
        for stored, chosen in candidates:
            if chosen is None or not self._usable(term.kind, chosen, required):
                continue
            parts: list[Part] = [(Fraction(1), stored, chosen)]
            if (stored.centre, stored.absent) == (centre, term.absent):
                return parts
            moves = {stored.absent: stored.centre}
            moves[term.absent] = moves.get(term.absent, Fraction(0)) - centre
            for absent, weight in moves.items():
                count = Term("", TermKind.COUNT, None if absent else _countable(term), None, 1)
                counted = self._counted(count, required) if weight else []
                parts += [(weight * part, source, cells) for part, source, cells in counted]
            return parts
        squares = sum_of_squares(self.stored.terms, term) or product_of_squares(self.stored.terms, term)
        return self._of_sets(([squares] if squares else []), term, required)

    def _counted(self, term: Term, required: frozenset[str]) -> list[Part]:
        """Return a count of rows: a stored count, or one computed from joint sums that share each row."""
        for counted in self._measuring(measure_of(term)):
            chosen = self._chosen(counted, required)
            if chosen is not None and self._usable(TermKind.COUNT, chosen, required):
                return [(Fraction(1), counted, chosen)]
        return self._of_sets(counts_of_sets(self.stored.terms, term), term, required)

    def _of_sets(self, sets: Iterable[Weighted], term: Term, required: frozenset[str]) -> list[Part]:
        """Return `term` as the first weighted sum, from `sets` or from stored pairs, whose rows can be selected. Rows in which
        its value is NULL add nothing to it, so `required` need not contain the condition that it is present (`implied`)."""
        implied = frozenset() if term.value is None or term.absent else conjuncts(presence(term.value)).keys()
        for weights in chain(sets, parts_of_pairs(self.stored.terms, term)):
            chosen = self._chosen(weights[0][1], required, frozenset(implied))
            if chosen is not None and self._usable(term.kind, chosen, required):
                return [(weight, stored, chosen) for weight, stored in weights]
        raise Impossible

    def _measuring(self, measure: str) -> list[StoredTerm]:
        return [term for term in self.stored.terms if term.measure == measure]

    def _chosen(self, term: StoredTerm, required: frozenset[str], implied: Iterable[str] = ()) -> frozenset[str] | None:
        """Return the required conditions that the stored term lacks; None if it has any that is neither required nor implied."""
        has = self.stored.conditions | term.conditions
        unsaid = has.difference(required, implied)
        present = (value for mark in required if unsaid for value in needed(self.conditions[mark]))
        unsaid -= {fingerprint(call("not", call("is_null", value))) for value in present}
        return None if unsaid else required - has

    def _usable(self, kind: TermKind, chosen: frozenset[str], required: frozenset[str]) -> bool:
        """Return whether the conditions `chosen` can select stored cells that contain every row satisfying all of `required`,
        at most one cell for each group if sums of this `kind` do not add up."""
        try:
            masks = [self._mask(mark) for mark in chosen]
        except Impossible:
            return False
        if not all(self._covered(key, required) for key in self.dropped):
            return False
        if kind.value in ADDITIVE:
            return True
        group, groups = self._groups()
        inside = np.logical_and.reduce([group >= 0, *masks])
        return bool(np.bincount(group[inside], minlength=groups).max(initial=0) <= 1)

    def _covered(self, key: StoredKey, required: frozenset[str]) -> bool:
        """Return whether the stored groups contain all rows that satisfy the conditions, whatever their value of `key`."""
        on_key = []
        for mark in required:
            with suppress(Impossible):
                condition = self._over_keys(mark)
                on_key += [condition] if names_read(condition) == {key.name} else []
        return covers(key, self._distinct(key.name), on_key)

    # --- cells --------------------------------------------------------------------------------------------------------

    def _over_keys(self, mark: str) -> Expr:
        """Return a condition in which stored keys replace their expressions."""
        return self._replaced(self.conditions[mark])

    def _replaced(self, expression: Expr, everywhere: bool = False) -> Expr:
        """Put stored keys in place of their expressions in conditions, `everywhere` in any function. Raises Impossible."""
        key = self.keys.get(fingerprint(expression))
        if key is not None and key.public:
            return Column(key.name, expression.facts)
        if isinstance(expression, Call) and (everywhere or expression.function in _TESTS):
            inside = tuple(self._replaced(part, everywhere) for part in expression.arguments)
            return replace(expression, arguments=inside)
        if isinstance(expression, Literal):
            return expression
        raise Impossible

    def _distinct(self, name: str) -> list[Any]:
        values: list[Any] = self.stored.table.column(name).unique().to_pylist()
        return values

    def _mask(self, mark: str) -> Mask:
        """Return a mask of the stored cells that satisfy a condition on keys."""
        if mark not in self.masks:
            condition = self._over_keys(mark)
            names = sorted(names_read(condition))
            codes, combinations = self._combinations(names)
            passed = [evaluate(condition, dict(zip(names, values, strict=True))) is True for values in combinations]
            self.masks[mark] = np.asarray(passed, dtype=bool)[codes]
        return self.masks[mark]

    def _combinations(self, names: Sequence[str]) -> tuple[npt.NDArray[np.int64], list[tuple[Any, ...]]]:
        """Return the index of each cell's combination of values, and the combinations."""
        whole = [self.stored.table.column(name).combine_chunks() for name in names]
        columns = [column.dictionary_encode(null_encoding="encode") for column in whole]
        sizes = [len(column.dictionary) for column in columns]
        if prod(sizes) > MOST_TESTED:
            raise Impossible
        codes = np.zeros(self.stored.table.num_rows, dtype=np.int64)
        combinations: list[tuple[Any, ...]] = [()]
        for column, size in zip(columns, sizes, strict=True):
            codes = codes * size + column.indices.to_numpy()
            combinations = [
                (*combination, value) for combination in combinations for value in column.dictionary.to_pylist()
            ]
        return codes, combinations

    def _groups(self) -> tuple[npt.NDArray[np.int64], int]:
        """Return the index of each stored cell's group in the answer (-1 if the answer has no such group), with keys in
        the order of the question, and the number of groups. Raises Impossible if a group of the answer is not stored."""
        codes, count = np.zeros(self.stored.table.num_rows, dtype=np.int64), 1
        outside = np.zeros(codes.size, dtype=bool)
        for key, stored in zip(self.priced.block.keys, self.retained, strict=True):
            values = key_array(key)
            column = self._column(stored, values.type)
            indexes = pc.index_in(column, value_set=values.cast(column.type), skip_nulls=False)
            outside |= indexes.is_null().to_numpy(zero_copy_only=False)
            codes = codes * len(values) + indexes.fill_null(0).to_numpy()
            count *= len(values)
        if self.priced.noise.listed is not None:
            codes, unlisted = among(self.priced.noise.listed, codes)
            outside |= unlisted
            count = len(self.priced.noise.listed)
        if len(np.unique(codes[~outside])) < count:
            raise Impossible
        return np.where(outside, -1, codes), count

    def _column(self, key: StoredKey | Expr, type_: pa.DataType) -> pa.Array:
        """Return the value of a key for each stored cell; computed keys have type `type_`."""
        if isinstance(key, StoredKey):
            return self.stored.table.column(key.name).combine_chunks()
        names = sorted(names_read(key))
        codes, combinations = self._combinations(names)
        computed = [evaluate(key, dict(zip(names, values, strict=True))) for values in combinations]
        try:
            return pa.array(computed, type_).take(pa.array(codes))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise Impossible from error

    def _same_groups(self) -> bool:
        """Return whether every stored cell is in a group of the answer: the rows that caps keep depend on all groups."""
        return bool((self._groups()[0] >= 0).all())

    # --- disjoint sums ------------------------------------------------------------------------------------------------

    def _private(self, parts_by_term: Mapping[str, list[Part]]) -> DisjointSums:
        """Return the sums for private keys, over the unchanged stored groups in the order of the question's keys."""
        table = self.stored.table
        if self.retained != list(self.stored.keys):
            retained = tuple(key for key in self.retained if isinstance(key, StoredKey))
            table = table.take(pc.sort_indices(table, sort_keys=[(key.name, "ascending") for key in retained]))
            self.stored = replace(self.stored, keys=retained, table=table)
        names = [key.name for key in self.priced.block.keys]
        sums = DisjointSums(self.priced, table.select([key.name for key in self.stored.keys]).rename_columns(names))
        everything = np.arange(table.num_rows)
        for term, cells, used in disjoint(parts_by_term, lambda _: np.ones(table.num_rows, dtype=bool)):
            sums.add(term, table.column(term.name).to_numpy(), everything[cells], used)
        return sums

    def _public(self, parts_by_term: Mapping[str, list[Part]]) -> DisjointSums:
        """Return the sums for public keys: disjoint sets of cells, summed within each group of the answer."""
        group, _ = self._groups()

        def cells_of(chosen: frozenset[str]) -> Mask:
            masks = [group >= 0, *(self._mask(mark) for mark in chosen)]
            return np.asarray(np.logical_and.reduce(masks), dtype=bool)

        sums = DisjointSums(self.priced, grid(self.priced))
        for term, cells, used in disjoint(parts_by_term, cells_of):
            values = self.stored.table.column(term.name).to_numpy()
            if is_shared(term.noise):
                sums.add_vector(term, values, np.where(cells, group, -1), used)
            else:
                sums.add(term, values[cells], group[cells], used)
        return sums

    def _words(self, chosen: bool, same: bool, numbers: Sequence[Match], counted: Sequence[CountedNumber]) -> str:
        how = [errors_in_words(counted)] if counted else []
        if not self.naming and (self.dropped or chosen):
            return "; ".join(["computed from its groups", *how])
        parts = how
        if self.dropped:
            parts.append("summed over " + ", ".join(key.text for key in self.dropped))
        if chosen:
            parts.append("some of its groups")
        which = "the same numbers" if same else "some of its numbers"
        return "; ".join(parts) or "; ".join([which, *([errors_in_words(numbers)] if numbers else [])])


def _countable(term: Term) -> Expr | None:
    """Return the argument of the count of a sum's rows, in the form that `TermBasis.count` uses; None for all rows."""
    return term.value if term.value is not None and can_be_missing(term.value) else None
