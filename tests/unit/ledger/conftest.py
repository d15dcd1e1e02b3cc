"""Ledgers in SQLite files and on a real PostgreSQL server."""

from support.ledger_homes import home, postgres, postgres_home, sqlite_home

__all__ = ["home", "postgres", "postgres_home", "sqlite_home"]
