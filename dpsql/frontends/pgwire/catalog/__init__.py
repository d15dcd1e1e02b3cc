"""What the server says about itself: PostgreSQL's catalogs, answered from the policy alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import duckdb
import pyarrow as pa
from sqlglot import exp

from dpsql.engine.watchdog import watchdog
from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.catalog.database import build
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.frontends.pgwire.catalog.rewrite import Place, to_duckdb
from dpsql.policy import Policy
from dpsql.release.sandbox import Room

__all__ = ["Catalog", "Place"]

TIMEOUT_SECONDS = 5.0
MOST_ROWS = 100_000
_FUNCTION = re.compile(r"[Ff]unction(?: with name)? \"?(\w+)|function '(\w+)")
_COLUMN = re.compile(r"column (?:named )?\"?([^\s\"]+)")


class Catalog:
    """One analyst's catalog; used from any thread, each question on a cursor of its own."""

    def __init__(self, policy: Policy, user: str) -> None:
        self.user = user
        self.database = policy.dataset
        self.oids = PolicyRows(policy, user).oids
        self._connection = build(policy, user)

    def run(
        self, tree: exp.Expr, place: Place, started: Callable[[Callable[[], None]], None] | None = None
    ) -> pa.Table:
        """Rows of one SELECT; `started` is given what interrupts it. Raises refusals with PostgreSQL's SQLSTATEs."""
        sql = to_duckdb(tree, place)
        cursor = self._connection.cursor()
        room = Room(cursor, MOST_ROWS)
        watchdog().enter(room, TIMEOUT_SECONDS)
        try:
            if started is not None:
                started(cursor.interrupt)
            return _fetched(cursor, sql)
        except duckdb.Error as error:
            raise _own(error, room.expired) from None
        finally:
            watchdog().leave(room)
            cursor.close()

    def describe(self, tree: exp.Expr, place: Place) -> pa.Schema:
        """The columns of one SELECT, which is not run."""
        sql = to_duckdb(tree, place)
        cursor = self._connection.cursor()
        try:
            return cursor.sql(f"SELECT * FROM ({sql}) LIMIT 0").to_arrow_table().schema
        except duckdb.Error as error:
            raise _own(error, False) from None
        finally:
            cursor.close()

    def close(self) -> None:
        """Let it go."""
        self._connection.close()


def _fetched(cursor: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    reader = cursor.sql(sql).to_arrow_reader(10_000)
    batches, rows = [], 0
    try:
        for batch in reader:
            rows += batch.num_rows
            if rows > MOST_ROWS:
                raise refuse("sandbox_rows", most=MOST_ROWS)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)
    finally:
        reader.close()


def _own(error: Exception, expired: bool) -> Error:
    """Our refusal for an engine error: names from the analyst's own text are taken from it, nothing else."""
    text = str(error)
    kind = text.partition(" Error:")[0]
    if expired or kind == "INTERRUPT":
        return refuse("sandbox_time")
    if kind == "Out of Memory":
        return refuse("sandbox_memory")
    if kind in ("Conversion", "Invalid Input", "Out of Range"):
        return refuse("sandbox_value", category="a value does not fit its type")
    function = _FUNCTION.search(text)
    if function is not None and ("does not exist" in text or "No function matches" in text):
        return refuse("unknown_function", name=(function.group(1) or function.group(2)).removeprefix("pgf_"))
    column = _COLUMN.search(text)
    if kind == "Binder" and column is not None:
        return refuse("unknown_column", name=column.group(1))
    return refuse("catalog_query")
