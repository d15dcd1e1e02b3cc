"""Formulas of aggregates over sums with simulated noise: many groups of the same size at once, without an engine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.aggregates.contract import aggregate_of
from dpsql.functions.evaluate import evaluate
from dpsql.plan.formulas import Formula, estimated, plugged_in
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Measure, Term, TermKind
from dpsql.policy.types import UNBOUNDED
from dpsql.pricing.basis import TermBasis
from dpsql.pricing.joint_sums import factors_of
from dpsql.release.formulas import numbers

LOWER, UPPER = 0, 1000
Values = Mapping[str, list[float]]


def column(name: str) -> Column:
    return Column(name, Facts(Type.REAL, Fraction(LOWER), Fraction(UPPER), nullable=False))


@dataclass(frozen=True)
class World:
    """A formula and its terms. `widths`: how much one row changes each term; its noise is proportional to that."""

    formula: Formula
    terms: tuple[Term, ...]

    @property
    def widths(self) -> dict[str, float]:
        return {term.name: _most(term) for term in self.terms}

    def sums(self, rows: Values) -> dict[str, float]:
        """Return the exact terms of rows, given as a list of values per column."""
        return {term.name: sum(_entry(term, row) for row in _rows(rows)) for term in self.terms}

    def both(
        self, exact: Mapping[str, float], noise: Mapping[str, np.ndarray], deviations: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the plug-in value and the estimate under `noise` with these standard deviations."""
        released = {name: exact[name] + noise[name] for name in exact}
        return numbers(plugged_in(self.formula), released), numbers(estimated(self.formula, deviations), released)


def world(aggregate: str, shared: bool = False) -> World:
    """Return a world for one aggregate of y, or of y and x, within [0, 1000]. `shared`: terms share each row, like those of AVG
    and of pairs."""
    pair = aggregate.startswith(("co", "regr"))
    measure = Measure("m", aggregate, tuple(column(name) for name in ("y", "x")[: 1 + pair]), False, None)
    basis = TermBasis((measure,), False, 1, UNBOUNDED, shared, squares=shared and pair)
    formula = aggregate_of(aggregate).formula
    assert formula is not None
    return World(formula(basis, measure), tuple(basis.terms))


def noise_of(
    world: World, law: str, scale: float, groups: int, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Draw independent noise for each term, with scale `scale` times its width, and return it with its standard deviations."""
    random = np.random.default_rng(seed)
    draw = random.laplace if law == "laplace" else random.normal
    noise = {name: draw(0, scale * width, groups) for name, width in world.widths.items()}
    unit = np.sqrt(2) if law == "laplace" else 1.0
    return noise, {name: float(unit * scale * width) for name, width in world.widths.items()}


def _rows(rows: Values) -> list[dict[str, float]]:
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


def _entry(term: Term, row: dict[str, float]) -> float:
    """Return the contribution of one row to a term."""
    if term.kind is TermKind.COUNT:
        return 1.0
    assert term.value is not None
    if term.kind is TermKind.PRODUCT_PART:
        factors = zip((1, 2), factors_of(term), strict=True)
        return math.prod(_entry(f, row) if term.place & bit else _most(f) - _entry(f, row) for bit, f in factors)
    value = evaluate(term.value, row)
    return float(min(max(float(value), float(term.lower)), float(term.upper))) - float(term.centre)


def _most(term: Term) -> float:
    if term.kind is TermKind.COUNT:
        return 1.0
    if term.kind is TermKind.PRODUCT_PART:
        return math.prod(_most(factor) for factor in factors_of(term))
    return max(abs(float(term.lower) - float(term.centre)), abs(float(term.upper) - float(term.centre)))
