"""Aggregates to their basis of bounded integer sums, each measured once (privacy.md 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsql.contributions import rows_per_unit
from dpsql.functions import call
from dpsql.plan import Block, BoundedBlock, Caps, Expr, Literal, Measure, Term, TermKind
from dpsql.policy import Policy
from dpsql.ranges import Type, literal_facts

GRID_BITS = 52
"""Row values fill at most this many bits: |q| <= 2**52, so HUGEINT sums of fewer than 2**63 rows cannot overflow."""
MOST_GRID = 900
SELECTION = "sel"


def bounded(block: Block, policy: Policy, max_groups: int | None, max_rows_per_group: int | None) -> BoundedBlock:
    """The basis of a block under contribution bounds."""
    rows = rows_per_unit(block.source, policy)
    private_keys = any(key.values is None for key in block.keys)
    if policy.privacy_unit is None:
        max_groups = max_rows_per_group = None
    if not block.keys or (max_groups is not None and max_groups >= rows):
        max_groups = None
    if max_rows_per_group is not None and max_rows_per_group >= rows:
        max_rows_per_group = None
    basis = _Basis(block.measures)
    formulas = tuple((measure.name, *FORMULAS[measure.aggregate](basis, measure)) for measure in block.measures)
    selection = None
    if private_keys:
        kind = TermKind.COUNT if policy.privacy_unit is None else TermKind.UNITS
        wanted = Term("", kind, None, None, 1)
        same = next((term.name for term in basis.terms if replace(term, name="") == wanted), None)
        selection = same or SELECTION
    caps = Caps(rows, max_groups, max_rows_per_group)
    return BoundedBlock(block.name, block.source, block.keys, tuple(basis.terms), formulas, selection, caps)


class _Basis:
    """Basis terms found so far; asking for an equal term again gives the same name."""

    def __init__(self, measures: tuple[Measure, ...]) -> None:
        self.terms: list[Term] = []
        self.centred = {
            (m.arguments[0], m.filter) for m in measures if m.aggregate in ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
        }

    def _name(self, term: Term) -> str:
        for known in self.terms:
            if replace(known, name="") == term:
                return known.name
        name = f"t{len(self.terms)}"
        self.terms.append(replace(term, name=name))
        return name

    def count(self, value: Expr | None, condition: Expr | None) -> str:
        """Rows that pass `condition` and whose `value` is there."""
        if value is not None and not value.facts.nullable and value.facts.type is not Type.REAL:
            value = None
        return self._name(Term("", TermKind.COUNT, value, condition, 1))

    def units(self, condition: Expr | None) -> str:
        """Distinct privacy units among rows that pass `condition`."""
        return self._name(Term("", TermKind.UNITS, None, condition, 1))

    def distinct(self, value: Expr, condition: Expr | None) -> str:
        """Distinct values; one row moves their number by at most one."""
        return self._name(Term("", TermKind.DISTINCT, value, condition, 1))

    def sum(self, value: Expr, condition: Expr | None, centred: bool) -> tuple[str, float | int]:
        """Sum of clamp(value) - centre on the grid; returns the term and the centre."""
        term, centre = summed(value, condition, centred)
        return self._name(term), centre


def summed(value: Expr, condition: Expr | None, centred: bool) -> tuple[Term, float | int]:
    """The SUM term of a bounded value: integers as they are, reals on a power-of-two grid."""
    low, high = value.facts.lower, value.facts.upper
    if value.facts.type is not Type.INTEGER or max(abs(low), abs(high)) >= 2**GRID_BITS:
        return _real_sum(value, condition, centred)
    lower, upper = int(low), int(high)
    centre = (lower + upper) // 2 if centred else 0
    magnitude = max(abs(lower - centre), abs(upper - centre))
    return Term("", TermKind.SUM, value, condition, magnitude, 0, lower, upper, centre), centre


def _real_sum(value: Expr, condition: Expr | None, centred: bool) -> tuple[Term, float]:
    """The grid of a real: 2**-j with |clamp(x) - centre| * 2**j <= 2**52.

    The engine computes fl(fl(x - centre) * 2**j) and rounds to an integer. IEEE subtraction is monotone and scaling
    by a power of two is exact, so the two ends computed here in the same doubles bound every row.
    """
    lower, upper = float(value.facts.lower), float(value.facts.upper)
    centre = (lower + upper) / 2 if centred else 0.0
    most = max(abs(lower - centre), abs(upper - centre))
    grid = 0 if most == 0 else min(GRID_BITS - math.frexp(most)[1], MOST_GRID)
    magnitude = max(abs(grid_value(end, centre, grid)) for end in (lower, upper))
    return Term("", TermKind.SUM, value, condition, magnitude, grid, lower, upper, centre), centre


def grid_value(value: float, centre: float, grid: int) -> int:
    """The integer of one real on the grid, computed as the engines do: round half away from zero."""
    scaled = math.ldexp(value - centre, grid)
    return int(math.copysign(math.floor(abs(scaled) + 0.5), scaled)) if scaled else 0


# --- formulas: each aggregate as DuckDB SQL over noisy terms (free post-processing) -----------------------------------

Formula = Callable[[_Basis, Measure], tuple[str, Type]]
FORMULAS: dict[str, Formula] = {}


def _formula(*words: str) -> Callable[[Formula], Formula]:
    def enter(formula: Formula) -> Formula:
        for word in words:
            FORMULAS[word] = formula
        return formula

    return enter


def _whole(term: str) -> tuple[str, Type]:
    return f"CAST(round({term}) AS BIGINT)", Type.INTEGER


@_formula("count")
def _count(basis: _Basis, measure: Measure) -> tuple[str, Type]:
    return _whole(basis.count(measure.arguments[0] if measure.arguments else None, measure.filter))


@_formula("count_units")
def _units(basis: _Basis, measure: Measure) -> tuple[str, Type]:
    return _whole(basis.units(measure.filter))


@_formula("count_distinct")
def _distinct(basis: _Basis, measure: Measure) -> tuple[str, Type]:
    return _whole(basis.distinct(measure.arguments[0], measure.filter))


@_formula("sum")
def _sum(basis: _Basis, measure: Measure) -> tuple[str, Type]:
    """Where the centred sum and the count are measured anyway, the sum follows from them at no charge."""
    value = measure.arguments[0]
    centred = (value, measure.filter) in basis.centred
    term, centre = basis.sum(value, measure.filter, centred)
    formula = f"{term} + {number(centre)} * {basis.count(value, measure.filter)}" if centred else term
    if value.facts.type is Type.INTEGER and max(abs(value.facts.lower), abs(value.facts.upper)) < 2**31:
        return _whole(formula)
    return f"({formula})", Type.REAL


@_formula("avg")
def _avg(basis: _Basis, measure: Measure) -> tuple[str, Type]:
    value = measure.arguments[0]
    term, centre = basis.sum(value, measure.filter, True)
    count = basis.count(value, measure.filter)
    low, high = number(value.facts.lower), number(value.facts.upper)
    return f"least(greatest({number(centre)} + {term} / greatest({count}, 1), {low}), {high})", Type.REAL


def _variance(sample: bool, root: bool) -> Formula:
    """With d = x - centre and h = max |d|: n, sum d and sum (d^2 - h^2 / 2) are measured (the centring halves the
    sensitivity of the squares); Var = h^2 / 2 + S2 / n - (S1 / n)^2, kept in [0, (U - L)^2 / 4] (Popoviciu)."""

    def formula(basis: _Basis, measure: Measure) -> tuple[str, Type]:
        value = measure.arguments[0]
        low, high = value.facts.lower, value.facts.upper
        s1, centre = basis.sum(value, measure.filter, True)
        n = f"greatest({basis.count(value, measure.filter)}, {2 if sample else 1})"
        inside = call("clamp", value, constant(low, value), constant(high, value))
        distance = call("sub", inside, constant(centre, value))
        s2, middle = basis.sum(call("mul", distance, distance), measure.filter, True)
        most = Fraction(high - low) ** 2 / 4
        spread = f"({number(middle)} + {s2} / {n} - ({s1} / {n}) * ({s1} / {n}))"
        text = f"least(greatest({spread}, 0.0::DOUBLE), {number(most)})"
        if sample:
            text = f"({text} * {n} / ({n} - 1))"
        return (f"sqrt({text})" if root else text), Type.REAL

    return formula


for _word, _sample, _root in (
    ("var_pop", False, False), ("var_samp", True, False), ("stddev_pop", False, True), ("stddev_samp", True, True),
):  # fmt: skip
    FORMULAS[_word] = _variance(_sample, _root)


def constant(value: Fraction | float | int, like: Expr) -> Literal:
    """A literal of the type of `like`."""
    exact = int(value) if like.facts.type is Type.INTEGER else Fraction(value)
    return Literal(exact, literal_facts(exact))


def number(value: Fraction | float | int) -> str:
    """A double as DuckDB text that reads back to the same double."""
    text = repr(float(value))
    return f"{text}::DOUBLE" if "e" in text else f"{text}e0::DOUBLE"
