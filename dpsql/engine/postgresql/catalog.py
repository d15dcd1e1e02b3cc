"""A server's catalog: the columns of a table, the rights of the role, and advice on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from dpsql.engine.contract import Doubt
from dpsql.engine.postgresql.literals import READABLE, quoted
from dpsql.engine.query import Source
from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.policy import Policy

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
DEFAULT_SCHEMA = "public"


@dataclass(frozen=True)
class ServerTable:
    """The schema and name of a table of the server."""

    schema: str
    table: str

    @property
    def sql(self) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, self.table))


def place_of(policy: Policy, table: str, database: str) -> ServerTable:
    """Return the place of a policy's table, which the policy writes as `table`, `schema.table` or `database.schema.table`. Raises
    Fault source_table_missing."""
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
    source_rights."""
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
    return Source(place.sql, {name: type_ for name, (type_, _) in columns.items()})


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
