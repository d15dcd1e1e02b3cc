"""The smallest engine from outside: `tiny://FILE` reads a DuckDB file beside the policy. Its entry point names `ENGINE`."""

from dataclasses import replace

from dpsql.engine.duckdb.engine import DuckDBEngine, open_duckdb
from dpsql.policy import Policy
from dpsql.policy.source_kinds import OutsideEngine, SourceKind


class Tiny:
    """No engine: what an entry point must not name."""


def open_tiny(policy: Policy) -> DuckDBEngine:
    """Return the engine of a policy."""
    file = (policy.source or "").removeprefix("tiny://")
    return open_duckdb(replace(policy, source=f"duckdb:///{file}"))


ENGINE = OutsideEngine(SourceKind("tiny", "tiny://FILE"), open_tiny)
