"""The floors of ARCHITECTURE.md: a package imports only from itself and from the packages above it in the table, and the audit is
imported by nothing that it audits."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.package_modules import FILES, PACKAGE, name, nodes
from support.places import ROOT

SHIPPED = {"dpsql", "dpsql_audit"}
ENTRANCES = {"__init__.py", "__main__.py"}
"""Files directly in the package that hand out names of every floor; no other file imports them."""


def floors() -> list[str]:
    """Packages in the order of the table in ARCHITECTURE.md, the top floor first."""
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Floors", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([a-z_]+)/` \|", table, re.M)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in FILES}


def imports(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of dpsql and of its audit that a file imports anywhere: at load, in a function, or for type checkers only."""
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in SHIPPED)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            if node.module and node.module.split(".")[0] in SHIPPED:
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    yield submodule if submodule in known else node.module


def test_every_package_has_its_floor() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert sorted(floors()) == sorted(packages), "the table of ARCHITECTURE.md lists each package once"
    assert {path.name for path in PACKAGE.glob("*.py")} == ENTRANCES, "a module belongs into a package"


def test_packages_import_only_from_floors_above() -> None:
    order, known = {package: number for number, package in enumerate(floors())}, modules()
    wrong = []
    for file in known.values():
        folder = name(file).split("/")[0]
        if folder not in order:
            continue
        for target in imports(file, known):
            parts = target.split(".")
            if parts[0] == "dpsql" and (len(parts) == 1 or parts[1] not in order or order[parts[1]] > order[folder]):
                wrong.append(f"{file.relative_to(ROOT)} imports {target}")
    assert wrong == []


def test_the_audit_is_found_by_the_command_line_alone() -> None:
    """What is audited does not depend on its audit: only the table of commands names it, for when the owner asks for it."""
    imported = re.compile(r"(\"|from |import )dpsql_audit\b")
    naming = {name(file) for file in modules().values() if imported.search(file.read_text(encoding="utf-8"))}
    assert {file for file in naming if not file.startswith("dpsql_audit")} == {"frontends/cli/__init__.py"}


def test_no_front_end_imports_another_but_the_command_line() -> None:
    known, doors = modules(), {"python", "repl", "pgwire", "batch", "demo", "admin"}
    wrong = [
        f"{name} imports {target}"
        for name, file in known.items()
        if name.startswith("dpsql.frontends.") and (own := name.split(".")[2]) in doors
        for target in imports(file, known)
        if target.startswith("dpsql.frontends.") and (other := target.split(".")[2]) in doors | {"cli"} and other != own
    ]
    assert wrong == []


def test_modules_import_each_other_in_no_circle() -> None:
    known = modules()
    graph = {name: {target for target in imports(file, known) if target != name} for name, file in known.items()}
    assert _circles(graph) == []


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for target in sorted(graph.get(module, ())):
            if target not in number:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], number[target])
        if lowest[module] == number[module]:
            component = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(component) > 1:
                circles.append(sorted(component))

    for module in sorted(graph):
        if module not in number:
            visit(module)
    return circles
