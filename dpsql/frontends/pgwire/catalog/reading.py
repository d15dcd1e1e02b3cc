"""Parsing of questions about the catalogs, in PostgreSQL's dialect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import Error
from dpsql.sql.lexer import POSTGRESQL, SqlText, as_piece
from dpsql.sql.parse import MOST_BRACKETS, MOST_TOKENS
from dpsql.sql.parser import parse_tokens
from dpsql.sql.rewrites.postgresql import flattened

_MOST_DEPTH = 150


def read_postgres(text: SqlText, dialect: str = POSTGRESQL) -> exp.Expr | None:
    """Parse one statement in PostgreSQL's dialect, or another one; None if sqlglot cannot. Limits apply before the parser
    runs."""
    piece = as_piece(text)
    try:
        tokens = list(piece.tokens(dialect))
        depth = deepest = 0
        for token in tokens:
            depth += (token.text in ("(", "[") or token.text.upper() == "CASE") - (token.text in (")", "]"))
            deepest = max(deepest, depth)
        if len(tokens) > MOST_TOKENS or deepest > MOST_BRACKETS:
            return None
        trees = parse_tokens(_with_arrays(_with_labels(_with_operators(tokens))), piece.sql, dialect)
    except (Error, SqlglotError, RecursionError):
        return None
    tree = flattened(trees[0]) if len(trees) == 1 else None
    if isinstance(tree, exp.Values):
        names = [f"column{number}" for number, _ in enumerate(tree.expressions[0].expressions, 1)]
        tree = exp.select("*").from_(exp.alias_(tree, "*VALUES*", table=names, quoted=True))
    if tree is not None:
        for node in tree.find_all(exp.Func, exp.Mod):
            if "start" in node.meta:
                node.meta["word"] = piece.sql[node.meta["start"] : node.meta["end"] + 1]
    return tree if tree is not None and _shallow(tree) else None


_LABELS = {TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE}


def _with_labels(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a question with `select` and the like as names in `AS select` and `t.select`: in PostgreSQL any word
    may follow AS or a dot."""
    if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH):
        return list(tokens)
    labelled = list(tokens[:1])
    for before, token in pairwise(tokens):
        named = token.token_type in _LABELS and before.token_type in (TokenType.ALIAS, TokenType.DOT)
        labelled.append(_name_token(token) if named else token)
    return labelled


def _with_operators(tokens: list[Token]) -> list[Token]:
    """Return the tokens with OPERATOR(pg_catalog.~) as ~."""
    read: list[Token] = []
    start = 0
    for token in tokens:
        start = len(read) if token.token_type is TokenType.OPERATOR else start
        read.append(token)
        if token.text == ")" and [before.text.lower() for before in read[start : start + 4]] == _IN_CATALOG:
            read[start:] = read[start + 4 : -1]
    return read


_IN_CATALOG = ["operator", "(", "pg_catalog", "."]


def _with_arrays(tokens: list[Token]) -> list[Token]:
    """Return the tokens with regtype[] and the like by the name that PostgreSQL has for this type, _regtype: sqlglot reads no
    brackets behind it."""
    read: list[Token] = []
    for token in tokens:
        before = [other.token_type for other in read[-2:]]
        if token.token_type is TokenType.R_BRACKET and before == [TokenType.OBJECT_IDENTIFIER, TokenType.L_BRACKET]:
            name = read[-2]
            read[-2:] = [
                Token(TokenType.VAR, f"_{name.text.lower()}", name.line, name.col, name.start, token.end, name.comments)
            ]
        else:
            read.append(token)
    return read


def _name_token(token: Token) -> Token:
    lowered = token.text.lower()
    return Token(TokenType.IDENTIFIER, lowered, token.line, token.col, token.start, token.end, token.comments)


def _shallow(tree: exp.Expr) -> bool:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _MOST_DEPTH:
            return False
        level = [child for node in level for child in node.iter_expressions()]
    return True
