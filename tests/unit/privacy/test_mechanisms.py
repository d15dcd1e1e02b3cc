"""Prices of the additive mechanisms compared with those that other systems compute for the same noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from dpsql.privacy.accounting import rho_to_epsilon
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace

dp.enable_features("contrib")


def losses_of_others(noise: Noise, delta: float) -> float:
    """Return epsilon at `delta` by privacy loss distributions, for one entry."""
    moved = noise.sensitivity.l1
    if isinstance(noise, Laplace):
        law = pld.from_discrete_laplace_mechanism(noise.s / noise.t, moved, value_discretization_interval=1e-4)
    else:
        law = pld.from_discrete_gaussian_mechanism(float(noise.noise_scale), moved, value_discretization_interval=1e-4)
    return float(law.get_epsilon_for_delta(delta))


def test_no_noise_is_priced_below_its_privacy_loss_distribution() -> None:
    for t, s, moved in ((10, 1, 1), (3, 2, 1), (20, 1, 4)):
        noise = Laplace(Sensitivity(1, moved, moved**2, moved), 0, t, s)
        assert noise.loss.epsilon is not None
        assert losses_of_others(noise, 1e-12) <= float(noise.loss.epsilon) + 2e-4
        assert losses_of_others(noise, 1e-12) >= float(noise.loss.epsilon) * 0.99
    for sigma, moved in ((1, 1), (2, 1), (10, 1), (10, 3)):
        gauss = Gaussian(Sensitivity(1, moved, moved**2, moved), 0, sigma)
        assert gauss.loss.rho is not None
        ours = float(rho_to_epsilon(gauss.loss.rho, Fraction(1, 10**6)))
        assert losses_of_others(gauss, 1e-6) <= ours
        assert losses_of_others(gauss, 1e-6) >= ours * 0.8


def test_opendp_charges_the_same() -> None:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    for moved, epsilon in ((1, Fraction(1, 10)), (7, Fraction(1, 3)), (120, Fraction(2))):
        noise = laplaces.noise_for(Sensitivity(1, moved, moved**2, moved), epsilon)
        theirs = dp.m.make_laplace(*space, scale=float(noise.noise_scale)).map(moved)
        assert float(noise.loss.epsilon or 0) == pytest.approx(theirs, rel=1e-9)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gauss = Gaussian(Sensitivity(1, 3, 9, 3), 0, 40)
    assert float(gauss.loss.rho or 0) == pytest.approx(dp.m.make_gaussian(*space, scale=40.0).map(3.0), rel=1e-9)


def test_laplace_price_is_the_largest_ratio_of_the_mass() -> None:
    noise = Laplace(Sensitivity(1, 3, 9, 3), 0, 7, 2)
    mass = stats.dlaplace(2 / 7).pmf(np.arange(-60, 61))
    ratios = np.log(mass[3:] / mass[:-3])
    assert float(noise.loss.epsilon or 0) == pytest.approx(np.abs(ratios).max(), rel=1e-9)
