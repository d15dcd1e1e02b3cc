"""Opening of a session from a policy: its engine, its ledger and its store of releases."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.policy import Policy, load_policy
from dpsql.policy.reach import is_file
from dpsql.reuse.questions import open_questions
from dpsql.reuse.store import open_releases
from dpsql.session.session import Session


def source_fingerprint(policy: Policy) -> str | None:
    """Return the SHA-256 (hex) of the location of a policy's data, which identifies ledgers over the same data; None
    if the policy names no location."""
    if policy.source is None and not any(table.source for table in policy.tables.values()):
        return None
    source = policy.source or ""
    location = source if is_file(source) or "://" not in source else policy.source_path() or source
    parts = sorted({location, *map(policy.table_source, policy.tables)})
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def open_session(
    policy: str | Path | Policy,
    *,
    analyst: str | None = None,
    project: str | None = None,
    source: Any = None,
    create_ledger: bool = False,
) -> Session:
    """Open a policy, its data and its ledger, and return the session.

    `analyst` and `project`: their accounts are charged in addition to the dataset's. `source`: a DuckDB connection or Arrow
    tables instead of the policy's own source. `create_ledger` is the owner's explicit decision for a data set that never
    had a ledger. Raises PolicyRefusal, Fault, IntegrityError.
    """
    checked = policy if isinstance(policy, Policy) else load_policy(policy)
    engine = open_engine(checked, source)
    try:
        ledger = open_ledger(
            checked.ledger_url(),
            checked.dataset,
            create=create_ledger,
            source=source_fingerprint(checked),
            witness=checked.witness,
        )
        return Session(
            checked, engine, ledger, open_releases(ledger, checked.store), analyst=analyst, project=project,
            questions=open_questions(ledger, checked),
        )  # fmt: skip
    except Error:
        engine.close()
        raise
