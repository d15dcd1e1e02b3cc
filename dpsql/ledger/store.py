"""The connection to the ledger's database, its transactions, and the translation of its failures.

SQLite: WAL, BEGIN IMMEDIATE, and synchronous=FULL for entries that must be durable before the answer.  PostgreSQL: one
advisory lock per database for writers.  This module begins and ends transactions through the driver, not SQLAlchemy.

A process has one connection per store, used by one thread at a time, closed before a fork: SQLite forbids carrying a
connection into a child, and even closing it there.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.driver_errors import slug_of
from dpsql.ledger.driver_statements import DriverStatement, driver
from dpsql.storage.live_objects import LiveObjects

_log = logging.getLogger("dpsql.custodian")
# The advisory lock of every dpsql ledger in one PostgreSQL database ("dpsql" in ASCII).
_POSTGRES_LOCK = 0x647073716C
_APPLICATION = {"application_name": "dpsql ledger"}
_VANISHED = (
    "SET LOCAL tcp_keepalives_idle = 10; SET LOCAL tcp_keepalives_interval = 5; SET LOCAL tcp_keepalives_count = 3;"
)
"""A process that vanishes with its network keeps the lock of all writers until the server notices: after half of the time that
others wait for the lock if the server expects a statement, and after these 25 seconds if it has received half of one."""
_MOST_GRACE_SECONDS = 10.0
"""Upper limit for the time that a reply may take beyond the time that its statement may wait for a lock."""
_SCHEMA = "SELECT current_schema()"
_MAY_CHARGE = (
    "SELECT has_table_privilege('dpsql_entries', 'INSERT') AND has_table_privilege('dpsql_accounts', 'INSERT') "
    "AND has_table_privilege('dpsql_accounts', 'UPDATE')"
)

T = TypeVar("T")
Step = Callable[[str], None]


def no_step(name: str) -> None:
    """Do nothing: this is the default of the hook by which tests stop a process at a named step."""


class Taken(Exception):
    """A unique value exists already: a number, an id, or the outcome of a charge."""


@dataclass(frozen=True)
class Place:
    """The location of a ledger: `path` for SQLite, else None; `address` is the URL without a password."""

    url: URL
    path: Path | None
    address: str


def parse_place(text: str) -> Place:
    """Return the location named by `sqlite:///PATH` or `postgresql://...`. Raises ledger_url for anything else."""
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise refuse("ledger_url") from error
    backend = url.get_backend_name()
    if backend == "sqlite" and url.database and url.database != ":memory:" and not url.query:
        path = Path(url.database).resolve()
        return Place(url, path, f"sqlite:///{path}")
    if backend == "postgresql":
        named = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
        return Place(url.set(drivername="postgresql+psycopg"), None, named.render_as_string())
    raise refuse("ledger_url")


class Store:
    """Serialised transactions on one database. Thread-safe; survives a fork by reconnecting."""

    def __init__(
        self,
        place: Place,
        timeout_seconds: float = 30.0,
        step: Step = no_step,
        name: str = "the ledger",
        read_only: bool = False,
    ) -> None:
        """`read_only`: read a SQLite file on a medium that cannot be written, from a copy of it and of the log beside it."""
        self._read_only = read_only
        self.name = name
        self.place = place
        self.step = step
        self.timeout_seconds = timeout_seconds
        self._engine = self._new_engine()
        self._connection: Connection | None = None
        self._driver: Any = None
        self._errors: type[Exception] = self._engine.dialect.loaded_dbapi.Error
        self._taken: type[Exception] = self._engine.dialect.loaded_dbapi.IntegrityError
        self._lossy = "FULL"
        self._synchronous = ""
        self._lock = threading.RLock()
        self._process = os.getpid()
        _LIVE.add(self)

    @property
    def is_sqlite(self) -> bool:
        """Return whether the database is a SQLite file."""
        return self.place.path is not None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude the other threads of this process. Raises `Fault` if that takes longer than the timeout."""
        if not self._lock.acquire(timeout=self.timeout_seconds):
            raise refuse("ledger_locked", what=self.name, seconds=f"{self.timeout_seconds:g}")
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """Open a write transaction; if `durable`, it is on disk when the context ends, otherwise a power failure may
        lose it.

        Raises `Fault` for every failure of the database. Nothing is written unless the context ends normally; if the
        commit of a durable transaction fails, the outcome is unknown and the fault says so (`charged` is set).
        """
        with self.alone():
            connection = self._begun(self._begin_durable if durable else self._begin_lossy)
            try:
                with self._in_words():
                    yield connection
                self.step("before commit")
                with self._in_words(committing=durable):
                    self._driver.execute("COMMIT")
            except BaseException:
                self._give_up()
                raise
            self.step("after commit")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read transaction: one consistent state of the whole ledger."""
        with self.alone():
            connection = self._begun(self._begin_reading)
            try:
                with self._in_words():
                    yield connection
            finally:
                self._give_up()

    def rows(self, statement: DriverStatement, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one SELECT: one consistent state, without an explicit transaction."""
        with self.alone():
            return self._begun(lambda connection: statement.rows(connection, **values))

    def write(self, statement: DriverStatement, **values: Any) -> int:
        """Run one statement as its own transaction (SQLite), which a power failure may lose, and return how many rows
        it wrote."""

        def written(connection: Connection) -> int:
            self._become(self._lossy)
            return statement.run(connection, **values)

        with self.alone():
            self.step("before commit")
            count = self._begun(written)
            self.step("after commit")
            return count

    def table_names(self) -> set[str]:
        """Return the names of the tables in the database (in the schema of the connection). Raises Fault ledger_read_only if
        the role may use no schema: tables that it cannot see may still exist."""
        with self.reading() as connection:
            if not self.is_sqlite and connection.exec_driver_sql(_SCHEMA).scalar() is None:
                raise refuse("ledger_read_only", what=self.name)
            return set(sqlalchemy.inspect(connection).get_table_names())

    def may_charge(self) -> bool:
        """Return whether the role on a server may write charges into the tables; for a file, opening has already shown that."""
        if self.is_sqlite:
            return True
        with self.reading() as connection:
            return bool(connection.exec_driver_sql(_MAY_CHARGE).scalar())

    def close(self) -> None:
        """Close the connection; the store reconnects when it is used again."""
        with self.alone():
            self._disconnect()

    def _begun(self, begin: Callable[[Connection], T]) -> T:
        """Return the result of `begin` on an open connection. A connection that was lost while idle is replaced once."""
        for attempt in (1, 2):
            fresh = self._connection is None
            try:
                with self._in_words():
                    return begin(self._connected())
            except BaseException as error:
                self._disconnect()  # closing the connection ends its transaction
                slug = error.slug if isinstance(error, Error) else ""
                if fresh or attempt == 2 or slug != "ledger_unreachable":
                    raise
        raise refuse("ledger_unreachable", what=self.name)

    def _begin_durable(self, connection: Connection) -> Connection:
        return self._begin_writing(connection, "FULL", "on")

    def _begin_lossy(self, connection: Connection) -> Connection:
        return self._begin_writing(connection, self._lossy, "off")

    def _begin_writing(self, connection: Connection, synchronous: str, synchronous_commit: str) -> Connection:
        if self.is_sqlite:
            self._become(synchronous)
            self._driver.execute("BEGIN IMMEDIATE")
            return connection
        # Take a new snapshot per statement, whatever the server's default: a snapshot from before the lock would be stale.
        milliseconds = int(self.timeout_seconds * 1000)
        self._driver.execute(
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL lock_timeout = {milliseconds};"
            f"SET LOCAL idle_in_transaction_session_timeout = {max(1, milliseconds // 2)};{_VANISHED}"
            f"SET LOCAL synchronous_commit = {synchronous_commit};"
            f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})"
        )
        return connection

    def _become(self, synchronous: str) -> None:
        """Set when SQLite flushes to disk; the setting holds for the connection until it is set again."""
        if self._synchronous != synchronous:
            self._driver.execute(f"PRAGMA synchronous={synchronous}")
            self._synchronous = synchronous

    def _begin_reading(self, connection: Connection) -> Connection:
        self._driver.execute("BEGIN" if self.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return connection

    def _connected(self) -> Connection:
        if self._process != os.getpid():
            # A fork outside Python skipped our hook: the parent's connection must not even be closed here.
            _CARRIED.append((self._engine, self._connection))
            self._engine, self._connection, self._process = self._new_engine(), None, os.getpid()
        if self._connection is None:
            self._synchronous = ""
            self._connection = self._engine.connect()
            self._driver = driver(self._connection)
        return self._connection

    def _give_up(self) -> None:
        """Roll back; drop the connection if that fails."""
        if self._connection is None:
            return
        try:
            self._driver.rollback()
        except self._errors:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.close()

    def _new_engine(self) -> sqlalchemy.Engine:
        if self.place.path is None:
            engine = sqlalchemy.create_engine(
                self.place.url, poolclass=NullPool, connect_args=_APPLICATION, isolation_level="AUTOCOMMIT"
            )
            sqlalchemy.event.listen(engine, "do_connect", self._open_postgresql)
            return engine
        return sqlalchemy.create_engine("sqlite://", creator=self._open_sqlite, poolclass=NullPool)

    def _open_postgresql(self, dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        """Open a connection on which no statement waits much longer than `timeout_seconds` for its reply."""
        from dpsql.storage.patient_connections import TCP_OPTIONS, PatientConnection

        connection = PatientConnection.connect(*arguments, **{**TCP_OPTIONS, **options})
        connection.patience_seconds = self.timeout_seconds + min(self.timeout_seconds, _MOST_GRACE_SECONDS)
        return connection

    def _open_sqlite(self) -> sqlite3.Connection:
        """Open the file with mode=rw: a missing file is an error, never a new empty ledger."""
        assert self.place.path is not None
        if self._read_only:
            return self._open_copy(self.place.path)
        connection = sqlite3.connect(
            f"{self.place.path.as_uri()}?mode=rw",
            uri=True,
            timeout=self.timeout_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._use_wal(connection)
            for pragma in ("fullfsync=1", "checkpoint_fullfsync=1", "trusted_schema=0"):
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _open_copy(self, path: Path) -> sqlite3.Connection:
        """Open a copy in memory, because SQLite cannot read a log without writing files beside it. On a read-only mount
        the file does not change meanwhile."""
        with tempfile.TemporaryDirectory(prefix="dpsql-") as folder:
            copy = Path(folder) / "ledger.db"
            try:
                for suffix in ("", "-wal"):
                    original = path.with_name(path.name + suffix)
                    if not suffix or original.exists():
                        shutil.copyfile(original, copy.with_name(copy.name + suffix))
            except OSError as error:
                raise refuse("ledger_read_only", what=self.name) from error
            memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            with closing(sqlite3.connect(copy)) as read:
                read.backup(memory)
            return memory

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch a new file to WAL. SQLite does not wait if two processes try that at once, so we wait."""
        deadline = time.monotonic() + self.timeout_seconds
        while True:
            try:
                (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                    raise
            time.sleep(0.002)
        # Without WAL (if there is no shared memory), only FULL keeps the file intact in a power failure.
        self._lossy = "NORMAL" if mode == "wal" else "FULL"

    @contextmanager
    def _in_words(self, committing: bool = False) -> Iterator[None]:
        """Translate database errors to faults, except `Taken`, which the caller translates."""
        try:
            yield
        except (DBAPIError, self._errors) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if isinstance(cause, self._taken):
                raise Taken from error
            slug = slug_of(cause)
            _log.error("%s: %s: %s", self.name, slug, cause)
            if committing and slug != "ledger_damaged":
                raise refuse("ledger_commit_unknown", charged=True) from error
            seconds = f"{self.timeout_seconds:g}"
            raise refuse(slug, what=self.name, seconds=seconds, problem="its database is damaged") from error


_LIVE: LiveObjects[Store] = LiveObjects()
_CARRIED: list[object] = []
_held: list[Store] = []
_one_fork = threading.RLock()


def _before_fork() -> None:
    """Wait for every transaction of this process to end, and close the connections, so that no child inherits one."""
    _one_fork.acquire()
    for store in _LIVE.all():
        store._lock.acquire()
        _held.append(store)
        store._disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _one_fork.release()


def _after_fork_in_child() -> None:
    for store in _held:
        store._process = os.getpid()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
