"""The only door to the parser: equal trees, and a number of steps in proportion to the length of a text."""

import re
import threading
from typing import Any

import duckdb
import pytest
from fuzz import odd_sql
from sql.corpus import ACCEPTED
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import TokenType

from dpsql.errors.exceptions import Error
from dpsql.sql import parser
from dpsql.sql.lexer import DIALECT, POSTGRESQL, lex, parser_dialect
from dpsql.sql.parse import parse
from dpsql.sql.parser import most_steps, parse_text, parse_tokens

DIALECTS = pytest.mark.parametrize("dialect", [DIALECT, POSTGRESQL])
EXPRESSIONS = (
    "{}(a)", "{}(a, b)", "{}(1 + a)", "{}(1)", "{}(10, 2)", "{}", "{} '1'", "{}(3) '1'", "{}('1')", "{}()", "CAST(a AS {})", "CAST(a AS {}(3))", "CAST(a AS {}(b))", "a::{}", "a::{}(3)",
    "a::{}(3, 1)", "a::{}[]", "TRY_CAST({} AS {})", "{}({}(a))", "a AS {}", "{}.a", "a.{}", "{}.{}(a)", "{}(a) OVER (ORDER BY b)", "{}(DISTINCT a)", "EXTRACT({} FROM a)", "MAP({}, 1)",
)  # fmt: skip


def type_words(dialect: str) -> list[str]:
    """Return a word for every token that the parser takes for a type."""
    read = parser_dialect(dialect)
    words = {token: word for word, token in read.tokenizer_class.KEYWORDS.items() if word.isidentifier()}
    return sorted(words[token] for token in read.parser_class.TYPE_TOKENS if token in words)


def outcome(dialect: str, sql: str, usual: bool) -> str:
    """Return the trees of a text, or the parser's message."""
    tokens = lex(sql, dialect).tokens
    try:
        return repr(
            parser_dialect(dialect).parser().parse(tokens, sql) if usual else parse_tokens(tokens, sql, dialect)
        )
    except SqlglotError as error:
        return str(error)
    except (AttributeError, TypeError, ValueError) as error:
        return repr(error)


def _without_lengths(tree: str) -> str:
    """Return a tree without the length in varchar(2), which DuckDB's parser drops."""
    length = r"(?<=this=DType\.TEXT,)expressions=\[DataTypeParam\(this=Literal\(this=\d+,is_string=False\)\)\],"
    return re.sub(length, "", re.sub(r"\s+", "", tree))


@DIALECTS
def test_trees_are_those_of_the_parser_alone(dialect: str) -> None:
    """Also for every word for a type in every place. (The parser alone reports a few calls as errors, and reads UNKNOWN.UNKNOWN(a)
    as a list of names.)"""
    texts = [case.sql for case in ACCEPTED]
    texts += [f"SELECT {shape.replace('{}', word)} FROM t" for word in type_words(dialect) for shape in EXPRESSIONS]
    texts += [
        f"SELECT {shape.replace('{}', word)} FROM {word}(a) AS {word}(b)"
        for word in type_words(dialect)
        for shape in EXPRESSIONS[:3]
    ]
    texts += [f"SELECT {kind}::{other}" for kind in ("a", "'1'", "NULL") for other in odd_sql.TYPES]
    for text in texts:
        if "[" not in text and "UNKNOWN.UNKNOWN" not in text:
            usual, metered = (_without_lengths(outcome(dialect, text, alone)) for alone in (True, False))
            assert metered == usual or not usual.startswith("[")


def steps(dialect: str, sql: str) -> int:
    """Return the number of steps that a text takes; one more than `most_steps` if it is refused for that."""
    tokens = lex(sql, dialect).tokens
    try:
        parse_tokens(tokens, sql, dialect)
    except Error as error:
        assert error.slug == "too_many_readings"
        return most_steps(len(tokens)) + 1
    except SqlglotError:
        pass
    return most_steps(len(tokens)) - int(parser._metered_dialect(dialect).steps_left)


@DIALECTS
@pytest.mark.parametrize(
    "around", [("{}(", ")"), ("{}(a, ", ")"), ("{}(1 + ", ")"), ("-{}(", " + 1)"), ("a::{}(", ")"), ("({} (", "))")]
)
def test_words_for_types_cost_no_more_than_other_calls(dialect: str, around: tuple[str, str]) -> None:
    nested = {
        TokenType.ARRAY,
        TokenType.INTERVAL,
        TokenType.NULL,
        *parser_dialect(dialect).parser_class.NESTED_TYPE_TOKENS,
    }
    words = parser_dialect(dialect).tokenizer_class.KEYWORDS
    left, right = around
    for word in type_words(dialect):
        if words[word] not in nested:
            opened = left.replace("{}", word)
            assert steps(dialect, f"SELECT {opened * 50}a{right * 50}") < 5_000, word


@DIALECTS
def test_ordinary_texts_are_far_from_the_limit(dialect: str) -> None:
    for case in ACCEPTED:
        assert steps(dialect, case.sql) < most_steps(len(lex(case.sql, dialect).tokens)) / 4, case.id


WORST = {
    "joins": "SELECT * FROM t" + " JOIN t" * 5_000,
    "if": "SELECT " + "IF[" * 50 + "1" + "]" * 50,
    "limits": "SELECT " + "f(x LIMIT " * 50 + "1" + ")" * 50,
    "offsets": "SELECT * FROM " + "(SELECT * FROM t OFFSET " * 50 + "1" + ")" * 50,
    "arrays": "SELECT " + "ARRAY[" * 50 + "1" + "]" * 50,
    "structs": "SELECT a::" + "struct(" * 50 + "a" + ")" * 50,
    "calls of calls": "SELECT a" + ".f()" * 3_000,
    "calls behind operators": "SELECT " + "b(a).c." * 3_000 + "f(a)",
    "joins of lists": "SELECT * FROM " + "t JOIN " * 50 + "t, " * 1_000 + "t" + " USING (a) JOIN t" * 50,
    "joins of lateral lists": "SELECT * FROM " + "t JOIN " * 50 + "t, LATERAL " * 1_000 + "t" + " USING (a) JOIN t" * 50,
}  # fmt: skip


@DIALECTS
@pytest.mark.parametrize("name", WORST)
def test_the_parser_gives_up(dialect: str, name: str) -> None:
    tokens = len(lex(WORST[name], dialect).tokens)
    assert steps(dialect, WORST[name]) == most_steps(tokens) + 1
    assert most_steps(20_000) == 105_000


def test_other_threads_get_their_turn() -> None:
    """While one thread parses, another one counts: the parser gives the interpreter's lock back between its steps."""
    text = WORST["joins"] + " x" * 9_000
    turns: list[int] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            turns.append(1)

    other = threading.Thread(target=count)
    other.start()
    before = len(turns)
    assert steps(DIALECT, text) > 100_000
    during = len(turns) - before
    done.set()
    other.join()
    assert during > 1_000


def test_each_thread_counts_its_own_steps() -> None:
    results: dict[int, Any] = {}

    def run(number: int) -> None:
        results[number] = [steps(DIALECT, f"SELECT {'a + ' * number}a") for _ in range(20)]

    threads = [threading.Thread(target=run, args=(number,)) for number in (10, 100, 1_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(set(counted)) == 1 for counted in results.values())
    assert results[10] < results[100] < results[1_000]


@pytest.mark.parametrize("text", ["", "SELECT 1; SELECT 2", ";"])
def test_a_text_of_our_own_is_one_statement(text: str) -> None:
    with pytest.raises(ParseError):
        parse_text(text)


def test_a_question_that_can_be_read_in_too_many_ways_is_refused() -> None:
    with pytest.raises(Error) as caught:
        parse(WORST["if"])
    assert caught.value.slug == "too_many_readings"
    assert parse("SELECT " + "date(" * 59 + "day" + ")" * 59 + " FROM visits").kind == "query"


_OTHERWISE_READ = {"between", "cube", "if", "interval", "lock", "rollup"}
"""Words that DuckDB takes for names of columns, and the parser reads in some places as the beginning of something else."""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT avg({}) FROM t", "SELECT sum({} + 1) FROM t", "SELECT count(*) FROM t WHERE {} > 2", "SELECT {}, count(*) FROM t GROUP BY {}", "SELECT sum(t.{}) FROM t",
        "SELECT sum(CASE WHEN {} > 1 THEN {} END) FROM t", "SELECT count(*) FROM t WHERE NOT {} BETWEEN 1 AND 2", "SELECT max(x) AS {} FROM t ORDER BY {} DESC",
    ],
)  # fmt: skip
def test_words_that_are_no_reserved_ones_are_names_of_columns(text: str) -> None:
    """The German word for age is ALTER, and MAP the mean arterial pressure."""
    kinds = (
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('unreserved', 'column_name') ORDER BY 1"
    )
    words = [word for (word,) in duckdb.connect().execute(kinds).fetchall() if word not in _OTHERWISE_READ]
    assert len(words) > 300
    unquoted, quoted = (
        [_tree(text.replace("{}", name)) for name in names] for names in (words, [f'"{w}"' for w in words])
    )
    different = [word for word, one, other in zip(words, unquoted, quoted, strict=True) if one != other]
    assert not different


def _tree(sql: str) -> str:
    """Return the tree of a text, with all names unquoted; its text if it cannot be read."""
    try:
        tree = parse_text(sql)
    except ParseError:
        return sql
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", False)
    return repr(tree)
