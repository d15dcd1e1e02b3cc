"""PostgreSQL's catalogs (pg_catalog, information_schema), answered from the policy alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable

import pyarrow as pa
from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.coercion import output_oids
from dpsql.frontends.pgwire.catalog.database import image
from dpsql.frontends.pgwire.catalog.reading import our_refusal
from dpsql.frontends.pgwire.catalog.rewrite import CatalogContext, to_duckdb
from dpsql.frontends.pgwire.constants.query_syntax import WrittenQuery
from dpsql.policy import Policy
from dpsql.release.confinement import ConfinedError, ConfinedPool
from dpsql.storage.memory import RecentValues

__all__ = ["Catalog", "CatalogContext"]

TIMEOUT_SECONDS = 5.0
MOST_ROWS = 100_000
_MOST_REPEATED = 500
_MOST_TEXT, _MOST_ANSWERS_BYTES, _MOST_ANSWER_BYTES = 100_000, 2 << 20, 200_000
CHANGING = re.compile(
    r"\b(?:now|age|today|tomorrow|yesterday|current_(?:date|time|query|connection|transaction)\w*|\w*_timestamp|"
    r"localtime\w*|timeofday|random|\w*uuid\w*|pg_backend_pid|set_?seed|(?:next|curr|set)val|\w+_ms|error|stats|write_log|"
    r"vector_type)\b|get_current|current_local",
    re.IGNORECASE,
)
"""Words of questions whose answers differ each time, or from one connection to the next."""


class Catalog:
    """The catalog of one analyst. Thread-safe."""

    def __init__(self, policy: Policy, user: str, pool: ConfinedPool) -> None:
        """`pool`: the worker processes, shared by the analysts of a server."""
        self.user = user
        self.database = policy.dataset
        self.tables = {table.name.lower(): table.shown_schema.lower() for table in policy.visible.values()}
        self.image, self.names = image(policy, user)
        self._pool = pool
        self.parsed: RecentValues[tuple[str, tuple[int, ...], exp.Expr | None]] = RecentValues(
            _MOST_REPEATED, _MOST_TEXT
        )
        self.selects: RecentValues[WrittenQuery | None] = RecentValues(_MOST_REPEATED, _MOST_TEXT)
        self._answers: RecentValues[pa.Table | None] = RecentValues(_MOST_REPEATED, _MOST_ANSWERS_BYTES)

    def repeated(self, text: str, state: Hashable, ask: Callable[[], pa.Table], size: int = 0) -> pa.Table:
        """Return what `ask` returns, which is kept for the next time unless it is large: the rows of the catalog never change,
        and clients read the same ones at each connection, or ask for a constant to see whether the server is there. `state`:
        everything but its text that the answer depends on; `size`: its characters."""
        size += len(text)
        if size > _MOST_TEXT or CHANGING.search(text):
            return ask()
        computed = list[pa.Table]()

        def small() -> pa.Table | None:
            computed.append(ask())
            return computed[0] if computed[0].get_total_buffer_size() <= _MOST_ANSWER_BYTES else None

        rows = self._answers.get(
            (text, state), small, lambda rows: size + int(rows.get_total_buffer_size() if rows is not None else 0)
        )
        return rows if rows is not None else computed[0] if computed else ask()

    def understood(
        self, text: str, declared: tuple[int, ...], parse: Callable[[], tuple[str, tuple[int, ...], exp.Expr | None]]
    ) -> tuple[str, tuple[int, ...], exp.Expr | None]:
        """Return what `parse` returns, which is kept for the next time unless the text is long."""
        return parse() if len(text) > _MOST_TEXT else self.parsed.get((text, declared), parse, len(text))

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
    ) -> pa.Table:
        """Return the columns of one SELECT, as a table without rows, without running it; `started` as in `run`."""
        rows = self._rows(tree, f"SELECT * FROM ({to_duckdb(tree, context)}) LIMIT 0", 0, started)
        return _with_oids(self.names.with_texts(rows, context.path), tree)

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
