"""Short versions of the load tests that `.ci/nightly` runs for long."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT, TESTS

from load.memory import memory_over

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "words", [("load.run", "--minutes", "0.33", "--clients", "16", "--seed", "1"), ("load.full_disk",)]
)
def test_every_answer_is_charged_and_what_is_said_is_true(words: tuple[str, ...]) -> None:
    """Each is a process of its own, whose file systems nobody else sees."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)]), "TMPDIR": "/var/tmp"}
    done = subprocess.run([sys.executable, "-m", *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_is_measured_over_answered_questions(tmp_path: Path) -> None:
    memory = memory_over(tmp_path, questions=40, seed=1, clients=2)
    assert len(memory) == 10 and all(megabytes > 20 for megabytes in memory)
