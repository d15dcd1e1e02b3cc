"""The web shop of schemas/policies, without rows, served; and a PostgreSQL with the same tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg

from dpsql.frontends.pgwire.logins import open_logins
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session
from support.places import POLICIES
from support.postgresql_twin import ANALYST, definitions
from support.served_clinic import PASSWORD, Served

_TYPES = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


@contextmanager
def served_shop(folder: Path, state: Path) -> Iterator[str]:
    """Serve the shop from another process, whose state is in `state`; yield the URL at which the analyst connects."""
    path = folder / "shop.yaml"
    path.write_text((POLICIES / "shop.yaml").read_text() + f"analysts: {{{ANALYST}: {{epsilon: 5}}}}\n")
    policy = load_policy(path)
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        for table in policy.tables.values():
            columns = ", ".join(f'"{column.name}" {_TYPES[column.type]}' for column in table.columns.values())
            database.execute(f'CREATE TABLE "{table.name}" ({columns})')
    open_session(path, create_ledger=True).close()
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        open_logins(ledger, policy).add(ANALYST, PASSWORD)
    server = Served(path, state, options=(), dataset="shop").start()
    yield f"postgresql://{ANALYST}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}/shop"
    server.stop()


def create_twin(url: str) -> None:
    """Create the tables of the shop in a database of a real server, and the analyst, who has all rights to them."""
    policy = load_policy(POLICIES / "shop.yaml")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in definitions(policy):
            connection.execute(statement)  # type: ignore[call-overload]
        connection.execute(f"ALTER ROLE {ANALYST} SET timezone = 'UTC'")  # type: ignore[call-overload]
