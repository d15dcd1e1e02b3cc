"""Advice on SAMPLE_AGGREGATE: free, from public parameters, with the same numbers as EXPLAIN."""

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql

POLICY = """
dataset: survey
source: duckdb:///survey.duckdb
privacy_unit: {{table: answers, column: person}}
budget: {{epsilon: 100, delta: 1e-6, accountant: {accountant}}}
per_query: {{epsilon: 1}}
ledger: sqlite:///ledger.db
tables:
  answers:
    max_rows: 1
    columns:
      person: {{type: integer, nullable: false}}
      x: {{type: real, lower: 0, upper: 100}}
"""
SKEWNESS = "SELECT SAMPLE_AGGREGATE(SKEWNESS(x), -5, 5{}) FROM answers"


@pytest.fixture(params=["pure", "zcdp"])
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "survey.duckdb")) as data:
        data.execute("CREATE TABLE answers AS SELECT CAST(i AS INTEGER) AS person, 50.0 AS x FROM range(20) r(i)")
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.format(accountant=request.param), encoding="utf-8")
    return path


@pytest.fixture
def connection(policy: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(policy, create_ledger=True) as opened:
        yield opened


def spent(connection: dpsql.Connection) -> list[str]:
    return [str(line) for line in connection.execute("SHOW dp.budget").fetchall()]


def test_advice_is_free_and_says_what_explain_says(connection: dpsql.Connection) -> None:
    before = spent(connection)
    connection.execute("SET dp.assume_rows = 20000")
    (table,) = connection.fit(SKEWNESS.format(", 50, 'mean'")).samples
    assert (table.samples, table.combined) == (50, "mean")
    now = next(choice for choice in table.choices if choice.samples == 50)
    (explained,) = connection.explain(SKEWNESS.format(", 50, 'mean'")).outputs
    assert f"within +/- {now.mean_error:.4g} of" in explained.bound
    assert f"at most {now.rank_error * 50:.4g} of 50 samples" in explained.bound
    assert f"from {table.enough} samples on" in explained.bound
    (median,) = connection.explain(SKEWNESS.format(", 50")).outputs
    assert f"from {table.enough} samples on" in median.bound
    assert spent(connection) == before


def test_the_median_is_recommended_where_there_are_rows_enough_for_it(connection: dpsql.Connection) -> None:
    connection.execute("SET dp.assume_rows = 20000")
    (table,) = connection.fit(SKEWNESS.format("")).samples
    best = table.recommended
    assert best is not None and (best.recommended, best.samples) == ("median", table.enough)
    assert best.rank_error <= 0.25 < best.rank_error * (1 + 5 / best.samples)
    assert best.rows == 20000 / best.samples >= 10
    assert all(
        math.isclose(choice.mean_error * choice.samples, 50 * table.choices[4].mean_error) for choice in table.choices
    )


def test_the_mean_is_recommended_of_as_many_samples_as_have_rows(connection: dpsql.Connection) -> None:
    connection.execute("SET dp.assume_rows = 400")
    (table,) = connection.fit(SKEWNESS.format("")).samples
    best = table.recommended
    assert best is not None and (best.recommended, best.samples, best.rows) == ("mean", 40, 10)
    connection.execute("SET dp.assume_rows = 19")
    (small,) = connection.fit(SKEWNESS.format("")).samples
    assert small.recommended is None


@pytest.mark.parametrize("more", ["", ", COUNT(*)", ", AVG(x)"])
@pytest.mark.parametrize("least", ["none", "5"])
def test_it_is_free_beside_other_aggregates_and_with_min_units(
    connection: dpsql.Connection, more: str, least: str
) -> None:
    """If each unit has one row, there is no bound to measure; a count of units that is only a condition gets no advice."""
    connection.execute(f"SET dp.min_units = {least}")
    before = spent(connection)
    advice = connection.fit(SKEWNESS.format(", 50, 'mean'").replace(" FROM", f"{more} FROM"))
    assert [table.samples for table in advice.samples] == [50] and advice.price == "nothing"
    assert spent(connection) == before
