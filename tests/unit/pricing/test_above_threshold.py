"""Sums compared with a threshold: which ones, in which direction a unit moves them, and what the law of a run permits and
costs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest

from dpsql.errors.exceptions import Error
from dpsql.plan.formulas import NoisyValue
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Block, Column, Distinct, Key, Literal, Measure, Relation, Scan
from dpsql.policy import Policy, parse_policy
from dpsql.policy.bounds import UNBOUNDED
from dpsql.pricing.above_threshold import ComparedSum, comparable, compared_sum, require_units, run_law
from dpsql.pricing.bounding import bounded
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import PricedBlock, price
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.accounting.registry import make_accountant
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.contract import Sensitivity, TermNoise
from dpsql.privacy.mechanisms.laplace import noise_for

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
ROWS = replace(POLICY, privacy_unit=None)
REPLACED = replace(POLICY, neighbours=Neighbours.CHANGE_ONE)
PURE = make_accountant("pure", Fraction(10), Fraction(1, 10**6))
ZCDP = make_accountant("zcdp", Fraction(10), Fraction(1, 10**6))
HALF = Literal(Fraction(1, 2), literal_facts(Fraction(1, 2)))


def integers(lower: int = 0, upper: int = 9) -> Column:
    return Column("x", Facts(Type.INTEGER, Fraction(lower), Fraction(upper), nullable=False))


def priced(
    *words: str, value: Column | None = None, policy: Policy = POLICY, source: Relation | None = None,
    keys: tuple[Key, ...] = (), mechanism: str = "laplace", accountant: Accountant = PURE,
) -> PricedBlock:  # fmt: skip
    value = value or integers()
    arguments = {"count": (), "count_units": (), "quantile_cont": (value, HALF)}
    measures = tuple(
        Measure(f"m{number}", word, arguments.get(word, (value,)), word in ("count_units", "count_distinct"), None)
        for number, word in enumerate(words)
    )
    block = bounded(Block("b", source or Scan("t", (value,)), keys, measures), policy, UNBOUNDED)
    options = Options(Fraction(1), Fraction(1, 10**9), mechanism, Fraction(19, 20))
    return price((block,), options, policy, accountant).blocks[0]


def compared(l1: int = 1, grid: int = 0, direction: int = 1) -> ComparedSum:
    moved = Sensitivity(1, l1, l1 * l1, l1)
    return ComparedSum(TermNoise("t0", noise_for(moved, Fraction(1)), grid, True), moved, direction)


# --- which sums, and in which direction -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "value", "direction", "l1"),
    [
        (("count",), integers(), 1, 7),
        (("count_units",), integers(), 1, 1),
        (("count_distinct",), integers(-9, 9), 1, 7),
        (("sum",), integers(0, 9), 1, 63),
        (("sum",), integers(2, 9), 1, 63),
        (("sum",), integers(-9, 0), -1, 63),
        (("sum",), integers(-9, -2), -1, 63),
        (("sum",), integers(-9, 1), 0, 63),
        (("sum",), integers(-1, 9), 0, 63),
    ],
)
def test_an_added_unit_moves_a_sum_in_the_direction_of_its_values(
    words: tuple[str, ...], value: Column, direction: int, l1: int
) -> None:
    measured = compared_sum(priced(*words, value=value), POLICY)
    assert (measured.direction, measured.sensitivity.l1, measured.term.name) == (direction, l1, "t0")


@pytest.mark.parametrize(
    ("policy", "source", "direction"),
    [(POLICY, None, 1), (ROWS, None, 1), (REPLACED, None, 0), (POLICY, Distinct(Scan("t", (integers(),))), 0)],
)
def test_replaced_units_and_rows_of_nobody_may_move_a_count_both_ways(
    policy: Policy, source: Relation | None, direction: int
) -> None:
    assert compared_sum(priced("count", policy=policy, source=source), policy).direction == direction


KEY = Key("k0", integers(), (0, 1))


@pytest.mark.parametrize(
    "block",
    [
        priced("count", keys=(KEY,)),
        priced("count", "sum"),
        priced("count", "count"),
        priced("avg"),
        priced("quantile_cont"),
        priced("count", "quantile_cont"),
        priced("count", mechanism="gaussian", accountant=ZCDP),
        priced("sum", value=integers(0, 0)),
    ],
)
def test_a_question_that_is_not_one_sum_with_laplace_noise_is_not_compared(block: PricedBlock) -> None:
    with pytest.raises(Error) as refused:
        compared_sum(block, POLICY)
    assert refused.value.slug == "watch_question"


def test_a_formula_beside_the_sum_itself_is_not_compared() -> None:
    plain = priced("count")
    ((name, _, type_),) = plain.block.formulas
    bare, twice = (
        replace(plain, block=replace(plain.block, formulas=((name, value, type_),)))
        for value in (NoisyValue("t0"), 2 * NoisyValue("t0"))
    )
    assert compared_sum(bare, POLICY) == compared_sum(plain, POLICY)
    with pytest.raises(Error, match="watch_question"):
        compared_sum(twice, POLICY)


# --- thresholds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", ["0", "1", "2.5", "-2.5", "1e-3", "-1e-3", "1000000"])
@pytest.mark.parametrize(("grid", "shift"), [(0, 0), (3, 0), (3, 5), (0, 2)])
def test_a_threshold_in_steps_is_the_least_whole_number_that_reaches_it(threshold: str, grid: int, shift: int) -> None:
    exact = Fraction(threshold)
    steps = compared(grid=grid).steps(exact, shift)
    step = Fraction(2) ** shift / 2**grid
    assert (steps - 1) * step < exact <= steps * step


@pytest.mark.parametrize(("grid", "l1", "factor"), [(0, 7, 1), (2, 7, 1), (0, 14, 2), (3, 10, 2)])
def test_a_threshold_is_at_least_what_so_many_units_add(grid: int, l1: int, factor: int) -> None:
    policy = REPLACED if factor == 2 else POLICY
    needed = Fraction(20 * l1, factor * 2**grid)
    require_units(compared(l1, grid), needed, 20, policy)
    with pytest.raises(Error) as refused:
        require_units(compared(l1, grid), needed - Fraction(1, 10**9), 20, policy)
    assert refused.value.slug == "watch_units" and f"{ceil(needed):,}" in refused.value.text()


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", [PURE, ZCDP], ids=["pure", "zcdp"])
@pytest.mark.parametrize(
    ("directions", "monotone"),
    [((1,), True), ((-1, -1), True), ((1, 1, 1), True), ((0,), False), ((1, -1), False), ((1, 0), False), ((0, 0), False)],
)  # fmt: skip
def test_a_run_is_monotone_where_all_sums_move_in_one_direction(
    directions: tuple[int, ...], monotone: bool, accountant: Accountant
) -> None:
    law = run_law([compared(direction=direction) for direction in directions], accountant, Fraction(1))
    assert law.monotone is monotone


@pytest.mark.parametrize("accountant", [PURE, ZCDP], ids=["pure", "zcdp"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("direction", [0, 1])
def test_a_run_costs_what_a_question_may_and_hardly_less(
    accountant: Accountant, epsilon: Fraction, direction: int
) -> None:
    law = run_law([compared(3, direction=direction), compared(5, direction=direction)], accountant, epsilon)
    assert law.noise.sensitivity.l1 == 5
    allowed = accountant.request(epsilon)
    charged = accountant.charge(law.loss, Fraction(0))
    if accountant is PURE:
        assert charged.epsilon is not None and epsilon * Fraction(99, 100) < charged.epsilon <= epsilon
    else:
        assert charged.rho is not None and allowed.rho is not None
        assert allowed.rho * Fraction(98, 100) < charged.rho <= allowed.rho


def test_sums_on_different_grids_are_not_compared_in_one_run() -> None:
    with pytest.raises(Error) as refused:
        run_law([compared(grid=0), compared(grid=1)], PURE, Fraction(1))
    assert refused.value.slug == "watch_grids"
    assert run_law([compared(grid=1), compared(grid=1)], PURE, Fraction(1)).monotone


@pytest.mark.parametrize(
    ("directions", "sum_", "fits"),
    [
        ((1,), compared(5), True),
        ((1,), compared(4), True),
        ((1,), compared(6), False),
        ((1,), compared(5, grid=1), False),
        ((1,), compared(5, direction=-1), False),
        ((1,), compared(5, direction=0), False),
        ((1, -1), compared(5, direction=-1), True),
        ((1, -1), compared(5, direction=0), True),
        ((1, -1), compared(6), False),
        ((1, -1), compared(5, grid=1), False),
    ],
)
def test_a_run_goes_on_with_sums_of_its_grid_size_and_direction(
    directions: tuple[int, ...], sum_: ComparedSum, fits: bool
) -> None:
    law = run_law([compared(5, direction=direction) for direction in directions], PURE, Fraction(1))
    assert comparable(sum_, law, 0, 1) is fits
