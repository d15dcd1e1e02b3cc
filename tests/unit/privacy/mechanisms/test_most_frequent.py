"""The exponential mechanism over counts: exact laws of small histograms, all their neighbours, and the charge."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.most_frequent import MostFrequent
from dpsql_audit import choice_laws

CELLS = 4
Histogram = tuple[int, ...]


def law(most: int = 1, epsilon_0: Fraction = Fraction(1)) -> MostFrequent:
    return MostFrequent(Sensitivity(1, most, most * most, most), epsilon_0)


def log_law(chosen: MostFrequent, histogram: Histogram) -> list[float]:
    return choice_laws.log_law(chosen, len(histogram), dict(enumerate(histogram)))


def weights(histogram: Histogram, epsilon_0: float) -> list[float]:
    """Return textbook probabilities: exp(epsilon_0 h(c)) divided by the sum."""
    parts = [math.exp(epsilon_0 * rows) for rows in histogram]
    return [part / sum(parts) for part in parts]


def moved(count: int) -> Iterator[list[float]]:
    """Yield log ratios of the laws of histograms of low and high cells and of those with `count` additional rows."""
    more = [cells for cells in product(range(count + 1), repeat=CELLS) if sum(cells) == count]
    for histogram in product((0, 1, 40), repeat=CELLS):
        for cells in more:
            after = tuple(a + b for a, b in zip(histogram, cells, strict=True))
            yield [a - b for a, b in zip(log_law(law(), histogram), log_law(law(), after), strict=True)]


def test_the_law_is_that_of_the_textbook() -> None:
    for histogram in product(range(4), repeat=CELLS):
        exact = [math.exp(p) for p in log_law(law(epsilon_0=Fraction(1, 2)), histogram)]
        assert exact == pytest.approx(weights(histogram, 0.5), rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_that_come_are_as_hidden_as_is_charged_and_not_more(count: int) -> None:
    """The largest log ratio and the range of all ratios of a pair, which determines the zCDP charge, stay within epsilon_0
    n_g."""
    claimed = float(law(count).loss.epsilon or 0)
    ratios = list(moved(count))
    largest = max(max(map(abs, ratio)) for ratio in ratios)
    widest = max(max(ratio) - min(ratio) for ratio in ratios)
    assert largest <= claimed + 1e-12 and widest <= claimed + 1e-12
    assert min(largest, widest) >= 0.999 * claimed, "what is charged is reached"


def test_rows_that_are_replaced_need_twice_the_rows_that_are_charged_for_them() -> None:
    """One value gains a row and another loses one: utilities move both ways, so the loss of one direction is not enough."""
    largest = 0.0
    for histogram in product((0, 1, 2, 40), repeat=3):
        for gone, come in product(range(3), repeat=2):
            if histogram[gone]:
                after = list(histogram)
                after[gone] -= 1
                after[come] += 1
                pairs = zip(log_law(law(), histogram), log_law(law(), tuple(after)), strict=True)
                largest = max(largest, *(abs(a - b) for a, b in pairs))
    assert 1.9 < largest <= float(law(2).loss.epsilon or 0) + 1e-12


def test_divergences_of_neighbours_stay_below_the_rho_that_is_charged() -> None:
    chosen = law(epsilon_0=Fraction(2))
    rho = float(chosen.loss.rho or 0)
    reached = 0.0
    for histogram in product(range(3), repeat=CELLS):
        for cell in range(CELLS):
            more = tuple(rows + (place == cell) for place, rows in enumerate(histogram))
            p, q = log_law(chosen, histogram), log_law(chosen, more)
            for one, other in ((p, q), (q, p)):
                for order in (1.01, 1.5, 2.0, 4.0, 16.0):
                    terms = [math.exp(order * a + (1 - order) * b) for a, b in zip(one, other, strict=True)]
                    divergence = math.log(math.fsum(terms)) / (order - 1)
                    assert divergence <= rho * order + 1e-12
                    reached = max(reached, divergence / (rho * order))
    assert reached > 0.9, "half of it would not do"


@pytest.mark.parametrize("sensitivity", [Sensitivity(1, 1, 1, 1), Sensitivity(20, 20, 20, 1), Sensitivity(3, 8, 30, 5)])
def test_both_roads_find_the_same_loss(sensitivity: Sensitivity) -> None:
    for epsilon_0 in (Fraction(1), Fraction(1, 3)):
        chosen = MostFrequent(sensitivity, epsilon_0)
        assert chosen.loss == chosen.recomputed_loss()
        assert chosen.loss.epsilon == epsilon_0 * sensitivity.l1
        assert chosen.loss.rho == epsilon_0**2 * sensitivity.l2_squared / 8


@pytest.mark.parametrize("cells", [2, 50])
def test_the_error_of_the_worst_case_holds_for_the_worst_case(cells: int) -> None:
    """One value has all rows, just more than the bound: every other value is as bad as possible."""
    chosen = law(epsilon_0=Fraction(1, 2))
    bound = chosen.count_error(cells, 0.05)
    histogram = (math.ceil(bound), *(0 for _ in range(cells - 1)))
    outside = 1 - math.exp(log_law(chosen, histogram)[0])
    assert 0.02 < outside <= 0.05
    assert law().count_error(1, 0.05) == 0
