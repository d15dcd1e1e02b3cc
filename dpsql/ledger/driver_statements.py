"""Statements that SQLAlchemy compiles once for each database, and that the database's driver executes.

Every question runs a dozen of them, and SQLAlchemy's own execution takes several times as long as SQLite takes for the
statement itself (docs/fixed_cost.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Executable
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ClauseElement


class DriverStatement:
    """One compiled statement. It raises the driver's errors; `Store` translates them."""

    def __init__(self, statement: Executable) -> None:
        """`statement`: every value that differs between runs is a `bindparam`, or a column of an insert."""
        self._statement = statement
        self._texts: dict[str, tuple[str, list[str] | None, Mapping[str, Any]]] = {}

    def rows(self, connection: Connection, **values: Any) -> list[tuple[Any, ...]]:
        """Run a SELECT and return its rows."""
        text, bound = self._filled(connection, [values])
        rows: list[tuple[Any, ...]] = driver(connection).execute(text, bound[0]).fetchall()
        return rows

    def run(self, connection: Connection, **values: Any) -> int:
        """Run a statement without a result and return the number of rows that it wrote."""
        text, bound = self._filled(connection, [values])
        written: int = driver(connection).execute(text, bound[0]).rowcount
        return written

    def run_each(self, connection: Connection, many: Iterable[Mapping[str, Any]]) -> None:
        """Run the statement once for each of `many`, in as few round trips as the driver allows.

        The last run is a separate exchange: after a pipeline of psycopg, which ends with a Flush, PostgreSQL counts no time
        as idle (`idle_in_transaction_session_timeout`), and a client that vanished would keep its locks.
        """
        text, bound = self._filled(connection, many)
        if len(bound) > 1:
            driver(connection).cursor().executemany(text, bound[:-1])
        for values in bound[-1:]:
            driver(connection).execute(text, values)

    def _filled(self, connection: Connection, many: Iterable[Mapping[str, Any]]) -> tuple[str, list[Any]]:
        text, order, constants = self._texts.get(connection.dialect.name) or self._compiled(connection)
        if constants:
            many = [{**constants, **values} for values in many]
        return text, list(many) if order is None else [tuple(values[name] for name in order) for values in many]

    def _compiled(self, connection: Connection) -> tuple[str, list[str] | None, Mapping[str, Any]]:
        """Return the statement's text, the order of its values (None: they are named), and its constant values."""
        assert isinstance(self._statement, ClauseElement)
        compiled: Any = self._statement.compile(dialect=connection.dialect)
        constants: Mapping[str, Any] = {
            name: bound.value for name, bound in compiled.binds.items() if not bound.required
        }
        return self._texts.setdefault(connection.dialect.name, (compiled.string, compiled.positiontup, constants))


def driver(connection: Connection) -> Any:
    """Return the driver's own connection."""
    return connection.connection.driver_connection
