"""Errors of the catalogs' engine as PostgreSQL's own: SQLSTATE and sentence, with names and values of the analyst's own text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import REGISTER, Error, refuse
from dpsql.frontends.pgwire.catalog.coercion import SIGNS, sql_name, visible_type
from dpsql.frontends.pgwire.catalog.macros import PREFIX
from dpsql.frontends.pgwire.catalog.naming import called
from dpsql.frontends.pgwire.catalog.shape import SQL_NAMES, static
from dpsql.sql.lexer import place

_TYPES = {
    "INT8": "smallint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "INT128": "numeric", "UINT32": "oid",
    "BOOL": "boolean", "DOUBLE": "double precision", "FLOAT": "real", "UINT16": "smallint", "DATE": "date",
    "TIMESTAMP": "timestamp",
}  # fmt: skip
_RAISED = re.compile(r"^Invalid Input Error: dpsql:(\w+):(.*)", re.DOTALL)
"""What a macro raises: a slug and a name."""
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[str, dict[str, Any]]]], ...] = (
    (re.compile(r"Could not convert string '([^']*)' to (\w+)"),
     lambda m: ("catalog_text", {"value": m[1], "type": _type(m[2])})),
    (re.compile(r'(?:date|timestamp|time) field value out of range: "([^"]*)"'), lambda m: ("catalog_moment", {"value": m[1]})),
    (re.compile(r'invalid (date|timestamp|time|interval) field format: "([^"]*)"'),
     lambda m: ("catalog_time", {"value": m[2], "type": m[1]})),
    (re.compile(r"out of range for the destination type (\w+)|Overflow in \w+ of (\w+)"),
     lambda m: ("catalog_range", {"type": _type(m[1] or m[2])})),
    (re.compile(r"[Dd]ivision by zero"), lambda m: ("catalog_zero", {})),
    (re.compile(r"More than one row returned by a subquery"), lambda m: ("catalog_rows", {})),
    (re.compile(r'Ambiguous reference to column name "([^"]+)"'), lambda m: ("ambiguous_column", {"name": m[1]})),
    (re.compile(r"[Dd]uplicate (?:table )?alias \"([^\"]+)\""), lambda m: ("catalog_alias", {"name": m[1]})),
    (re.compile(r"LIMIT/OFFSET cannot be negative"), lambda m: ("catalog_limit", {})),
    (re.compile(r"(?:specifier|part|unit) \"([^\"]*)\"", re.IGNORECASE), lambda m: ("catalog_unit", {"name": m[1]})),
    (re.compile(r"aggregate function calls cannot be nested"), lambda m: ("catalog_nested", {})),
    (re.compile(r"WHERE clause cannot contain aggregates"), lambda m: ("catalog_where", {})),
    (re.compile(r"Subquery returns \d+ columns"), lambda m: ("catalog_subquery", {})),
    (re.compile(r"^Binder Error: (ORDER|GROUP BY) term out of range"),
     lambda m: ("catalog_position", {"clause": "ORDER BY" if m[1] == "ORDER" else m[1]})),
    (re.compile(r"Set operations can only apply"), lambda m: ("catalog_union", {})),
    (re.compile(r"column \"?([^\s\"]+)\"? must appear in the GROUP BY"), lambda m: ("catalog_ungrouped", {"name": m[1]})),
    (re.compile(r"Referenced table \"([^\"]+)\" not found"), lambda m: ("catalog_missing", {"name": m[1]})),
)  # fmt: skip
_CALL = re.compile(r"(?:argument types '|function call \")([^\s(]+)\(")
_FUNCTION = re.compile(r"[Ff]unction(?: with name)? \"?(\w+)|function '(\w+)")
_COLUMN = re.compile(r"column (?:named )?\"?([^\s\"]+)")


def _type(word: str) -> str:
    return _TYPES.get(word.upper(), SQL_NAMES.get(word.lower(), word.lower()))


def our_refusal(error: Exception, tree: exp.Expr) -> Error:
    """Return the refusal for an engine error. Only names and values in the analyst's own text are taken from the error."""
    text = str(error)
    kind = text.partition(" Error:")[0]
    if kind == "INTERRUPT":
        return refuse("sandbox_time")
    if kind == "Out of Memory":
        return refuse("sandbox_memory")
    raised = _RAISED.match(text)
    if raised is not None and raised[1] in REGISTER:
        name = raised[2].split("\n")[0]
        return refuse(raised[1], name=f'function "{name}"' if raised[1] == "catalog_function" else name)
    for pattern, facts in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            slug, values = facts(match)
            return refuse(slug, **values, position=_column_position(tree, values.get("name", "")))
    if kind in ("Conversion", "Invalid Input", "Out of Range"):
        return refuse("catalog_value")
    call = _CALL.search(text)
    if kind == "Binder" and call is not None:
        name = call.group(1).removeprefix(PREFIX)
        return unknown_call(tree, name) if name.isidentifier() else unknown_operator(tree, name)
    function = _FUNCTION.search(text)
    if function is not None and "does not exist" in text:
        return absent_call(tree, (function.group(1) or function.group(2)).removeprefix(PREFIX))
    column = _COLUMN.search(text)
    if kind == "Binder" and column is not None:
        return unknown_column(tree, column.group(1))
    return refuse("catalog_query")


def _column_position(tree: exp.Expr, name: str) -> int | None:
    """Return the position of the first column of a name, which may be in any case."""
    columns = (column for column in tree.find_all(exp.Column) if column.name.lower() == name.lower() != "")
    return min((position for column in columns if (position := place(column)) is not None), default=None)


def unknown_column(tree: exp.Expr, name: str) -> Error:
    """Return PostgreSQL's refusal of a column that does not exist, with the qualifier that it has in the text."""
    columns = [column for column in tree.find_all(exp.Column) if column.name.lower() == name.lower()]
    qualifier = columns[0].table if columns else ""
    label = f"{qualifier}.{name}" if qualifier else f'"{name}"'
    return refuse("catalog_column", name=label, position=_column_position(tree, name))


def unknown_operator(tree: exp.Expr, sign: str) -> Error:
    """Return PostgreSQL's refusal of an operator that does not exist, with the types of its operands as far as they are seen."""
    for node in tree.find_all(*(kind for kind, written in SIGNS.items() if written == sign)):
        left, right = (sql_name(visible_type(side) or "unknown") for side in (node.this, node.expression))
        return refuse("catalog_operator", name=f"{left} {sign} {right}")
    return refuse("catalog_operator", name=sign)


def absent_call(tree: exp.Expr, name: str) -> Error:
    """Return the refusal of a function that is not computed here: only of one that PostgreSQL lacks it is said not to exist."""
    if name.lower() in _functions() or not any(node.meta.get("word") for node in tree.find_all(exp.Func)):
        return refuse("catalog_query", hint=f"{name.lower()} is not computed here")
    return unknown_call(tree, name)


@cache
def _functions() -> frozenset[str]:
    return frozenset(static("pg_proc")["proname"])


def unknown_call(tree: exp.Expr, name: str) -> Error:
    """Return PostgreSQL's refusal of a function that does not exist, with the types of its arguments as far as they are seen."""
    calls = [node for node in tree.find_all(exp.Func) if called(node) == name.lower()]
    if not calls:
        return refuse("catalog_function", name=f"function {name.lower()}()")
    call = calls[0]
    arguments = call.expressions if isinstance(call, exp.Anonymous) else list(call.iter_expressions())
    types = ", ".join(sql_name(visible_type(argument) or "unknown") for argument in arguments)
    return refuse("catalog_function", name=f"function {name.lower()}({types})", position=place(call), hint=_NO_FUNCTION)


_NO_FUNCTION = "No function matches the given name and argument types. You might need to add explicit type casts."
