"""PostgreSQL's catalogs (pg_catalog, information_schema), answered from the policy alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.catalog.database import image
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext, to_duckdb
from dpsql.policy import Policy
from dpsql.release.confinement import ConfinedError, ConfinedPool

__all__ = ["Catalog", "CatalogContext"]

TIMEOUT_SECONDS = 5.0
MOST_ROWS = 100_000
_FUNCTION = re.compile(r"[Ff]unction(?: with name)? \"?(\w+)|function '(\w+)")
_CALL = re.compile(r"(?:argument types '|function call \")([^\s(]+)\(")
_COLUMN = re.compile(r"column (?:named )?\"?([^\s\"]+)")
_UNGROUPED = re.compile(r"column \"?([^\s\"]+)\"? must appear in the GROUP BY")


class Catalog:
    """The catalog of one analyst. Thread-safe."""

    def __init__(self, policy: Policy, user: str, pool: ConfinedPool) -> None:
        """`pool`: the worker processes, shared by the analysts of a server."""
        self.user = user
        self.database = policy.dataset
        self.oids = PolicyRows(policy, user).oids
        self.tables = {table.name.lower(): table.shown_schema.lower() for table in policy.visible.values()}
        self.image = image(policy, user)
        self._pool = pool

    def load(self) -> None:
        """Load the catalog before the first query."""
        with self._pool.lent(self.user, self.image) as confined:
            confined.load(self.image)

    def run(
        self, tree: exp.Expr, place: CatalogContext, started: Callable[[Callable[[], None]], None] | None = None
    ) -> pa.Table:
        """Return the rows of one SELECT; `started` is called with a function that interrupts it. Raises refusals with
        PostgreSQL's SQLSTATEs."""
        return self._rows(to_duckdb(tree, place), MOST_ROWS, started)

    def describe(
        self, tree: exp.Expr, place: CatalogContext, started: Callable[[Callable[[], None]], None] | None = None
    ) -> pa.Schema:
        """Return the columns of one SELECT without running it; `started` as in `run`."""
        return self._rows(f"SELECT * FROM ({to_duckdb(tree, place)}) LIMIT 0", 0, started).schema

    def _rows(self, sql: str, most_rows: int, started: Callable[[Callable[[], None]], None] | None) -> pa.Table:
        waiting = _Waiting()
        if started is not None:
            started(waiting.stop)
        with self._pool.lent(self.user, self.image, waiting.check) as confined:
            waiting.running = confined.interrupt
            waiting.check()
            try:
                return confined.query(self.image, sql, {}, most_rows=most_rows, seconds=TIMEOUT_SECONDS)
            except ConfinedError as error:
                raise _our_refusal(error) from None
            finally:
                waiting.ended()


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


def _our_refusal(error: Exception) -> Error:
    """Return the refusal for an engine error. Only names in the analyst's own text are taken from the error."""
    text = str(error)
    kind = text.partition(" Error:")[0]
    if kind == "INTERRUPT":
        return refuse("sandbox_time")
    if kind == "Out of Memory":
        return refuse("sandbox_memory")
    if kind in ("Conversion", "Invalid Input", "Out of Range"):
        return refuse("catalog_value")
    call = _CALL.search(text)
    if kind == "Binder" and call is not None:
        name = call.group(1).removeprefix("pgf_")
        return refuse("unknown_function", name=name) if name.isidentifier() else refuse("catalog_operator", name=name)
    ungrouped = _UNGROUPED.search(text)
    if kind == "Binder" and ungrouped is not None:
        return refuse("catalog_ungrouped", name=ungrouped.group(1))
    function = _FUNCTION.search(text)
    if function is not None and "does not exist" in text:
        return refuse("unknown_function", name=(function.group(1) or function.group(2)).removeprefix("pgf_"))
    column = _COLUMN.search(text)
    if kind == "Binder" and column is not None:
        return refuse("unknown_column", name=column.group(1))
    return refuse("catalog_query")
