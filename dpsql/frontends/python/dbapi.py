"""PEP 249: connections and cursors over a session.

There are no transactions: a charge is made durably before data is touched and is never given back, so `commit` and `rollback` do
nothing. Connections may be shared between threads, cursors may not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from datetime import date, datetime, time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dpsql.errors import exceptions as errors
from dpsql.errors.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    refuse,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from dpsql.frontends.watch import Watch
    from dpsql.policy import Policy
    from dpsql.release.release import Release
    from dpsql.session.budget import Budget
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.session.session import Session
    from dpsql.sql.lexer import SqlText
    from dpsql.sql.parse import Parameters
    from dpsql.tuning import Advice
    from dpsql.tuning.policy_fit import PolicyFit


__all__ = [
    "BINARY", "Binary", "Connection", "Cursor", "DATETIME", "DataError", "DatabaseError", "Date",
    "DateFromTicks", "Error", "IntegrityError", "InterfaceError", "InternalError", "NUMBER",
    "NotSupportedError", "OperationalError", "ProgrammingError", "ROWID", "STRING", "Time", "TimeFromTicks",
    "Timestamp", "TimestampFromTicks", "Warning", "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip
"""The names of PEP 249, which SQLAlchemy reads from this module."""

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

Row = tuple[Any, ...]
_inherited: list[Session | None] = []
"""Sessions of the parent process whose connections were closed in this one: they are neither used nor freed."""
Description = tuple[str, str, None, None, None, None, None]
Date = date
Time = time
Timestamp = datetime
Binary = bytes
DateFromTicks = date.fromtimestamp
TimestampFromTicks = datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> time:
    """Return the time of day of a number of seconds since the epoch (PEP 249)."""
    return datetime.fromtimestamp(ticks).time()


class TypeObject(frozenset[str]):
    """A type object of PEP 249: equal to the type codes of the columns of its kind."""

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, str) else super().__eq__(other)

    __hash__ = frozenset.__hash__


STRING = TypeObject(("text", "null"))
BINARY = TypeObject()
NUMBER = TypeObject(("integer", "real", "boolean"))
DATETIME = TypeObject(("date", "timestamp"))
ROWID = TypeObject()


def connect(
    policy: str | Path | Policy,
    analyst: str | None = None,
    source: Any = None,
    *,
    project: str | None = None,
    create_ledger: bool = False,
) -> Connection:
    """Open a policy file (or a loaded policy) as a connection.

    `analyst` and `project`: whose accounts are charged in addition to the dataset's; `source`: a DuckDB connection or Arrow
    tables instead of the policy's own source; `create_ledger`: the owner's explicit act for a data set that never had a ledger.
    If a policy file says `prepare: auto`, copies are prepared in the background while the connection is open (docs/prepare.md).
    Raises PolicyRefusal, Fault (data or ledger missing), IntegrityError (the ledger does not hold).
    """
    from dpsql.errors.custodian_log import keep_incidents
    from dpsql.policy import Policy
    from dpsql.session.session import open_session

    keep_incidents()
    session = open_session(policy, analyst=analyst, project=project, source=source, create_ledger=create_ledger)
    if not session.policy.prepare.automatic or source is not None or isinstance(policy, Policy):
        return Connection(session, source=source)
    from dpsql.frontends.python.background_copies import keep_prepared

    return Connection(session, keep_prepared(Path(policy), session))


class Connection:
    """A session behind PEP 249's interface."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Session, ended: Callable[[], None] | None = None, source: Any = None) -> None:
        """`session` is closed with the connection, after a call of `ended`; `source`: the rows in place of the policy's own."""
        self._source = source
        self._session: Session | None = session
        self._ended = ended
        self._process = os.getpid()
        self._closing = threading.Lock()

    @property
    def session(self) -> Session:
        """The connection's session. Raises InterfaceError (connection_closed; connection_forked in a child process)."""
        session = self._session  # read once: another thread may close the connection
        if session is None:
            raise refuse("connection_closed", thing="connection")
        if self._process != os.getpid():
            raise refuse("connection_forked")
        return session

    def cursor(self) -> Cursor:
        return Cursor(self, self.session)

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Return a new cursor on which `operation` has been executed."""
        return self.cursor().execute(operation, parameters)

    def explain(self, operation: str, parameters: Parameters = None) -> PrivacyPlan:
        """Return the privacy plan and price of a query; nothing is charged and data is not touched."""
        session = self.session
        return _apart(lambda: session.explain(*_adapted(operation, parameters)))

    @overload
    def fit(self, operation: None = None, *, epsilon: str | None = None) -> PolicyFit: ...

    @overload
    def fit(self, operation: str, *, epsilon: str | None = None, groups: int | None = None) -> Advice: ...

    def fit(
        self, operation: str | None = None, *, epsilon: str | None = None, groups: int | None = None
    ) -> PolicyFit | Advice:
        """Return which bounds, domains and caps of the policy do not suit the data, or with a query the contribution bounds
        recommended for it, from a measurement that is charged (docs/fit.md). The whole policy is for its owner alone.

        `epsilon`: the cost allowed, as text or a number; `groups`: how many groups the answer has, if keys are private.
        """
        from dpsql.privacy.loss import exact_number
        from dpsql.tuning import tune
        from dpsql.tuning.policy_fit import fit_policy

        cost = None if epsilon is None else exact_number(str(epsilon))
        if operation is not None:
            session = self.session
            return _apart(lambda: tune(session, operation, epsilon=cost, groups=groups))
        if self.session.analyst is not None:
            raise refuse("fit_owner")
        return fit_policy(self.session.policy, epsilon=cost, source=self._source)

    def watch(
        self, threshold: float | str, *, hits: int = 1, name: str = "default", questions: Sequence[str] = ()
    ) -> Watch:
        """Return a stream of counts or sums compared with `threshold`: each of at most `hits` runs is charged when it begins, and
        ends with the first question that is above (docs/watch.md).

        `name`: the name under which the ledger counts the runs; `questions`: the texts to come, so that a run has noise for all
        of them.
        """
        from dpsql.frontends.watch import Watch

        return Watch(self.session, threshold, hits, name, questions)

    @property
    def budget(self) -> Budget:
        """The amounts spent and remaining of each scope that this connection's charges must fit."""
        return _apart(self.session.budget)

    @property
    def options(self) -> dict[str, str]:
        """The session's options as text; `SET dp.epsilon = 0.2` changes one."""
        return self.session.options.show()

    def interrupt(self) -> None:
        """End the wait for the running statement, from any thread. A charge stays and its measurement continues; asking again is
        free once its release is stored."""
        self.session.interrupt()

    def commit(self) -> None:
        """Do nothing: a charge is durable before its answer is computed."""
        self._require_open()

    def rollback(self) -> None:
        """Do nothing: a rollback gives no budget back."""
        self._require_open()

    def close(self) -> None:
        """Close the session. Cursors of a closed connection raise InterfaceError; closing again does nothing, even while another
        thread closes it. In a forked child only this object is closed: the session belongs to the parent."""
        if self._process != os.getpid():
            _inherited.append(self._session)
            self._session = None
            return
        with self._closing:
            session, self._session = self._session, None
        if session is None:
            return
        try:
            if self._ended is not None:
                self._ended()
        finally:
            session.close()

    @property
    def is_closed(self) -> bool:
        return self._session is None

    def __enter__(self) -> Connection:
        self._require_open()
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._session is None:
            raise refuse("connection_closed", thing="connection")


class Cursor:
    """One statement at a time with its answer; used by one thread."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection = connection
        self.arraysize = 1
        self._session: Session | None = session
        self._release: Release | None = None
        self._rows: Iterator[Row] = iter(())

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Execute one statement with values for its parameters ? or :name (%s and %(name)s too), and return the cursor itself.

        Raises refusals (nothing was charged) and faults, whose `charged` says whether the charge stays.
        """
        session = self._open()
        self._release, self._rows = None, iter(())
        try:
            release = _apart(lambda: session.execute(*_adapted(operation, parameters)))
        except errors.Fault as fault:
            if fault.slug == "engine_failed" and self.connection.is_closed:  # by another thread, which ends what runs
                raise refuse("connection_closed", thing="connection", charged=fault.charged) from None
            raise
        self._release, self._rows = release, release.rows()
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> None:
        """Raise NotSupportedError: each set of values would be charged, and only the last answer would be kept."""
        self._open()
        raise refuse("executemany")

    @property
    def description(self) -> tuple[Description, ...] | None:
        """(name, type code, None, ...) for each column; None before an answer and for statements without rows."""
        if self._release is None or not self._release.columns:
            return None
        return tuple((c.name, c.type.value, None, None, None, None, None) for c in self._release.columns)

    @property
    def rowcount(self) -> int:
        """The number of rows of the last answer, -1 if there is none."""
        return len(self._release) if self.description is not None and self._release is not None else -1

    @property
    def release(self) -> Release:
        """The last answer with error bars, price and receipt."""
        self._open()
        if self._release is None:
            raise refuse("no_result")
        return self._release

    def fetchone(self) -> Row | None:
        return next(self._fetchable(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows (`arraysize` by default), fewer at the end."""
        return list(islice(self._fetchable(), self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        return list(self._fetchable())

    def arrow(self, *, bars: bool = False) -> pyarrow.Table:
        """Return the whole answer as a pyarrow.Table, regardless of earlier fetches. `bars`: each noisy column n is followed by
        n_low and n_high, the ends of its error bars."""
        return self.release.to_arrow(bars=bars)

    def df(self, *, bars: bool = False) -> pandas.DataFrame:
        """Return the whole answer as a pandas DataFrame (pandas must be installed). `bars` as in `arrow`."""
        return self.release.to_pandas(bars=bars)

    def pl(self, *, bars: bool = False) -> polars.DataFrame:
        """Return the whole answer as a polars DataFrame (polars must be installed). `bars` as in `arrow`."""
        return self.release.to_polars(bars=bars)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing (PEP 249 allows that)."""
        self._open()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing (PEP 249 allows that)."""
        self._open()

    def close(self) -> None:
        """Drop the answer; every later use raises InterfaceError."""
        self._session, self._release, self._rows = None, None, iter(())

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        return next(self._fetchable())

    def __enter__(self) -> Cursor:
        self._open()
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _open(self) -> Session:
        if self._session is None:
            raise refuse("connection_closed", thing="cursor")
        return self.connection.session

    def _fetchable(self) -> Iterator[Row]:
        self._open()
        if self.description is None:
            raise refuse("no_result")
        return self._rows


def _adapted(operation: str, parameters: Parameters) -> tuple[SqlText, Parameters]:
    """Convert other styles of parameters if there are values; the module that reads them is loaded only then."""
    if not parameters:
        return operation, parameters
    from dpsql.frontends.python.parameters import adapted

    return adapted(operation, parameters)


def _apart(work: Callable[[], _Value]) -> _Value:
    """Return what `work` returns. The main thread, where Ctrl-C comes between any two steps and would leave locks held for good,
    only waits for it."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    from dpsql.session.background_work import CALL, Waiting

    call, ended, values, failures = Waiting(), threading.Lock(), list[_Value](), list[BaseException]()

    def run() -> None:
        CALL.set(call)
        try:
            values.append(work())
        except BaseException as error:
            failures.append(error)
        ended.release()

    ended.acquire()
    try:
        threading.Thread(target=copy_context().run, args=(run,), name="dpsql-question", daemon=True).start()
        ended.acquire()
    except BaseException as stop:  # of a handler of signals
        call.leave()
        stop.add_note(call.fate())
        raise
    if failures:
        raise failures.pop()
    return values[0]


# --- asyncio: the usual connection, run in threads --------------------------------------------------------------------

_Value = TypeVar("_Value")


async def aconnect(
    policy: str | Path | Policy,
    analyst: str | None = None,
    source: Any = None,
    *,
    project: str | None = None,
    create_ledger: bool = False,
) -> AsyncConnection:
    """Open a policy as `connect` does, without blocking the event loop. Raises what `connect` raises."""
    from asyncio import to_thread  # a program that awaits has loaded it

    opened = partial(connect, policy, analyst, source, project=project, create_ledger=create_ledger)
    return AsyncConnection(await to_thread(opened))


class AsyncConnection:
    """A connection whose questions are awaited. Cancelling a task ends its wait; what was charged stays charged."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def execute(self, operation: str, parameters: Parameters = None) -> Release:
        """Return the answer of one statement, with error bars, price and receipt. Raises what `Cursor.execute` raises."""
        return await self._in_thread(lambda: self.connection.execute(operation, parameters).release)

    async def explain(self, operation: str, parameters: Parameters = None) -> PrivacyPlan:
        """Return the privacy plan and price of a query; nothing is charged and data is not touched."""
        return await self._in_thread(lambda: self.connection.explain(operation, parameters))

    async def budget(self) -> Budget:
        """Return the amounts spent and remaining of each scope that this connection's charges must fit."""
        return await self._in_thread(lambda: self.connection.budget)

    async def close(self) -> None:
        """Close the connection. Closing again does nothing."""
        from asyncio import to_thread

        await to_thread(self.connection.close)

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def _in_thread(self, work: Callable[[], _Value]) -> _Value:
        """Run `work` in a thread. If the wait is cancelled, give up this call alone: nobody reads its answer."""
        from asyncio import CancelledError, to_thread

        from dpsql.session.background_work import CALL, Waiting

        call = Waiting()
        before = CALL.set(call)
        try:
            return await to_thread(work)
        except CancelledError:
            call.leave()
            raise
        finally:
            CALL.reset(before)
