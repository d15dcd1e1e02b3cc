"""SELECT TOP n of T-SQL, read as LIMIT n at the end of the SELECT that it stands in, on the tokens of a question."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import word

_OPEN, _CLOSE = TokenType.L_PAREN, TokenType.R_PAREN
_NOT_BESIDE = (
    TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH,
)  # fmt: skip


def tops_as_limits(tokens: list[Token]) -> list[Token]:
    """Return the tokens with LIMIT n at the end of each SELECT [DISTINCT] TOP n; others as they are. A share (PERCENT) and ties
    have no meaning here, so that the parser will refuse them.

    Refuses (syntax) another LIMIT beside TOP, and sets of which one SELECT alone has a TOP.
    """
    if not any(word(token) == "TOP" for token in tokens):
        return tokens
    plain: list[Token] = []
    limits: list[list[Token]] = [[]]
    """For each open bracket, and the text itself, what its SELECT has to end with."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.token_type is _OPEN:
            limits.append([])
        elif token.token_type is _CLOSE:
            plain += limits.pop() if len(limits) > 1 else []
        elif token.token_type in _NOT_BESIDE and limits[-1]:
            detail = "TOP stands in one SELECT without LIMIT"
            raise refuse("syntax", detail=detail, position=limits[-1][0].start + 1)
        plain.append(token)
        place += 1
        if word(token) == "SELECT":
            if place < len(tokens) and word(tokens[place]) in ("DISTINCT", "ALL"):
                plain.append(tokens[place])
                place += 1
            length, number = _top(tokens[place : place + 5])
            if number is not None:
                top = tokens[place]
                limit = Token(TokenType.LIMIT, "LIMIT", top.line, top.col, top.start, top.end)
                limits[-1] = [limit, number]
                place += length
    return plain + limits[0]


def _top(tokens: list[Token]) -> tuple[int, Token | None]:
    """Return how many tokens TOP n or TOP (n) takes, and that of n; None where these are no such."""
    words = [token.text.upper() for token in tokens]
    if not tokens or word(tokens[0]) != "TOP":
        return 0, None
    length, at_number = (4, 2) if words[1:2] == ["("] and words[3:4] == [")"] else (2, 1)
    if len(words) <= length or not _is_number(words[at_number]) or words[length] in ("PERCENT", "WITH"):
        return 0, None
    return length, tokens[at_number]


def _is_number(text: str) -> bool:
    """Return whether a text is digits of ASCII alone, which the parser reads as a number."""
    return text.isascii() and text.isdigit()
