"""Disjoint sums of stored cells: no two of them share a cell, each term is their weighted sum, and its error follows from
theirs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import hypot
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

from dpsql.noise.perturb import ChosenNumber, NoisyTerm
from dpsql.plan.formulas import NoisyValue, Number
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import BoundedBlock, Caps, Column, Key, Scan, Term, TermKind
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import laplace, square_root
from dpsql.privacy.mechanisms.contract import KeyColumn, Noise, NoisePlan, Sensitivity
from dpsql.release.pooled import MOST_WEIGHTS, PooledTerm
from dpsql.reuse.disjoint_sums import MOST_SUMS, DisjointSums, Impossible, disjoint, grid
from dpsql.reuse.record import StoredTerm

ONE = Sensitivity(1, 1, 1, 1)
NOISE = laplace.noise_for(ONE, Fraction(1, 2))
SERIES = square_root.noise_for(ONE, Fraction(1, 8), 4)
MOST_WHOLE = (1 << 63) - 1024


def stored(name: str = "t", noise: Noise = NOISE, grid: int = 0, whole: bool = True) -> StoredTerm:
    return StoredTerm(name, "count", "", frozenset(), Fraction(0), noise, grid, whole)


def priced(*terms: str, keys: int = 1, listed: list[int] | None = None, measured: tuple[str, ...] = ()) -> PricedBlock:
    columns = [KeyColumn(f"k{number}", pa.array(["a", "b", "c"][: 3 - number])) for number in range(keys)]
    block_keys = tuple(Key(key.name, Column("c", Facts(Type.TEXT)), ("a",)) for key in columns)
    sums = tuple(Term(name, TermKind.COUNT, None, None, 1) for name in terms)
    formulas = tuple((f"m{number}", NoisyValue(name), Type.REAL) for number, name in enumerate((*terms, *measured)))
    block = BoundedBlock("dp_7", Scan("t", ()), block_keys, sums, formulas, None, Caps(1, 1))
    numbers = None if listed is None else np.array(listed)
    return PricedBlock(block, NoisePlan(tuple(columns), (), None, (), numbers), PrivacyLoss.nothing())


def under_construction(*terms: str, rows: int = 2, keys: int = 1, measured: tuple[str, ...] = ()) -> DisjointSums:
    return DisjointSums(priced(*terms, keys=keys, measured=measured), pa.table({"k0": list(range(rows))}))


ALL = [("n", Fraction(1))]


def test_the_grid_has_the_groups_of_public_keys_the_first_key_slowest() -> None:
    rows = [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"), ("c", "a"), ("c", "b")]
    assert grid(priced(keys=2)).to_pydict() == {"k0": [a for a, _ in rows], "k1": [b for _, b in rows]}
    assert grid(priced(keys=2, listed=[1, 4])).to_pylist() == [{"k0": "a", "k1": "b"}, {"k0": "c", "k1": "a"}]


# --- disjoint sets ----------------------------------------------------------------------------------------------------

CELLS: Mapping[frozenset[str], list[int]] = {
    frozenset(): [1, 1, 1, 1, 1, 1],
    frozenset({"p"}): [1, 1, 0, 0, 0, 1],
    frozenset({"q"}): [0, 1, 1, 0, 0, 1],
}
EVERY, P, Q = CELLS


def mask(chosen: frozenset[str]) -> np.ndarray:
    return np.array(CELLS[chosen], dtype=bool)


def test_cells_are_partitioned_and_each_term_is_the_sum_of_its_parts() -> None:
    first, second = stored("x"), stored("y")
    parts = {
        "n": [(Fraction(1), first, P), (Fraction(3), second, EVERY)],
        "m": [(Fraction(-2), first, Q), (Fraction(1, 2), first, P)],
    }
    totals = {(name, term.name): np.zeros(6) for name in parts for term in (first, second)}
    covered: dict[str, np.ndarray] = {"x": np.zeros(6), "y": np.zeros(6)}
    for term, cells, used in disjoint(parts, mask):
        covered[term.name] += cells
        for name, weight in used:
            totals[name, term.name] += float(weight) * cells
    assert max(covered["x"]) == 1 and covered["x"].tolist() == [1, 1, 1, 0, 0, 1]
    assert covered["y"].tolist() == [1] * 6
    for name, uses in parts.items():
        for term in (first, second):
            expected = sum((float(weight) * mask(chosen) for weight, use, chosen in uses if use is term), np.zeros(6))
            assert totals[name, term.name].tolist() == expected.tolist()


def test_sixteen_choices_of_cells_are_partitioned_and_more_are_not() -> None:
    def cell(chosen: frozenset[str]) -> np.ndarray:
        return np.arange(17) == int(next(iter(chosen)))

    parts = {f"n{number}": [(Fraction(1), stored(), frozenset({str(number)}))] for number in range(17)}
    with pytest.raises(Impossible):
        list(disjoint(parts, cell))
    del parts["n16"]
    partition = [(int(np.flatnonzero(cells)[0]), used) for _, cells, used in disjoint(parts, cell)]
    assert sorted(partition) == [(number, [(f"n{number}", Fraction(1))]) for number in range(16)]


# --- sums of independent cells ----------------------------------------------------------------------------------------


def test_cells_are_summed_by_group_with_the_law_of_so_many_cells() -> None:
    sums = under_construction("n")
    term = stored(grid=3, whole=False)
    sums.add(term, np.array([1.5, 2.0, 4.0, 8.0]), np.array([0, 1, 1, 0]), ALL)
    (total,) = sums.terms
    assert isinstance(total, NoisyTerm)
    assert (total.name, total.values.tolist(), total.noise_unit, total.grid, total.whole) == (
        *("a0", [9.5, 6.0], 2.0**-3, 3, False),
    )
    assert total.noise == NOISE.summed(2, False)


def test_groups_without_cells_are_zero_and_groups_of_different_sizes_are_not_summed() -> None:
    sums = under_construction("n", rows=3)
    sums.add(stored(), np.array([5, 6]), np.array([2, 0]), ALL)
    assert sums.terms[0].values.tolist() == [6, 0, 5]
    with pytest.raises(Impossible):
        sums.add(stored(), np.array([5, 6, 7]), np.array([2, 0, 0]), ALL)
    with pytest.raises(Impossible):
        sums.add(stored(), np.array([], dtype=int), np.array([], dtype=int), ALL)


def test_a_question_without_keys_has_one_row() -> None:
    sums = DisjointSums(priced("n", keys=0), pa.table({}))
    sums.add(stored(), np.array([5, 6]), np.array([0, 0]), ALL)
    assert sums.rows == 1 and sums.terms[0].values.tolist() == [11]


def test_noise_whose_sums_have_no_known_law_is_not_summed() -> None:
    with pytest.raises(Impossible):
        under_construction("n").add(stored(noise=SERIES), np.array([5, 6]), np.array([0, 1]), ALL)


def test_sixty_four_sums_are_made_and_no_more() -> None:
    sums = under_construction("n", rows=1)
    for _ in range(MOST_SUMS):
        sums.add(stored(), np.array([1]), np.array([0]), ALL)
    assert len(sums.terms) == 64 and sums.terms[-1].name == "a63"
    with pytest.raises(Impossible):
        sums.add(stored(), np.array([1]), np.array([0]), ALL)
    with pytest.raises(Impossible):
        sums.add_vector(stored(noise=SERIES), np.array([1]), np.array([0]), ALL)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**62, 2**62, 2**62], MOST_WHOLE),
        ([-(2**62), -(2**62), -(2**62)], -MOST_WHOLE),
        ([2**61 + 1, 2, -(2**61)], 3),
        ([2**61, 2**61, -5], 2**62 - 5),
    ],
)
def test_whole_sums_are_kept_within_64_bits_and_are_exact_where_they_fit(values: list[int], expected: int) -> None:
    sums = under_construction("n", rows=1)
    sums.add(stored(), np.array(values), np.array([0, 0, 0]), ALL)
    assert sums.terms[0].values.dtype == np.int64 and sums.terms[0].values.tolist() == [expected]


# --- sums of vectors --------------------------------------------------------------------------------------------------


def test_cells_of_a_vector_that_are_all_the_groups_keep_its_law() -> None:
    sums = under_construction("n", rows=4)
    sums.add_vector(stored(noise=SERIES, grid=2, whole=False), np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4), ALL)
    (total,) = sums.terms
    assert isinstance(total, NoisyTerm)
    assert (total.noise, total.noise_unit, total.values.tolist()) == (SERIES, 2.0 ** (SERIES.shift - 2), [1, 2, 3, 4])


def test_cells_of_a_vector_are_summed_in_groups_of_any_size_without_those_of_none() -> None:
    sums = under_construction("n")
    sums.add_vector(stored(noise=SERIES), np.array([1, 2, 4, 8]), np.array([0, -1, 1, 1]), ALL)
    (total,) = sums.terms
    assert isinstance(total, PooledTerm)
    assert (total.name, total.values.tolist(), total.group.tolist()) == ("a0", [1, 12], [0, -1, 1, 1])
    assert total.law == SERIES and sums.sums["n"] == [(Fraction(1), total)]


def test_a_vector_is_summed_once() -> None:
    """The noise of two sums over one vector is not independent."""
    sums = under_construction("n")
    sums.add_vector(stored(noise=SERIES), np.arange(4), np.array([0, 0, 1, 1]), ALL)
    with pytest.raises(Impossible):
        sums.add_vector(stored(noise=SERIES), np.arange(4), np.array([-1, -1, 0, 1]), ALL)
    sums.add_vector(stored("u", noise=SERIES), np.arange(4), np.array([-1, -1, 0, 1]), ALL)
    assert len(sums.terms) == 2


@pytest.mark.parametrize(("noise", "group"), [(NOISE, [0, 1, 1, 0]), (SERIES, [-1, -1, -1, -1])], ids=["law", "cells"])
def test_other_laws_and_no_cells_are_no_vector(noise: Noise, group: list[int]) -> None:
    with pytest.raises(Impossible):
        under_construction("n").add_vector(stored(noise=noise), np.arange(4), np.array(group), ALL)


def test_a_vector_with_too_many_weights_is_not_summed() -> None:
    cells = MOST_WEIGHTS // 2000 + 1
    long = square_root.noise_for(ONE, Fraction(1, 8), cells)
    with pytest.raises(Impossible):
        under_construction("n", rows=2000).add_vector(
            stored(noise=long), np.zeros(cells), np.zeros(cells, dtype=int), ALL
        )


# --- the derived block ------------------------------------------------------------------------------------------------


def test_a_term_is_the_weighted_sum_of_its_sums_and_chosen_numbers_keep_their_names() -> None:
    sums = under_construction("n", "m", measured=("q",))
    sums.add(stored(), np.array([1, 2]), np.array([0, 1]), [("n", Fraction(1)), ("m", Fraction(-1, 2))])
    sums.add(stored(), np.array([3, 4]), np.array([0, 1]), [("m", Fraction(3))])
    number = ChosenNumber("q", np.array([7, 8]))
    sums.numbers.append(number)
    block, errors = sums.released(0.9)
    first, second = NoisyValue("a0"), NoisyValue("a1")
    assert (block.name, block.rows, block.terms) == ("dp_7", 2, (*sums.terms, number))
    assert block.keys is sums.keys and block.groups is sums.priced.block.groups
    assert [(name, formula) for name, formula, _ in block.formulas] == [
        ("m0", first),
        ("m1", Number(-0.5) * first + Number(3.0) * second),
        ("m2", NoisyValue("q")),
    ]
    assert errors.keys() == {"n", "m"}


def test_the_error_of_a_term_is_that_of_its_sum_or_normal_for_several() -> None:
    sums = under_construction("n", "m", "k")
    sums.add(stored(), np.array([1, 2]), np.array([0, 1]), [("n", Fraction(-2)), ("m", Fraction(2))])
    sums.add(stored(), np.array([1, 2]), np.array([0, 1]), [("m", Fraction(-3)), ("k", Fraction(1))])
    _, errors = sums.released(0.9)
    single = sums.terms[0]
    deviation, half_width = single.standard_deviation(), single.half_width(0.9)
    assert errors["n"] == pytest.approx((2 * half_width, 2 * deviation))
    assert errors["k"] == pytest.approx((half_width, deviation))
    together = hypot(2 * deviation, 3 * deviation)
    assert errors["m"] == pytest.approx((NormalDist().inv_cdf(0.95) * together, together))


def test_a_term_without_any_sum_is_not_released() -> None:
    sums = under_construction("n", "m")
    sums.add(stored(), np.array([1, 2]), np.array([0, 1]), ALL)
    with pytest.raises(Impossible):
        sums.released(0.9)
