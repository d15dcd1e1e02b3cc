"""The trusted part of ARCHITECTURE.md: the core imports nothing else, every module has a place, and sizes are printed (`-s`)."""

import re
from collections.abc import Iterable
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


def annexes() -> dict[str, list[str]]:
    """Return the files of each rare mechanism of the core, as the table says."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = text.split("| annex |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return {row.split("`")[1]: re.findall(r"`([a-z_/]+\.py)`", row) for row in rows}


def size(files: Iterable[Path]) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def test_annexes_are_in_the_core_and_each_file_is_in_one() -> None:
    named = [path for paths in annexes().values() for path in paths]
    assert len(set(named)) == len(named) >= 15
    assert [path for path in named if part_of(PACKAGE / path) != "core"] == []


def test_sizes_are_printed_and_those_of_the_page_on_privacy_are_true() -> None:
    files = {part: [file for file in inside().values() if part_of(file) == part] for part in PARTS}
    engines = {name: sorted((PACKAGE / "engine" / name).glob("*.py")) for name in ("duckdb", "postgresql", "spark")}
    rare = {name: [PACKAGE / path for path in paths] for name, paths in annexes().items()}
    apart = {file for group in (*engines.values(), *rare.values()) for file in group}
    sizes = {part: size(files[part]) for part in PARTS}
    core = size(file for file in files["core"] if file not in apart)
    of_engines, of_rare = ({name: size(paths) for name, paths in group.items()} for group in (engines, rare))
    print("\nlines that must be right and lines that may be wrong:", sizes)
    print("of the core, without annexes and engines:", core)
    print(of_rare | of_engines)
    stated = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8").split("An expert who", 1)[1].split("\n\n", 1)[0]
    said = [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", stated)]
    counted = [core, sizes["order"], *_ends(of_engines), *_ends(of_rare)]
    assert [abs(count - number) <= 0.05 * number + 50 for count, number in zip(counted, said, strict=True)] == [
        True
    ] * 6
    assert sizes["rest"] > sizes["core"] + sizes["order"]


def _ends(sizes: dict[str, int]) -> tuple[int, int]:
    return min(sizes.values()), max(sizes.values())
