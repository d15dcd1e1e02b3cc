"""Data of one asker are not available to others: unshared releases, and request ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from support.hospital_file import build

from dpsql.frontends.cli.ledger_rows import charge_rows
from dpsql.ledger.records import charge_id, request_of
from dpsql.release.release import Release
from dpsql.session.session import Session, open_session

COUNT = "SELECT COUNT(*) FROM patients"
Opener = Callable[[str | None], Session]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Yield a function that opens sessions of one ledger; releases are not shared."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    path = build(tmp_path, reuse="{shared: false}")
    open_session(path, create_ledger=True).close()
    sessions = []

    def start(analyst: str | None) -> Session:
        sessions.append(open_session(path, analyst=analyst))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


def shown(release: Release) -> list[tuple[object, ...]]:
    return list(release.rows())


def test_an_analyst_has_no_part_in_the_owners_releases(opened: Opener) -> None:
    owner, analyst = opened(None), opened("ann")
    owner.execute(COUNT)
    assert not analyst.explain(COUNT).stored
    answer = analyst.execute(COUNT)
    assert not answer.reused
    assert analyst.budget().spent["analyst:ann"]["epsilon"] == "1"
    assert owner.execute(COUNT).receipt_id != answer.receipt_id
    assert analyst.execute(COUNT).receipt_id == answer.receipt_id


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (first, second)
        for first, second in product(["ann", None], ["bob", None])
        if first != second  # equal names are the same asker
    ],
)
def test_a_request_id_tells_nothing_to_others_and_cannot_be_taken_from_its_asker(
    opened: Opener, first: str | None, second: str | None
) -> None:
    one, other = opened(first), opened(second)
    answer = one.execute(COUNT, request_id="r1")
    taken = other.execute("SELECT SUM(age) FROM patients", request_id="r1")
    assert not taken.reused
    assert taken.receipt_id == "r1"
    again = one.execute(COUNT, request_id="r1")
    assert again.reused
    assert shown(again) == shown(answer)
    receipts = [row[-1] for row in charge_rows(one.ledger)[1]]
    assert receipts == ["r1", "r1"]
    assert one.ledger.verify().sound


def test_ids_of_different_askers_are_different_whatever_they_are_called() -> None:
    """A policy accepts no analyst called owner; a ledger of an earlier version may have charges of one."""
    ids = {charge_id(*pair) for pair in [("a/b", "c"), ("a", "b/c"), (None, "b/c"), ("owner", "b/c"), ("a%2Fb", "c")]}
    assert len(ids) == 5
    assert [request_of(charge_id(who, "b/c")) for who in (None, "a/b")] == ["b/c", "b/c"]
    assert request_of("0123abcd") == "0123abcd"
