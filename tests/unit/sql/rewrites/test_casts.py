"""Casts of literals: refused exactly where a row with that text would have no value, whatever the question reads."""

from datetime import datetime, timedelta
from random import Random

import duckdb
import pytest
from sqlglot import exp, parse_one

from dpsql.errors.exceptions import Error
from dpsql.sql.parse import parse
from dpsql.sql.rewrites.spellings import in_own_spelling


@pytest.mark.parametrize("text", ["inf", "-Infinity", " NaN ", "+inf"])
def test_texts_of_numbers_that_are_not_finite_are_reals_and_no_integers(text: str) -> None:
    parse(f"SELECT '{text}'::double")
    with pytest.raises(Error, match="is not an integer"):
        parse(f"SELECT '{text}'::int")


def test_try_cast_and_other_types_are_left_alone() -> None:
    parse("SELECT TRY_CAST('4O' AS INT), 'x'::text, 'abc' || 'd'")


def test_reals_of_single_precision_are_double() -> None:
    tree = parse("SELECT x::float, CAST(y AS REAL), z::float4, w::double FROM t").query
    assert tree is not None
    assert {cast.to.this for cast in tree.find_all(exp.Cast)} == {exp.DType.DOUBLE}
    assert parse_one("x::float", dialect="duckdb").to.this is exp.DType.FLOAT  # type: ignore[attr-defined]


# --- Whole years of age are those of the engine, whose intervals no question over rows can have -----------------------


def moments(seed: int) -> list[tuple[datetime, datetime]]:
    """Return pairs of moments, many of them on the same day of the year, at leap days and at equal times."""
    random, start = Random(seed), datetime(1999, 12, 30)
    pairs = []
    for _ in range(400):
        first = start + timedelta(days=random.randrange(4000), seconds=random.choice([0, 0, 1, 43_200, 86_399]))
        second = first.replace(year=first.year + 4 * random.randint(-2, 2)) + timedelta(
            days=random.choice([-1, 0, 0, 1, 60]), seconds=random.choice([-1, 0, 0, 1])
        )
        pairs.append((first, second))
    return pairs


@pytest.mark.parametrize("moment", ["TIMESTAMP", "DATE"])
@pytest.mark.parametrize("written", ["EXTRACT(YEAR FROM age(a, b))", "date_part('year', age(a, b))"])
def test_whole_years_of_age_are_the_engines(written: str, moment: str) -> None:
    query = f"SELECT {written} AS years FROM pairs"
    tree = parse_one(query, read="duckdb")
    assert isinstance(tree, exp.Query)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE pairs (a {moment}, b {moment})")
        connection.executemany("INSERT INTO pairs VALUES (?, ?)", [*moments(1), (None, moments(1)[0][0])])
        expected = connection.execute(query).fetchall()
        respelt = in_own_spelling(tree).sql("duckdb")
        assert "age" not in respelt.lower()
        assert connection.execute(respelt).fetchall() == expected
