"""Sharing follows the errors of what is shown: no number is worse than its own split of the budget, whatever stands beside it."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from dpsql.functions.numeric import call
from dpsql.plan.formulas import plugged_in, terms_of
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Block, BoundedBlock, Column, Expr, Literal, Measure, Scan
from dpsql.policy import parse_policy
from dpsql.policy.types import UNBOUNDED
from dpsql.pricing import bounding, sharing
from dpsql.pricing.budget_parts import noise_law
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import price
from dpsql.pricing.sharing import assumed_value
from dpsql.privacy.accounting import Accountant, make_accountant

POLICY = parse_policy("""
dataset: d
source: duckdb:///d.duckdb
privacy_unit: {table: t, column: id}
budget: {epsilon: 10, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///d.db
tables:
  t: {max_rows: 3, columns: {id: {type: integer}, x: {type: real}, y: {type: real}, z: {type: real}}}
""")
X = Column("x", Facts(Type.REAL, Fraction(0), Fraction(100)))
Z = Column("z", Facts(Type.REAL, Fraction(-500), Fraction(3000), nullable=False))
Y = Column("y", Facts(Type.REAL, Fraction(0), Fraction(3000)))
ZERO = Literal(0, literal_facts(0))
SUMS: tuple[tuple[str, Expr | None], ...] = (
    ("count", None), ("count", X), ("sum", X), ("avg", X), ("stddev_samp", X), ("sum", Z), ("avg", Z), ("var_pop", Z),
)  # fmt: skip
CHOICES = {"median": Fraction(1, 2), "min": Fraction(0), "max": Fraction(1)}
LAWS = {(word, mechanism): None for word in ("pure", "zcdp") for mechanism in ("auto", "laplace")}
Named = tuple[str, Expr | None]


def measured(named: tuple[Named, ...]) -> tuple[Measure, ...]:
    """Return measures with these words and arguments, named by their positions."""
    measures = []
    for number, (word, value) in enumerate(named):
        arguments: tuple[Expr, ...] = () if value is None else (value,)
        if word in CHOICES:
            arguments = (*arguments, Literal(CHOICES[word], literal_facts(CHOICES[word])))
        measures.append(Measure(f"m{number}", "quantile_disc" if word in CHOICES else word, arguments, False, None))
    return tuple(measures)


def settings(law: tuple[str, str]) -> tuple[Options, Accountant]:
    """Return the options with this mechanism, and the accountant."""
    accountant = make_accountant(law[0], Fraction(10), Fraction(1, 10**6))
    return Options(Fraction(1), Fraction(1, 10**9), law[1], Fraction(19, 20)), accountant


def bounded(named: tuple[Named, ...], law: tuple[str, str], alone: bool = False) -> BoundedBlock:
    """Return the block that these aggregates are measured by. `alone`: no sums are shared."""
    of_law, block = noise_law(*settings(law)), Block("b", Scan("t", (X, Y, Z)), (), measured(named))
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            patch.setattr(bounding, "_most_exact", bounding._most_exact.__wrapped__)  # nothing is kept of this choice
            patch.setattr(bounding, "most_exact", lambda basis, *_: (basis, ()))
        return bounding.bounded(block, POLICY, UNBOUNDED, law=of_law)


@cache
def errors(named: tuple[Named, ...], law: tuple[str, str], alone: bool = False) -> tuple[float, ...]:
    """Return the error of each measure, from its finished mechanism: to first order, or the inverse of what a choice may spend.

    `alone`: no sums are shared."""
    options, accountant = settings(law)
    block = bounded(named, law, alone)
    (priced,) = price((block,), options, POLICY, accountant).blocks
    spread = {term.name: term.noise.standard_deviation() * 2.0**-term.grid for term in priced.noise.terms}
    values = {term.name: 1e6 * assumed_value(term) for term in priced.block.terms}
    chosen = {name: law for plan in priced.noise.measurements for name, law in plan.laws}
    found = []
    for _, formula, _ in block.formulas:
        if terms_of(formula) <= values.keys():
            slopes = sharing._derivative(plugged_in(formula), values, {})[1]
            found.append(math.hypot(*(slope * spread[name] for name, slope in slopes.items())))
        else:
            (name,) = terms_of(formula)
            found.append(1 / float(chosen[name].loss.epsilon))
    return tuple(found)


def sets(choices: tuple[int, ...] = (0, 1, 3)) -> list[tuple[Named, ...]]:
    """Return sets of aggregates over one and two columns, each with some choices of values."""
    return [
        (*named, *((word, (X, Z)[number % 2]) for word in list(CHOICES)[:count]))
        for size in (1, 2, 3, 4)
        for number, named in enumerate(combinations(SUMS, size))
        for count in choices
    ]


FEW = pytest.param(slice(None, None, 61), id="few")
ALL = pytest.param(slice(None), id="all", marks=pytest.mark.slow)
EACH = [pytest.mark.parametrize("law", LAWS, ids="-".join), pytest.mark.parametrize("which", [FEW, ALL])]


def for_each(test: Any) -> Any:
    """Run a test under each law, with a few of all sets, and with all of them in the slow part."""
    return EACH[0](EACH[1](test))


@for_each
def test_no_number_is_worse_than_its_own_split_of_the_budget(law: tuple[str, str], which: slice) -> None:
    gains = []
    for named in sets()[which]:
        pairs = list(zip(errors(named, law), errors(named, law, True), strict=True))
        assert all(error <= alone * 1.001 for error, alone in pairs), (named, pairs)
        gains.append(sum(math.log(alone / error) for error, alone in pairs) / len(pairs))
    assert max(gains) > 0.1


@for_each
def test_an_alias_of_the_argument_of_a_choice_changes_nothing(law: tuple[str, str], which: slice) -> None:
    for named in sets((1,))[which]:
        *sums, (word, value) = named
        assert value is not None
        alias = (*sums, (word, call("add", value, ZERO)))
        assert errors(named, law) == pytest.approx(errors(alias, law), rel=1e-6), named
