"""DuckDB as the engine: exact integer aggregation over a DuckDB file, Parquet or CSV files, or objects given in Python."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.engine.contract import CUSTODIAN_LOG, Broken, Doubt, ExactAnswer, PreparedViews, fault_of
from dpsql.engine.dialect import Dialect
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.duckdb.settings import Statements
from dpsql.engine.duckdb.sources import Sources, TableStorage, attached, kept_in_children
from dpsql.engine.fair_queue import watchdog
from dpsql.engine.query import EngineQuery, Identity, Source
from dpsql.engine.served_tables import CONNECTION, PolicyTables, is_change_seen
from dpsql.errors.exceptions import Error, refuse
from dpsql.policy import Policy
from dpsql.policy.reach import is_file


class DuckDBEngine(PolicyTables):
    """One DuckDB database; `run` may be called from any thread, and each call has its own cursor."""

    dialect: Dialect = DUCKDB

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        policy: Policy,
        version: str,
        owned: bool,
        file: Path | None = None,
        objects: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """`version`: fingerprint of the data (see `data_version`); `owned`: whether `close` closes the connection.

        `file`: the DuckDB file that the connection has attached. `objects`: Arrow tables by name, which are registered on
        every cursor, because cursors do not inherit them.
        """
        super().__init__(policy)
        self._sources = Sources(connection, policy, version, owned=owned, file=file, objects=objects)
        self._owned = owned
        self._statements = Statements()

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._sources.connection

    @property
    def views(self) -> PreparedViews:
        return self._sources.views.prepared

    # --- structure, read by `Sources` ---------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        return self._sources.columns(table)

    def source(self, table: str, total: bool = False) -> Source:
        return self._sources.source(table, total)

    def broken(self, table: str) -> Broken | None:
        return self._sources.broken(table)

    def doubts(self, table: str) -> tuple[Doubt, ...]:
        """Return whether a table is a view, or has columns that DuckDB computes when they are read."""
        if is_file(self._policy.table_source(table)) or table in self._sources._objects:
            return ()
        stored = self._sources.stored(table)
        if stored is None:
            return (Doubt("", "is a view"),)
        return (Doubt("", "has generated columns"),) if stored is TableStorage.COMPUTED else ()

    def files(self, table: str) -> tuple[Path, ...]:
        return tuple(self._sources._files(table)) if is_file(self._policy.table_source(table)) else ()

    def advice(self) -> tuple[str, ...]:
        """Return no advice: files are opened read-only, and a connection given in Python is the owner's."""
        return ()

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Return a fingerprint of files. Of a connection given in Python, whose changes are not seen, it contains a digest of the
        rows of public tables."""
        version = self._sources.data_version(tables)
        public = () if is_change_seen(version) else (name for name in tables if self._policy.tables[name].public)
        return "|".join([version, *map(self._digest, public)])

    def _digest(self, table: str) -> str:
        with suppress(Error):  # what cannot be read is refused where it is read
            rows = self.public_table(f'SELECT count(*), sum(hash("a row")) FROM {self.source(table).sql} AS "a row"')
            return " ".join(str(column[0]) for column in rows.columns)
        return ""

    def identity(self, table: str) -> Identity | None:
        return self._sources.identity(table)

    def of_files(self, files: Mapping[str, Sequence[Path]]) -> DuckDBEngine:
        some = self.another()
        some._sources, some._checked = self._sources.of_files(files), {}
        return some

    def check_readable(self, tables: tuple[str, ...]) -> None:
        self._sources.check_readable(tables)

    def rehearse(self, query: EngineQuery) -> None:
        """Do nothing: every generated text is tested on DuckDB, and `check_readable` has checked the tables."""

    # --- work ---------------------------------------------------------------------------------------------------------

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one aggregation. The engine's error texts may quote data, so one fixed text replaces them."""
        with self._cursor(timeout_seconds) as cursor:
            for result, rows in query.released.items():
                cursor.register(result, rows)
            of_versions = [source for source in query.unchanged if source[1]]
            for table, identity, view in of_versions:
                self._sources.views.count(cursor, view, partial(self._require_unchanged, table, identity))
            if snapshots := [table for table, identity, _ in query.unchanged if not identity]:
                self._sources.require_snapshots(cursor, snapshots)
            answer = ExactAnswer(self._statements.table(cursor, query.sql, query.parameters))
            for table, identity, _ in of_versions:
                self._require_unchanged(table, identity)
            return answer

    def _require_unchanged(self, table: str, identity: str) -> None:
        now = self.identity(table)
        if now is None or now.text != identity:
            raise RuntimeError(f"the source of {table} changed while its bounded view was read from it")

    def exact_rows(self, sql: str) -> Any:
        with self._cursor(None) as cursor:
            return self._statements.table(cursor, sql)

    def _fetched(self, *queries: str) -> list[list[tuple[Any, ...]]]:
        with self._cursor(None) as cursor:
            return [cursor.execute(query).fetchall() for query in queries]

    @contextmanager
    def _cursor(self, timeout_seconds: float | None) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            cursor = self._sources.enter()
        except duckdb.Error as error:  # the database could not be reopened
            raise engine_fault(error) from None
        with self._lock:
            self._running.add(cursor)
        if timeout_seconds:
            watchdog().enter(cursor, timeout_seconds)
        try:
            yield cursor
        except Exception as error:
            raise engine_fault(error) from None
        finally:
            if timeout_seconds:
                watchdog().leave(cursor)
            with suppress(duckdb.Error):  # raise only our own text, whatever state an interrupt left
                cursor.close()
            self._sources.leave()
            with self._lock:
                self._running.discard(cursor)

    def under(self, policy: Policy) -> DuckDBEngine:
        """Return this engine: the files themselves show when the data change."""
        return self

    def interrupt(self) -> None:
        with self._lock:
            for cursor in self._running:
                with suppress(duckdb.Error):  # it is already closed, and its thread reopens the database
                    cursor.interrupt()

    def _disconnect(self) -> None:
        with suppress(duckdb.Error):  # sessions that share the database may still use it; the last one closes it
            self._connection.close()


_KINDS_OF_QUESTIONS = frozenset({
    "INTERRUPT", "Out of Memory", "INTERNAL", "FATAL", "Binder", "Parser", "Catalog", "Not implemented", "Syntax",
    "Mismatch Type", "Out of Range", "Conversion",
})  # fmt: skip
"""Kinds of DuckDB errors that another question over the same data may not have."""


def engine_fault(error: Exception) -> Error:
    """Return the fault with a fixed text for an error of DuckDB or of Arrow's readers."""
    kind = str(error).partition(" Error:")[0]  # in the middle of a stream, Arrow's OSError contains DuckDB's text
    return fault_of(error, of_source=not isinstance(error, MemoryError) and kind not in _KINDS_OF_QUESTIONS)


def open_duckdb(policy: Policy, source: Any = None) -> DuckDBEngine:
    """Return the engine for a policy: for its own source, a DuckDB connection, or Arrow tables (one, or a dict by name).

    Raises a fault if the source does not exist, and source_unsupported for other objects.
    """
    if source is None:
        return _open_path(policy)
    if isinstance(source, duckdb.DuckDBPyConnection):
        return DuckDBEngine(source, policy, f"{CONNECTION}{uuid.uuid4().hex}", owned=False)
    tables = source if isinstance(source, Mapping) else {next(iter(policy.tables)): source}
    for value in tables.values():  # of other objects DuckDB guesses types from some of their rows
        if not isinstance(value, pa.Table):
            raise refuse(
                "source_unsupported",
                source=type(value).__name__,
                known="DuckDB connections and Arrow tables in Python (of a data frame, pyarrow.Table.from_pandas makes one)",
            )
    return DuckDBEngine(
        kept_in_children(duckdb.connect()), policy, f"objects:{uuid.uuid4().hex}", owned=True, objects=tables
    )


def _open_path(policy: Policy) -> DuckDBEngine:
    text = policy.source or ""
    if not text.startswith("duckdb:"):
        connection = duckdb.connect()
        return DuckDBEngine(kept_in_children(connection), policy, "files", owned=True)
    path = Path(policy.source_path() or "")
    if not path.is_file():
        raise refuse("source_missing", source=text)
    try:
        connection, version, _ = attached(path)
    except duckdb.Error as error:
        CUSTODIAN_LOG.error("cannot open %s: %s", path, error)
        raise refuse("source_unreadable", source=text) from None
    return DuckDBEngine(connection, policy, version, owned=True, file=path)
