"""The choice of the key of rows at an end: exact laws of small histograms, all their neighbours, and the charge."""

import math
from fractions import Fraction
from itertools import product

import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.most_frequent import EndKey, end_key_for
from dpsql_audit import choice_laws

KEYS, VALUES = 2, 3
CELLS = KEYS * VALUES
Histogram = tuple[int, ...]


def law(most: int = 1, rows: int = 3, last: bool = True, epsilon_0: Fraction = Fraction(1), keys: int = KEYS) -> EndKey:
    return EndKey(Sensitivity(1, most, most * most, most), epsilon_0, keys, rows, last)


def log_ratios(chosen: EndKey, left: Histogram, right: Histogram) -> list[float]:
    return choice_laws.log_ratios(chosen, CELLS, dict(enumerate(left)), dict(enumerate(right)))


def neighbours(count: int) -> list[tuple[Histogram, Histogram]]:
    more = [cells for cells in product(range(count + 1), repeat=CELLS) if sum(cells) == count]
    return [
        (before, tuple(a + b for a, b in zip(before, cells, strict=True)))
        for before in product((0, 1, 4), repeat=CELLS)
        for cells in more
    ]


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_rows_that_come_are_as_hidden_as_is_charged_and_not_more(count: int, last: bool) -> None:
    """The largest log ratio and the range of all ratios of a pair, which determines the zCDP charge, stay within epsilon_0
    n_g."""
    chosen = law(count, last=last)
    claimed = float(chosen.loss.epsilon or 0)
    widest = 0.0
    for before, after in neighbours(count):
        ratios = log_ratios(chosen, before, after)
        assert max(map(abs, ratios)) <= claimed + 1e-12
        widest = max(widest, max(ratios) - min(ratios))
    assert 0.999 * claimed <= widest <= claimed + 1e-12, "what is charged is reached"


def test_divergences_of_neighbours_stay_below_the_rho_that_is_charged() -> None:
    chosen = law(epsilon_0=Fraction(2))
    rho, reached = float(chosen.loss.rho or 0), 0.0
    for before, after in neighbours(1):
        laws = [choice_laws.log_law(chosen, CELLS, dict(enumerate(part))) for part in (before, after)]
        for p, q in (laws, laws[::-1]):
            for order in (1.01, 2.0, 8.0):
                terms = [math.exp(order * a + (1 - order) * b) for a, b in zip(p, q, strict=True)]
                divergence = math.log(math.fsum(terms)) / (order - 1)
                assert divergence <= rho * order + 1e-12
                reached = max(reached, divergence / (rho * order))
    assert reached > 0.9, "half of it would not do"


@pytest.mark.parametrize("sensitivity", [Sensitivity(1, 1, 1, 1), Sensitivity(20, 20, 20, 1), Sensitivity(3, 8, 30, 5)])
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_both_roads_find_the_same_loss(sensitivity: Sensitivity, rows: int) -> None:
    chosen = EndKey(sensitivity, Fraction(1, 3), 4, rows, True)
    assert chosen.loss == chosen.recomputed_loss()
    assert chosen.loss.epsilon == Fraction(1, 3) * sensitivity.l1
    assert chosen.loss.rho == Fraction(1, 9) * sensitivity.l2_squared / 8


def test_the_lead_of_the_worst_case_is_enough_and_hardly_more_than_needed() -> None:
    """One key has all end rows except for those of the lead, and every other key as many as it can have."""
    chosen = law(rows=1000, keys=50, epsilon_0=Fraction(1, 2))
    lead = math.ceil(chosen.count_error(0.05))
    scores = [0.0] + [-float(chosen.rate) * lead] * 49
    missed = 1 - 1 / math.fsum(map(math.exp, scores))
    assert 0.02 < missed <= 0.05 and law(keys=1).count_error(0.05) == 0
    assert end_key_for(chosen.sensitivity, 50, True, PrivacyLoss(None, Fraction(0), Fraction(1, 32))).rows > 2 * lead
