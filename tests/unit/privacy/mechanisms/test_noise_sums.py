"""The law of summed noise compared with brute force and with sums of the package's own samples."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.noise.samplers import KernelRandomness, discrete_gaussian, discrete_laplace
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.laplace import SummedLaplace, _laplace_table
from dpsql.privacy.mechanisms.registry import summed

ONE = Sensitivity(1, 1, 1, 1)


def convolved(scale: float, count: int) -> np.ndarray:
    """Return P(Z = k), k = -2000..2000, by repeated convolution."""
    k = np.arange(-2000, 2001)
    one = np.exp(-np.abs(k) / scale)
    one /= one.sum()
    found = one
    for _ in range(count - 1):
        found = np.convolve(found, one, "same")
    return found


@pytest.mark.parametrize(("scale", "count"), [(0.3, 2), (2.0, 3), (17.0, 6), (40.0, 12)])
def test_the_table_is_the_convolution(scale: float, count: int) -> None:
    step, cumulated = _laplace_table(scale, count)
    assert step == 1
    middle = len(cumulated) // 2
    reach = min(1500, middle - 1)
    expected = np.cumsum(convolved(scale, count))[2000 - reach : 2001 + reach]
    assert np.abs(cumulated[middle - reach : middle + reach + 1] - expected).max() < 1e-10


def test_a_half_width_is_the_smallest_that_holds() -> None:
    noise = laplace.noise_for(ONE, Fraction(1, 5))
    law = summed(noise, 4, True)
    assert law is not None
    mass = convolved(float(noise.noise_scale), 4)
    for confidence in (0.5, 0.9, 0.95, 0.999):
        width = int(law.half_width(confidence))
        assert mass[2000 - width : 2001 + width].sum() >= confidence
        assert mass[2001 - width : 2000 + width].sum() < confidence


def drawn(noise: Noise, cells: int, sums: int) -> np.ndarray:
    """Return sums of drawn noise, in row-grid units."""
    if isinstance(noise, laplace.Laplace):
        steps = discrete_laplace(cells * sums, noise.t, noise.s, KernelRandomness())
    else:
        assert isinstance(noise, gaussian.Gaussian)
        steps = discrete_gaussian(cells * sums, noise.sigma, KernelRandomness())
    return np.asarray(steps.reshape(sums, cells).astype(np.float64).sum(axis=1) * 2.0**noise.shift)


@pytest.mark.parametrize("cells", [2, 24])
@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", "3"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_half_widths_hold_for_sums_of_drawn_noise_and_would_not_at_another_scale(
    mechanism: str, epsilon: str, cells: int
) -> None:
    given = Fraction(epsilon)
    noise = laplace.noise_for(ONE, given) if mechanism == "laplace" else gaussian.noise_for(ONE, given)
    law = summed(noise, cells, False)
    assert law is not None
    sums = 20_000
    sample = np.abs(drawn(noise, cells, sums))
    slack = 6 * math.sqrt(0.95 * 0.05 / sums)  # six standard errors
    covered = float((sample <= law.half_width(0.95)).mean())
    assert covered >= 0.95 - slack
    assert float((sample < 0.8 * law.half_width(0.95)).mean()) < 0.95 - slack
    assert law.standard_deviation() == pytest.approx(math.sqrt(cells) * noise.standard_deviation(), rel=1e-6)


def test_quantiles_have_the_law() -> None:
    law = summed(laplace.noise_for(ONE, Fraction(1, 1000)), 6, True)
    assert isinstance(law, SummedLaplace)
    uniform = (np.arange(100_000) + 0.5) / 100_000
    found = law.quantiles(uniform)
    assert found.std() == pytest.approx(law.standard_deviation(), rel=0.01)
    assert float((np.abs(found) <= law.half_width(0.9)).mean()) == pytest.approx(0.9, abs=0.002)


def test_one_cell_keeps_its_law_and_sums_cost_nothing() -> None:
    noise = laplace.noise_for(ONE, Fraction(1))
    assert summed(noise, 1, True) is noise
    nothing = Constant(Sensitivity(0, 0, 0, 0))
    assert summed(nothing, 5, True) is nothing
    law = summed(noise, 2, True)
    assert law is not None
    assert law.loss == law.recomputed_loss()
    assert law.loss.epsilon == 0
    assert law.tail_point(Fraction(1, 40)) == law.half_width(0.95) + 1
