"""`x = ANY (list)` and `x <> ALL (list)`, as drivers write a list of values, rewritten as IN and NOT IN.

They are equal in SQL's three-valued logic: `= ANY` and IN are both the OR of the comparisons with each item. With an empty list,
which IN cannot express, the result is FALSE (ALL: TRUE) even for NULL; with a list that is NULL, it is NULL.
"""

from __future__ import annotations

import re

from sqlglot import exp

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMERIC = (*exp.DataType.INTEGER_TYPES, *exp.DataType.FLOAT_TYPES, exp.DType.DECIMAL)


def lists_as_in(tree: exp.Query) -> exp.Query:
    """Replace each `= ANY (list)` and `<> ALL (list)` with a list of literals by IN and NOT IN; return the tree."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        every = isinstance(node, exp.NEQ)
        items = _items(_listed(node.expression, "ALL" if every else "SOME"))
        if items is None:
            continue
        membership = _member(node.this, items)
        node.replace(exp.Paren(this=exp.Not(this=membership) if every else membership))
    return tree


def _member(value: exp.Expr, items: list[exp.Expr] | exp.Null) -> exp.Expr:
    if isinstance(items, exp.Null):
        return exp.cast(exp.Null(), "boolean")
    if len(items) == 1:  # the same query as without a list, so the same stored answer
        return exp.EQ(this=value, expression=items[0])
    return exp.In(this=value, expressions=items) if items else exp.Boolean(this=False)


def _listed(node: exp.Expr, word: str) -> exp.Expr | None:
    """Return the argument of ANY, SOME or ALL (the parser reads the last two as functions); None for other nodes."""
    if isinstance(node, exp.Any):
        return node.this.unnest() if word == "SOME" else None
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() == word and len(node.expressions) == 1
    return node.expressions[0].unnest() if named else None


def _items(node: exp.Expr | None) -> list[exp.Expr] | exp.Null | None:
    """Return the items of a list of literals (NULL for a list that is NULL); None for any other expression."""
    numeric = False
    while isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY):
        numeric = any(inner.is_type(*_NUMERIC) for inner in node.to.expressions)
        node = node.this.unnest()
    if isinstance(node, exp.Null):
        return node
    if isinstance(node, exp.Array):
        items = list(node.expressions)
    elif isinstance(node, exp.Literal) and node.is_string and (texts := read_list(node.name)) is not None:
        items = [exp.Null() if text is None else exp.Literal.string(text) for text in texts]
    else:
        return None
    return [_number(item) for item in items] if numeric else items


def _number(item: exp.Expr) -> exp.Expr:
    """Return the number that a text in a list of numbers represents; any other item unchanged."""
    if not (isinstance(item, exp.Literal) and item.is_string and _NUMBER.fullmatch(item.name)):
        return item
    number = exp.Literal.number(item.name.lstrip("-"))
    return exp.Neg(this=number) if item.name.startswith("-") else number


_BARE = r"(?:[^\"\\{},\s]|\\.)+"
_ITEM = re.compile(rf"""\s*(?:"((?:[^"\\]|\\.)*)"|({_BARE}(?:\s+{_BARE})*))\s*(,|\}}$)""", re.DOTALL)
"""One item and what follows it. A text can be divided into these parts in only one way, so that a text that does not match is
rejected in linear time. (Possessive quantifiers would express this, but early releases of Python 3.11 match them wrongly.)"""


def read_list(text: str) -> list[str | None] | None:
    """Return the items of a list written as PostgreSQL's text, {a,"b c",NULL}; None for any other text.

    Source: PostgreSQL 16 documentation, section 8.15.2 (Array Value Input).
    """
    text = text.strip()
    if re.fullmatch(r"\{\s*\}", text):
        return []
    if not text.startswith("{"):
        return None
    items, position = list[str | None](), 1
    while (item := _ITEM.match(text, position)) is not None:
        quoted, bare, end = item.groups()
        null = quoted is None and bare.upper() == "NULL"
        items.append(None if null else re.sub(r"\\(.)", r"\1", bare if quoted is None else quoted, flags=re.DOTALL))
        if end == "}":
            return items
        position = item.end()
    return None
