"""Reference answers from plain DuckDB: the exact one over all rows, and the one expected after bounding."""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.compare import by_key
from benchmarks.peers.drive import Rows
from benchmarks.workload import Question

EXPECTED = {
    "n": "sum(weight)",
    "total": "sum(weight * inside)",
    "mean": "sum(weight * inside) / sum(weight) FILTER (WHERE inside IS NOT NULL)",
    "users": "sum(shown)",
}
"""Column of a query -> its expectation if every row of a user stays with probability `weight`."""


def exact(data: Path, question: Question) -> tuple[Rows, tuple[str, ...]]:
    """Return the rows of a query over the Parquet file, without any bound, and the names of its columns."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW purchases AS SELECT * FROM read_parquet('{data}')")
        table = connection.sql(question.sql).to_arrow_table()
    return by_key(table), tuple(name for name in table.column_names if name not in ("region", "day", "merchant"))


def bounded(data: Path, question: Question, max_rows: int | None, upper: int) -> Rows:
    """Return the expected rows after values are clamped to [0, upper] and `max_rows` rows of each user are sampled uniformly.

    A user with m rows keeps each with probability max_rows / m. A user with k rows in a group is absent from it if all remaining
    rows are among the other m - k, which has probability C(m - k, max_rows) / C(m, max_rows).
    """
    _, columns = exact(data, question)
    keys = [name for name in ("region", "day", "merchant") if name in question.sql]
    chosen = ", ".join([*keys, *(f"{EXPECTED[name]} AS {name}" for name in columns)])
    most = max_rows or 10**9
    missed = (
        f"CASE WHEN m - k < {most} THEN 0 ELSE "
        f"exp(lgamma(m - k + 1) - lgamma(m - k - {most} + 1) - lgamma(m + 1) + lgamma(m - {most} + 1)) END"
    )
    by = ", ".join(["user_id", *keys])
    rows = (
        f"SELECT *, count(*) OVER (PARTITION BY user_id) AS m, count(*) OVER (PARTITION BY {by}) AS k, "
        f"row_number() OVER (PARTITION BY {by}) AS nth, "
        f"CASE WHEN amount IS NOT NULL THEN greatest(least(amount, {upper}), 0) END AS inside FROM read_parquet('{data}')"
    )
    weighed = f"SELECT *, least(1.0, {most} / m) AS weight, CASE WHEN nth = 1 THEN 1 - {missed} ELSE 0 END AS shown FROM ({rows})"
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    with duckdb.connect() as connection:
        return by_key(connection.sql(f"SELECT {chosen} FROM ({weighed}){group}").to_arrow_table())
