"""The law of a weighted sum of noise compared with its own parts, a normal law, and sums of draws."""

from fractions import Fraction

import numpy as np
import pytest
from support.released_blocks import drawn, gaussian_noise, laplace_noise

from dpsql.errors.exceptions import Error
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import registry
from dpsql.privacy.mechanisms.contract import Constant, Sensitivity
from dpsql.privacy.mechanisms.weighted_sums import Cells, WeightedSum, weighted

LAPLACE, GAUSSIAN = laplace_noise("1/10"), gaussian_noise("1/200")
MIXED = WeightedSum((Cells(LAPLACE, 0.5, 3), Cells(LAPLACE, -0.1, 20), Cells(GAUSSIAN, 0.2, 5)), LAPLACE.sensitivity)
DRAWS = 200_000


def sums() -> np.ndarray:
    def total(noise: object, weight: float, count: int, key: str) -> np.ndarray:
        return weight * drawn(noise, DRAWS * count, key).reshape(count, DRAWS).sum(axis=0)  # type: ignore[arg-type]

    return total(LAPLACE, 0.5, 3, "a") + total(LAPLACE, -0.1, 20, "b") + total(GAUSSIAN, 0.2, 5, "c")


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_one_cell_has_its_own_law(noise: object, confidence: float) -> None:
    alone = WeightedSum((Cells(noise, 1.0, 1),), noise.sensitivity)  # type: ignore[attr-defined, arg-type]
    # Less than half a step and a thousandth from the quantile of the discrete law, which is rounded up to its grid.
    width = noise.half_width(confidence)  # type: ignore[attr-defined]
    assert alone.half_width(confidence) == pytest.approx(width, rel=2e-3, abs=0.1)
    assert alone.standard_deviation() == pytest.approx(noise.standard_deviation())  # type: ignore[attr-defined]


def test_a_mixed_sum_has_the_quantiles_of_its_draws() -> None:
    draws = sums()
    assert MIXED.standard_deviation() == pytest.approx(draws.std(), rel=0.01)
    assert MIXED.expected_error() == pytest.approx(np.abs(draws).mean(), rel=0.01)
    for confidence in (0.5, 0.9, 0.95, 0.99, 0.999):
        inside = float(np.mean(np.abs(draws) <= MIXED.half_width(confidence)))
        assert inside == pytest.approx(confidence, abs=4 * (confidence * (1 - confidence) / DRAWS) ** 0.5)
    uniform = np.array([0.001, 0.025, 0.3, 0.7, 0.975, 0.999])
    below = [float(np.mean(draws <= quantile)) for quantile in MIXED.quantiles(uniform)]
    assert below == pytest.approx(uniform, abs=0.005)


def test_normal_parts_have_a_normal_sum_and_rounding_widens_it() -> None:
    parts = (Cells(GAUSSIAN, 0.3, 4), Cells(GAUSSIAN, 1.0, 1))
    normal = WeightedSum(parts, GAUSSIAN.sensitivity)
    assert normal.normal and normal.half_width(0.95) == pytest.approx(1.959964 * normal.standard_deviation())
    rounded = WeightedSum((Cells(GAUSSIAN, 1.0, 1, rounding=1 / 12),), GAUSSIAN.sensitivity)
    assert rounded.standard_deviation() ** 2 == pytest.approx(GAUSSIAN.standard_deviation() ** 2 + 1 / 12)


def test_a_weighted_sum_of_weighted_sums() -> None:
    (one, twice), both = weighted(MIXED, [2.0]), weighted(MIXED, [1.0, 1.0])[0]
    assert (one, twice) == (MIXED, 2.0)
    assert MIXED.half_width(0.95) < both.half_width(0.95) < 2 * MIXED.half_width(0.95)
    assert both.standard_deviation() == pytest.approx(2**0.5 * MIXED.standard_deviation())


def test_a_tail_point_is_the_first_with_so_small_a_tail() -> None:
    for chance in (Fraction(1, 10), Fraction(1, 100)):
        point = MIXED.tail_point(chance)
        assert MIXED.upper_tail(point) <= chance * Fraction(1001, 1000) < MIXED.upper_tail(point - 1)


def test_nothing_is_charged_drawn_or_stored_for_it() -> None:
    assert MIXED.loss == MIXED.recomputed_loss() == PrivacyLoss.nothing()
    assert registry.is_registered(MIXED) and MIXED.summed(2, True) is None
    with pytest.raises(Error, match="cannot be stored"):
        registry.to_json(MIXED)


def test_only_measured_cells_of_known_laws_are_weighted() -> None:
    constant = Constant(Sensitivity(0, 0, 0, 0))
    assert registry.can_be_weighted(LAPLACE) and registry.can_be_weighted(GAUSSIAN)
    summed = LAPLACE.summed(3, False)
    assert summed is not None
    for noise in (constant, summed, MIXED):
        assert not registry.can_be_weighted(noise)
        assert not registry.is_registered(WeightedSum((Cells(noise, 1.0, 1),), LAPLACE.sensitivity))
