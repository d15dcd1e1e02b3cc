"""examples/correlated_noise.py and repeated_series.py: the provable guarantee of multivariate Laplace noise, and the information
in its repeats."""

import importlib.util
from types import ModuleType

import numpy as np
import pytest
from support.places import ROOT


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return _loaded("correlated_noise")


@pytest.fixture(scope="module")
def repeated() -> ModuleType:
    pytest.importorskip("altair")
    return _loaded("repeated_series")


def test_what_can_be_proven_takes_167_times_the_noise_of_a_gaussian(example: ModuleType) -> None:
    gaussian, correlated = (example.least_scale(law) for law in (example.gaussian_delta, example.correlated_delta))
    assert gaussian == pytest.approx(4.2247, abs=1e-3)
    assert round(correlated / gaussian) == 167
    page = (ROOT / "docs" / "evidence" / "accuracy.md").read_text(encoding="utf-8")
    assert "167 times" in page


def test_the_delta_over_all_w_is_the_mean_of_the_gaussians(example: ModuleType) -> None:
    """By draws of W: far from pure differential privacy, which would need a delta of 0."""
    drawn = np.random.default_rng(3).exponential(size=20_000)
    mean = np.mean([example.gaussian_delta(4 * np.sqrt(w), 1.0) for w in drawn])
    assert example.correlated_delta(4.0, 1.0) == pytest.approx(mean, rel=0.1)
    assert mean > 1e-3


@pytest.mark.slow
def test_repeats_of_correlated_noise_are_found_out_and_stored_ones_are_not(example: ModuleType) -> None:
    """Medians of five series: an answer from the store is more accurate and stays; repeats lie on a line whose end can be
    located."""
    runs = [example.figures(seed) for seed in range(5)]

    def middle(way: str, place: int) -> float:
        return float(np.median([run[way][place] for run in runs]))

    assert middle("from the store", 0) == middle("from the store", 2)
    assert middle("correlated", 0) > 30 * middle("from the store", 0)
    assert middle("correlated", 1) > 0.6 * middle("correlated", 0), "the mean of repeats does not help"
    assert middle("correlated", 2) < 0.5 * middle("correlated", 1), "the line does"
    assert middle("independent", 1) < 0.3 * middle("independent", 0)


def test_a_budget_lasts_for_all_repeats_and_the_store_does_not_change(repeated: ModuleType) -> None:
    """512 sums, 20 queries. The mean root of 10 sizes W is below 0.28 of the usual value once in 1e7 runs."""
    errors = repeated.figures(512, 20)
    assert list(errors) == list(repeated.WAYS)
    for way, (first, mean, weighted) in errors.items():
        if repeated.WAYS[way][1]:
            assert mean == pytest.approx(weighted), "all repeats are the same answer"
        elif way.startswith("Gaussian"):
            assert mean < 0.5 * first, "of 11 answers with noise of their own"
    gaussian, anew, correlated, _ = (errors[way][0] for way in repeated.WAYS)
    assert anew == pytest.approx(2**0.5 * gaussian, rel=0.15)
    assert correlated > 2 * gaussian


def test_weights_find_the_answer_whose_noise_is_small(repeated: ModuleType) -> None:
    random = np.random.default_rng(4)
    noise = np.sqrt(random.exponential(size=(40, 1))) * random.normal(size=(40, 4000))
    mean, weighted = noise.mean(axis=0), repeated.weighted_mean(noise)
    assert np.abs(weighted).mean() < 0.6 * np.abs(mean).mean()
