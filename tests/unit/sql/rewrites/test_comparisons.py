"""Comparisons of rows and of lists of patterns have SQL's meaning, for every combination with NULL."""

import operator
from itertools import product

import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.errors.exceptions import Error
from dpsql.sql.parse import parse
from dpsql.sql.rewrites.comparisons import MOST_COMPARISONS

VALUES = ["NULL", "1", "2"]
ROWS = list(product(VALUES, VALUES))


def truth(sql: str, first: str, second: str) -> object:
    """Return the value of a rewritten expression over the columns a and b: True, False or None."""
    query = parse(f"SELECT {sql} FROM t").query
    assert query is not None
    text = query.sql("duckdb")
    columns = f"CAST({first} AS INTEGER) AS a, CAST({second} AS INTEGER) AS b"
    plain_duckdb().execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns}")
    row = plain_duckdb().execute(text).fetchone()
    assert row is not None
    return row[0]


def equal(row: tuple[str, str], other: tuple[str, str]) -> bool | None:
    """Return PostgreSQL's row comparison: false if a pair differs, otherwise NULL if a value is missing."""
    pairs = list(zip(row, other, strict=True))
    if any("NULL" not in pair and pair[0] != pair[1] for pair in pairs):
        return False
    return None if any("NULL" in pair for pair in pairs) else True


def either(parts: list[bool | None]) -> bool | None:
    return True if True in parts else None if None in parts else False


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def ordered(sign: str, row: tuple[str, str], other: tuple[str, str]) -> bool | None:
    """Return PostgreSQL's order of rows: that of the first pair that differs, NULL if a value is missing before it."""
    pair = next((pair for pair in zip(row, other, strict=True) if "NULL" in pair or pair[0] != pair[1]), ("1", "1"))
    return (
        None
        if "NULL" in pair
        else {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign](*pair)
    )


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rows_are_compared_as_in_standard_sql(row: tuple[str, str]) -> None:
    for other in ROWS:
        wanted = equal(row, other)
        written = f"({other[0]}, {other[1]})"
        assert truth(f"(a, b) = {written}", *row) == wanted
        assert truth(f"ROW(a, b) <> ROW{written}", *row) == opposite(wanted)
        for sign in ("<", "<=", ">", ">="):
            assert truth(f"(a, b) {sign} {written}", *row) == ordered(sign, row, other)
        both = either([wanted, equal(row, ("1", "1"))])
        assert truth(f"(a, b) IN ({written}, (1, 1))", *row) == both
        assert truth(f"(a, b) NOT IN (VALUES {written}, (1, 1))", *row) == opposite(both)


@pytest.mark.parametrize("negated", ["", "NOT "])
@pytest.mark.parametrize("word", ["LIKE", "ILIKE"])
@pytest.mark.parametrize(("every", "joint"), [("ANY", "OR"), ("ALL", "AND")])
def test_lists_of_patterns_are_comparisons(negated: str, word: str, every: str, joint: str) -> None:
    for text in ("'ab'", "'AB'", "'xy'", "NULL"):
        listed = f"CAST({text} AS TEXT) {negated}{word} {every} ('a%', '%y')"
        plain = f"CAST({text} AS TEXT) {negated}{word} 'a%' {joint} CAST({text} AS TEXT) {negated}{word} '%y'"
        assert truth(listed, "1", "1") == truth(plain, "1", "1")


def kept(sql: str) -> list[tuple[object, ...]]:
    query = parse(sql).query
    assert query is not None
    rows = ", ".join(f"({a}, {b})" for a, b in ROWS)
    connection = plain_duckdb()
    connection.execute(f"CREATE OR REPLACE TABLE t AS FROM (VALUES {rows}) AS v(a, b)")
    connection.execute("CREATE OR REPLACE TABLE u AS FROM (VALUES (1, 2), (NULL, 1), (2, NULL)) AS v(x, y)")
    return sorted(connection.execute(query.sql("duckdb")).fetchall(), key=str)


def test_rows_are_compared_with_those_of_a_subquery() -> None:
    assert kept("SELECT a, b FROM t WHERE (a, b) IN (SELECT x, y FROM u)") == [(1, 2)]
    assert kept("SELECT a, b FROM t WHERE (b, a) IN (SELECT * FROM u) OR (a, b) IN (SELECT 1, 1)") == [(1, 1), (2, 1)]


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM t WHERE (a, b) NOT IN (SELECT x, y FROM u)",
    "SELECT (a, b) IN (SELECT x, y FROM u) FROM t",
    "SELECT COUNT(*) FROM t WHERE CASE WHEN (a, b) IN (SELECT x, y FROM u) THEN TRUE END",
])  # fmt: skip
def test_where_null_and_false_differ_a_subquery_is_refused(sql: str) -> None:
    with pytest.raises(Error) as raised:
        parse(sql)
    assert raised.value.slug == "semi_join"
    assert "NOT EXISTS" in str(raised.value)


def test_lists_of_rows_have_a_largest_size() -> None:
    most = MOST_COMPARISONS // 2
    parse(f"SELECT COUNT(*) FROM t WHERE (a, b) IN ({', '.join(['(1, 2)'] * most)})")
    with pytest.raises(Error) as raised:
        parse(f"SELECT COUNT(*) FROM t WHERE (a, b) IN ({', '.join(['(1, 2)'] * (most + 1))})")
    assert raised.value.slug == "clause"
