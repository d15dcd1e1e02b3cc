"""A source that fails must not burn the budget: after a charged fault, questions about its tables are refused uncharged.

Every question about a table whose file is damaged is charged and fails. So a fault of the source closes the tables that the
question read: until their data are another version, or for 30 seconds and then twice as long each time. When such a time is
over one question goes through, and its own charge tells whether the table can be read again.

What a refusal tells, that a read of this version of the table failed, was told to whoever was charged for that read. Faults
are outside of the guarantee (privacy.md 9).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpsql.errors.exceptions import refuse

FIRST_SECONDS, LONGEST_SECONDS = 30.0, 3600.0


@dataclass
class _Closed:
    version: str
    seconds: float
    until: float


class SourceBreaker:
    """Which tables are closed. Shared by the sessions that measure beside each other."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._closed: dict[str, _Closed] = {}

    def require_open(self, versions: Mapping[str, str]) -> None:
        """Raises Fault source_closed when a read of one of these tables, in this version, failed lately.

        After the time of a failure this lets one question through, and closes the table to others for as long again.
        """
        with self._lock:
            now = self._clock()
            failed = []
            for table, version in versions.items():
                closed = self._closed.get(table)
                if closed is not None and closed.version != version:
                    del self._closed[table]
                elif closed is not None:
                    failed.append((table, closed))
            for table, closed in failed:
                if now < closed.until:
                    raise refuse("source_closed", table=table)
            for _, closed in failed:
                closed.until = now + closed.seconds

    def failed(self, versions: Mapping[str, str]) -> None:
        """Close the tables that a question read when the source failed."""
        with self._lock:
            for table, version in versions.items():
                before = self._closed.get(table)
                known = before is not None and before.version == version
                seconds = min(2 * before.seconds, LONGEST_SECONDS) if before is not None and known else FIRST_SECONDS
                self._closed[table] = _Closed(version, seconds, self._clock() + seconds)

    def succeeded(self, versions: Mapping[str, str]) -> None:
        """Open the tables of a question that was answered."""
        if self._closed:
            with self._lock:
                for table in versions:
                    self._closed.pop(table, None)
