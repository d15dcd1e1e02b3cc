"""A query's budget is divided evenly over its measurements, each part buys noise within it, and delta goes where it is needed."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Block, BoundedBlock, Caps, Clip, Column, Key, Literal, Measure, Scan, Term, TermKind
from dpsql.policy import parse_policy
from dpsql.policy.types import UNBOUNDED
from dpsql.pricing.bounding import bounded
from dpsql.pricing.budget_parts import BudgetParts, mechanisms_of, noise_law, recomputed_loss, sets_of
from dpsql.pricing.local_sensitivity import LocalRequest
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import TargetSearch
from dpsql.pricing.sharing import NoiseLaw
from dpsql.privacy.accounting import Accountant, make_accountant
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.contract import Norm
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.local_sensitivity import SMOOTH
from dpsql.privacy.mechanisms.registry import MECHANISMS
from dpsql.privacy.mechanisms.square_root import SquareRoot

POLICY = parse_policy("""
dataset: d
source: duckdb:///d.duckdb
privacy_unit: {table: t, column: id}
budget: {epsilon: 10, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///d.db
tables:
  t: {max_rows: 7, columns: {id: {type: integer}, x: {type: integer}, k: {type: integer}}}
""")
PURE = make_accountant("pure", Fraction(10), Fraction(1, 10**6))
ZCDP = make_accountant("zcdp", Fraction(10), Fraction(1, 10**6))
EPSILON, DELTA = Fraction(1), Fraction(1, 10**9)
OPTIONS = Options(EPSILON, DELTA, "auto", Fraction(19, 20))
ADD, CHANGE = Neighbours.ADD_REMOVE, Neighbours.CHANGE_ONE
INTEGER = Facts(Type.INTEGER, Fraction(0), Fraction(9), nullable=False)
X, K = Column("x", INTEGER), Column("k", INTEGER)
HALF = Literal(Fraction(1, 2), literal_facts(Fraction(1, 2)))
PUBLIC, PRIVATE = Key("k0", K, (0, 1, 2)), Key("k0", K, None)


def options_for(mechanism: str, **changes: Fraction) -> Options:
    return replace(OPTIONS, mechanism=mechanism, **changes)


def block(words: str, *keys: Key, name: str = "b", squares: bool = False, local: bool = False) -> BoundedBlock:
    arguments = {"count": (), "count_units": (), "quantile_cont": (X, HALF)}
    measures = tuple(
        Measure(f"m{number}", word, arguments.get(word, (X,)), word in ("count_units", "count_distinct"), None)
        for number, word in enumerate(words.split())
    )
    request = LocalRequest(SMOOTH, None, Fraction(19, 20)) if local else None
    return bounded(
        Block(name, Scan("t", (X, K)), keys, measures),
        POLICY,
        UNBOUNDED,
        local=request,
        law=NoiseLaw(Norm.L1, 1.0) if squares else None,
    )


# --- number of parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "options", "accountant", "sharing"),
    [
        ((block("count"),), OPTIONS, PURE, 1),
        ((block("count sum count_distinct"),), OPTIONS, PURE, 1),
        ((block("sum", PRIVATE), block("count", PRIVATE, name="c")), OPTIONS, PURE, 2),
        ((block("count_distinct count_units"),), options_for("gaussian"), PURE, 2),
        ((block("count_distinct", PRIVATE),), options_for("gaussian"), PURE, 3),
        ((block("count_units", PRIVATE),), options_for("gaussian"), PURE, 2),
        ((block("count_distinct count_units"),), options_for("gaussian"), ZCDP, 1),
        ((block("quantile_cont", local=True), block("quantile_cont", name="c", local=True)), OPTIONS, PURE, 2),
    ],
)
def test_delta_is_divided_among_what_needs_some(
    blocks: tuple[BoundedBlock, ...], options: Options, accountant: Accountant, sharing: int
) -> None:
    assert BudgetParts(blocks, options, accountant).delta == DELTA / sharing


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("neighbours", "factor"), [(ADD, 1), (CHANGE, 2)])
@pytest.mark.parametrize(
    ("words", "keys", "l0", "l1"), [("count", (), 1, 7), ("sum", (PUBLIC,), 3, 63), ("count_units", (PUBLIC,), 3, 3)]
)
def test_noise_is_that_of_what_a_unit_adds(
    words: str, keys: tuple[Key, ...], l0: int, l1: int, neighbours: Neighbours, factor: int
) -> None:
    asked_for = block(words, *keys)
    divided = BudgetParts((asked_for, block("count", name="c")), OPTIONS, PURE)
    (term,) = asked_for.terms
    same, noise = divided.measured(term, asked_for, neighbours)
    assert same == term and isinstance(noise, Laplace)
    assert (noise.sensitivity.l0, noise.sensitivity.l1) == (l0 * factor, l1 * factor)
    charged, again = divided.charged(noise).epsilon, recomputed_loss(noise).epsilon
    assert charged is not None and again is not None
    assert Fraction(99, 200) < charged <= Fraction(1, 2) and again <= Fraction(1, 2)


def test_sets_of_several_parts_divide_the_budget_by_their_weights() -> None:
    """Two parts and a half for the set of COUNT and SUM, one for the other term: what they cost adds up to the budget."""
    asked_for = replace(block("count sum count_distinct", PUBLIC, squares=True), set_parts=(("t0", Fraction(5, 2)),))
    divided = BudgetParts((asked_for,), OPTIONS, PURE)
    assert divided.parts == Fraction(7, 2)
    costs = []
    for term, share in zip(asked_for.terms[1:], (Fraction(5, 7), Fraction(2, 7)), strict=True):
        epsilon = divided.charged(divided.measured(term, asked_for, ADD)[1]).epsilon
        assert epsilon is not None and share * EPSILON * Fraction(99, 100) < epsilon <= share * EPSILON
        costs.append(epsilon)
    assert sum(costs) <= EPSILON


CLIPPED = Term("t0", TermKind.COUNT, None, None, 1, clip=Clip(3))
MANY = replace(block("count", PUBLIC), terms=(CLIPPED,), caps=Caps(7, 3))


@pytest.mark.parametrize(("mechanism", "norm"), [("laplace", Norm.L1), ("gaussian", Norm.L2)])
@pytest.mark.parametrize("neighbours", [ADD, CHANGE])
def test_a_clip_is_in_the_norm_of_the_noise_and_left_out_where_it_never_binds(
    mechanism: str, norm: Norm, neighbours: Neighbours
) -> None:
    divided = BudgetParts((MANY,), options_for(mechanism), ZCDP)
    for most in (1, 6, 7, 8):
        term, noise = divided.measured(replace(CLIPPED, clip=Clip(most)), MANY, neighbours)
        # All seven rows may be in one group, so both norms of a unit's contribution are 7.
        assert term.clip == (Clip(most, norm) if most < 7 else None)
        factor, moved = neighbours.factor, noise.sensitivity  # type: ignore[attr-defined]
        l1 = {Norm.L1: min(most, 7), Norm.L2: min(7, isqrt(3 * most * most))}[norm] if most < 7 else 7
        assert (moved.l1, moved.l2_squared) == (l1 * factor, (min(most, 7) * factor) ** 2)


@pytest.mark.parametrize(
    ("length", "mechanism", "is_series"), [(None, "auto", False), (1000, "auto", True), (1000, "laplace", False)]
)
def test_noise_for_running_totals_is_taken_where_they_err_less(
    length: int | None, mechanism: str, is_series: bool
) -> None:
    days = block("count_units", Key("k0", K, tuple(range(1000))))
    days = replace(days, caps=Caps(1, 1))
    lengths = {} if length is None else {"b": length}
    term = replace(days.terms[0], kind=TermKind.COUNT)
    noise = BudgetParts((days,), options_for(mechanism), ZCDP, lengths).measured(term, days, ADD)[1]
    assert isinstance(noise, SquareRoot) is is_series


# --- choice of mechanisms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "accountant", "words"),
    [
        ("auto", PURE, ("laplace",)),
        ("auto", ZCDP, ("laplace", "gaussian")),
        ("gaussian", PURE, ("gaussian",)),
        ("laplace", ZCDP, ("laplace",)),
        ("correlated_laplace", ZCDP, ("correlated_laplace",)),
        (SMOOTH, PURE, ("laplace",)),
    ],
)
def test_mechanisms_are_the_one_asked_for_or_those_that_need_no_delta(
    mechanism: str, accountant: Accountant, words: tuple[str, ...]
) -> None:
    chosen = mechanisms_of(options_for(mechanism), accountant)
    assert tuple(entry.word for entry in chosen) == words


@pytest.mark.parametrize("correlation", [Fraction(0), Fraction(1, 2)])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "correlated_laplace"])
def test_a_correlation_changes_noise_that_can_be_correlated_and_no_other(mechanism: str, correlation: Fraction) -> None:
    (chosen,) = mechanisms_of(options_for(mechanism, correlation=correlation), ZCDP)
    changes = mechanism == "correlated_laplace" and correlation > 0
    assert (chosen != MECHANISMS[mechanism]) is changes and chosen.word == mechanism


@pytest.mark.parametrize(
    ("mechanism", "accountant", "shares"),
    [("auto", PURE, True), ("laplace", PURE, True), ("gaussian", PURE, False), ("auto", ZCDP, False), ("laplace", ZCDP, False)],
)  # fmt: skip
def test_squares_are_shared_under_laplace_noise_that_is_paid_in_epsilon(
    mechanism: str, accountant: Accountant, shares: bool
) -> None:
    assert noise_law(options_for(mechanism), accountant).shares_squares is shares


def test_a_set_is_charged_once_and_a_constant_never() -> None:
    terms = (
        Term("t0", TermKind.SUM, X, None, 1, shares="t0"),
        Term("t1", TermKind.SUM, X, None, 1, shares="t0"),
        Term("t2", TermKind.COUNT, None, None, 1),
        Term("t3", TermKind.SUM, X, None, 0),
    )
    assert sets_of(replace(MANY, terms=terms)) == {"t0", "t2"}


# --- The smallest epsilon within a target: the one that bisection alone would find, with few price computations -------


LEAST, MOST = Fraction(1, 1000), Fraction(10)


def searched(width: Callable[[float], float], target: Fraction, most: Fraction = MOST) -> tuple[Fraction, int]:
    """Return the epsilon, and the number of prices computed, where bars at an epsilon are `width` wide."""
    asked: list[Fraction] = []

    def priced(epsilon: Fraction) -> Fraction:
        asked.append(epsilon)
        return epsilon

    return TargetSearch(priced, lambda epsilon: width(float(epsilon)), target).cheapest(LEAST, most), len(asked)


def halved(width: Callable[[float], float], target: Fraction) -> Fraction:
    low, high = LEAST, MOST
    while high - low > high / 1000:
        epsilon = Fraction(round((low + high) / 2 * 10**9), 10**9)
        low, high = (low, epsilon) if width(float(epsilon)) <= target else (epsilon, high)
    return high


@pytest.mark.parametrize("target", [Fraction(1, 3), Fraction(2), Fraction(70), Fraction(700)])
@pytest.mark.parametrize("power", [1.0, 0.98, 1.02], ids=["proportional", "slower", "faster"])
def test_few_prices_find_what_halving_finds(target: Fraction, power: float) -> None:
    def width(epsilon: float) -> float:
        return 3 * epsilon**-power

    epsilon, prices = searched(width, target)
    assert epsilon == halved(width, target) and width(float(epsilon)) <= target
    assert prices <= 12


@pytest.mark.parametrize("width", [lambda e: math.ceil(9 / e), lambda e: 5 * e**-0.5, lambda e: 3 / e + 0.1])
def test_bars_of_any_shape_take_more_prices_and_the_same_epsilon(width: Callable[[float], float]) -> None:
    epsilon, prices = searched(width, Fraction(7))
    assert epsilon == halved(width, Fraction(7)) and prices <= 30


def test_the_least_is_enough_for_a_wide_target() -> None:
    assert searched(lambda epsilon: 1 / epsilon, Fraction(5000)) == (LEAST, 1)


def test_a_target_out_of_reach_is_refused() -> None:
    with pytest.raises(Refusal, match="epsilon above 10"):
        searched(lambda epsilon: 1 / epsilon, Fraction(1, 11))
    with pytest.raises(Refusal, match="epsilon above 10"):
        searched(lambda epsilon: math.inf, Fraction(1))


def test_noise_that_rounds_to_nothing_is_passed_over() -> None:
    epsilon, _ = searched(lambda e: math.inf if e > 3 else 2 / e, Fraction(4))
    assert float(epsilon) == pytest.approx(0.5, rel=1e-3)
