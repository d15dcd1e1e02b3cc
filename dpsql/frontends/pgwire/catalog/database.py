"""The private DuckDB that answers catalog questions: PostgreSQL's tables with rows from the policy, and no data.

It runs text that analysts wrote, so it is locked like the sandbox: no file, no network, no extension, no setting to change, one
thread; and it runs in a separate process (`dpsql.release.confinement`), whose memory and time are bounded.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

import pyarrow as pa

from dpsql.frontends.pgwire.catalog import macros
from dpsql.frontends.pgwire.catalog.kinds import NAMING, ObjectNames, rows_everywhere, spellings_everywhere
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
            tables[f"rows_of_{listed.name}"] = pa.concat_tables(rows)  # which shares what every user has
        statements.append(_definition(key, bool(rows)))
    statements += _HELPERS
    for name, table in _helper_rows(policy_rows, names).items():
        tables[f"rows_of_{name}"] = pa.concat_tables([_helpers_everywhere(policy.dataset)[name], *table])
        statements.append(f"INSERT INTO pgx.{name} SELECT * FROM rows_of_{name}")
    owned = (view.replace(_ANYBODY, user.replace("'", "''")) for view in _views(policy.dataset))
    statements += [*_empty_tables(policy), *_macros(), *owned]
    return DatabaseImage(f"catalog:{uuid.uuid4().hex}", statements, tables, _LOCKDOWN, MEMORY_MEGABYTES), names


@cache
def _definition(key: tuple[str, str], has_rows: bool) -> str:
    """Return the statement that creates a relation, with its rows if it has some."""
    listed = relations()[key]
    types = {name: listed.duckdb_type(name) for name in listed.columns}
    if not has_rows:
        columns = ", ".join(f'"{name}" {type_}' for name, type_ in types.items())
        return f'CREATE TABLE {SCHEMAS[listed.schema]}."{listed.name}" ({columns})'
    columns = ", ".join(f'CAST("{name}" AS {type_}) AS "{name}"' for name, type_ in types.items())
    return f'CREATE TABLE {SCHEMAS[listed.schema]}."{listed.name}" AS SELECT {columns} FROM rows_of_{listed.name}'


@cache
def _macros() -> tuple[str, ...]:
    return tuple(macros.statements())


_ANYBODY = "dpsql_somebody"


@lru_cache(maxsize=8)
def _views(database: str) -> tuple[str, ...]:
    """Return the statements that create the views which PostgreSQL's own definitions compute, for the user `_ANYBODY`."""
    names = ObjectNames(database, {**dict.fromkeys(NAMING, ()), "pg_roles": [{"oid": 1, "rolname": _ANYBODY}]})
    context = CatalogContext(_ANYBODY, database, Settings(_ANYBODY), 0, names, {})
    statements = [f'CREATE VIEW {SCHEMAS[PG_CATALOG]}."{ZONES[1]}" AS {_ZONES}']
    for (schema, name), text in views().items():
        tree = read_postgres(text)
        assert tree is not None
        statements.append(f'CREATE VIEW {SCHEMAS[schema]}."{name}" AS {to_duckdb(tree, context)}')
    return tuple(statements)


def _dicts(gathered: Mapping[tuple[str, str], list[tuple[Any, ...]]], name: str) -> list[dict[str, Any]]:
    return [dict(zip(relation(name).columns, row, strict=True)) for row in gathered.get((PG_CATALOG, name), ())]


def _rows_of(target: Relation, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = dict(zip(target.columns, zip(*rows, strict=True), strict=True))
    return pa.table({name: pa.array(values, target.arrow_type(name)) for name, values in columns.items()})


_TEXT, _NUMBER = pa.string(), pa.uint32()
_HELPER_TYPES = {
    "names": (_TEXT, _NUMBER, _TEXT, _TEXT), "spellings": (_TEXT, _TEXT, _NUMBER),
    "keywords": (_TEXT, _TEXT, pa.bool_(), _TEXT, _TEXT),
    "definitions": (_NUMBER, _NUMBER, _TEXT, _TEXT, _TEXT, pa.list_(_TEXT)), "zones": (_TEXT, _TEXT, _TEXT),
}  # fmt: skip


def _table(name: str, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    types, listed = _HELPER_TYPES[name], list(rows)
    columns = list(zip(*listed, strict=True)) if listed else [()] * len(types)
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


@lru_cache(maxsize=8)
def _helpers_everywhere(database: str) -> dict[str, pa.Table]:
    """Return the rows of the helpers that every user of a database has."""
    return {
        "names": _table("names", rows_everywhere()),
        "spellings": _table("spellings", spellings_everywhere(database)),
        "keywords": _table("keywords", map(tuple, keywords())),
        "definitions": _table("definitions", map(tuple, definitions())),
        "functions": signatures(),
        "zones": _table("zones", map(tuple, zones())),
    }


def _helper_rows(policy_rows: PolicyRows, names: ObjectNames) -> dict[str, list[pa.Table]]:
    """Return the rows of the helpers that a user has beside those."""
    listed = {"names": names.rows(), "spellings": names.spellings(), "definitions": policy_rows.definitions()}
    return {name: [_table(name, listed[name])] if name in listed else [] for name in (*_HELPER_TYPES, "functions")}


def _empty_tables(policy: Policy) -> Iterator[str]:
    """Yield statements that create the policy's tables without rows, for queries that only look up columns."""
    for table in policy.visible.values():
        columns = ", ".join(f"{_quoted(column.name)} {_EMPTY_TYPES[column.type]}" for column in table.columns.values())
        yield f"CREATE TABLE public.{_quoted(table.name)} ({columns})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
