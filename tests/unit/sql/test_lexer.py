"""A text is tokenized once, in one place, and later stages receive correct positions."""

from __future__ import annotations

import ast
import re

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sql.corpus import ACCEPTED
from support.package_modules import FILES, name, nodes_of

from dpsql.sql.lexer import DIALECT, POSTGRESQL, Piece, lex, read_script
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
    doors = {"sql/lexer.py", "sql/parser.py", "sql/parse.py", "frontends/pgwire/catalog/reading.py"}
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
