"""Every registered mechanism passes the contract tests; anything unregistered is refused."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from support.mechanism_contract import ONE, MechanismContract

from dpsql.errors.exceptions import InternalError
from dpsql.noise.noise_samplers import SAMPLERS, sample
from dpsql.noise.samplers import KernelRandomness
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.correlated_laplace import CorrelatedLaplace
from dpsql.privacy.mechanisms.gaussian import Gaussian, SummedGaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.registry import MECHANISMS, askable, from_json, summed, to_json
from dpsql.privacy.mechanisms.square_root import ONE as UNIT
from dpsql.privacy.mechanisms.square_root import SquareRoot
from dpsql_audit.noise_laws import LAWS, law_of


class TestLaplace(MechanismContract):
    word = "laplace"

    def density(self, noise: Noise, z: np.ndarray) -> np.ndarray:
        return -np.abs(z) / float(noise.noise_scale)

    def small(self) -> Noise:
        return Laplace(ONE, 0, 16, 3)


class TestGaussian(MechanismContract):
    word = "gaussian"

    def density(self, noise: Noise, z: np.ndarray) -> np.ndarray:
        return -(z**2.0) / (2 * float(noise.noise_scale) ** 2)

    def small(self) -> Noise:
        return Gaussian(ONE, 0, 7)


class TestCorrelatedLaplace(MechanismContract):
    word = "correlated_laplace"

    def density(self, noise: Noise, z: np.ndarray) -> np.ndarray:
        """Return the mean over W = j / 64 of Gaussians of variance j u**2, each normalised separately."""
        least = float(noise.noise_scale) / 8
        j = np.arange(1, 64 * 45)[:, None]
        mass = np.zeros(len(z))
        for part in np.array_split(j, 40):
            squares = part * least**2
            mass += (np.exp(-(part - 1) / 64 - z**2.0 / (2 * squares)) / np.sqrt(squares)).sum(axis=0)
        return np.log(mass)

    def small(self) -> Noise:
        return CorrelatedLaplace(ONE, 0, 2)

    @pytest.mark.parametrize("count", [1, 2, 7])
    def test_a_sum_of_cells_has_its_law(self, count: int) -> None:
        """Sums of cells of one vector share its W, so none has a stated law."""
        assert summed(self.made(ONE, Fraction(1, 20)), count, False) is None


class TestSquareRoot(MechanismContract):
    """The law of the first cell of a vector, which is that of a Gaussian rounded to integers."""

    word = "square_root"

    def density(self, noise: Noise, z: np.ndarray) -> np.ndarray:
        scale = float(noise.noise_scale) * math.sqrt(2)
        low, high = ((np.abs(z) + side) / scale for side in (-0.5, 0.5))
        erfc = np.vectorize(math.erfc)
        return np.log(np.maximum(erfc(low) - erfc(high), 1e-300))

    def small(self) -> Noise:
        return SquareRoot(ONE, 0, 7 * UNIT, 1)

    def series(self) -> Noise:
        return SquareRoot(ONE, 2, 7 * UNIT, 60)

    @pytest.mark.parametrize("count", [1, 2, 7])
    def test_a_sum_of_cells_has_its_law(self, count: int) -> None:
        """The law depends on which cells of a vector are summed."""
        assert summed(self.made(ONE, Fraction(1, 20)), count, False) is None


def test_every_mechanism_has_a_suite_a_sampler_and_an_audited_law() -> None:
    suites = {suite.word for suite in MechanismContract.__subclasses__() if suite.__module__ == __name__}
    calibrated = [mechanism for mechanism in MECHANISMS.values() if mechanism.calibrations]
    assert suites == {mechanism.word for mechanism in calibrated}
    assert {mechanism.word for mechanism in askable()} == suites - {"square_root"}
    assert set(SAMPLERS) == {mechanism.law for mechanism in MECHANISMS.values()}
    assert set(LAWS) == {mechanism.law for mechanism in calibrated}


def test_constants_are_stored_and_drawn_as_nothing() -> None:
    nothing = Constant(Sensitivity(2, 0, 0, 0))
    text = '{"mechanism": "constant", "sensitivity": [2, 0, 0, 0], "shift": 0}'
    assert json.dumps(to_json(nothing)) == text and from_json(json.loads(text)) == nothing
    assert sample(nothing, 5, KernelRandomness()) is None
    with pytest.raises(ValueError):
        from_json({**json.loads(text), "shift": 3})


def test_stored_laws_are_written_as_before() -> None:
    assert json.dumps(to_json(Laplace(ONE, 2, 16, 3))) == (
        '{"mechanism": "laplace", "sensitivity": [1, 1, 1, 1], "shift": 2, "t": 16, "s": 3}'
    )
    assert json.dumps(to_json(Gaussian(ONE, -7, 5))) == (
        '{"mechanism": "gaussian", "sensitivity": [1, 1, 1, 1], "shift": -7, "sigma": 5}'
    )


def test_laws_of_sums_and_derived_classes_are_neither_drawn_nor_stored() -> None:
    class Narrow(Laplace):
        """A subclass of Laplace that could have any other law."""

    for noise in (Narrow(ONE, 0, 16, 3), SummedGaussian(Gaussian(ONE, 0, 7), 4, False)):
        with pytest.raises(InternalError):
            sample(noise, 1, KernelRandomness())
        with pytest.raises(InternalError):
            to_json(noise)
        with pytest.raises(InternalError):
            law_of(noise)
