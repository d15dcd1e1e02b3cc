"""What is packed: every room of the source tree, and nothing that is not there."""

from __future__ import annotations

import tomllib

from support.places import ROOT


def test_every_folder_of_the_package_is_one_that_is_shipped() -> None:
    """`packages.find` ships folders with an `__init__.py` alone."""
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"][
        "include"
    ] == ["dpsql*"]
    folders = {file.parent for file in (ROOT / "dpsql").rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_every_data_file_is_shipped() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    data = [path for path in (ROOT / "dpsql").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    for path in data:
        package = ".".join(path.parent.relative_to(ROOT).parts)
        assert any(path.match(pattern) for pattern in told.get(package, [])), path
