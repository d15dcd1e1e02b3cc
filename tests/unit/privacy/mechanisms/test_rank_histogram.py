"""Quantiles of one histogram are searched in disjoint parts of it, level by level, and each level costs its most expensive
choice."""

from fractions import Fraction

import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.rank_histogram import (
    QuantileChoice,
    RankHistogramPlan,
    Search,
    recursion,
)

ZERO, FULL = Fraction(0), Fraction(1)
QUARTER, HALF, THREE_QUARTERS = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)
LONE = Sensitivity(1, 1, 1, 1)


def choice(search: Search, name: str = "", epsilon: int = 1, slices: int = 1) -> QuantileChoice:
    """Return the choice for a search, as pricing creates it."""
    quantile = search.relative
    law = Choice(LONE, quantile, Fraction(epsilon), 3 if quantile in (0, 1) else 0, slices)
    return QuantileChoice(name or str(search.quantile), search, law)


@pytest.mark.parametrize(
    ("quantiles", "searches"),
    [
        ([], []),
        ([HALF], [Search(HALF, 0)]),
        ([ZERO], [Search(ZERO, 0)]),
        ([QUARTER, HALF], [Search(HALF, 0), Search(QUARTER, 1, None, HALF)]),
        (
            [QUARTER, HALF, THREE_QUARTERS],
            [Search(HALF, 0), Search(QUARTER, 1, None, HALF), Search(THREE_QUARTERS, 1, HALF, None)],
        ),
        ([HALF, FULL], [Search(HALF, 0), Search(FULL, 1, HALF, None)]),
        ([ZERO, HALF], [Search(HALF, 0), Search(ZERO, 1, None, HALF)]),
        ([ZERO, FULL], [Search(ZERO, 0), Search(FULL, 1, ZERO, None)]),
    ],
)
def test_the_middle_quantile_parts_the_others(quantiles: list[Fraction], searches: list[Search]) -> None:
    assert recursion(quantiles) == searches


def loss(epsilon: int | None, delta: int, rho: int | None) -> PrivacyLoss:
    parts = [None if part is None else Fraction(part) for part in (epsilon, rho)]
    return PrivacyLoss(parts[0], Fraction(delta, 100), parts[1])


@pytest.mark.parametrize(
    "searches",
    [
        [Search(QUARTER, 0), Search(HALF, 0)],
        [Search(QUARTER, 0), Search(QUARTER, 0)],
        [Search(HALF, 0), Search(QUARTER, 1, None, HALF), Search(Fraction(1, 3), 1, None, HALF)],
        [Search(HALF, 0), Search(QUARTER, 1), Search(THREE_QUARTERS, 1, HALF, None)],
        [Search(HALF, 0), Search(QUARTER, 1, None, HALF), Search(THREE_QUARTERS, 1)],
        [Search(HALF, 0), Search(QUARTER, 1, None, THREE_QUARTERS), Search(THREE_QUARTERS, 1, HALF, None)],
        [Search(HALF, 1), Search(QUARTER, 1, None, HALF)],
        [*recursion([QUARTER, HALF, THREE_QUARTERS]), Search(Fraction(1, 8), 2), Search(Fraction(7, 8), 2, THREE_QUARTERS)],
    ],
)  # fmt: skip
def test_choices_of_one_level_that_may_look_at_the_same_rows_are_refused(searches: list[Search]) -> None:
    with pytest.raises(ValueError, match="two quantiles of one level"):
        RankHistogramPlan("h", 10, tuple(map(choice, searches)))


@pytest.mark.parametrize(("quantile", "slices"), [(QUARTER, 1), (HALF, 2), (HALF, 4)])
def test_a_law_of_another_quantile_or_of_other_slices_is_refused(quantile: Fraction, slices: int) -> None:
    search = Search(QUARTER, 1, None, HALF)
    law = Choice(LONE, quantile, Fraction(1), slices=slices)
    plan_slices = 1 if slices != 1 else 3
    with pytest.raises(ValueError, match="chosen as another one: 1/4"):
        RankHistogramPlan("h", 10, (QuantileChoice("q", search, law),), plan_slices)
    matching = QuantileChoice("q", search, Choice(LONE, HALF, Fraction(1), slices=slices))
    assert RankHistogramPlan("h", 10, (matching,), slices).slices == slices
