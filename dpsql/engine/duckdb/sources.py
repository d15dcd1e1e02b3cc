"""Tables of a policy in DuckDB: their location, structure, identity and readability.

They are shared by all sessions of one engine. Facts about a source are cached until its files change; then they are
read again, before anything is charged.
"""

from __future__ import annotations

import glob
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from dpsql.engine.contract import Broken
from dpsql.engine.duckdb.literals import POINTS_OF_TIME, TYPES, cast_column, constant, is_readable
from dpsql.engine.duckdb.prepared_views import Views
from dpsql.engine.duckdb.settings import PinnedSettings
from dpsql.engine.lake_tables import columns_of, snapshot
from dpsql.engine.query import DECIMAL_COMMA, Identity, Source, check_openable, identity_of, matching, read_by, stamp
from dpsql.errors.exceptions import Error, refuse
from dpsql.media.text import sql_name
from dpsql.plan.intervals import Type
from dpsql.policy import Policy, PolicyColumn
from dpsql.policy.reach import is_file, lake_table
from dpsql.storage.memory import return_free_memory
from dpsql.storage.records import replace

if TYPE_CHECKING:
    from dpsql.engine.csv_files import CsvFiles
    from dpsql.engine.duckdb.parquet_files import FileGroup, TotalParquet
import os
import weakref

# --- DuckDB connections in a process that forks: a child has the objects, but none of their threads ---
# A child that frees such a connection gets a segmentation fault, at the latest when its interpreter ends. So a child never
# releases its references; their memory is freed with the process.

_connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()


def kept_in_children(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return `connection`, and ensure that no forked child frees it."""
    _connections.add(connection)
    return connection


def _keep() -> None:
    import ctypes

    for connection in list(_connections):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _connections.clear()


os.register_at_fork(after_in_child=_keep)


# --- DuckDB files, each attached read-only to its own in-memory database ---

_MOST_TRIES = 3


def catalog(file: Path) -> str:
    """Return the name of a file's database in the engine: the name that DuckDB itself chooses, because views may contain it."""
    return "source" if file.stem.lower() in ("memory", "temp", "system") else file.stem


def attached(
    path: Path, connection: duckdb.DuckDBPyConnection | None = None
) -> tuple[duckdb.DuckDBPyConnection, str, Identity]:
    """Return a separate database with the file attached read-only, the version of its data, and the file's identity.
    `connection`: the connection of that database, if it exists already.

    `duckdb.connect(path)` would share one database with everything else in the process that has opened that path, and
    that may still be the file that the path named earlier. Raises duckdb.Error.
    """
    connection = connection or kept_in_children(duckdb.connect())
    connection.execute(f"SET temp_directory = {constant(f'{path}.tmp')}")
    for _ in range(_MOST_TRIES):
        before = identity_of([path])
        connection.execute(f"ATTACH {constant(str(path))} AS {sql_name(catalog(path))} (READ_ONLY)")
        if before is not None and before == identity_of([path]):
            break
        connection.execute(f"DETACH {sql_name(catalog(path))}")
    else:
        raise duckdb.IOException("the file keeps changing")
    wal = path.with_name(path.name + ".wal")
    stamps = [stamp(path)] + ([stamp(wal)] if wal.exists() else [])
    return connection, "|".join(stamps), before


# --- Tables of a policy in DuckDB: their location, structure, identity and readability ---

_log = logging.getLogger("dpsql.custodian")
MOST_RUNS = 250
"""Number of queries after which a database is reopened, once none runs. DuckDB keeps a record of each block that it freed, up to
tens of thousands for each kind of block: about 6 kB for each question, which only closing the database frees."""
DRAIN_SECONDS = 1.0
"""How long new queries wait for running ones, after twice as many queries without a moment when none ran."""

_TABLES = (
    "SELECT table_name, database_name, schema_name, current_database(), current_schema(), sql FROM duckdb_tables()"
)
"""Of all tables, which DuckDB lists anyway: a condition takes longer to plan than the rows to read."""
_KINDS_OF_DATABASES = "SELECT database_name, type FROM duckdb_databases()"
_statements: dict[str, duckdb.Statement] = {}


def _parsed(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return a text as any connection of the process has parsed it, valid for every connection: these run for each question."""
    return _statements.get(sql) or _statements.setdefault(sql, cursor.extract_statements(sql)[0])


_MOST_NUMBERED = 16
"""Most files of one table that a text names one by one, to number their rows."""


def _row_number(column: str, present: Iterable[str]) -> str:
    """Return the column in which DuckDB numbers rows, unless a column of the table has its name."""
    return "" if column in map(str.lower, present) else column


class TableStorage(Enum):
    """How the rows of a table are stored: all readings within one statement of DuckDB return the same; columns are computed when
    they are read; in another kind of database."""

    SNAPSHOT, COMPUTED, ELSEWHERE = "snapshot", "computed", "elsewhere"


class Sources:
    """The tables of one policy over one database. Thread-safe."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        policy: Policy,
        version: str,
        *,
        owned: bool,
        file: Path | None = None,
        objects: Mapping[str, pa.Table] | None = None,
        only: Mapping[str, Sequence[Path]] | None = None,
    ) -> None:
        """Take the arguments of `DuckDBEngine`. `only`: the files to read of tables of which only some files are read."""
        self.connection = connection
        self._settings = PinnedSettings(connection, owned=owned)
        self.views = Views(self.cursor)
        self._policy = policy
        self._version = version
        self._owned = owned
        self._only = only or {}
        self._file = file
        self._opened = None if file is None else identity_of([file])
        self._objects: dict[str, pa.Table] = {}
        self._total: dict[str, TotalParquet] = {}
        self._csv: dict[str, CsvFiles] = {}
        for table, about in policy.tables.items():
            if objects and table in objects:
                from dpsql.engine.duckdb.parquet_files import total_table

                self._objects[table] = total_table(objects[table], self._source_names(table).values())
            if about.csv is not None:
                from dpsql.engine.csv_files import CsvFiles

                names = self._source_names(table)
                self._csv[table] = CsvFiles(table, partial(self._files, table), about.csv, names, about.public)
        self._base_tables: dict[str, TableStorage | None] = {}
        self._sources: dict[str, Source] = {}
        self._whatever = set[str]()
        self._zones = set[str]()
        self._looked: dict[str, object] = {}
        self._looking = {table: threading.RLock() for table in policy.tables}
        self._lock, self._of_thread = threading.Lock(), threading.local()
        read = map(policy.table_source, policy.tables)
        self._may_reopen = owned and (file is not None or all(map(is_file, read)) or bool(self._objects))
        self._runs = self._running = 0
        self._entering = threading.Condition(threading.Lock())
        self._drain_at, self._drain_until = 2, 0.0

    def of_files(self, files: Mapping[str, Sequence[Path]]) -> Sources:
        """Return the same tables with those in `files` reduced to these files. For a process that prepares: the result must not
        outlive the connection of this object."""
        some = Sources(
            self.connection, self._policy, self._version, owned=self._owned, file=self._file, objects=self._objects, only=files
        )  # fmt: skip
        some._opened, some._whatever, some._may_reopen = self._opened, set(self._whatever), False
        return some

    def _files(self, table: str) -> list[Path]:
        """Return the files to read of a table that is read from files. Raises Fault for a lake table that cannot be read."""
        if table in self._only:
            return list(self._only[table])
        try:
            return matching(self._policy.table_source(table))
        except OSError as error:
            raise self._unreadable(table, error) from None

    def _files_text(self, table: str) -> str:
        """Return the SQL argument that gives DuckDB's functions the files of a table: a glob, or a list of names."""
        source = self._policy.table_source(table)
        return _listed(self._files(table)) if table in self._only or lake_table(source) else constant(source)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a new cursor with the objects given in Python and the CSV files, which cursors do not inherit."""
        cursor = self.connection.cursor()
        self._settings.pin(cursor)
        for table, value in self._objects.items():
            cursor.register(table, value)
        for table, files in self._csv.items():
            if (dataset := files.current) is not None:
                cursor.register(_scan_name(table), dataset)
        for scan, dataset in tuple(self._total.items()):
            cursor.register(scan, dataset)
        return cursor

    def enter(self) -> duckdb.DuckDBPyConnection:
        """Return a new cursor for one query; after closing it, call `leave`."""
        if not self._may_reopen:
            return self.cursor()
        with self._entering:
            self._running += 1
            try:
                return self.cursor()
            except BaseException:
                self._running -= 1
                raise

    def _wait_for_the_end_of_others(self) -> None:
        """Let the running queries end, so that the database can be reopened, if there was no moment without a running query. New
        queries wait for that, at most `DRAIN_SECONDS`; the next such wait is after `MOST_RUNS` more queries. They wait here,
        before they are charged, and nowhere afterwards: a query that is cancelled while it waits costs nothing.

        There is no second database beside the one of the running queries: closing the first would also release the process's
        lock on the file, and other processes could write to the file during the queries of the second.
        """
        if not self._may_reopen:
            return
        with self._entering:
            if self._runs < self._drain_at * MOST_RUNS or not self._running:
                return
            now = time.monotonic()
            self._drain_until = self._drain_until or now + DRAIN_SECONDS
            done = self._entering.wait_for(lambda: not self._drain_until, max(0.0, self._drain_until - now))
            if not done:
                self._drain_at = self._runs // MOST_RUNS + 1
                self._drain_until = 0.0
                self._entering.notify_all()

    def leave(self) -> None:
        """Count a query that has ended; reopen the database if there were many queries and none is running."""
        if not self._may_reopen:
            return
        with self._entering:
            self._running -= 1
            self._runs += 1
            if self._runs >= MOST_RUNS and not self._running:
                self._reopen()
                self._drain_at, self._drain_until = self._runs // MOST_RUNS + 2, 0.0
                self._entering.notify_all()

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor that counts as a running query, so that the database is not reopened while it is used. Within it, the
        same thread reads with this cursor: a new one has its settings checked, which takes longer than most readings."""
        if (cursor := getattr(self._of_thread, "cursor", None)) is not None:
            yield cursor
            return
        self._of_thread.cursor = cursor = self.enter()
        try:
            yield cursor
        finally:
            self._of_thread.cursor = None
            cursor.close()
            self.leave()

    def _reopen(self) -> None:
        """Reopen the same database with its prepared views, so that a question whose text is already written finds them.
        If the file cannot be read, the next question reports it before it is charged."""
        views = self.views
        try:
            views.move(partial(self._reopened, views))
        except (duckdb.Error, OSError, Error) as error:
            _log.error("the database of the source cannot be opened again: %s", error)
            with self._lock:
                self._runs = 0
                self._opened = None
                self.views = Views(self.cursor)
        if not self._runs:
            return_free_memory()

    def _reopened(self, views: Views) -> duckdb.DuckDBPyConnection | None:
        """Replace the connection and return a cursor; None if the file was replaced, or if another thread opened the new file,
        so that `views` belong to the former data. The present connection is closed before the source is opened, because closing
        any descriptor of a file releases all locks of the process on it."""
        with self._lock:
            self._runs = 0
            if self.views is not views:
                return None
            if self._file is not None and (self._opened is None or identity_of([self._file]) != self._opened):
                return None  # `_attach_anew` opens it
            connection = kept_in_children(duckdb.connect())
            views.attach(connection)
            if self._file is not None:
                self.connection.close()
                connection, self._version, self._opened = attached(self._file, connection)
            self._settings = PinnedSettings(connection, owned=True)
            self.connection = connection
        return self.cursor()

    # --- structure ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        """Return columns and DuckDB types of a policy table's source, or None if it is missing. Raises Fault for CSV files."""
        if table in self._csv:
            return dict.fromkeys(self._csv[table].names(), "VARCHAR") if self._files(table) else None
        try:
            check_openable(self._files(table) if self._is_parquet(table) else ())
            if lake := lake_table(self._policy.table_source(table)):
                return columns_of(snapshot(*lake))
            return self._described(self.place(table))
        except duckdb.Error as error:
            if self._is_parquet(table) and self._files(table):
                raise self._unreadable(table, error) from None
            _log.error("cannot read the structure of %s: %s", table, error)
            return None
        except OSError as error:
            raise self._unreadable(table, error) from None

    def _names_in(self, paths: Sequence[Path]) -> list[str]:
        """Return the names of all columns that any of some Parquet files has, also of those that a table no longer has."""
        with self._reading() as cursor:
            rows = cursor.execute(f"SELECT name FROM parquet_schema({_listed(paths)})").fetchall()
        return [str(name) for (name,) in rows]

    def _described(self, place: str, columns: str = "*") -> dict[str, str]:
        """Return names and DuckDB types of columns. Raises duckdb.Error."""
        with self._reading() as cursor:
            described = cursor.execute(f"DESCRIBE SELECT {columns} FROM {place}").fetchall()
        return {str(row[0]): str(row[1]) for row in described}

    def source(self, table: str, total: bool = False) -> Source:
        """Return qualified name and column types. Raises Fault if the source lacks a column of the policy.

        `total`: no value of a Parquet file may cause a failure, whatever its type, which takes longer.
        """
        if table in self._csv:
            types = dict.fromkeys(self._csv[table].dataset().layout.names, "VARCHAR")
            return Source(
                self.place(table), {**types, **self._readable(table, {name.lower(): t for name, t in types.items()})}
            )
        must_change = total and table not in self._whatever and self._is_parquet(table)
        source = None if must_change else self._sources.get(table)
        if source is not None:
            return source
        with self._looking[table]:
            if must_change:
                self._whatever.add(table)
                self._sources.pop(table, None)
            sources = self._sources  # those of one file, even if it is replaced meanwhile
            if table not in sources:
                sources[table] = self._read_source(table)
            return sources[table]

    def _read_source(self, table: str) -> Source:
        """Return the present source of a table that is not read from CSV files. Raises the same faults as `source`."""
        if self._is_parquet(table):
            return self._parquet(table)
        try:
            with self._reading():
                return self._stored_source(table)
        except duckdb.Error as error:
            _log.error("cannot read the structure of %s: %s", table, error)
            raise refuse("source_table_missing", table=table) from None

    def _stored_source(self, table: str) -> Source:
        present = self.columns(table)
        if present is None:
            raise refuse("source_table_missing", table=table)
        folded = {column.lower(): type_ for column, type_ in present.items()}
        names = self._source_names(table)
        for column, in_source in names.items():
            if in_source.lower() not in folded:
                raise refuse("source_column_missing", table=table, column=column)
        types = self._readable(table, {column.lower(): folded[names[column].lower()] for column in names})
        rows = self._renamed(table, self.place(table))
        if table in self._objects:
            return Source(rows, types, is_snapshot=True)
        stored = self.stored(table)
        # The blocks of a file are read when they are needed, and another process may write over them.
        is_snapshot = self._file is None and stored is TableStorage.SNAPSHOT
        is_numbered = rows == self.place(table) and stored is TableStorage.SNAPSHOT and self._file is not None
        number = _row_number("rowid", present) if is_numbered else ""
        return Source(rows, types, is_snapshot, stored is not TableStorage.SNAPSHOT, number)

    def _source_names(self, table: str) -> dict[str, str]:
        """Return the names that the columns of a policy table have in its source (policy key `from`), by their own names."""
        return {column.name: column.source_name for column in self._policy.tables[table].columns.values()}

    def _renamed(self, table: str, scan: str) -> str:
        """Return a FROM item in which the columns of a policy table have their own names."""
        names = self._source_names(table)
        if all(column == in_source for column, in_source in names.items()):
            return scan
        items = (f"{sql_name(in_source)} AS {sql_name(column)}" for column, in_source in names.items())
        return f"(SELECT {', '.join(items)} FROM {scan})"

    def _readable(self, table: str, present: Mapping[str, str]) -> dict[str, str]:
        """Return the DuckDB types of the policy's columns from those by lower-case name. Raises Fault source_column_type."""
        types = {}
        for column in self._policy.tables[table].columns.values():
            types[column.name] = engine_type = present[column.name.lower()]
            if not is_readable(engine_type):
                word = engine_type.partition("(")[0]  # a type may contain names of fields
                raise refuse("source_column_type", table=table, column=column.name, given=word, wanted=column.type)
            types[column.name] = read_by(engine_type, self._rule(table, column, engine_type))
        return types

    def _rule(self, table: str, column: PolicyColumn, engine_type: str) -> str | None:
        """Return the rule by which a column is read (`read_by`). Raises Fault source_zone."""
        csv = self._policy.tables[table].csv
        if csv is not None and csv.decimal == DECIMAL_COMMA and column.type in ("integer", "real"):
            return DECIMAL_COMMA
        zone = column.timezone if engine_type in POINTS_OF_TIME else None
        if zone is not None:
            self._check_zone(table, zone)
        if csv is not None and csv.days != "ymd" and column.type in ("date", "timestamp"):
            return f"{csv.days}:{zone or ''}"
        return zone

    def _check_zone(self, table: str, zone: str) -> None:
        """Check that DuckDB knows a zone, because it raises at the first value otherwise. Raises Fault source_zone."""
        if zone in self._zones:
            return
        with self._reading() as cursor:
            listed = cursor.execute("SELECT 1 FROM pg_timezone_names() WHERE name = ?", [zone]).fetchall()
        if not listed:
            raise refuse("source_zone", zone=zone, engine="DuckDB", table=table)
        self._zones.add(zone)

    def _parquet(self, table: str) -> Source:
        """Return the Parquet files of a table as one relation.

        Files that store the policy's columns in the same types are one scan, whose values are converted where they are used.
        Otherwise each group of files has its own scan, and its values are converted before they come together: types of one
        file then never decide how a value of another is read.
        """
        from dpsql.engine.duckdb.parquet_files import grouped

        paths, columns = self._files(table), self._policy.tables[table].columns
        if not paths:
            raise refuse("source_table_missing", table=table)
        try:
            check_openable(paths)
            lake = lake_table(self._policy.table_source(table))
            may_lack = snapshot(*lake).may_lack if lake else ()
            groups = grouped(table, paths, columns.values(), may_lack, total=table in self._whatever)
            scans = [
                self._renamed(table, self._scan(table, group, number, len(groups)))
                for number, group in enumerate(groups)
            ]
            names = ", ".join(map(sql_name, columns))
            described = [self._described(scan, names) for scan in scans]
            present = self._names_in(paths) if len(paths) <= _MOST_NUMBERED else []
        except (OSError, UnicodeDecodeError, pa.ArrowException, duckdb.Error) as error:
            raise self._unreadable(table, error) from None
        typed = [self._readable(table, {k.lower(): type_ for k, type_ in types.items()}) for types in described]
        if len(scans) == 1:
            is_numbered = bool(present) and scans[0].startswith(read := f"read_parquet({_listed(paths)}")
            column = _row_number("file_row_number", [*present, *groups[0].keys]) if is_numbered else ""
            # The engine's own number of a file is not fixed: it leaves out files of which a filter needs no row.
            each = (
                f"SELECT {names}, file_row_number + {number << 40} AS file_row_number FROM "
                f"{scans[0].replace(read, f'read_parquet({_listed([path])}', 1)}"
                for number, path in enumerate(paths)
            )
            numbered = f"({' UNION ALL '.join(each)})" if column and len(paths) > 1 else ""
            files = tuple(paths) if is_numbered else ()
            return Source(scans[0], typed[0], row_number=column, numbered=numbered, files=files)
        parts = []
        for scan, types in zip(scans, typed, strict=True):
            items = (
                cast_column(sql_name(c.name), Type(c.type), types[c.name]) + f" AS {sql_name(c.name)}"
                for c in columns.values()
            )
            parts.append(f"SELECT {', '.join(items)} FROM {scan}")
        types = {c.name: TYPES[Type(c.type)] for c in columns.values()}
        return Source(f"({' UNION ALL BY NAME '.join(parts)})", types, files=tuple(paths))

    def _scan(self, table: str, group: FileGroup, number: int, groups: int) -> str:
        """Return the FROM item of one of several groups of Parquet files. Raises OSError, pyarrow.ArrowException."""
        absent = "".join(f", NULL::VARCHAR AS {sql_name(column)}" for column in group.absent)
        if absent:
            present = self._scan(table, replace(group, absent=()), number, groups)
            return f"(SELECT *{absent} FROM {present})"
        empty = [key for key in group.keys if any(f"/{key}=/" in path.as_posix() for path in group.paths)]
        if empty and lake_table(self._policy.table_source(table)) is not None:
            values = ", ".join(f"nullif({sql_name(key)}, '') AS {sql_name(key)}" for key in empty)
            return f"(SELECT * REPLACE ({values}) FROM {self._group_scan(table, group, number, groups)})"
        return self._group_scan(table, group, number, groups)

    def _group_scan(self, table: str, group: FileGroup, number: int, groups: int) -> str:
        if group.by_arrow:
            scan = f"{_scan_name(table)} {number}"
            self._total[scan] = group.dataset()
            return f"temp.main.{sql_name(scan)}"
        # A column is read from the files if it is there. Values of paths are texts: their type would depend on all of them.
        hive = "true, hive_types_autocast = false" if group.keys else "false"
        # Without can_have_nan DuckDB concludes from a file's statistics, which ignore NaN, that no row has NaN: counts of the
        # rows with NaN would then depend on whether another row contributes to the statistics.
        # A pattern could find a further file in the next reading, whose rows have no number.
        is_named = len(group.paths) <= _MOST_NUMBERED or lake_table(self._policy.table_source(table)) is not None
        files = _listed(group.paths) if groups > 1 or is_named else self._files_text(table)
        return f"read_parquet({files}, can_have_nan = true, hive_partitioning = {hive})"

    def place(self, table: str) -> str:
        """Return the FROM item of a policy table: a qualified name, or a scan of its files from which only names are read."""
        if table in self._csv:
            return f"temp.main.{sql_name(_scan_name(table))}"
        if is_file(self._policy.table_source(table)):
            return f"read_parquet({self._files_text(table)})"
        return ".".join(sql_name(part) for part in self._parts(table))

    def _parts(self, table: str) -> list[str]:
        parts = self._policy.table_source(table).split(".")
        path = [] if self._file is None else [catalog(self._file), *(["main"] if len(parts) == 1 else [])]
        return [*path, *parts][-3:] if path else parts

    def broken(self, table: str) -> Broken | None:
        return self._csv[table].broken() if table in self._csv else None

    def stored(self, table: str) -> TableStorage | None:
        """Return how a database stores the rows of the table; None for a view."""
        base_tables = self._base_tables  # those of one file, even if it is replaced meanwhile
        if table not in base_tables or self._file is None:
            with self._reading() as cursor:
                (base_tables[table],) = self._stored_now(cursor, [table])
        return base_tables[table]

    def _stored_now(self, cursor: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> Iterator[TableStorage | None]:
        """Yield how each table is stored, all of them as the databases of `cursor` are listed once."""
        kinds = dict(cursor.execute(_parsed(cursor, _KINDS_OF_DATABASES)).fetchall())
        listed = cursor.execute(_parsed(cursor, _TABLES)).fetchall()
        for table in tables:
            stored, (*path, bare) = [], map(_folded, self._parts(table))
            for table_name, *names, sql in listed:
                if _folded(table_name) != bare:
                    continue
                database, schema, own_database, own_schema = map(_folded, names)
                spelled = ([database, schema], [schema] * (database == own_database), [database] * (schema == "main"))
                if path in spelled or (not path and [database, schema] == [own_database, own_schema]):
                    is_computed = "GENERATED ALWAYS AS" in (sql or "").upper()
                    in_duckdb = TableStorage.COMPUTED if is_computed else TableStorage.SNAPSHOT
                    stored.append(in_duckdb if kinds[names[0]] == "duckdb" else TableStorage.ELSEWHERE)
            yield stored[0] if len(stored) == 1 else None

    def _read(self, tables: Sequence[str]) -> dict[str, None]:
        """Return these tables and those on their paths to the unit, each once."""
        read = dict.fromkeys(tables)
        for table in tables:
            for _, _, parent, _ in self._policy.unit_joins(table):
                read[parent] = None
        return read

    def require_snapshots(self, cursor: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> None:
        """Begin a transaction in which all readings of these tables see the same rows. Raises RuntimeError for a view."""
        cursor.execute("BEGIN")
        stored = [table for table in self._read(tables) if table not in self._objects]
        for table, now in zip(stored, self._stored_now(cursor, stored), strict=True):
            if now is not TableStorage.SNAPSHOT:
                raise RuntimeError(f"{table} is a table no more whose rows are read as of one moment")

    # --- which rows ---------------------------------------------------------------------------------------------------

    def data_version(self, tables: tuple[str, ...]) -> str:
        with suppress(duckdb.Error):  # `check_readable` reports the error before anything is charged
            self._attach_anew()
        stamps = [self._version]
        for table in tables:
            source = self._policy.table_source(table)
            if is_file(source):
                stamps += [stamp(path) for path in self._files(table)]
        return "|".join(stamps)

    def identity(self, table: str) -> Identity | None:
        """Return inode, size and times of the files of a table and of the tables on its path to the unit.

        This is stricter than `data_version`: the time of the last change of a file's own record cannot be set back. None
        for objects given in Python, for views (their rows may come from anywhere), and for a DuckDB file that is not the
        file that was opened.
        """
        paths: list[Path] = []
        places = ["" if self._file is None else str(self._file)]
        for read in self._read([table]):
            source = self._policy.table_source(read)
            places.append(source)
            if is_file(source):
                paths += self._files(read)
            elif self._file is not None and self.stored(read) is not None:
                paths.append(self._file)
            else:
                return None
        identity = identity_of(paths)
        if self._file in paths:
            whole = identity if set(paths) == {self._file} else identity_of([self._file])
            if whole is None or whole != self._opened:
                return None
        return None if identity is None else replace(identity, place="\0".join(places))

    # --- checks before anything is charged ----------------------------------------------------------------------------

    def check_readable(self, tables: tuple[str, ...]) -> None:
        """Check that tables (and the tables on their paths to the unit) exist and can be read, as far as that is possible
        without reading rows. Cheap unless a file changed since the last call. Waits briefly if the database is about to be
        reopened. Raises Fault.
        """
        self._wait_for_the_end_of_others()
        try:
            self._attach_anew()
        except duckdb.Error as error:
            _log.error("cannot open %s: %s", self._file, error)
            raise refuse("source_unreadable", source=self._policy.source or "") from None
        if self._file is not None and self._opened is None:
            raise refuse("source_missing", source=self._policy.source or "")
        for table in self._read(tables):
            self._check_table(table)

    def _check_table(self, table: str) -> None:
        if table in self._csv:
            self._csv[table].dataset()
            return
        path = self._policy.table_source(table)
        now: object = None
        if is_file(path):
            files = self._files(table)
            identity = identity_of(files)
            if gone := [file for file in files if identity is None and not file.exists()]:
                raise self._unreadable(table, FileNotFoundError(f"{gone[0]} is named by its snapshot and is gone"))
            if identity is None:
                raise refuse("source_table_missing", table=table)
            now = identity.text
        elif table in self._objects or (self._file is not None and self.stored(table) is not None):
            now = self._opened
            if table in self._sources:
                return
        with self._looking[table]:
            looked = self._looked
            if now is None or looked.get(table) != now:
                self._sources.pop(table, None)
                self.source(table)
                looked[table] = now

    def _is_parquet(self, table: str) -> bool:
        return table not in self._csv and is_file(self._policy.table_source(table))

    def _unreadable(self, table: str, error: Exception) -> Error:
        _log.error("cannot read the files of %s: %s", table, str(error).partition("\n")[0])
        return refuse("source_table_unreadable", table=table)

    def _attach_anew(self) -> None:
        """Open the DuckDB file again if it was replaced; threads reading the former file keep it. Raises duckdb.Error."""
        if self._file is None or identity_of([self._file]) == self._opened:
            return
        views = self.views
        with self._lock:
            if not self._file.is_file():
                self._opened = None
                return
            if self.views is not views or identity_of([self._file]) == self._opened:
                return  # another thread has opened it
            self._opened = None
            connection, version, opened = attached(self._file)
            settings = PinnedSettings(connection, owned=True)
            self.connection, self._settings, self.views = connection, settings, views.follow(self.cursor, connection)
            self._version, self._opened = version, opened
            self._base_tables, self._sources, self._looked = {}, {}, {}


def _folded(name: str) -> str:
    """Return a name as DuckDB compares it: of letters beyond ASCII, upper and lower case differ."""
    return name.encode().lower().decode()


def _scan_name(table: str) -> str:
    """Return the name of a scan of files, which no table of a source can have."""
    return f"#csv {table}"


def _listed(paths: Sequence[Path]) -> str:
    """Return the SQL argument that gives DuckDB's functions these files."""
    return f"[{', '.join(constant(glob.escape(str(path))) for path in paths)}]"
