"""format() and tests of texts with patterns in questions about the catalogs, which DuckDB has in other forms."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.macros import PREFIX
from dpsql.frontends.pgwire.catalog.sources import call, list_literal

JOINED = "concat"
"""The function that `joined_format` calls."""
_PLACEHOLDER = re.compile(r"%([sIL%])")


def joined_format(node: exp.Expr) -> exp.Expr:
    """Return format('%I.%s', a, b), of a literal with only %s, %I, %L and %%, as a call that joins texts and values."""
    pattern, *values = node.expressions if isinstance(node, exp.Anonymous) else (node.this, *node.expressions)
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


_OPERATORS = {"~~": ("like", exp.Like), "~~*": ("ilike", exp.ILike), "~": ("matche", None), "~*": ("imatche", None)}
"""Tests with patterns: the macro that makes the list of a text's tests, and the node of a single one."""
_WORDS: dict[type[exp.Expr], str] = {exp.Like: "~~", exp.ILike: "~~*", exp.RegexpLike: "~", exp.RegexpILike: "~*"}


def pattern_test(node: exp.Expr) -> exp.Expr:
    """Return x LIKE y, x ~ y or a like test, also of ANY and ALL patterns of a list; a backslash escapes in LIKE."""
    if isinstance(node.parent, exp.Escape):
        return node
    return _tested(node.this, _WORDS[type(node)], node.expression, bool(node.args.get("negate")))


def _tested(value: exp.Expr, operator: str, pattern: exp.Expr, negated: bool) -> exp.Expr:
    macro, node = _OPERATORS[operator]
    is_all = isinstance(pattern, exp.All) or (isinstance(pattern, exp.Anonymous) and pattern.name.upper() == "ALL")
    if is_all or isinstance(pattern, exp.Any):
        listed = (pattern.expressions[0] if isinstance(pattern, exp.Anonymous) else pattern.this).unnest()
        if isinstance(listed, exp.Literal):
            listed = list_literal(listed.name)
        some = exp.Anonymous(
            this="list_contains", expressions=[call(f"{macro}s", value, listed), exp.convert(is_all == negated)]
        )
        return exp.Not(this=some) if is_all else some
    if node is None:
        test: exp.Expr = exp.Anonymous(
            this="regexp_matches", expressions=[value, pattern, exp.Literal.string("i" if "*" in operator else "")]
        )
    else:
        test = node(this=value.copy(), expression=pattern.copy())
        if not (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
            test = exp.Escape(this=test, expression=exp.Literal.string("\\"))
        test = exp.Paren(this=test)
    return exp.Not(this=test) if negated else test
