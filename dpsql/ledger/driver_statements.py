"""Statements that are written out once for each database, and run by its driver.

Every question runs a dozen of them, and SQLAlchemy's own execution costs several times what SQLite takes for the
statement itself (docs/fixed_cost.md). So SQLAlchemy writes the text, once, and the driver gets it with its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Executable
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ClauseElement


class DriverStatement:
    """One statement. Errors are those of the driver; `Store` puts them in words."""

    def __init__(self, statement: Executable) -> None:
        """`statement`: every value in it is a `bindparam`, or a column of an insert."""
        self._statement = statement
        self._texts: dict[str, tuple[str, list[str] | None]] = {}

    def rows(self, connection: Connection, **values: Any) -> list[tuple[Any, ...]]:
        """What a SELECT returns."""
        text, given = self._filled(connection, [values])
        found: list[tuple[Any, ...]] = driver(connection).execute(text, given[0]).fetchall()
        return found

    def run(self, connection: Connection, **values: Any) -> int:
        """Run a statement that returns no rows; how many rows it wrote."""
        text, given = self._filled(connection, [values])
        written: int = driver(connection).execute(text, given[0]).rowcount
        return written

    def run_each(self, connection: Connection, many: Iterable[Mapping[str, Any]]) -> None:
        """Run it once for each of `many`, in as few round trips as the driver can."""
        text, given = self._filled(connection, many)
        driver(connection).cursor().executemany(text, given)

    def _filled(self, connection: Connection, many: Iterable[Mapping[str, Any]]) -> tuple[str, list[Any]]:
        known = self._texts.get(connection.dialect.name)
        if known is None:
            assert isinstance(self._statement, ClauseElement)
            compiled: Any = self._statement.compile(dialect=connection.dialect)
            known = self._texts[connection.dialect.name] = (compiled.string, compiled.positiontup)
        text, order = known
        return text, list(many) if order is None else [tuple(values[name] for name in order) for values in many]


def driver(connection: Connection) -> Any:
    """The driver's own connection."""
    return connection.connection.driver_connection
