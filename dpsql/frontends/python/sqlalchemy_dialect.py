"""SQLAlchemy in process: `create_engine("dpsql:///clinic.yaml?analyst=research")`, reflection from the policy.

The SQL that SQLAlchemy writes for PostgreSQL is SQL that dpsql reads, so its compiler is used; everything that would query a
catalog is answered from the policy. Over the PostgreSQL protocol no such dialect is needed: postgresql+psycopg and others work.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import ArgumentError, NoSuchTableError

from dpsql.policy import Policy, Table

SCHEMA = "public"
_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "integer": types.BIGINT, "real": types.DOUBLE, "text": types.TEXT, "boolean": types.BOOLEAN, "date": types.DATE,
    "timestamp": types.TIMESTAMP,
}  # fmt: skip


class DpsqlDialect(DefaultDialect):
    """`dpsql:///PATH`: the database is the policy file; `?analyst=NAME&project=NAME` names the accounts that are charged."""

    name = "dpsql"
    driver = "dpsql"
    statement_compiler = PGCompiler
    type_compiler_cls = PGTypeCompiler
    preparer = PGIdentifierPreparer
    default_paramstyle = "qmark"
    default_schema_name = SCHEMA
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = False
    supports_comments = True
    supports_alter = False
    insert_returning = False
    # PostgreSQL's compiler reads these from its dialect.
    _backslash_escapes = False
    _supports_jsonb_subscripting = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        from dpsql.frontends.python import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Return path, analyst and project, as `dpsql.connect` takes them. Raises ArgumentError for anything else."""
        for name in url.query:
            if name not in ("analyst", "project"):
                raise ArgumentError(f"dpsql knows analyst and project in an address, not {name}")
        return [url.database], dict(url.query)

    def initialize(self, connection: Connection) -> None:
        """Do nothing: there is no server to ask."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: a charge is not part of a transaction."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Do nothing: nothing was written."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        return dbapi_connection.session is not None

    # --- reflection ---------------------------------------------------------------------------------------------------

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """Return the schemas of the policy's tables, the default one first."""
        schemas = {table.shown_schema for table in _policy(connection).visible.values()}
        return [SCHEMA, *sorted(schemas - {SCHEMA})]

    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the policy's tables in a schema, by default in the default one."""
        tables = _policy(connection).visible.values()
        return [table.name for table in tables if table.shown_schema == (schema or SCHEMA)]

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return no names: a policy has no views."""
        return []

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        path = (table_name,) if schema is None else (schema, table_name)
        return _policy(connection).table_at(*path) is not None

    def get_columns(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        """Return the name, type, nullability, and a comment with bounds, public keys and privacy unit."""
        from dpsql.frontends.rendering.tables import column_comment

        policy, table = _table(connection, table_name, schema)
        return [
            {
                "name": column.name, "type": _TYPES[column.type](), "default": None, "autoincrement": False,
                "nullable": column.nullable and column.name not in table.primary_key,
                "comment": column_comment(policy, table, column) or None,
            }
            for column in table.columns.values()
        ]  # fmt: skip

    def get_pk_constraint(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> dict[str, Any]:
        _, table = _table(connection, table_name, schema)
        return {"constrained_columns": list(table.primary_key), "name": None}

    def get_foreign_keys(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        policy, table = _table(connection, table_name, schema)
        return [
            {
                "name": None, "constrained_columns": [column],
                "referred_schema": _referred_schema(policy.visible[parent], schema), "referred_table": parent,
                "referred_columns": [key], "options": {},
            }
            for column, (parent, key) in table.foreign_keys.items()
        ]  # fmt: skip

    def get_unique_constraints(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[dict[str, Any]]:
        _, table = _table(connection, table_name, schema)
        return [{"name": None, "column_names": list(columns)} for columns in table.unique]

    def get_indexes(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Sequence[dict[str, Any]]:
        """Return no indexes: a policy has none."""
        _table(connection, table_name, schema)
        return []

    def get_check_constraints(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Sequence[dict[str, Any]]:
        """Return no constraints: a policy's bounds are no constraints on rows."""
        _table(connection, table_name, schema)
        return []

    def get_table_comment(  # type: ignore[override]
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> dict[str, Any]:
        """Return description, protection and max_rows."""
        from dpsql.frontends.rendering.tables import table_comment

        return {"text": table_comment(*_table(connection, table_name, schema))}


def _policy(connection: Connection) -> Policy:
    policy: Policy = connection.connection.dbapi_connection.session.policy  # type: ignore[union-attr]
    return policy


def _table(connection: Connection, name: str, schema: str | None) -> tuple[Policy, Table]:
    policy = _policy(connection)
    table = policy.table_at(name) if schema is None else policy.table_at(schema, name)
    if table is None:
        raise NoSuchTableError(name)
    return policy, table


def _referred_schema(parent: Table, schema: str | None) -> str | None:
    """Return a parent table's schema for a reflected foreign key: None for the default one, unless the child named its own."""
    return None if schema is None and parent.shown_schema == SCHEMA else parent.shown_schema
