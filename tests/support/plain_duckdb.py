"""One in-memory DuckDB shared by all tests of a process that compare with it: creating one takes 20 ms, most queries less."""

from functools import cache
from typing import Any

import duckdb


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def plain_duckdb() -> duckdb.DuckDBPyConnection:
    """Return a new connection to the shared database, so that a result which another test has not read to its end does not
    interfere. Callers must use CREATE OR REPLACE and must not change settings."""
    return _database().cursor()


def answer_over(rows: str, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the column names and the sorted rows of a statement over a table `t`, defined by `rows` (an item of FROM)."""
    connection = plain_duckdb()
    connection.execute(f"CREATE OR REPLACE TABLE t AS FROM {rows}")
    answer = connection.execute(sql)
    return [column[0] for column in answer.description or ()], sorted(answer.fetchall(), key=str)


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[Any]) -> None:
    """Insert one or more rows at once: `executemany` plans each of them, which takes 75 times as long."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    connection.execute(f"INSERT INTO {table} SELECT {', '.join(['unnest(?)'] * len(columns))}", columns)
