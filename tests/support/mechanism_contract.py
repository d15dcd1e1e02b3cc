"""Contract tests of mechanisms. A mechanism's suite derives from `MechanismContract` and defines its law."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.errors.exceptions import InternalError
from dpsql.noise.noise_samplers import SAMPLERS, VECTOR_SAMPLERS, sample
from dpsql.noise.samplers import KernelRandomness
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.registry import MECHANISMS, Mechanism, from_json, series_law, summed, to_json, vector_law
from dpsql.privacy.mechanisms.weighted_sums import weighted
from dpsql_audit.noise_laws import LAWS, law_of
from support.noise_laws import ALPHA, fit

ONE = Sensitivity(1, 1, 1, 1)
DRAWS = 200_000
LIMITS = (Fraction(1, 10), Fraction(1), Fraction(7, 3))
MOVES = (ONE, Sensitivity(3, 7, 19, 4), Sensitivity(2, 1 << 50, 1 << 99, 1 << 49))
CASES = list(itertools.product(MOVES, LIMITS))


def vectors_of(noise: Noise, cells: int) -> npt.NDArray[np.int64] | None:
    """Return `DRAWS` independent vectors of noise; None for a constant."""
    of_vectors = VECTOR_SAMPLERS.get(type(noise))
    if of_vectors is not None:
        return of_vectors(noise, DRAWS, cells, KernelRandomness())
    drawn = sample(noise, DRAWS * cells, KernelRandomness())
    return None if drawn is None else drawn.reshape(DRAWS, cells)


class MechanismContract:
    """Tests that every mechanism must pass. `word`: the mechanism's name; `density`: its law, by definition."""

    word: str

    def density(self, noise: Noise, z: np.ndarray) -> np.ndarray:
        """Return ln P(Z = z) up to an additive constant, with z in noise-grid units."""
        raise AssertionError("a suite defines the law")

    def small(self) -> Noise:
        """Return a law with a deviation of a few steps on the row grid itself and with sensitivity `ONE`."""
        raise AssertionError("a suite makes one small law")

    def series(self) -> Noise:
        """Return a law of vectors with several cells, if the mechanism releases series."""
        raise AssertionError("a suite of a series makes a law of some cells")

    @property
    def mechanism(self) -> Mechanism:
        return MECHANISMS[self.word]

    def made(self, moved: Sensitivity, most: Fraction) -> Noise:
        assert self.mechanism.calibrations
        return self.mechanism.calibrated(next(iter(self.mechanism.calibrations)), moved, most)

    def law(self, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
        """Return points and their probabilities, except for those below any double."""
        reach = math.ceil(40 * noise.standard_deviation() / 2.0**noise.shift) + 40
        points = np.arange(-reach, reach + 1)
        logs = self.density(noise, points)
        mass = np.exp(logs - logs.max())
        return points, mass / mass.sum()

    def cdf(self, noise: Noise, scale: float = 1.0):  # type: ignore[no-untyped-def]
        """Return the function P(Z <= k) of the law stretched to `scale` times its width."""
        points, _ = self.law(noise)
        wide = np.arange(2 * points[0], 2 * points[-1] + 1)
        logs = self.density(noise, wide / scale)
        cumulated = np.cumsum(np.exp(logs - logs.max()))
        cumulated /= cumulated[-1]
        return lambda k: float(cumulated[k - wide[0]])

    # --- identity -------------------------------------------------------------------------------------------------------

    def test_every_floor_has_its_part(self) -> None:
        mechanism = self.mechanism
        assert mechanism.word == self.word == mechanism.law.mechanism
        assert mechanism.law in SAMPLERS and mechanism.law in LAWS
        assert (
            mechanism.calibrations and set(mechanism.calibrations) <= {"epsilon", "rho"} and mechanism.norm is not None
        )

    # --- sampling ---------------------------------------------------------------------------------------------------------

    def test_sampler_has_the_law_and_no_other_scale(self) -> None:
        noise = self.small()
        vectors = vectors_of(noise, 1)
        assert vectors is not None and vectors.shape == (DRAWS, 1)
        drawn = vectors.reshape(-1)
        deviation = noise.standard_deviation()
        assert fit(drawn, self.cdf(noise), deviation) > ALPHA
        for wrong in (0.7, 1.3):
            assert fit(drawn, self.cdf(noise, wrong), deviation) < 1e-12

    def test_law_is_symmetric_and_has_its_deviation_and_error(self) -> None:
        noise = self.small()
        points, mass = self.law(noise)
        np.testing.assert_allclose(mass, mass[::-1], rtol=1e-9)
        assert noise.standard_deviation() == pytest.approx(math.sqrt(mass @ points**2.0), rel=1e-6)
        assert noise.expected_error() == pytest.approx(mass @ np.abs(points), rel=0.02)

    # --- privacy loss -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(("moved", "most"), CASES)
    def test_loss_is_at_most_what_was_asked_on_both_roads(self, moved: Sensitivity, most: Fraction) -> None:
        noise = self.made(moved, most)
        assert noise.sensitivity == moved
        assert noise.loss == noise.recomputed_loss()
        cost = noise.loss.epsilon if self.mechanism.pure else noise.loss.rho
        assert cost is not None and most * Fraction(99, 100) < cost <= most
        assert (noise.loss.epsilon is not None) == self.mechanism.pure and noise.loss.delta == 0

    def test_loss_covers_the_law_moved_by_one(self) -> None:
        """The Renyi divergences of orders 2 to 64 are at most rho times the order, and the log ratio is at most epsilon."""
        noise = self.small()
        _, mass = self.law(noise)
        p, q = mass[1:], mass[:-1]
        seen = (p > 1e-280) & (q > 1e-280)
        p, q = p[seen], q[seen]
        assert noise.loss.rho is not None
        for order in (2, 3, 8, 64):
            divergence = math.log(float(np.sum(np.exp(order * np.log(p) + (1 - order) * np.log(q))))) / (order - 1)
            assert divergence <= float(noise.loss.rho) * order * (1 + 1e-9)
        if noise.loss.epsilon is not None:
            assert np.abs(np.log(p / q)).max() <= float(noise.loss.epsilon) * (1 + 1e-9)

    def test_what_no_unit_moves_is_constant_and_free(self) -> None:
        noise = self.made(Sensitivity(3, 0, 0, 0), Fraction(1))
        assert isinstance(noise, Constant) and noise.loss == PrivacyLoss.nothing()

    def test_the_tail_bounds_the_law(self) -> None:
        noise = self.small()
        points, mass = self.law(noise)
        for k in range(1, 40):
            assert float(noise.upper_tail(k)) >= mass[points >= k].sum() * (1 - 1e-9)
        point = noise.tail_point(Fraction(1, 1000))
        assert noise.upper_tail(point) <= Fraction(1, 1000) and (
            point == 1 or noise.upper_tail(point - 1) > Fraction(1, 1000)
        )

    def test_the_audit_has_the_same_law_and_no_larger_loss(self) -> None:
        noise = self.small()
        law, (points, mass) = law_of(noise), self.law(noise)
        assert law is not None
        near = np.abs(points) <= 12
        np.testing.assert_allclose(
            law.distribution(noise, points[near].astype(float)), np.cumsum(mass)[near], atol=1e-9
        )
        for k in (-2, 1, 4, 9):
            assert law.upper_tail(noise, k) <= mass[points >= k].sum() * (1 + 1e-3)
        assert (mass**2).sum() <= law.repeat(noise) * (1 + 1e-9) and law.repeat(noise) < 3 * mass.max()
        ratio = law.log_ratio(noise, points[near].astype(float), np.ones(int(near.sum())))
        exact = self.density(noise, points[near]) - self.density(noise, points[near] - 1)
        np.testing.assert_allclose(ratio, exact, atol=1e-9)
        epsilon, rho = law.loss(noise, [1])
        assert noise.loss.rho is not None and noise.loss.rho * Fraction(999, 1000) <= rho <= noise.loss.rho
        assert epsilon == (noise.loss.epsilon or 0)

    # --- stated error -------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
    def test_half_width_covers_and_two_steps_less_does_not(self, confidence: float) -> None:
        noise = self.small()
        points, mass = self.law(noise)
        width = noise.half_width(confidence)
        assert mass[np.abs(points) <= width].sum() >= confidence - 1e-12
        assert width < 2 or mass[np.abs(points) <= width - 2].sum() < confidence

    def test_quantiles_invert_the_law(self) -> None:
        noise = self.small()
        points, mass = self.law(noise)
        uniform = (np.arange(100_000) + 0.5) / 100_000
        drawn = noise.quantiles(uniform)
        assert (np.diff(drawn) >= 0).all()
        for point in (-3, -1, 0, 1, 5):
            assert (drawn <= point).mean() == pytest.approx(mass[points <= point].sum(), abs=1e-4)

    def test_vectors_are_drawn_again_with_the_error_of_an_entry_if_entries_share_anything(self) -> None:
        noise, draw = self.small(), np.random.default_rng(5)
        if not self.mechanism.shared:
            with pytest.raises(InternalError):
                vector_law(noise)
            return
        drawn = vector_law(noise).joint_quantiles(draw.random((DRAWS, 1)), draw.random((DRAWS, 1)))
        assert drawn.shape == (DRAWS, 1)
        assert np.std(drawn) == pytest.approx(noise.standard_deviation() / 2.0**noise.shift, rel=0.03)
        assert np.abs(drawn).mean() == pytest.approx(noise.expected_error() / 2.0**noise.shift, rel=0.03)

    def test_sums_of_series_have_the_variances_that_are_told_of_them(self) -> None:
        if not self.mechanism.series:
            assert series_law(self.small()) is None
            return
        law = series_law(self.series())
        assert law is not None and law.length > 4
        weights = np.vstack([np.tri(law.length), np.arange(law.length) % 3 - 1.0])
        drawn = vectors_of(self.series(), law.length)
        assert drawn is not None
        np.testing.assert_allclose(np.var(drawn @ weights.T, axis=0), law.variances(weights), rtol=0.03)
        totals = law.variances(weights[:-1]).mean() ** 0.5 * 2.0**law.shift
        assert law.running_deviation() == pytest.approx(totals, rel=1e-6)

    @pytest.mark.parametrize(
        "weights", [[1.0], [2.5], [1.0, 1.0], [1.0, 1.0, 1.0], [1.25, 0.25], [6.0, 5.0], [3.0, 1e-9]]
    )
    def test_weighted_sums_have_their_error(self, weights: list[float]) -> None:
        noise = self.made(Sensitivity(1, 1 << 20, 1 << 40, 1 << 20), Fraction(1))
        law, factor = weighted(noise, weights)
        draw = np.random.default_rng(11)
        sums = np.zeros(400_000)
        for weight in weights:
            sums += weight * noise.quantiles(draw.random(sums.size)) * 2.0**noise.shift
        for confidence in (0.5, 0.95):
            wanted = np.quantile(np.abs(sums), confidence)
            assert factor * law.half_width(confidence) == pytest.approx(wanted, rel=0.02)
        assert factor * law.expected_error() == pytest.approx(np.abs(sums).mean(), rel=0.02)

    @pytest.mark.parametrize("count", [1, 2, 7])
    def test_a_sum_of_cells_has_its_law(self, count: int) -> None:
        noise = self.made(ONE, Fraction(1, 20))
        law = summed(noise, count, False)
        assert law is not None and law.loss == (noise.loss if count == 1 else PrivacyLoss.nothing())
        drawn = sample(noise, count * 100_000, KernelRandomness())
        assert drawn is not None
        sums = np.abs(drawn.reshape(count, -1).sum(axis=0)) * 2.0**noise.shift
        assert law.standard_deviation() == pytest.approx(math.sqrt(count) * noise.standard_deviation(), rel=1e-9)
        for confidence in (0.5, 0.9):
            width, step = law.half_width(confidence), 2.0**noise.shift
            assert (sums <= width).mean() >= confidence - 0.01
            assert (sums <= width - 2 * step).mean() <= confidence + 0.01
        assert law.expected_error() == pytest.approx(sums.mean(), rel=0.02)
        assert law.normal == (law.normal and noise.normal)

    # --- storage --------------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(("moved", "most"), CASES)
    def test_noise_read_back_from_json_is_equal(self, moved: Sensitivity, most: Fraction) -> None:
        noise = self.made(moved, most)
        assert from_json(json.loads(json.dumps(to_json(noise)))) == noise

    def test_json_of_another_shape_is_not_read(self) -> None:
        facts = to_json(self.small())
        own = next(name for name in facts if name not in ("mechanism", "sensitivity", "shift"))
        for wrong in (
            {**facts, "later": 1},
            {name: value for name, value in facts.items() if name != own},
            {**facts, own: float(facts[own])},
            {**facts, "mechanism": "staircase"},
            {**facts, own: 0},
            {**facts, "sensitivity": [0, 0, 0, 0]},
        ):
            with pytest.raises((KeyError, TypeError, ValueError)):
                from_json(wrong)
