"""dpsql: a SQL proxy that makes any query it answers differentially private.

    connection = dpsql.connect("clinic.yaml", analyst="research")     # PEP 249, see `dpsql.frontends.python.dbapi`

The public names load their module when they are first used, so that `import dpsql` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsql.errors.exceptions import (
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
    from dpsql.frontends.python.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        AsyncConnection,
        Binary,
        Connection,
        Cursor,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        aconnect,
        connect,
    )
    from dpsql.policy import Policy, load_policy
    from dpsql.privacy.loss import PrivacyLoss
    from dpsql.release.release import Release
    from dpsql.session.budget import Budget
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.session.session import Session, open_session

__version__ = "0.1.0"

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections; a cursor belongs to one thread
paramstyle = "qmark"  # :name with a mapping is read too

_DBAPI = (
    *("BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor", "Date", "DateFromTicks"),
    *("Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "connect"),
)
_LAZY = {
    **dict.fromkeys(_DBAPI, "dpsql.frontends.python.dbapi"),
    "AsyncConnection": "dpsql.frontends.python.dbapi",
    "aconnect": "dpsql.frontends.python.dbapi",
    "PrivacyPlan": "dpsql.session.explanation",
    "Policy": "dpsql.policy",
    "load_policy": "dpsql.policy",
    "PrivacyLoss": "dpsql.privacy.loss",
    "Release": "dpsql.release.release",
    "Budget": "dpsql.session.budget",
    "Session": "dpsql.session.session",
    "open_session": "dpsql.session.session",
}

__all__ = [
    "AsyncConnection",
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
    "aconnect",
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


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext dpsql` in IPython and Jupyter: the magics `%dpsql` and `%%dpsql`."""
    from dpsql.frontends.python import magic

    magic.load_ipython_extension(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
