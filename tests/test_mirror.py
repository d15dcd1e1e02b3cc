"""Tests stand where a reader looks for them: files of tests/unit in the folder of their package, and the page tests/README.md names
for each property of the package the files that hold it."""

import re
from pathlib import Path

from support.places import ROOT, TESTS

PACKAGE, UNIT = ROOT / "dpsql", TESTS / "unit"
PAGE = (TESTS / "README.md").read_text(encoding="utf-8")


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


def test_the_page_names_files_that_there_are_and_every_package() -> None:
    named = re.findall(r"`tests/([\w/]+(?:\.py)?/?)`", PAGE)
    assert [name for name in named if not (TESTS / name).exists()] == []
    packages = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert sorted(name for name in packages if f"`{name}/`" not in PAGE) == []
