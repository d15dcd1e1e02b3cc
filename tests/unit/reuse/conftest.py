"""Fixtures: each test has a separate folder with data, policy, ledger and the ledger's state directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hospital_file import build
from support.ledger_homes import home, postgres, postgres_home, sqlite_home

from dpsql.session.session import Session, open_session

__all__ = ["home", "policy", "postgres", "postgres_home", "session", "sqlite_home"]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.fixture
def session(policy: Path) -> Iterator[Session]:
    with open_session(policy, analyst="ann", create_ledger=True) as opened:
        yield opened
