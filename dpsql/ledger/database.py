"""The two databases of a ledger: where one is, a connection to it, and the meaning of its driver's failures.

Statements are texts that SQLite and PostgreSQL read alike; their values are named `:name`.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from dpsql.errors.exceptions import refuse
from dpsql.storage.records import dataclass

_URL = re.compile(
    r"(?P<scheme>[\w+]+)://(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:(?P<host>\[[^/?]+\]|[^/:?]+)?(?::(?P<port>[^/?]*))?)?(?:/(?P<dbname>[^?]*))?(?:\?(?P<query>.*))?"
)
_HOST_AND_PORT = re.compile(r"([A-Za-z0-9.-]*):(\d+)")
_VALUE = re.compile(r":(\w+)")
_APPLICATION = {"application_name": "dpsql ledger"}
MOST_GRACE_SECONDS = 10.0
"""Upper limit for the time that a reply may take beyond the time that its statement may wait for a lock."""


@dataclass(frozen=True)
class Location:
    """The location of a ledger: `path` for SQLite, else None; `address` is the URL without a password; `options`: psycopg's."""

    path: Path | None
    address: str
    options: Mapping[str, Any]


def parse_location(text: str) -> Location:
    """Return the location named by `sqlite:///PATH` or `postgresql://...`. Raises ledger_url for anything else."""
    match = _URL.match(text)
    if match is None:
        raise refuse("ledger_url")
    scheme, dbname, query = match["scheme"].split("+")[0], match["dbname"], match["query"]
    if scheme == "sqlite" and dbname and dbname != ":memory:" and not query:
        path = Path(unquote(dbname)).resolve()
        return Location(path, f"sqlite:///{path}", {})
    if scheme == "postgresql" and (match["port"] or "0").isdigit():
        return _server(match, parse_qsl(query or ""))
    raise refuse("ledger_url")


def _server(match: re.Match[str], query: list[tuple[str, str]]) -> Location:
    """Return the place of a PostgreSQL database. Addresses are compared with those that were recorded before."""
    user, host, dbname = match["user"], match["host"], match["dbname"]
    address = "postgresql://" if user is None else f"postgresql://{quote(unquote(user), safe=' +')}@"
    port = str(int(match["port"])) if match["port"] else ""
    address += (host or "") + (f":{port}" if port else "")
    address += "" if dbname is None else f"/{quote(unquote(dbname), safe=' +/')}"
    if query:
        address += "?" + "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(query, key=_name))
    named = {name: unquote(match[name] or "") for name in ("user", "password", "dbname")}
    named |= {"host": (host or "").strip("[]"), "port": port}
    options = {name: value for name, value in named.items() if value}
    repeated = {name: [value for other, value in query if other == name] for name, _ in query}
    options |= {name: ",".join(values) for name, values in repeated.items()}
    hosts = [_HOST_AND_PORT.fullmatch(host) for host in repeated.get("host", [])]
    if hosts and all(hosts):  # several hosts, each with its port
        options["host"], options["port"] = (",".join(host[index] for host in hosts if host) for index in (1, 2))
    return Location(None, address, options)


def _name(option: tuple[str, str]) -> str:
    return option[0]


class DatabaseConnection:
    """An open connection. It raises the driver's errors, which `Store` translates. `driver`: the driver's own connection."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.is_sqlite = isinstance(driver, sqlite3.Connection)

    def rows(self, text: str, **values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._execute(text, values).fetchall()
        return rows

    def value(self, text: str, **values: Any) -> Any:
        """Run a SELECT and return the first column of its first row, None without rows."""
        row = self._execute(text, values).fetchone()
        return None if row is None else row[0]

    def run(self, text: str, **values: Any) -> int:
        """Run a statement without a result and return the number of rows that it wrote."""
        written: int = self._execute(text, values).rowcount
        return written

    def run_each(self, text: str, many: Iterable[Mapping[str, Any]]) -> None:
        """Run the statement once for each of `many`, in as few round trips as the driver allows.

        The last run is a separate exchange: after a pipeline of psycopg, which ends with a Flush, PostgreSQL counts no time
        as idle (`idle_in_transaction_session_timeout`), and a client that vanished would keep its locks.
        """
        bound = list(many)
        if len(bound) > 1:
            self.driver.cursor().executemany(self._written(text), bound[:-1])
        for values in bound[-1:]:
            self._execute(text, values)

    def table_names(self) -> set[str]:
        """Return the names of the tables (on a server: those in the schemas of the connection)."""
        return {name for (name,) in self.rows(_SQLITE_TABLES if self.is_sqlite else _POSTGRES_TABLES)}

    def _execute(self, text: str, values: Mapping[str, Any]) -> Any:
        return self.driver.execute(self._written(text), values) if values else self.driver.execute(text)

    def _written(self, text: str) -> str:
        return text if self.is_sqlite else _for_psycopg(text)


@cache
def _for_psycopg(text: str) -> str:
    return _VALUE.sub(r"%(\1)s", text)


_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"
_POSTGRES_TABLES = (
    "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p') AND pg_catalog.pg_table_is_visible(c.oid) AND n.nspname <> 'pg_catalog'"
)


def open_postgresql(options: Mapping[str, Any], timeout_seconds: float) -> Any:
    """Open a connection on which no statement waits much longer than `timeout_seconds` for its reply."""
    from dpsql.storage.patient_connections import TCP_OPTIONS, PatientConnection

    connection = PatientConnection.connect(autocommit=True, **{**TCP_OPTIONS, **options, **_APPLICATION})
    connection.patience_seconds = timeout_seconds + min(timeout_seconds, MOST_GRACE_SECONDS)
    return connection


def open_sqlite(path: Path, timeout_seconds: float) -> tuple[sqlite3.Connection, str]:
    """Open the file with mode=rw: a missing file is an error, never a new empty ledger. Return as well the least setting of
    `synchronous` that keeps the file intact in a power failure."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout_seconds, isolation_level=None, check_same_thread=False
    )
    try:
        # Without WAL (if there is no shared memory), only FULL keeps the file intact.
        lossy = "NORMAL" if _journal_mode(connection, timeout_seconds) == "wal" else "FULL"
        for pragma in ("fullfsync=1", "checkpoint_fullfsync=1", "trusted_schema=0", "secure_delete=1"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection, lossy


def _journal_mode(connection: sqlite3.Connection, timeout_seconds: float) -> str:
    """Switch a new file to WAL and return the mode. SQLite does not wait if two processes try that at once, so we wait."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
        time.sleep(0.002)


def open_copy(path: Path, name: str) -> sqlite3.Connection:
    """Open a copy in memory, because SQLite cannot read a log without writing files beside it. On a read-only mount the file does
    not change meanwhile. Raises Fault ledger_read_only."""
    with tempfile.TemporaryDirectory(prefix="dpsql-") as folder:
        copy = Path(folder) / "ledger.db"
        try:
            for suffix in ("", "-wal"):
                original = path.with_name(path.name + suffix)
                if not suffix or original.exists():
                    shutil.copyfile(original, copy.with_name(copy.name + suffix))
        except OSError as error:
            raise refuse("ledger_read_only", what=name) from error
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        with closing(sqlite3.connect(copy)) as read:
            read.backup(memory)
        return memory


def slug_of(error: Any) -> str:
    """Return the slug for an error of sqlite3 or psycopg; it does not depend on the contents of tables."""
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "") or ""
        return next((slug for start, slug in _SQLITE_SLUGS if name.startswith(start)), "ledger_damaged")
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
