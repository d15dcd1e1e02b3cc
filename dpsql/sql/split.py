"""Cut of a text into statements at the semicolons that are tokens, not at those in strings, names and comments."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import DIALECT, Piece, lex, piece_of


@dataclass(frozen=True)
class Script:
    """A text cut into statements. `statements`: those that end with a semicolon; `rest`: the text after the last one, or None.

    `unfinished`: what was opened and not closed (string, quoted name, comment), or empty; `position`: where (from 1).
    """

    statements: tuple[Piece, ...]
    rest: Piece | None
    unfinished: str = ""
    position: int = 0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Return all statements, the last one with or without its semicolon."""
        return self.statements if self.rest is None else (*self.statements, self.rest)


def read_script(text: str, dialect: str = DIALECT) -> Script:
    """Cut `text` into statements. It never raises, because a prompt asks for more input when something is unfinished."""
    lexed = lex(text, dialect)
    statements: list[Piece] = []
    waiting: list[Token] = []
    for token in lexed.tokens:
        if token.token_type is not TokenType.SEMICOLON:
            waiting.append(token)
        elif waiting:
            statements.append(piece_of(text, waiting, dialect))
            waiting = []
    if lexed.stop is None:
        return Script(tuple(statements), piece_of(text, waiting, dialect) if waiting else None)
    start = waiting[0].start if waiting else lexed.stop
    rest = Piece(text[start:], text.count("\n", 0, start) + 1, start, dialect)
    return Script(tuple(statements), rest, lexed.unfinished, lexed.stop + 1 if lexed.unfinished else 0)


def split_file(text: str) -> tuple[Piece, ...]:
    """Return all statements of a file; the last one needs no semicolon. Refuses (text_unfinished) an unfinished text."""
    script = read_script(text)
    if script.unfinished:
        raise refuse("text_unfinished", what=script.unfinished, position=script.position).placed_in(text)
    return script.pieces
