"""Many tunings of a light tail through the real pipeline: none recommends an absurd bound, and the error bars of biases hold."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from support.effort import NIGHTLY
from support.gates import NoiselessGate
from support.released_blocks import Keyed

from dpsql.noise.perturb import Gate
from dpsql.session.session import open_session
from dpsql.tuning import Advice, tune

POLICY = """
dataset: shop
source: duckdb:///shop.duckdb
privacy_unit: {table: customers, column: customer}
budget: {epsilon: 10000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1}
ledger: sqlite:///ledger.db
tables:
  customers: {max_rows: 1, primary_key: [customer], columns: {customer: {type: integer, nullable: false}}}
  orders:
    max_rows: 20
    foreign_keys: {customer: customers.customer}
    columns: {amount: {type: real, lower: 0, upper: 2000}}
"""
TUNINGS = 220 if NIGHTLY else 40
SUM = "SELECT SUM(amount) FROM orders"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Return the policy over 2000 customers with about five orders of about 40 each: no one has more than 600 in total."""
    random = np.random.default_rng(5)
    orders = random.poisson(4, 2000) + 1
    amounts = random.gamma(4, 10, int(orders.sum()))
    columns = pa.table({"customer": np.repeat(np.arange(2000), orders), "amount": amounts})
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.register("columns", columns)
        connection.execute("CREATE TABLE orders AS FROM columns")
        connection.execute("CREATE TABLE customers AS SELECT DISTINCT customer FROM orders")
    (tmp_path / "shop.yaml").write_text(POLICY)
    return tmp_path / "shop.yaml"


def biases(advice: Advice, setting: str) -> dict[float, tuple[float, float]]:
    """Return the bias and its error bar by the value of a bound."""
    (table,) = [table for table in advice.tables if table.setting == setting]
    return {choice.value: (choice.bias, choice.margin) for choice in table.choices}


@pytest.mark.slow
@pytest.mark.statistical
def test_no_tuning_of_a_light_tail_recommends_an_absurd_bound(policy: Path) -> None:
    """A distant bin that is only noise must not count: otherwise 3 of 220 tunings recommend 16,000 to 131,072,000 where 500 is
    best."""
    with open_session(policy, create_ledger=True) as session:
        context = session.context
        session.context = replace(context, gate=NoiselessGate())
        exact = biases(tune(session, SUM, epsilon=Fraction(1, 2)), "max_total")
        session.execute("SET dp.reuse = off")
        held = []
        for number in range(TUNINGS):
            session.context = replace(context, gate=Gate(Keyed(f"light tails/{number}")))
            advice = tune(session, SUM, epsilon=Fraction(1, 2))
            numbers = {table.setting: table.recommended.value for table in advice.tables if table.recommended}
            best = numbers["max_total"]
            assert 250 <= best <= 1000 and advice.settings["max_rows"] <= 64
            bias, margin = biases(advice, "max_total")[best]
            held.append(abs(bias - exact.get(best, (0.0, 0.0))[0]) <= margin + 1e-9)
            assert margin > 0, "what a bin hides below what counts is not known to be 0"
    assert np.mean(held) >= 0.93
