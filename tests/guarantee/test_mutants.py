"""The mutation gate: small bugs, each of which a few of our own tests must notice.

Every mutant is a copy of the package in a folder of its own with one expression (or a few statements) of one function replaced; its
tests run there. A mutant that survives fails, and so does one whose code is no longer in its function: then the table is mended with
the code. That the tests are green without the bug is seen in the rest of this suite.

`DPSQL_MUTANTS=all` runs every mutant. Otherwise those of files that changed since `DPSQL_MUTANTS_BASE` (a commit; the fifteenth before
this one unless it is set) run, and each of the others is only applied.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from support.forked import LIBRARIES, Forked
from support.places import ROOT
from support.syntax_mutations import mutated

from guarantee.mutants import MUTANTS, Mutant


@cache
def changed_files() -> frozenset[str] | None:
    """Files of the package that changed since the base, relative to the package; None where git cannot say."""
    base = os.environ.get("DPSQL_MUTANTS_BASE", "HEAD~15")
    command = ["git", "diff", "--name-only", "--relative=dpsql", base, "--", "dpsql"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return frozenset(done.stdout.split()) if done.returncode == 0 else None


def is_run(mutant: Mutant) -> bool:
    """Whether the tests of the mutant run, or it is only applied."""
    changed = changed_files()
    return os.environ.get("DPSQL_MUTANTS") == "all" or changed is None or mutant.file in changed


def copied(folder: Path) -> Path:
    """A copy of the package in `folder`, beside the tests, with what is compiled of both: the copies have the same times."""
    shutil.copytree(ROOT / "dpsql", folder / "dpsql")
    shutil.copytree(ROOT / "tests", folder / "tests")
    return folder


def run(folder: Path, tests: list[str], only: str) -> tuple[int, str]:
    """Exit status of some tests (0: all passed, 1: some failed) and what they printed."""
    mine = {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")]), "DPSQL_STATE": str(folder / "state")}
    command = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    command += [str(folder / "tests" / test) for test in tests] + (["-k", only] if only else [])
    with Forked(
        command, LIBRARIES, {**os.environ, **mine}, folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        printed, _ = child.communicate()
    return child.returncode, printed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_has_its_place_and_its_tests(mutant: Mutant) -> None:
    source = (ROOT / "dpsql" / mutant.file).read_text(encoding="utf-8")
    assert mutated(source, mutant.function, mutant.old, mutant.new) != source
    assert all((ROOT / "tests" / test.split("::")[0]).exists() for test in mutant.tests.split())


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if is_run(mutant)], ids=lambda mutant: mutant.name)
def test_mutants_are_noticed_by_their_tests(mutant: Mutant, tmp_path: Path) -> None:
    place = copied(tmp_path) / "dpsql" / mutant.file
    source = place.read_text(encoding="utf-8")
    place.write_text(mutated(source, mutant.function, mutant.old, mutant.new), encoding="utf-8")
    for compiled in (place.parent / "__pycache__").glob(f"{place.stem}.*"):
        compiled.unlink()
    status, printed = run(tmp_path, mutant.tests.split(), mutant.only)
    assert status == 1, printed[-2000:]
    assert "No module named" not in printed


def test_names_of_mutants_are_unique() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_code_that_is_not_there_or_twice_is_no_mutant() -> None:
    source = "def f(x):\n    y = x + 1\n    return x + 1\n\ndef g(x):\n    return x + 2\n"
    assert "return x + 3" in mutated(source, "g", "x + 2", "x + 3")
    assert mutated(source, "f", "y = x + 1\nreturn x + 1", "return 0").splitlines()[1] == "    return 0"
    with pytest.raises(AssertionError, match="2 times"):
        mutated(source, "f", "x + 1", "x")
    with pytest.raises(AssertionError, match="0 times"):
        mutated(source, "f", "x + 2", "x")
    with pytest.raises(AssertionError, match="no function"):
        mutated(source, "h", "x + 2", "x")
