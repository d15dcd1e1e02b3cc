"""The private DuckDB that answers catalog questions: PostgreSQL's tables with rows from the policy, and no data.

It runs text that analysts wrote, so it is locked like the sandbox: no file, no network, no extension, no setting to change, one
thread; and it runs in a separate process (`dpsql.release.confinement`), whose memory and time are bounded.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from dpsql.frontends.pgwire.catalog import macros
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.frontends.pgwire.catalog.shape import (
    PG_CATALOG,
    SCHEMAS,
    formatted_types,
    relation,
    relations,
    static_rows,
    type_names,
)
from dpsql.policy import Policy
from dpsql.release.confinement import DatabaseImage

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


def image(policy: Policy, user: str) -> DatabaseImage:
    """Return the image of a locked DuckDB: the catalog of `policy` as `user` sees it, and the policy's tables without
    rows."""
    statements = [f"CREATE SCHEMA {schema}" for schema in (*SCHEMAS.values(), "pgx", "public")]
    for listed in relations().values():
        columns = ", ".join(f'"{name}" {listed.duckdb_type(name)}' for name in listed.columns)
        statements.append(f'CREATE TABLE {SCHEMAS[listed.schema]}."{listed.name}" ({columns})')
    gathered: dict[tuple[str, str], list[tuple[Any, ...]]] = {
        (PG_CATALOG, name): list(rows) for name, rows in static_rows().items()
    }
    policy_rows = PolicyRows(policy, user)
    for target_relation, row in policy_rows.rows():
        gathered.setdefault((target_relation.schema, target_relation.name), []).append(row)
    tables: dict[str, pa.Table] = {}
    for target, table in (*_relation_rows(gathered), *_helper_rows(policy_rows)):
        name = f"catalog_rows_{len(tables)}"
        tables[name] = table
        statements.append(f"INSERT INTO {target} SELECT * FROM {name}")
    # Tables that only the macros read must be created before they are filled.
    statements[len(SCHEMAS) + 2 : len(SCHEMAS) + 2] = _HELPERS
    statements += [*_empty_tables(policy), *macros.statements()]
    return DatabaseImage(f"catalog:{uuid.uuid4().hex}", statements, tables, _LOCKDOWN, MEMORY_MEGABYTES)


def _relation_rows(
    gathered: Mapping[tuple[str, str], list[tuple[Any, ...]]],
) -> Iterator[tuple[str, pa.Table]]:
    for (schema, name), rows in gathered.items():
        target = relation(name, schema)
        types = [_arrow(target.duckdb_type(column)) for column in target.columns]
        yield f'{SCHEMAS[target.schema]}."{target.name}"', _table(types, rows)


def _arrow(type_: str) -> pa.DataType:
    if type_.endswith("[]"):
        return pa.list_(_arrow(type_[:-2]))
    return _ARROW.get(type_, pa.string())


def _table(types: list[pa.DataType], rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({f"c{index}": pa.array(values, types[index]) for index, values in enumerate(columns)})


_HELPERS = (
    "CREATE TABLE pgx.formatted (oid UINTEGER, name VARCHAR)",
    "CREATE TABLE pgx.type_names (name VARCHAR, oid UINTEGER)",
    "CREATE TABLE pgx.definitions (constraint_oid UINTEGER, index_oid UINTEGER, constraint_text VARCHAR, "
    "index_text VARCHAR, column_names VARCHAR[])",
)
"""Statements for the tables that only the macros read."""


def _helper_rows(policy_rows: PolicyRows) -> Iterator[tuple[str, pa.Table]]:
    yield "pgx.formatted", _table([pa.uint32(), pa.string()], formatted_types().items())
    yield "pgx.type_names", _table([pa.string(), pa.uint32()], type_names().items())
    definitions = list(policy_rows.definitions())
    if definitions:
        types = [pa.uint32(), pa.uint32(), pa.string(), pa.string(), pa.list_(pa.string())]
        yield "pgx.definitions", _table(types, definitions)


def _empty_tables(policy: Policy) -> Iterator[str]:
    """Yield statements that create the policy's tables without rows, for queries that only look up columns."""
    for table in policy.visible.values():
        columns = ", ".join(f"{_quoted(column.name)} {_EMPTY_TYPES[column.type]}" for column in table.columns.values())
        yield f"CREATE TABLE public.{_quoted(table.name)} ({columns})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
