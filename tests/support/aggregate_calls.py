"""Calls of every registered aggregate over the table of schemas/policies/numbers.yaml, derived from its registration."""

from functools import lru_cache
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from dpsql.aggregates.contract import Aggregate, Arguments, aggregates
from dpsql.aggregates.quantile import TOTAL_CUT
from dpsql.sql.binder.aggregates import function_name

ARGUMENTS = {
    Arguments.ROWS: ("*", "x", "y"),
    Arguments.CONDITION: ("flag", "y > 12.5"),
    Arguments.COUNTED_CONDITION: ("x > 3",),
    Arguments.NUMBER: ("x", "y", "2 * x - 1", "CASE WHEN flag THEN y ELSE z END"),
    Arguments.PAIR: ("y, x", "z, y"),
    Arguments.UNIT_VALUE: ("x", "y"),
    Arguments.QUANTILE: ("x",),
    # No two values are equally frequent in the rows below; on ties, the engine could return any of them.
    Arguments.MODE: ("x > 30", "CASE WHEN x < -20 THEN 'low' ELSE 'high' END"),
    Arguments.END_ROW: ("grp, y", "flag, y"),
    Arguments.SAMPLES: ("CORR(y, x), -1, 1, 20", "AVG(y) / AVG(z), -50, 100", "SKEWNESS(y), -3, 3, 30, 'mean'"),
}
"""Example arguments for each rule of reading arguments. A new rule needs a line here."""
BY_ANOTHER_RULE: dict[str, tuple[str, ...]] = {
    # The engine alone interpolates continuous quantiles, so only the extremes are equal.
    "quantile_cont": ("QUANTILE_CONT(x, 0)", "QUANTILE_CONT(y, 1)", "PERCENTILE_CONT(1) WITHIN GROUP (ORDER BY x DESC)"),
    "quantile_disc": (
        "QUANTILE_DISC(x, 0.25)",
        "QUANTILE_DISC(y, 0.9)",
        "QUANTILE(x, 0.5)",
        "MIN(y)",
        "MAX(x)",
        "PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY y)",
    ),
    "listed_quantile_cont": ("QUANTILE_CONT(x, [0])",),
    "listed_quantile_disc": ("QUANTILE_DISC(x, [1])",),
    TOTAL_CUT: (),  # chosen by `dp.max_total = auto`; no query names it
    "count_units": ("COUNT(DISTINCT person)",),
    "count_distinct": ("COUNT(DISTINCT x)", "COUNT(DISTINCT y)"),
}  # fmt: skip
"""Calls of aggregates that need more than a spelling and its arguments."""
MEASURED = [aggregate for aggregate in aggregates() if aggregate.formula is not None and aggregate.word != TOTAL_CUT]
"""Aggregates that a query can name. (TOTAL_CUT is chosen for `dp.max_total = auto`, see
tests/unit/planning/test_total_cuts.py.)"""
OF_UNIT = [aggregate for aggregate in aggregates() if aggregate.of_unit is not None]


def calls(aggregate: Aggregate) -> list[str]:
    """Return calls under every spelling, with DISTINCT where the aggregate accepts it."""
    found = list(BY_ANOTHER_RULE.get(aggregate.word, ()))
    for spelling, rule in aggregate.spellings.items():
        if rule is Arguments.QUANTILE:
            continue
        called = function_name(spelling).upper()
        found += [f"{called}({arguments})" for arguments in ARGUMENTS[rule]]
        if aggregate.distinct and rule is Arguments.NUMBER:
            found += [f"{called}(DISTINCT {arguments})" for arguments in ARGUMENTS[rule][:2]]
    return found


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the empty table t."""
    connection.execute(
        "CREATE OR REPLACE TABLE t (person INTEGER, grp TEXT, x INTEGER, y DOUBLE, z DOUBLE, flag BOOLEAN)"
    )


def fill(connection: duckdb.DuckDBPyConnection, seed: int, people: int = 40) -> None:
    """Insert five random rows per person, within the policy's bounds; x, y and flag contain NULL, y also NaN."""
    connection.register("drawn", rows(seed, people))
    connection.execute("DELETE FROM t")
    connection.execute("INSERT INTO t SELECT * FROM drawn")


@lru_cache(maxsize=8)
def rows(seed: int, people: int) -> pa.Table:
    draw, count = np.random.default_rng(seed), 5 * people
    y = np.where(draw.random(count) < 0.1, np.nan, draw.integers(-400, 801, count) / 8)
    return pa.table({
        "person": np.repeat(np.arange(people), 5),
        "grp": draw.choice(list("abc"), count),
        "x": pa.array(draw.integers(-40, 61, count), mask=draw.random(count) < 0.15),
        "y": pa.array(y, mask=draw.random(count) < 0.15, from_pandas=False),
        "z": draw.integers(0, 65, count) / 128,
        "flag": pa.array(draw.random(count) < 0.5, mask=draw.random(count) < 0.2),
    })  # fmt: skip


def engines_own(sql: str) -> str:
    """Return the equivalent query for plain DuckDB, in which NaN counts as NULL."""
    return f"WITH t AS (SELECT * REPLACE (CASE WHEN NOT isnan(y) THEN y END AS y) FROM t) {sql}"


POLICY = """
dataset: aggregates
privacy_unit: {table: t, column: person}
budget: {epsilon: 1000, accountant: pure}
per_query: {epsilon: 100, max_epsilon: 500}
ledger: sqlite:///ledger.db
tables:
  t:
    max_rows: 5
    columns:
      person: {type: integer, nullable: false}
      x: {type: real, lower: 0, upper: 10}
"""


def policy_file(folder: Path) -> Path:
    """Write a policy over a table of numbers, for tests with real noise, and return its path."""
    path = folder / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path
