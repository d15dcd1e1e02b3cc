"""One DuckDB in memory for all tests of a process that compare with it: making one takes 20 ms, most of what they ask less."""

from __future__ import annotations

from functools import cache

import duckdb


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def plain_duckdb() -> duckdb.DuckDBPyConnection:
    """Return a new connection to it: a result that another test has not read to its end is in nobody's way. Who uses it says
    CREATE OR REPLACE, and leaves its settings alone."""
    return _database().cursor()
