"""Leaning choices: no row changes the term added to distances, so neighbours are as close as without it."""

import math
from fractions import Fraction
from itertools import product

import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import (
    CHOICE_MECHANISMS,
    EXPONENTIAL,
    LEANING_DENOMINATOR,
    PERMUTE_AND_FLIP,
    Choice,
    Lean,
    leaning_choice,
)
from dpsql_audit import choice_laws

ROW = Sensitivity(1, 1, 1, 1)
LEAN = Lean(1, Fraction(1, 3))


def law(mechanism: str = EXPONENTIAL, lean: int = 21, epsilon: Fraction = Fraction(1), rank: int = 2) -> Choice:
    return Choice(ROW, Fraction(1), epsilon, rank, mechanism=mechanism, lean=lean)


def log_law(choice: Choice, histogram: tuple[int, ...]) -> list[float]:
    return choice_laws.log_law(choice, len(histogram), {cell: rows for cell, rows in enumerate(histogram) if rows})


@pytest.mark.parametrize("mechanism", CHOICE_MECHANISMS)
def test_neighbours_are_as_alike_as_is_charged(mechanism: str) -> None:
    """An additional row moves no log probability by more than epsilon_0, and their range, which determines rho, is no wider
    (under the exponential mechanism it is reached); a replaced row moves them by at most twice as much."""
    choice = law(mechanism)
    largest = widest = 0.0
    for histogram in product((0, 1, 40), repeat=4):
        before = log_law(choice, histogram)
        after = [
            log_law(choice, tuple(rows + (cell == place) for cell, rows in enumerate(histogram))) for place in range(4)
        ]
        moves = [[a - b for a, b in zip(other, before, strict=True)] for other in after]
        largest = max(largest, *(abs(move) for each in moves for move in each))
        widest = max(widest, *(max(each) - min(each) for each in moves))
        between = [abs(a - b) for one in after for other in after for a, b in zip(one, other, strict=True)]
        assert max(between) <= 2 * float(choice.epsilon_0) + 1e-9
    assert 0.7 * float(choice.epsilon_0) <= largest <= float(choice.epsilon_0) + 1e-9
    if mechanism == EXPONENTIAL:
        assert 0.999 * float(choice.epsilon_0) <= widest <= float(choice.epsilon_0) + 1e-9


def test_divergences_stay_below_the_rho_that_is_charged() -> None:
    choice = law(epsilon=Fraction(2))
    rho = float(choice.loss.rho or 0)
    for histogram in product(range(3), repeat=4):
        for place in range(4):
            p = log_law(choice, histogram)
            q = log_law(choice, tuple(rows + (cell == place) for cell, rows in enumerate(histogram)))
            for one, other in ((p, q), (q, p)):
                for order in (1.01, 2.0, 8.0):
                    terms = [math.exp(order * a + (1 - order) * b) for a, b in zip(one, other, strict=True)]
                    assert math.log(math.fsum(terms)) / (order - 1) <= rho * order + 1e-12


@pytest.mark.parametrize("moved", [ROW, Sensitivity(2, 2, 2, 2)], ids=["added or removed", "changed"])
def test_a_part_is_spent_whatever_the_lean_is(moved: Sensitivity) -> None:
    tenth = Fraction(1, 10)
    pure = leaning_choice(moved, LEAN, PrivacyLoss(tenth, Fraction(0), None))
    zcdp = leaning_choice(moved, LEAN, PrivacyLoss(None, Fraction(0), tenth))
    assert (
        pure.loss.epsilon == tenth
        and zcdp.loss.rho is not None
        and tenth * Fraction(999, 1000) < zcdp.loss.rho <= tenth
    )
    assert (pure.mechanism, zcdp.mechanism) == (PERMUTE_AND_FLIP, EXPONENTIAL)
    for choice in (pure, zcdp):
        assert choice.recomputed_loss() == choice.loss
        assert float(choice.rate) * choice.lean / LEANING_DENOMINATOR == pytest.approx(1 / 3, rel=0.02)


def test_few_units_are_above_and_more_where_there_are_more_groups() -> None:
    part = PrivacyLoss(Fraction(1, 2), Fraction(0), None)
    assert leaning_choice(ROW, LEAN, part).rank == 5
    assert leaning_choice(ROW, Lean(50, LEAN.fall), part).rank == 103


def test_cells_above_the_data_are_the_less_likely_the_higher_they_are() -> None:
    choice = leaning_choice(ROW, LEAN, PrivacyLoss(Fraction(1, 2), Fraction(0), None))
    histogram = (*(0 for _ in range(20)), 500, *(0 for _ in range(60)))
    chances = [math.exp(chance) for chance in log_law(choice, histogram)]
    assert sum(chances[:20]) < 1e-9 and chances[20] == max(chances) > 0.3
    ratios = [chances[cell + 1] / chances[cell] for cell in range(21, 60)]
    assert all(0.6 < ratio < 0.8 for ratio in ratios)  # exp(-1/3)


def test_the_rank_error_of_the_worst_case_holds() -> None:
    """All rows are in the last cell, where the lean is largest."""
    choice, cells = leaning_choice(ROW, LEAN, PrivacyLoss(Fraction(1, 2), Fraction(0), None)), 30
    bound = choice.rank_error(cells, 0.05)
    histogram = (*(0 for _ in range(cells - 1)), math.ceil(bound) + choice.rank + 1)
    assert 1 - math.exp(log_law(choice, histogram)[-1]) <= 0.05
    fewer = (*(0 for _ in range(cells - 1)), math.ceil(bound / 4) + choice.rank)
    assert 1 - math.exp(log_law(choice, fewer)[-1]) > 0.05


@pytest.mark.parametrize(
    "change", [{"lean": -1}, {"quantile": Fraction(0)}, {"slices": 4}, {"quantile": Fraction(1, 2), "rank": 0}], ids=str
)
def test_only_the_largest_value_leans(change: dict[str, object]) -> None:
    facts: dict[str, object] = {"quantile": Fraction(1), "rank": 2, "lean": 3, "slices": 1} | change
    with pytest.raises(ValueError):
        Choice(ROW, epsilon_0=Fraction(1), **facts)  # type: ignore[arg-type]
