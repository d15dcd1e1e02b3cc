"""Laplace noise under zCDP from SQL to answer: the choice of mechanism, the charge, and the error of answers."""

import math
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsql

GROUPS = 2000
POLICY = """
dataset: shops
source: duckdb:///shops.duckdb
privacy_unit: {unit}
neighbours: {neighbours}
budget: {{epsilon: 1000, delta: 1e-6, accountant: zcdp}}
per_query: {{epsilon: 2, max_epsilon: 100}}
ledger: sqlite:///ledger.db
tables:
  sales:
    max_rows: {rows}
    columns:
      buyer: {{type: integer, nullable: false}}
      shop: {{type: integer, lower: 0, upper: 1999, nullable: false}}
      paid: {{type: real, lower: 0, upper: 100, nullable: false}}
"""
SUMS = "SELECT shop, SUM(paid) AS paid FROM sales GROUP BY shop"


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shops.duckdb")) as data:
        data.execute(
            "CREATE TABLE sales AS SELECT CAST(i AS INTEGER) AS buyer, CAST(i % 2000 AS INTEGER) AS shop, "
            "CAST(i % 101 AS DOUBLE) AS paid FROM range(6000) r(i)"
        )
    return tmp_path


def opened(folder: Path, unit: str = "row", rows: int = 1, neighbours: str = "add_remove") -> dpsql.Connection:
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(unit=unit, rows=rows, neighbours=neighbours), encoding="utf-8")
    return dpsql.connect(policy, create_ledger=True)


def cost(epsilon: float) -> float:
    """Return rho of continuous Laplace noise of scale 1 / epsilon."""
    return epsilon + math.exp(-epsilon) - 1


def test_answers_are_off_by_the_scale_that_two_of_rho_buys_and_explain_says_so(shops: Path) -> None:
    """rho = 2 buys epsilon 2.948. The mean of 2,000 errors has a deviation of 2.2 % of the scale: 15 % is seven deviations."""
    with opened(shops) as connection:
        (row,) = connection.explain(SUMS).outputs
        assert row.mechanism == "laplace" and row.rho == pytest.approx(2, rel=1e-9) and row.rho <= 2
        assert cost(2.948) == pytest.approx(2, abs=1e-3)
        assert row.noise_scale == pytest.approx(100 / 2.948, rel=1e-3)
        answer = connection.execute(SUMS).release.table.to_pydict()
    with duckdb.connect(str(shops / "shops.duckdb")) as data:
        exact = dict(data.execute("SELECT shop, SUM(paid) FROM sales GROUP BY shop").fetchall())
    off = [abs(paid - exact[shop]) for shop, paid in zip(answer["shop"], answer["paid"], strict=True)]
    assert len(off) == GROUPS and np.mean(off) == pytest.approx(100 / 2.948, rel=0.15)


@pytest.mark.parametrize(("epsilon", "sums", "counts"), [("1", "gaussian", "gaussian"), ("1.15", "gaussian", "laplace"),
                                                         ("1.3", "laplace", "laplace")])  # fmt: skip
def test_the_mechanism_is_the_one_that_errs_less(shops: Path, epsilon: str, sums: str, counts: str) -> None:
    with opened(shops) as connection:
        connection.execute(f"SET dp.epsilon = {epsilon}")
        assert [row.mechanism for row in connection.explain(SUMS).outputs] == [sums]
        assert [row.mechanism for row in connection.explain("SELECT COUNT(*) AS n FROM sales").outputs] == [counts]


@pytest.mark.parametrize("neighbours", ["add_remove", "change_one"])
def test_a_unit_is_charged_for_the_worst_split_of_its_rows_over_groups(shops: Path, neighbours: str) -> None:
    """Five rows, at most two per group: two groups of two rows and one of one. If a unit is replaced, there are twice as many
    groups, each of which may move by four rows: two groups of four and one of two."""
    wanted = [2, 2, 1] if neighbours == "add_remove" else [4, 4, 2]
    with opened(shops, "{table: sales, column: buyer}", 5, neighbours) as connection:
        for setting in ("dp.mechanism = laplace", "dp.max_rows_per_group = 2", "dp.epsilon = 2"):
            connection.execute(f"SET {setting}")
        plan = connection.explain(SUMS)
        (row,) = plan.outputs
        scale = row.noise_scale / 100
        assert sum(cost(rows / scale) for rows in wanted) == pytest.approx(2, rel=1e-3)
        assert plan.charged.rho is not None and Fraction(1999, 1000) < plan.charged.rho <= 2


def test_a_target_is_reached_at_the_price_of_the_exact_divergence(shops: Path) -> None:
    """A half width of 100 at 95 % implies a scale of 100 / ln 20."""
    with opened(shops) as connection:
        connection.execute("SET dp.mechanism = laplace")
        connection.execute("SET dp.target_error = 100")
        plan = connection.explain(SUMS)
        assert float(plan.charged.rho or 0) == pytest.approx(cost(math.log(20)), rel=5e-3)
