"""What holds of every choice of a cell or a key, by the exponential mechanism and by permute-and-flip: exact laws of small histograms,
all their neighbours, the charge, and the error of the worst case."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import (
    CHOICE_MECHANISMS,
    EXPONENTIAL,
    OUTSIDE,
    PERMUTE_AND_FLIP,
    Choice,
    choice_for,
    end_for,
)
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent, end_key_for
from dpsql_audit.choice_laws import distance, flipped_log_chances, log_law, runs

HALF = Fraction(1, 2)
QUANTILES = [HALF, Fraction(1, 3), Fraction(9, 10), Fraction(0), Fraction(1)]
CELLS, WIDE = 4, 10**8
Histogram = tuple[int, ...]
AnyChoice = Choice | MostFrequent | EndKey


def moved(rows: int) -> Sensitivity:
    return Sensitivity(1, rows, rows * rows, rows)


def laws(mechanism: str) -> list[AnyChoice]:
    return [
        *(Choice(moved(1), q, Fraction(1), 3 if q in (0, 1) else 0, mechanism=mechanism) for q in QUANTILES),
        Choice(moved(1), Fraction(1), Fraction(1), 2, mechanism=mechanism, lean=21),
        MostFrequent(moved(1), Fraction(1), mechanism),
        EndKey(moved(1), Fraction(1), 2, 3, False, mechanism), EndKey(moved(1), Fraction(1), 2, 5, True, mechanism),
    ]  # fmt: skip


LAWS = [law for mechanism in CHOICE_MECHANISMS for law in laws(mechanism)]
every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


@cache
def log_chances(law: AnyChoice, histogram: Histogram, before: int = 0, behind: int = 0) -> list[float]:
    """Return log probabilities of any of `before` empty cells, of each cell, and of any of `behind` empty cells."""
    rows = {before + c: n for c, n in enumerate(histogram) if n}
    return log_law(law, before + CELLS + behind, rows, list(range(before, before + CELLS)))


def added(histogram: Histogram, cell: int, rows: int = 1) -> Histogram:
    return tuple(n + rows * (c == cell) for c, n in enumerate(histogram))


def pairs(count: int = 1) -> Iterator[tuple[Histogram, Histogram]]:
    """Yield histograms of low and high cells, without and with `count` additional rows in one cell."""
    for histogram in product((0, 1, 2, 12), repeat=CELLS):
        for cell in range(CELLS):
            yield histogram, added(histogram, cell, count)


def in_every_order(chances: list[float]) -> list[float]:
    """Return the probabilities by McKenna and Sheldon's definition: cells toss coins in a random order, and the first heads is
    chosen."""
    total = [0.0] * len(chances)
    for order in permutations(range(len(chances))):
        left = 1.0
        for cell in order:
            total[cell] += left * chances[cell]
            left *= 1 - chances[cell]
    return [chance / math.factorial(len(chances)) for chance in total]


@pytest.mark.parametrize("seed", range(5))
def test_the_law_of_permute_and_flip_is_that_of_asking_cells_in_a_random_order(seed: int) -> None:
    chances = [1.0, *np.random.default_rng(seed).random(5).tolist(), 1e-30]
    found = flipped_log_chances([math.log(chance) for chance in chances], [1] * 7)
    assert [math.exp(log) for log in found] == pytest.approx(in_every_order(chances), rel=1e-11)


def test_the_law_of_a_mode_is_that_of_the_textbook() -> None:
    """Probabilities are exp(epsilon_0 h(c)) divided by their sum."""
    for histogram in product(range(4), repeat=CELLS):
        parts = [math.exp(0.5 * rows) for rows in histogram]
        exact = [math.exp(p) for p in log_chances(MostFrequent(moved(1), HALF), histogram)]
        assert exact == pytest.approx([part / sum(parts) for part in parts], rel=1e-12)


@pytest.mark.parametrize("count", [1, 2])
@every_law
def test_neighbours_are_as_alike_as_is_charged(law: AnyChoice, count: int) -> None:
    """The largest log ratio is at most the charge in both directions, and rho bounds every divergence. For ranks, permute-and-flip
    reaches the charge where many cells move one way and one moves the other way; the exponential mechanism reaches it by the range
    of all ratios of a pair, which determines its rho."""
    loss = replace(law, sensitivity=moved(count)).loss
    claimed, rho = float(loss.epsilon or 0), float(loss.rho or 0)
    largest = widest = reached = 0.0
    is_rank = isinstance(law, Choice) and not law.lean
    for before, behind in ((0, WIDE), (WIDE, 0)) if is_rank else ((0, 0),):
        widths = [before] * (before > 0) + [1] * CELLS + [behind] * (behind > 0)
        for fewer, more in pairs(count):
            p, q = log_chances(law, fewer, before, behind), log_chances(law, more, before, behind)
            ratios = [a - b for a, b in zip(p, q, strict=True)]
            largest, widest = max(largest, *map(abs, ratios)), max(widest, max(ratios) - min(ratios))
            for mine, other in ((p, q), (q, p)):
                for order in (1.01, 2.0, 16.0):
                    both = zip(widths if len(p) > 2 else [1, 1], mine, other, strict=True)
                    terms = [w * math.exp(order * a + (1 - order) * b) for w, a, b in both]
                    reached = max(reached, math.log(math.fsum(terms)) / (order - 1) / (rho * order))
    assert largest <= claimed + 1e-11 and reached <= 1 + 1e-9
    if law.mechanism == EXPONENTIAL:
        assert 0.999 * claimed <= widest <= claimed + 1e-11 and (reached > 0.8 or is_rank)
    else:
        assert largest > (0.98 if count == 1 else 0.8) * claimed or not is_rank


@every_law
def test_replacing_a_row_is_covered_by_two_rows(law: AnyChoice) -> None:
    """And not by one: utilities of a mode move both ways."""
    largest = 0.0
    for histogram in product((0, 1, 3, 40), repeat=CELLS):
        for gone, come in product(range(CELLS), repeat=2):
            if histogram[gone]:
                p, q = log_chances(law, histogram), log_chances(law, added(added(histogram, gone, -1), come))
                largest = max(largest, *(abs(a - b) for a, b in zip(p, q, strict=True)))
    assert largest <= 2 * float(law.epsilon_0) + 1e-11
    assert largest > 1.9 or not isinstance(law, MostFrequent)


@pytest.mark.parametrize("sensitivity", [moved(1), Sensitivity(20, 20, 20, 1), Sensitivity(3, 8, 30, 5)], ids=repr)
@every_law
def test_both_roads_find_the_same_loss(law: AnyChoice, sensitivity: Sensitivity) -> None:
    law = replace(law, sensitivity=sensitivity, epsilon_0=Fraction(1, 3))
    assert law.loss == law.recomputed_loss() and law.loss.epsilon == sensitivity.l1 * Fraction(1, 3)
    assert law.mechanism != EXPONENTIAL or law.loss.rho == sensitivity.l2_squared * Fraction(1, 72)


def test_the_range_is_not_bounded_so_that_zcdp_keeps_the_exponential_mechanism() -> None:
    law = Choice(moved(1), HALF, Fraction(1), mechanism=PERMUTE_AND_FLIP)
    widest = 0.0
    for fewer, more in pairs():
        ratios = [a - b for a, b in zip(log_chances(law, fewer), log_chances(law, more), strict=True)]
        widest = max(widest, max(ratios) - min(ratios))
    assert widest > 1.1
    eighth = Choice(moved(1), HALF, Fraction(1)).loss.rho
    assert law.loss.rho is not None and eighth is not None and law.loss.rho > 3 * eighth


@pytest.mark.parametrize("sensitivity", [moved(1), Sensitivity(3, 6, 12, 2), Sensitivity(20, 20, 20, 1)], ids=repr)
def test_a_part_of_epsilon_is_spent_by_permute_and_flip_and_one_of_rho_by_the_exponential_mechanism(
    sensitivity: Sensitivity,
) -> None:
    tenth = Fraction(1, 10)
    pure, zcdp = PrivacyLoss(tenth, Fraction(0), None), PrivacyLoss(None, Fraction(0), tenth)
    for part, mechanism in ((pure, PERMUTE_AND_FLIP), (zcdp, EXPONENTIAL)):
        for law in (
            *(choice_for(sensitivity, quantile, 100, part) for quantile in QUANTILES),
            choice_for(sensitivity, Fraction(0), 100, part, 4),
            end_for(sensitivity, HALF, True, 100, part, Fraction(1, 40)), end_key_for(sensitivity, 5, False, part),
        ):  # fmt: skip
            assert law.mechanism == mechanism and law.recomputed_loss() == law.loss
            if part is pure:
                assert law.loss.epsilon == tenth
            else:
                assert law.loss.rho is not None and tenth * Fraction(999, 1000) < law.loss.rho <= tenth


def test_groups_cost_the_rho_of_each_of_them() -> None:
    """Three groups with two rows each, chosen independently: three times the rho of a choice that is 2 epsilon_0-DP. Twenty groups of
    one row cost twenty times as much as one, and not four hundred times."""
    law = MostFrequent(Sensitivity(3, 6, 12, 2), Fraction(1), PERMUTE_AND_FLIP)
    assert float(law.loss.rho or 0) == pytest.approx(3 * 2 * math.tanh(1))
    spread, alone = (Choice(moves, HALF, Fraction(1)).loss.rho for moves in (Sensitivity(20, 20, 20, 1), moved(1)))
    assert spread == 20 * (alone or 0)


@pytest.mark.parametrize(
    "law", [law for law in laws(PERMUTE_AND_FLIP) if isinstance(law, Choice) and not law.lean], ids=repr
)
def test_permute_and_flip_is_never_farther_off_than_the_exponential_mechanism(law: Choice) -> None:
    """This holds on average over the choice, for every histogram, and errors beyond any distance are less frequent."""
    nearer = 0.0
    for histogram in product((0, 1, 2, 7), repeat=CELLS):
        rows = {c: n for c, n in enumerate(histogram) if n}
        away = [float(distance(law, run, sum(histogram))) for run in runs(CELLS, list(range(CELLS)), rows)]
        mean = [
            math.fsum(d * math.exp(p) for d, p in zip(away, log_chances(chosen, histogram), strict=True))
            for chosen in (law, replace(law, mechanism=EXPONENTIAL))
        ]
        assert mean[0] <= mean[1] + 1e-12
        nearer = max(nearer, 1 - mean[0] / mean[1]) if mean[1] else nearer
    assert nearer > 0.2


@pytest.mark.parametrize("mechanism", CHOICE_MECHANISMS)
def test_the_worst_case_of_ranks_counts_and_ends_holds_and_comes_near(mechanism: str) -> None:
    """One cell is at distance 0 and all others as far away as possible."""
    cells = 50
    law = Choice(moved(1), HALF, HALF, mechanism=mechanism)
    rows = math.ceil(2 * law.rank_error(cells, 0.05)) + 1
    logs = log_law(law, cells, {25: rows}, list(range(cells)))
    assert 0.02 < 1 - math.exp(logs[25]) <= 0.05
    flipped = replace(law, mechanism=PERMUTE_AND_FLIP)
    assert flipped.rank_error(cells, 0.05) == pytest.approx(replace(law, mechanism=EXPONENTIAL).rank_error(cells, 0.1))
    pure, zcdp = PrivacyLoss(HALF, Fraction(0), None), PrivacyLoss(None, Fraction(0), Fraction(1, 32))
    part = pure if mechanism == PERMUTE_AND_FLIP else zcdp
    smallest = choice_for(moved(1), Fraction(0), cells, part)
    logs = log_law(smallest, cells, {cells - 1: 2 * smallest.rank}, list(range(cells)))
    assert smallest.mechanism == mechanism and 0.5 * float(OUTSIDE) < 1 - math.exp(logs[-1]) <= float(OUTSIDE)
    for keys in (2, cells):
        key, mode = EndKey(moved(1), HALF, keys, 1000, True, mechanism), MostFrequent(moved(1), HALF, mechanism)
        lead = math.ceil(key.count_error(keys, 0.05))
        assert 0.02 < 1 - math.exp(log_law(key, keys, {1: lead}, None)[1]) <= 0.05
        assert end_key_for(moved(1), keys, True, part).rows > 2 * lead
        lead = math.ceil(mode.count_error(keys, 0.05))
        assert 0.02 < 1 - math.exp(log_law(mode, keys, {1: lead}, list(range(keys)))[1]) <= 0.05
    assert EndKey(moved(1), HALF, 1, 3, True, mechanism).count_error(1, 0.05) == 0 == mode.count_error(1, 0.05)
