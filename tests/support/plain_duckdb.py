"""One DuckDB in memory for all tests of a process that compare with it: making one takes 20 ms, most of what they ask less."""

from __future__ import annotations

from functools import cache

import duckdb


@cache
def plain_duckdb() -> duckdb.DuckDBPyConnection:
    """Return the connection, of one thread. Who uses it says CREATE OR REPLACE, and leaves its settings alone."""
    return duckdb.connect(config={"threads": 1})
