"""Cutting a text into statements at its semicolons, as the SQL lexer sees strings, names and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsql.errors.exceptions import refuse

_TOKEN = re.compile(r"(?<![\w$])[eE]'|'|\"|--|/\*|(?<![\w$])\$(?:[A-Za-z_]\w*)?\$|;|\S")
_CLOSING = {"'": re.compile(r"(?:[^']|'')*'"), '"': re.compile(r'(?:[^"]|"")*"')}
_ESCAPED = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_WORDS = {"'": "string", '"': "quoted name", "/*": "comment"}


@dataclass(frozen=True)
class Piece:
    """One statement without its semicolon; `line` is the line of the text on which it starts, from 1."""

    sql: str
    line: int


@dataclass(frozen=True)
class Script:
    """`statements` were closed by a semicolon; `rest` is what follows the last one, None when there is nothing.

    `unfinished` names what was opened and not closed (string, quoted name, comment), `position` where (1-based).
    """

    statements: tuple[Piece, ...]
    rest: Piece | None
    unfinished: str = ""
    position: int = 0


def read_script(text: str) -> Script:
    """Cut `text` into statements. Never raises: a prompt asks for more when something is unfinished."""
    statements: list[Piece] = []
    start: int | None = None
    end = at = 0
    while (match := _TOKEN.search(text, at)) is not None:
        token = match.group()
        if token == ";":
            if start is not None:
                statements.append(_piece(text, start, end))
            start, at = None, match.end()
            continue
        after = _after(text, token, match.end())
        if start is None and token not in ("--", "/*"):
            start = match.start()
        if after is None:
            opened = _WORDS.get(token.lstrip("eE"), "string")
            rest = _piece(text, match.start() if start is None else start, len(text))
            return Script(tuple(statements), rest, opened, match.start() + 1)
        at = after
        if token not in ("--", "/*"):
            end = at
    return Script(tuple(statements), None if start is None else _piece(text, start, end))


def split_file(text: str) -> tuple[Piece, ...]:
    """Every statement of a file; the last one needs no semicolon. Refuses what is unfinished (text_unfinished)."""
    script = read_script(text)
    if script.unfinished:
        raise refuse("text_unfinished", what=script.unfinished, position=script.position).at(text)
    return script.statements if script.rest is None else (*script.statements, script.rest)


def _piece(text: str, start: int, end: int) -> Piece:
    return Piece(text[start:end], text.count("\n", 0, start) + 1)


def _after(text: str, token: str, index: int) -> int | None:
    """The place after what `token` opens at `at`, None when it is not closed."""
    if token == "--":
        found = text.find("\n", index)
        return len(text) if found < 0 else found
    if token == "/*":
        return _after_comment(text, index)
    if token[0] == "$" and len(token) > 1:
        found = text.find(token, index)
        return None if found < 0 else found + len(token)
    closing = _ESCAPED if token in ("e'", "E'") else _CLOSING.get(token)
    if closing is None:
        return index
    match = closing.match(text, index)
    return None if match is None else match.end()


def _after_comment(text: str, index: int) -> int | None:
    """Comments nest, as in PostgreSQL and DuckDB."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, index):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return None
