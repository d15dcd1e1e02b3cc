"""The floors of ARCHITECTURE.md: a module imports from its own floor and those above it, and its floor has it listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dpsql"


def floors() -> dict[str, int]:
    """Room to floor number, read from the table in ARCHITECTURE.md (0 is the highest floor)."""
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Floors", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ") and "`" in line]
    return {room: number for number, row in enumerate(rows) for room in re.findall(r"`([a-z_0-9]+)`", row)}


def room_of(file: Path) -> str:
    """A file of the package, or the folder it is in."""
    parts = file.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def imported(file: Path) -> Iterator[str]:
    """Rooms that a file imports when it is loaded; what only type checkers read, or a function loads late, is left out."""
    for node in _running(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inner = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "dpsql"
                else [str(node.module)]
            )
            names = inner
        for name in names:
            if name.startswith("dpsql."):
                yield name.split(".")[1]


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            yield from _running(node)


ENTRANCES = {"__init__", "__main__"}
"""They hand out names of every floor."""


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(file) for file in PACKAGE.rglob("*.py")} - ENTRANCES
    assert rooms - set(floors()) == set(), "enter the room in the table of ARCHITECTURE.md"
    assert set(floors()) - rooms == set(), "ARCHITECTURE.md names rooms that are not there"


def test_imports_go_up() -> None:
    floor = floors()
    wrong = [
        f"{file.relative_to(ROOT)} (floor {floor[room_of(file)]}) imports {other} (floor {floor[other]})"
        for file in sorted(PACKAGE.rglob("*.py"))
        if room_of(file) not in ENTRANCES and room_of(file) in floor
        for other in imported(file)
        if other in floor and floor[other] > floor[room_of(file)]
    ]
    assert wrong == []
