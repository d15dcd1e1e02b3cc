"""Prepared bounded views as tables of the server that holds the data, in a schema that the owner names for them.

The role that reads the data need not be the role that writes: `prepare.role` of the policy connects only for writing, and
lets the reading role SELECT from the tables that it has written. A table is created, filled and granted in one transaction, so
a question finds all of it or nothing; a question looks for it before its own transaction begins, so that its snapshot has the
rows.

A table holds the rows that the window of an unprepared question would keep, by the same keyed hash, and for each number with
bounds the integers that sums add. It is sorted by unit, and units are numbered so that they can be counted by an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import psycopg

from dpsql.engine.contract import CUSTODIAN_LOG, noted
from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.engine.postgresql.connections import MEANING, Connections
from dpsql.engine.postgresql.literals import quoted
from dpsql.engine.query import UNIT_ID
from dpsql.errors.exceptions import refuse
from dpsql.media.text import sql_name
from dpsql.plan.plan import UNIT

_BEGIN = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE; {MEANING}"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended({name}, 0))"
_MAY_READ = (
    "SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') "
    "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = {schema} AND c.relname = {name} AND c.relkind = 'r'"
)
_NAMES = (
    "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = {schema} AND starts_with(c.relname, {prefix}) AND c.relkind = 'r'"
)
_NO_KEY = "0" * 64
Reading = Callable[[], AbstractContextManager[psycopg.Connection[Any]]]


class ServerViews:
    """The stored views of one database. Thread-safe."""

    def __init__(self, connections: Connections, reading: Reading, schema: str, role: str | None) -> None:
        """Take the connections and the place of the views. `reading`: opens a transaction of the reading role. `schema`: the
        schema of the views; `role`: the role that writes them, None for the reading role."""
        self._connections, self._reading, self._schema, self._role = connections, reading, schema, role

    def place(self, name: str) -> str | None:
        """Return the table's name, or None if there is none that the reading role may read. Raises Fault."""
        with self._reading() as connection:
            text = _MAY_READ.format(schema=quoted(self._schema), name=quoted(name))
            row = connection.execute(text).fetchone()
        return self._table(name) if row is not None and row[0] else None

    def write(self, view: BoundedView, key: str, name: str, progress: Callable[[str, float], None]) -> None:
        """Write the view in one transaction. Raises Fault index_not_written."""
        progress("writing", 0.0)
        with self._reading() as connection:
            reader = connection.info.user
        with self._writing(view.table) as connection:
            connection.execute(_ONE_AT_A_TIME.format(name=quoted(name)))
            existing = connection.execute(_MAY_READ.format(schema=quoted(self._schema), name=quoted(name)))
            missing = existing.fetchone() is None
            if missing:
                self._fill(connection, view, key, name, reader)
        if missing:
            self._vacuum(view.table, name)
        progress("writing", 1.0)

    def _fill(self, connection: psycopg.Connection[Any], view: BoundedView, key: str, name: str, reader: str) -> None:
        """Create and fill the table. Its definition does not contain the key of the order, because servers log definitions
        more often than other statements."""
        schema, table, role = sql_name(self._schema), self._table(name), sql_name(reader)
        if connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchall()[0][0] is None:
            connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {table} AS {_rows(view, _NO_KEY)} WITH NO DATA")
        connection.execute(f"INSERT INTO {table} {_rows(view, key)}")
        connection.execute(f"ANALYZE {table}")
        connection.execute(f"COMMENT ON TABLE {table} IS {quoted(f'dpsql: prepared rows of {view.table}')}")
        if self._role is not None:
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
            connection.execute(f"GRANT SELECT ON {table} TO {role}")

    def _vacuum(self, table: str, name: str) -> None:
        """Mark the rows as visible to all, so that questions need not check each row; the transaction that writes the rows
        cannot do that. The copy is complete without it."""
        try:
            with closing(self._connections.opened_by(self._role)) as connection:
                connection.execute(f"VACUUM (FREEZE) {self._table(name)}")
        except psycopg.Error as error:
            CUSTODIAN_LOG.warning("the prepared rows of %s were not vacuumed: %s", table, error)

    def names(self, prefix: str) -> frozenset[str]:
        with self._reading() as connection:
            rows = connection.execute(_NAMES.format(schema=quoted(self._schema), prefix=quoted(prefix))).fetchall()
        return frozenset(str(name) for (name,) in rows)

    def remove(self, names: Collection[str]) -> None:
        """Drop tables in one transaction. Raises Fault index_not_written."""
        if names:
            with self._writing(self._schema) as connection:
                for name in sorted(names):
                    connection.execute(f"DROP TABLE IF EXISTS {self._table(name)}")

    def remove_unfinished(self, names: Collection[str]) -> None:
        """Do nothing: the server rolls back unfinished transactions."""

    def _table(self, name: str) -> str:
        return f"{sql_name(self._schema)}.{sql_name(name)}"

    @contextmanager
    def _writing(self, table: str) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection of the writing role in a transaction, which is committed at the end."""
        try:
            with closing(self._connections.opened_by(self._role)) as connection:
                connection.execute(_BEGIN.format(milliseconds=0))
                yield connection
                connection.execute("COMMIT")
        except psycopg.Error as error:
            raise refuse("index_not_written", table=table, incident=noted(error)) from None


def _rows(view: BoundedView, key: str) -> str:
    """Return a SELECT of the rows that stay: their integers, their unit and its number, then their columns. The server reads
    the columns before the first text without reading the rest of a row."""
    if not view.units:
        return f"SELECT {', '.join([*view.narrow, *view.names])} FROM {view.dialect.derived(view.rows)}"
    unit = sql_name(UNIT)
    bounded = view.dialect.derived(view.within_max_rows(view.rows, key, (unit,)))
    number = f"dense_rank() OVER (ORDER BY {unit}) - 1 AS {sql_name(UNIT_ID)}"
    return f"SELECT {', '.join([*view.narrow, unit, number, *view.names])} FROM {bounded}"
