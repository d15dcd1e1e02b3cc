"""Measuring locks: who holds one, and what their counters prove about the time since the store was read."""

import os
from pathlib import Path

import pytest
from support.noted_engine import spent

from dpsql.reuse.single_flight import UNKNOWN, measuring_lock, read_stamp
from dpsql.session.session import open_session

COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
NAME, NEIGHBOUR, OTHER = "0" * 64, "000" + "1" * 61, "2" * 64


# --- the counter ----------------------------------------------------------------------------------------------------


def test_a_turn_that_nobody_had_since_the_stamp_proves_it(tmp_path: Path) -> None:
    for _ in range(3):
        with measuring_lock(tmp_path, {NAME: read_stamp(tmp_path, NAME), OTHER: None}, 1) as alone:
            assert alone


@pytest.mark.parametrize("name", [NAME, NEIGHBOUR])
def test_a_turn_between_the_stamp_and_mine_is_seen(tmp_path: Path, name: str) -> None:
    before = read_stamp(tmp_path, NAME)
    with measuring_lock(tmp_path, {name: None}, 1):
        pass
    with measuring_lock(tmp_path, {NAME: before}, 1) as alone:
        assert not alone


def test_a_turn_that_is_held_while_the_stamp_is_read_is_seen(tmp_path: Path) -> None:
    with measuring_lock(tmp_path, {NAME: None}, 1):
        before = read_stamp(tmp_path, NAME)
        assert before[1] % 2 == 1, "a holder that is killed from here on has left its trace"
    with measuring_lock(tmp_path, {NAME: before}, 1) as alone:
        assert not alone


def test_a_turn_whose_holder_was_killed_proves_nothing(tmp_path: Path) -> None:
    with measuring_lock(tmp_path, {NAME: None}, 1):
        pass
    killed = int.from_bytes((tmp_path / "000").read_bytes(), "little") + 1
    (tmp_path / "000").write_bytes(killed.to_bytes(8, "little"))
    with measuring_lock(tmp_path, {NAME: read_stamp(tmp_path, NAME)}, 1) as alone:
        assert not alone
    with measuring_lock(tmp_path, {NAME: read_stamp(tmp_path, NAME)}, 1) as alone:
        assert alone, "the next holder puts the counter right"


def test_waiting_that_ends_too_early_proves_nothing(tmp_path: Path) -> None:
    before = read_stamp(tmp_path, NAME)
    with measuring_lock(tmp_path, {NAME: None}, 1), measuring_lock(tmp_path, {NAME: before}, 0.05) as alone:
        assert not alone


def test_a_folder_that_was_put_away_meanwhile_proves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "turns"
    before = read_stamp(folder, NAME)
    os.rename(folder, tmp_path / "away")
    with measuring_lock(folder, {NAME: before}, 1) as alone:
        assert not alone


def test_a_folder_that_cannot_be_used_means_no_waiting_and_no_proof(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read_stamp(tmp_path / "file", NAME) == UNKNOWN
    with measuring_lock(tmp_path / "file", {NAME: UNKNOWN}, 1) as alone:
        assert not alone


# --- one look-up per charge -----------------------------------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of keys looked up in the store, in order."""
    from dpsql.reuse.store import ReleaseStore

    asked: list[str] = []
    original = ReleaseStore.nearest

    def nearest(store: ReleaseStore, key: str, block: str) -> object:
        asked.append(key)
        return original(store, key, block)

    monkeypatch.setattr(ReleaseStore, "nearest", nearest)
    return asked


def test_a_charge_takes_one_look_in_the_store(policy: Path, looks: list[str]) -> None:
    with open_session(policy, create_ledger=True) as session:
        session.execute(COUNT)
        assert len(looks) == 1 and spent(session) != "0"
        session.execute("SELECT COUNT(*) FROM patients WHERE age > 40")
        assert len(looks) == 2


@pytest.mark.parametrize("request_id", [None, "same"])
@pytest.mark.parametrize("reuse", ["on", "off"])
def test_an_answer_that_is_stored_after_the_look_is_not_paid_twice(
    policy: Path, monkeypatch: pytest.MonkeyPatch, reuse: str, request_id: str | None
) -> None:
    """The other asker stores the answer while this one, after an unsuccessful look-up, waits for a place at the data."""
    with open_session(policy, create_ledger=True) as session, open_session(policy) as other:
        for asker in (session, other):
            asker.execute(f"SET dp.reuse = {reuse}")
        place = session.context.queue.place

        def later(work: object) -> object:
            other.execute(COUNT, request_id=request_id)
            return place(work)  # type: ignore[arg-type]

        monkeypatch.setattr(session.context.queue, "place", later)
        release = session.execute(COUNT, request_id=request_id)
        paid_once = reuse == "on" or request_id is not None
        assert release.reused is paid_once
        once = release.receipt.charged if not paid_once else ""
        assert session.budget().spent == other.budget().spent and (once or release.loss.epsilon == 0)
        charges = [entry for entry in session.ledger.history() if entry.kind == "charge"]
        assert len(charges) == (1 if paid_once else 2)
