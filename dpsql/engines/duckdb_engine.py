"""DuckDB as the engine: exact integer aggregation over a DuckDB file, Parquet or CSV files, or objects given in Python."""

from __future__ import annotations

import copy
import glob
import logging
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from dpsql.emit.duckdb import cast_column, constant, name
from dpsql.engines import EngineQuery, ExactAnswer, Identity, PreparedViews, Source
from dpsql.engines.duckdb_settings import Settings
from dpsql.engines.duckdb_statements import Statements
from dpsql.engines.duckdb_views import Views
from dpsql.engines.watchdog import watchdog
from dpsql.errors import Error, Fault, refuse
from dpsql.policy import Policy
from dpsql.policy.reach import is_file
from dpsql.policy.types import SERVERS
from dpsql.ranges import Type

CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")
"""Engine errors go here, with the incident's id; never to an analyst. The owner decides where it is written."""
CUSTODIAN_LOG.addHandler(logging.NullHandler())

_MOST_TRIES = 3
_CLOSING_SECONDS = 10.0
_FILES = {".parquet": "read_parquet({})", ".csv": "read_csv({}, all_varchar = true)"}
_FILES[".gz"] = _FILES[".csv"]
"""CSV values are read as text and cast by us: a type that the engine guessed would raise at the row that breaks it."""


class DuckDBEngine:
    """One DuckDB database; `run` may be called from any thread, each call has a cursor of its own."""

    dialect = "duckdb"

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        policy: Policy,
        version: str,
        owned: bool,
        file: Path | None = None,
        objects: Mapping[str, Any] | None = None,
    ) -> None:
        """`version`: fingerprint of the data (see `data_version`); `owned`: whether `close` closes the connection.

        `file`: the DuckDB file that the connection has attached. `objects`: Arrow tables by name, which every cursor
        gets registered anew, because a cursor does not inherit them.
        """
        self._objects = dict(objects or {})
        self._connection = connection
        self._policy = policy
        self._version = version
        self._owned = owned
        self._file = file
        self._opened = None if file is None else _identity([file])
        self._base_tables: dict[str, bool] = {}
        self._settings = Settings(connection, owned=owned)
        self.views: PreparedViews = Views(connection, self._settings)
        self._sources: dict[str, Source] = {}
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._checked: dict[tuple[str, str], bool] = {}
        self._statements = Statements()
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)

    # --- structure ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        """Columns and DuckDB types of a policy table's source, None where there is none."""
        where = self._place(table)
        try:
            described = self._new_cursor().execute(f"DESCRIBE SELECT * FROM {where}").fetchall()
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
            return _FILES[Path(source).suffix.lower()].format(constant(source))
        parts = source.split(".")
        if self._file is not None:
            parts = [_catalog(self._file), *(["main"] if len(parts) == 1 else []), *parts][-3:]
        return ".".join(name(part) for part in parts)

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Fingerprint of the source's files (name, size, time of change), or of this very connection."""
        stamps = [self._version]
        for table in tables:
            source = self._policy.table_source(table)
            if is_file(source):
                stamps += [_stamp(path) for path in sorted(_matching(Path(source)))]
        return "|".join(stamps)

    def identity(self, table: str) -> Identity | None:
        """Number, size and times of the files that a table and those on its way to the unit are read from.

        Stricter than `data_version`: the time of the last change of a file's own record cannot be set back. None for
        what is given in Python, for views (their rows may come from anywhere), and for a DuckDB file that is no longer
        the one that was opened.
        """
        paths: list[Path] = []
        for read in [table, *(parent for _, _, parent, _ in self._policy.unit_joins(table))]:
            source = self._policy.table_source(read)
            if is_file(source):
                paths += _matching(Path(source))
            elif self._file is not None and self._is_base_table(read):
                paths.append(self._file)
            else:
                return None
        found = _identity(paths)
        if self._file in paths:
            whole = found if set(paths) == {self._file} else _identity([self._file])
            if whole is None or whole != self._opened:
                return None
        return found

    def _is_base_table(self, table: str) -> bool:
        if table not in self._base_tables:
            place = self._place(table).lower()
            listed = "SELECT database_name, schema_name, table_name FROM duckdb_tables()"
            with self._cursor(None) as cursor:
                rows = cursor.execute(listed).fetchall()
            self._base_tables[table] = any(".".join(map(name, row)).lower() == place for row in rows)
        return self._base_tables[table]

    # --- work ---------------------------------------------------------------------------------------------------------

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one aggregation. Whatever the engine says in an error may quote data: one fixed text leaves."""
        with self._cursor(timeout_seconds) as cursor:
            for result, rows in query.released.items():
                cursor.register(result, rows)
            answer = ExactAnswer(self._statements.table(cursor, query.sql, query.parameters))
            for table, identity in query.unchanged:
                now = self.identity(table)
                if now is None or now.text != identity:
                    raise RuntimeError(f"the source of {table} changed while it was read as its own bounded view")
            return answer

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
            return self._statements.table(cursor, sql)

    def _new_cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        self._settings.pin(cursor)
        for table, value in self._objects.items():
            cursor.register(table, value)
        return cursor

    @contextmanager
    def _cursor(self, timeout_seconds: float | None) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._new_cursor()
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
            with suppress(duckdb.Error):  # nothing but our own text leaves, whatever state an interrupt left
                cursor.close()
            with self._lock:
                self._running.discard(cursor)
                self._left.notify_all()

    def another(self) -> DuckDBEngine:
        """The same database for another session: all that is remembered is shared, `interrupt` stops its own alone."""
        other = copy.copy(self)
        other._running, other._owned = set(), False
        return other

    def interrupt(self) -> None:
        """Stop every running query of this engine."""
        with self._lock:
            self._interrupt()

    def _interrupt(self) -> None:
        for cursor in self._running:
            cursor.interrupt()

    def close(self) -> None:
        """Close the database if it was opened here, once what runs has been stopped."""
        if not self._owned:
            return
        deadline = time.monotonic() + _CLOSING_SECONDS
        with self._left:
            while self._running and time.monotonic() < deadline:
                self._interrupt()  # again and again: an interrupt between two statements is lost
                self._left.wait(0.02)
        with suppress(duckdb.Error):  # sessions that share the database may still use it; the last of them lets it go
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
    """The files of a name or glob; wildcards may stand in any part, as the engine reads them."""
    return [Path(found) for found in sorted(glob.glob(str(path), recursive=True, include_hidden=True))]


def _identity(paths: list[Path]) -> Identity | None:
    """Of files as they are now, with the write-ahead log of a DuckDB file; None when one of them is not there."""
    texts, changed = [], 0
    # Texts, no Paths: this is asked for every question.
    files = {os.fspath(path) for path in paths}
    beside = {wal for file in files if os.path.exists(wal := f"{file}.wal")}
    try:
        for file in sorted(files | beside, key=lambda file: file.split(os.sep)):
            status = os.stat(file)
            texts.append(f"{file}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}")
            changed = max(changed, status.st_ctime_ns)
    except FileNotFoundError:
        return None
    return Identity("|".join(texts), changed / 1e9) if texts else None


def _catalog(file: Path) -> str:
    """The name of a file's database inside the engine: the one that DuckDB itself gives it, as views in it may say."""
    return "source" if file.stem.lower() in ("memory", "temp", "system") else file.stem


def open_duckdb(policy: Policy, source: Any = None) -> DuckDBEngine:
    """The engine for a policy: its own source, or a DuckDB connection, or Arrow tables (one, or a dict by name).

    Raises a fault when the source is not there.
    """
    if source is None:
        return _open_path(policy)
    if isinstance(source, duckdb.DuckDBPyConnection):
        return DuckDBEngine(source, policy, f"connection:{uuid.uuid4().hex}", owned=False)
    tables = source if isinstance(source, Mapping) else {next(iter(policy.tables)): source}
    return DuckDBEngine(duckdb.connect(), policy, f"objects:{uuid.uuid4().hex}", owned=True, objects=tables)


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
        return _open_file(path, policy)
    except duckdb.Error as error:
        CUSTODIAN_LOG.error("cannot open %s: %s", path, error)
        raise refuse("source_unreadable", source=text) from None


def _open_file(path: Path, policy: Policy) -> DuckDBEngine:
    """A database of its own with the file attached, read-only.

    `duckdb.connect(path)` would share one database with whatever else in the process has opened that path, which may
    still be what the path named earlier.
    """
    connection = duckdb.connect()
    connection.execute(f"SET temp_directory = {constant(f'{path}.tmp')}")
    for _ in range(_MOST_TRIES):
        before = _identity([path])
        connection.execute(f"ATTACH {constant(str(path))} AS {name(_catalog(path))} (READ_ONLY)")
        if before is not None and before == _identity([path]):
            break
        connection.execute(f"DETACH {name(_catalog(path))}")
    else:
        raise duckdb.IOException("the file keeps changing")
    wal = path.with_name(path.name + ".wal")
    stamps = [_stamp(path)] + ([_stamp(wal)] if wal.exists() else [])
    return DuckDBEngine(connection, policy, "|".join(stamps), owned=True, file=path)
