"""Mapping of database drivers' failures to faults of the register."""

from __future__ import annotations

import sqlite3
from typing import Any


def slug_of(error: Any) -> str:
    """Return the slug for an error of sqlite3 or psycopg; it does not depend on the contents of tables."""
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "") or ""
        for start, slug in _SQLITE_SLUGS:
            if name.startswith(start):
                return slug
        return "ledger_damaged"
    return _POSTGRES_SLUGS.get(getattr(error, "sqlstate", None) or "", "ledger_unreachable")


_SQLITE_SLUGS = (
    ("SQLITE_BUSY", "ledger_locked"),
    ("SQLITE_LOCKED", "ledger_locked"),
    ("SQLITE_READONLY", "ledger_read_only"),
    ("SQLITE_CANTOPEN", "ledger_read_only"),
    ("SQLITE_PERM", "ledger_read_only"),
    ("SQLITE_FULL", "ledger_disk_full"),
    ("SQLITE_IOERR", "ledger_disk_full"),
    ("SQLITE_CORRUPT", "ledger_damaged"),
    ("SQLITE_NOTADB", "ledger_damaged"),
)
_POSTGRES_SLUGS = {
    "55P03": "ledger_locked",
    "57014": "ledger_locked",
    "25006": "ledger_read_only",
    "42501": "ledger_read_only",
    "53100": "ledger_disk_full",
    "42P01": "ledger_damaged",
    "42703": "ledger_damaged",
}
