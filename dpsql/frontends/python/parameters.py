"""Parameters as Python programs write them: `%s` and `%(name)s` as well as ? and :name, and numbers of numpy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.sql.lexer import SqlText, lex, lexed_piece
from dpsql.sql.parse import Parameters

_NAMED = re.compile(r"%\((\w+)\)s")
_PLACES = (TokenType.PLACEHOLDER, TokenType.PARAMETER)


def adapted(operation: str, parameters: Parameters) -> tuple[SqlText, Parameters]:
    """Return the operation with ? and :name alone (of the same length, so that positions in errors stay), and built-in values.

    `%s` counts as a parameter only if there are as many of them, outside of quotes and comments, as values, and no parameters of
    another style; anything else is left for the session to read or to refuse.
    """
    if isinstance(parameters, Mapping):
        values = {name: built_in(value) for name, value in parameters.items()}
        return _NAMED.sub(lambda match: f":{match[1]}".ljust(len(match[0])), operation), values
    if not isinstance(parameters, Sequence) or isinstance(parameters, (str, bytes, bytearray, memoryview)):
        return operation, parameters
    listed = [built_in(value) for value in parameters]
    return (_with_question_marks(operation, len(listed)) if "%s" in operation else operation), listed


def _with_question_marks(operation: str, count: int) -> SqlText:
    lexed = lex(operation)
    indexes = {
        token.start: index
        for index, (token, following) in enumerate(pairwise(lexed.tokens))
        if token.token_type is TokenType.MOD and (following.text, following.start) == ("s", token.start + 1)
    }
    if lexed.stop is not None or len(indexes) != count or any(t.token_type in _PLACES for t in lexed.tokens):
        return operation
    text, tokens = list(operation), list(lexed.tokens)
    for start, index in reversed(indexes.items()):
        text[start : start + 2] = "? "
        sign = tokens[index]
        tokens[index : index + 2] = [Token(TokenType.PLACEHOLDER, "?", sign.line, sign.col, start, start)]
    return lexed_piece("".join(text), tokens)


def built_in(value: Any) -> Any:
    """Return a scalar of numpy as the built-in value that it holds, a list item by item, and anything else unchanged."""
    if isinstance(value, (list, tuple)):
        return [built_in(item) for item in value]
    if type(value).__module__ != "numpy" or not hasattr(value, "item"):
        return value
    if value.dtype.kind == "M" and not value.dtype.str.endswith("[D]"):
        value = value.astype("datetime64[us]")
    return value.tolist() if value.ndim else value.item()
