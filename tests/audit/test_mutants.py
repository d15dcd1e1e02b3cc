"""The mutation gate: one-line bugs, each of which a few of our own tests must notice.

Every mutant is a copy of the package in a folder of its own with one text replaced; its tests run there. A mutant that
survives fails, and so does one whose text is no longer in the file: then the table below is mended with the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from audit.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parent.parent.parent


def mutated(mutant: Mutant, folder: Path) -> None:
    """A copy of the package and the tests in `folder`, with the mutant's bug in it."""
    shutil.copytree(ROOT / "dpsql", folder / "dpsql", ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("tests", "schemas"):
        (folder / part).symlink_to(ROOT / part)
    place = folder / "dpsql" / mutant.file
    text = place.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} has {text.count(mutant.old)} times: {mutant.old}"
    place.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def outcome(mutant: Mutant, folder: Path) -> tuple[int, str]:
    """Exit status of its tests (1: some failed) and what they printed."""
    paths = os.pathsep.join([str(folder), str(ROOT / "tests")])
    state = {"PYTHONPATH": paths, "DPSQL_STATE": str(folder / "state"), "PYTHONDONTWRITEBYTECODE": "1"}
    tests = [str(folder / "tests" / part) for part in mutant.tests.split()]
    chosen = ["-k", mutant.only] if mutant.only else []
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line", *tests, *chosen]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **state}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_killed(mutant: Mutant, tmp_path: Path) -> None:
    mutated(mutant, tmp_path)
    status, printed = outcome(mutant, tmp_path)
    assert status == 1, printed[-2000:]
    assert "No module named" not in printed


def test_table() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
