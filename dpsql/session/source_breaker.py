"""A circuit breaker: after a charged fault of the source, questions about its tables are refused without charge.

Otherwise every question about a damaged file would be charged and fail. A fault of the source closes the tables that
the question read, until their data have another version, or for 30 seconds and then twice as long each time. After
that time one question is let through, and its own charge shows whether the table can be read again. The refusal reveals
that a read of this version of the table failed, which the asker who was charged for that read already knows. Faults
are outside the guarantee (privacy.md 9).

If the policy does not name the version of a server's data, each look-up returns another version (`UNNAMED`), which says
nothing about changes: all of these count as one version.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpsql.engine.served_tables import UNNAMED
from dpsql.errors.exceptions import refuse

FIRST_SECONDS, LONGEST_SECONDS = 30.0, 3600.0


@dataclass
class _Closed:
    version: str
    seconds: float
    until: float


class SourceBreaker:
    """The closed tables, shared by concurrent sessions of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._closed: dict[str, _Closed] = {}

    def require_open(self, versions: Mapping[str, str]) -> None:
        """Raise Fault source_closed if a read of one of these tables, in this version, failed recently.

        When the time is over, one question is let through, and the table is closed to others for the same time again.
        """
        with self._lock:
            now = self._clock()
            failed = []
            for table, version in versions.items():
                closed = self._closed.get(table)
                if closed is not None and closed.version != _named(version):
                    del self._closed[table]
                elif closed is not None:
                    failed.append((table, closed))
            for table, closed in failed:
                if now < closed.until:
                    raise refuse("source_closed", table=table)
            for _, closed in failed:
                closed.until = now + closed.seconds

    def failed(self, versions: Mapping[str, str]) -> None:
        """Close the tables of a question during which the source failed."""
        with self._lock:
            for table, version in versions.items():
                before = self._closed.get(table)
                is_same = before is not None and before.version == _named(version)
                seconds = min(2 * before.seconds, LONGEST_SECONDS) if before is not None and is_same else FIRST_SECONDS
                self._closed[table] = _Closed(_named(version), seconds, self._clock() + seconds)

    def succeeded(self, versions: Mapping[str, str]) -> None:
        """Open the tables of a question that was answered."""
        if self._closed:
            with self._lock:
                for table in versions:
                    self._closed.pop(table, None)


def _named(version: str) -> str:
    """Return the version of a table's data, with UNNAMED for every version without a name."""
    return UNNAMED if version.startswith(UNNAMED) else version
