"""PostgreSQL's catalogs (pg_catalog, information_schema), answered from the policy alone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.database import image
from dpsql.frontends.pgwire.catalog.engine_errors import our_refusal
from dpsql.frontends.pgwire.catalog.naming import output_oids
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext, to_duckdb
from dpsql.policy import Policy
from dpsql.release.confinement import ConfinedError, ConfinedPool

__all__ = ["Catalog", "CatalogContext"]

TIMEOUT_SECONDS = 5.0
MOST_ROWS = 100_000


class Catalog:
    """The catalog of one analyst. Thread-safe."""

    def __init__(self, policy: Policy, user: str, pool: ConfinedPool) -> None:
        """`pool`: the worker processes, shared by the analysts of a server."""
        self.user = user
        self.database = policy.dataset
        self.tables = {table.name.lower(): table.shown_schema.lower() for table in policy.visible.values()}
        self.image, self.names = image(policy, user)
        self._pool = pool

    def load(self) -> None:
        """Load the catalog before the first query."""
        with self._pool.lent(self.user, self.image) as confined:
            confined.load(self.image)

    def run(
        self, tree: exp.Expr, context: CatalogContext, started: Callable[[Callable[[], None]], None] | None = None
    ) -> pa.Table:
        """Return the rows of one SELECT; `started` is called with a function that interrupts it. Raises refusals with
        PostgreSQL's SQLSTATEs."""
        rows = self._rows(tree, to_duckdb(tree, context), MOST_ROWS, started)
        return _with_oids(self.names.with_texts(rows, context.path), tree)

    def describe(
        self, tree: exp.Expr, context: CatalogContext, started: Callable[[Callable[[], None]], None] | None = None
    ) -> pa.Schema:
        """Return the columns of one SELECT without running it; `started` as in `run`."""
        rows = self._rows(tree, f"SELECT * FROM ({to_duckdb(tree, context)}) LIMIT 0", 0, started)
        return _with_oids(self.names.with_texts(rows, context.path), tree).schema

    def _rows(
        self, tree: exp.Expr, sql: str, most_rows: int, started: Callable[[Callable[[], None]], None] | None
    ) -> pa.Table:
        waiting = _Waiting()
        if started is not None:
            started(waiting.stop)
        with self._pool.lent(self.user, self.image, waiting.check) as confined:
            waiting.running = confined.interrupt
            waiting.check()
            try:
                return confined.query(self.image, sql, {}, most_rows=most_rows, seconds=TIMEOUT_SECONDS)
            except ConfinedError as error:
                raise our_refusal(error, tree) from None
            finally:
                waiting.ended()


def _with_oids(rows: pa.Table, tree: exp.Expr) -> pa.Table:
    """Return the rows with the OIDs of names and of JSON, which are texts in DuckDB, beside their columns."""
    oids = output_oids(tree) if isinstance(tree, exp.Query) else {}
    fields = [
        field.with_metadata({b"oid": str(oids[position]).encode()}) if position in oids else field
        for position, field in enumerate(rows.schema)
    ]  # fmt: skip
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


class _Waiting:
    """One running query, which can be interrupted while it waits for a worker process, or by ending its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running: Callable[[], None] | None = None
        self._stopped = False

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self.running is not None:
                self.running()

    def check(self) -> None:
        if self._stopped:
            raise refuse("sandbox_time")

    def ended(self) -> None:
        """Detach from the process, which another query may use from here on."""
        with self._lock:
            self.running = None
