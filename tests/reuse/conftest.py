"""Each test has a folder of its own with data, policy, ledger and the ledger's second place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.session.opening import open_session
from dpsql.session.session import Session
from reuse.hospital import build


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    return build(tmp_path)


@pytest.fixture
def session(policy: Path) -> Iterator[Session]:
    with open_session(policy, analyst="ann", create_ledger=True) as opened:
        yield opened
