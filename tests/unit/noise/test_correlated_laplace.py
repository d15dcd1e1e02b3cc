"""Multivariate Laplace noise: one W per vector, exact draws, and the guarantee that its rho bounds."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.noise_laws import ALPHA, fit, gaussian_cdf

from dpsql.errors.exceptions import Fault, Refusal
from dpsql.noise.group_layout import Groups
from dpsql.noise.noise_samplers import FRACTION, LEAST_SQUARE, MOST_BITS, correlated_vectors, tied
from dpsql.noise.perturb import Gate
from dpsql.noise.samplers import MOST_SIGMA, KernelRandomness, _half_gaussian_of, gaussian_of_variance, tail_edges
from dpsql.privacy.accounting import rho_to_epsilon
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.correlated_laplace import (
    MOST_LEAST_SIGMA,
    MOST_NARROW,
    STEPS,
    TIES,
    CorrelatedLaplace,
    noise_for,
    wide_bits,
)
from dpsql.privacy.mechanisms.registry import from_json, to_json
from dpsql_audit.lower_bounds import _confirmed as confirmed_bound
from dpsql_audit.lower_bounds import _log_ratios as log_ratios_of

ONE = Sensitivity(1, 1, 1, 1)
LAW = CorrelatedLaplace(ONE, 0, 100)


@pytest.mark.parametrize("square", [1, 2, 7, 300, 12_345, 1 << 39])
def test_gaussians_of_any_whole_variance_have_their_law_and_no_other_scale(square: int) -> None:
    drawn = gaussian_of_variance(100_000, square, KernelRandomness())
    deviation = math.sqrt(square)
    assert fit(drawn, gaussian_cdf(deviation), deviation) > ALPHA
    for wrong in (0.7, 1.3):
        assert fit(drawn, gaussian_cdf(deviation * wrong), deviation) < 1e-12


def test_a_variance_out_of_range_is_not_drawn() -> None:
    for square in (0, MOST_SIGMA**2 + 1):
        with pytest.raises(Fault):
            gaussian_of_variance(1, square, KernelRandomness())


def test_a_vector_has_one_w_of_the_discrete_exponential_law() -> None:
    """The variance of 2,000 entries of a vector determines its W to 3 %. W has an exponential law; both tails are tested."""
    drawn = correlated_vectors(LAW, 3000, 2000, KernelRandomness())
    steps = drawn.astype(float).var(axis=1) / LAW.least_sigma**2
    for least in (8, 32, 64, 160, 320):
        share, expected = float((steps > least).mean()), math.exp(-least / STEPS)
        assert abs(share - expected) < 6 * math.sqrt(expected / 3000) + 0.03 * expected
    assert steps.min() > 0.8, "no W is below its least"
    normal = drawn / np.sqrt(steps)[:, None] / LAW.least_sigma
    assert stats.kstest(normal[::30].reshape(-1)[:50_000], "norm").pvalue > ALPHA


def test_entries_are_uncorrelated_and_their_magnitudes_are_not() -> None:
    drawn = correlated_vectors(LAW, 20_000, 2, KernelRandomness()).astype(float)
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.08
    shared = np.corrcoef(np.abs(drawn[:, 0]), np.abs(drawn[:, 1]))[0, 1]
    assert 0.15 < shared < 0.35, "of the continuous law (2 / pi - 1 / 2) / (1 - 1 / 2) = 0.27"


def test_the_gate_draws_each_term_a_vector_of_its_own() -> None:
    groups = Groups(pa.table({}), 2000, True)
    sizes = np.array(
        [[np.std(noise) for noise in Gate().draw([LAW, LAW], groups) if noise is not None] for _ in range(300)]
    )
    assert sizes.shape == (300, 2)
    assert abs(np.corrcoef(sizes[:, 0], sizes[:, 1])[0, 1]) < 0.4
    assert sizes.max() > 3 * sizes.min(), "the deviation of a vector is drawn, too"


def test_no_v_that_192_bits_can_mean_is_out_of_range() -> None:
    steps = len(tail_edges(Fraction(1, STEPS), Fraction(0), 192))
    assert steps * MOST_NARROW**2 < MOST_SIGMA**2 and (MOST_NARROW // 2) ** 2 > LEAST_SQUARE
    bits = [wide_bits(u) for u in (1, MOST_NARROW, MOST_NARROW + 1, 2 * MOST_NARROW, MOST_LEAST_SIGMA)]
    assert bits == [0, 0, 1, 1, MOST_BITS]


@pytest.mark.parametrize("least_sigma", [MOST_NARROW + 2, 5 << 14, MOST_LEAST_SIGMA])
def test_wide_noise_has_the_law_of_its_least_sigma(least_sigma: int) -> None:
    """For a single entry, the half widths of many levels equal those of the mean of the Gaussians over W, and of no other
    scale."""
    law = CorrelatedLaplace(ONE, 0, least_sigma)
    drawn = np.abs(correlated_vectors(law, 20_000, 1, KernelRandomness()))
    for confidence in (0.1, 0.5, 0.9, 0.99):
        share = float((drawn <= law.half_width(confidence)).mean())
        assert abs(share - confidence) < 6 * math.sqrt(confidence * (1 - confidence) / 20_000)
    for wrong in (0.7, 1.3):
        assert abs(float((drawn * wrong <= law.half_width(0.5)).mean()) - 0.5) > 0.05


@pytest.mark.parametrize("tie", [0, 57])
@pytest.mark.parametrize("rho", [Fraction(1, 10**4), Fraction(1, 4 * 10**8)])
def test_questions_of_little_epsilon_get_noise_of_the_ideal_width(rho: Fraction, tie: int) -> None:
    """Sums that a person moves by 100 in one group: a coarser grid for a smaller u would add up to half as much again. The least
    rho of a count without a correlation is that of Gaussian noise."""
    if tie and rho < Fraction(1, 10**8):
        with pytest.raises(Refusal, match="correlated_laplace") as refused:
            noise_for(Sensitivity(1, 100, 10_000, 100), rho, tie)
        assert "SET dp.mechanism = 'auto' or dp.correlation = 0" in refused.value.hint
        with pytest.raises(Refusal, match="correlated_laplace") as refused:
            noise_for(Sensitivity(1, 100, 10_000, 100), rho / 10**5)
        assert "'auto'" in refused.value.hint and "dp.correlation" not in refused.value.hint
        return
    law = noise_for(Sensitivity(1, 100, 10_000, 100), rho, tie)
    ideal = math.sqrt(64.502 / (2 * float(rho))) * 100 * (math.sqrt((64 + tie) / (64 - tie)) if tie else 1)
    assert law.standard_deviation() == pytest.approx(ideal, rel=0.03)
    assert law.loss.rho is not None and rho * Fraction(94, 100) < law.loss.rho <= rho


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_divergences_of_vectors_are_below_rho_and_come_near_it(cells: int) -> None:
    """Renyi divergences of orders 2 to 65,536, from the definition, if W is published, which is the worst case. Each entry moves
    by 1."""
    moved = Sensitivity(cells, cells, cells, 1)
    law = CorrelatedLaplace(moved, 0, 40)
    assert law.loss.rho is not None
    rho, j = float(law.loss.rho), np.arange(1, STEPS * 45, dtype=float)
    chances = -math.expm1(-1 / STEPS) * np.exp(-(j - 1) / STEPS)
    by_order = []
    for order in (2, 16, 256, 4096, 65536):
        exponents = order * (order - 1) * cells / (2 * j * law.least_sigma**2)
        most = exponents.max()
        divergence = (most + math.log(float(np.sum(chances * np.exp(exponents - most))))) / (order - 1)
        by_order.append(divergence / order)
        assert by_order[-1] <= rho * (1 + 1e-12)
    assert by_order[0] < rho / 4 and by_order[-1] > 0.999 * rho


def test_the_hidden_w_tells_less_in_every_order() -> None:
    """The law of one entry moved by 1, summed over all W, has a divergence below rho times the order."""
    law = CorrelatedLaplace(ONE, 0, 1)
    z = np.arange(-400, 401, dtype=float)
    mass = np.zeros(len(z))
    for j in range(1, STEPS * 45):
        gaussian = np.exp(-(z**2) / (2 * j))
        mass += math.exp(-(j - 1) / STEPS) * gaussian / gaussian.sum()
    p, q = np.log(mass[1:] / mass.sum()), np.log(mass[:-1] / mass.sum())
    for order in (2, 8, 64):
        divergence = math.log(float(np.sum(np.exp(order * p + (1 - order) * q)))) / (order - 1)
        assert 0 < divergence < float(law.loss.rho or 0) * order


@pytest.mark.parametrize("moved", [(1, 0), (1, 1), (2, -1), (3, 3)])
def test_no_set_of_answers_is_likelier_than_epsilon_and_delta_allow(moved: tuple[int, int]) -> None:
    """By brute force over the law of two integer entries: delta at the epsilon implied by rho, with W hidden or published, in
    both directions."""
    square = sum(step * step for step in moved)
    law = CorrelatedLaplace(Sensitivity(2, square, square, 3), 0, 2)
    rho, z = law.loss.rho, np.arange(-400, 401, dtype=float)
    assert rho == Fraction(square, 8)
    j = np.arange(1, STEPS * 45, dtype=float)[:, None]
    chances = -np.expm1(-1 / STEPS) * np.exp(-(j - 1) / STEPS)
    of_entry = np.exp(-(z**2) / (2 * j * law.least_sigma**2))
    of_entry /= of_entry.sum(axis=1, keepdims=True)
    joint = of_entry.T @ (chances * of_entry)
    assert joint.sum() == pytest.approx(1, abs=1e-9)
    beside = np.roll(joint, moved, axis=(0, 1))
    for delta in (Fraction(1, 10), Fraction(1, 100), Fraction(1, 10**4)):
        factor = math.exp(rho_to_epsilon(rho, delta))
        hidden = [float(np.maximum(p - factor * q, 0).sum()) for p, q in ((joint, beside), (beside, joint))]
        published = 0.0
        for chance, entry in zip(chances[:400, 0], of_entry[:400], strict=True):
            cut = entry[300:501]  # 50 deviations of the least W, 2.5 of the widest here
            rows = np.outer(cut, cut)
            published += chance * float(
                np.maximum(rows - factor * np.roll(rows, moved, axis=(0, 1)), 0)[4:-4, 4:-4].sum()
            )
        assert max(hidden) <= published + 1e-6 and published <= float(delta)


def test_scales_that_cannot_be_drawn_are_no_laws() -> None:
    for least_sigma, shift in ((0, 0), (MOST_LEAST_SIGMA + 1, 0), (MOST_NARROW + 1, 0), (5, -41), (5, 128)):
        with pytest.raises(ValueError, match="not a scale"):
            CorrelatedLaplace(ONE, shift, least_sigma)
    with pytest.raises(ValueError, match="rho"):
        noise_for(ONE, Fraction(0))
    with pytest.raises(ValueError, match="Constant"):
        CorrelatedLaplace(Sensitivity(1, 0, 0, 0), 0, 5)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_bars_of_one_entry_and_replicates_of_vectors_cover_what_is_drawn(confidence: float) -> None:
    law = noise_for(ONE, Fraction(1, 2))
    assert isinstance(law, CorrelatedLaplace)
    drawn = np.abs(correlated_vectors(law, 40_000, 1, KernelRandomness())) * 2.0**law.shift
    share = float((drawn <= law.half_width(confidence)).mean())
    assert abs(share - confidence) < 6 * math.sqrt(confidence * (1 - confidence) / 40_000)
    random = np.random.default_rng(5)
    again = law.joint_quantiles(random.random((40_000, 1)), random.random((40_000, 3)))
    totals = np.abs(again.sum(axis=1)) * 2.0**law.shift
    exact = np.abs(correlated_vectors(law, 40_000, 3, KernelRandomness()).sum(axis=1)) * 2.0**law.shift
    assert float((exact <= np.quantile(totals, confidence)).mean()) == pytest.approx(confidence, abs=0.025)


@pytest.mark.parametrize("tie", [1, 32, 58, 63])
def test_tied_noise_is_what_a_series_of_noisy_differences_gives(tie: int) -> None:
    """Integer post-processing of y = B x + G, step by step as in the proof, gives x plus the tied noise."""
    random = np.random.default_rng(tie)
    x, noise = random.integers(-(10**9), 10**9, 50).tolist(), random.integers(-(2**24), 2**24, (1, 50))
    first, one = math.isqrt(TIES**2 - tie**2 - 1) + 1, 1 << FRACTION
    before = None
    shown = []
    for here, drawn, previous in zip(x, noise[0].tolist(), [0, *x], strict=False):
        if before is None:
            before = (first * here + drawn) * one // first
        else:
            before = ((TIES * here - tie * previous + drawn) * one + tie * before) // TIES
        shown.append((before + one // 2) // one)
    assert shown == (np.array(x) + tied(noise, tie)[0]).tolist()


@pytest.mark.parametrize("tie", [1, 20, 58, 63])
def test_differences_of_a_moved_vector_are_no_longer_than_the_price_says(tie: int) -> None:
    """For random vectors, and for the alternating one, which comes near; and both computations of the price agree."""
    random = np.random.default_rng(3)
    first = math.isqrt(TIES**2 - tie**2 - 1) + 1
    alternating = np.array([(-1) ** i for i in range(400)])
    worst = 0.0
    for moved in (alternating, *random.integers(-3, 4, (200, 6)), *np.eye(6, dtype=int)):
        differences = TIES * moved - tie * np.concatenate(([0], moved[:-1]))
        differences[0] = first * moved[0]
        if moved.any():
            worst = max(worst, float((differences**2).sum() / (moved**2).sum()))
    assert 0.98 * (TIES + tie) ** 2 < worst <= (TIES + tie) ** 2
    law = noise_for(Sensitivity(3, 7, 19, 4), Fraction(1, 3), tie)
    assert law.loss == law.recomputed_loss() and Fraction(33, 100) < (law.loss.rho or 0) <= Fraction(1, 3)
    assert from_json(to_json(law)) == law


@pytest.mark.parametrize("tie", [16, 58])
def test_tied_noise_has_its_deviation_correlation_and_bars(tie: int) -> None:
    law = noise_for(ONE, Fraction(1, 2), tie)
    assert isinstance(law, CorrelatedLaplace)
    drawn = correlated_vectors(law, 20_000, 30, KernelRandomness()) * 2.0**law.shift
    for cell in (0, 1, 29):
        for confidence in (0.5, 0.95):
            share = float((np.abs(drawn[:, cell]) <= law.half_width(confidence)).mean())
            assert abs(share - confidence) < 6 * math.sqrt(confidence * (1 - confidence) / 20_000)
    random = np.random.default_rng(8)
    of_one_w = tied(np.rint(random.normal(size=(20_000, 30)) * 1e6).astype(np.int64), tie)
    for distance in (1, 2, 5):
        correlation = float(np.corrcoef(of_one_w[:, 20], of_one_w[:, 20 - distance])[0, 1])
        assert correlation == pytest.approx((tie / TIES) ** distance, abs=0.04)
    plain = noise_for(ONE, Fraction(1, 2))
    ratio = law.standard_deviation() / plain.standard_deviation()
    assert ratio == pytest.approx(math.sqrt((TIES + tie) / (TIES - tie)), rel=1e-3)
    again = np.abs(law.joint_quantiles(random.random((20_000, 1)), random.random((20_000, 30))).sum(axis=1))
    totals = np.abs(drawn.sum(axis=1))
    assert float((totals <= np.quantile(again, 0.95) * 2.0**law.shift).mean()) == pytest.approx(0.95, abs=0.015)


def test_a_lower_bound_of_what_is_drawn_is_below_the_price() -> None:
    """At delta 1e-3, from the likelihood of whole vectors; drawing and reading the noise share no code."""
    moved = Sensitivity(2, 2, 2, 1)
    for tie in (0, 32):
        law = noise_for(moved, Fraction(8), tie)
        left, right = {("a",): 1, ("b",): 1}, dict[tuple[object, ...], int]()
        ratios = log_ratios_of(Gate(), law, left, right, 800)
        assert law.loss.rho is not None and law.loss.rho <= 8
        confirmed = confirmed_bound(ratios[0], ratios[1], 1e-3, 1e-6)
        assert confirmed <= float(rho_to_epsilon(law.loss.rho, Fraction(1, 1000)))


@pytest.mark.parametrize("square", [2, 7, 300, 12_345, (1 << 40) - 1])
def test_what_is_proposed_for_any_whole_variance_is_the_fraction_and_never_too_rare(square: int) -> None:
    law = _half_gaussian_of(square)
    for j in (0, 1, 2, 17, 100):
        for y in (j * law.width, j * law.width + law.width // 2, (j + 1) * law.width - 1):
            excess = Fraction(int(law.excess(np.array([j]), np.array([y]))[0]), law.denominator)
            assert excess == Fraction(y * y, 2 * square) - Fraction(j * j, 2 * 16**2) >= 0
