"""Commands of the wire are read from tokens: the objects that they name, and the position of the query inside them."""

import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.frontends.pgwire.commands import Command, read_command
from dpsql.sql.lexer import POSTGRESQL, read_script


def command(sql: str) -> Command | None:
    (piece,) = read_script(sql, POSTGRESQL).pieces
    return read_command(piece)


def inside(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return the query inside a command, which begins at its offset, and the words after it."""
    found = command(sql)
    assert found is not None and found.query is not None
    start = sql.index(found.query.sql[4:]) - 4 if found.query.sql.startswith("FROM") else sql.index(found.query.sql)
    assert found.query.offset == start
    return found.query.sql, found.words


@pytest.mark.parametrize(
    ("sql", "query", "words"),
    [
        ("COPY (SELECT ')' FROM a) TO STDOUT", "SELECT ')' FROM a", ()),
        ("copy(select (1)) to stdout with (format csv, header)", "select (1)",
         ("with", "(", "format", "csv", ",", "header", ")")),
        ("COPY (SELECT 1 /* ) TO STDOUT */) TO STDOUT DELIMITER ';'", "SELECT 1", ("DELIMITER", "';'")),
        ('COPY public."my table" TO STDOUT (FORMAT csv)', 'FROM public."my table"', ("(", "FORMAT", "csv", ")")),
        ("DECLARE c CURSOR FOR SELECT 1", "SELECT 1", ()),
        ("DECLARE \"C d\" BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 'for'", "SELECT 'for'", ("HOLD", "BINARY")),
        ("DECLARE c INSENSITIVE CURSOR WITHOUT HOLD FOR -- it\n SELECT 1", "SELECT 1", ()),
    ],
)  # fmt: skip
def test_questions_inside_of_commands_are_found(sql: str, query: str, words: tuple[str, ...]) -> None:
    assert inside(sql) == (query, words)


@pytest.mark.parametrize(
    ("sql", "slug"),
    [
        ("COPY a (b) TO STDOUT", "copy_columns"), ("COPY a FROM STDIN", "read_only"), ("COPY a TO 'file'", "wire_words"),
        ("COPY (SELECT 1) TO PROGRAM 'x'", "wire_words"), ("COPY (SELECT 1", "copy_target"), ("COPY", "read_only"),
        ("DECLARE c FOR SELECT 1", "wire_syntax"), ("DECLARE c CURSOR FOR", "wire_syntax"), ("SET", "syntax"),
        ("DECLARE c CURSOR WITH FOR SELECT 1", "wire_syntax"), ("DECLARE c NO CURSOR FOR SELECT 1", "wire_syntax"),
        ("DECLARE 1 CURSOR FOR SELECT 1", "wire_syntax"), ("CREATE -- a\n TABLE x (a int)", "read_only"),
        ("EXECUTE p p", "wire_syntax"), ("FETCH SIDEWARD FROM c", "wire_syntax"),
        ("LOCK a b IN ACCESS SHARE MODE", "read_only"), ("LOCK 1 IN ACCESS SHARE MODE", "read_only"),
        ("LOCK a IN SHARE MODE", "read_only"), ("LOCK , IN ACCESS SHARE MODE", "read_only"),
        ("EXPLAIN (FORMAT JSON, COSTS OFF) SELECT 1", "explain_format"),
        ("EXPLAIN (COSTS OFF, FORMAT YAML) SELECT 1", "explain_format"),
    ],
)  # fmt: skip
def test_commands_that_are_refused(sql: str, slug: str) -> None:
    with pytest.raises(Refusal) as caught:
        command(sql)
    assert caught.value.slug == slug


def test_tables_that_readers_lock_and_options_of_explain_are_read() -> None:
    locked = command('LOCK TABLE ONLY p . a, "my t" IN ACCESS SHARE MODE NOWAIT')
    assert locked is not None and locked.words == ("p.a", '"my t"')
    assert command("EXPLAIN (FORMAT TEXT, COSTS OFF) SELECT 1") is None


@pytest.mark.parametrize(
    ("sql", "kind", "name", "value"),
    [
        ("SET TimeZone TO 'Europe/Berlin'", "set", "timezone", "Europe/Berlin"),
        ("SET LOCAL statement_timeout = '5s'", "set", "statement_timeout", "5s"),
        ('SET search_path = "$user", public', "set", "search_path", '"$user", public'),
        ("SET extra_float_digits = -1", "set", "extra_float_digits", "-1"),
        ("SET TIME ZONE LOCAL", "reset", "timezone", "local"), ("SET timezone = local", "set", "timezone", "local"),
        ("SET a.b = DEFAULT", "reset", "a.b", "default"), ("SHOW transaction isolation level", "show",
         "transaction isolation level", ""), ("FETCH FORWARD 10 FROM \"C\"", "fetch", "C", "forward 10"),
        ("ROLLBACK TO SAVEPOINT s1", "rollback_to", "s1", ""), ("DEALLOCATE ALL", "deallocate", "", ""),
        ("RELEASE a", "release", "a", ""), ("BEGIN", "begin", "", ""), ("END", "commit", "", ""),
    ],
)  # fmt: skip
def test_commands_are_read(sql: str, kind: str, name: str, value: str) -> None:
    found = command(sql)
    assert found is not None and (found.kind, found.name, found.value) == (kind, name, value)


@pytest.mark.parametrize("sql", ["SELECT 1", "(SELECT 1)", '"BEGIN"', "EXPLAIN SELECT 1", "SHOW TABLES"])
def test_what_is_no_command_is_a_question(sql: str) -> None:
    assert command(sql) is None
