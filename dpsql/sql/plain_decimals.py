"""NUMERIC and DECIMAL without a number of digits, read as reals: PostgreSQL keeps all digits of such a value, DuckDB three."""

from __future__ import annotations

from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.sql.lexer import word

_CASTS = ("CAST", "TRY_CAST")


def decimals_as_reals(tokens: list[Token]) -> list[Token]:
    """Return the tokens with DOUBLE in place of each type DECIMAL without digits: behind `::`, behind AS in a cast, and before
    a text. Columns and aliases of that name stay."""
    if not any(token.token_type is TokenType.DECIMAL for token in tokens):
        return tokens
    plain, in_cast = tokens[:1], [False]
    """`in_cast`: for the text itself and each open bracket, whether a cast has opened it."""
    for (before, token), after in zip(pairwise(tokens), [*tokens[2:], None], strict=True):
        if token.token_type is TokenType.L_PAREN:
            in_cast.append(word(before) in _CASTS)
        elif token.token_type is TokenType.R_PAREN and len(in_cast) > 1:
            in_cast.pop()
        following = None if after is None else after.token_type
        is_type = before.token_type is TokenType.DCOLON or (word(before) == "AS" and in_cast[-1])
        is_type = token.token_type is TokenType.DECIMAL and (is_type or following is TokenType.STRING)
        if is_type and following is not TokenType.L_PAREN:
            plain.append(Token(TokenType.DOUBLE, "DOUBLE", token.line, token.col, token.start, token.end))
        else:
            plain.append(token)
    return plain
