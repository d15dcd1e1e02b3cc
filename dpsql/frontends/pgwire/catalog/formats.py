"""format() in questions about the catalogs, which DuckDB has for other patterns."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.macros import PREFIX

JOINED = "concat"
"""The function that `joined_format` calls."""
_PLACEHOLDER = re.compile(r"%([sIL%])")


def joined_format(node: exp.Expr) -> exp.Expr:
    """Return format('%I.%s', a, b), of a literal with only %s, %I, %L and %%, as a call that joins texts and values."""
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
            macro = {"I": "quote_ident", "L": "quote_nullable"}.get(text)
            parts.append(value if macro is None else exp.Anonymous(this=PREFIX + macro, expressions=[value]))
    return exp.Anonymous(this=JOINED, expressions=parts)
