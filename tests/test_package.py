"""What is packed: every room of the source tree, and nothing that is not there."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_package_is_shipped() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "dpsql").rglob("__init__.py")}
    assert set(told) == found | {"dpsql.schemas"}


def test_every_data_file_is_shipped() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    data = [path for path in (ROOT / "dpsql").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    for path in data:
        package = ".".join(path.parent.relative_to(ROOT).parts)
        assert any(path.match(pattern) for pattern in told.get(package, [])), path


def test_the_policies_are_found_where_they_are_packed() -> None:
    assert {path.name for path in (ROOT / "schemas").iterdir()} >= {
        "nafld.yaml",
        "nycflights13.yaml",
        "policy.schema.json",
    }
