"""The structure of a server's tables, from its catalog alone: for a new policy."""

from __future__ import annotations

from dpsql.engine.postgresql.connections import Connections
from dpsql.engine.postgresql.engine import DEFAULT_SCHEMA
from dpsql.engine.postgresql.literals import READABLE, TIME_OF_DAY
from dpsql.engine.structure import SourceTable
from dpsql.plan.intervals import Type

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
SELECT n.nspname, c.relname, k.contype::text, f.relname,
    ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (number, position)
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.number ORDER BY u.position),
    ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (number, position)
        JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.number ORDER BY u.position)
FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_class AS f ON f.oid = k.confrelid
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
    """Return the tables of a server that its role may read, from the catalog alone. Of tables of one name in several schemas the
    first is taken, that of `public` if there is one. Raises Fault source_connection."""
    connections, tables = Connections(url), dict[str, SourceTable]()
    try:
        with connections.transaction(set(), _STRUCTURE_SECONDS) as connection:
            columns, keys = connection.execute(_STRUCTURE).fetchall(), connection.execute(_KEYS).fetchall()
    finally:
        connections.close()
    schemas = {table: schema for schema, table, *_ in reversed(columns)}
    for schema, name, column, filled, type_ in columns:
        if schemas[name] == schema:
            table = tables.setdefault(name, SourceTable({}, schema=None if schema == DEFAULT_SCHEMA else schema))
            table.columns[column] = _ENGINE_TYPES.get(type_, str(type_).upper().replace("NUMERIC(", "DECIMAL("))
            table.filled |= {column} if filled else set()
    for schema, name, kind, parent, key, parent_key in keys:
        if schemas.get(name) != schema or not set(key) <= set(tables[name].columns):
            continue
        if kind == "p":
            tables[name].primary_key = list(key)
        elif len(key) == 1 and parent in tables and parent_key[0] in tables[parent].columns:
            tables[name].foreign_keys.setdefault(key[0], (parent, parent_key[0]))
    return tables
