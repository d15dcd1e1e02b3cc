"""Partition selection: the table and the threshold keep what they promise, and no more."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.noise_laws import gaussian_cdf

from dpsql.errors.exceptions import Refusal
from dpsql.noise.group_layout import Groups
from dpsql.noise.int128 import Int128
from dpsql.noise.perturb import Gate
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian as gaussians
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms import partition_selection as selections
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.partition_selection import (
    ONE,
    Threshold,
    TruncatedGeometric,
    choose_selection,
    lone_count,
    optimal,
    threshold,
    verify_table,
)
from dpsql.privacy.pure_to_zcdp import rho_of_pure

UNIT = Sensitivity(1, 1, 1, 1)
PRICES = [
    (Fraction(1, 10), Fraction(1, 10**9)),
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(1, 100), Fraction(1, 1000)),
    (Fraction(3), Fraction(1, 100)),
    (Fraction(0), Fraction(1, 50)),
    (Fraction(10**6), Fraction(1, 10**18)),
]
COUNT = 200_000


def kept(selection: Threshold | TruncatedGeometric, exact: int, count: int = COUNT, noise: Noise | None = None) -> int:
    """How many of `count` groups of `exact` units appear."""
    groups = Groups(pa.table({}), count, False)
    counts = Int128.from_int64(np.full(count, exact, dtype=np.int64))
    if noise is not None:
        (drawn,) = Gate().draw([noise], groups)
        counts = Gate().add("n", counts, noise, groups, drawn)
    return int(Gate().select("n", counts, selection, groups).sum())


def likely(observed: int, chance: float, count: int = COUNT) -> bool:
    """Whether `observed` of `count` fits `chance` (false alarm 1e-9)."""
    return bool(stats.binomtest(observed, count, chance).pvalue > 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_table_keeps_the_conditions_exactly(epsilon: Fraction, delta: Fraction) -> None:
    getcontext().prec = 70
    table = optimal("n", 1, PrivacyLoss.pure(epsilon, delta)).table.tolist()
    ratio = Fraction((Decimal(min(epsilon, 50).numerator) / Decimal(min(epsilon, 50).denominator)).exp())
    ratio *= 1 + Fraction(1, 10**60)
    pi = [Fraction(value, ONE) for value in table]
    assert pi[0] == 0 and pi[-1] == 1 and 0 < pi[1] <= delta
    for before, after in zip(pi, [*pi[1:], pi[-1]], strict=True):
        assert before <= after <= ratio * before + delta
        assert 1 - before <= ratio * (1 - after) + delta


@pytest.mark.parametrize(("epsilon", "delta"), PRICES[:4])
def test_table_is_the_optimum_of_the_paper(epsilon: Fraction, delta: Fraction) -> None:
    """Within 1e-9 of the recursion in 60 digits, and nothing can be added to any entry."""
    getcontext().prec = 60
    e = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
    d = Decimal(delta.numerator) / Decimal(delta.denominator)
    table, exact = optimal("n", 1, PrivacyLoss.pure(epsilon, delta)).table.tolist(), Decimal(0)
    for n, value in enumerate(table):
        assert Decimal(value) / ONE <= exact + Decimal("1e-50")
        assert Decimal(value) / ONE >= exact - Decimal("1e-9")
        if 0 < value < ONE and n % 7 == 1:
            more = [*table[:n], min(ONE, value + ONE // 10**6), *table[n + 1 :]]
            with pytest.raises(ValueError):
                verify_table(more, epsilon, delta)
        exact = min(e * exact + d, 1 - (1 - exact - d) / e, Decimal(1))


def test_bad_tables_are_noticed() -> None:
    epsilon, delta = Fraction(1), Fraction(1, 100)
    table = optimal("n", 1, PrivacyLoss.pure(epsilon, delta)).table.tolist()
    verify_table(table, epsilon, delta)
    for bad in ([1, *table[1:]], [*table[:5], 0, *table[6:]], [], table[1:], [0, ONE]):
        with pytest.raises(ValueError):
            verify_table(bad, epsilon, delta)
    with pytest.raises(ValueError):
        verify_table(table, epsilon / 2, delta)
    with pytest.raises(ValueError):
        verify_table(table, epsilon, delta / 2)


def test_a_table_that_breaks_its_promise_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructor checks the finished table and does not trust the recursion."""
    monkeypatch.setattr(selections, "_growth", lambda epsilon: round(2**64 * math.exp(epsilon) * 1.001))
    with pytest.raises(ValueError):
        TruncatedGeometric("n", 1, Fraction(1, 7), Fraction(1, 1234567))


def test_no_word_admits_a_group_of_nobody() -> None:
    class Zeros:
        def read(self, size: int) -> bytes:
            return b"\0" * size

    rule = optimal("n", 1, PrivacyLoss.pure(Fraction(1), Fraction(1, 100)))
    admitted = Gate(Zeros()).select("n", Int128.from_ints([0, 1, -1]), rule, Groups(pa.table({}), 3, False))
    assert admitted.tolist() == [False, True, False]


def test_selection_costs_add_up_over_the_keys_of_a_unit() -> None:
    allowed = PrivacyLoss.pure(Fraction(1, 2), Fraction(1, 10**6))
    selection = optimal("n", 5, PrivacyLoss(allowed.epsilon, allowed.delta, None))
    assert selection.epsilon_per_key == Fraction(1, 10) and selection.delta_per_key == Fraction(1, 5 * 10**6)
    assert selection.loss == PrivacyLoss(Fraction(1, 2), Fraction(1, 10**6), 5 * rho_of_pure(Fraction(1, 10)))
    assert selection.recomputed_loss() == selection.loss
    concentrated = optimal("n", 5, PrivacyLoss(None, Fraction(1, 10**6), Fraction(1, 8)))
    assert concentrated.loss.rho is not None
    assert Fraction(1, 8) * (1 - Fraction(1, 2**100)) <= concentrated.loss.rho <= Fraction(1, 8)
    assert concentrated.epsilon_per_key > selection.epsilon_per_key
    with pytest.raises(ValueError):
        optimal("n", 5, PrivacyLoss(None, Fraction(1, 10), None))
    with pytest.raises(ValueError):
        optimal("n", 0, allowed)


@pytest.mark.parametrize(
    ("t", "s", "l0", "delta"), [(1, 1, 1, 0.01), (10, 1, 1, 1e-9), (10, 1, 20, 1e-6), (7, 3, 2, 1e-4)]
)
def test_laplace_threshold_is_the_smallest_that_counts_its_own_mass(t: int, s: int, l0: int, delta: float) -> None:
    noise = Laplace(UNIT, 0, t, s)
    allowed = Fraction(str(delta))
    selection = threshold("n", l0, noise, allowed)
    q = math.exp(-s / t)

    def singleton(tau: int) -> float:
        return l0 * q ** (tau - 1) / (1 + q)

    assert singleton(selection.tau) <= delta < singleton(selection.tau - 1)
    with pytest.raises(ValueError):
        Threshold("n", l0, noise, selection.tau - 1, allowed)
    assert selection.loss == PrivacyLoss(Fraction(0), allowed, Fraction(0)) == selection.recomputed_loss()


def test_the_threshold_a_library_got_wrong() -> None:
    """Scale 1, threshold 5: a lone unit passes with probability 0.0134, not 0.0049 (mass at the threshold)."""
    noise = Laplace(UNIT, 0, 1, 1)
    assert float(noise.upper_tail(5 - 1)) == pytest.approx(0.013387, rel=1e-3)
    with pytest.raises(ValueError):
        Threshold("n", 1, noise, 5, Fraction("0.00493"))


@pytest.mark.parametrize("l0", [1, 3])
def test_gaussian_threshold_holds_on_its_own_grid(l0: int) -> None:
    delta = Fraction(1, 1000)
    coarse = threshold("n", l0, Gaussian(UNIT, 0, 5), delta)
    cdf = gaussian_cdf(5)
    assert l0 * (1 - cdf(coarse.tau - 2)) <= 1e-3 < l0 * (1 - cdf(coarse.tau - 4))
    fine = gaussians.noise_for(UNIT, Fraction(1, 200))
    selection = threshold("n", l0, fine, delta)
    assert lone_count(fine) == 1 << 16 and isinstance(fine, Gaussian)
    tail = stats.norm.sf((selection.tau - lone_count(fine) - 0.5) / fine.sigma)
    assert l0 * tail == pytest.approx(1e-3, rel=1e-4) and l0 * tail <= 1e-3
    with pytest.raises(ValueError):
        Threshold("n", l0, fine, selection.tau - 1, delta)


def test_lone_count_follows_linf_and_the_grid() -> None:
    assert lone_count(Laplace(Sensitivity(1, 4, 16, 4), 0, 1, 1)) == 4
    assert lone_count(Laplace(Sensitivity(1, 4, 16, 4), 2, 1, 1)) == 1
    assert lone_count(Gaussian(Sensitivity(1, 4, 16, 4), -3, 1)) == 32
    wide = threshold("n", 1, Laplace(Sensitivity(1, 4, 16, 4), 0, 8, 1), Fraction(1, 100))
    narrow = threshold("n", 1, Laplace(UNIT, 0, 8, 1), Fraction(1, 100))
    assert wide.tau == narrow.tau + 3


@pytest.mark.parametrize("noise", [laplaces.noise_for(UNIT, Fraction(1, 2)), gaussians.noise_for(UNIT, Fraction(1, 8))])
def test_lone_units_pass_the_threshold_as_rarely_as_delta_says(noise: Noise) -> None:
    delta = Fraction(1, 100)
    selection = threshold("n", 1, noise, delta)
    chance = float(noise.upper_tail(selection.tau - lone_count(noise)))
    assert chance <= 0.01
    observed = kept(selection, 1, noise=noise)
    assert likely(observed, chance)
    # Two units too low (the lone unit forgotten, or twice) is seen at once.
    assert not likely(kept(selection, 2, noise=noise), chance)
    assert kept(selection, -(10**6), noise=noise) == 0
    assert kept(selection, 10**6, noise=noise) == COUNT


def test_lone_units_pass_the_table_as_rarely_as_delta_says() -> None:
    selection = optimal("n", 1, PrivacyLoss.pure(Fraction(1, 2), Fraction(1, 100)))
    assert likely(kept(selection, 1), 0.01)
    assert not likely(kept(selection, 2), 0.01)
    assert kept(selection, 0) == kept(selection, -5) == 0
    middle = selection.half_point()
    assert likely(kept(selection, middle), float(selection.table[middle]) / ONE)
    assert kept(selection, len(selection.table)) == kept(selection, 10**9) == COUNT


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_the_table_dominates_the_threshold_at_equal_price(epsilon: Fraction) -> None:
    delta = Fraction(1, 10**5)
    noise = laplaces.noise_for(UNIT, epsilon)
    rule, line = optimal("n", 1, PrivacyLoss.pure(epsilon, delta)), threshold("n", 1, noise, delta)
    law = stats.dlaplace(float(epsilon))
    for n in range(1, 2 * line.tau):
        table = float(rule.table[min(n, rule.table.size - 1)]) / ONE
        assert table >= law.sf(line.tau - n - 1) * (1 - 1e-6)
    assert rule.half_point() <= line.half_point()


def test_choice_takes_the_lower_half_point() -> None:
    allowed = PrivacyLoss(Fraction(1, 10), Fraction(1, 10**6), None)
    rich, poor = laplaces.noise_for(UNIT, Fraction(1)), laplaces.noise_for(UNIT, Fraction(1, 100))
    assert choose_selection("u", 1, allowed, "n", rich).kind == "threshold"
    assert choose_selection("u", 1, allowed, "n", rich).column == "n"
    assert choose_selection("u", 1, allowed, "n", poor).kind == "truncated_geometric"
    assert choose_selection("u", 1, allowed).column == "u"
    fixed = Constant(Sensitivity(0, 0, 0, 0))
    assert choose_selection("u", 1, allowed, "n", fixed).kind == "truncated_geometric"
    tiny = PrivacyLoss(Fraction(1, 10**9), Fraction(1, 10**6), None)
    assert choose_selection("u", 1, tiny, "n", poor).kind == "threshold"
    with pytest.raises(Refusal) as caught:
        choose_selection("u", 1, tiny)
    assert caught.value.slug == "selection_epsilon"


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**19), Fraction(1)])
def test_deltas_out_of_range_are_refused(delta: Fraction) -> None:
    with pytest.raises(Refusal) as caught:
        optimal("n", 1, PrivacyLoss.pure(Fraction(1), delta))
    assert caught.value.slug == "selection_delta"
    if delta in (0, 1):
        with pytest.raises(Refusal):
            threshold("n", 1, laplaces.noise_for(UNIT, Fraction(1)), delta)
