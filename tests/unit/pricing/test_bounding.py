"""A block's basis uses the tightest contribution bounds, enforces those that change something, and shares rows where that pays
off."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsql.errors.exceptions import Error
from dpsql.functions.numeric import call
from dpsql.plan.combinations import combinations
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import (
    Block,
    BoundedBlock,
    Column,
    Distinct,
    Expr,
    Filter,
    Key,
    Literal,
    Measure,
    Relation,
    Scan,
    TermKind,
    UnitAggregate,
)
from dpsql.policy import ContributionBounds, Policy, parse_policy
from dpsql.policy.bounds import UNBOUNDED
from dpsql.pricing.bounding import SELECTION, bounded
from dpsql.pricing.local_sensitivity import LocalRequest
from dpsql.pricing.sharing import NoiseLaw
from dpsql.privacy.mechanisms.contract import Norm
from dpsql.privacy.mechanisms.local_sensitivity import SMOOTH

TEXT = """
dataset: d
source: duckdb:///d.duckdb
privacy_unit: {table: t, column: id}
budget: {epsilon: 10, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///d.db
tables:
  t: {max_rows: 7, columns: {id: {type: integer}, x: {type: integer}, y: {type: integer}, k: {type: integer}}}
"""
ENTITY = parse_policy(TEXT)
ROWS = replace(ENTITY, privacy_unit=None)
INTEGER = Facts(Type.INTEGER, Fraction(0), Fraction(9), nullable=False)
X, Y, K = (Column(name, INTEGER) for name in "xyk")
T = Scan("t", (X, Y, K))
BY_RESULT = UnitAggregate(T, (("k", K),), (("x", "sum", X, None, INTEGER),))
TRUE = Literal(True, literal_facts(True))


def key(count: int | None = None, name: str = "k0", expression: Expr = K) -> Key:
    """Return a key with this many public values, or a private key for None."""
    return Key(name, expression, None if count is None else tuple(range(count)))


def measures(*words: str, value: Expr = X) -> tuple[Measure, ...]:
    arguments = {"count": (), "count_units": ()}
    half = Literal(Fraction(1, 2), literal_facts(Fraction(1, 2)))
    arguments["quantile_cont"] = (value, half)
    return tuple(
        Measure(f"m{number}", word, arguments.get(word, (value,)), "distinct" in word or word == "count_units", None)
        for number, word in enumerate(words)
    )


def block(*keys: Key, source: Relation = T, words: str = "count_units") -> Block:
    return Block("b", source, keys, measures(*words.split()))


def limits(**bounds: int | Fraction) -> ContributionBounds:
    return replace(UNBOUNDED, **bounds)


def described(basis: BoundedBlock) -> list[tuple[TermKind, str]]:
    return [(term.kind, term.shares) for term in basis.terms]


# --- caps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "groups"),
    [
        ((), 1),
        ((key(3),), 3),
        ((key(7),), 7),
        ((key(8),), 7),
        ((key(0),), 1),
        ((key(2), key(3, "k1")), 6),
        ((key(3), key(3, "k1")), 7),
        ((key(),), 7),
        ((key(2), key(None, "k1")), 7),
    ],
)
def test_a_unit_touches_no_more_groups_than_rows_and_listed_groups(keys: tuple[Key, ...], groups: int) -> None:
    caps = bounded(block(*keys), ENTITY, UNBOUNDED).caps
    assert (caps.rows_per_unit, caps.groups) == (7, groups)
    assert caps.bounds == UNBOUNDED and caps.rows_in_group is None


def test_combinations_of_keys_are_the_groups_that_there_are() -> None:
    listed = combinations(np.array([0, 4]), True)
    basis = bounded(replace(block(key(3), key(3, "k1")), combinations=listed), ENTITY, UNBOUNDED)
    assert basis.caps.groups == 2 and basis.combinations is listed


@pytest.mark.parametrize(
    ("keys", "most", "groups", "enforced"),
    [
        ((key(3),), 2, 2, 2),
        ((key(3),), 3, 3, None),
        ((key(3),), 4, 3, None),
        ((key(),), 6, 6, 6),
        ((key(),), 7, 7, None),
    ],
)
def test_a_bound_on_groups_is_enforced_where_it_binds(
    keys: tuple[Key, ...], most: int, groups: int, enforced: int | None
) -> None:
    caps = bounded(block(*keys), ENTITY, limits(max_groups=most)).caps
    assert (caps.groups, caps.bounds) == (groups, ContributionBounds(max_groups=enforced))


@pytest.mark.parametrize(("most", "enforced"), [(1, 1), (6, 6), (7, None), (8, None)])
def test_a_bound_on_rows_in_a_group_is_enforced_where_it_binds(most: int, enforced: int | None) -> None:
    caps = bounded(block(key(3)), ENTITY, limits(max_rows_per_group=most)).caps
    assert caps.bounds == ContributionBounds(max_rows_per_group=enforced) and caps.groups == 3


def test_results_of_units_have_one_row_in_each_group_without_enforcement() -> None:
    basis = bounded(block(key(3), source=BY_RESULT), ENTITY, limits(max_rows_per_group=1))
    assert basis.caps.rows_in_group == 1 and basis.caps.bounds == UNBOUNDED
    assert bounded(block(source=BY_RESULT), ENTITY, UNBOUNDED).caps.rows_in_group is None


@pytest.mark.parametrize(("of_table", "of_question", "most"), [(2, 5, 2), (5, 2, 2), (2, None, 2), (None, 2, 2)])
def test_the_tightest_bound_of_question_and_table_counts(
    of_table: int | None, of_question: int | None, most: int
) -> None:
    table = replace(ENTITY.tables["t"], bounds=ContributionBounds(7, max_groups=of_table))
    policy = replace(ENTITY, tables={"t": table})
    assert bounded(block(key()), policy, ContributionBounds(max_groups=of_question)).caps.groups == most


TIGHT = limits(max_groups=1, max_rows_per_group=1, max_total=Fraction(2), max_count=1, max_values=1)


@pytest.mark.parametrize(("policy", "source", "rows"), [(ROWS, T, 1), (ENTITY, Distinct(T), 7)])
def test_rows_of_nobody_are_neither_dropped_nor_clipped(policy: Policy, source: Relation, rows: int) -> None:
    asked_for = block(key(9), source=source, words="count sum count_distinct")
    basis = bounded(asked_for, policy, TIGHT)
    assert (basis.caps.rows_per_unit, basis.caps.groups, basis.caps.bounds) == (rows, rows, UNBOUNDED)
    assert all(term.clip is None and term.places is None for term in basis.terms)


def test_rows_of_units_are_clipped() -> None:
    count, total, distinct = bounded(
        block(words="count sum count_distinct"), ENTITY, limits(max_total=Fraction(9), max_count=3, max_values=2)
    ).terms
    assert count.clip is not None and Fraction(count.clip.most, 2**count.grid) == 3
    assert total.clip is not None and Fraction(total.clip.most, 2**total.grid) == 9
    assert isinstance(distinct.places, Literal) and distinct.places.value == 2


# --- private keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "source", "policy", "selection"),
    [
        ("count_units", T, ENTITY, "t0"),
        ("sum count_units", T, ENTITY, "t1"),
        ("count", T, ENTITY, SELECTION),
        ("sum", T, ENTITY, SELECTION),
        ("count", T, ROWS, "t0"),
        ("count_units", T, ROWS, "t0"),
        ("sum", T, ROWS, SELECTION),
        ("count", Distinct(T), ENTITY, "t0"),
    ],
)
def test_a_count_of_units_that_is_measured_admits_private_keys(
    words: str, source: Relation, policy: Policy, selection: str
) -> None:
    asked_for = block(key(), source=source, words=words)
    assert bounded(asked_for, policy, UNBOUNDED).selection_term == selection
    assert bounded(replace(asked_for, keys=(key(3),)), policy, UNBOUNDED).selection_term is None


# --- shared rows ------------------------------------------------------------------------------------------------------

SUM, COUNT = TermKind.SUM, TermKind.COUNT


@pytest.mark.parametrize(
    ("words", "keys", "policy", "terms"),
    [
        ("avg", (), ENTITY, [(SUM, "t0")] * 2),
        ("avg count", (), ENTITY, [(SUM, "t0")] * 2),
        ("sum", (), ENTITY, [(SUM, "")]),
        ("count", (), ENTITY, [(COUNT, "")]),
        ("sum count", (key(),), ENTITY, [(SUM, "t0")] * 2),
        ("sum count", (key(3),), ENTITY, [(SUM, "t0")] * 2),
        ("sum count", (key(),), ROWS, [(SUM, ""), (COUNT, "")]),
        ("sum count", (key(3),), ROWS, [(SUM, "t0")] * 2),
        ("avg quantile_cont", (), ENTITY, [(SUM, "t0")] * 2),
    ],
)  # fmt: skip
def test_rows_are_shared_where_that_makes_numbers_more_exact(
    words: str, keys: tuple[Key, ...], policy: Policy, terms: list[tuple[TermKind, str]]
) -> None:
    basis = bounded(block(*keys, words=words), policy, UNBOUNDED)
    assert sorted(described(basis)) == sorted(terms)


def test_where_a_unit_has_one_row_counting_rows_is_counting_units() -> None:
    policy = replace(ENTITY, tables={"t": replace(ENTITY.tables["t"], bounds=ContributionBounds(1))})
    for words in ("count", "count_units"):
        basis = bounded(block(key(), words=words), policy, UNBOUNDED)
        assert (basis.selection_term, described(basis)) == ("t0", [(COUNT, "")])
    assert [term.kind for term in bounded(block(), ENTITY, UNBOUNDED).terms] == [TermKind.UNITS]


def test_variances_share_no_rows_unless_they_are_said_to() -> None:
    assert described(bounded(block(words="var_pop"), ENTITY, UNBOUNDED)) == [(SUM, ""), (COUNT, ""), (SUM, "")]


@pytest.mark.parametrize(("squares", "kinds"), [(True, {TermKind.SQUARE_PART}), (False, {SUM, COUNT})])
def test_variances_share_rows_where_squares_may(squares: bool, kinds: set[TermKind]) -> None:
    basis = bounded(block(words="var_pop"), ENTITY, UNBOUNDED, law=NoiseLaw(Norm.L1, 1.0) if squares else NoiseLaw())
    assert {term.kind for term in basis.terms} == kinds
    assert {term.shares for term in basis.terms} == ({"t0"} if squares else {""})


def test_squares_change_nothing_where_no_measure_reads_them() -> None:
    without, with_squares = (
        bounded(block(words="avg"), ENTITY, UNBOUNDED, law=NoiseLaw(Norm.L1, 1.0) if squares else NoiseLaw())
        for squares in (False, True)
    )
    assert without == with_squares


# --- facts of groups, and measurements other than sums ---------------------------------------------------------------


@pytest.mark.parametrize(("keys", "complete"), [((), True), ((key(2),), True), ((key(2), key(None, "k1")), False)])
def test_groups_are_complete_where_all_keys_are_public(keys: tuple[Key, ...], complete: bool) -> None:
    assert bounded(block(*keys), ENTITY, UNBOUNDED).groups.complete is complete


def test_measures_are_sorted_into_counts_sums_and_chosen_ones() -> None:
    groups = bounded(block(words="count sum avg count_distinct quantile_cont"), ENTITY, UNBOUNDED).groups
    assert (groups.counts, groups.sums, groups.chosen) == ({"m0", "m3"}, {"m1"}, {"m4"})
    assert groups.ends == ()


def test_a_quantile_has_the_bar_that_is_asked_for() -> None:
    ((name, low, high, confidence),) = bounded(
        block(words="count quantile_cont"), ENTITY, UNBOUNDED, bars=Fraction(9, 10)
    ).groups.ends
    assert (name, confidence) == ("m1", Fraction(9, 10)) and low != high


def test_measures_under_local_sensitivity_are_reals_and_no_sums() -> None:
    basis = bounded(block(words="quantile_cont"), ENTITY, UNBOUNDED, local=LocalRequest(SMOOTH, None, Fraction(19, 20)))
    ((name, _, type_),) = basis.formulas
    assert (name, type_, basis.terms) == ("m0", Type.REAL, ())
    assert [measurement.name for measurement in basis.measurements] == ["l0"]


def test_conditions_that_change_nothing_are_left_out() -> None:
    positive = call("ge", X, Literal(1, literal_facts(1)))
    source = Filter(T, call("and", TRUE, positive))
    assert bounded(block(source=source), ENTITY, UNBOUNDED).source == Filter(T, positive)


def test_bounds_of_a_unit_in_a_group_that_nothing_enforces_are_refused() -> None:
    ends = (Literal(0, literal_facts(0)), Literal(1, literal_facts(1)))
    plain, limited = measures("count", "sum")
    with pytest.raises(Error) as refused:
        bounded(Block("b", T, (), (plain, replace(limited, per_group=ends))), ENTITY, UNBOUNDED)
    assert refused.value.slug == "internal"
