"""Partition selection: the table and the threshold keep their promises, and are tight."""

import math
from collections.abc import Iterator
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.noise_laws import gaussian_cdf

from dpsql.errors.exceptions import Refusal
from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.perturb import Gate
from dpsql.privacy.loss import PrivacyLoss, rho_of_pure
from dpsql.privacy.mechanisms import gaussian as gaussians
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms import partition_selection as selections
from dpsql.privacy.mechanisms.contract import Constant, Noise, Norm, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.partition_selection import (
    ONE,
    WEIGHT,
    Threshold,
    TruncatedGeometric,
    WeightedThreshold,
    choose_selection,
    lone_count,
    lone_delta,
    on_noise_grid,
    optimal,
    threshold,
    verify_table,
    weighted_sensitivity,
    weighted_threshold,
)

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
    """Return how many of `count` groups of `exact` units appear."""
    groups = Groups(pa.table({}), count, False)
    counts = Int128.from_int64(np.full(count, exact, dtype=np.int64))
    if noise is not None:
        (drawn,) = Gate().draw([noise], groups)
        counts = Gate().add("n", counts, noise, groups, drawn)
    return int(Gate().select("n", counts, selection, groups).sum())


def likely(observed: int, chance: float, count: int = COUNT) -> bool:
    """Return whether `observed` of `count` fits `chance` (false alarm 1e-9)."""
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
    """Within 1e-9 of the recursion in 60 digits, and no entry can be increased."""
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
    noise = Laplace(Sensitivity(l0, l0, l0, 1), 0, t, s)
    allowed = Fraction(str(delta))
    selection = threshold("n", l0, noise, allowed)
    q = math.exp(-s / t)

    def singleton(tau: int) -> float:
        return l0 * q ** (tau - 1) / (1 + q)

    assert singleton(selection.tau) <= delta < singleton(selection.tau - 1)
    with pytest.raises(ValueError):
        Threshold("n", l0, noise, selection.tau - 1, allowed)
    assert selection.loss == PrivacyLoss(Fraction(0), allowed, Fraction(0)) == selection.recomputed_loss()


def test_a_threshold_with_too_low_a_probability_for_the_mass_on_it_is_refused() -> None:
    """Scale 1, threshold 5: a lone unit passes with probability 0.0134, not 0.0049 (the probability at the threshold counts)."""
    noise = Laplace(UNIT, 0, 1, 1)
    assert float(noise.upper_tail(5 - 1)) == pytest.approx(0.013387, rel=1e-3)
    with pytest.raises(ValueError):
        Threshold("n", 1, noise, 5, Fraction("0.00493"))


@pytest.mark.parametrize("l0", [1, 3])
def test_gaussian_threshold_holds_on_its_own_grid(l0: int) -> None:
    delta = Fraction(1, 1000)
    units = Sensitivity(l0, l0, l0, 1)
    coarse = threshold("n", l0, Gaussian(units, 0, 5), delta)
    cdf = gaussian_cdf(5)
    assert l0 * (1 - cdf(coarse.tau - 2)) <= 1e-3 < l0 * (1 - cdf(coarse.tau - 4))
    fine = gaussians.noise_for(units, Fraction(l0, 200))
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
    # A threshold two units too low (the lone unit forgotten, or counted twice) is detected at once.
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
    good, bad = (threshold("n", 1, noise, allowed.delta) for noise in (rich, poor))
    assert choose_selection("u", 1, allowed, [bad, good]) is good
    assert choose_selection("u", 1, allowed, [bad]).kind == "truncated_geometric"
    assert choose_selection("u", 1, allowed).column == "u"
    with pytest.raises(ValueError):
        threshold("n", 1, Constant(Sensitivity(0, 0, 0, 0)), allowed.delta)
    tiny = PrivacyLoss(Fraction(1, 10**9), Fraction(1, 10**6), None)
    assert choose_selection("u", 1, tiny, [bad]) is bad
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


def allotments(keys: int, most: int, total: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to give at most `keys` keys at most `most` rows each and `total` in all, the fullest key first."""
    yield ()
    for first in range(min(most, total), 0, -1):
        for rest in allotments(keys - 1, first, total - first) if keys > 1 else [()]:
            yield (first, *rest)


@pytest.mark.parametrize(("keys", "most", "total"), [(1, 3, 3), (4, 4, 8), (6, 6, 6), (5, 2, 7), (9, 9, 9)])
@pytest.mark.parametrize("law", ["laplace", "gaussian", "coarse"])
def test_no_division_of_rows_among_keys_is_shown_more_often_than_delta(
    keys: int, most: int, total: int, law: str
) -> None:
    """Every vector of one unit's rows, compared with the true tails; including keys whose row counts nothing."""
    moved = Sensitivity(keys, total, total * most, most)
    noise: Noise = Gaussian(moved, 0, 7) if law == "gaussian" else Laplace(moved, 1 if law == "coarse" else 0, 9, 1)
    delta = Fraction(1, 1000)
    rule = threshold("n", keys, noise, delta)
    cdf = gaussian_cdf(7)
    q = math.exp(-1 / 9)

    def tail(x: int) -> float:
        return 1 - cdf(x - 1) if law == "gaussian" else q**x / (1 + q)

    def shown(rows: tuple[int, ...], tau: int) -> float:
        counts = [on_noise_grid(count, noise) for count in rows] + [0] * (keys - len(rows))
        return sum(tail(tau - count) for count in counts)

    worst = max(allotments(keys, most, total), key=lambda rows: shown(rows, rule.tau))
    assert shown(worst, rule.tau) <= float(lone_delta(noise, keys, rule.tau)) * (1 + 1e-9) <= 1e-3
    assert shown(worst, rule.tau - 2) > 1e-3, "the threshold is no more than a step above the lowest"
    with pytest.raises(ValueError):
        Threshold("n", keys, noise, rule.tau - 1, delta)


def weighted(groups: int, norm: Norm, factor: int = 1, part: Fraction = Fraction(1, 2)) -> WeightedThreshold:
    moved = weighted_sensitivity(groups, norm, factor)
    made = laplaces.noise_for(moved, part) if norm is Norm.L1 else gaussians.noise_for(moved, part**2 / 2)
    return weighted_threshold("sel", groups, norm, made, Fraction(1, 10**6), (groups + 1) // 2)


def weight_of(rule: WeightedThreshold, keys: int) -> int:
    return next(weight for most, weight in rule.weights if keys <= most)


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("groups", [2, 7, 60, 500])
@pytest.mark.parametrize("part", [Fraction(1, 10), Fraction(1, 2), Fraction(20)])
def test_a_unit_in_any_number_of_keys_stays_within_norm_and_delta(
    norm: Norm, factor: int, groups: int, part: Fraction
) -> None:
    rule = weighted(groups, norm, factor, part)
    scale = float(rule.noise.noise_scale)
    assert rule.l0 == groups * factor and rule.weights[-1][0] == groups
    weights = [weight_of(rule, keys) for keys in range(1, groups + 1)]
    assert min(weights) == weights[-1], "no unit counts less than with equal weights"
    for keys, weight in enumerate(weights, 1):
        assert (keys * weight if norm is Norm.L1 else math.isqrt(keys * weight * weight)) <= WEIGHT
        beyond = rule.tau - on_noise_grid(weight, rule.noise)
        tail = (
            math.exp(-beyond / scale) / (1 + math.exp(-1 / scale)) if norm is Norm.L1 else stats.norm.sf(beyond / scale)
        )
        assert factor * keys * tail <= 1e-6 * (1 + 1e-9)
    with pytest.raises(ValueError):
        WeightedThreshold("sel", rule.l0, rule.noise, rule.tau - rule.tau // 1000, rule.delta, rule.weights, 1)
    heavier = tuple((most, weight + WEIGHT // 4) for most, weight in rule.weights)
    with pytest.raises(ValueError):
        WeightedThreshold("sel", rule.l0, rule.noise, rule.tau, rule.delta, heavier, 1)
    assert rule.loss == PrivacyLoss(Fraction(0), Fraction(1, 10**6), Fraction(0)) == rule.recomputed_loss()


def test_weights_show_keys_of_fewer_units_where_units_have_few_keys() -> None:
    """If units have one key each, a sixtieth (its square root under L2) of the units suffices; if in all keys, as many as with
    equal weights."""
    for norm, share in ((Norm.L1, 60), (Norm.L2, math.sqrt(60))):
        rule = weighted(60, norm)
        unit = 2.0**-rule.noise.shift
        few, many = (rule.tau / (weight_of(rule, keys) * unit) for keys in (1, 60))
        assert many / few == pytest.approx(share, rel=0.01)
        moved = Sensitivity(60, 60, 60, 1)
        noise = (
            laplaces.noise_for(moved, Fraction(1, 2)) if norm is Norm.L1 else gaussians.noise_for(moved, Fraction(1, 8))
        )
        assert math.ceil(many) <= threshold("sel", 60, noise, rule.delta).half_point() + 1
        assert few < rule.half_point() < many


@pytest.mark.parametrize("norm", list(Norm))
def test_a_lone_unit_passes_the_weighted_threshold_as_rarely_as_delta_says(norm: Norm) -> None:
    moved = weighted_sensitivity(3, norm, 1)
    noise = laplaces.noise_for(moved, Fraction(1, 2)) if norm is Norm.L1 else gaussians.noise_for(moved, Fraction(1, 8))
    rule = weighted_threshold("sel", 3, norm, noise, Fraction(3, 100), 2)
    most = rule.weights[-1][1]
    drawn = 4 * COUNT  # enough draws that twice the weight passes nine deviations too often
    assert likely(kept(rule, most, drawn, noise), 0.01, drawn)
    assert not likely(kept(rule, 2 * most, drawn, noise), 0.01, drawn)
    assert kept(rule, -(10**12), noise=noise) == 0
    assert kept(rule, 10**12, noise=noise) == COUNT


def test_delta_of_a_replaced_unit_is_that_of_both() -> None:
    """A key that both neighbours have moves by one and has noise of epsilon; only one side has A, only the other B. The exact
    distance of the answers is at most P(A shown) + P(B shown), and more than that of the side whose key is shown less often."""
    epsilon, a, b = 0.5, 0.02, 0.03
    q = math.exp(-epsilon)
    left = {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-60, 61)}
    right = {x: (1 - q) / (1 + q) * q ** abs(x - 1) for x in range(-60, 61)}

    def distance(first: dict[int, float], second: dict[int, float], chance: float, other: float) -> float:
        """Return the distance; answers that show the first side's key never come from the second side, and vice versa."""
        neither = sum(max(0.0, first[x] * (1 - chance) - math.exp(epsilon) * second[x] * (1 - other)) for x in first)
        return neither + chance * sum(first.values())

    assert 1.1 * a < distance(left, right, a, b) <= a + b
    assert distance(right, left, b, a) == pytest.approx(b)
