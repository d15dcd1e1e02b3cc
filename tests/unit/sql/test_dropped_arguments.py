"""No argument is ignored: one more than DuckDB's own catalog permits is refused, over rows and over results."""

import duckdb
import pytest
import sqlglot
from support.places import policy
from support.recording_session import World

from dpsql.errors.exceptions import Error
from dpsql.sql.parse import DIALECT, parse
from dpsql.sql.parser import check_arguments

OF_ROWS = ("nights", "ward", "cost", "day", "seen")
PARSER = sqlglot.Dialect.get_or_raise(DIALECT).parser()
OURS = {"clamp": 3, "prefix": 2, "suffix": 2, "iff": 3, "dp_error": 1, "dp_interval_low": 1}


def most_arguments() -> dict[str, int]:
    """Return the longest signature of each function that DuckDB and sqlglot know by the same name, lists left out."""
    rows = (
        duckdb.connect()
        .execute(
            "SELECT function_name, max(len(parameters)) FROM duckdb_functions() "
            "WHERE function_type IN ('scalar', 'aggregate') GROUP BY ALL HAVING bool_and(varargs IS NULL) ORDER BY 1"
        )
        .fetchall()
    )
    known = set(PARSER.FUNCTIONS) | set(PARSER.FUNCTION_PARSERS)
    return {name: most for name, most in rows if name.upper() in known} | OURS


MOST = most_arguments()


@pytest.fixture(scope="module")
def world() -> World:
    return World(policy("hospital"))


def refused(world: World, sql: str) -> bool:
    try:
        world.session.rehearse(world.session.plan(world.session.planner.parse(sql, None)))
    except Error:
        return True
    return False


def test_more_than_200_functions_are_tried() -> None:
    assert len(MOST) > 200
    assert {"mod", "date_trunc", "date_diff", "floor", "ceil", "log10", "ltrim", "substr", "length"} <= set(MOST)


@pytest.mark.parametrize("more", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_one_too_many_arguments_are_refused(world: World, more: int) -> None:
    """The columns have every type, so that the refusal is not only due to their types."""
    answered = []
    for name, most in MOST.items():
        for column in OF_ROWS:
            given = f"{name}({', '.join([column] * (most + more))})"
            answered += [given for sql in (f"SELECT COUNT(*) FROM visits WHERE {given} IS NULL",
                                           f"SELECT {given} FROM visits") if not refused(world, sql)]  # fmt: skip
        for value in ("ward", "n", "n > 0"):
            given = f"{name}({', '.join([value] * (most + more))})"
            if not refused(world, f"SELECT {given} FROM (SELECT ward, SUM(nights) AS n FROM visits GROUP BY ward)"):
                answered.append(given)
    assert not answered


@pytest.mark.parametrize("text", ["coalesce(x, 1, 2, 3)", "concat(x, 'a', 'b', 'c')", "x IN (1, 2, 3)", "round(x, 2)",
                                  "least(x, 1, 2)", "CAST(x AS decimal(10, 2))", "date_diff('day', x, y)", "nosuch(x, y, z)",
                                  f"coalesce({', '.join(['x'] * 40)})", "substring(x FROM 1 FOR 2)", "x[1:2]"])  # fmt: skip
def test_what_is_kept_is_not_refused(text: str) -> None:
    parse(f"SELECT {text} FROM t")


def test_the_caret_stands_under_the_first_argument_that_would_be_dropped() -> None:
    """This holds with and without brackets inside arguments."""
    sql = "SELECT mod((1), (SELECT max(x, 2)), 3 + 4)"
    with pytest.raises(Error) as refusal:
        check_arguments(sqlglot.Dialect.get_or_raise(DIALECT).tokenize(sql), DIALECT)
    assert refusal.value.slug == "wrong_arguments" and refusal.value.position == sql.index("3 + 4") + 1
