"""Names that a text should not use unquoted or at all: words of SQL such as `union` as columns, and dpsql's own names."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token

from dpsql.sql.lexer import word

OWN_NAMES = "dp#"
"""Text in every name that dpsql gives to a part of a query. No query may use such names, so that they are unambiguous."""
_FOLLOWED_BY = {
    **dict.fromkeys(
        ("UNION", "INTERSECT", "EXCEPT"), ("ALL", "DISTINCT", "SELECT", "WITH", "FROM", "VALUES", "BY", "TABLE", "(")
    ),
    "ORDER": ("BY",),
    "GROUP": ("BY",),
}
"""Words of SQL that are also names of columns in real tables, and what may follow them where they are not a column."""


def quoting_hint(tokens: Sequence[Token]) -> str | None:
    """Return how to write a column whose name is a word of SQL: the first such word that nothing follows which SQL expects there;
    None if there is none."""
    for token, behind in zip(tokens, [*tokens[1:], None], strict=True):
        name = word(token)
        if name in _FOLLOWED_BY and (behind is None or behind.text.upper() not in _FOLLOWED_BY[name]):
            return f'{name} is a word of SQL; a column of that name is written in double quotes: "{token.text}"'
    return None
