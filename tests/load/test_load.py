"""Short versions of the load tests that `.ci/nightly` runs for long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT, TESTS

from load.memory import memory_over
from load.run import FAULTS, LEAST_ANSWERS, run

pytestmark = pytest.mark.slow


def test_every_answer_is_charged_under_load_and_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("LOAD_CLOCK", "")
    load, failures = run(tmp_path, seconds=20, seed=1, clients=16)
    assert not failures
    assert load.counts.keys() >= FAULTS.keys() and load.counts["answered"] >= LEAST_ANSWERS and load.counts["left"] > 0


def test_memory_is_measured_over_answered_questions(tmp_path: Path) -> None:
    memory = memory_over(tmp_path, questions=40, seed=1, clients=2)
    assert len(memory) == 10 and all(megabytes > 20 for megabytes in memory)


def test_what_is_said_on_a_full_disk_is_true() -> None:
    """In a process of its own, whose file systems nobody else sees."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)]), "TMPDIR": "/var/tmp"}
    done = subprocess.run(
        [sys.executable, "-m", "load.full_disk"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
