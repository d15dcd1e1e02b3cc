"""Smooth sensitivity and propose-test-release: exact laws of small data, all their neighbours, the draws, and the charge."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pyarrow as pa
import pytest
from support.effort import slow

from dpsql.errors.exceptions import InternalError, Refusal
from dpsql.noise.group_layout import Groups
from dpsql.noise.local_sensitivity import (
    Ranks,
    distance,
    largest_spread,
    means,
    medians,
    released_local,
    rounded_laplace,
    smooth_medians,
)
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms, laid_out
from dpsql.noise.samplers import KernelRandomness
from dpsql.privacy.loss import PrivacyLoss, rho_of_pure
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.local_sensitivity import (
    REFUSED,
    LocalSensitivityPlan,
    ProposeTestRelease,
    SmoothSensitivity,
    propose_for,
    smooth_for,
)
from dpsql.privacy.mechanisms.rational_bounds import exp_lower, ln_upper
from dpsql_audit import local_laws

LAST = 5
ROWS = range(8)
ONE_ROW = Sensitivity(1, 1, 1, 1)
Law = SmoothSensitivity | ProposeTestRelease


def part(epsilon: str | int = 1, delta: str = "0.01") -> PrivacyLoss:
    return PrivacyLoss(Fraction(epsilon), Fraction(delta), None)


def moved_rows(rows: int, groups: int = 1) -> Sensitivity:
    return Sensitivity(groups, groups * rows, groups * rows * rows, rows)


def data(most: int = max(ROWS), last: int = LAST) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(range(last + 1), size)


def neighbours(cells: tuple[int, ...], rows: int) -> Iterator[tuple[int, ...]]:
    """Yield all data with 1 to `rows` additional rows."""
    for more in range(1, rows + 1):
        for added in combinations_with_replacement(range(LAST + 1), more):
            yield tuple(sorted((*cells, *added)))


def ranks(cells: tuple[int, ...], last: int = LAST) -> Ranks:
    counts = Counter(cells)
    places = sorted(counts)
    cell, count = (np.array(numbers, dtype=np.int64) for numbers in (places, [counts[p] for p in places]))
    return Ranks(Histograms(last + 1, np.array([0, cell.size]), cell, count))


# --- claims of the proofs about ranks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "most"), [(1, 5), (2, 4), slow(2, 5)])
def test_ranks_of_neighbours_interlace_and_the_spread_covers_the_median(rows: int, most: int) -> None:
    """(1) of `local_sensitivity`, the two properties of W, on all data of up to 5 rows."""
    steps, k = np.arange(-12, 13), np.arange(9)
    for cells in data(most):
        mine = ranks(cells)
        for other in neighbours(cells, rows):
            theirs = ranks(other)
            assert (mine.cells_at(steps - rows) <= theirs.cells_at(steps)).all() and (
                theirs.cells_at(steps) <= mine.cells_at(steps + rows)
            ).all()
            middle = np.zeros(1, dtype=np.int64)
            moved = abs(int(mine.cells_at(middle)[0]) - int(theirs.cells_at(middle)[0]))
            assert moved <= min(mine.spread(np.array([0]), rows)[0], theirs.spread(np.array([0]), rows)[0])
            assert (mine.spread(k, rows) <= theirs.spread(k + 1, rows)).all()
            assert (theirs.spread(k, rows) <= mine.spread(k + 1, rows)).all()


def test_the_median_is_the_lower_one_of_two() -> None:
    middle = np.zeros(1, dtype=np.int64)
    for cells in data():
        if cells:
            assert ranks(cells).cells_at(middle)[0] == cells[(len(cells) - 1) // 2]
            assert ranks(cells).total == sum(cells) and ranks(cells).rows == len(cells)


@pytest.mark.parametrize("rows", [1, 2])
def test_the_scale_is_smooth_and_covers_the_local_sensitivity(rows: int) -> None:
    law = smooth_for(moved_rows(rows), part(2, "0.1"))
    weights = law.weights.tolist()
    ratio = max(a / b for a, b in pairwise(weights))
    for cells in data(5):
        mine = largest_spread(ranks(cells), law)
        assert mine == pytest.approx(local_laws.scale(law, list(cells), LAST) * law.alpha)
        for other in neighbours(cells, rows):
            theirs = largest_spread(ranks(other), law)
            moved = abs(cells_median(cells) - cells_median(other))
            assert moved * weights[0] <= min(mine, theirs)
            assert max(mine, theirs) <= ratio * min(mine, theirs) * (1 + 1e-12)


def test_many_equal_rows_leave_a_scale_above_nothing() -> None:
    """However many rows have the median's value, all of them might change: the last weight times the whole grid remains."""
    law = smooth_for(ONE_ROW, part(2, "0.1"))
    assert law.weights.size < 5000
    assert largest_spread(ranks((2,) * 5000), law) == int(law.weights[-1]) * LAST > 0


def cells_median(cells: tuple[int, ...]) -> int:
    return cells[(len(cells) - 1) // 2] if cells else 0


# --- divergence of neighbours ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.01"), ("3", "0.05"), ("1/2", "0.0001"), ("6", "0.2")])
def test_smooth_medians_of_neighbours_need_no_more_delta_than_is_charged(rows: int, epsilon: str, delta: str) -> None:
    law = smooth_for(moved_rows(rows), part(epsilon, delta))
    worst = max(
        local_laws.delta_needed(law, LAST + 1, Counter(cells), Counter(other))
        for cells in data(5)
        for other in neighbours(cells, rows)
    )
    assert worst <= float(law.delta_0) * (1 + 1e-9)


@pytest.mark.parametrize("twice", range(16, 42, 2))
def test_a_part_that_misses_a_fall_by_less_than_a_float_resolves_has_the_next_one(twice: int) -> None:
    """Delta is 1e-15 of itself below what the fall 2**28 // `twice` needs with an epsilon that its alpha halves exactly: floats,
    in which the fall is searched, cannot tell, and the exact inequalities have to."""
    alpha, fall = Fraction((1 << 28) // 20 * twice, 1 << 28), (1 << 28) // twice
    ratio = Fraction(1 << 28, (1 << 28) - fall)
    delta = exp_lower(-(alpha + ln_upper(ratio)) / (ratio - 1)) * (1 - Fraction(1, 10**15))
    law = smooth_for(ONE_ROW, PrivacyLoss(2 * alpha, delta, None))
    assert fall - fall // 100_000 <= law.fall < fall
    assert law.recomputed_loss() == law.loss
    assert replace(law, fall=fall).recomputed_loss().delta > delta


def test_a_tenth_more_than_the_law_allows_is_seen() -> None:
    """The inequalities leave little slack: with noise of half the scale some neighbours need more than is charged."""
    law = smooth_for(ONE_ROW, part(3, "0.001"))
    wrong = replace(law, alpha=3 * law.alpha)
    worst = max(
        local_laws.delta_needed(wrong, LAST + 1, Counter(cells), Counter(other))
        for cells in data()
        for other in neighbours(cells, 1)
    )
    assert worst > float(law.delta_0)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("mean", "finer"), [(False, 0), (True, 0), (True, 3)])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_tested_numbers_of_neighbours_need_no_more_delta_than_is_charged(
    rows: int, mean: bool, finer: int, bound: int
) -> None:
    """From the exact laws on both sides: refusals and numbers."""
    law = propose_for(moved_rows(rows), part(4, "0.05"), bound << finer, mean, finer)
    ratio = math.exp(law.epsilon_0) * (1 + 1e-9)

    @cache
    def chances(side: tuple[int, ...]) -> np.ndarray:
        return np.diff(local_laws.through(law, LAST + 1, Counter(side)), prepend=0.0)

    for cells in data(5):
        others = list(neighbours(cells, rows))
        mine, theirs = chances(cells), np.stack([chances(other) for other in others])
        for one_side, other_side in ((mine, theirs), (theirs, mine)):
            needed = np.maximum(0, one_side - ratio * other_side).sum(axis=1)
            assert needed.max() <= float(law.delta_0) * (1 + 1e-9)
        for other in others:
            assert local_laws.delta_needed(law, LAST + 1, Counter(cells), Counter(other)) <= float(law.delta_0)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_distance_is_that_of_the_definition(rows: int) -> None:
    for mean, finer in ((False, 0), (True, 2)):
        for bound in (1, 3, 4 << finer):
            law = propose_for(moved_rows(rows), part(4, "0.05"), bound, mean, finer)
            for cells in (*data(5), (2,) * 40, (0, *(3,) * 30, 5), tuple(sorted((0, 1, 2, 3, 4, 5) * 9))):
                assert distance(ranks(cells), law) == local_laws.distance(law, list(cells), LAST)


def many_groups(last: int) -> tuple[Histograms, list[list[int]]]:
    """Return 300 groups, some of them empty, of up to 40 rows, and one cell with a thousand; and the cells of each group's
    rows."""
    generator = np.random.default_rng(7)
    groups = [sorted(generator.integers(0, last + 1, generator.integers(0, 9)).tolist() * 5) for _ in range(299)]
    groups.insert(3, [0] * 3 + [2] * 1000)
    counts = [sorted(Counter(cells).items()) for cells in groups]
    cell, count = np.array([pair for group in counts for pair in group], dtype=np.int64).T
    return Histograms(last + 1, np.cumsum([0, *map(len, counts)]), cell, count), groups


@pytest.mark.parametrize("rows", [1, 3, 50, 10**30])
def test_groups_are_computed_together_as_each_by_itself(rows: int) -> None:
    """Empty groups next to others, few and many weights, and units that may move more rows than exist."""
    last = 30
    histograms, groups = many_groups(last)
    together = Ranks(histograms)
    for epsilon, delta in ((4, "0.1"), (1, "0.01")):
        smooth = smooth_for(moved_rows(rows), part(epsilon, delta))
        exact = [local_laws.scale(smooth, cells, last) * smooth.alpha for cells in groups]
        assert largest_spread(together, smooth).tolist() == pytest.approx(exact)
    for mean, finer, bound in ((False, 0, 4), (True, 2, 25)):
        tested = propose_for(moved_rows(rows), part(9, "0.05"), bound, mean, finer)
        assert distance(together, tested).tolist() == [local_laws.distance(tested, cells, last) for cells in groups]
        released = means(together, finer) if mean else medians(together)
        assert released.tolist() == [local_laws.number(tested, cells, last) for cells in groups]


def test_values_that_cannot_differ_have_a_median_without_noise() -> None:
    law = smooth_for(ONE_ROW, part())
    one_cell = Histograms(1, np.array([0, 1, 1]), np.array([0]), np.array([7]))
    assert smooth_medians(one_cell, law, 8, KernelRandomness()).tolist() == [0, 0]


def test_the_threshold_of_lecture_notes_is_passed_far_too_often() -> None:
    """P(Y > ln(2 / delta) / (2 epsilon)) is about sqrt(delta / 8), while P(Y > T) is at most delta."""
    law = propose_for(ONE_ROW, part(1, "0.000001"), 3)
    epsilon = Fraction(law.test.s, law.test.t)
    noted = math.floor(math.log(2e6) / (2 * float(epsilon)))
    assert float(law.test.upper_tail(noted + 1)) > 100 * float(law.delta_0)
    assert law.test.upper_tail(law.threshold + 1) <= law.delta_0 < law.test.upper_tail(law.threshold)
    assert law.threshold == pytest.approx(math.log(5e5) / float(epsilon), abs=1)
    with pytest.raises(ValueError, match="more often than delta"):
        replace(law, threshold=law.threshold - 1)


# --- charges ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("counted", ["epsilon", "rho"])
def test_a_unit_pays_for_each_of_its_groups(groups: int, rows: int, counted: str) -> None:
    whole = part(1, "0.000001") if counted == "epsilon" else PrivacyLoss(None, Fraction(1, 10**6), Fraction(1, 2))
    for law in (smooth_for(moved_rows(rows, groups), whole), propose_for(moved_rows(rows, groups), whole, 7)):
        assert law.loss == law.recomputed_loss()
        spent, allowed = getattr(law.loss, counted), getattr(whole, counted)
        assert allowed * Fraction(999, 1000) <= spent <= allowed
        assert law.loss.delta == whole.delta and law.delta_0 == whole.delta / groups
        if isinstance(law, SmoothSensitivity):
            assert law.loss.rho == groups * rho_of_pure(law.epsilon_0)
            assert law.loss.epsilon == groups * law.epsilon_0


def test_weights_that_fall_too_fast_and_noise_that_is_too_small_cost_more() -> None:
    law = smooth_for(ONE_ROW, part(1, "0.000001"))
    for wrong in (replace(law, fall=law.fall + law.fall // 50), replace(law, alpha=2 * law.alpha)):
        again = wrong.recomputed_loss()
        assert again.delta > law.delta_0 or (again.epsilon or 0) > law.epsilon_0


def test_too_little_epsilon_is_refused() -> None:
    with pytest.raises(Refusal, match="too small"):
        smooth_for(ONE_ROW, part("1/100000", "0.000001"))
    with pytest.raises(Refusal, match="too small"):
        propose_for(ONE_ROW, part("1/100000000", "0.000001"), 1 << 30)


# --- draws -----------------------------------------------------------------------------------------------------------------

DRAWS = 60_000
ALLOWED = math.sqrt(math.log(2 / 1e-9) / (2 * DRAWS))


def groups(count: int) -> Groups:
    return Groups(pa.table({"k0": pa.array(range(count))}), count, True)


def equal_groups(rows: dict[int, int], count: int) -> pa.Table:
    cells = [(group, cell, number) for group in range(count) for cell, number in rows.items()]
    return pa.table({name: [row[place] for row in cells] for place, name in enumerate(("k0", "cell", "rows"))})


def apart(drawn: np.ndarray, law: Law, count: int, rows: dict[int, int]) -> float:
    """Return the largest distance between the empirical distribution and the law."""
    exact = local_laws.through(law, count, rows)
    steps = np.arange(REFUSED, exact.size + REFUSED)
    return float(np.abs(np.searchsorted(np.sort(drawn), steps, side="right") / drawn.size - exact).max())


SMOOTH_ROWS = {400: 6, 500: 7, 610: 6}
TESTED_ROWS = {300: 5, 500: 4, 505: 1, 700: 4}


@pytest.mark.statistical
def test_smooth_medians_have_their_law_and_no_other_scale() -> None:
    law = smooth_for(ONE_ROW, part(4, "0.001"))
    drawn = released_local(
        equal_groups(SMOOTH_ROWS, DRAWS), LocalSensitivityPlan("l0", 1000, law), groups(DRAWS), Gate()
    )["l0"]
    assert apart(drawn, law, 1000, SMOOTH_ROWS) <= ALLOWED
    for wrong in (law.alpha * 10 // 7, law.alpha * 10 // 13):
        assert apart(drawn, replace(law, alpha=wrong), 1000, SMOOTH_ROWS) > ALLOWED


@pytest.mark.statistical
@pytest.mark.parametrize(("mean", "finer", "bound"), [(False, 0, 10), (True, 2, 370)])
def test_tested_numbers_have_their_law_and_no_other_scale_of_test_or_noise(mean: bool, finer: int, bound: int) -> None:
    law = propose_for(ONE_ROW, part(3, "0.01"), bound, mean, finer)
    plan = LocalSensitivityPlan("l0", 1000, law, width=30)
    released = released_local(equal_groups(TESTED_ROWS, DRAWS), plan, groups(DRAWS), Gate())
    drawn = released["l0"]
    assert 0.1 < (drawn == REFUSED).mean() < 0.9, "an example that is refused at times"
    assert apart(drawn, law, 1000, TESTED_ROWS) <= ALLOWED
    for numerator, denominator in ((7, 10), (13, 10)):
        for step in ("test", "noise"):
            noise = getattr(law, step)
            other = replace(noise, t=noise.t * numerator, s=noise.s * denominator)
            wrong = law_with(law, **{step: other})
            assert apart(drawn, wrong, 1000, TESTED_ROWS) > ALLOWED, step
    low, high = released["l0low"], released["l0high"]
    assert ((low == REFUSED) == (drawn == REFUSED)).all() and ((high == REFUSED) == (drawn == REFUSED)).all()
    shown = drawn != REFUSED
    assert (low[shown] == np.maximum(drawn[shown] - 30, 0)).all()
    assert (high[shown] == np.minimum(drawn[shown] + 30 + (1 if mean else bound), 999 << finer)).all()


def law_with(law: ProposeTestRelease, **changed: object) -> ProposeTestRelease:
    """Return a law that its own checks would reject."""
    wrong = object.__new__(ProposeTestRelease)
    for name in ("sensitivity", "bound", "test", "noise", "threshold", "delta_0", "mean", "finer"):
        object.__setattr__(wrong, name, changed.get(name, getattr(law, name)))
    return wrong


@pytest.mark.statistical
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (7, 3), (2, 9), (1 << 27, (1 << 40) + 1)])
def test_rounded_noise_has_its_law(numerator: int, denominator: int) -> None:
    drawn = rounded_laplace(numerator, np.full(DRAWS, denominator, dtype=np.int64), KernelRandomness())
    scale = denominator / numerator
    points = np.unique(drawn)

    def distribution(point: np.ndarray) -> np.ndarray:
        above = 0.5 * np.exp(-(np.abs(point) + 0.5) / scale)
        below = 0.5 * np.exp(-(np.abs(point) - 0.5) / scale)
        return np.where(point >= 0, 1 - above, below)

    empirical = np.searchsorted(np.sort(drawn), points, side="right") / DRAWS
    assert np.abs(empirical - distribution(points)).max() <= ALLOWED


@pytest.mark.statistical
def test_each_value_has_a_scale_of_its_own() -> None:
    scales = np.tile(np.array([1, 100], dtype=np.int64), DRAWS)
    drawn = rounded_laplace(1, scales, KernelRandomness())
    small, large = drawn[scales == 1], drawn[scales == 100]
    assert np.abs(small).mean() == pytest.approx(0.96, abs=0.03)
    assert np.abs(large).mean() == pytest.approx(100, abs=3)


def test_what_is_no_law_is_not_drawn() -> None:
    histograms = laid_out(equal_groups({3: 2}, 1), 10, groups(1))

    class OtherLaw(SmoothSensitivity):
        """A class that may have another law than its base class."""

    law = smooth_for(ONE_ROW, part())
    derived = OtherLaw(*(getattr(law, field.name) for field in fields(law)))
    with pytest.raises(InternalError, match="unknown mechanism"):
        Gate().release_numbers("l0", histograms, derived, groups(1))


def test_a_group_without_rows_has_a_number_like_any_other() -> None:
    law = smooth_for(ONE_ROW, part())
    empty = equal_groups({3: 2}, 1).slice(0, 0)
    numbers = released_local(empty, LocalSensitivityPlan("l0", 10, law), groups(3), Gate())["l0"]
    assert numbers.size == 3 and (numbers >= 0).all() and (numbers <= 9).all()
    proposed = propose_for(ONE_ROW, part(1, "0.000001"), 3)
    refused = released_local(empty, LocalSensitivityPlan("l0", 10, proposed, 4), groups(3), Gate())
    assert all((column == REFUSED).all() for column in refused.values())
