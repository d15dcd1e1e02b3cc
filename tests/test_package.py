"""What is packed: every room of the source tree, and nothing that is not there."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from support.places import ROOT


def test_every_folder_of_the_package_is_one_that_is_shipped() -> None:
    """`packages.find` ships folders with an `__init__.py` alone."""
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"][
        "include"
    ] == ["dpsql*"]
    folders = {file.parent for package in ("dpsql", "dpsql_audit") for file in (ROOT / package).rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_every_data_file_is_shipped() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    data = [path for path in (ROOT / "dpsql").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    data += (ROOT / "dpsql" / "frontends" / "pages").glob("*.md")  # a link to docs/, which rglob does not follow
    data += (ROOT / "dpsql" / "policy" / "schemas").glob("**/*.*")
    for path in data:
        package = ".".join(path.parent.relative_to(ROOT).parts)
        assert any(path.match(pattern) for pattern in told.get(package, [])), path


def test_the_wheel_has_every_page_and_schema(tmp_path: Path) -> None:
    """Built from a copy of what the container file copies, as `python -m build --wheel` does."""
    pytest.importorskip("setuptools", minversion="77")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("docs", "dpsql", "dpsql_audit", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
    build = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, "out"], cwd=tmp_path, check=True, capture_output=True, timeout=240)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert "dpsql_audit/command.py" in packed.namelist()
        assert packed.read("dpsql/errors/refusals.md") == (ROOT / "docs" / "refusals.md").read_bytes()
        pages = {
            Path(name).name: packed.read(name)
            for name in packed.namelist()
            if name.startswith("dpsql/frontends/pages/")
        }
        written = {
            name.removeprefix("dpsql/policy/"): packed.read(name)
            for name in packed.namelist()
            if name.startswith("dpsql/policy/schemas/")
        }
    assert pages == {page.name: page.read_bytes() for page in (ROOT / "docs").glob("*.md")}
    files = [file for file in (ROOT / "schemas").rglob("*") if file.is_file()]
    assert written == {file.relative_to(ROOT).as_posix(): file.read_bytes() for file in files}
