"""Test files that are not imported because the selection would run none of their tests."""

import pytest
from conftest import ANNEX_FILES, SLOW_FILES, STATISTICAL_FILES, TESTS, left_out, markers_of

SLOW, BOTH = frozenset({"slow"}), frozenset({"slow", "statistical"})


@pytest.mark.parametrize("markers", [SLOW, BOTH], ids=["slow", "both"])
@pytest.mark.parametrize(
    "wanted", ["not slow", "not slow and not clients", "not clients and not slow", "x and not slow"]
)
def test_files_that_a_selection_leaves_out_are_not_imported(markers: frozenset[str], wanted: str) -> None:
    assert left_out(markers, wanted)
    assert not left_out(frozenset(), wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        "", "slow", "slow or clients", "not clients", "not slow and x or y", "y or not slow", "not (not slow)",
        "not slowly",
    ],
)  # fmt: skip
def test_every_other_file_is(wanted: str) -> None:
    assert not left_out(SLOW, wanted)


def test_a_file_has_the_markers_of_its_place() -> None:
    assert markers_of(TESTS / "clients" / "test_jdbc.py") == {"clients"}
    assert markers_of(TESTS / "guarantee" / "test_gate_law.py") == {"slow", "statistical"}
    assert markers_of(TESTS / "unit" / "test_selection.py") == markers_of(TESTS.parent / "setup.py") == frozenset()
    assert not SLOW_FILES & ANNEX_FILES
    assert all("slow" in markers_of(TESTS / file) for file in SLOW_FILES | ANNEX_FILES)
    assert all((TESTS / file).is_file() for file in SLOW_FILES | ANNEX_FILES | STATISTICAL_FILES)
