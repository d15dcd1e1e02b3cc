"""A week of a dashboard: 12 tiles, refreshed every 5 minutes by three analysts, under `dp.reuse` off, on and derive.

    python examples/dashboard_week.py

This uses a real policy, ledger and store in a temporary folder; every query goes through a session. Each night the data change
once. Under `on` and `derive`, all refreshes after the first of a day are the same store look-up, so only a sample of them runs
(`SAMPLED` per day and analyst), and the program checks that it is free; `off` runs until its budget is spent.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dpsql.errors.exceptions import BudgetRefusal
from dpsql.session.session import Session, open_session

DAYS, REFRESHES, SAMPLED = 7, 288, 2
ANALYSTS = ("ann", "bob", "cem")
POLICY = """
dataset: shop
source: duckdb:///shop.duckdb
privacy_unit: {table: users, column: user_id}
budget: {epsilon: 200, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1}
ledger: sqlite:///ledger.db
analysts: {ann: {epsilon: 200}, bob: {epsilon: 200}, cem: {epsilon: 200}}
tables:
  users:
    max_rows: 1
    columns:
      user_id: {type: integer, nullable: false}
      country: {type: text, domain: [AT, BR, DE, FR, IN, US], nullable: false}
      plan: {type: text, domain: [free, pro, team], nullable: false}
      is_active: {type: boolean, nullable: false}
      age: {type: integer, lower: 18, upper: 99, nullable: false}
"""
BASE = "COUNT(*) AS users, SUM(age) AS age, AVG(age) AS mean_age FROM users"
TILES = (
    f"SELECT country, plan, is_active, {BASE} GROUP BY ALL",
    "SELECT country, COUNT(*) AS users FROM users GROUP BY country ORDER BY users DESC",
    "SELECT plan, COUNT(*) AS users FROM users GROUP BY plan",
    "SELECT COUNT(*) AS users FROM users",
    "SELECT COUNT(*) AS active FROM users WHERE is_active",
    "SELECT country, AVG(age) AS mean_age FROM users WHERE is_active GROUP BY country",
    "SELECT plan, COUNT(*) FILTER (WHERE is_active) * 100.0 / COUNT(*) AS active_percent FROM users GROUP BY plan",
    "SELECT country, COUNT(*) AS payers FROM users WHERE plan IN ('pro', 'team') GROUP BY country",
    "SELECT AVG(age) AS mean_age FROM users WHERE plan = 'free'",
    "SELECT country, plan, COUNT(*) AS users FROM users WHERE country IN ('DE', 'AT') GROUP BY ALL",
    "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'older' END AS band, COUNT(*) AS users FROM users GROUP BY 1",
    "SELECT is_active, plan, COUNT(*) AS users FROM users GROUP BY ALL HAVING COUNT(*) > 100",
)


@contextmanager
def world() -> Iterator[Path]:
    """Yield a folder with policy and data, which also contains the state directory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["DPSQL_STATE"] = str(folder / "state")
        (folder / "shop.yaml").write_text(POLICY)
        write_data(folder, 0)
        open_session(folder / "shop.yaml", create_ledger=True).close()
        yield folder


def write_data(folder: Path, day: int) -> None:
    """Write the data of one day in place of the previous day's."""
    part = folder / f"day{day}.duckdb"
    with duckdb.connect(str(part)) as connection:
        connection.execute(
            "CREATE TABLE users AS SELECT i AS user_id, ['AT', 'BR', 'DE', 'FR', 'IN', 'US'][1 + i % 6] AS country, "
            "['free', 'pro', 'team'][1 + i * 7 % 11 % 3] AS plan, i % 5 > 1 AS is_active, 18 + i * 13 % 70 AS age "
            f"FROM range({20_000 + 100 * day}) t(i)"
        )
    os.replace(part, folder / "shop.duckdb")


def refresh(session: Session) -> tuple[list[object], int]:
    """Refresh all tiles once; return their rows, and the number of charged tiles."""
    rows, charged = [], 0
    for tile in TILES:
        release = session.execute(tile)
        rows.append(release.table.to_pylist())
        charged += not release.reused
    return rows, charged


def simulate(reuse: str) -> str:
    """Simulate one week; return a line of the result."""
    refreshes = charges = 0
    with world() as folder:
        for day in range(DAYS):
            write_data(folder, day)
            shown: list[object] = []
            for analyst in ANALYSTS:
                with open_session(folder / "shop.yaml", analyst=analyst) as session:
                    session.execute(f"SET dp.reuse = {reuse}")
                    for _ in range(REFRESHES if reuse == "off" else SAMPLED):
                        try:
                            rows, charged = refresh(session)
                        except BudgetRefusal:
                            return line(reuse, session, refreshes, "the budget is gone")
                        refreshes += 1
                        charges += charged
                        shown.append(rows)
            if any(rows != shown[0] for rows in shown):
                raise SystemExit("two refreshes of one day differ")
        with open_session(folder / "shop.yaml") as session:
            whole = DAYS * REFRESHES * len(ANALYSTS)
            return line(reuse, session, whole, f"{charges} charges; every refresh of a day shows the same numbers")


def line(reuse: str, session: Session, refreshes: int, remark: str) -> str:
    """Return a description of the week's cost."""
    spent = float(session.budget().spent["dataset"]["epsilon"])
    return f"dp.reuse = {reuse:6}  {refreshes:5} refreshes of {len(TILES)} tiles  epsilon {spent:6.1f}  {remark}"


def average() -> list[str]:
    """Return the gain from averaging refreshes: the error of the mean of 10 answers to each of 40 queries at epsilon 0.1."""
    lines = []
    for reuse in ("off", "on"):
        errors = []
        with world() as folder, open_session(folder / "shop.yaml") as session:
            session.execute(f"SET dp.reuse = {reuse}")
            session.execute("SET dp.epsilon = 0.1")
            for number in range(40):
                sql = f"SELECT COUNT(*) AS users FROM users WHERE age <> {-1 - number}"  # all users, every time
                answers = [next(session.execute(sql).rows())[0] for _ in range(10)]
                errors.append(statistics.fmean(answers) - 20_000)
            spent = float(session.budget().spent["dataset"]["epsilon"]) / len(errors)
        root = statistics.fmean(error**2 for error in errors) ** 0.5
        lines.append(
            f"mean of 10 refreshes, dp.reuse = {reuse:3}: off by {root:4.1f} (root mean square), epsilon {spent:.1f}"
        )
    return lines


def main() -> None:
    """Print the result of the week."""
    start = time.monotonic()
    whole = DAYS * REFRESHES * len(ANALYSTS)
    print(
        f"{len(TILES)} tiles, {len(ANALYSTS)} analysts, every 5 minutes for {DAYS} days: {whole * len(TILES)} answers"
    )
    for reuse in ("off", "on", "derive"):
        print(simulate(reuse), flush=True)
    print("one answer of epsilon 0.1 is off by 14.1 (root mean square)")
    for text in average():
        print(text, flush=True)
    print(f"{time.monotonic() - start:.0f} seconds")


if __name__ == "__main__":
    main()
