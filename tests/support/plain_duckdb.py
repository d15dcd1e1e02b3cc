"""One DuckDB in memory for all tests of a process that compare with it: making one takes 20 ms, most of what they ask less."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def plain_duckdb() -> duckdb.DuckDBPyConnection:
    """Return a new connection to it: a result that another test has not read to its end is in nobody's way. Who uses it says
    CREATE OR REPLACE, and leaves its settings alone."""
    return _database().cursor()


def answer_over(rows: str, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names and the sorted rows of a statement over a table `t`, made of `rows` (an item of FROM)."""
    connection = plain_duckdb()
    connection.execute(f"CREATE OR REPLACE TABLE t AS FROM {rows}")
    answer = connection.execute(sql)
    return [column[0] for column in answer.description or ()], sorted(answer.fetchall(), key=str)
