"""Arguments that the SQL parser drops: mod(7, 4, 2) becomes 7 % 4, and would be answered as if it were right.

There is no list of dropped arguments here, which the next version of the parser could make wrong. Instead, a call of the
same function with columns a0, a1, ... is parsed; a column that is nowhere in the tree was dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import parser_dialect
from dpsql.sql.parser import parse_text

MOST_ASKED = 16
"""Largest number of arguments of the trial call: functions that keep so many (coalesce, concat, least) keep all."""
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def check_arguments(tokens: list[Token], dialect: str) -> None:
    """Refuse the first call, in the order of closing brackets, of which the parser would drop an argument."""
    for name, arguments in _calls(tokens):
        forgotten = _forgotten(dialect, name.text.upper(), min(len(arguments), MOST_ASKED))
        if forgotten:
            most = min(len(arguments), MOST_ASKED) - len(forgotten)
            reason = f"takes {most} argument{'' if most == 1 else 's'} here, got {len(arguments)}"
            place = arguments[forgotten[0]].start + 1
            raise refuse("wrong_arguments", function=name.text.upper(), reason=reason, position=place)


def _calls(tokens: list[Token]) -> Iterator[tuple[Token, list[Token]]]:
    """Yield each name in front of a bracket with two or more expressions, with the first token of each expression."""
    open_: list[tuple[Token | None, list[Token]]] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if open_ and before is not None and before.token_type in (*_OPEN, TokenType.COMMA):
            open_[-1][1].append(token)
        if token.token_type in _OPEN:
            open_.append((before if token.token_type is TokenType.L_PAREN else None, []))
        elif token.token_type in _CLOSE and open_:
            name, arguments = open_.pop()
            if name is not None and len(arguments) > 1:
                yield name, arguments


@lru_cache(maxsize=4096)
def _forgotten(dialect: str, name: str, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments that are not in the tree of name(a0, a1, ...); empty if that is not valid SQL."""
    parser = parser_dialect(dialect).parser_class
    if name not in parser.FUNCTIONS and name not in parser.FUNCTION_PARSERS:
        return ()  # kept whole, as exp.Anonymous
    text = f"SELECT {name}({', '.join(f'a{index}' for index in range(count))})"
    try:
        tree = parse_text(text, dialect)
    except SqlglotError:
        return ()
    # Names may end as columns, units of time (Var) or types (CONVERT).
    names_in_tree = {word for node in tree.walk() for word in _words(node)}
    return tuple(index for index in range(count) if f"a{index}" not in names_in_tree)


def _words(node: exp.Expr) -> Iterator[str]:
    yield from (value.lower() for value in node.args.values() if isinstance(value, str))
