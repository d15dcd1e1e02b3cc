"""SAMPLE_AGGREGATE from SQL to answer: charges, storage, EXPLAIN, the assignment to samples, and accuracy."""

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from support.exact_session import exact_session
from support.gates import NoiselessGate

import dpsql
from dpsql.errors.exceptions import Error
from dpsql.noise.group_layout import Groups
from dpsql.noise.rank_histograms import Histograms
from dpsql.privacy.mechanisms.contract import Law

POLICY = """
dataset: shops
source: duckdb:///shops.duckdb
privacy_unit: {unit}
budget: {{epsilon: 1000, delta: 1e-4, accountant: {accountant}}}
per_query: {{epsilon: 1, delta: 1e-9, max_epsilon: 100}}
ledger: sqlite:///ledger.db
tables:
  sales:
    max_rows: {rows}
    columns:
      person: {{type: integer, nullable: false}}
      shop: {{type: text, domain: [a, b, c], nullable: false}}
      price: {{type: real, lower: 0, upper: 100}}
"""
PEOPLE, EACH = 2000, 4


def sales(path: Path, unit: str, rows: int, accountant: str = "pure") -> Path:
    """Write a policy and data in which shop c sells nothing."""
    with duckdb.connect(str(path / "shops.duckdb")) as data:
        data.execute(
            f"CREATE TABLE sales AS SELECT CAST(i // {EACH} AS INTEGER) AS person, chr(97 + CAST(i % 2 AS INTEGER)) AS shop, "
            f"50 + 10 * sin(i) AS price FROM range({PEOPLE * EACH}) r(i)"
        )
    policy = path / "policy.yaml"
    policy.write_text(POLICY.format(unit=unit, rows=rows, accountant=accountant), encoding="utf-8")
    return policy


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[dpsql.Connection]:
    policy = sales(tmp_path, "{table: sales, column: person}", EACH)
    with dpsql.connect(policy, create_ledger=True) as opened:
        yield opened


def test_the_answer_is_near_that_of_all_rows_where_samples_agree(connection: dpsql.Connection) -> None:
    """A sample has 80 rows with a deviation of 7, so its mean has one of 0.8: the median of 100 such means is within 1 of 50,
    whatever the mechanism chooses in the middle half of them."""
    connection.execute("SET dp.epsilon = 8")
    sql = "SELECT SAMPLE_AGGREGATE(AVG(price), 0, 100), SAMPLE_AGGREGATE(STDDEV(price), 0, 50) FROM sales"
    ((mean, deviation),) = connection.execute(sql).release.rows()
    assert abs(mean - 50) < 1 and abs(deviation - 10 / math.sqrt(2)) < 1


def test_a_bar_is_paid_for_and_holds_the_answer(connection: dpsql.Connection) -> None:
    connection.execute("SET dp.quantile_bars = on")
    connection.execute("SET dp.epsilon = 30")
    sql = "SELECT SAMPLE_AGGREGATE(AVG(price), 0, 100, 200) AS m, DP_INTERVAL_LOW(SAMPLE_AGGREGATE(AVG(price), 0, 100, 200)) AS l FROM sales"
    release = connection.execute(sql).release
    ((middle, low),) = release.rows()
    assert 40 < low < middle < 60
    assert len(connection.explain(sql).outputs) == 3


MEAN = "SELECT shop, SAMPLE_AGGREGATE(AVG(price), 0, 100, 50, 'mean') AS m FROM sales GROUP BY shop"


def test_the_mean_of_samples_is_charged_once_and_has_an_error_bar(connection: dpsql.Connection) -> None:
    """Samples of shops a and b agree to a few units, and shop c is in the middle. Noise over 50 samples has a scale of 0.3 in the
    unit of the answer, since a person may buy in three shops: it exceeds 6 once in 10**8 answers."""
    connection.execute("SET dp.epsilon = 20")
    release = connection.execute(MEAN).release
    assert release.epsilon == "20" and len(release) == 3
    for (_, value), low, high in zip(
        release.rows(), release.low["m"].to_pylist(), release.high["m"].to_pylist(), strict=True
    ):
        assert abs(value - 50) < 8 and low < value < high and 1.7 < high - low < 1.9
    assert not any(release.unknown["m"].to_pylist())
    again = connection.execute(MEAN).release
    assert again.reused and again.loss.epsilon == 0 and list(again.rows()) == list(release.rows())
    for other in (MEAN.replace(", 'mean'", ""), MEAN.replace("50,", "51,")):
        assert not connection.execute(other).release.reused


def test_a_mean_is_answered_from_the_store_at_another_confidence_with_a_bar_of_its_own(
    connection: dpsql.Connection,
) -> None:
    """The half width at 0.5 is ln(2) / ln(20) of that at 0.95, except for rounding to steps of the grid."""
    first = connection.execute(MEAN).release
    connection.execute("SET dp.confidence = 0.5")
    assert connection.explain(MEAN).loss.epsilon == 1 and connection.explain(MEAN).charged.epsilon == 0
    narrow = connection.execute(MEAN).release
    assert narrow.reused and list(narrow.rows()) == list(first.rows())
    value, low, high = (np.asarray(c["m"]) for c in (narrow.table, narrow.low, narrow.high))
    wide_low, wide_high = (np.asarray(column["m"]) for column in (first.low, first.high))
    inside = (wide_low > 0) & (wide_high < 100)
    assert inside.any()
    for near, far in ((value - low, value - wide_low), (high - value, wide_high - value)):
        assert np.allclose((near / far)[inside], math.log(2) / math.log(20), rtol=0.02)
    connection.execute("SET dp.confidence = 0.95")
    again = connection.execute(MEAN).release
    assert again.reused and np.array_equal(np.asarray(again.low["m"]), wide_low)


@pytest.mark.parametrize(("first", "then"), [("auto", "laplace"), ("laplace", "auto"), ("gaussian", "auto")])
def test_a_mean_is_answered_from_the_store_where_the_mechanism_that_is_named_adds_its_noise(
    connection: dpsql.Connection, first: str, then: str
) -> None:
    """If epsilon is charged, all mechanisms add Laplace noise."""
    connection.execute(f"SET dp.mechanism = '{first}'")
    charged = connection.execute(MEAN).release
    connection.execute(f"SET dp.mechanism = '{then}'")
    again = connection.execute(MEAN).release
    assert not charged.reused and again.reused and list(again.rows()) == list(charged.rows())


@pytest.mark.parametrize("named", [("laplace", "gaussian"), ("gaussian", "laplace")])
def test_a_named_mechanism_is_measured_where_a_mean_with_another_noise_is_stored(
    named: tuple[str, str], tmp_path: Path
) -> None:
    """Under zCDP each mechanism adds its own noise; a query that names none uses the stored mean if it is as exact. One of the
    two noises is narrower, so in one of the orders the stored mean would be exact enough for the second query."""
    policy = sales(tmp_path, "{table: sales, column: person}", EACH, "zcdp")
    with dpsql.connect(policy, create_ledger=True) as opened:
        reused = {}
        for mechanism in (*named, "auto"):
            opened.execute(f"SET dp.mechanism = '{mechanism}'")
            reused[mechanism] = opened.execute(MEAN).release.reused
    assert reused == {"laplace": False, "gaussian": False, "auto": True}


def test_the_exact_mean_of_samples_is_that_of_their_values(tmp_path: Path) -> None:
    """Without noise, the mean number of rows over 20 samples of 8,000 rows is 400, whatever the assignment."""
    policy = dpsql.policy.load_policy(sales(tmp_path, "row", 1))
    session = exact_session(policy, duckdb.connect(str(tmp_path / "shops.duckdb")), tmp_path / "exact.db")
    release = session.execute("SELECT SAMPLE_AGGREGATE(COUNT(*), 0, 16384, 20, 'mean') AS m FROM sales")
    ((mean,),) = release.rows()
    assert mean == PEOPLE * EACH / 20


class Samples(NoiselessGate):
    """A gate that keeps the histograms of samples' values."""

    histograms: Histograms

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        self.histograms = histograms
        return super().release_numbers(name, histograms, law, groups)


def values(histograms: Histograms) -> list[dict[int, int]]:
    ends = zip(histograms.start[:-1], histograms.start[1:], strict=True)
    pairs = (zip(histograms.cell[a:b].tolist(), histograms.count[a:b].tolist(), strict=True) for a, b in ends)
    return [dict(pair) for pair in pairs]


@pytest.mark.parametrize(("unit", "rows"), [("{table: sales, column: person}", EACH), ("row", 1)])
def test_samples_are_even_disjoint_and_all_of_a_person_is_in_one(unit: str, rows: int, tmp_path: Path) -> None:
    """The numbers of people in 20 samples add up to all people, and none is far from its share. Under row privacy, where rows
    that are equal in all read columns belong to different people, they are spread as well."""
    policy = dpsql.policy.load_policy(sales(tmp_path, unit, rows))
    gate = Samples(2)
    session = exact_session(policy, duckdb.connect(str(tmp_path / "shops.duckdb")), tmp_path / "exact.db", gate)
    counted = "COUNT(DISTINCT person)" if unit != "row" else "COUNT(*)"
    session.execute(f"SELECT shop, SAMPLE_AGGREGATE({counted}, 0, 32768, 20) FROM sales GROUP BY shop")
    a, b, c = values(gate.histograms)
    people = PEOPLE if unit != "row" else PEOPLE * EACH // 2
    for shop in (a, b):
        assert sum(cell * samples for cell, samples in shop.items()) == people and sum(shop.values()) == 20
        assert all(0.6 < cell / (people / 20) < 1.5 for cell in shop)
    assert c == {16384: 20}


def test_equal_rows_are_spread_over_samples_under_row_privacy(tmp_path: Path) -> None:
    """If the sample followed from the read columns alone, no sample would have both values."""
    policy, gate = dpsql.policy.load_policy(sales(tmp_path, "row", 1)), Samples(2)
    session = exact_session(policy, duckdb.connect(str(tmp_path / "shops.duckdb")), tmp_path / "exact.db", gate)
    session.execute("SELECT SAMPLE_AGGREGATE(ENTROPY(shop), 0, 2, 20) FROM sales")
    (found,) = values(gate.histograms)
    cells = gate.histograms.cells - 1
    assert all(abs(cell / cells * 2 - 1) < 0.05 for cell in found) and len(found) > 5


@pytest.mark.parametrize(
    "call",
    [
        "SAMPLE_AGGREGATE(AVG(price), 0)", "SAMPLE_AGGREGATE(price, 0, 1)", "SAMPLE_AGGREGATE(AVG(price), 1, 0)",
        "SAMPLE_AGGREGATE(AVG(price), 0, 1, 0)", "SAMPLE_AGGREGATE(AVG(price), 0, price)", "SAMPLE_AGGREGATE(AVG(person), 0, 1)",
        "SAMPLE_AGGREGATE(AVG(shop), 0, 1)", "SAMPLE_AGGREGATE(LIST(price), 0, 1)", "SAMPLE_AGGREGATE(SUM(AVG(price)), 0, 1)",
        "SAMPLE_AGGREGATE(AVG(price) + (SELECT 1), 0, 1)", "SAMPLE_AGGREGATE(MAX(shop), 0, 1)", "SAMPLE_AGGREGATE(3, 0, 1)",
        "SAMPLE_AGGREGATE(AVG(price), 0, 1) OVER ()", "SAMPLE_AGGREGATE(AVG(price), 0, 1, 9, 'mode')",
        "SAMPLE_AGGREGATE(AVG(price), 0, 1, 9, shop)", "SAMPLE_AGGREGATE(AVG(price), 0, 1, 'mean')",
        "SAMPLE_AGGREGATE(AVG(price), 0, 1, 9, 'mean', 2)",
    ],
)  # fmt: skip
def test_what_is_not_proven_is_refused_before_it_is_charged(connection: dpsql.Connection, call: str) -> None:
    with pytest.raises(Error) as caught:
        connection.execute(f"SELECT {call} FROM sales")
    assert not caught.value.charged and "nothing was charged" in caught.value.text()
