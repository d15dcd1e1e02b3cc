"""The trusted part of ARCHITECTURE.md: the core imports nothing else, every module has a place, and sizes are printed (`-s`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from support.package_modules import PACKAGE
from support.places import ROOT
from test_floors import imports, modules

PARTS = ("core", "order", "rest")


@cache
def parts() -> dict[str, str]:
    """Return the part to which each path (a folder or a file of dpsql/) belongs, as the tables say."""
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## What must be right", 1)[1]
    section = section.split("\n## ", 1)[0]
    of_paths: dict[str, str] = {}
    for part in PARTS:
        table = section.split(f"| {part} |", 1)[1].split("\n\n", 1)[0]
        for line in table.splitlines()[2:]:
            of_paths.update(dict.fromkeys(re.findall(r"`([a-z_/]+(?:\.py)?)`", line.split(" | ")[0]), part))
    return of_paths


def part_of(file: Path) -> str:
    """Return the part of a module: that of its own path, or of the nearest folder around it."""
    place = file.relative_to(PACKAGE).as_posix()
    while place not in parts():
        place = place.removesuffix("/").rpartition("/")[0] + "/"
        assert place != "/", f"ARCHITECTURE.md says of {file} neither that it must be right nor that it may be wrong"
    return parts()[place]


def inside() -> dict[str, Path]:
    """Return the modules in packages by dotted name."""
    return {name: file for name, file in modules().items() if PACKAGE in file.parents[1:]}


def test_the_core_imports_nothing_else() -> None:
    known = inside()
    wrong = [
        f"{name} imports {target}"
        for name, file in known.items()
        if part_of(file) == "core"
        for target in imports(file, known)
        if target not in known or part_of(known[target]) != "core"
    ]
    assert wrong == []


def test_every_path_of_the_tables_exists() -> None:
    assert [path for path in parts() if not (PACKAGE / path).exists()] == []


def test_sizes_are_printed() -> None:
    lines = dict.fromkeys(PARTS, 0)
    for file in inside().values():
        lines[part_of(file)] += len(file.read_text(encoding="utf-8").splitlines())
    print("\nlines that must be right and lines that may be wrong:", lines)
    assert all(lines.values())
