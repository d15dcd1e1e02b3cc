"""The mutation gate: one-line bugs, each of which a few of our own tests must notice.

Every mutant is a copy of the package in a folder of its own with one text replaced; its tests run there. A mutant that
survives fails, and so does one whose text is no longer in the file: then the table is mended with the code. The tests
belong to this very suite, so that they are green without the bug is seen beside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

from guarantee.mutants import MUTANTS, Mutant


def copied(folder: Path) -> Path:
    """A copy of the package in `folder`, beside the tests."""
    shutil.copytree(ROOT / "dpsql", folder / "dpsql", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(folder: Path, tests: list[str], only: str) -> tuple[int, str]:
    """Exit status of some tests (0: all passed, 1: some failed) and what they printed."""
    mine = {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")]), "DPSQL_STATE": str(folder / "state")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    command += [str(folder / "tests" / test) for test in tests] + (["-k", only] if only else [])
    done = subprocess.run(command, cwd=folder, env={**os.environ, **mine}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_killed(mutant: Mutant, tmp_path: Path) -> None:
    place = copied(tmp_path) / "dpsql" / mutant.file
    text = place.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} has {text.count(mutant.old)} times: {mutant.old}"
    place.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    status, printed = run(tmp_path, mutant.tests.split(), mutant.only)
    assert status == 1, printed[-2000:]
    assert "No module named" not in printed


def test_table() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
