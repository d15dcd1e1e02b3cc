"""A text becomes one statement of a kind that dpsql knows, or a refusal with its position, for any content."""

import enum
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dpsql.errors.exceptions import Error
from dpsql.privacy.loss import MOST_EXPONENT
from dpsql.sql.parse import MOST_BRACKETS, MOST_CHARACTERS, MOST_DEPTH, MOST_TOKENS, parse, values_text


def written(text: str, parameters: Any = None) -> str:
    """Return the parsed query as DuckDB's text."""
    query = parse(text, parameters).query
    assert query is not None
    return query.sql("duckdb")


def refused(text: Any, parameters: Any = None) -> Error:
    with pytest.raises(Error) as caught:
        parse(text, parameters)
    return caught.value


# --- kinds of statements --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "name", "value"),
    [
        ("SELECT 1", "query", "", ""),
        ("select 1;", "query", "", ""),
        ("SELECT 1;;", "query", "", ""),
        ("FROM t", "query", "", ""),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "query", "", ""),
        ("(SELECT 1)", "query", "", ""),
        ("FROM (VALUES (1)) AS v(x)", "query", "", ""),
        ("EXPLAIN SELECT 1", "explain", "", ""),
        ("explain privacy SELECT 1", "explain", "", ""),
        ("EXPLAIN VERBOSE SELECT 1", "explain", "verbose", ""),
        ("SHOW TABLES", "show_tables", "", ""),
        ("show all tables", "show_tables", "", ""),
        ("SHOW dp.epsilon", "show", "dp.epsilon", ""),
        ("SHOW Search_Path", "show", "search_path", ""),
        ("DESCRIBE visits", "describe", "visits", ""),
        ("DESCRIBE TABLE visits", "describe", "visits", ""),
        ("DESCRIBE table.visits", "describe", "table.visits", ""),
        ("DESC main.visits", "describe", "main.visits", ""),
        ("DESCRIBE hospital.main.visits", "describe", "hospital.main.visits", ""),
        ("RESET dp.epsilon", "reset", "dp.epsilon", ""),
        ("SET dp.epsilon = 0.5", "set", "dp.epsilon", "0.5"),
        ("SET DP.Epsilon TO 0.5;", "set", "dp.epsilon", "0.5"),
        ("SET SESSION dp.epsilon = 1", "set", "dp.epsilon", "1"),
        ("set session dp.bounds to 'a b'", "set", "dp.bounds", "a b"),
        ("SET search_path = a, b", "set", "search_path", "a, b"),
        ("SET dp.epsilon = -1", "set", "dp.epsilon", "-1"),
        ("BEGIN", "transaction", "BEGIN", ""),
        ("commit", "transaction", "COMMIT", ""),
        ("START TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY", "transaction", "START", ""),
    ],
)
def test_each_statement_has_its_kind(text: str, kind: str, name: str, value: str) -> None:
    statement = parse(text)
    assert (statement.kind, statement.name, statement.value) == (kind, name, value)
    assert statement.sql == text
    assert (statement.query is not None) is (kind in ("query", "explain"))


@pytest.mark.parametrize(
    ("text", "slug", "position"),
    [
        ("", "empty", None),
        ("  ;", "empty", None),
        ("-- nothing", "empty", None),
        ("EXPLAIN", "empty", None),
        ("EXPLAIN PRIVACY", "empty", None),
        ("SELECT 1; SELECT 2", "many_statements", 9),
        ("SET dp.epsilon = 1; SELECT 2", "many_statements", 19),
        ("SET local dp.epsilon = 1", "transaction_none", 5),
        ("DROP TABLE t", "not_a_query", 1),
        ("EXPLAIN DELETE FROM t", "not_a_query", 9),
        ("SELCT 1", "syntax", 1),
        ("EXPLAIN SHOW TABLES", "not_a_query", 9),
        ("VALUES (1)", "not_a_query", 1),
        ("SELECT (1", "syntax", None),
        ("SELECT 1 +", "syntax", None),
        ("SET", "syntax", 1),
        ("SET dp.epsilon", "syntax", 1),
        ("SET dp.epsilon =", "syntax", 1),
        ("SET = 3", "syntax", 1),
        ("SET a.b.c = 3", "syntax", 1),
        ("SHOW", "syntax", 1),
        ("SHOW a b", "syntax", 1),
        ("RESET 3", "syntax", 1),
        ("DESCRIBE", "syntax", 1),
        ("DESCRIBE a b", "syntax", 1),
        ("DESCRIBE a - b", "syntax", 1),
        ("DESCRIBE a.b.c.d", "syntax", 1),
        ("BEGIN a b c d e f g h", "syntax", 21),
        ('SELECT "a", "Dp#x"', "syntax", 13),
        ("SELECT 'a\0b'", "bad_character", 10),
        ("SELECT '\ud800'", "bad_character", 9),
        ("SELECT '\udfff'", "bad_character", 9),
    ],
)
def test_other_texts_are_refused_at_their_place(text: str, slug: str, position: int | None) -> None:
    error = refused(text)
    assert error.slug == slug
    assert error.sql == text
    if position is not None:
        assert error.position == position


@pytest.mark.parametrize("text", [b"SELECT 1", None, 3, ["SELECT 1"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    assert refused(text).slug == "not_text"


# --- limits ---------------------------------------------------------------------------------------------------------------


def test_a_text_has_at_most_so_many_characters() -> None:
    assert MOST_CHARACTERS == 200_000
    assert parse("SELECT 1".ljust(MOST_CHARACTERS)).kind == "query"
    assert refused("SELECT 1".ljust(MOST_CHARACTERS + 1)).slug == "too_long"


def test_a_text_has_at_most_so_many_words() -> None:
    assert MOST_TOKENS == 20_000
    assert refused("x " * MOST_TOKENS).slug == "syntax"
    error = refused("x " * (MOST_TOKENS + 1))
    assert error.slug == "too_many_tokens"
    assert error.position == 2 * MOST_TOKENS + 1


@pytest.mark.parametrize(("left", "right"), [("(", ")"), ("[", "]"), ("CASE WHEN TRUE THEN ", " END")])
def test_brackets_are_at_most_sixty_deep(left: str, right: str) -> None:
    assert MOST_BRACKETS == 60
    deepest = f"SELECT {left * MOST_BRACKETS}1{right * MOST_BRACKETS}"
    if left == "(":
        assert parse(deepest).kind == "query"
    error = refused(f"SELECT {left * (MOST_BRACKETS + 1)}1{right * (MOST_BRACKETS + 1)}")
    assert error.slug == "too_deep"
    assert error.position == len("SELECT ") + MOST_BRACKETS * len(left) + 1


def test_brackets_that_are_closed_do_not_count() -> None:
    assert parse(f"SELECT {' + '.join(['(1)'] * 100)}").kind == "query"
    # a superfluous closing bracket opens none
    assert refused("SELECT " + ")" * 100 + "(" * (MOST_BRACKETS + 1)).slug == "too_deep"


def test_subscripts_are_at_most_a_hundred_and_fifty() -> None:
    subscripts = "[1]" * (MOST_DEPTH + 1)
    error = refused(f"SELECT a{subscripts}")
    assert error.slug == "too_deep"
    assert error.position == len("SELECT a") + 3 * MOST_DEPTH + 1
    assert parse(f"SELECT {', '.join(['a[1]'] * MOST_DEPTH)} FROM t").kind == "query"
    assert refused(f"SELECT {', '.join(['a[1]'] * (MOST_DEPTH + 1))} FROM t").slug == "too_deep"


@pytest.mark.parametrize(("minuses", "accepted"), [(MOST_DEPTH - 2, True), (MOST_DEPTH - 1, False)])
def test_trees_are_at_most_a_hundred_and_fifty_deep(minuses: int, accepted: bool) -> None:
    """SELECT, the signs, and the number below them are levels of the tree."""
    assert MOST_DEPTH == 150
    text = f"SELECT {'- ' * minuses}1"
    if accepted:
        assert parse(text).kind == "query"
    else:
        assert refused(text).slug == "too_deep"


# --- parameters -----------------------------------------------------------------------------------------------------------


class Level(enum.IntEnum):
    HIGH = 7


class Weight(float):
    def __repr__(self) -> str:
        return "a weight"


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (False, "FALSE"),
        (0, "0"),
        (3, "3"),
        (-3, "-3"),
        (Level.HIGH, "7"),
        (0.5, "0.5"),
        (-0.5, "-0.5"),
        (1e300, "1e+300"),
        (-1e-7, "-1e-07"),
        (Weight(2.5), "2.5"),
        (Decimal("1.50"), "1.50"),
        (Decimal("-1E+3"), "-1000"),
        (Decimal("1E-3"), "0.001"),
        ("", "''"),
        ("it's", "'it''s'"),
        ("a\nb", "'a\nb'"),
        (date(2024, 2, 29), "CAST('2024-02-29' AS DATE)"),
        (datetime(2024, 2, 29, 1, 2, 3), "CAST('2024-02-29 01:02:03' AS TIMESTAMP)"),
    ],
)
def test_a_value_is_a_literal(value: Any, literal: str) -> None:
    assert written("SELECT ?", [value]) == f"SELECT {literal}"


class Bare:
    """A value that SQL does not have."""


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), float("-inf"), Decimal("nan"), Decimal("inf"), "a\0b", "\ud800", "\udfff",
        b"bytes", Bare(), {"a": 1}, [[1]], [(1,)], {1}, 10 ** (2 * MOST_EXPONENT), -(10 ** (2 * MOST_EXPONENT)),
        Decimal(f"1E+{MOST_EXPONENT + 1}"), Decimal(f"1E-{MOST_EXPONENT + 1}"), [1, 2], (1, 2),
    ],
    ids=lambda value: str(value)[:12].encode("ascii", "backslashreplace").decode(),
)  # fmt: skip
def test_other_values_are_refused(value: Any) -> None:
    assert refused("SELECT ?", [value]).slug == "parameter_value"


def test_equal_parameters_have_one_text_and_integers_of_any_length_raise_nothing() -> None:
    assert values_text([1, 2**1024 - 1]) == values_text([1, 2**1024 - 1]) != values_text([True, 2**1024 - 1])
    assert values_text([10**5_000]) is None and values_text({"a": -(10**5_000)}) is None


@pytest.mark.parametrize(
    ("text", "parameters", "query"),
    [
        ("SELECT ?, ?", [1, 2], "SELECT 1, 2"),
        ("SELECT ?, ?", (1, 2), "SELECT 1, 2"),
        ("SELECT $1, $2, $1", [1, 2], "SELECT 1, 2, 1"),
        ("SELECT $2, $1", [1, 2], "SELECT 2, 1"),
        ("SELECT 1 + :a, 1 + :b, 1 + :a", {"a": 1, "b": 2}, "SELECT 1 + 1, 1 + 2, 1 + 1"),
        ("SELECT $a", {"a": 1, "b": 2}, "SELECT 1"),
        ("SELECT $1 FROM (SELECT $2) AS t WHERE a = $3", [1, 2, 3], "SELECT 1 FROM (SELECT 2) AS t WHERE a = 3"),
        (
            "SELECT COUNT(*) FILTER (WHERE a = ?) FROM t WHERE b > ? AND c < ? AND d = ? GROUP BY e LIMIT ? OFFSET ?",
            [1, 2, 3, 4, 5, 6],
            "SELECT COUNT(*) FILTER(WHERE a = 1) FROM t WHERE b > 2 AND c < 3 AND d = 4 GROUP BY e LIMIT 5 OFFSET 6",
        ),
        (
            "WITH s AS (SELECT a + ? AS b FROM t WHERE c = ?) SELECT ?, b FROM s WHERE b BETWEEN ? AND ? OR b IN (?, ?)",
            [1, 2, 3, 4, 5, 6, 7],
            "WITH s AS (SELECT a + 1 AS b FROM t WHERE c = 2) SELECT 3, b FROM s WHERE b BETWEEN 4 AND 5 OR b IN (6, 7)",
        ),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1", {}, "SELECT 1"),
        ("SELECT 1", None, "SELECT 1"),
        ("SELECT a FROM t WHERE a = ANY(?)", [[1, 2]], "SELECT a FROM t WHERE (a IN (1, 2))"),
        ("SELECT a FROM t WHERE a = ANY(?)", [[date(2024, 1, 2)]], "SELECT a FROM t WHERE (a = '2024-01-02')"),
    ],
)
def test_values_stand_where_their_places_are(text: str, parameters: Any, query: str) -> None:
    assert written(text, parameters) == query


@pytest.mark.parametrize(
    ("text", "parameters", "place"),
    [
        ("SELECT a, ? FROM t WHERE b = ?", [1], 11),
        ("SELECT a FROM t WHERE b = ? AND c = ?", {"a": 1}, 27),
        ("SELECT a ? FROM t", [1], 10),
    ],
)
def test_a_refused_question_mark_has_its_place(text: str, parameters: Any, place: int) -> None:
    assert refused(text, parameters).position == place
