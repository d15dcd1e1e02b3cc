"""How much of the server clients may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of the server, in seconds, connections and questions that are measured at once.

    One user has at most `concurrency_per_user` of these, by default all but one, so that a place is left for others.
    """

    connections: int = 100
    connections_per_user: int = 64
    concurrency: int = 4
    concurrency_per_user: int | None = None
    login_seconds: float = 30.0
    write_seconds: float = 60.0
    idle_seconds: float = 24 * 3600.0
    drain_seconds: float = 30.0
    failed_login_seconds: float = 0.5
