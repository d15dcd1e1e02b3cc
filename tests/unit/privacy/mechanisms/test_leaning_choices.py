"""Leaning choices: what they spend, and how far from the data they are."""

import math
from fractions import Fraction

import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import (
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


def log_law(choice: Choice, histogram: tuple[int, ...]) -> list[float]:
    return choice_laws.log_law(choice, len(histogram), {cell: rows for cell, rows in enumerate(histogram) if rows})


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
