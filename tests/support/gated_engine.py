"""The clinic served by an engine whose scans end when a test allows it, so that no test depends on a clock."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.errors.exceptions import refuse
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire.connection import Limits
from dpsql.reuse import single_flight
from support.served_clinic import Served, serving

PATIENCE = 240


class Gated(DuckDBEngine):
    """An engine whose scans wait for `go_on`. Setting `interrupted` ends a scan with an error, as the engine's own interrupt
    does."""

    begun = threading.Event()
    go_on = threading.Event()
    interrupted = threading.Event()
    scans = 0
    limits: list[float | None] = []  # noqa: RUF012

    def run(self, query: Any, timeout_seconds: float | None = None) -> Any:
        Gated.scans += 1
        self.limits.append(timeout_seconds)
        self.begun.set()
        for _ in range(PATIENCE * 100):
            if self.interrupted.is_set():
                raise refuse("engine_failed", incident="test")
            if self.go_on.wait(0.01):
                return super().run(query, timeout_seconds)
        raise AssertionError("nobody let the scan go on")

    def interrupt(self) -> None:
        self.interrupted.set()

    def another(self) -> "Gated":
        found = super().another()
        found.__class__ = Gated
        assert isinstance(found, Gated)
        return found

    @classmethod
    def reset(cls) -> None:
        cls.begun.clear()
        cls.go_on.clear()
        cls.interrupted.clear()
        cls.scans = 0
        cls.limits.clear()


@contextmanager
def gated(clinic: Served, policy: Path | None = None, limits: Limits | None = None) -> Iterator[int]:
    """Serve the clinic from this process and yield the port. Queries get separate lock files, so that no query waits for an
    unrelated one."""
    state = open_server_state(policy or clinic.policy)
    state.engine.__class__ = Gated
    Gated.reset()
    with pytest.MonkeyPatch.context() as patch, serving(state, limits) as port:
        patch.setattr(single_flight, "DIGITS", 32)
        try:
            yield port
        finally:
            Gated.go_on.set()
