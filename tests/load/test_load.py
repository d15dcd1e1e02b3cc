"""A minute of what `.ci/nightly` does for half an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from load.run import FAULTS, run

pytestmark = pytest.mark.slow


def test_every_answer_is_charged_under_load_and_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("LOAD_CLOCK", "")
    load, failures = run(tmp_path, seconds=40, seed=1, clients=16)
    assert not failures
    assert load.counts.keys() >= FAULTS.keys() and load.counts["answered"] > 10 and load.counts["left"] > 0
