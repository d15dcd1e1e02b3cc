"""Commands of the wire are read from tokens: the objects that they name, and the position of the query inside them."""

import pytest

from dpsql.frontends.pgwire.commands import Command, read_command
from dpsql.sql.lexer import POSTGRESQL, read_script


def command(sql: str) -> Command | None:
    (piece,) = read_script(sql, POSTGRESQL).pieces
    return read_command(piece)


def inside(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return the query inside a command, which begins at its offset, and the words after it."""
    found = command(sql)
    assert found is not None and found.query is not None
    written = (
        found.query.sql.removeprefix("SELECT * FROM") if sql[5] != "(" and sql.startswith("COPY") else found.query.sql
    )
    start = sql.index(written) - (len(found.query.sql) - len(written))
    assert found.query.offset == start
    return found.query.sql, found.words


@pytest.mark.parametrize(
    ("sql", "query", "words"),
    [
        ("COPY (SELECT ')' FROM a) TO STDOUT", "SELECT ')' FROM a", ()),
        ("copy(select (1)) to stdout with (format csv, header)", "select (1)",
         ("with", "(", "format", "csv", ",", "header", ")")),
        ("COPY (SELECT 1 /* ) TO STDOUT */) TO STDOUT DELIMITER ';'", "SELECT 1", ("DELIMITER", "';'")),
        ('COPY public."my table" TO STDOUT (FORMAT csv)', 'SELECT * FROM public."my table"', ("(", "FORMAT", "csv", ")")),
        ("DECLARE c CURSOR FOR SELECT 1", "SELECT 1", ()),
        ("DECLARE \"C d\" BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 'for'", "SELECT 'for'", ("HOLD", "BINARY", "NO SCROLL")),
        ("DECLARE c INSENSITIVE CURSOR WITHOUT HOLD FOR -- it\n SELECT 1", "SELECT 1", ()),
    ],
)  # fmt: skip
def test_questions_inside_of_commands_are_found(sql: str, query: str, words: tuple[str, ...]) -> None:
    assert inside(sql) == (query, words)
