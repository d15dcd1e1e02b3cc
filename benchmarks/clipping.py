"""Dropping rows against clipping, at equal epsilon, on data with heavy tails: `python -m benchmarks.clipping`.

Each query is first tuned (`dpsql.tuning`, charged), then run at one epsilon with the policy's own max_rows, with the best
max_rows that tuning found for dropping alone, and with the recommended clips. Errors are relative to the exact answers: the
median over groups, then the median over several measurements. A Markdown table goes to standard output.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from dpsql.frontends.demo import build_flights, build_nafld, shipped_policy
from dpsql.policy import ContributionBounds, parse_policy
from dpsql.session.session import Session, open_session
from dpsql.tuning import Advice, tune

SHOP = """
dataset: shop
source: duckdb:///data.duckdb
privacy_unit: {table: customers, column: customer}
budget: {epsilon: 1000, delta: 1e-6}
ledger: sqlite:///ledger.db
tables:
  customers: {max_rows: 1, primary_key: [customer], columns: {customer: {type: integer, nullable: false}}}
  orders:
    max_rows: 20
    foreign_keys: {customer: customers.customer}
    columns:
      amount: {type: real, lower: 0, upper: 2000}
      region: {type: integer, lower: 0, upper: 7}
"""


@dataclass(frozen=True)
class Case:
    """`table` is the protected table whose max_rows is tuned; the query has one key, a COUNT and a SUM."""

    name: str
    policy: str
    build: Callable[[Path], None]
    table: str
    sql: str


def build_shop(place: Path) -> None:
    """Write 20,000 customers; the numbers of their orders and the amounts are log-normal."""
    rng = np.random.default_rng(5)
    orders = np.minimum(np.ceil(rng.lognormal(1.2, 1.3, 20_000)).astype(int), 20_000)
    rows = int(orders.sum())
    amounts = np.minimum(rng.lognormal(3.0, 1.2, rows), 2000.0)
    columns = {"customer": np.repeat(np.arange(20_000), orders), "amount": amounts, "region": rng.integers(0, 8, rows)}
    with duckdb.connect(str(place)) as con:
        con.register("rows", pa.table(columns))
        con.execute("CREATE TABLE orders AS SELECT * FROM rows")
        con.execute("CREATE TABLE customers AS SELECT DISTINCT customer FROM orders")


CASES = (
    Case("log-normal spend", SHOP, build_shop, "orders",
         "SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY region"),
    Case("NAFLD, values of patients", shipped_policy("nafld"), build_nafld, "labs",
         "SELECT test, COUNT(*) AS n, SUM(value) AS s FROM labs GROUP BY test"),
    Case("flights of planes", shipped_policy("nycflights13"), build_flights, "flights",
         "SELECT origin, COUNT(*) AS n, SUM(distance) AS s FROM flights GROUP BY origin"),
)  # fmt: skip


def dropping(advice: Advice, of: str) -> int:
    """Return the best max_rows if rows are dropped, for COUNT or for SUM (`of`)."""
    best = next(t.recommended for t in advice.tables if t.setting == "max_rows" and t.of.startswith(of))
    return int(best.value) if best is not None else 1


def errors(session: Session, case: Case, settings: dict[str, float], epsilon: str, times: int) -> tuple[float, float]:
    """Return the relative errors of COUNT and of SUM: the median over groups, then the median over `times` measurements."""
    tables = dict(session.policy.tables)
    if "max_rows" in settings:
        tables[case.table] = replace(tables[case.table], bounds=ContributionBounds(max_rows=int(settings["max_rows"])))
    asking = session.over(replace(session.policy, tables=tables))
    for name, value in {"epsilon": epsilon, "reuse": "off", **settings}.items():
        if name != "max_rows":
            asking.options = asking.options.with_value(
                name, value if isinstance(value, str) else f"{value:.12g}", asking.policy
            )
    with duckdb.connect(str(session.policy.source_path()), read_only=True) as con:
        exact = {row[0]: row[1:] for row in con.sql(case.sql).fetchall()}
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        answer = [row for row in asking.execute(case.sql).rows() if row[0] in exact]
        for at in (0, 1):
            found[at].append(statistics.median(abs(row[1 + at] / float(exact[row[0]][at]) - 1) for row in answer))
    return statistics.median(found[0]), statistics.median(found[1])


def measure(case: Case, folder: Path, epsilon: str, times: int) -> list[str]:
    """Return the table's rows for one data set."""
    policy = replace(parse_policy(case.policy, folder=folder), ledger="sqlite:///ledger.db")
    policy = replace(policy, budget=replace(policy.budget, epsilon=Fraction(1000)))
    policy = replace(policy, per_query=replace(policy.per_query, max_epsilon=None), session=None, analysts={})
    place = policy.source_path()
    assert place is not None
    case.build(Path(place))
    with open_session(policy, create_ledger=True) as session:
        session.options = session.options.with_value("epsilon", epsilon, policy)
        advice = tune(session, case.sql, epsilon=Fraction(epsilon))
        clips = {name: value for name, value in advice.settings.items() if not isinstance(value, str)}
        own = policy.tables[case.table].bounds.max_rows
        ways: list[tuple[str, dict[str, float]]] = [(f"max_rows {own} (the policy's)", {})]
        for of in ("COUNT", "SUM"):
            best = dropping(advice, of)
            ways.append((f"max_rows {best} (best for {of})", {"max_rows": best}))
        words = ", ".join(f"{name} {value:g}" for name, value in clips.items())
        ways.append((f"clipped: {words}", clips))
        rows = []
        for way, settings in ways:
            count, total = errors(session, case, settings, epsilon, times)
            rows.append(f"| {case.name} | {way} | {count:.2%} | {total:.2%} |")
    return rows


def main() -> None:
    """Measure everything, with epsilon 1 for each query unless another is given."""
    epsilon = sys.argv[1] if len(sys.argv) > 1 else "1"
    print(f"| epsilon {epsilon} | bound | error of COUNT | error of SUM |\n| --- | --- | ---: | ---: |")
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            print("\n".join(measure(case, Path(folder), epsilon, 9)), flush=True)


if __name__ == "__main__":
    main()
