"""The distribution of the real gate (audit.md, level L1): with exact values of zero, every cell has exactly the requested noise.

The test that accepts the claimed scale rejects 0.7 and 1.3 times that scale, so a pass is informative.
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.noise_laws import ALPHA, fit, gaussian_cdf, laplace_cdf

from dpsql.engine.contract import ExactAnswer
from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.perturb import Gate, perturb
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import KeyColumn, Noise, NoisePlan, Sensitivity, TermNoise

CELLS = 100_000
ONE = Sensitivity(1, 1, 1, 1)
ROWS = Sensitivity(20, 20 * 4096, 20 * 20 * 4096**2, 20 * 4096)
NOISES = {
    "laplace, epsilon 1": laplace.noise_for(ONE, Fraction(1)),
    "laplace, epsilon 0.1": laplace.noise_for(ONE, Fraction(1, 10)),
    "laplace, epsilon 3 of rows": laplace.noise_for(ROWS, Fraction(3)),
    "laplace, epsilon 1e-9: a coarser grid": laplace.noise_for(ROWS, Fraction(1, 10**9)),
    "gaussian, rho 1/2": gaussian.noise_for(ONE, Fraction(1, 2)),
    "gaussian, rho 1e-3 of rows": gaussian.noise_for(ROWS, Fraction(1, 1000)),
}


def asked(noise: Noise, epsilon_or_rho: Fraction) -> float:
    """Return the scale in noise-grid units that the request implies by the textbook: L1 / epsilon, or L2 / sqrt(2 rho).

    Rounding to a coarser grid adds less than one step to the change of each of L0 entries.
    """
    fine = float(Fraction(2) ** -noise.shift)
    if noise.mechanism == "laplace":
        crossed = noise.sensitivity.l0 * (1 - fine) if noise.shift > 0 else 0
        return (noise.sensitivity.l1 * fine + crossed) / float(epsilon_or_rho)
    return (noise.sensitivity.l2_squared / (2 * float(epsilon_or_rho))) ** 0.5 * fine


REQUESTS = dict(zip(NOISES, map(Fraction, ("1", "1/10", "3", "1/1000000000", "1/2", "1/1000")), strict=True))


def drawn(noise: Noise, cells: int) -> np.ndarray:
    """Return the noise-grid integers of a gate that received zeros."""
    groups = Groups(pa.table({"k0": pa.array(range(cells))}), cells, True)
    (values,) = Gate().draw([noise], groups)
    return np.array(Gate().add("t0", Int128.zeros(cells), noise, groups, values).to_ints())


@pytest.mark.parametrize("name", NOISES)
def test_noise_fits_its_scale_and_no_other(name: str) -> None:
    noise = NOISES[name]
    values, scale = drawn(noise, CELLS), asked(noise, REQUESTS[name])
    cdf = laplace_cdf if noise.mechanism == "laplace" else gaussian_cdf
    assert fit(values, cdf(scale), scale) > ALPHA
    for wrong in (0.7, 1.3):
        assert fit(values, cdf(wrong * scale), wrong * scale) < ALPHA


@pytest.mark.parametrize("name", ["laplace, epsilon 0.1", "gaussian, rho 1e-3 of rows"])
def test_noise_of_cells_is_independent(name: str) -> None:
    """First, last and middle cells have the same distribution; no cell repeats another, within a draw or between draws."""
    noise = NOISES[name]
    draws = np.array([drawn(noise, 50) for _ in range(400)], dtype=float)
    scale = draws.std()
    assert (np.abs(draws.mean(axis=0)) < 7 * scale / 20).all()
    assert ((draws.std(axis=0) > scale * 0.6) & (draws.std(axis=0) < scale * 1.5)).all()
    distances = [draws[:, :-1] - draws[:, 1:], draws[:-1] - draws[1:]]
    for moved in distances:
        assert abs(moved.std() / scale - 2**0.5) < 0.1
        assert (moved == 0).mean() < 0.1


def test_every_cell_has_its_own_noise_whatever_their_number() -> None:
    """Noise is added in portions. The scale far exceeds the number of cells, so repeated values would reveal reused noise."""
    noise = NOISES["gaussian, rho 1e-3 of rows"]
    values = drawn(noise, CELLS)
    assert noise.noise_scale > 500_000
    for lag in (32_768, 65_536, 98_304):
        assert (values[lag:] == values[:-lag]).mean() < 1e-3


def test_empty_public_keys_are_noise_alone() -> None:
    """10,000 listed keys without a row give 10,000 samples of the claimed distribution, in the order of the list."""
    noise, size = NOISES["laplace, epsilon 0.1"], 10_000
    keys = pa.array(range(size))
    nobody = ExactAnswer(pa.table({"k0": pa.array([], pa.int64()), "t0": pa.array([], pa.int64())}))
    answer = perturb(nobody, NoisePlan((KeyColumn("k0", keys),), (TermNoise("t0", noise, 0, True),), None), Gate())
    assert answer.row_count == size
    assert answer.keys.column("k0").to_pylist() == list(range(size))
    assert fit(answer.term("t0").values, laplace_cdf(10.0), 10.0) > ALPHA


def test_terms_have_noise_of_their_own() -> None:
    """Two terms of one block over the same cells have independent noise."""
    noise = NOISES["laplace, epsilon 0.1"]
    row = pa.table({"k0": pa.array(range(2000)), "a": pa.array([0] * 2000), "b": pa.array([0] * 2000)})
    terms = tuple(TermNoise(name, noise, 0, True) for name in ("a", "b"))
    answer = perturb(ExactAnswer(row), NoisePlan((KeyColumn("k0", row.column("k0").chunk(0)),), terms, None), Gate())
    left, right = (answer.term(name).values.astype(float) for name in ("a", "b"))
    assert abs(np.corrcoef(left, right)[0, 1]) < 0.15
    assert (left == right).mean() < 0.1
