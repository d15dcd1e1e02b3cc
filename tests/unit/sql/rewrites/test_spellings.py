"""Whole years of age are those of the engine, whose intervals no question over rows can have."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import duckdb
import pytest
from sqlglot import exp, parse_one

from dpsql.sql.rewrites.spellings import in_own_spelling


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
