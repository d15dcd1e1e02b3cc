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
from dpsql.frontends.pgwire.catalog.kinds import ObjectNames
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.frontends.pgwire.catalog.reading import read_postgres
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext, to_duckdb
from dpsql.frontends.pgwire.catalog.shape import (
    PG_CATALOG,
    SCHEMAS,
    keywords,
    relation,
    relations,
    static_rows,
    views,
)
from dpsql.frontends.pgwire.settings import Settings
from dpsql.policy import Policy
from dpsql.release.confinement import DatabaseImage

MEMORY_MEGABYTES = 256
_LOCKDOWN = (
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL integer_division = true",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)
_EMPTY_TYPES = {
    "integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
_ARROW = {
    "BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(), "UINTEGER": pa.uint32(), "USMALLINT": pa.uint16(), "UBIGINT": pa.uint64(),
}  # fmt: skip


def image(policy: Policy, user: str) -> tuple[DatabaseImage, ObjectNames]:
    """Return the image of a locked DuckDB, the catalog of `policy` as `user` sees it and the policy's tables without rows;
    and the objects that are named in it."""
    statements = [f"CREATE SCHEMA {schema}" for schema in (*SCHEMAS.values(), "pgx", "public")]
    for listed in relations().values():
        if (listed.schema, listed.name) in views():
            continue
        columns = ", ".join(f'"{name}" {listed.duckdb_type(name)}' for name in listed.columns)
        statements.append(f'CREATE TABLE {SCHEMAS[listed.schema]}."{listed.name}" ({columns})')
    gathered: dict[tuple[str, str], list[tuple[Any, ...]]] = {
        (PG_CATALOG, name): list(rows) for name, rows in static_rows().items()
    }
    policy_rows = PolicyRows(policy, user)
    for target_relation, row in policy_rows.rows():
        gathered.setdefault((target_relation.schema, target_relation.name), []).append(row)
    named = ("pg_class", "pg_namespace", "pg_proc", "pg_roles")
    names = ObjectNames(
        policy.dataset,
        {
            name: [dict(zip(relation(name).columns, row, strict=True)) for row in gathered[PG_CATALOG, name]]
            for name in named
        },
    )
    tables: dict[str, pa.Table] = {}
    for target, table in (*_relation_rows(gathered), *_helper_rows(policy_rows, names)):
        name = f"catalog_rows_{len(tables)}"
        tables[name] = table
        statements.append(f"INSERT INTO {target} SELECT * FROM {name}")
    # Tables that only the macros read must be created before they are filled.
    statements[len(SCHEMAS) + 2 : len(SCHEMAS) + 2] = _HELPERS
    statements += [*_empty_tables(policy), *macros.statements(), *_views(policy, user, names)]
    return DatabaseImage(f"catalog:{uuid.uuid4().hex}", statements, tables, _LOCKDOWN, MEMORY_MEGABYTES), names


def _views(policy: Policy, user: str, names: ObjectNames) -> Iterator[str]:
    """Yield statements that create the views which PostgreSQL's own definitions compute."""
    tables = {table.name.lower(): table.shown_schema.lower() for table in policy.visible.values()}
    context = CatalogContext(user, policy.dataset, Settings(user), 0, names, tables)
    for (schema, name), text in views().items():
        tree = read_postgres(text)
        assert tree is not None
        yield f'CREATE VIEW {SCHEMAS[schema]}."{name}" AS {to_duckdb(tree, context)}'


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
    if type_.startswith("DECIMAL"):
        return pa.int64()
    return _ARROW.get(type_, pa.string())


def _table(types: list[pa.DataType], rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({f"c{index}": pa.array(values, types[index]) for index, values in enumerate(columns)})


_HELPERS = (
    "CREATE TABLE pgx.names (kind VARCHAR, oid UINTEGER, schema VARCHAR, name VARCHAR)",
    "CREATE TABLE pgx.spellings (kind VARCHAR, spelling VARCHAR, oid UINTEGER)",
    "CREATE TABLE pgx.keywords (word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR)",
    "CREATE TABLE pgx.definitions (constraint_oid UINTEGER, index_oid UINTEGER, constraint_text VARCHAR, "
    "index_text VARCHAR, short_text VARCHAR, column_names VARCHAR[])",
)
"""Statements for the tables that only the macros read."""


def _helper_rows(policy_rows: PolicyRows, names: ObjectNames) -> Iterator[tuple[str, pa.Table]]:
    text, number = pa.string(), pa.uint32()
    yield "pgx.names", _table([text, number, text, text], names.rows())
    yield "pgx.spellings", _table([text, text, number], names.spellings())
    yield "pgx.keywords", _table([text, text, pa.bool_(), text, text], map(tuple, keywords()))
    definitions = list(policy_rows.definitions())
    if definitions:
        yield "pgx.definitions", _table([number, number, text, text, text, pa.list_(text)], definitions)


def _empty_tables(policy: Policy) -> Iterator[str]:
    """Yield statements that create the policy's tables without rows, for queries that only look up columns."""
    for table in policy.visible.values():
        columns = ", ".join(f"{_quoted(column.name)} {_EMPTY_TYPES[column.type]}" for column in table.columns.values())
        yield f"CREATE TABLE public.{_quoted(table.name)} ({columns})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
