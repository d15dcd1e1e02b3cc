"""Noise by the square root of the matrix of running totals: its exact integers, its law, and the guarantee that its rho
bounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.noise_laws import ALPHA

from dpsql.errors.exceptions import Refusal
from dpsql.noise.group_layout import Groups
from dpsql.noise.noise_samplers import running_vectors
from dpsql.noise.perturb import Gate
from dpsql.noise.samplers import KernelRandomness
from dpsql.privacy.mechanisms.contract import Constant, Sensitivity
from dpsql.privacy.mechanisms.square_root import (
    BITS,
    MOST_LENGTH,
    MOST_WIDE,
    ONE,
    SquareRoot,
    factors,
    inverse_factors,
    noise_for,
    square_moved,
    unrolled,
    wide_bits,
)
from dpsql_audit.noise_laws import law_of

LONE = Sensitivity(1, 1, 1, 1)


def matrix(length: int) -> np.ndarray:
    """Return T in integers of unlimited size."""
    numbers = factors(length)
    return np.array(
        [[numbers[i - j] if i >= j else 0 for j in range(length)] for i in range(length)], dtype=object
    ).reshape(length, length)


def test_factors_are_those_of_the_square_root_and_never_rise() -> None:
    numbers = factors(MOST_LENGTH)
    for place in (0, 1, 2, 3, 100, MOST_LENGTH - 1):
        exact = Fraction(ONE * math.comb(2 * place, place), 4**place)
        assert abs(numbers[place] - exact) <= Fraction(1, 2) + Fraction(1, 10**9)
    assert all(numbers[place] >= numbers[place + 1] > 0 for place in range(MOST_LENGTH - 1))
    squared = np.array([[int(x) for x in row] for row in matrix(40)]) @ np.array(matrix(40).tolist())
    assert np.abs(np.tril(squared / ONE**2) - np.tril(np.ones((40, 40)))).max() < 2e-2
    assert inverse_factors(40) == pytest.approx(np.linalg.inv(matrix(40).astype(float) / ONE)[:, 0])


def restored(measured: np.ndarray, length: int) -> list[int]:
    """Return the integers computed from y by the recursion in the module's docstring, with Python's own integers."""
    numbers, shown = factors(length), []
    for place, number in enumerate(measured.tolist()):
        rest = number - sum(numbers[place - before] * shown[before] for before in range(place))
        shown.append((rest + ONE // 2) // ONE)
    return shown


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 130])
@pytest.mark.parametrize("size", [3, 1 << 40, 1 << 90], ids=["small", "large", "huge"])
def test_released_sums_are_post_processing_of_the_measured_numbers(length: int, size: int) -> None:
    """The released x + e, with e from the noise alone, is exactly a function of y = T x + z."""
    generator = np.random.default_rng(length)
    sums = np.array([int(number) * size for number in generator.integers(-9, 10, length)], dtype=object)
    noise = np.rint(generator.normal(0, 5 * ONE, length)).astype(np.int64)
    measured = matrix(length) @ sums + noise.astype(object)
    shown = sums + unrolled(noise[None, :], length)[0].astype(object)
    assert restored(measured, length) == shown.tolist()


@pytest.mark.parametrize(("length", "cells"), [(5, 5), (5, 12), (70, 210), (130, 130), (7, 3)])
def test_whole_numbers_and_doubles_agree_and_vectors_are_apart(length: int, cells: int) -> None:
    drawn = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, (3, cells))
    noise = unrolled(drawn, length)
    assert noise.dtype == np.int64 and (unrolled(drawn.astype(float), length) == noise).all()
    for start in range(0, cells, length):
        part = drawn[:, start : start + length]
        assert (unrolled(part.copy(), length) == noise[:, start : start + length]).all()


@pytest.mark.parametrize("sigma", [30 * ONE, MOST_WIDE], ids=["narrow", "wide"])
def test_measured_numbers_have_independent_normal_noise_and_no_other_scale(sigma: int) -> None:
    """T e equals z except for rounding, which is at most half of c_0 in each number."""
    law = SquareRoot(LONE, 0, sigma, 40)
    noise = running_vectors(law, 500, 80, KernelRandomness()).reshape(-1, 40)
    measured = noise.astype(float) @ matrix(40).astype(float).T / sigma
    assert stats.kstest(measured.reshape(-1), "norm").pvalue > ALPHA
    for wrong in (0.7, 1.3):
        assert stats.kstest(measured.reshape(-1) * wrong, "norm").pvalue < 1e-12
    correlation = np.corrcoef(measured.T) - np.eye(40)
    assert np.abs(correlation).max() < 6 / math.sqrt(len(measured))


def test_released_sums_have_the_covariance_that_is_claimed() -> None:
    law = SquareRoot(LONE, 0, 20 * ONE, 30)
    noise = running_vectors(law, 20_000, 30, KernelRandomness()).astype(float)
    inverse = np.linalg.inv(matrix(30).astype(float) / ONE)
    claimed = inverse @ inverse.T * (20**2 + 1 / 12)
    seen = noise.T @ noise / len(noise)
    scale = np.sqrt(np.outer(np.diag(claimed), np.diag(claimed)))
    assert np.abs((seen - claimed) / scale).max() < 6 * math.sqrt(2 / len(noise))
    deviations = np.sqrt(np.diag(claimed))
    assert law.standard_deviation() == pytest.approx(deviations[-1]) and deviations.max() == deviations[-1]
    totals = noise.cumsum(axis=1)
    assert math.sqrt(np.mean(totals**2)) == pytest.approx(law.running_deviation(), rel=0.02)


def test_the_gate_draws_each_term_a_vector_of_its_own() -> None:
    law = SquareRoot(LONE, 0, 200 * ONE, 365)
    first, second = Gate().draw([law, law], Groups(pa.table({}), 365, True))
    assert first is not None and second is not None and (first == second).mean() < 0.05


@pytest.mark.parametrize("length", [1, 2, 5])
def test_no_unit_moves_the_measured_numbers_farther_than_claimed(length: int) -> None:
    """Every vector of up to three entries in cells of two vectors: the largest |T u| is at most the claim, and reaches it if all
    entries fit into one vector."""
    whole = np.kron(np.eye(2, dtype=object), matrix(length))
    places = range(2 * length)
    for linf, l0 in itertools.product((1, 2), (1, 2, 3)):
        if l0 > 2 * length:
            continue
        farthest = 0
        for l1 in range(linf, linf * l0 + 1):
            farthest = 0
            for chosen in itertools.combinations(places, l0):
                for entries in itertools.product(range(-linf, linf + 1), repeat=l0):
                    if sum(map(abs, entries)) > l1:
                        continue
                    moved = sum((whole[:, place] * entry for place, entry in zip(chosen, entries, strict=True)))
                    farthest = max(farthest, int((moved**2).sum()))
            most = Sensitivity(l0, l1, min(l1 * linf, l0 * linf**2), linf)
            claim = square_moved(most, 0, length)
            assert farthest <= claim
            if l1 == linf * l0 <= linf * length:
                assert farthest == claim


def most_by_splits(length: int, count: int) -> list[int]:
    """Return the most that 1, 2, ..., `count` ones move y, under the best split among vectors (dynamic programming)."""
    squares = [int((matrix(length)[:, :ones].sum(axis=1) ** 2).sum()) for ones in range(1, length + 1)]
    most = [0]
    for ones in range(1, count + 1):
        most.append(max(squares[part - 1] + most[ones - part] for part in range(1, min(ones, length) + 1)))
    return most[1:]


@pytest.mark.parametrize("length", [1, 2, 5, 8, 40])
def test_no_split_of_cells_among_vectors_moves_more(length: int) -> None:
    """Whole vectors are not the worst: of 12 cells, 6 and 6 in two vectors of 8 move y farther than 8 and 4."""
    for count, most in enumerate(most_by_splits(length, 3 * length), 1):
        claim = square_moved(Sensitivity(count, count, count * 10, 1), 0, length)
        assert most <= claim <= most * 1.13
    if length == 8:
        eight, four = (most_by_splits(8, 8)[place - 1] for place in (8, 4))
        assert most_by_splits(8, 12)[11] > 1.03 * (eight + four)


@pytest.mark.parametrize("length", [2, 3])
def test_no_set_of_cells_of_three_vectors_moves_more(length: int) -> None:
    """Every set of cells, by its sum of entries of G."""
    squared = np.kron(np.eye(3, dtype=object), matrix(length).T @ matrix(length))
    for count in range(1, 3 * length + 1):
        sets = itertools.combinations(range(3 * length), count)
        farthest = max(int(squared[np.ix_(places, places)].sum()) for places in sets)
        assert farthest <= square_moved(Sensitivity(count, count, count * 10, 1), 0, length)
        assert farthest == most_by_splits(length, count)[-1]


@pytest.mark.parametrize("length", [3, 6])
def test_vectors_bounded_in_l2_move_no_farther_than_claimed(length: int) -> None:
    """The largest eigenvalue of G over every set of places."""
    squared = (matrix(length).T @ matrix(length)).astype(float)
    for count in range(1, length + 1):
        largest = max(
            np.linalg.eigvalsh(squared[np.ix_(places, places)])[-1]
            for places in itertools.combinations(range(length), count)
        )
        claim = square_moved(Sensitivity(count, 10**9, 10**10, 10**5), 0, length)
        assert largest * 10**10 <= claim * (1 + 1e-12) <= largest * 10**10 * 1.6


def test_a_coarser_grid_lets_every_entry_move_by_a_step_more() -> None:
    """All pairs of sums within 9 of each other, rounded down to multiples of 4."""
    distances = {(a + d) // 4 - a // 4 for a in range(4) for d in range(-9, 10)}
    claim = square_moved(Sensitivity(1, 9, 81, 9), 2, 5)
    assert max(distances) ** 2 * square_moved(LONE, 0, 5) == claim
    two = square_moved(Sensitivity(2, 9, 81, 9), 2, 5)
    farthest = 0
    for first, second, a, b in itertools.product(range(10), range(10), range(4), range(4)):
        if first + second <= 9:
            moved = np.array([(a + first) // 4 - a // 4, (b + second) // 4 - b // 4, 0, 0, 0], dtype=object)
            farthest = max(farthest, int(((matrix(5) @ moved) ** 2).sum()))
    assert farthest <= two


@pytest.mark.parametrize("length", [1, 8, 365])
@pytest.mark.parametrize(
    "moved", [LONE, Sensitivity(5, 5, 5, 1), Sensitivity(40, 40, 160, 4), Sensitivity(400, 9000, 10**5, 30)]
)
def test_both_roads_agree_and_nearly_all_of_rho_is_used(moved: Sensitivity, length: int) -> None:
    for rho in (Fraction(1, 200), Fraction(1, 10**6)):
        law = noise_for(moved, rho, length)
        assert law.loss == law.recomputed_loss()
        assert law.loss.rho is not None and rho * Fraction(99, 100) < law.loss.rho <= rho


def test_replay_of_the_law_has_no_larger_loss_than_is_charged() -> None:
    law = noise_for(Sensitivity(3, 3, 3, 1), Fraction(1, 200), 20, 0)
    audited = law_of(law)
    assert audited is not None
    assert audited.loss(law, [1, 1, 1])[1] == law.loss.rho
    assert audited.loss(law, [1, 0, 1])[1] < audited.loss(law, [1, 1, 0])[1] < audited.loss(law, [1, 1, 1])[1]


def test_scales_are_bounded() -> None:
    assert isinstance(noise_for(Sensitivity(3, 0, 0, 0), Fraction(1), 9), Constant)
    least = noise_for(LONE, Fraction(1000), 9, 0)
    assert isinstance(least, SquareRoot) and least.sigma == ONE and least.shift == 0
    with pytest.raises(Refusal, match="square_root"):
        noise_for(Sensitivity(1, 1 << 150, 1 << 300, 1 << 150), Fraction(1, 10**12), 9)
    with pytest.raises(ValueError):
        noise_for(LONE, Fraction(0), 9)
    for sigma, length in ((ONE - 1, 5), (MOST_WIDE + 128, 5), ((1 << 25) + 1, 5), (ONE, 0), (ONE, MOST_LENGTH + 1)):
        with pytest.raises(ValueError):
            SquareRoot(LONE, 0, sigma, length)
    with pytest.raises(ValueError):
        SquareRoot(Sensitivity(1, 0, 0, 0), 0, ONE, 5)
    assert (wide_bits(1 << 20), wide_bits((1 << 20) + 1), wide_bits(MOST_WIDE), 1 << BITS) == (0, 1, 7, ONE)
