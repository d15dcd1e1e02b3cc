"""A checkpoint shortens the opening of a long ledger, and changes nothing that opening it finds."""

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import Error, IntegrityError
from dpsql.ledger import check
from dpsql.ledger.accounts import pages
from dpsql.ledger.check import CHECKPOINT, LedgerReplay
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import Entry


@pytest.fixture(autouse=True)
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Write a checkpoint at each opening that replays anything; yield the numbers of the entries that were replayed."""
    numbers: list[int] = []
    take = LedgerReplay.take

    def noted(self: LedgerReplay, entry: Entry) -> None:
        numbers.append(entry.seq)
        take(self, entry)

    monkeypatch.setattr(LedgerReplay, "take", noted)
    monkeypatch.setattr(check, "REPLAYED", 0)
    return numbers


def checkpoint_of(ledger: Ledger) -> Path:
    return ledger.witness.directory / CHECKPOINT


def state_of(ledger: Ledger) -> tuple[dict[str, object], dict[str, object]]:
    """Return the state of a whole replay, and that of one which resumes at the checkpoint."""
    with ledger.store.reading() as connection:
        whole, resumed = LedgerReplay(ledger.witness, "clinic"), check._resumed(connection, ledger.witness, "clinic")
        assert resumed is not None
        for replay in (whole, resumed):
            for entry in pages(connection, replay.last.seq):
                replay.take(entry)
    return whole.facts(), resumed.facts()


def act(ledger: Ledger, chance: random.Random, number: int) -> None:
    """Change a ledger in a random way; charges that do not fit are refused."""
    analyst = chance.choice(("ann", "bob"))
    with suppress(Error):
        match chance.randrange(6):
            case 0:
                limits = {"epsilon": chance.randrange(1, 9) * EPSILON, "delta": 0}
                ledger.open_account(f"analyst:{analyst}", "pure", limits)
            case 1:
                ledger.reserve(charge(number, chance.randrange(3) * EPSILON))
            case 2:
                ledger.reserve(charge(number, EPSILON, scopes=("dataset", f"analyst:{analyst}"))).commit()
            case 3:
                ledger.reserve(charge(number)).fail()
            case _:
                ledger.reserve(charge(number, EPSILON // 1000)).commit()


@pytest.mark.parametrize("seed", range(6))
def test_a_replay_that_resumes_ends_where_a_whole_one_does(sqlite_home: Home, seed: int, replayed: list[int]) -> None:
    chance = random.Random(seed)
    ledger = sqlite_home.new()
    for number in range(40):
        act(ledger, chance, number)
        if chance.random() < 0.2:
            ledger.close()
            ledger = sqlite_home.open()
    ledger.settle()
    sqlite_home.open().close()
    act(ledger, chance, 41)
    ledger.settle()
    whole, resumed = state_of(ledger)
    assert resumed == whole
    last = ledger.verify().entries
    sqlite_home.open().close()
    replayed.clear()
    sqlite_home.open().close()
    assert len(replayed) <= last // 20
    replayed.clear()
    assert ledger.verify().sound and replayed == list(range(1, last + 1)), "verify replays everything"


def test_what_does_not_hold_is_not_used(sqlite_home: Home, replayed: list[int], tmp_path: Path) -> None:
    ledger = sqlite_home.new()
    ledger.reserve(charge("a")).commit()
    ledger.settle()
    sqlite_home.open().close()
    whole, last = checkpoint_of(ledger).read_bytes(), ledger.verify().entries
    other = Home(f"sqlite:///{tmp_path}/other.db", tmp_path / "other", tmp_path / "other.db").new()
    other.close()
    damaged = [whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :] for index in range(0, len(whole), 7)]
    foreign = Home(f"sqlite:///{tmp_path}/other.db", tmp_path / "other", tmp_path / "other.db").open()
    for content in (*damaged, b"", b"\xff", whole[:-1], checkpoint_of(foreign).read_bytes()):
        checkpoint_of(ledger).write_bytes(content)
        replayed.clear()
        sqlite_home.open().close()
        assert replayed == list(range(1, last + 1)) and checkpoint_of(ledger).read_bytes() == whole
    foreign.close()


def test_a_checkpoint_that_is_newer_than_its_ledger_changes_nothing(sqlite_home: Home, tmp_path: Path) -> None:
    assert sqlite_home.file is not None
    ledger = sqlite_home.new()
    ledger.close()
    older = shutil.copy(sqlite_home.file, tmp_path / "older.db")
    ledger = sqlite_home.open()
    ledger.reserve(charge("a")).commit()
    ledger.close()
    sqlite_home.open().close()
    shutil.copy(older, sqlite_home.file)
    for name in ("-wal", "-shm"):
        Path(f"{sqlite_home.file}{name}").unlink(missing_ok=True)
    with pytest.raises(IntegrityError, match="older"):
        sqlite_home.open()


def test_a_short_ledger_has_none_and_a_folder_that_takes_none_does_no_harm(
    sqlite_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = sqlite_home.new()
    checkpoint_of(ledger).unlink(missing_ok=True)
    checkpoint_of(ledger).mkdir()
    sqlite_home.open().close()
    checkpoint_of(ledger).rmdir()
    monkeypatch.setattr(check, "REPLAYED", 10_000)
    sqlite_home.open().close()
    assert not checkpoint_of(ledger).exists()
