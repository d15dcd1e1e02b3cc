"""Connections to PostgreSQL that give up when the network, or the server, has become silent.

A network that drops packets ends no connection: TCP sends again for a quarter of an hour, and to a server that had confirmed the
last packet there is nothing to send. Therefore `TCP_OPTIONS` lets the kernel ask whether the other end is there, and
`PatientConnection` bounds how long nothing at all arrives while something is expected, whatever is between the two ends (a proxy
may confirm packets that it never forwards).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

TCP_OPTIONS: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
"""Options of libpq, in seconds, except for the last one, in milliseconds. A connection is lost if a sent packet is not confirmed
for that time, and an idle one a minute after the other end is gone; networks that forget idle connections see a packet every 30
s."""


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is closed if its server has sent nothing for `patience_seconds` while a reply was expected (None: for as
    long as TCP waits). The statement then raises psycopg.OperationalError; whether the server ran it is unknown."""

    patience_seconds: float | None = None

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
        """Run the exchange `gen` of psycopg to its end."""
        if self.patience_seconds is None:
            return super().wait(gen, *arguments, **options)
        try:
            readiness = next(gen)
        except StopIteration as end:  # the expected data had arrived before: most rows of a COPY
            return end.value
        try:
            return super().wait(_bounded(gen, readiness, self.patience_seconds), *arguments, **options)
        except _Silence:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"nothing was heard for {self.patience_seconds:g} seconds") from None


class _Silence(Exception):
    """The server has sent nothing for too long."""


def _bounded(gen: Generator[Any, Any, Any], readiness: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Pass on to `gen`, which waits for `readiness`, what psycopg reports: whether the socket is ready (true), or not yet (false,
    ten times a second). Raise _Silence if it has not been ready for `seconds`."""
    heard = time.monotonic()
    try:
        while True:
            ready = yield readiness
            if ready:
                heard = time.monotonic()
            elif time.monotonic() - heard > seconds:
                raise _Silence
            readiness = gen.send(ready)
    except StopIteration as end:
        return end.value
