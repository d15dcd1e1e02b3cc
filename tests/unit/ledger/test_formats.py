"""Ledgers and stores of every format are read by this version."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ledger_formats import FORMATS, SQL, opened_copy

from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.ledger.database import parse_location
from dpsql.ledger.opening import FORMAT
from dpsql.ledger.store import Store
from dpsql.policy import load_policy
from dpsql.reuse.store import FORMAT as STORE_FORMAT
from dpsql.session.session import open_session

NUMBERS = sorted(path.name for path in FORMATS.iterdir() if path.is_dir())


def test_every_format_is_kept_here() -> None:
    assert list(map(int, NUMBERS)) == list(range(1, max(FORMAT, STORE_FORMAT) + 1))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_ledger_of_that_format_goes_on_with_its_charges_and_releases(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = opened_copy(number, tmp_path / "copy")
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "copy" / "state"))
    with open_session(policy, analyst="ann") as session:
        spent = session.ledger.spent()
        assert spent["rho"] > 0 and session.ledger.verify().sound
        release = session.execute(SQL)
        assert release.receipt.reused and session.ledger.spent() == spent
        assert repr(release.table.to_pylist()) == (tmp_path / "copy" / "answer.txt").read_text()
        session.execute("SELECT COUNT(*) AS n FROM a WHERE v > 2")
        assert session.ledger.verify().sound


def test_a_ledger_of_another_format_is_refused(tmp_path: Path) -> None:
    policy = load_policy(opened_copy(NUMBERS[-1], tmp_path / "copy"))
    store = Store(parse_location(policy.ledger_url()))
    with store.writing() as connection:
        connection.run("UPDATE dpsql_format SET version = :version", version=FORMAT + 1)
    store.close()
    with pytest.raises(Error) as caught:
        open_ledger(policy.ledger_url(), policy.dataset, state=tmp_path / "copy" / "state")
    assert caught.value.slug == "ledger_format" and "the version of dpsql that wrote it" in caught.value.hint
