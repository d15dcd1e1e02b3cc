"""The sentences of all errors, in one module for each part of dpsql. Importing this package fills `exceptions.REGISTER`."""

from __future__ import annotations

from dpsql.errors.messages import (
    binder,
    engine,
    exports,
    frontends,
    ledger,
    noise,
    pgwire,
    policy,
    pricing,
    release,
    sql,
)

__all__ = [
    "binder",
    "engine",
    "exports",
    "frontends",
    "ledger",
    "noise",
    "pgwire",
    "policy",
    "pricing",
    "release",
    "sql",
]
