"""A refusal uses SQL's names for the text's parts, never the parser's."""

from __future__ import annotations

import inspect
import re

import duckdb
import pytest
import sqlglot
from sql.test_refused import internal_words, worlds
from sqlglot import exp
from sqlglot.dialects import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from dpsql.errors.exceptions import Error
from dpsql.sql.binder.sql_words import function_word, sql_word

PLACES = {
    "COUNT(*) FROM visits WHERE (cost, nights) < (1, 2)": "a list in brackets", "SUM(cost & 1) FROM visits": "&",
    "SUM(~nights) FROM visits": "~", "SUM(nights << 1) FROM visits": "<<",
    "MAX(cost, 3) FROM visits": "MAX with a second argument", "SUM([1][1]) FROM visits": "a subscript [...]",
    "SUM(cost) FROM visits TABLESAMPLE 10%": "a table with TABLESAMPLE",
    "SUM(cost ORDER BY cost) FROM visits": "ORDER BY", "SUM({'a': 1}.a) FROM visits": "a field of a value",
    "COUNT(*) FROM visits FOR UPDATE": "SELECT with FOR UPDATE", "SUM(cost -> 'a') FROM visits": "x -> ...",
    "COUNT(*) FROM visits LIMIT 10%": "LIMIT in percent", "SUM(cost) FROM UNNEST(5) v(cost)": "UNNEST in FROM",
}  # fmt: skip


def refusal(sql: str) -> Error:
    with pytest.raises(Error) as caught:
        worlds(False)[0].session.execute(sql)
    return caught.value


@pytest.mark.parametrize("part", PLACES)
def test_parts_of_a_text_are_called_as_they_are_written(part: str) -> None:
    assert refusal(f"SELECT {part}").message.startswith(f"{PLACES[part]} is not allowed")


def test_parts_of_a_text_are_not_called_by_a_name_of_the_parser() -> None:
    """`test_refused` asks this of every refused query."""
    assert {part: words for part in PLACES if (words := internal_words(refusal(f"SELECT {part}"), part))} == {}


def operators() -> list[type[exp.Expr]]:
    """Return the operator node types that a tree may contain."""
    bases = {exp.Binary, exp.Unary, exp.Connector, exp.Operator}
    kinds = [kind for kind in vars(exp).values() if inspect.isclass(kind) and issubclass(kind, (exp.Binary, exp.Unary))]
    return sorted(set(kinds) - bases, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", operators(), ids=lambda kind: kind.__name__)
def test_every_operator_has_a_word(kind: type[exp.Expr]) -> None:
    assert sql_word(kind(this=exp.column("a"), expression=exp.column("b")))


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT unnest([1, 2]) AS n", "function unnest does"),
        ("SELECT STRING_AGG(ward, ',') FROM visits", "STRING_AGG returns"),
        ("SELECT COUNT(unnest([ward])) FROM visits", "function unnest does"),
        ("SELECT random()", "function random does"),
    ],
)
def test_functions_have_their_name_in_sql(sql: str, name: str) -> None:
    """The parser's names are explode, group_concat and rand."""
    assert refusal(sql).message.startswith(name)


@pytest.mark.parametrize("call", ["KURTOSIS(cost)", "SKEWNESS(nights)"])
def test_statistics_of_samples_are_named_as_a_way(call: str) -> None:
    hint = refusal(f"SELECT {call} FROM visits").hint or ""
    assert hint.startswith(f"SAMPLE_AGGREGATE({call}, lower, upper) ")


def test_other_unknown_aggregates_have_no_such_way() -> None:
    assert "SAMPLE_AGGREGATE" not in (refusal("SELECT BIT_OR(nights) FROM visits").hint or "")
    grouped = "SELECT AVG(s) FROM (SELECT patient_id, STDDEV(cost) AS s FROM visits GROUP BY patient_id) AS t"
    assert "SAMPLE_AGGREGATE" not in (refusal(grouped).hint or "")


def spelled_functions() -> list[str]:
    """Return the functions that DuckDB has, and those that the parser reads in either dialect."""
    names = {row[0] for row in duckdb.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()}
    names |= {"jsonb_extract_path", "jsonb_extract_path_text"}  # of PostgreSQL
    names |= {name.lower() for name in (*DuckDB.Parser.FUNCTIONS, *Postgres.Parser.FUNCTIONS)}
    return sorted(name for name in names if re.fullmatch(r"[a-z_0-9]+", name))


@pytest.mark.parametrize("dialect", ["duckdb", pytest.param("postgres", marks=pytest.mark.slow)])
def test_a_function_is_named_as_it_was_written_or_as_an_engine_calls_it(dialect: str) -> None:
    """Never by the parser's name, such as `j_s_o_n_array` or `pad`."""
    names = spelled_functions()
    wrong = {}
    for name in names:
        for arguments in ("a", "a, 1", "a, 1, 2"):
            try:
                tree = sqlglot.parse_one(f"SELECT {name}({arguments})", read=dialect)
            except (SqlglotError, IndexError):  # too few arguments
                continue
            function = tree.selects[0]
            if isinstance(function, exp.Func) and not isinstance(function, (exp.Cast, exp.Case, exp.If)):
                word = function_word(function).lower()
                if word != name and word not in names:
                    wrong[name] = word
    assert wrong == {}
