"""A text is tokenized once, in one place, and later stages receive correct positions."""

import ast
import re

import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sql.corpus import ACCEPTED
from sqlglot.tokenizer_core import TokenType
from support.package_modules import FILES, name, nodes_of

from dpsql.sql.lexer import DIALECT, POSTGRESQL, Piece, lex, read_script, split_file, with_values
from dpsql.sql.parse import parse

OWN_TEXTS = {
    "sql/parser.py": "asks the parser about calls that it makes up",
    "tuning/choices.py": "reads a remainder that it wrote",
    "release/sandbox.py": "writes a remainder of our own anew, once it has failed",
    "exports/estimates.py": "a question about randomised rows, which no session answers and no other door reads",
    "release/remainder.py": "reads a remainder back from a process",
    "disclosure/report.py": "a question that a session has answered, which the owner alone compares with exact numbers",
    "dpsql_audit/replay.py": "a question of the audit, whose tree it changes",
    "planning/total_cuts.py": "writes the queries of bounds that it chooses itself",
}
"""Modules other than the lexer that read texts which no front end received."""
READS = {"tokenize", "parse_one", "parser", "transpile", "maybe_parse"}


def _reads(node: ast.Attribute) -> bool:
    return node.attr in READS or (node.attr == "parse" and ast.unparse(node.value) == "sqlglot")


def test_no_other_module_lexes_or_parses() -> None:
    """Every text goes through the lexer, and through the parser that counts its steps."""
    reading = {
        name(file)
        for file in FILES
        if any(_reads(node) for node in nodes_of(file, ast.Attribute))
        or re.search(r"\bparse_(text|tokens)\(", file.read_text(encoding="utf-8"))
    }
    doors = {"sql/lexer.py", "sql/parser.py", "sql/parse.py", "frontends/pgwire/parameters.py"}
    assert reading == {*doors, *OWN_TEXTS}


@pytest.mark.parametrize("dialect", [DIALECT, POSTGRESQL])
def test_tokens_are_those_of_the_parser_itself(dialect: str) -> None:
    """Features that are switched off in the lexer change no token of a query."""
    for case in ACCEPTED:
        if case.sql.split()[0].upper() not in ("SELECT", "WITH", "FROM", "("):
            continue
        usual = sqlglot.tokenize(case.sql, read=dialect)
        assert [(t.token_type, t.text, t.start, t.end) for t in lex(case.sql, dialect).tokens] == [
            (t.token_type, t.text, t.start, t.end) for t in usual
        ], case.id


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=" \n/*-", max_size=8).filter(lambda blank: "/*" not in blank and "--" not in blank))
def test_a_piece_has_the_tokens_of_its_own_text(blank: str) -> None:
    before = blank.replace("*", " ").replace("/", " ").replace("-", "\n")
    text = f"{before}SELECT 1;{before} SELECT 'a\nb', \"c\" -- d\n FROM e; "
    for piece in read_script(text).pieces:
        assert text[piece.offset : piece.offset + len(piece.sql)] == piece.sql
        alone = Piece(piece.sql).tokens()
        assert [(t.token_type, t.text, t.start, t.end) for t in piece.tokens()] == [
            (t.token_type, t.text, t.start, t.end) for t in alone
        ]


@pytest.mark.parametrize("sql", ["SELECT $1+$2, $1", "SELECT $1*$1-$2"])
def test_parameters_without_blanks_are_no_string_in_dollars(sql: str) -> None:
    assert parse(sql, [3, 4]).query is not None


def test_a_part_counts_from_the_start_of_its_piece() -> None:
    piece = read_script("SELECT 1;\n COPY (SELECT 'x', 2) TO STDOUT").pieces[1]
    inner = piece.part(2, 6)
    assert inner.sql == "SELECT 'x', 2" and piece.sql[inner.offset :].startswith(inner.sql)
    assert inner.source(inner.tokens()[1]) == "'x'"


# --- Splitting a text into statements never splits inside a string, a name or a comment -------------------------------


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


@example("(")
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.from_regex(r"-?[0-9.e:\\'\"-]+"))
def test_a_value_of_a_command_line_is_one_token_whatever_it_holds(value: str) -> None:
    slices = "SELECT x[1:a], {'b':a}, n:a, E:'a', x[:a]"
    assert with_values(slices, {"a": value})[0][:-1] == slices[:-3] + with_values(":a", {"a": value})[0]
    text, found = with_values("""SELECT :'a', :"a" - :a, ':a', x::a, :b -- :a""", {"a": value})
    tokens = lex(text).tokens
    negative = tokens[5].token_type is TokenType.L_PAREN  # the value may be the text "("
    assert found == {"a"} and (tokens[1].text, tokens[3].text) == (value, value)
    assert [token.text for token in tokens[5:-8]] == (["(", "-", value[1:], ")", ","] if negative else [value, ","])
    assert [token.text for token in tokens[-8:]] == [":a", ",", "x", "::", "a", ",", ":", "b"]
