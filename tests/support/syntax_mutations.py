"""Replacement of one expression, or of a few consecutive statements, in a function, as syntax trees regardless of the text's
layout."""

import ast
from collections.abc import Iterator

Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def mutated(source: str, function: str, old: str, new: str) -> str:
    """Return the module `source` with `new` in place of `old`, without comments and in the layout of `ast.unparse`.

    `function`: the dotted name of the function or class that contains `old`, "" for the module. `old` is an expression or one or
    more statements that occur exactly once there; `new` is of the same kind. Raises AssertionError otherwise.
    """
    module = ast.parse(source)
    scopes = [scope for name, scope in scopes_of(module) if name == function]
    assert len(scopes) == 1, f"no function is called {function}"
    expression = _expression(old)
    if expression is not None and _expression(new) is not None:
        count = _replace_expression(scopes[0], expression, new)
    else:
        count = _replace_statements(scopes[0], ast.parse(old).body, ast.parse(new).body)
    assert count == 1, f"{function or 'the module'} has {count} times: {old}"
    return ast.unparse(module)


def scopes_of(scope: ast.AST, prefix: str = "") -> Iterator[tuple[str, Scope]]:
    """Yield functions and classes with their dotted names, and of a module itself as ""; each name begins with `prefix`."""
    if isinstance(scope, ast.Module):
        yield "", scope
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + child.name, child
            yield from scopes_of(child, f"{prefix}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from scopes_of(child, prefix)


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _replace_expression(scope: Scope, old: ast.expr, new: str) -> int:
    wanted, count = ast.dump(old), 0

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            nonlocal count
            if type(node) is type(old) and ast.dump(node) == wanted:
                count += 1
                return ast.parse(new, mode="eval").body
            return self.generic_visit(node)

    Replace().visit(scope)
    return count


def _replace_statements(scope: Scope, old: list[ast.stmt], new: list[ast.stmt]) -> int:
    wanted, count = [ast.dump(statement) for statement in old], 0
    for node in ast.walk(scope):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if not isinstance(body, list):
                continue
            texts = [ast.dump(statement) for statement in body]
            for start in range(len(body) - len(wanted), -1, -1):
                if texts[start : start + len(wanted)] == wanted:
                    body[start : start + len(wanted)] = new
                    count += 1
    return count
