"""Unit tests stand where what they test stands: the tests of `dpsql/a/b.py` are `tests/unit/a/test_b.py`.

A file may also be named after a promise that several modules of a package keep together (`ledger/test_tamper.py`).
"""

from __future__ import annotations

from pathlib import Path

from support.places import ROOT

PACKAGE, UNIT = ROOT / "dpsql", ROOT / "tests" / "unit"
LARGE = 100
"""Lines of a module from which on somebody looks for a file of its own."""
MOST_WITHOUT = 125
"""Large modules whose tests stand in files of their callers, of their package or of the corpora alone. To be lowered."""


def places(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder by their places in it."""
    return sorted(file.relative_to(folder) for file in folder.rglob(pattern) if "__pycache__" not in file.parts)


def modules() -> set[Path]:
    """Return modules and packages by their places without endings."""
    files = places(PACKAGE, "*.py")
    return {file.parent if file.name == "__init__.py" else file.with_suffix("") for file in files}


def named_after(test: Path) -> Path:
    """Return the place of the module that a file of tests has the name of."""
    return test.parent / test.stem.removeprefix("test_")


def test_every_folder_of_unit_tests_is_that_of_a_package() -> None:
    folders = {test.parent for test in places(UNIT, "test_*.py")} - {Path()}
    assert sorted(folders - modules()) == []


def test_a_file_with_the_name_of_a_module_stands_at_the_modules_place() -> None:
    """Within a package of the ground floor, so that nobody looks for a module's tests and finds those of another one."""
    known = modules()
    elsewhere = {
        str(test): str(module)
        for test in places(UNIT, "test_*.py")
        if named_after(test) not in known and named_after(test).name != test.parent.name
        for module in known
        if module.name == named_after(test).name and module.parts[:1] == test.parts[:1]
    }
    assert elsewhere == {}


def test_large_modules_without_a_file_of_their_own_become_fewer() -> None:
    mirrored = {named_after(test) for test in places(UNIT, "test_*.py")}
    large = [
        file.with_suffix("")
        for file in places(PACKAGE, "*.py")
        if file.name not in ("__init__.py", "__main__.py")
        and len((PACKAGE / file).read_text(encoding="utf-8").splitlines()) > LARGE
    ]
    without = [str(module) for module in large if module not in mirrored]
    assert len(without) <= MOST_WITHOUT, without
