"""examples/correlated_noise.py: what can be proven of multivariate Laplace noise, and what repeats of it tell."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import numpy as np
import pytest
from support.places import ROOT


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("correlated_noise", ROOT / "examples" / "correlated_noise.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_can_be_proven_takes_167_times_the_noise_of_a_gaussian(example: ModuleType) -> None:
    gaussian, correlated = (example.least_scale(law) for law in (example.gaussian_delta, example.correlated_delta))
    assert gaussian == pytest.approx(4.2247, abs=1e-3)
    assert round(correlated / gaussian) == 167
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert "167 times" in page


def test_the_delta_over_all_w_is_the_mean_of_the_gaussians(example: ModuleType) -> None:
    """By draws of W: far from pure differential privacy, which would need a delta of 0."""
    drawn = np.random.default_rng(3).exponential(size=20_000)
    mean = np.mean([example.gaussian_delta(4 * np.sqrt(w), 1.0) for w in drawn])
    assert example.correlated_delta(4.0, 1.0) == pytest.approx(mean, rel=0.1)
    assert mean > 1e-3


@pytest.mark.slow
def test_repeats_of_correlated_noise_are_found_out_and_stored_ones_are_not(example: ModuleType) -> None:
    """Medians of five series: an answer from the store is nearer and stays; repeats lie on a line whose end is found."""
    runs = [example.figures(seed) for seed in range(5)]

    def middle(way: str, place: int) -> float:
        return float(np.median([run[way][place] for run in runs]))

    assert middle("from the store", 0) == middle("from the store", 2)
    assert middle("correlated", 0) > 30 * middle("from the store", 0)
    assert middle("correlated", 1) > 0.6 * middle("correlated", 0), "the mean of repeats does not help"
    assert middle("correlated", 2) < 0.5 * middle("correlated", 1), "the line does"
    assert middle("independent", 1) < 0.3 * middle("independent", 0)
