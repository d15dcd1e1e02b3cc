"""Splitting a text into statements never splits inside a string, a name or a comment."""

from __future__ import annotations

import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.sql.lexer import Piece, read_script, split_file

SAFE = st.sampled_from([
    "SELECT 1", "SELECT ';'", "SELECT 'it''s; not'", 'SELECT 1 AS "a;b"', "SELECT /* ; */ 1", "SELECT 1 -- ; x\n + 2",
    "SELECT $$a;b$$", "SELECT $x$;$$;$x$", "SELECT E'\\';'", "SELECT /* a /* ; */ ; */ 2", "SET dp.epsilon = 1",
])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(SAFE, max_size=6), st.sampled_from([";", " ;\n", ";;", "; -- c;\n", "; /* ; */ "]))
def test_statements_come_back_as_they_were_written(statements: list[str], between: str) -> None:
    pieces = split_file(between.join(statements))
    assert [piece.sql for piece in pieces] == statements


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab'\";-/*$E\\ \n", max_size=40))
def test_any_text_is_cut_without_error(text: str) -> None:
    script = read_script(text)
    for piece in (*script.statements, *([script.rest] if script.rest else [])):
        assert piece.sql in text
        assert text.split("\n")[piece.line - 1].find(piece.sql.split("\n")[0]) >= 0
    assert bool(script.unfinished) == bool(script.position)


def test_the_parser_agrees_that_each_piece_is_one_statement() -> None:
    text = "SELECT ';', \"a;b\" -- ;\n; SELECT $$;$$ /* ; /* ; */ */;SELECT 3"
    pieces = split_file(text)
    assert [piece.line for piece in pieces] == [1, 2, 2]
    assert all(len(sqlglot.parse(piece.sql, read="duckdb")) == 1 for piece in pieces)


def test_lines_of_statements_are_counted_past_comments() -> None:
    text = "-- a\n\n/* b */ SELECT 1;\n-- c\nSELECT\n 2\n-- end"
    assert split_file(text) == (Piece("SELECT 1", 3), Piece("SELECT\n 2", 5))
    assert split_file("-- nothing; here\n ;; ") == ()
