"""PostgreSQL as the engine: exact integer aggregation on the server, which returns only groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import psycopg
import pyarrow as pa
import pyarrow.csv

from dpsql.engine.contract import Doubt, ExactAnswer, PreparedViews, fault_of, noted
from dpsql.engine.dialect import Dialect
from dpsql.engine.postgresql.connections import DEFAULT_SCHEMA, Connections, lost
from dpsql.engine.postgresql.dialect import PostgreSQLDialect
from dpsql.engine.postgresql.literals import READABLE, binary, quoted
from dpsql.engine.postgresql.stored_views import ServerViews
from dpsql.engine.query import EngineQuery, Source, read_by
from dpsql.engine.served_tables import ServedTables
from dpsql.errors.exceptions import Error, refuse
from dpsql.media.text import sql_name
from dpsql.plan.intervals import Type
from dpsql.policy import Policy
from dpsql.policy.reach import is_file
from dpsql.storage.records import dataclass

# --- catalog ----------------------------------------------------------------------------------------------------------

# A server's catalog: the columns of a table, the rights of the role, and advice on them.

_COLUMNS = """
WITH RECURSIVE held AS (
    SELECT a.attnum, a.attname, a.atttypid AS type, c.oid AS relation, n.oid AS schema
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE n.nspname = {schema} AND c.relname = {table} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND a.attnum > 0 AND NOT a.attisdropped
), plain AS (
    SELECT * FROM held
    UNION ALL
    SELECT p.attnum, p.attname, t.typbasetype, p.relation, p.schema
    FROM plain AS p JOIN pg_type AS t ON t.oid = p.type WHERE t.typtype = 'd'
)
SELECT p.attname, CASE WHEN t.typtype = 'e' THEN 'enum' ELSE format_type(t.oid, NULL) END,
    has_schema_privilege(p.schema, 'USAGE') AND has_column_privilege(p.relation, p.attnum, 'SELECT')
FROM plain AS p JOIN pg_type AS t ON t.oid = p.type WHERE t.typtype <> 'd' ORDER BY p.attnum
"""
_ROLE = """
SELECT rolsuper, rolbypassrls,
    has_database_privilege(current_database(), 'CREATE'), has_database_privilege(current_database(), 'TEMP')
FROM pg_roles WHERE rolname = current_user
"""
_TABLE = """
SELECT has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')
        OR has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE'),
    c.relrowsecurity AND NOT c.relforcerowsecurity AND pg_has_role(c.relowner, 'USAGE'),
    c.relkind = 'f', has_schema_privilege(n.oid, 'CREATE'), c.relrowsecurity
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = {schema} AND c.relname = {table}
"""
_DOUBTS = """
WITH RECURSIVE parts AS (
    SELECT c.oid, c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = {schema} AND c.relname = {table}
    UNION
    SELECT c.oid, c.relkind
    FROM parts AS p JOIN pg_inherits AS i ON i.inhparent = p.oid JOIN pg_class AS c ON c.oid = i.inhrelid
)
SELECT '', 'is a view' FROM parts WHERE relkind = 'v'
UNION SELECT '', 'is a foreign table, or has one as a part' FROM parts WHERE relkind = 'f'
UNION SELECT '', 'has row security, whose conditions are computed for each row' FROM parts WHERE row_security_active(oid)
UNION SELECT a.attname, 'is computed when it is read (a virtual generated column)'
FROM parts AS p JOIN pg_attribute AS a ON a.attrelid = p.oid WHERE a.attgenerated = 'v'
UNION SELECT a.attname, 'is jsonb, whose text may be longer than PostgreSQL allows (1 GB)'
FROM parts AS p JOIN pg_attribute AS a ON a.attrelid = p.oid
WHERE a.atttypid = CAST('jsonb' AS regtype) AND p.relkind <> 'v' ORDER BY 1, 2
"""


@dataclass(frozen=True)
class ServerTable:
    """The schema and name of a table of the server."""

    schema: str
    table: str

    @property
    def sql(self) -> str:
        return f"{sql_name(self.schema)}.{sql_name(self.table)}"


def place_of(policy: Policy, table: str, database: str) -> ServerTable:
    """Return the place of a policy's table ([[database.]schema.]table). Raises Fault source_table_missing."""
    parts = policy.table_source(table).split(".")
    if len(parts) > 3 or (len(parts) == 3 and parts[0] != database):
        raise refuse("source_table_missing", table=table)
    return ServerTable(parts[-2] if len(parts) > 1 else DEFAULT_SCHEMA, parts[-1])


def columns_of(connection: psycopg.Connection[Any], place: ServerTable) -> dict[str, tuple[str, bool]]:
    """Return columns with their types (for domains the base type) and whether the role may read them; empty without a table."""
    text = _COLUMNS.format(schema=quoted(place.schema), table=quoted(place.table))
    return {str(name): (str(type_), bool(may)) for name, type_, may in connection.execute(text).fetchall()}


def checked_source(connection: psycopg.Connection[Any], policy: Policy, table: str, place: ServerTable) -> Source:
    """Return the source of a policy's table. Raises Fault source_table_missing, source_column_missing, source_column_type,
    source_rights, source_zone."""
    columns = columns_of(connection, place)
    if not columns:
        raise refuse("source_table_missing", table=table)
    for column in policy.tables[table].columns.values():
        if column.name not in columns:
            raise refuse("source_column_missing", table=table, column=column.name)
        type_, readable = columns[column.name]
        if type_ not in READABLE[Type(column.type)]:
            raise refuse("source_column_type", table=table, column=column.name, given=type_, wanted=column.type)
        if not readable:
            raise refuse("source_rights", place=f"{table}.{column.name}")
    types = {name: type_ for name, (type_, _) in columns.items()}
    for column in policy.tables[table].columns.values():
        if column.timezone is not None and types[column.name] == "timestamp with time zone":
            types[column.name] = read_by(types[column.name], column.timezone)
            _check_zone(connection, table, column.timezone)
    return Source(place.sql, types)


def _check_zone(connection: psycopg.Connection[Any], table: str, zone: str) -> None:
    """Check that the server knows a zone, because it raises at the first value otherwise. Raises Fault source_zone."""
    if not connection.execute(f"SELECT 1 FROM pg_timezone_names WHERE name = {quoted(zone)}").fetchall():
        raise refuse("source_zone", zone=zone, engine="PostgreSQL", table=table)


def doubts_of(connection: psycopg.Connection[Any], policy: Policy, table: str, place: ServerTable) -> tuple[Doubt, ...]:
    """Return what of a policy's table may fail at a value, by what the server runs or converts while it reads the table."""
    rows = connection.execute(_DOUBTS.format(schema=quoted(place.schema), table=quoted(place.table))).fetchall()
    read = {"", *policy.tables[table].columns}
    return tuple(Doubt(str(column), str(kind)) for column, kind in rows if column in read)


def advice_on(connection: psycopg.Connection[Any], places: dict[str, ServerTable]) -> tuple[str, ...]:
    """Return sentences about rights of the role that reading does not need."""
    sentences = []
    superuser, bypass, create, _ = connection.execute(_ROLE).fetchall()[0]
    if superuser:
        sentences.append(
            "the role that reads the data is a superuser; give dpsql a role of its own that may only SELECT"
        )
    if bypass:
        sentences.append("the role that reads the data bypasses row security (BYPASSRLS)")
    if create and not superuser:
        sentences.append("the role that reads the data may create schemas in the database")
    for table, place in places.items():
        text = _TABLE.format(schema=quoted(place.schema), table=quoted(place.table))
        for writes, owns, foreign, makes, secured in connection.execute(text).fetchall():
            if superuser:
                continue
            if writes:
                sentences.append(f"the role that reads the data may write to {table}")
            if makes:
                sentences.append(f"the role that reads the data may create tables in the schema of {table}")
            if owns:
                sentences.append(f"{table} has row security, and the role that reads the data owns it and passes it by")
            elif secured:
                sentences.append(f"{table} has row security: rows that its policies hide are not counted")
            if foreign:
                sentences.append(f"{table} is a foreign table: rows of people leave its server for this one")
    return tuple(sentences)


# --- Rows between PostgreSQL and Arrow: groups are returned by COPY, and released tables are sent as arrays ---

PIECE_BYTES = 1 << 22
"""Bytes of CSV that are converted to Arrow at once."""
_ARROW: Mapping[int, pa.DataType] = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int64(), 23: pa.int64(), 25: pa.string(), 701: pa.float64(),
    1082: pa.date32(), 1114: pa.timestamp("us"), 1700: pa.decimal128(38, 0),
}  # fmt: skip
"""Arrow's types by the oid of PostgreSQL's types; sums of integers are numeric, with at most 38 digits."""
_OURS = (
    (pa.types.is_boolean, "boolean"), (pa.types.is_integer, "bigint"), (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal, "numeric"), (pa.types.is_date, "date"), (pa.types.is_timestamp, "timestamp"),
)  # fmt: skip


def copied(connection: psycopg.Connection[Any], sql: str) -> pa.Table:
    """Return the rows of one SELECT, which the server sends as it computes them. At most one piece of their text is in memory
    at a time (`PIECE_BYTES` and one message of the server). Raises psycopg.Error, pa.ArrowException."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM ({sql}) AS "#answer" LIMIT 0')
        schema = pa.schema([(column.name, _ARROW[column.type_code]) for column in cursor.description or ()])
        with cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copy:
            pieces = [_parsed(piece, schema) for piece in _pieces(copy)]
    return pa.concat_tables(pieces) if pieces else schema.empty_table()


def _pieces(blocks: Iterable[Any]) -> Iterator[bytes]:
    """Yield the text of blocks of CSV in pieces of whole records: a record ends at the end of a line if every quote is closed.
    A quote inside quotes is doubled, so all quotes are closed if their number is even."""
    piece, quotes = bytearray(), 0
    for block in blocks:
        piece += block
        quotes += bytes(block).count(b'"')
        if len(piece) >= PIECE_BYTES and quotes % 2 == 0 and piece.endswith(b"\n"):
            yield bytes(piece)
            piece, quotes = bytearray(), 0
    if piece:
        yield bytes(piece)


def _parsed(piece: bytes, schema: pa.Schema) -> pa.Table:
    """Return the records of a piece of CSV in the columns of `schema`. Raises pa.ArrowException."""
    names = [str(place) for place in range(len(schema))]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(piece),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(piece) + 1, column_names=names),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=dict(zip(names, schema.types, strict=True)),
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["t"], false_values=["f"],
        ),
    )  # fmt: skip
    return pa.table(list(table.columns), schema=schema)


def with_released(sql: str, released: Mapping[str, pa.Table]) -> str:
    """Return a SELECT whose own text contains the released tables under their names."""
    if not released:
        return sql
    tables = [f"{sql_name(name)} AS MATERIALIZED ({_table(table)})" for name, table in released.items()]
    return f'WITH {", ".join(tables)} SELECT * FROM ({sql}) AS "#over"'


def _table(table: pa.Table) -> str:
    names = [sql_name(name) for name in table.column_names]
    types = [next((word for test, word in _OURS if test(field.type)), "text") for field in table.schema]
    arrays = [
        f"CAST({quoted(_array(column.to_pylist()))} AS {type_}[])"
        for column, type_ in zip(table.columns, types, strict=True)
    ]
    items = [f"{binary(name) if type_ == 'text' else name} AS {name}" for name, type_ in zip(names, types, strict=True)]
    return f'SELECT {", ".join(items)} FROM unnest({", ".join(arrays)}) AS "#released" ({", ".join(names)})'


def _array(values: list[Any]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- PostgreSQL as the engine: exact integer aggregation on the server, which returns only groups ---

LEAST_VERSION = 150000
LOCK_SECONDS = 30.0
"""How long a question waits before its charge for a table that another session has locked."""


class PostgreSQLEngine(ServedTables):
    """One database of a server; `run` may be called from any thread, and each call has its own transaction."""

    def __init__(self, policy: Policy) -> None:
        """Raise Fault source_connection, source_server, source_file_beside_server."""
        for name in policy.tables:
            if is_file(policy.table_source(name)):
                raise refuse("source_file_beside_server", table=name)
        super().__init__(policy)
        self._connections = Connections(policy.source or "")
        with self._transaction(None) as connection:
            version = connection.info.server_version
            encoding, database = _settings(connection)
            self._role = connection.info.user
        if version < LEAST_VERSION:
            raise refuse("source_server", what=f"PostgreSQL {version // 10_000}, and 15 or later is needed")
        if encoding != "UTF8":
            raise refuse("source_server", what=f"the database's encoding is {encoding}, and UTF8 is needed")
        self._database = database
        self.dialect: Dialect = PostgreSQLDialect(version)
        self._version = version
        self.views: PreparedViews = self._views()

    # --- structure ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        with self._transaction(None) as connection:
            columns = columns_of(connection, self._place(table))
        return {name: type_ for name, (type_, _) in columns.items()} or None

    def check_readable(self, tables: tuple[str, ...]) -> None:
        """Check that the server responds, and that tables (and the tables on their paths to the unit) have the policy's
        columns in supported types, which the role may read. Raises Fault."""
        read = {name for table in tables for name in (table, *(hop[2] for hop in self._policy.unit_joins(table)))}
        with self._transaction(LOCK_SECONDS) as connection:
            sources = {name: checked_source(connection, self._policy, name, self._place(name)) for name in sorted(read)}
        with self._lock:
            self._sources.update(sources)

    def rehearse(self, query: EngineQuery) -> None:
        """Let the server plan a query, which rejects wrong types and computes constants, but reads no row. Raises Fault
        engine_cannot_run, source_locked, source_rights, source_connection."""
        try:
            with self._connections.transaction(self._running, 2 * LOCK_SECONDS) as connection:
                connection.execute(f"SET LOCAL lock_timeout TO {round(LOCK_SECONDS * 1000)}")
                connection.execute(f"EXPLAIN {with_released(query.sql, query.released)}")
        except psycopg.errors.LockNotAvailable:
            raise refuse("source_locked", seconds=f"{LOCK_SECONDS:g}") from None
        except psycopg.errors.InsufficientPrivilege as error:
            # The role may read our columns, so it lacks rights on something below a view.
            noted(error)
            raise refuse("source_rights", place="what a view of this question is made of") from None
        except psycopg.Error as error:
            if (fault := lost(error)) is not None:
                raise fault from None
            incident = noted(error)
            raise refuse("engine_cannot_run", engine=self.dialect.title, incident=incident) from None

    def doubts(self, table: str) -> tuple[Doubt, ...]:
        """Return views, foreign tables, row security and generated columns, whose expressions run when rows are read."""
        with self._transaction(None) as connection:
            return doubts_of(connection, self._policy, table, self._place(table))

    def advice(self) -> tuple[str, ...]:
        with self._transaction(None) as connection:
            return advice_on(connection, {name: self._place(name) for name in self._policy.tables})

    def _views(self) -> PreparedViews:
        name, place = f"postgresql {self._version // 10_000}", self._policy.prepare
        if place.into is None:
            return PreparedViews(name)
        reading = partial(self._transaction, None)
        return PreparedViews(name, stored=ServerViews(self._connections, reading, place.into, place.role))

    def under(self, policy: Policy) -> Self:
        other = super().under(policy)
        other._sources = {}
        other.views = other._views()
        return other

    def _readers(self) -> tuple[str, ...]:
        """Return the role that reads copies and the role that fills them: row security may show them different rows."""
        return (self._role, self._policy.prepare.role or self._role)

    def _place(self, table: str) -> ServerTable:
        return place_of(self._policy, table, self._database)

    # --- work ---------------------------------------------------------------------------------------------------------

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one aggregation. The server's error texts may quote data, so one fixed text replaces them."""
        with self._transaction(timeout_seconds) as connection:
            return ExactAnswer(copied(connection, with_released(query.sql, query.released)))

    def exact_rows(self, sql: str) -> Any:
        with self._transaction(None) as connection:
            return copied(connection, sql)

    def _fetched(self, *queries: str) -> list[list[tuple[Any, ...]]]:
        with self._transaction(None) as connection:
            return [connection.execute(query).fetchall() for query in queries]

    @contextmanager
    def _transaction(self, timeout_seconds: float | None) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._connections.transaction(self._running, timeout_seconds) as connection:
                yield connection
        except Error:
            raise
        except Exception as error:
            raise _fault(error) from None

    def interrupt(self) -> None:
        self._connections.interrupt(self._running)

    def _disconnect(self) -> None:
        self._connections.close()


_STATES_OF_SOURCES = ("08", "57", "58", "XX001", "XX002")
"""Beginnings of the SQLSTATEs that another question over the same data would get: the server is shutting down, cannot read its
disk, or finds its pages damaged. Other errors, such as a value at which a view fails, belong to the question."""
_CANCELED = "57014"


def _fault(error: Exception) -> Error:
    """Return the fault with a fixed text for an error of the server or of reading its rows. A lost connection has no SQLSTATE."""
    state = getattr(error, "sqlstate", None) or ("08000" if isinstance(error, psycopg.OperationalError) else "")
    return fault_of(error, of_source=state.startswith(_STATES_OF_SOURCES) and state != _CANCELED)


def _settings(connection: psycopg.Connection[Any]) -> tuple[str, str]:
    row = connection.execute("SELECT current_setting('server_encoding'), current_database()").fetchall()[0]
    return str(row[0]), str(row[1])


def open_postgresql(policy: Policy) -> PostgreSQLEngine:
    """Return the engine for a policy whose source is postgresql://... Raises Fault."""
    return PostgreSQLEngine(policy)
