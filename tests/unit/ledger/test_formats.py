"""Ledgers and stores of every released format are read, or upgraded, by this version."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ledger_formats import FORMATS, SQL, opened_copy

from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.opening import FORMAT, STEPS, migrate
from dpsql.policy import load_policy
from dpsql.reuse.store import FORMAT as STORE_FORMAT
from dpsql.session.session import open_session

NUMBERS = sorted(path.name for path in FORMATS.iterdir() if path.is_dir())


def test_every_format_is_kept_here() -> None:
    """Formats of the ledger's tables and of the store beside them are numbered together."""
    assert list(map(int, NUMBERS)) == list(range(1, max(FORMAT, STORE_FORMAT) + 1))
    assert set(STEPS) == set(range(1, FORMAT)), "a step from each format to the next"


@pytest.mark.parametrize("number", NUMBERS)
def test_a_ledger_of_that_format_goes_on_with_its_charges_and_releases(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = opened_copy(number, tmp_path / "copy")
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "copy" / "state"))
    assert migrate(load_policy(policy).ledger_url())[1] == FORMAT
    with open_session(policy, analyst="ann") as session:
        spent = session.ledger.spent()
        assert spent["rho"] > 0 and session.ledger.verify().sound
        release = session.execute(SQL)
        assert release.receipt.reused and session.ledger.spent() == spent
        assert repr(release.table.to_pylist()) == (tmp_path / "copy" / "answer.txt").read_text()
        session.execute("SELECT COUNT(*) AS n FROM a WHERE v > 2")
        assert session.ledger.verify().sound


def test_an_older_ledger_is_brought_forward_with_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are the test's own, because only one format exists so far."""
    policy = load_policy(opened_copy(NUMBERS[-1], tmp_path / "copy"))
    state, url = tmp_path / "copy" / "state", policy.ledger_url()
    done: list[str] = []

    def first(connection: DatabaseConnection) -> None:
        done.append("first")
        connection.run("CREATE TABLE dpsql_added (x INTEGER)")

    def second(connection: DatabaseConnection) -> None:
        done.append("second")
        connection.run("INSERT INTO dpsql_added VALUES (1)")

    def broken(connection: DatabaseConnection) -> None:
        connection.run("CREATE TABLE dpsql_broken (x INTEGER)")
        raise KeyError

    start = {FORMAT: first, FORMAT + 1: second}
    with pytest.raises(KeyError):
        migrate(url, steps={FORMAT: first, FORMAT + 1: broken}, version=FORMAT + 2)
    copy = tmp_path / "copy" / f"ledger.db.format{FORMAT}"
    assert copy.stat().st_mode & 0o777 == 0o600
    with open_ledger(url, policy.dataset, state=state) as ledger:
        assert ledger.verify().sound, "a step that fails changes nothing"
    copy.unlink()
    done.clear()
    assert migrate(url, steps=start, version=FORMAT + 2) == (FORMAT, FORMAT + 2, copy)
    assert done == ["first", "second"]
    with pytest.raises(Error) as caught:
        open_ledger(url, policy.dataset, state=state)
    assert caught.value.slug == "ledger_format" and "dpsql migrate" in caught.value.hint
    assert migrate(url, steps=start, version=FORMAT + 2)[2] is None
    for steps, wanted in ((start, FORMAT), ({}, FORMAT + 3)):
        with pytest.raises(Error) as caught:
            migrate(url, steps=steps, version=wanted)
        assert caught.value.slug == "ledger_format"
