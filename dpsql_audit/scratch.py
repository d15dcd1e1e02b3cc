"""An empty database of PostgreSQL that an owner names for the audit: synthetic tables are made in schemas of its own there, and
dropped at the end.

Nothing is written anywhere else. A database that holds anything is refused, and so is the policy's own source, by its address
before it is connected to, and by its tables if it goes by another name.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any, Self

import psycopg
import pyarrow as pa
from psycopg.conninfo import conninfo_to_dict

from dpsql.errors.exceptions import refuse
from dpsql.media.text import sql_name
from dpsql.policy import Policy

_NOT_EMPTY = """
SELECT held FROM (
    SELECT 'schema ' || nspname AS held, nspname AS schema FROM pg_catalog.pg_namespace WHERE nspname <> 'public'
    UNION ALL
    SELECT n.nspname || '.' || c.relname, n.nspname
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    UNION ALL
    SELECT n.nspname || '.' || p.proname, n.nspname
    FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
) AS everything WHERE schema <> 'information_schema' AND schema !~ '^pg_' ORDER BY held LIMIT 1
"""
_TYPES = {
    "integer": "bigint", "real": "double precision", "boolean": "boolean", "date": "date",
    "timestamp": "timestamp without time zone",
}  # fmt: skip
_ADDRESS = ("host", "hostaddr", "port", "dbname")


class ScratchDatabase:
    """Schemas in an empty database, of a name that nobody else has. Use as a context: they are dropped at its end."""

    def __init__(self, url: str, policy: Policy) -> None:
        """`policy`: whose data are on PostgreSQL, and not here. Raises InterfaceError scratch_database."""
        if not (policy.source or "").startswith("postgresql://"):
            raise refuse("scratch_database", problem="is for a policy whose `source` is postgresql://...")
        if not url.startswith("postgresql://"):
            raise refuse("scratch_database", problem="is postgresql://USER@HOST/DATABASE")
        try:
            for place, address in (("source", policy.source), ("ledger", policy.ledger), ("witness", policy.witness)):
                if (address or "").startswith("postgresql://") and _address(address or "") == _address(url):
                    raise refuse("scratch_database", problem=f"is the policy's own {place}")
            self._connection: psycopg.Connection[Any] = psycopg.connect(
                url, autocommit=True, connect_timeout=10, application_name="dpsql audit"
            )
        except (psycopg.Error, ValueError) as error:
            raise refuse("scratch_database", problem=f"cannot be opened: {_first_line(error)}") from None
        self._url, self._prefix = url, f"dpsql_audit_{secrets.token_hex(6)}"
        held = self._connection.execute(_NOT_EMPTY).fetchone()
        if held is not None:
            self._connection.close()
            raise refuse("scratch_database", problem=f"is not empty: it holds {held[0]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def schema(self, name: str) -> str:
        """Make an empty schema and return its name. Raises InterfaceError scratch_database."""
        schema = f"{self._prefix}_{name}"
        try:
            self._connection.execute(f"CREATE SCHEMA {sql_name(schema)}")
        except psycopg.Error as error:
            raise refuse("scratch_database", problem=f"cannot be written to: {_first_line(error)}") from None
        return schema

    def written(self, policy: Policy, tables: Mapping[str, pa.Table], schema: str) -> Policy:
        """Return the policy over `tables` in a schema, whose texts with a list have every type in turn; copies are prepared in
        another schema beside it. Raises InterfaceError scratch_database."""
        places = {name: f"t{number}" for number, name in enumerate(tables)}
        try:
            text_types = self._text_types(schema)
            listed = cycle(text_types)
            for name, rows in tables.items():
                columns = policy.tables[name].columns.values()
                types = [_TYPES.get(c.type) or (text_types[0] if c.domain is None else next(listed)) for c in columns]
                typed = ", ".join(f"{sql_name(c.name)} {type_}" for c, type_ in zip(columns, types, strict=True))
                place = f"{sql_name(schema)}.{sql_name(places[name])}"
                self._connection.execute(f"CREATE TABLE {place} ({typed})")
                with self._connection.cursor() as cursor, cursor.copy(f"COPY {place} FROM STDIN") as copy:
                    for row in rows.to_pylist():
                        copy.write_row([row[c.name] for c in columns])
        except psycopg.Error as error:
            raise refuse("scratch_database", problem=f"cannot be written to: {_first_line(error)}") from None
        return replace(
            policy,
            source=self._url,
            tables={n: replace(table, source=f"{schema}.{places[n]}") for n, table in policy.tables.items()},
            timing="plain",
            constant_seconds=None,
            data_version="audit",
            prepare=replace(policy.prepare, into=f"{schema}_copies", role=None, automatic=False),
        )

    def _text_types(self, schema: str) -> list[str]:
        """Return types of texts: of the database's collation, of that of bytes, and of one that takes different texts for equal,
        where the server has such."""
        types = ["text", 'character varying COLLATE "C"']
        collation = f'{sql_name(schema)}."any case"'
        options = "provider = icu, locale = 'und-u-ks-level1', deterministic = false"
        try:
            self._connection.execute(f"CREATE COLLATION {collation} ({options})")
        except psycopg.Error:  # a server without ICU
            return types
        return [f"text COLLATE {collation}", *types]

    def close(self) -> None:
        """Drop every schema that was made here, of copies too."""
        with self._connection as connection:
            named = "SELECT nspname FROM pg_catalog.pg_namespace WHERE starts_with(nspname, %s)"
            for (schema,) in connection.execute(named, (self._prefix,)).fetchall():
                connection.execute(f"DROP SCHEMA {sql_name(schema)} CASCADE")


def _address(url: str) -> tuple[str, ...]:
    """Return the parts of a URL that say which database it is, where they are written out."""
    parts = conninfo_to_dict(url)
    return tuple(str(parts.get(name) or {"port": 5432}.get(name, "")) for name in _ADDRESS)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["it failed"])[0]
