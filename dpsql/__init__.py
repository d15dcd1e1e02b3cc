"""dpsql: a SQL proxy that makes any query it answers differentially private.

    connection = dpsql.connect("clinic.yaml", analyst="research")     # PEP 249, see `dpsql.dbapi`

The public names load their module when they are first used, so that `import dpsql` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsql import refusals as refusals  # fills the register; every room below may refuse
from dpsql.errors import (
    BudgetRefusal,
    DatabaseError,
    DataError,
    Error,
    Fault,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    PolicyRefusal,
    ProgrammingError,
    Refusal,
    Warning,
)

if TYPE_CHECKING:
    from dpsql.budgets import Budget
    from dpsql.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Connection,
        Cursor,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        connect,
    )
    from dpsql.explain import PrivacyPlan
    from dpsql.policy import Policy, load_policy
    from dpsql.privacy import PrivacyLoss
    from dpsql.release import Release
    from dpsql.session import Session, open_session

__version__ = "0.1.0"

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections; a cursor belongs to one thread
paramstyle = "qmark"  # :name with a mapping is read too

_DBAPI = (
    *("BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor", "Date", "DateFromTicks"),
    *("Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "connect"),
)
_LAZY = {
    **dict.fromkeys(_DBAPI, "dpsql.dbapi"),
    "PrivacyPlan": "dpsql.explain",
    "Policy": "dpsql.policy",
    "load_policy": "dpsql.policy",
    "PrivacyLoss": "dpsql.privacy",
    "Release": "dpsql.release",
    "Budget": "dpsql.budgets",
    "Session": "dpsql.session",
    "open_session": "dpsql.session",
}

__all__ = [
    "BINARY",
    "BudgetRefusal",
    "Binary",
    "Budget",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "Fault",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "Policy",
    "PolicyRefusal",
    "PrivacyLoss",
    "PrivacyPlan",
    "ProgrammingError",
    "ROWID",
    "Refusal",
    "Release",
    "STRING",
    "Session",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "load_policy",
    "open_session",
    "paramstyle",
    "threadsafety",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'dpsql' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
