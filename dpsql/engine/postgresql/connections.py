"""Connections to a PostgreSQL server, and the transactions in which everything is read.

Each use is one read-only transaction that sees one snapshot. The settings that decide the meaning of a text (search path, time
zone, formats) are set only for that transaction, whatever the role, the database or a connection pool has set.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from dpsql.engine.contract import CUSTODIAN_LOG, SourceTable, tables_of_schemas
from dpsql.engine.postgresql.literals import READABLE, TIME_OF_DAY
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.intervals import Type
from dpsql.storage.patient_connections import TCP_OPTIONS, PatientConnection

DEFAULT_SCHEMA = "public"

MEANING = (
    "SET LOCAL search_path TO pg_catalog; SET LOCAL TimeZone TO 'UTC'; "
    "SET LOCAL DateStyle TO 'ISO, YMD'; SET LOCAL IntervalStyle TO 'postgres'; SET LOCAL extra_float_digits TO 1; "
    "SET LOCAL bytea_output TO 'hex'; SET LOCAL standard_conforming_strings TO on; SET LOCAL transform_null_equals TO off; "
    "SET LOCAL client_encoding TO 'UTF8'; SET LOCAL statement_timeout TO {milliseconds}"
)
"""Every setting on which the rows of a generated query depend: the functions and operators that names mean, the time zone, the
form of values as text (which is hashed, and read back), and the syntax of text constants."""
_BEGIN = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {MEANING}"
_OPTIONS: dict[str, Any] = {**TCP_OPTIONS, "application_name": "dpsql", "client_encoding": "UTF8"}
_PATIENCE_SECONDS = 15.0
"""How long the reply to a statement may take beyond the statement's own time limit."""
_MOST_IDLE = 4
_ENDING_STATES = ("080", "57P")
"""Prefixes of the SQLSTATE if a connection failed or the server is shutting down."""


class Connections:
    """Open connections of one source. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[PatientConnection] = []
        self._lock = threading.Lock()

    @contextmanager
    def transaction(
        self, running: set[PatientConnection], timeout_seconds: float | None = None
    ) -> Iterator[PatientConnection]:
        """Yield a connection in a transaction; it is in `running` meanwhile. Raises Fault source_connection, and the server's
        errors inside the context."""
        connection = self._begun(timeout_seconds)
        with self._lock:
            running.add(connection)
        try:
            yield connection
        finally:
            with self._lock:
                running.discard(connection)
            self._give_back(connection)

    def interrupt(self, running: set[PatientConnection]) -> None:
        """Cancel the queries on these connections."""
        with self._lock:
            connections = tuple(running)
        for connection in connections:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=5.0)

    def close(self) -> None:
        """Close every idle connection."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _begun(self, timeout_seconds: float | None) -> PatientConnection:
        """Return a connection in a new transaction. An idle connection that was lost is replaced."""
        begin = _BEGIN.format(milliseconds=max(1, round(timeout_seconds * 1000)) if timeout_seconds else 0)
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            connection = idle or self.opened_by(None)
            try:
                connection.patience_seconds = _PATIENCE_SECONDS
                connection.execute(begin)
                connection.patience_seconds = timeout_seconds and timeout_seconds + _PATIENCE_SECONDS
            except psycopg.Error as error:
                connection.close()
                if idle is None:
                    raise _unreachable(error) from None
            else:
                return connection

    def opened_by(self, role: str | None) -> PatientConnection:
        """Return a new connection of another role (None: the same), outside any transaction. Raises Fault source_connection."""
        try:
            return PatientConnection.connect(
                self._url, autocommit=True, **(_OPTIONS if role is None else {**_OPTIONS, "user": role})
            )
        except (psycopg.Error, ValueError) as error:
            raise _unreachable(error) from None

    def _give_back(self, connection: PatientConnection) -> None:
        connection.patience_seconds = _PATIENCE_SECONDS
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
            return
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def lost(error: psycopg.Error) -> Error | None:
    """Return the fault for a connection that ended; None for errors that the server sent over an intact connection."""
    if (error.sqlstate is None and isinstance(error, psycopg.OperationalError)) or (error.sqlstate or "")[
        :3
    ] in _ENDING_STATES:
        return _unreachable(error)
    return None


def _unreachable(error: Exception) -> Error:
    CUSTODIAN_LOG.error("the server that holds the data: %s", error)
    return refuse("source_connection")


# --- the structure of a server's tables, from its catalog alone -------------------------------------------------------
# For a new policy.

_STRUCTURE = """
SELECT n.nspname, c.relname, a.attname, a.attnotnull,
    CASE WHEN coalesce(b.typtype, t.typtype) = 'e' THEN 'text'
        WHEN coalesce(b.oid, t.oid) = 1700 THEN format_type(1700, CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END)
        ELSE format_type(coalesce(b.oid, t.oid), NULL) END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid
    JOIN pg_type AS t ON t.oid = a.atttypid LEFT JOIN pg_type AS b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY n.nspname <> 'public', n.nspname, c.relname, a.attnum
"""
_KEYS = """
SELECT n.nspname, c.relname, k.contype::text, m.nspname, f.relname,
    ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (number, position)
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.number ORDER BY u.position),
    ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (number, position)
        JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.number ORDER BY u.position)
FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_class AS f ON f.oid = k.confrelid LEFT JOIN pg_namespace AS m ON m.oid = f.relnamespace
WHERE k.contype IN ('p', 'f') ORDER BY k.oid
"""
_ENGINE_TYPES = {
    "smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT", "numeric": "DECIMAL", "real": "REAL",
    "double precision": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP", TIME_OF_DAY: "TIME",
} | dict.fromkeys(set(READABLE[Type.TEXT]) - set(READABLE[Type.INTEGER]), "VARCHAR")  # fmt: skip
"""The names in a `SourceTable` of the types that columns of a policy are read from."""
_STRUCTURE_SECONDS = 60.0


def structure_of_server(url: str) -> dict[str, SourceTable]:
    """Return the tables of a server that its role may read, from the catalog alone. Raises Fault source_connection."""
    connections = Connections(url)
    try:
        with connections.transaction(set(), _STRUCTURE_SECONDS) as connection:
            columns, keys = connection.execute(_STRUCTURE).fetchall(), connection.execute(_KEYS).fetchall()
    finally:
        connections.close()
    named = tables_of_schemas(((schema, table) for schema, table, *_ in columns), DEFAULT_SCHEMA)
    for schema, name, column, filled, type_ in columns:
        _, table = named[schema, name]
        table.columns[column] = _ENGINE_TYPES.get(
            type_, str(type_).rpartition(".")[2].upper().replace("NUMERIC(", "DECIMAL(")
        )
        table.filled |= {column} if filled else set()
    for schema, name, kind, *parent, key, parent_key in keys:
        _, table = named.get((schema, name), ("", SourceTable({})))
        if not set(key) <= set(table.columns):
            continue
        leads, other = named.get(tuple(parent), ("", SourceTable({})))
        if kind == "p":
            table.primary_key = list(key)
        elif len(key) == 1 and parent_key[0] in other.columns:
            table.foreign_keys.setdefault(key[0], (leads, parent_key[0]))
    return dict(named.values())
