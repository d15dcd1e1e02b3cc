"""The exponential mechanism over histograms: exact laws of small ones, all their neighbours, and the charge."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL, OUTSIDE, PERMUTE_AND_FLIP, Choice, choice_for
from dpsql_audit import choice_laws
from dpsql_audit.choice_laws import distance, runs, target

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
QUANTILES = (Fraction(0), TENTH, Fraction(1, 3), HALF, Fraction(9, 10), Fraction(1))
Histogram = tuple[int, ...]


def rows(most: int) -> Sensitivity:
    return Sensitivity(1, most, most * most, most)


def choice(quantile: Fraction, epsilon: Fraction = Fraction(1), rank: int = 3) -> Choice:
    return Choice(rows(1), quantile, epsilon, rank if quantile in (0, 1) else 0)


def dense(histogram: Histogram) -> dict[int, int]:
    return dict(enumerate(histogram))


def distances(law: Choice, histogram: Histogram) -> list[Fraction]:
    parts = runs(len(histogram), list(range(len(histogram))), dense(histogram))
    return [distance(law, run, sum(histogram)) for run in parts]


def log_law(law: Choice, histogram: Histogram) -> list[float]:
    return choice_laws.log_law(law, len(histogram), dense(histogram))


def histograms(cells: int = 4, most: int = 4) -> Iterator[Histogram]:
    return product(range(most), repeat=cells)


def added(histogram: Histogram, more: Histogram) -> Histogram:
    return tuple(a + b for a, b in zip(histogram, more, strict=True))


def ratios(law: Choice, count: int) -> Iterator[tuple[list[float], list[Fraction]]]:
    """Yield log ratios of the laws, and changes of the distances, for histograms of low and high cells and `count` additional
    rows."""
    others = [more for more in product(range(count + 1), repeat=4) if sum(more) == count]
    for histogram in product((0, 1, 40), repeat=4):
        for more in others:
            after = added(histogram, more)
            pairs = zip(distances(law, histogram), distances(law, after), strict=True)
            both = zip(log_law(law, histogram), log_law(law, after), strict=True)
            yield [a - b for a, b in both], [b - a for a, b in pairs]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_rows_more_move_no_distance_further_than_they_are_many_times_the_most_move(
    quantile: Fraction, count: int
) -> None:
    law = choice(quantile)
    moves = [abs(move) for _, found in ratios(law, count) for move in found]
    assert max(moves) == law.most_move * count


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_neighbours_are_as_alike_as_is_charged(quantile: Fraction, count: int) -> None:
    """The largest log ratio and the range of all ratios of a pair, which determines the zCDP charge, both stay within epsilon_0
    n_g."""
    law = choice(quantile)
    claimed = float(Choice(rows(count), quantile, law.epsilon_0, law.rank).loss.epsilon or 0)
    found = [ratio for ratio, _ in ratios(law, count)]
    largest = max(max(map(abs, ratio)) for ratio in found)
    widest = max(max(ratio) - min(ratio) for ratio in found)
    assert largest <= claimed + 1e-12 and widest <= claimed + 1e-12
    assert widest >= 0.999 * claimed, "the range that is charged is reached"


@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_divergences_of_neighbours_stay_below_the_rho_that_is_charged(quantile: Fraction) -> None:
    """The Renyi divergence of every order, in both directions, of every small pair is at most rho times the order."""
    law = choice(quantile, Fraction(2))
    rho = float(law.loss.rho or 0)
    for histogram in histograms(4, 3):
        for cell in range(4):
            p, q = log_law(law, histogram), log_law(law, added(histogram, tuple(int(c == cell) for c in range(4))))
            for one, other in ((p, q), (q, p)):
                for order in (1.01, 1.5, 2.0, 4.0, 16.0):
                    terms = [math.exp(order * a + (1 - order) * b) for a, b in zip(one, other, strict=True)]
                    assert math.log(math.fsum(terms)) / (order - 1) <= rho * order + 1e-12


def test_replacing_rows_is_covered_by_twice_the_rows() -> None:
    for quantile in QUANTILES:
        law = choice(quantile)
        for histogram in histograms(3, 3):
            for gone, come in product(range(3), repeat=2):
                if histogram[gone]:
                    moved = list(histogram)
                    moved[gone] -= 1
                    moved[come] += 1
                    both = zip(log_law(law, histogram), log_law(law, tuple(moved)), strict=True)
                    assert max(abs(a - b) for a, b in both) <= 2 * float(law.epsilon_0) + 1e-12


@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_targets_are_those_of_the_definition(quantile: Fraction) -> None:
    law = choice(quantile, rank=3)
    sizes = np.arange(20, dtype=np.int64)
    assert [Fraction(int(t), law.denominator) for t in law.targets(sizes)] == [target(law, int(n)) for n in sizes]
    with pytest.raises(OverflowError):
        law.targets(np.array([1 << 43]))


def test_the_smallest_value_is_the_one_of_its_rank_and_never_below_the_data() -> None:
    histogram = (0, 0, 1, 2, 0, 5, 1, 0)
    for quantile, wanted in ((Fraction(0), (2, 3, 3, 5)), (Fraction(1), (6, 5, 5, 5))):
        for rank, cell in enumerate(wanted, 1):
            law = choice(quantile, rank=rank)
            found = distances(law, histogram)
            assert [at for at, distance in enumerate(found) if distance == 0] == [cell]


@pytest.mark.parametrize(
    "moved", [Sensitivity(1, 1, 1, 1), Sensitivity(3, 6, 12, 2), Sensitivity(20, 20, 20, 1)], ids=str
)
@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_a_part_of_the_budget_is_spent_and_no_more(moved: Sensitivity, quantile: Fraction) -> None:
    pure = choice_for(moved, quantile, 100, PrivacyLoss(TENTH, Fraction(0), None))
    assert pure.loss.epsilon == TENTH == pure.epsilon_0 * moved.l1
    zcdp = choice_for(moved, quantile, 100, PrivacyLoss(None, Fraction(0), TENTH))
    assert zcdp.loss.rho is not None and TENTH * Fraction(999, 1000) < zcdp.loss.rho <= TENTH
    for law in (pure, zcdp):
        assert law.recomputed_loss() == law.loss
    assert zcdp.loss.rho == zcdp.epsilon_0**2 * moved.l2_squared / 8
    assert (pure.mechanism, zcdp.mechanism) == (PERMUTE_AND_FLIP, EXPONENTIAL)


def test_twenty_groups_of_one_row_cost_twenty_times_one_under_zcdp_and_not_four_hundred_times() -> None:
    spread, alone = (Choice(moved, HALF, Fraction(1)).loss.rho for moved in (Sensitivity(20, 20, 20, 1), rows(1)))
    assert spread == 20 * (alone or 0)


def test_the_rank_error_of_the_worst_case_holds_for_the_worst_case() -> None:
    """All rows are in one cell: every other cell is as far away as possible."""
    law, cells = choice(HALF, Fraction(1, 2)), 50
    bound = law.rank_error(cells, 0.05)
    histogram = tuple(math.ceil(2 * bound) + 1 if cell == 25 else 0 for cell in range(cells))
    outside = [
        math.exp(p) for p, d in zip(log_law(law, histogram), distances(law, histogram), strict=True) if d > bound
    ]
    assert len(outside) == cells - 1 and 0.02 < sum(outside) <= 0.05


def test_a_smallest_value_lies_outside_the_data_as_seldom_as_is_said() -> None:
    """In the worst case all rows are in the last cell, so that every other cell is below the data."""
    cells = 40
    law = choice_for(rows(1), Fraction(0), cells, PrivacyLoss(HALF, Fraction(0), None))
    histogram = (*(0 for _ in range(cells - 1)), 2 * law.rank)
    assert 0.5 * float(OUTSIDE) < 1 - math.exp(log_law(law, histogram)[-1]) <= float(OUTSIDE)
