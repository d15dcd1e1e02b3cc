"""Distances of cells from quantiles: their targets, and how far rows move them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql_audit.choice_laws import distance, runs, target

QUANTILES = (Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1))
Histogram = tuple[int, ...]


def choice(quantile: Fraction, epsilon: Fraction = Fraction(1), rank: int = 3) -> Choice:
    return Choice(Sensitivity(1, 1, 1, 1), quantile, epsilon, rank if quantile in (0, 1) else 0)


def distances(law: Choice, histogram: Histogram) -> list[Fraction]:
    parts = runs(len(histogram), list(range(len(histogram))), dict(enumerate(histogram)))
    return [distance(law, run, sum(histogram)) for run in parts]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_rows_more_move_no_distance_further_than_they_are_many_times_the_most_move(
    quantile: Fraction, count: int
) -> None:
    law, moves = choice(quantile), set()
    for histogram in product((0, 1, 40), repeat=4):
        for more in (more for more in product(range(count + 1), repeat=4) if sum(more) == count):
            after = tuple(a + b for a, b in zip(histogram, more, strict=True))
            pairs = zip(distances(law, histogram), distances(law, after), strict=True)
            moves |= {abs(a - b) for a, b in pairs}
    assert max(moves) == law.most_move * count


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
