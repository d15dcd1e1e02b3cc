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
from dpsql.frontends.pgwire.catalog.kinds import NAMING, ObjectNames
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.frontends.pgwire.catalog.reading import read_postgres
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext, to_duckdb
from dpsql.frontends.pgwire.catalog.shape import (
    PG_CATALOG,
    SCHEMAS,
    Relation,
    definitions,
    keywords,
    relation,
    relations,
    signatures,
    static_tables,
    views,
    zones,
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


def image(policy: Policy, user: str) -> tuple[DatabaseImage, ObjectNames]:
    """Return the image of a locked DuckDB, the catalog of `policy` as `user` sees it and the policy's tables without rows;
    and the objects that are named in it."""
    gathered: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    policy_rows = PolicyRows(policy, user)
    for target, row in policy_rows.rows():
        gathered.setdefault((target.schema, target.name), []).append(row)
    names = ObjectNames(policy.dataset, {name: _dicts(gathered, name) for name in NAMING})
    statements = [f"CREATE SCHEMA {schema}" for schema in (*SCHEMAS.values(), "pgx", "public")]
    tables: dict[str, pa.Table] = {}
    everywhere = static_tables(policy.dataset)
    for key, listed in relations().items():
        if key in views() or key == ZONES:
            continue
        rows = [everywhere[key]] if key in everywhere else []
        if key in gathered:
            rows.append(_rows_of(listed, gathered[key]))
        if rows:
            tables[f"rows_of_{listed.name}"] = pa.concat_tables(rows).combine_chunks()
            columns = ", ".join(f'CAST("{name}" AS {listed.duckdb_type(name)}) AS "{name}"' for name in listed.columns)
            definition = f"AS SELECT {columns} FROM rows_of_{listed.name}"
        else:
            definition = "(" + ", ".join(f'"{name}" {listed.duckdb_type(name)}' for name in listed.columns) + ")"
        statements.append(f'CREATE TABLE {SCHEMAS[listed.schema]}."{listed.name}" {definition}')
    statements += _HELPERS
    for name, table in _helper_rows(policy_rows, names):
        tables[f"rows_of_{name}"] = table
        statements.append(f"INSERT INTO pgx.{name} SELECT * FROM rows_of_{name}")
    statements.append(f'CREATE VIEW {SCHEMAS[PG_CATALOG]}."{ZONES[1]}" AS {_ZONES}')
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


def _dicts(gathered: Mapping[tuple[str, str], list[tuple[Any, ...]]], name: str) -> list[dict[str, Any]]:
    return [dict(zip(relation(name).columns, row, strict=True)) for row in gathered.get((PG_CATALOG, name), ())]


def _rows_of(target: Relation, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = dict(zip(target.columns, zip(*rows, strict=True), strict=True))
    return pa.table({name: pa.array(values, target.arrow_type(name)) for name, values in columns.items()})


def _table(types: list[pa.DataType], rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({f"c{index}": pa.array(values, types[index]) for index, values in enumerate(columns)})


_HELPERS = (
    "CREATE TABLE pgx.names (kind VARCHAR, oid UINTEGER, schema VARCHAR, name VARCHAR)",
    "CREATE TABLE pgx.spellings (kind VARCHAR, spelling VARCHAR, oid UINTEGER)",
    "CREATE TABLE pgx.keywords (word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR)",
    "CREATE TABLE pgx.definitions (constraint_oid UINTEGER, index_oid UINTEGER, constraint_text VARCHAR, "
    "index_text VARCHAR, short_text VARCHAR, column_names VARCHAR[])",
    "CREATE TABLE pgx.functions (oid UINTEGER, arguments VARCHAR, identity VARCHAR, result VARCHAR)",
    "CREATE TABLE pgx.zones (name VARCHAR, standard VARCHAR, summer VARCHAR)",
)
"""Statements for the tables that only the macros read."""
ZONES = (PG_CATALOG, "pg_timezone_names")
_ZONES = """
    SELECT z.name, CASE WHEN t.is_dst THEN z.summer ELSE z.standard END AS abbrev, t.utc_offset, t.is_dst
    FROM pgx.zones z JOIN pg_timezone_names() t ON t.name = z.name
"""
"""PostgreSQL's time zones as they are at the moment of the question."""


def _helper_rows(policy_rows: PolicyRows, names: ObjectNames) -> Iterator[tuple[str, pa.Table]]:
    text, number = pa.string(), pa.uint32()
    yield "names", _table([text, number, text, text], names.rows())
    yield "spellings", _table([text, text, number], names.spellings())
    yield "keywords", _table([text, text, pa.bool_(), text, text], map(tuple, keywords()))
    defined = [*map(tuple, definitions()), *policy_rows.definitions()]
    yield "definitions", _table([number, number, text, text, text, pa.list_(text)], defined)
    yield "functions", signatures()
    yield "zones", _table([text, text, text], map(tuple, zones()))


def _empty_tables(policy: Policy) -> Iterator[str]:
    """Yield statements that create the policy's tables without rows, for queries that only look up columns."""
    for table in policy.visible.values():
        columns = ", ".join(f"{_quoted(column.name)} {_EMPTY_TYPES[column.type]}" for column in table.columns.values())
        yield f"CREATE TABLE public.{_quoted(table.name)} ({columns})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
