"""Syntax trees of the modules that are shipped, each parsed once per process because several tests walk all of them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from support.places import ROOT

PACKAGE, AUDIT = ROOT / "dpsql", ROOT / "dpsql_audit"
FILES = [*sorted(PACKAGE.rglob("*.py")), *sorted(AUDIT.rglob("*.py"))]


def name(file: Path) -> str:
    """Return the path of a module within `dpsql/`; of one of the audit, with its folder."""
    return file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else ROOT).as_posix()


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree in the order of `ast.walk`. The nodes are shared and must not be changed."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@cache
def _by_class(file: Path) -> dict[type[Any], list[ast.AST]]:
    found: dict[type[Any], list[ast.AST]] = defaultdict(list)
    for node in nodes(file):
        found[type(node)].append(node)
    return found


def nodes_of(file: Path, *kinds: type[Any]) -> Iterator[Any]:
    """Yield the nodes of a file that belong to these classes."""
    classes = [known for known in _by_class(file) if issubclass(known, kinds)]
    if len(classes) < 2:
        return iter(_by_class(file)[classes[0]] if classes else ())
    return (node for node in nodes(file) if isinstance(node, kinds))
