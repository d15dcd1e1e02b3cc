"""Names that a text should not have: columns that are called like a word of SQL, as `union`, and names of dpsql's own."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token

from dpsql.sql.lexer import word

OWN_NAMES = "dp#"
"""Text in each name that dpsql gives to a part of a question. No question may use such names, so that they mean one thing."""
_FOLLOWED_BY = {
    **dict.fromkeys(
        ("UNION", "INTERSECT", "EXCEPT"), ("ALL", "DISTINCT", "SELECT", "WITH", "FROM", "VALUES", "BY", "TABLE", "(")
    ),
    "ORDER": ("BY",),
    "GROUP": ("BY",),
}
"""Words of SQL that columns of real tables are called by, and what may stand behind them where they are none."""


def quoting_hint(tokens: Sequence[Token]) -> str | None:
    """Return how to write a column that is called like a word of SQL, where the first such word has none of SQL's words behind
    it; None where there is no such word."""
    for token, behind in zip(tokens, [*tokens[1:], None], strict=True):
        name = word(token)
        if name in _FOLLOWED_BY and (behind is None or behind.text.upper() not in _FOLLOWED_BY[name]):
            return f'{name} is a word of SQL; a column of that name is written in double quotes: "{token.text}"'
    return None
