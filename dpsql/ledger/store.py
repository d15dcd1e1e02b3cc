"""Serialised transactions on the ledger's database, and the translation of its failures.

SQLite: WAL, BEGIN IMMEDIATE, and synchronous=FULL for entries that must be durable before the answer.  PostgreSQL: one
advisory lock per database for writers.

A process has one connection per store, used by one thread at a time, closed before a fork: SQLite forbids carrying a
connection into a child, and even closing it there.

Group commit: threads that charge at the same time share one transaction, and so one flush to disk. The first thread leads and
writes. Threads that arrive meanwhile wait; then one of them leads and writes for all of them. A flush takes as long for twenty
entries as for one, so a slow disk limits the number of transactions, but not of charges."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from threading import Condition
from typing import Any, Generic, TypeVar

from dpsql.errors.exceptions import Error, Fault, refuse
from dpsql.ledger.database import (
    MOST_GRACE_SECONDS,
    DatabaseConnection,
    Location,
    open_copy,
    open_postgresql,
    open_sqlite,
    slug_of,
)
from dpsql.storage.memory import LiveObjects

Request = TypeVar("Request")
Result = TypeVar("Result")


class Submission(Generic[Request, Result]):
    """The request of one thread and its outcome: `result`, or the `error` to raise in that thread."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.taken = False
        self.done = False

    def outcome(self) -> Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class _Queue(Generic[Request, Result]):
    """The waiting submissions of one process, and whether a thread leads (`busy`)."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.changed = Condition()
        self.waiting: list[Submission[Request, Result]] = []
        self.busy = False


class GroupCommit(Generic[Request, Result]):
    """A queue that `work` serves in batches. `work` sets `result` or `error` of every submission of a batch; an exception that
    it raises itself is raised in all their threads."""

    def __init__(self, work: Callable[[list[Submission[Request, Result]]], None]) -> None:
        self._work = work
        self._queue: _Queue[Request, Result] = _Queue()

    def submit(self, request: Request, timeout_seconds: float, purpose: str) -> Result:
        """Return the result of `work` for `request`. Raises ledger_locked (about `purpose`) if no batch takes it in time.

        The wait for a request that a batch has taken is not limited, because the request may have been written.
        """
        queue = self._queue
        if queue.process != os.getpid():  # a fork: waiting threads, which may hold the lock, are the parent's
            queue = self._queue = _Queue()
        mine: Submission[Request, Result] = Submission(request)
        batch: list[Submission[Request, Result]] = []
        try:  # includes taking the lead: Ctrl-C may come between any two steps, and a queue left busy blocks every charge
            with queue.changed:
                try:
                    self._wait(queue, mine, timeout_seconds, purpose)
                except BaseException:
                    queue.waiting = [submission for submission in queue.waiting if submission is not mine]
                    raise
                if not mine.done:
                    batch, queue.waiting, queue.busy = queue.waiting, [], True
                    for submission in batch:
                        submission.taken = True
            if batch:
                self._work(batch)
        except BaseException as error:
            if not batch:
                raise
            # Refusals are withdrawn as well: they may include amounts of other requests in the batch that were not charged.
            for submission in batch:
                submission.error = error if submission is mine else _for_another(error)
        finally:
            if batch:
                _release_leadership(queue, batch)
        return mine.outcome()

    def _wait(
        self,
        queue: _Queue[Request, Result],
        mine: Submission[Request, Result],
        timeout_seconds: float,
        purpose: str,
    ) -> None:
        """Wait until no thread leads or `mine` is done; the caller holds the lock of the queue."""
        deadline = time.monotonic() + timeout_seconds
        queue.waiting.append(mine)
        while queue.busy and not mine.done:
            left = None if mine.taken else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise refuse("ledger_locked", what=purpose, seconds=f"{timeout_seconds:g}")
            queue.changed.wait(left)


def _release_leadership(queue: _Queue[Request, Result], batch: list[Submission[Request, Result]]) -> None:
    """Release leadership and wake every thread of the batch."""
    with queue.changed:
        queue.busy = False
        for submission in batch:
            submission.done = True
        queue.changed.notify_all()


def _for_another(error: BaseException) -> Error:
    """Return the failure for another thread: a copy of an `Error`, or, after an interrupt, that the outcome is unknown."""
    return copy(error) if isinstance(error, Error) else refuse("ledger_commit_unknown", charged=True)


_log = logging.getLogger("dpsql.custodian")
# The advisory lock of every dpsql ledger in one PostgreSQL database ("dpsql" in ASCII).
_POSTGRES_LOCK = 0x647073716C
_VANISHED = (
    "SET LOCAL tcp_keepalives_idle = 10; SET LOCAL tcp_keepalives_interval = 5; SET LOCAL tcp_keepalives_count = 3;"
)
"""A process that vanishes with its network keeps the lock of all writers until the server notices: after half of the time that
others wait for the lock if the server expects a statement, and after these 25 seconds if it has received half of one."""
_SCHEMA = "SELECT current_schema()"
_MAY_CHARGE = (
    "SELECT has_table_privilege('dpsql_entries', 'INSERT') AND has_table_privilege('dpsql_accounts', 'INSERT') "
    "AND has_table_privilege('dpsql_accounts', 'UPDATE')"
)

_NOT_WRITTEN = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
"""Errors of a commit in which the file did not take the transaction: the last frame of the log, which makes it whole, is missing
or incomplete, so it is rolled back (https://sqlite.org/walformat.html). What a failed flush leaves is unknown."""

_DAMAGED = "its database is damaged"

LEDGER_BYTES = 64 << 20
"""Space of a disk that stores beside the ledger leave to it, for its next 50,000 charges."""

T = TypeVar("T")
Step = Callable[[str], None]
Holds = Callable[[DatabaseConnection], bool]


def no_step(name: str) -> None:
    """Do nothing: this is the default of the hook by which tests stop a process at a named step."""


class Taken(Exception):
    """A unique value exists already: a number, an id, or the outcome of a charge."""


class Store:
    """Serialised transactions on one database. Thread-safe; survives a fork by reconnecting."""

    def __init__(
        self,
        location: Location,
        timeout_seconds: float = 30.0,
        step: Step = no_step,
        name: str = "the ledger",
        read_only: bool = False,
        leaves: int = 0,
    ) -> None:
        """`read_only`: read a SQLite file on a medium that cannot be written, from a copy of it and of the log beside it.
        `leaves`: the bytes of the file's disk that `write` does not take, or a twentieth of a small disk."""
        self._read_only = read_only
        self._leaves = leaves
        self.name = name
        self.location = location
        self.step = step
        self.timeout_seconds = timeout_seconds
        self._connection: DatabaseConnection | None = None
        self._errors, self._taken = _driver_errors(self.is_sqlite)
        self._lossy = "FULL"
        self._synchronous = ""
        self._lock = threading.RLock()
        self._process = os.getpid()
        _LIVE.add(self)

    @property
    def is_sqlite(self) -> bool:
        return self.location.path is not None

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
    def writing(self, *, durable: bool = True, holds: Holds | None = None) -> Iterator[DatabaseConnection]:
        """Open a write transaction; if `durable`, it is on disk when the context ends, otherwise a power failure may
        lose it.

        Raises `Fault` for every failure of the database. Nothing is written unless the context ends normally. If the commit of a
        durable transaction fails, a full SQLite file has not taken it, and a server is asked on a new connection (`holds` says
        whether the transaction is there): then the context ends normally, or nothing was written. Otherwise the outcome is
        unknown and the fault says so (`charged` is set).
        """
        with self.alone():
            connection = self._begun(self._begin_durable if durable else self._begin_lossy)
            try:
                with self._in_words():
                    yield connection
                self.step("before commit")
                with self._in_words(committing=durable):
                    connection.run("COMMIT")
            except BaseException as error:
                self._give_up()
                if not (isinstance(error, Fault) and error.slug == "ledger_commit_unknown" and holds is not None):
                    raise
                self._require_held(holds, error)
            self.step("after commit")

    @contextmanager
    def erasing(self, table: str) -> Iterator[DatabaseConnection]:
        """Open a write transaction after which no file has the bytes of rows that it deletes from `table`; on a server, its own
        log and its backups may. SQLite overwrites what it deletes, and its log is emptied.

        Raises Fault ledger_locked if others read the file for so long that this is not possible; deleted rows stay deleted.
        """
        with self.writing() as connection:
            yield connection
        if not self.is_sqlite:
            self._begun(lambda server: server.run(f"VACUUM FULL {table}"))
        elif self.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise refuse("ledger_locked", what=self.name, seconds=f"{self.timeout_seconds:g}")

    @contextmanager
    def reading(self) -> Iterator[DatabaseConnection]:
        """Open a read transaction: one consistent state of the whole ledger."""
        with self.alone():
            connection = self._begun(self._begin_reading)
            try:
                with self._in_words():
                    yield connection
            finally:
                self._give_up()

    def rows(self, text: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one SELECT: one consistent state, without an explicit transaction."""
        with self.alone():
            return self._begun(lambda connection: connection.rows(text, **values))

    def write(self, text: str, **values: Any) -> int:
        """Run one statement as its own transaction (SQLite), which a power failure may lose; return how many rows it wrote."""

        def written(connection: DatabaseConnection) -> int:
            self._become(connection, self._lossy)
            return connection.run(text, **values)

        if self._leaves and self.location.path is not None:
            with suppress(OSError):  # opening the file says what is wrong
                disk = os.statvfs(self.location.path)
                if disk.f_bavail < min(self._leaves // disk.f_frsize, disk.f_blocks // 20):
                    raise refuse("ledger_disk_full", what=self.name)
        with self.alone():
            self.step("before commit")
            count = self._begun(written)
            self.step("after commit")
            return count

    def table_names(self) -> set[str]:
        """Return the names of the tables in the database (in the schema of the connection). Raises Fault ledger_read_only if
        the role may use no schema: tables that it cannot see may still exist."""
        with self.reading() as connection:
            if not self.is_sqlite and connection.value(_SCHEMA) is None:
                raise refuse("ledger_read_only", what=self.name)
            return connection.table_names()

    def may_charge(self) -> bool:
        """Return whether the role on a server may write charges into the tables; for a file, opening has already shown that."""
        if self.is_sqlite:
            return True
        with self.reading() as connection:
            return bool(connection.value(_MAY_CHARGE))

    def close(self) -> None:
        """Close the connection; the store reconnects when it is used again."""
        with self.alone():
            self._disconnect()

    def _begun(self, begin: Callable[[DatabaseConnection], T]) -> T:
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

    def _begin_durable(self, connection: DatabaseConnection) -> DatabaseConnection:
        return self._begin_writing(connection, "FULL", "on")

    def _begin_lossy(self, connection: DatabaseConnection) -> DatabaseConnection:
        return self._begin_writing(connection, self._lossy, "off")

    def _begin_writing(
        self, connection: DatabaseConnection, synchronous: str, synchronous_commit: str
    ) -> DatabaseConnection:
        if self.is_sqlite:
            self._become(connection, synchronous)
            connection.run("BEGIN IMMEDIATE")
            return connection
        # Take a new snapshot per statement, whatever the server's default: a snapshot from before the lock would be stale.
        milliseconds = int(self.timeout_seconds * 1000)
        connection.run(
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL lock_timeout = {milliseconds};"
            f"SET LOCAL idle_in_transaction_session_timeout = {max(1, milliseconds // 2)};{_VANISHED}"
            f"SET LOCAL synchronous_commit = {synchronous_commit};"
            f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})"
        )
        return connection

    def _become(self, connection: DatabaseConnection, synchronous: str) -> None:
        """Set when SQLite flushes to disk; the setting holds for the connection until it is set again."""
        if self._synchronous != synchronous:
            connection.run(f"PRAGMA synchronous={synchronous}")
            self._synchronous = synchronous

    def _begin_reading(self, connection: DatabaseConnection) -> DatabaseConnection:
        connection.run("BEGIN" if self.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return connection

    def _connected(self) -> DatabaseConnection:
        if self._process != os.getpid():
            # A fork outside Python skipped our hook: the parent's connection must not even be closed here.
            _CARRIED.append(self._connection)
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            self._synchronous = ""
            self._connection = DatabaseConnection(self._opened())
        return self._connection

    def _opened(self) -> Any:
        """Return a new connection of the driver."""
        if self.location.path is None:
            return open_postgresql(self.location.options, self.timeout_seconds)
        if self._read_only:
            return open_copy(self.location.path, self.name)
        connection, self._lossy = open_sqlite(self.location.path, self.timeout_seconds)
        return connection

    def _give_up(self) -> None:
        """Roll back; drop the connection if that fails."""
        if self._connection is None:
            return
        try:
            self._connection.driver.rollback()
        except self._errors:
            self._disconnect()

    def _require_held(self, holds: Holds, unknown: Fault) -> None:
        """Return if a server holds the transaction whose commit brought no reply; raise `Fault` if it does not, and `unknown` if
        it cannot be asked.

        Writers have a lock until the end of their transaction, so that of this one has ended when we have the lock. What others
        can read by then was flushed to disk. (After a failed flush of a SQLite file, what can be read may still be lost.)
        """
        if self.is_sqlite:
            raise unknown
        self._disconnect()
        deadline = time.monotonic() + min(self.timeout_seconds, MOST_GRACE_SECONDS)
        while True:
            try:
                connection = self._begun(self._begin_lossy)
                with self._in_words():
                    is_held = holds(connection)
                break
            except Error as error:
                if error.slug != "ledger_unreachable" or time.monotonic() > deadline:
                    raise unknown from error
            time.sleep(0.2)  # a server that starts again refuses connections
        self._give_up()
        if not is_held:
            slug = slug_of(unknown.__cause__)
            raise refuse(slug, what=self.name, seconds=f"{self.timeout_seconds:g}", problem=_DAMAGED) from unknown

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._errors):
                connection.driver.close()

    @contextmanager
    def _in_words(self, committing: bool = False) -> Iterator[None]:
        """Translate database errors to faults, except `Taken`, which the caller translates."""
        try:
            yield
        except self._errors as error:
            if isinstance(error, self._taken):
                raise Taken from error
            slug = slug_of(error)
            _log.error("%s: %s: %s", self.name, slug, error)
            is_written = getattr(error, "sqlite_errorname", "") not in _NOT_WRITTEN
            if committing and is_written and slug != "ledger_damaged":
                raise refuse("ledger_commit_unknown", charged=True) from error
            seconds = f"{self.timeout_seconds:g}"
            raise refuse(slug, what=self.name, seconds=seconds, problem=_DAMAGED) from error


def _driver_errors(is_sqlite: bool) -> tuple[type[Exception], type[Exception]]:
    """Return the class of all errors of the database's driver, and that of a unique value that exists already."""
    if is_sqlite:
        return sqlite3.Error, sqlite3.IntegrityError
    import psycopg

    return psycopg.Error, psycopg.IntegrityError


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
