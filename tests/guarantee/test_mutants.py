"""The mutation gate: small bugs, each of which a few of our own tests must notice.

Every mutant is one expression (or a few statements) of one function replaced in a copy of the package beside the tests; its tests run
there, where they are green without it. A mutant that survives fails, and so does one whose code is no longer in its function: then the
table is mended with the code.

`DPSQL_MUTANTS=all` runs every mutant. Otherwise those of files that changed since `DPSQL_MUTANTS_BASE` (a commit; the fifteenth before
this one unless it is set) run, and each of the others is only applied.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
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


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of the package beside the tests, with what is compiled of both. Each mutant is put into it and taken
    out again: a copy of its own for each would be a thousand files more to write and to remove."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("dpsql", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@contextmanager
def replaced(file: Path, text: str) -> Iterator[None]:
    """Have `text` in a module while the block runs. Python takes what is compiled of a module by the module's time and size: each
    text has a time of its own here, and in the end the module has its own again."""
    before, times = file.read_bytes(), file.stat()
    file.write_text(text, encoding="utf-8")
    os.utime(file, (times.st_atime, zlib.crc32(text.encode()) // 2))
    try:
        yield
    finally:
        file.write_bytes(before)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def run(folder: Path, own: Path, tests: list[str], only: str) -> tuple[int, str]:
    """Return the exit status of some tests in a copy (0: all passed, 1: some failed) and what they printed. `own`: an empty folder
    for what they write."""
    mine = {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")]), "DPSQL_STATE": str(own / "state")}
    command = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    command += [f"--basetemp={own / 'tests'}"]
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
def test_mutants_are_noticed_by_their_tests(mutant: Mutant, copy: Path, tmp_path: Path) -> None:
    place = copy / "dpsql" / mutant.file
    source = place.read_text(encoding="utf-8")
    with replaced(place, mutated(source, mutant.function, mutant.old, mutant.new)):
        status, printed = run(copy, tmp_path, mutant.tests.split(), mutant.only)
    assert status == 1, printed[-2000:]
    assert "No module named" not in printed


EVERY_SELECTION = sorted({(mutant.tests, mutant.only) for mutant in MUTANTS})
SELECTIONS = (
    EVERY_SELECTION if os.environ.get("DPSQL_MUTANTS") == "all" else [("unit/privacy/test_exponential.py", "targets")]
)


@pytest.mark.parametrize(("tests", "only"), SELECTIONS)
def test_without_a_mutant_its_tests_are_green(tests: str, only: str, copy: Path, tmp_path: Path) -> None:
    """In the copy as well: tests that cannot run there would notice every mutant. With `DPSQL_MUTANTS=all` those of each mutant."""
    status, printed = run(copy, tmp_path, tests.split(), only)
    assert status == 0, printed[-2000:]


def test_a_mutant_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "module.py"
    place.write_text("x = 1\n", encoding="utf-8")
    before, times = place.stat(), set()
    for text in ("x = 2\n", "x = 3\n"):
        with replaced(place, text):
            assert place.read_text(encoding="utf-8") == text
            times.add(int(place.stat().st_mtime))
    assert len({*times, int(before.st_mtime)}) == 3
    assert (place.read_text(encoding="utf-8"), place.stat().st_mtime_ns) == ("x = 1\n", before.st_mtime_ns)


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
