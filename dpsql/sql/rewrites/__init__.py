"""Rewrites of a text into spellings that the binder knows: one visible tuple for tokens, one for trees, each in its order.

In tokens is rewritten what the parser would lose. Dollar-quoted strings are plain ones. NUMERIC and DECIMAL without a number of
digits are reals: PostgreSQL keeps all digits of such a value, DuckDB three. SELECT TOP n of T-SQL is LIMIT n at the end of the
same SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import word
from dpsql.sql.rewrites.bigquery import with_group_bounds
from dpsql.sql.rewrites.comparisons import lists_as_in, with_merged_tests, with_negated_parts, with_plain_comparisons
from dpsql.sql.rewrites.pivots import without_pivots, without_unpivots
from dpsql.sql.rewrites.postgresql import in_own_words, interval_texts, with_memberships, with_plain_intervals
from dpsql.sql.rewrites.spellings import SAME, in_own_spelling, with_plain_casts


def plain_strings(tokens: list[Token]) -> list[Token]:
    """Return the tokens with dollar-quoted strings ($$text$$, $tag$text$tag$) as plain string tokens."""
    heredoc, plain = TokenType.HEREDOC_STRING, TokenType.STRING
    return [
        Token(plain, t.text, t.line, t.col, t.start, t.end, t.comments) if t.token_type is heredoc else t
        for t in tokens
    ]


def characters_apart(tokens: list[Token]) -> list[Token]:
    """Return the tokens with CHAR as a type of its own, which DuckDB's tokenizer reads as TEXT: without a length it has one
    character in PostgreSQL (`rewrites.dialects`)."""
    text, apart = TokenType.TEXT, TokenType.CHAR
    return [
        Token(apart, t.text, t.line, t.col, t.start, t.end, t.comments)
        if t.token_type is text and word(t) == "CHAR"
        else t
        for t in tokens
    ]


_CASTS = ("CAST", "TRY_CAST")


def decimals_as_reals(tokens: list[Token]) -> list[Token]:
    """Return the tokens with DOUBLE in place of each type DECIMAL without digits: behind `::`, behind AS in a cast, and before
    a text. Columns and aliases of that name stay."""
    if TokenType.DECIMAL not in [token.token_type for token in tokens]:
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


_BEFORE_JOIN = frozenset({
    "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "SEMI", "ANTI", "ASOF", "NATURAL", "CROSS", "POSITIONAL",
})  # fmt: skip
_WITHOUT_CONDITION = frozenset({"NATURAL", "CROSS", "POSITIONAL"})


def joined_on_conditions(tokens: list[Token]) -> list[Token]:
    """Return the tokens as they are. Refuses (syntax) a JOIN without ON or USING, which the parser reads as a comma: a condition
    was forgotten, and the answer would be charged."""
    if TokenType.JOIN not in [token.token_type for token in tokens]:
        return tokens
    waiting: list[list[Token]] = [[]]
    """For the text itself and each open bracket: the joins whose conditions have not come."""
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.JOIN:
            first = index
            while first and word(tokens[first - 1]) in _BEFORE_JOIN:
                first -= 1
            if not any(word(before) in _WITHOUT_CONDITION for before in tokens[first:index]):
                waiting[-1].append(token)
        elif kind in (TokenType.ON, TokenType.USING):
            del waiting[-1][-1:]
        elif kind is _OPEN:
            waiting.append([])
        elif kind is _CLOSE and len(waiting) > 1:
            _check_none(waiting.pop())
    _check_none(waiting[0])
    return tokens


def _check_none(joins: list[Token]) -> None:
    if joins:
        hint = "write ON or USING after it, or CROSS JOIN if all pairs of rows are meant"
        raise refuse("syntax", detail="JOIN has no condition", hint=hint, position=joins[0].start + 1)


def limits_alone(tokens: list[Token]) -> list[Token]:
    """Return the tokens as they are. Refuses (syntax) MySQL's LIMIT skipped, shown, which neither DuckDB nor PostgreSQL reads."""
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.LIMIT and [t.token_type for t in tokens[index + 2 : index + 3]] == [_COMMA]:
            skipped, most = tokens[index + 1].text, "".join(t.text for t in tokens[index + 3 : index + 4])
            raise refuse(
                "syntax", detail="LIMIT takes one number", hint=f"write LIMIT {most} OFFSET {skipped}",
                position=tokens[index + 1].start + 1,
            )  # fmt: skip
    return tokens


_OPEN, _CLOSE, _COMMA = TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA
_SET_OPERATIONS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_NOT_BESIDE = (*_SET_OPERATIONS, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
_ALONE = "TOP belongs to one SELECT without LIMIT; in UNION and the like write (SELECT TOP n ...) in brackets"


def tops_as_limits(tokens: list[Token]) -> list[Token]:
    """Return the tokens with LIMIT n at the end of each SELECT [DISTINCT] TOP n, and all others unchanged. TOP with PERCENT or
    WITH TIES is not supported: it is left for the parser to refuse.

    Refuses (syntax) TOP in a SELECT with LIMIT, OFFSET or FETCH, or without brackets in a set operation, whose LIMIT would hold
    for all of its rows.
    """
    if "TOP" not in [token.text.upper() for token in tokens]:
        return tokens
    plain: list[Token] = []
    limits: list[list[Token]] = [[]]
    """For the text itself and each open bracket: the tokens with which its SELECT must end."""
    united = [False]
    """For the same: whether a set operation has come, of which the next SELECT is a part."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.token_type is _OPEN:
            limits.append([])
            united.append(False)
        elif token.token_type is _CLOSE and len(limits) > 1:
            plain += limits.pop()
            united.pop()
        elif token.token_type in _NOT_BESIDE and limits[-1]:
            raise refuse("syntax", detail=_ALONE, position=limits[-1][0].start + 1)
        united[-1] = united[-1] or token.token_type in _SET_OPERATIONS
        plain.append(token)
        place += 1
        if word(token) == "SELECT":
            if place < len(tokens) and word(tokens[place]) in ("DISTINCT", "ALL"):
                plain.append(tokens[place])
                place += 1
            length, number = _top(tokens[place : place + 5])
            if number is not None:
                top = tokens[place]
                if united[-1]:
                    raise refuse("syntax", detail=_ALONE, position=top.start + 1)
                limit = Token(TokenType.LIMIT, "LIMIT", top.line, top.col, top.start, top.end)
                limits[-1] = [limit, number]
                place += length
    return plain + limits[0]


def _top(tokens: list[Token]) -> tuple[int, Token | None]:
    """Return the number of tokens of TOP n or TOP (n), and the token of n (None if the tokens are neither)."""
    words = [token.text.upper() for token in tokens]
    if not tokens or word(tokens[0]) != "TOP":
        return 0, None
    length, at_number = (4, 2) if words[1:2] == ["("] and words[3:4] == [")"] else (2, 1)
    if len(words) <= length or not _is_number(words[at_number]) or words[length] in ("PERCENT", "WITH"):
        return 0, None
    return length, tokens[at_number]


def _is_number(text: str) -> bool:
    """Return whether a text consists of ASCII digits alone, which the parser reads as a number."""
    return text.isascii() and text.isdigit()


_CONDITIONS = frozenset({
    TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.EQ, TokenType.NEQ, TokenType.AND, TokenType.OR,
    TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.BETWEEN, TokenType.TILDE,
})  # fmt: skip


def conditions_in_sets(tokens: list[Token]) -> list[Token]:
    """Return the tokens with brackets around the conditions in ROLLUP (a > b) and CUBE, where the parser reads no condition."""
    sets = frozenset({TokenType.ROLLUP, TokenType.CUBE})
    if sets.isdisjoint([token.token_type for token in tokens]):
        return tokens
    bracketed: list[Token] = []
    starts: list[int | None] = []
    """For each open bracket, where the item of a ROLLUP or CUBE begins; None in other brackets."""
    for token in tokens:
        kind = token.token_type
        if starts and starts[-1] is not None and kind in (_COMMA, _CLOSE):
            item = bracketed[starts[-1] :]
            if any(part.token_type in _CONDITIONS for part in _outside_of_brackets(item)):
                bracketed[starts[-1] :] = [_bracket(_OPEN, item[0]), *item, _bracket(_CLOSE, item[-1])]
            starts[-1] = len(bracketed) + 1
        if kind is _OPEN:
            starts.append(len(bracketed) + 1 if bracketed and bracketed[-1].token_type in sets else None)
        elif kind is _CLOSE and starts:
            starts.pop()
        bracketed.append(token)
    return bracketed


def _outside_of_brackets(tokens: list[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth += (token.token_type is _OPEN) - (token.token_type is _CLOSE)
        if depth == 0:
            yield token


def _bracket(kind: TokenType, edge: Token) -> Token:
    return Token(kind, "(" if kind is _OPEN else ")", edge.line, edge.col, edge.start, edge.end)


TOKENS: tuple[Callable[[list[Token]], list[Token]], ...] = (
    plain_strings, characters_apart, interval_texts, decimals_as_reals, tops_as_limits,
    joined_on_conditions, limits_alone, conditions_in_sets,
)  # fmt: skip

_SPELT = (
    exp.Anonymous, exp.WithinGroup, exp.Subquery, exp.Values, exp.ApproxDistinct, exp.Fetch, exp.Limit, exp.Offset,
    exp.DateFromParts, exp.Join, exp.Distinct, *SAME,
)  # fmt: skip
TREES: tuple[tuple[Callable[[exp.Query], exp.Query], tuple[type[exp.Expr], ...]], ...] = (
    (lists_as_in, (exp.Any, exp.Anonymous)),
    (in_own_words, (exp.Window, exp.CTE, exp.Anonymous, exp.Localtimestamp, exp.Min, exp.Max)),
    (with_plain_intervals, (exp.Interval, exp.Cast, exp.MakeInterval)),
    (without_unpivots, (exp.Pivot,)),
    (without_pivots, (exp.Pivot,)),
    (with_memberships, (exp.In, exp.Any, exp.All)),
    (with_plain_comparisons, (exp.Tuple, exp.Anonymous, exp.Any, exp.All)),
    (with_merged_tests, (exp.Or, exp.Union)),
    (with_negated_parts, (exp.Not,)),
    (in_own_spelling, _SPELT),
    (with_group_bounds, (exp.Anonymous,)),
    (with_plain_casts, (exp.Cast,)),
)
"""Each rewrite with the types of nodes of which a tree has one if it is to change."""
