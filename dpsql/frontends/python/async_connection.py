"""`await dpsql.aconnect(...)`: a connection for programs on asyncio, which runs the usual connection in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from dpsql.frontends.python.dbapi import Connection, connect

if TYPE_CHECKING:
    from dpsql.policy import Policy
    from dpsql.release.release import Release
    from dpsql.session.budget import Budget
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.sql.parse import Parameters

_Value = TypeVar("_Value")


async def aconnect(
    policy: str | Path | Policy,
    analyst: str | None = None,
    source: Any = None,
    *,
    project: str | None = None,
    create_ledger: bool = False,
) -> AsyncConnection:
    """Open a policy as `connect` does, without blocking the event loop. Raises what `connect` raises."""
    opened = partial(connect, policy, analyst, source, project=project, create_ledger=create_ledger)
    return AsyncConnection(await asyncio.to_thread(opened))


class AsyncConnection:
    """A connection whose questions are awaited. Cancelling a task ends its wait; what was charged stays charged."""

    def __init__(self, connection: Connection) -> None:
        """Take a `connection`, which is closed with this one."""
        self.connection = connection

    async def execute(self, operation: str, parameters: Parameters = None) -> Release:
        """Return the answer of one statement, with error bars, price and receipt. Raises what `Cursor.execute` raises."""
        return await self._in_thread(lambda: self.connection.execute(operation, parameters).release)

    async def explain(self, operation: str, parameters: Parameters = None) -> PrivacyPlan:
        """Return the privacy plan and price of a query; nothing is charged and data is not touched."""
        return await self._in_thread(lambda: self.connection.explain(operation, parameters))

    async def budget(self) -> Budget:
        """Return the amounts spent and remaining of each scope that this connection's charges must fit."""
        return await self._in_thread(lambda: self.connection.budget)

    async def close(self) -> None:
        """Close the connection. Closing again does nothing."""
        await asyncio.to_thread(self.connection.close)

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _in_thread(self, work: Callable[[], _Value]) -> _Value:
        """Run `work` in a thread. If the wait is cancelled, interrupt the session, because nobody reads the answer any more."""
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self.connection.interrupt()
            raise
