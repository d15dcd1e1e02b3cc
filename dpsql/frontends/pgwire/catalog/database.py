"""The private DuckDB that answers catalog questions: PostgreSQL's tables with rows from the policy, and no data.

It runs text that analysts wrote, so it is locked as the sandbox is: no file, no network, no extension, no setting to
change, little memory, one thread, and a watchdog for time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.frontends.pgwire.catalog import macros
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.frontends.pgwire.catalog.shape import (
    PG_CATALOG,
    SCHEMAS,
    Relation,
    formatted_types,
    relation,
    relations,
    static_rows,
    type_names,
)
from dpsql.policy import Policy

MEMORY_MEGABYTES = 256
_LOCKDOWN = (
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)
_EMPTY_TYPES = {
    "integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
_ARROW = {
    "BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(), "UINTEGER": pa.uint32(),
}  # fmt: skip


def build(policy: Policy, user: str) -> duckdb.DuckDBPyConnection:
    """A locked DuckDB with the catalog of `policy` as `user` sees it, and the policy's tables without rows."""
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": f"{MEMORY_MEGABYTES}MB"})
    for schema in (*SCHEMAS.values(), "pgx", "public"):
        connection.execute(f"CREATE SCHEMA {schema}")
    for one in relations().values():
        columns = ", ".join(f'"{name}" {one.duckdb_type(name)}' for name in one.columns)
        connection.execute(f'CREATE TABLE {SCHEMAS[one.schema]}."{one.name}" ({columns})')
    gathered: dict[tuple[str, str], list[tuple[Any, ...]]] = {
        (PG_CATALOG, name): list(rows) for name, rows in static_rows().items()
    }
    own = PolicyRows(policy, user)
    for one, row in own.rows():
        gathered.setdefault((one.schema, one.name), []).append(row)
    for (schema, name), rows in gathered.items():
        _fill(connection, relation(name, schema), rows)
    _helpers(connection, own)
    _empty_tables(connection, policy)
    for statement in (*macros.statements(), *_LOCKDOWN):
        connection.execute(statement)
    return connection


def _fill(connection: duckdb.DuckDBPyConnection, one: Relation, rows: list[tuple[Any, ...]]) -> None:
    types = [_arrow(one.duckdb_type(name)) for name in one.columns]
    _insert(connection, f'{SCHEMAS[one.schema]}."{one.name}"', types, rows)


def _arrow(type_: str) -> pa.DataType:
    if type_.endswith("[]"):
        return pa.list_(_arrow(type_[:-2]))
    return _ARROW.get(type_, pa.string())


def _insert(
    connection: duckdb.DuckDBPyConnection, target: str, types: list[pa.DataType], rows: Iterable[tuple[Any, ...]]
) -> None:
    columns = list(zip(*rows, strict=True))
    table = pa.table({f"c{at}": pa.array(values, types[at]) for at, values in enumerate(columns)})
    connection.register("catalog_rows", table)
    connection.execute(f"INSERT INTO {target} SELECT * FROM catalog_rows")
    connection.unregister("catalog_rows")


def _helpers(connection: duckdb.DuckDBPyConnection, own: PolicyRows) -> None:
    """Tables that only the macros read."""
    connection.execute("CREATE TABLE pgx.formatted (oid UINTEGER, name VARCHAR)")
    _insert(connection, "pgx.formatted", [pa.uint32(), pa.string()], formatted_types().items())
    connection.execute("CREATE TABLE pgx.type_names (name VARCHAR, oid UINTEGER)")
    _insert(connection, "pgx.type_names", [pa.string(), pa.uint32()], type_names().items())
    connection.execute(
        "CREATE TABLE pgx.definitions (constraint_oid UINTEGER, index_oid UINTEGER, constraint_text VARCHAR, "
        "index_text VARCHAR, column_names VARCHAR[])"
    )
    found = list(own.definitions())
    if found:
        types = [pa.uint32(), pa.uint32(), pa.string(), pa.string(), pa.list_(pa.string())]
        _insert(connection, "pgx.definitions", types, found)


def _empty_tables(connection: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """The policy's tables without rows: what a probe of a data set's columns is answered from."""
    for table in policy.tables.values():
        columns = ", ".join(f"{_quoted(column.name)} {_EMPTY_TYPES[column.type]}" for column in table.columns.values())
        connection.execute(f"CREATE TABLE public.{_quoted(table.name)} ({columns})")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
