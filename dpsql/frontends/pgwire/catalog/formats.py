"""format() and division in questions about the catalogs, which DuckDB reads differently from PostgreSQL."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.macros import PREFIX

JOINED = "concat"
"""The function that `joined_format` calls."""
_PLACEHOLDER = re.compile(r"%([sI%])")


def joined_format(node: exp.Expr) -> exp.Expr:
    """Return format('%I.%s', a, b), of a literal with only %s, %I and %%, as a call that joins texts and values."""
    pattern, values = node.this, list(node.expressions)
    pieces = _PLACEHOLDER.split(pattern.name) if isinstance(pattern, exp.Literal) and pattern.is_string else ["%"]
    if any("%" in text for text in pieces[::2]) or sum(kind != "%" for kind in pieces[1::2]) != len(values):
        raise refuse("unknown_function", name="format")
    parts: list[exp.Expr] = [exp.Literal.string("")]
    for number, text in enumerate(pieces):
        if number % 2 == 0:
            parts += [exp.Literal.string(text)] if text else []
        elif text == "%":
            parts.append(exp.Literal.string(text))
        else:
            value = exp.cast(values.pop(0), "text")
            parts.append(exp.Anonymous(this=PREFIX + "quote_ident", expressions=[value]) if text == "I" else value)
    return exp.Anonymous(this=JOINED, expressions=parts)


def whole_quotient(node: exp.Expr) -> exp.Expr:
    """Return a quotient as an integer division if both operands are visibly integers: literals or casts."""
    assert isinstance(node, exp.Binary)
    whole = _is_integer(node.left) and _is_integer(node.right)
    return exp.IntDiv(this=node.left.copy(), expression=node.right.copy()) if whole else node


def _is_integer(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return node.to.is_type(*exp.DataType.INTEGER_TYPES)
    return isinstance(node, exp.Literal) and node.is_int
