"""Comparison of two versions of a module: which functions compute something else, and which tests check something else.

A function's own syntax tree is compared, together with the trees of all names of its module that it uses, directly or indirectly:
functions, classes, constants and imports. Code of other modules and docstrings are not compared.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from support.syntax_mutations import Scope, scopes_of

_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Code:
    """One version of a module."""

    def __init__(self, source: str) -> None:
        module = without_docstrings(ast.parse(source))
        self._scopes: dict[str, list[Scope]] = {}
        for name, scope in scopes_of(module):
            self._scopes.setdefault(name, []).append(scope)
        self._binding: dict[str, list[ast.stmt]] = {}
        self.tests: list[str] = []
        for statement in module.body:
            for name in _bound(statement):
                self._binding.setdefault(name, []).append(statement)
            if isinstance(statement, _BLOCKS) and statement.name.lower().startswith("test"):
                self.tests.append(statement.name)
        self._trees: dict[str, frozenset[str]] = {}

    def trees(self, function: str) -> frozenset[str]:
        """Return the trees in this module on which a function or class depends (a dotted name; "" is the module), or an empty set
        if no such name exists."""
        if function not in self._trees:
            self._trees[function] = frozenset(map(ast.dump, self._nodes(function)))
        return self._trees[function]

    def _nodes(self, function: str) -> Iterator[ast.AST]:
        parts = function.split(".")
        outside = [".".join(parts[:length]) for length in range(1, len(parts))]
        waiting: list[ast.AST] = list(self._scopes.get(function, ()))
        for name in outside:  # names of the enclosing scope that a nested function uses
            waiting += [scope for scope in self._scopes.get(name, ()) if not isinstance(scope, ast.ClassDef)]
        classes = [
            name for name in outside if any(isinstance(scope, ast.ClassDef) for scope in self._scopes.get(name, ()))
        ]
        met: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in met:
                continue
            met.add(id(node))
            yield node
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    waiting += self._binding.get(inner.id, ())
                elif isinstance(inner, ast.Attribute):  # methods of the same class
                    waiting += [scope for name in classes for scope in self._scopes.get(f"{name}.{inner.attr}", ())]


def without_docstrings(module: ast.Module) -> ast.Module:
    """Return the tree without string statements: docstrings of modules, functions, classes and attributes."""
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)] or [ast.Pass()]  # type: ignore[attr-defined]
    return module


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a module-level statement binds."""
    if isinstance(statement, _BLOCKS):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]


def differs(old: Code | None, new: Code, function: str) -> bool:
    """Return whether a function computes something else than in `old`; always True for a new module."""
    return old is None or old.trees(function) != new.trees(function)


def entries(source: str, called: str) -> dict[str, str]:
    """Return the trees of all calls of `called` whose first argument is a string, keyed by that string."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == called]
    return {
        call.args[0].value: ast.dump(call)
        for call in named
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    }


def may_select(only: str, test: str, tests: list[str]) -> bool:
    """Return whether pytest's `-k only` may select `test` of a file that has `tests`. A word that occurs in no test's name is
    taken for a parameter value, which any test may have."""
    words = set(re.findall(r"[^\s()]+", only)) - {"and", "or", "not"}
    holds = [word in test or not any(word in other for other in tests) for word in words]
    if not words or re.search(r"\bnot\b", only):
        return True
    return any(holds) if re.search(r"\bor\b", only) else all(holds)


def asks_differently(old: Mapping[str, Code | None], new: Mapping[str, Code], selection: str, only: str) -> bool:
    """Return whether a test that pytest selects has changed. `selection`: files with or without `::NAME`, separated by spaces;
    `old` and `new`: the texts of the changed files."""
    for place in selection.split():
        file, _, name = place.partition("::")
        if file not in new:
            continue
        code = new[file]
        chosen = [name.split("::")[0]] if name else [test for test in code.tests if may_select(only, test, code.tests)]
        if any(differs(old.get(file), code, test) for test in chosen):
            return True
    return False
