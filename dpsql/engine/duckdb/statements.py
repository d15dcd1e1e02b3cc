"""Execution of one SELECT on a DuckDB cursor: its text is parsed once, its rows are returned as an Arrow table.

DuckDB takes longer to parse a generated text than to answer it over a thousand rows, and a dashboard repeats the same
texts. Only the parsed text is cached: names are bound and plans are made at every run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.storage.recent_values import RecentValues

_MOST_KEPT = 256
_MOST_KEPT_CHARACTERS = 1_000_000
_BATCH_ROWS = 20_000

# DuckDB 2 warns that `sql(text)` would save a copy of the rows, but that binds every text twice and takes no parsed text.
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)


class Statements:
    """A cache of the parsed texts that were run last. Thread-safe; valid for every connection and every database."""

    def __init__(self) -> None:
        self._parsed: RecentValues[Any] = RecentValues(_MOST_KEPT, _MOST_KEPT_CHARACTERS)

    def table(
        self,
        cursor: duckdb.DuckDBPyConnection,
        sql: str,
        parameters: tuple[Any, ...] = (),
        *,
        most_bytes: int | None = None,
        count: Callable[[int], None] = lambda size: None,
    ) -> pa.Table:
        """Return every row of the one SELECT in `sql`; `parameters`: values of its $1, $2, ... Raises DuckDB's errors, and
        MemoryError, without collecting further rows, if the rows have more than `most_bytes`. With that limit, `count` is called
        with the size of all rows collected so far, and may raise to stop."""
        result: Any = cursor.execute(
            self._parsed.get(sql, lambda: _parsed(cursor, sql), len(sql)), *([parameters] if parameters else [])
        )
        if most_bytes is not None:
            return _bounded(result, most_bytes, count)
        # DuckDB 1.4 has only the older name.
        fetch = getattr(result, "to_arrow_table", None) or result.fetch_arrow_table
        try:
            return fetch()
        except UserWarning:  # nothing was fetched: the host turned all warnings into errors
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return fetch()


def _parsed(cursor: duckdb.DuckDBPyConnection, sql: str) -> Any:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise duckdb.ParserException("Parser Error: not one statement")
    return statements[0]


def _bounded(result: Any, most_bytes: int, count: Callable[[int], None]) -> pa.Table:
    """Collect the rows in batches. Raises MemoryError as soon as there are too many, and what `count` raises."""
    open_reader = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch
    with open_reader(_BATCH_ROWS) as reader:
        batches: list[pa.RecordBatch] = []
        size = 0
        for batch in reader:
            size += batch.nbytes
            if size > most_bytes:
                raise MemoryError
            count(size)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)
