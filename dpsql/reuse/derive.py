"""A block's answer computed from a stored release: post-processing, so it costs nothing.

What is sound here (docs/reuse.md): counts and sums add up over disjoint groups of public keys. So a stored release
answers a block over the same relation that keeps some of its keys (a roll-up), admits only some of its groups (a
slice: conditions on its keys), or measures some of its terms; distinct counts only where no groups are added up. The
stored noise is independent from cell to cell, so the answer is made of *atoms*, sums of cells that no two of which
share, and the public remainder sees atoms: error bars come out right for everything computed from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from dpsql.functions.evaluate import evaluate
from dpsql.noise.group_layout import among
from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.plan import Call, Column, Expr, Literal, Term, TermKind
from dpsql.pricing.pricing import PricedBlock, key_array
from dpsql.pricing.sum_terms import summed
from dpsql.release.remainder import ReleasedBlock
from dpsql.reuse.disjoint_sums import Atoms, Impossible, Mask, Part, disjoint, grid
from dpsql.reuse.record import (
    ADDITIVE,
    SELECTION,
    Stored,
    StoredKey,
    StoredTerm,
    base_of,
    conjuncts,
    measure_of,
    selection_of,
)

MOST_TESTED = 100_000
"""A condition on two keys is looked at for each combination of their values, up to this many."""
_ROUNDING = 1e-9
_TESTS = frozenset((
    "eq", "ne", "lt", "le", "gt", "ge", "in", "not", "and", "or", "is_null", "is_true", "is_false", "not_distinct",
))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Derived:
    """An answer made from `stored`. `same`: the stored numbers themselves, all of them and no others.

    `errors`: for each term of the block its half width at the confidence asked for, in units of the answer (exact for
    an atom, by the normal law for a sum of several), and its standard deviation. `how`: what was done, in words.
    """

    block: ReleasedBlock
    stored: Stored
    same: bool
    errors: Mapping[str, tuple[float, float]]
    how: str


def derive(priced: PricedBlock, stored: Stored, confidence: float) -> Derived | None:
    """`one` answered from `stored`, a release over the same relation (`stored.base_of`), or None."""
    if priced.block.measurements:
        return None  # a number that was chosen from other rows, or among other cells, says nothing of these
    try:
        return _Derivation(priced, stored).answer(confidence)
    except Impossible:
        return None


def at_least_as_accurate(priced: PricedBlock, derived: Derived, confidence: float) -> bool:
    """Whether no term of the derived answer has more noise than `one` asks for, by half width and by deviation."""
    asked = fresh_errors(priced, confidence)
    return all(
        found <= wanted * (1 + _ROUNDING)
        for name, pair in derived.errors.items()
        for found, wanted in zip(pair, asked[name], strict=True)
    )


def fresh_errors(priced: PricedBlock, confidence: float) -> dict[str, tuple[float, float]]:
    """Half width and standard deviation of each term of `one` when it is measured anew, in units of the answer."""
    nothing = np.empty(0)
    terms = [NoisyTerm(t.name, nothing, 1.0, t.noise, t.grid, t.whole) for t in priced.noise.terms]
    return {term.name: (term.half_width(confidence), term.standard_deviation()) for term in terms}


class _Derivation:
    def __init__(self, priced: PricedBlock, stored: Stored) -> None:
        self.one = priced
        self.stored = stored
        self.keys = {key.expression: key for key in stored.keys}
        self.asked_conditions = base_of(priced.block.source)[1]
        self.conditions: dict[str, Expr] = dict(self.asked_conditions)
        self.masks: dict[str, Mask] = {}
        self.kept = [self._kept(key.expression) for key in priced.block.keys]
        self.dropped = [key for key in stored.keys if key not in self.kept]

    def answer(self, confidence: float) -> Derived:
        bounds = self.one.block.caps.bounds
        caps_matter = bounds.drops_rows_by_group or self.stored.bounds.drops_rows_by_group
        # What a unit is scaled by depends on all groups together, so clipped sums of other groups do not add up to it.
        caps_matter |= any(term.clip is not None for term in self.one.block.terms)
        wanted = {term.name: self._parts(term) for term in self.one.block.terms}
        chosen = any(part[2] for parts in wanted.values() for part in parts)
        private = any(not key.public for key in self.stored.keys)
        one_to_one = not chosen and not self.dropped and (private or self._same_groups())
        if (caps_matter or private) and not one_to_one:
            raise Impossible
        if self.stored.gaps and self.dropped:
            raise Impossible  # of some groups that are summed up only a part is there
        if caps_matter and bounds != self.stored.bounds:
            raise Impossible
        if not self._same_rows():
            raise Impossible
        if private and not (self._shown_as_early() and self.stored.conditions == self.asked_conditions.keys()):
            raise Impossible
        atoms = self._private(wanted) if private else self._atoms(wanted)
        block, errors = atoms.released(confidence)
        measured = [term for term in self.stored.terms if term.kind != SELECTION]
        plain = all(len(parts) == 1 and parts[0][0] == 1 for parts in wanted.values())
        same = one_to_one and plain and len(measured) == len(wanted) and not self.stored.numbers
        return Derived(block, self.stored, same, errors, self._words(chosen, same))

    def _same_rows(self) -> bool:
        """Whether caps keep the same rows for the question as they kept for the stored release.

        They choose among the rows that pass WHERE, whatever FILTER says, so a condition in the other place is another
        question. Rows of a group are ranked by all values and conditions of its sums, so another set of sums keeps others.
        """
        if not self.stored.bounds.drops_rows_by_group:
            return True
        if self.stored.conditions != self.asked_conditions.keys():
            return False
        return self.stored.bounds.max_rows_per_group is None or _ranked(self.one.block.terms) == {
            (term.measure, term.centre, term.grid, term.conditions)
            for term in self.stored.terms
            if term.kind != SELECTION and (term.measure not in _NO_VALUE or term.conditions)
        }

    def _shown_as_early(self) -> bool:
        """Whether the stored release shows private keys of as few units as the question would."""
        asked, stored = selection_of(self.one), self.stored.selection
        return bool(asked and stored) and stored[0] == asked[0] and stored[2] <= asked[2]

    # --- what is asked, in stored terms -------------------------------------------------------------------------------

    def _kept(self, expression: Expr) -> StoredKey:
        found = self.keys.get(fingerprint(expression))
        if found is None:
            raise Impossible
        return found

    def _parts(self, term: Term) -> list[Part]:
        """`term` as a sum of stored terms: itself, or a sum around another centre moved by the count.

        sum of (x - a) = sum of (x - b) + (b - a) times the number of rows, which of the two may count rows without x.
        """
        condition = conjuncts(term.filter)
        self.conditions |= condition
        asked = frozenset(self.asked_conditions) | frozenset(condition)
        if term.kind is TermKind.COUNT:
            return self._counted(term, asked)
        centre = Fraction(term.centre)
        candidates = [(t, self._chosen(t, asked)) for t in self._measuring(measure_of(term))]
        candidates.sort(key=lambda pair: (pair[0].centre, pair[0].absent) != (centre, term.absent))
        for stored, chosen in candidates:
            if chosen is None or not self._usable(term.kind, chosen):
                continue
            parts: list[Part] = [(Fraction(1), stored, chosen)]
            if (stored.centre, stored.absent) == (centre, term.absent):
                return parts
            moves = {stored.absent: stored.centre}
            moves[term.absent] = moves.get(term.absent, Fraction(0)) - centre
            for absent, weight in moves.items():
                count = Term("", TermKind.COUNT, None if absent else _countable(term), None, 1)
                counted = self._counted(count, asked) if weight else []
                parts += [(weight * part, of, cells) for part, of, cells in counted]
            return parts
        raise Impossible

    def _counted(self, term: Term, asked: frozenset[str]) -> list[Part]:
        """A count of rows: a stored one, or what the sums of a shared row say of it (`sharing.Shared`)."""
        for counted in self._measuring(measure_of(term)):
            chosen = self._chosen(counted, asked)
            if chosen is not None and self._usable(TermKind.COUNT, chosen):
                return [(Fraction(1), counted, chosen)]
        for name in dict.fromkeys(t.shares for t in self.stored.terms if t.shares):
            own = [t for t in self.stored.terms if t.shares == name]
            low, high = (t for t in own if t.kind == TermKind.SUM.value)
            chosen = self._chosen(low, asked)
            if chosen is None or not self._usable(TermKind.COUNT, chosen):
                continue
            weight = 1 / (high.centre - low.centre)
            pair: list[Part] = [(weight, low, chosen), (-weight, high, chosen)]
            missing: list[Part] = [(weight, t, chosen) for t in own if t.kind == TermKind.COUNT.value]
            if term.value is None and (low.everything or missing):
                return pair + missing
            if term.value is not None and not low.absent and low.measure == _measure_of_sum(term.value):
                return pair
        raise Impossible

    def _measuring(self, measure: str) -> list[StoredTerm]:
        return [term for term in self.stored.terms if term.measure == measure]

    def _chosen(self, term: StoredTerm, asked: frozenset[str]) -> frozenset[str] | None:
        """Conditions that are asked for and not in the stored term yet; None when it has one that is not asked for."""
        has = self.stored.conditions | term.conditions
        return asked - has if has <= asked else None

    def _usable(self, kind: TermKind, chosen: frozenset[str]) -> bool:
        """Whether cells can be chosen by these conditions, and every row asked for is in a cell."""
        try:
            masks = [self._mask(mark) for mark in chosen]
        except Impossible:
            return False
        if not all(self._covered(key, chosen) for key in self.dropped):
            return False
        if kind.value in ADDITIVE:
            return True
        group, groups = self._groups()
        inside = np.logical_and.reduce([group >= 0, *masks])
        return bool(np.bincount(group[inside], minlength=groups).max(initial=0) <= 1)

    def _covered(self, key: StoredKey, chosen: frozenset[str]) -> bool:
        """Whether the stored groups hold all rows that pass the conditions, whatever their value of `key`."""
        own = [condition for mark in chosen if self._only_key(condition := self._over_keys(mark)) == key.name]
        nulls = key.nulls or any(evaluate(condition, {key.name: None}) is not True for condition in own)
        return nulls and (key.complete or any(self._pins(condition, key) for condition in own))

    def _pins(self, condition: Expr, key: StoredKey) -> bool:
        """key = literal or key IN (literals), every literal one of the stored groups."""
        if not isinstance(condition, Call) or condition.function not in ("eq", "in"):
            return False
        sides = condition.arguments
        if condition.function == "eq" and isinstance(sides[1], Column):
            sides = sides[::-1]
        column, *literals = sides
        if not isinstance(column, Column) or not all(isinstance(literal, Literal) for literal in literals):
            return False
        values = self._distinct(key.name)
        tests = [replace(condition, function="eq", arguments=(column, literal)) for literal in literals]
        return all(any(evaluate(test, {key.name: value}) is True for value in values) for test in tests)

    # --- cells --------------------------------------------------------------------------------------------------------

    def _over_keys(self, mark: str) -> Expr:
        """A condition with the stored keys in place of their expressions."""
        return self._replaced(self.conditions[mark])

    def _replaced(self, expression: Expr) -> Expr:
        key = self.keys.get(fingerprint(expression))
        if key is not None and key.public:
            return Column(key.name, expression.facts)
        if isinstance(expression, Call) and expression.function in _TESTS:
            return replace(expression, arguments=tuple(self._replaced(part) for part in expression.arguments))
        if isinstance(expression, Literal):
            return expression
        raise Impossible

    def _only_key(self, condition: Expr) -> str | None:
        names = set(_names(condition))
        return names.pop() if len(names) == 1 else None

    def _distinct(self, name: str) -> list[Any]:
        values: list[Any] = self.stored.table.column(name).unique().to_pylist()
        return values

    def _mask(self, mark: str) -> Mask:
        """Which stored cells pass a condition on keys."""
        if mark not in self.masks:
            condition = self._over_keys(mark)
            names = sorted(set(_names(condition)))
            codes, combinations = self._combinations(names)
            passed = [evaluate(condition, dict(zip(names, values, strict=True))) is True for values in combinations]
            self.masks[mark] = np.asarray(passed, dtype=bool)[codes]
        return self.masks[mark]

    def _combinations(self, names: Sequence[str]) -> tuple[npt.NDArray[np.int64], list[tuple[Any, ...]]]:
        """For each cell the number of its combination of values, and the combinations."""
        whole = [self.stored.table.column(name).combine_chunks() for name in names]
        columns = [column.dictionary_encode(null_encoding="encode") for column in whole]
        sizes = [len(column.dictionary) for column in columns]
        if prod(sizes) > MOST_TESTED:
            raise Impossible
        codes = np.zeros(self.stored.table.num_rows, dtype=np.int64)
        combinations: list[tuple[Any, ...]] = [()]
        for column, size in zip(columns, sizes, strict=True):
            codes = codes * size + column.indices.to_numpy()
            combinations = [(*known, value) for known in combinations for value in column.dictionary.to_pylist()]
        return codes, combinations

    def _groups(self) -> tuple[npt.NDArray[np.int64], int]:
        """For each stored cell the number of its group in the answer, whose keys run in the order asked for; -1 where
        the answer has no such group. A group that is not stored cannot be answered."""
        codes, count = np.zeros(self.stored.table.num_rows, dtype=np.int64), 1
        outside = np.zeros(codes.size, dtype=bool)
        for key, stored in zip(self.one.block.keys, self.kept, strict=True):
            values = key_array(key)
            column = self.stored.table.column(stored.name).combine_chunks()
            places = pc.index_in(column, value_set=values.cast(column.type), skip_nulls=False)
            outside |= places.is_null().to_numpy(zero_copy_only=False)
            codes = codes * len(values) + places.fill_null(0).to_numpy()
            count *= len(values)
        if self.one.noise.listed is not None:
            codes, unlisted = among(self.one.noise.listed, codes)
            outside |= unlisted
            count = len(self.one.noise.listed)
        if len(np.unique(codes[~outside])) < count:
            raise Impossible
        return np.where(outside, -1, codes), count

    def _same_groups(self) -> bool:
        """Whether every stored cell is a group of the answer: what caps keep depends on all groups together."""
        return bool((self._groups()[0] >= 0).all())

    # --- atoms --------------------------------------------------------------------------------------------------------

    def _private(self, wanted: Mapping[str, list[Part]]) -> Atoms:
        """Private keys: the stored groups as they are."""
        if [key.name for key in self.kept] != [key.name for key in self.stored.keys]:
            raise Impossible
        table = self.stored.table
        names = [key.name for key in self.one.block.keys]
        atoms = Atoms(self.one, table.select([key.name for key in self.kept]).rename_columns(names))
        everything = np.arange(table.num_rows)
        for term, cells, used in disjoint(wanted, lambda _: np.ones(table.num_rows, dtype=bool)):
            atoms.add(term, table.column(term.name).to_numpy(), everything[cells], used)
        return atoms

    def _atoms(self, wanted: Mapping[str, list[Part]]) -> Atoms:
        """Public keys: disjoint sets of cells, summed within each group of the answer."""
        group, _ = self._groups()

        def cells_of(chosen: frozenset[str]) -> Mask:
            masks = [group >= 0, *(self._mask(mark) for mark in chosen)]
            return np.asarray(np.logical_and.reduce(masks), dtype=bool)

        atoms = Atoms(self.one, grid(self.one))
        for term, cells, used in disjoint(wanted, cells_of):
            values = self.stored.table.column(term.name).to_numpy()
            atoms.add(term, values[cells], group[cells], used)
        return atoms

    def _words(self, chosen: bool, same: bool) -> str:
        parts = []
        if self.dropped:
            parts.append("summed over " + ", ".join(key.text for key in self.dropped))
        if chosen:
            parts.append("some of its groups")
        return "; ".join(parts) or ("the same numbers" if same else "some of its numbers")


_NO_VALUE = frozenset(measure_of(Term("", kind, None, None, 1)) for kind in (TermKind.COUNT, TermKind.UNITS))
"""Measures that read no value of a row, so that without a condition nothing is ranked by them."""


def _ranked(terms: tuple[Term, ...]) -> set[tuple[str, Fraction, int, frozenset[str]]]:
    """What `max_rows_per_group` ranks the rows of a group by."""
    found = {(measure_of(t), Fraction(t.centre), t.grid, frozenset(conjuncts(t.filter))) for t in terms}
    return {one for one in found if one[0] not in _NO_VALUE or one[3]}


def _measure_of_sum(value: Expr) -> str | None:
    return measure_of(summed(value, None, False)[0]) if value.facts.bounded else None


def _countable(term: Term) -> Expr | None:
    """What counts the rows that a sum adds up: as `Basis.count` writes it."""
    value = term.value
    real = value is not None and value.facts.type.value == "real"
    return None if value is not None and not value.facts.nullable and not real else value


def _names(expression: Expr) -> Iterator[str]:
    if isinstance(expression, Column):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _names(argument)
