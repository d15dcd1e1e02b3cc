"""DuckDB as the engine: exact integer aggregation over a DuckDB file, Parquet or CSV files, or objects given in Python."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from dpsql.emit.duckdb import cast_column, constant, name
from dpsql.engines import EngineQuery, ExactAnswer, Source
from dpsql.errors import Error, Fault, refuse
from dpsql.policy import Policy
from dpsql.policy.reach import is_file
from dpsql.policy.types import SERVERS
from dpsql.ranges import Type

CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")
"""Engine errors go here, with the incident's id; never to an analyst. The owner decides where it is written."""
CUSTODIAN_LOG.addHandler(logging.NullHandler())

_FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".gz": "read_csv"}


class DuckDBEngine:
    """One DuckDB database; `run` may be called from any thread, each call has a cursor of its own."""

    dialect = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection, policy: Policy, version: str, owned: bool) -> None:
        """`version`: fingerprint of the data (see `data_version`); `owned`: whether `close` closes the connection."""
        self._connection = connection
        self._policy = policy
        self._version = version
        self._owned = owned
        self._sources: dict[str, Source] = {}
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._checked: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()

    # --- structure ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        """Columns and DuckDB types of a policy table's source, None where there is none."""
        where = self._place(table)
        try:
            described = self._connection.cursor().execute(f"DESCRIBE SELECT * FROM {where}").fetchall()
        except duckdb.Error:
            return None
        return {str(row[0]): str(row[1]) for row in described}

    def source(self, table: str) -> Source:
        """Qualified name and column types; a source that lacks a column of the policy is a fault of the owner's."""
        with self._lock:
            if table in self._sources:
                return self._sources[table]
        found = self.columns(table)
        if found is None:
            raise refuse("source_table_missing", table=table)
        folded = {column.lower(): (column, type_) for column, type_ in found.items()}
        types: dict[str, str] = {}
        for column in self._policy.tables[table].columns:
            if column.lower() not in folded:
                raise refuse("source_column_missing", table=table, column=column)
            types[column] = folded[column.lower()][1]
        source = Source(self._place(table), types)
        with self._lock:
            self._sources[table] = source
        return source

    def _place(self, table: str) -> str:
        """The FROM item of a policy table: a qualified name, or the scan of its files."""
        source = self._policy.table_source(table)
        if is_file(source):
            return f"{_FILES[Path(source).suffix.lower()]}({constant(source)})"
        return ".".join(name(part) for part in source.split("."))

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Fingerprint of the source's files (name, size, time of change), or of this very connection."""
        stamps = [self._version]
        for table in tables:
            source = self._policy.table_source(table)
            if is_file(source):
                stamps += [_stamp(path) for path in sorted(_matching(Path(source)))]
        return "|".join(stamps)

    # --- work ---------------------------------------------------------------------------------------------------------

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one aggregation. Whatever the engine says in an error may quote data: one fixed text leaves."""
        with self._cursor(timeout_seconds) as cursor:
            return ExactAnswer(cursor.sql(query.sql).to_arrow_table())

    def holds(self, query: str) -> bool:
        """Whether a check of a promise finds no row; asked once for each version of the data."""
        known = (query, self.data_version(tuple(self._policy.tables)))
        with self._lock:
            if known in self._checked:
                return self._checked[known]
        with self._cursor(None) as cursor:
            found = cursor.execute(query).fetchone() is None
        with self._lock:
            self._checked[known] = found
        return found

    def public_domains(self, table: str, most: int) -> dict[str, tuple[Any, ...]]:
        """Values of the columns of a public table that have few of them."""
        source, found = self.source(table), {}
        with self._cursor(None) as cursor:
            for column in self._policy.tables[table].columns.values():
                if column.type in ("real", "timestamp"):
                    continue
                value = cast_column(name(column.name), Type(column.type), source.types[column.name])
                listed = f"SELECT DISTINCT {value} AS v FROM {source.sql} WHERE {value} IS NOT NULL ORDER BY v"
                rows = cursor.execute(f"{listed} LIMIT {most + 1}").fetchall()
                if len(rows) <= most:
                    found[column.name] = tuple(row[0] for row in rows)
        return found

    def public_table(self, sql: str) -> Any:
        """Rows of a generated query over public tables."""
        with self._cursor(None) as cursor:
            return cursor.sql(sql).to_arrow_table()

    @contextmanager
    def _cursor(self, timeout_seconds: float | None) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        timer = threading.Timer(timeout_seconds, cursor.interrupt) if timeout_seconds else None
        with self._lock:
            self._running.add(cursor)
        try:
            if timer is not None:
                timer.start()
            yield cursor
        except Exception as error:
            raise engine_fault(error) from None
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                self._running.discard(cursor)
            cursor.close()

    def interrupt(self) -> None:
        """Stop every running query of this engine."""
        with self._lock:
            for cursor in self._running:
                cursor.interrupt()

    def close(self) -> None:
        """Close the database if it was opened here."""
        if self._owned:
            self._connection.close()


def engine_fault(error: Exception) -> Error:
    """One fixed text with an id; the detail goes to the custodian's log alone. The session knows whether it was charged."""
    incident = uuid.uuid4().hex[:12]
    CUSTODIAN_LOG.error("incident %s: %s", incident, error)
    fault = refuse("engine_failed", incident=incident)
    if isinstance(fault, Fault):
        fault.incident = incident
    return fault


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"


def _matching(path: Path) -> list[Path]:
    return list(path.parent.glob(path.name)) if any(c in path.name for c in "*?[") else [path] if path.exists() else []


def open_duckdb(policy: Policy, source: Any = None) -> DuckDBEngine:
    """The engine for a policy: its own source, or a DuckDB connection, or Arrow tables (one, or a dict by name).

    Raises a fault when the source is not there.
    """
    if source is None:
        return _open_path(policy)
    if isinstance(source, duckdb.DuckDBPyConnection):
        return DuckDBEngine(source, policy, f"connection:{uuid.uuid4().hex}", owned=False)
    tables = source if isinstance(source, Mapping) else {next(iter(policy.tables)): source}
    connection = duckdb.connect()
    for table, value in tables.items():
        connection.register(table, value)
    return DuckDBEngine(connection, policy, f"objects:{uuid.uuid4().hex}", owned=True)


def _open_path(policy: Policy) -> DuckDBEngine:
    text = policy.source or ""
    if text.startswith(SERVERS):
        raise refuse("source_unsupported", source=text.split("://")[0])
    if not text.startswith("duckdb:"):
        connection = duckdb.connect()
        return DuckDBEngine(connection, policy, "files", owned=True)
    path = Path(policy.source_path() or "")
    if not path.is_file():
        raise refuse("source_missing", source=text)
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        CUSTODIAN_LOG.error("cannot open %s: %s", path, error)
        raise refuse("source_unreadable", source=text) from None
    wal = path.with_name(path.name + ".wal")
    stamps = [_stamp(path)] + ([_stamp(wal)] if wal.exists() else [])
    return DuckDBEngine(connection, policy, "|".join(stamps), owned=True)
