"""The figures of docs/prepare.md: `python tests/index/figures.py ROWS [REPEATS]`, questions of one run interleaved.

100,000 users with unequal numbers of rows; raw DuckDB, dpsql with row privacy (nothing to bound), and with users as
privacy units: unprepared (asked once), prepared by a copy (a few users have more than max_rows), prepared in place
(nobody has). Medians of whole questions, durable charge included, two threads.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import dpsql

QUESTIONS = {
    "Q2 SUM": "SELECT sum(amount) AS total FROM purchases",
    "Q3 AVG": "SELECT avg(amount) AS mean FROM purchases",
    "Q4 COUNT, SUM, AVG by 50 regions": (
        "SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM purchases GROUP BY region"
    ),
    "Q5 COUNT, SUM by region and day": (
        "SELECT region, day, count(*) AS n, sum(amount) AS total FROM purchases GROUP BY region, day"
    ),
    "Q6 COUNT DISTINCT users by region": (
        "SELECT region, count(DISTINCT user_id) AS users FROM purchases GROUP BY region"
    ),
    "Q7 COUNT by 10,000 private merchants": "SELECT merchant, count(*) AS n FROM purchases GROUP BY merchant",
}
# Raw, too, has to count users to know which merchants may be shown.
RAW = {
    "Q7 COUNT by 10,000 private merchants": (
        "SELECT merchant, count(*) AS n, count(DISTINCT user_id) AS u FROM purchases GROUP BY merchant"
    )
}
ROWS = """
CREATE TABLE purchases AS SELECT CAST(floor(random() ** 1.5 * 100000) AS BIGINT) AS user_id,
  format('region-{{:05}}', CAST(floor(random() * 50) AS BIGINT)) AS region,
  DATE '2024-01-01' + CAST(floor(random() * 365) AS INTEGER) AS day,
  format('merchant-{{:05}}', CAST(floor(random() * 10000) AS BIGINT)) AS merchant,
  CASE WHEN random() > 0.02 THEN round(random() * random() * 400, 2) END AS amount,
  1 + CAST(floor(random() * 19) AS INTEGER) AS items
FROM range({rows}) ORDER BY day
"""
POLICY = """
dataset: {name}
source: duckdb:///purchases.duckdb
privacy_unit: {unit}
budget: {{epsilon: 10000, delta: 1e-6, accountant: zcdp}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///{name}-ledger.db
tables:
  purchases:
{most}
    columns:
      user_id: {{type: integer, nullable: false}}
      region: {{type: text, domain: [{regions}], nullable: false}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-12-30, nullable: false}}
      merchant: {{type: text, nullable: false}}
      amount: {{type: real, lower: 0, upper: 500}}
      items: {{type: integer, lower: 0, upper: 20}}
"""


def open_all(folder: Path, rows: int) -> tuple[duckdb.DuckDBPyConnection, dict[str, dpsql.Session]]:
    """Raw DuckDB and one session for each way."""
    file = folder / "purchases.duckdb"
    if not file.exists():
        with duckdb.connect(str(file)) as connection:
            connection.execute("SELECT setseed(0.5)")
            connection.execute(ROWS.format(rows=rows))
    regions = ", ".join(f"region-{at:05}" for at in range(50))
    sessions = {}
    for name, most in (("row", 0), ("unprepared", rows // 40_000), ("copy", rows // 40_000), ("in_place", 10**6)):
        path = folder / f"{name}.yaml"
        unit = "{table: purchases, column: user_id}" if most else "row"
        line = f"    max_rows: {most}" if most else ""
        path.write_text(POLICY.format(name=name, most=line, regions=regions, unit=unit))
        new = not (folder / f"{name}-ledger.db").exists()
        session = dpsql.open_session(path, create_ledger=new)
        if name in ("copy", "in_place"):
            start = time.perf_counter()
            done = session._index.prepare()
            print(f"prepare: max_rows {most}, {done[0].state}, {time.perf_counter() - start:.1f} s")
        session.execute("SET dp.reuse = off")
        session._engine._connection.execute("SET threads = 2")
        sessions[name] = session
    raw = duckdb.connect()
    raw.execute(f"ATTACH '{file}' AS raw (READ_ONLY); SET threads = 2")
    return raw, sessions


def main(rows: int, repeats: int) -> None:
    folder = Path(tempfile.gettempdir()) / f"dpsql-prepare-{rows}"
    folder.mkdir(exist_ok=True)
    os.environ["DPSQL_STATE"] = str(folder / "state")
    raw, sessions = open_all(folder, rows)
    raw.execute("USE raw")
    print(f"| {rows:,} rows | raw ms | " + " | ".join(f"{name} ms | ratio" for name in sessions) + " |")
    for title, sql in QUESTIONS.items():
        times: dict[str, list[float]] = {"raw": [], **{name: [] for name in sessions}}
        for number in range(repeats):
            for name, taken in times.items():
                if name == "unprepared" and number > 0:
                    continue
                start = time.perf_counter()
                if name == "raw":
                    raw.sql(RAW.get(title, sql)).to_arrow_table()
                else:
                    sessions[name].execute(sql)
                taken.append(time.perf_counter() - start)
        middle = {name: statistics.median(values) for name, values in times.items()}
        cells = [f"{middle[name] * 1000:.1f} | {middle[name] / middle['raw']:.2f}" for name in sessions]
        print(f"| {title} | {middle['raw'] * 1000:.1f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7)
