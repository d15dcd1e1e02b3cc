"""A session on the real DuckDB engine that records its queries and the charges that preceded them."""

from dataclasses import replace
from pathlib import Path

import duckdb

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.query import EngineQuery
from dpsql.ledger import open_ledger
from dpsql.noise.perturb import Gate
from dpsql.policy import load_policy
from dpsql.reuse.store import open_releases
from dpsql.session.session import Session


class NotedEngine(DuckDBEngine):
    """The real engine, which records the spent budget at each query and can be made to fail at one of them."""

    session: Session
    asked: list[tuple[str, EngineQuery]]
    failing: int = -1

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        self.asked.append((spent(self.session), query))
        if len(self.asked) - 1 == self.failing:
            query = replace(query, sql="SELECT CAST('secret-cell-4711' AS INTEGER)")
        return super().run(query, timeout_seconds)


def noted_session(path: Path, gate: Gate | None = None, create: bool = True) -> tuple[Session, NotedEngine]:
    """Return a session on the policy in a file, and its engine. `create`: create a new ledger."""
    policy = load_policy(path)
    connection = duckdb.connect(policy.source_path() or "", read_only=True)
    ledger = open_ledger(policy.ledger_url(), policy.dataset, create=create)
    engine = NotedEngine(connection, policy, "fixed", owned=True)
    engine.session = Session(policy, engine, ledger, open_releases(ledger), gate=gate)
    engine.asked = []
    return engine.session, engine


def spent(session: Session) -> str:
    """Return the epsilon that the whole dataset has lost."""
    return session.budget().spent["dataset"]["epsilon"]
