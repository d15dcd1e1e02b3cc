"""Quantiles of one histogram are searched in disjoint parts of it, level by level, and each level costs its most expensive
choice."""

from dataclasses import dataclass
from fractions import Fraction

import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.rank_histogram import (
    RANK_HISTOGRAM,
    ChoiceLevel,
    EndChoice,
    QuantileChoice,
    RankHistogramPlan,
    Search,
    recursion,
    split,
)

ZERO, FULL = Fraction(0), Fraction(1)
QUARTER, HALF, THREE_QUARTERS = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)
LONE = Sensitivity(1, 1, 1, 1)


def tenths(*numerators: int) -> list[Fraction]:
    return [Fraction(numerator, 10) for numerator in numerators]


def choice(search: Search, name: str = "", epsilon: int = 1, slices: int = 1) -> QuantileChoice:
    """Return the choice for a search, as pricing creates it."""
    quantile = search.relative
    law = Choice(LONE, quantile, Fraction(epsilon), 3 if quantile in (0, 1) else 0, slices)
    return QuantileChoice(name or str(search.quantile), search, law)


@dataclass(frozen=True)
class Priced:
    """A law of which only the loss matters; its second computation gives another number, to distinguish the two."""

    loss: PrivacyLoss

    def recomputed_loss(self) -> PrivacyLoss:
        return self.loss.times(2)


@pytest.mark.parametrize(
    ("search", "relative"),
    [
        (Search(HALF, 0), HALF),
        (Search(QUARTER, 1, None, HALF), HALF),
        (Search(THREE_QUARTERS, 1, HALF, None), HALF),
        (Search(HALF, 2, QUARTER, THREE_QUARTERS), HALF),
        (Search(Fraction(3, 10), 2, QUARTER, HALF), Fraction(1, 5)),
        (Search(ZERO, 1, None, HALF), ZERO),
        (Search(FULL, 1, HALF, None), FULL),
        (Search(HALF, 1, None, FULL), HALF),
    ],
)
def test_a_quantile_is_relative_to_the_places_it_is_searched_between(search: Search, relative: Fraction) -> None:
    assert search.relative == relative


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


@pytest.mark.parametrize("quantiles", [tenths(1, 2, 5, 7, 9), tenths(0, 3, 10), tenths(1, 3, 4, 5, 6, 8, 9)], ids=str)
def test_searches_come_by_level_between_the_nearest_places_of_earlier_levels(quantiles: list[Fraction]) -> None:
    searches = recursion(quantiles)
    assert searches == sorted(searches, key=lambda search: (search.level, search.quantile))
    for search in searches:
        earlier = [other.quantile for other in searches if other.level < search.level]
        assert search.low == max((place for place in earlier if place < search.quantile), default=None)
        assert search.high == min((place for place in earlier if place > search.quantile), default=None)
    assert RankHistogramPlan("h", 10, tuple(map(choice, searches))).quantiles[0].quantile == searches[0].quantile


def loss(epsilon: int | None, delta: int, rho: int | None) -> PrivacyLoss:
    parts = [None if part is None else Fraction(part) for part in (epsilon, rho)]
    return PrivacyLoss(parts[0], Fraction(delta, 100), parts[1])


@pytest.mark.parametrize(
    ("losses", "total"),
    [
        ([loss(1, 2, 3)], loss(1, 2, 3)),
        ([loss(1, 5, 3), loss(2, 4, 1)], loss(2, 5, 3)),
        ([loss(None, 0, 3), loss(2, 0, 1)], loss(None, 0, 3)),
        ([loss(1, 0, 3), loss(2, 0, None)], loss(2, 0, None)),
        ([loss(0, 0, 0), loss(0, 0, 0)], loss(0, 0, 0)),
    ],
)
def test_a_level_costs_its_dearest_choice_in_every_part(losses: list[PrivacyLoss], total: PrivacyLoss) -> None:
    level = ChoiceLevel(tuple(map(Priced, losses)))
    assert level.loss == total
    assert level.recomputed_loss() == total.times(2)


def test_a_plan_charges_each_level_once_and_each_end() -> None:
    half, quarter, rest = recursion([QUARTER, HALF, THREE_QUARTERS])
    low, middle, high = choice(quarter, epsilon=2), choice(half, epsilon=5), choice(rest, epsilon=3)
    end = EndChoice("end", HALF, Choice(LONE, HALF, Fraction(7), padding=-4))
    plan = RankHistogramPlan("h", 10, (low, middle, high), ends=(end,))
    assert plan.charged == (ChoiceLevel((middle.law,)), ChoiceLevel((low.law, high.law)), end.law)
    assert [law.loss.epsilon for law in plan.charged] == [5, 3, 7]
    assert plan.laws == (("1/4", low.law), ("1/2", middle.law), ("3/4", high.law), ("end", end.law))
    assert (plan.word, plan.slices, low.quantile) == (RANK_HISTOGRAM, 1, QUARTER)


def test_split_quantiles_are_charged_one_by_one() -> None:
    plan = RankHistogramPlan("h", 10, tuple(choice(search) for search in split([HALF, QUARTER])))
    assert plan.charged == tuple(ChoiceLevel((each.law,)) for each in plan.quantiles)


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
