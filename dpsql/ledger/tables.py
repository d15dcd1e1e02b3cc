"""Tables of the ledger and of the stored releases, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.engine import Connection

FORMAT = 1

ledger_tables = MetaData()
release_tables = MetaData()

layout = Table("dpsql_format", ledger_tables, Column("version", Integer, nullable=False))

# The unique `id` prevents a second charge, the unique `resolves` a second outcome; both are also in `body`.
entries = Table(
    "dpsql_entries",
    ledger_tables,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("id", Text, unique=True),
    Column("resolves", BigInteger, unique=True),
    Column("body", Text, nullable=False),
    Column("digest", Text, nullable=False),
)

# Running totals: a pure function of the entries, stored so that a charge need not add up all entries again.
accounts = Table(
    "dpsql_accounts",
    ledger_tables,
    Column("scope", Text, primary_key=True),
    Column("accountant", Text, nullable=False),
    Column("limits", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("mac", Text, nullable=False),
)

releases = Table(
    "dpsql_releases",
    release_tables,
    Column("key", Text, primary_key=True),
    Column("block", Text, nullable=False, index=True),
    Column("created", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("mac", Text, nullable=False),
)

_SQLITE_GUARD = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
"""
_POSTGRES_FUNCTION = """
CREATE FUNCTION dpsql_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$
"""
_POSTGRES_GUARD = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION dpsql_append_only()
"""
_GUARDED = (("dpsql_entries", "UPDATE"), ("dpsql_entries", "DELETE"), ("dpsql_accounts", "DELETE"))


def create_ledger(connection: Connection) -> None:
    """Create the tables and the triggers against accidental edits, in the caller's transaction."""
    ledger_tables.create_all(connection)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_POSTGRES_FUNCTION)
        for table, verb in (*_GUARDED, ("dpsql_entries", "TRUNCATE"), ("dpsql_accounts", "TRUNCATE")):
            connection.exec_driver_sql(_POSTGRES_GUARD.format(table=table, verb=verb))
    else:
        for table, verb in _GUARDED:
            connection.exec_driver_sql(_SQLITE_GUARD.format(table=table, verb=verb))
    connection.execute(layout.insert().values(version=FORMAT))
