"""The catalogs of one analyst: their relations, and what was parsed and answered before."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from dpsql.frontends.pgwire.catalog.tables import CatalogContext, CatalogTables
from dpsql.policy import Policy
from dpsql.storage.memory import RecentValues

if TYPE_CHECKING:
    from dpsql.frontends.pgwire.constants.query_syntax import WrittenQuery

__all__ = ["Catalog", "CatalogContext"]

_MOST_REPEATED = 500
_MOST_TEXT, _MOST_ANSWERS_BYTES, _MOST_ANSWER_BYTES = 100_000, 2 << 20, 200_000
CHANGING = re.compile(
    r"\b(?:now|age|today|tomorrow|yesterday|current_(?:date|time|query|connection|transaction)\w*|\w*_timestamp|"
    r"localtime\w*|timeofday|random\w*|array_(?:sample|shuffle)|\w*uuid\w*|pg_backend_pid|set_?seed|set_config|pg_timezone_\w+|xid\w*|pg_stat\w*|pg_sleep\w*|"
    r"pg_prepared_statements?|pg_cursors?|pg_listening_channels|pg_cancel_backend|pg_\w*advisory\w*)\b",
    re.IGNORECASE,
)
"""Words of questions whose answers differ each time, or from one connection to the next, or which change a setting."""


class Catalog:
    """The catalog of one analyst. Thread-safe."""

    def __init__(self, policy: Policy, user: str) -> None:
        self.user = user
        self.tables = CatalogTables(policy, user)
        self.parsed: RecentValues[tuple[tuple[int, ...], exp.Expr | None]] = RecentValues(_MOST_REPEATED, _MOST_TEXT)
        self.selects: RecentValues[WrittenQuery | None] = RecentValues(_MOST_REPEATED, _MOST_TEXT)
        self._types: RecentValues[tuple[Any, ...]] = RecentValues(_MOST_REPEATED, _MOST_TEXT)
        self._answers: RecentValues[tuple[Any, pa.Table] | None] = RecentValues(_MOST_REPEATED, _MOST_ANSWERS_BYTES)

    def typed(self, text: str, state: Hashable, read: Callable[[], tuple[Any, ...]], size: int) -> tuple[Any, ...]:
        """Return what `read` returns, columns and types of parameters, which is kept for the next time unless the text is long.
        `state`, `size`: as of `repeated`."""
        size += len(text)
        return read() if size > _MOST_TEXT else self._types.get((text, state), read, size)

    def repeated(
        self, text: str, state: Hashable, ask: Callable[[], tuple[Any, pa.Table]], size: int = 0
    ) -> tuple[Any, pa.Table]:
        """Return the columns and rows that `ask` returns, which are kept for the next time unless they are large: the rows of the
        catalog never change, and clients read the same ones at each connection, or ask for a constant to see whether the server
        is there. `state`: everything but its text that the answer depends on; `size`: its characters."""
        size += len(text)
        if size > _MOST_TEXT or CHANGING.search(text):
            return ask()
        computed = list[tuple[Any, pa.Table]]()

        def small() -> tuple[Any, pa.Table] | None:
            computed.append(ask())
            return computed[0] if computed[0][1].get_total_buffer_size() <= _MOST_ANSWER_BYTES else None

        answer = self._answers.get(
            (text, state), small, lambda answer: size + int(0 if answer is None else answer[1].get_total_buffer_size())
        )
        return answer if answer is not None else computed[0] if computed else ask()

    def understood(
        self, text: str, declared: tuple[int, ...], parse: Callable[[], tuple[tuple[int, ...], exp.Expr | None]]
    ) -> tuple[tuple[int, ...], exp.Expr | None]:
        """Return what `parse` returns, which is kept for the next time unless the text is long."""
        return parse() if len(text) > _MOST_TEXT else self.parsed.get((text, declared), parse, len(text))
