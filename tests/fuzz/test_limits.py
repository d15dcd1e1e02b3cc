"""Deliberately heavy texts are answered or refused within limits that the operating system enforces, not a clock in the test."""

import subprocess
import sys

from support.places import ROOT

from dpsql.errors.exceptions import REGISTER
from fuzz import heavy

SLOW_REFUSALS = {"sandbox_time", "stopped", "unexpected", "engine_failed", "sandbox_broken"}


def test_heavy_texts_end_within_their_limits() -> None:
    """One process sends all texts. If memory runs out or a text takes too much processor time, it ends before the last text."""
    asked = subprocess.run(
        [sys.executable, "-m", "fuzz.heavy"], capture_output=True, text=True, cwd=ROOT / "tests", check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    outcomes = dict(line.rsplit(": ", 1) for line in asked.stdout.splitlines())
    assert list(outcomes) == list(heavy.texts()), asked.stderr[-3_000:]
    assert asked.returncode == 0
    assert set(outcomes.values()) <= (set(REGISTER) | {"answered"}) - SLOW_REFUSALS
