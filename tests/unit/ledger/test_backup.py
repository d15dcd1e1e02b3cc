"""Backups made during charges, and restored so that nothing that may have been spent is forgotten."""

import shutil
import signal
import threading
from pathlib import Path

import pytest
from support.forked import Forked
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.ledger.backup import back_up, compared, head_text, restore
from dpsql.ledger.witness import Witness


def spent(home: Home, state: Path | None = None) -> int:
    with open_ledger(home.url, "clinic", state=state or home.state) as ledger:
        assert ledger.verify().sound
        return ledger.spent()["epsilon"]


def slug(call: object) -> str:
    with pytest.raises(Error) as caught:
        call()  # type: ignore[operator]
    return caught.value.slug


def test_a_backup_that_is_made_while_others_charge_is_whole(sqlite_home: Home, tmp_path: Path) -> None:
    """A plain copy of the file can miss entries that are only in the log next to it, in one case twelve of thirteen."""
    ledger = sqlite_home.new(1000 * EPSILON)
    stop, charged = threading.Event(), threading.Semaphore(0)

    def go_on() -> None:
        other = sqlite_home.open()
        number = 0
        while not stop.is_set():
            other.reserve(charge(f"r{number}"))
            charged.release()
            number += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    for number in range(3):
        for _ in range(5):
            assert charged.acquire(timeout=240)
        last = back_up(ledger, tmp_path / f"backup{number}")
        assert last.seq >= 2 + 5 * (number + 1), "every charge that was answered before is in it"
    stop.set()
    thread.join()
    state = tmp_path / "elsewhere"
    home = Home(f"sqlite:///{tmp_path}/copy.db", state, tmp_path / "copy.db")
    restore(tmp_path / "backup2", home.url, "clinic", lost={"epsilon": 0, "delta": 0}, state=state)
    assert spent(home) >= 15 * EPSILON
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "backup2").iterdir()}
    assert modes == {"ledger.db": 0o600, "key": 0o600, "backup.json": 0o600}


@pytest.fixture
def lost(sqlite_home: Home, tmp_path: Path) -> Home:
    """Make two charges, a backup and one more charge, then delete the file."""
    ledger = sqlite_home.new()
    ledger.open_account("analyst:ann", "pure", {"epsilon": 5 * EPSILON, "delta": 0})
    for number in range(2):
        ledger.reserve(charge(number, scopes=("dataset", "analyst:ann"))).commit()
    back_up(ledger, tmp_path / "backup")
    ledger.reserve(charge(2)).commit()
    ledger.close()
    assert sqlite_home.file is not None
    for path in sqlite_home.file.parent.glob(f"{sqlite_home.file.name}*"):
        path.unlink()
    return sqlite_home


def test_what_may_have_been_lost_is_charged(lost: Home, tmp_path: Path) -> None:
    restored = restore(tmp_path / "backup", lost.url, "clinic", state=lost.state)
    assert restored.last_seen is not None and restored.last_seen > restored.entry
    assert restored.charged == {
        "dataset": {"epsilon": 8 * EPSILON, "delta": 0},
        "analyst:ann": {"epsilon": 3 * EPSILON, "delta": 0},
    }
    assert spent(lost) == 10 * EPSILON
    assert slug(lambda: lost.open().reserve(charge("new"))) == "budget_exceeded"


def test_the_owners_word_bounds_what_was_lost_and_is_recorded(lost: Home, tmp_path: Path) -> None:
    restore(tmp_path / "backup", lost.url, "clinic", lost={"epsilon": 4 * EPSILON, "delta": 0}, state=lost.state)
    ledger = lost.open()
    assert (ledger.spent()["epsilon"], ledger.spent("analyst:ann")["epsilon"]) == (6 * EPSILON, 5 * EPSILON)
    entry = next(entry.facts for entry in ledger.history() if entry.kind == "restored")
    assert entry["lost"] == {"epsilon": str(4 * EPSILON), "delta": "0"}
    ledger.reserve(charge("new"))
    assert ledger.verify().sound


def test_a_backup_that_ends_with_the_entry_seen_last_costs_nothing(sqlite_home: Home, tmp_path: Path) -> None:
    ledger = sqlite_home.new()
    ledger.reserve(charge(1))
    back_up(ledger, tmp_path / "backup")
    ledger.close()
    assert sqlite_home.file is not None
    sqlite_home.file.write_bytes(b"damaged" * 1000)
    restored = restore(tmp_path / "backup", sqlite_home.url, "clinic", state=sqlite_home.state)
    assert restored.charged == {} and spent(sqlite_home) == EPSILON


def test_the_note_that_a_charge_was_answered_makes_no_difference(sqlite_home: Home, tmp_path: Path) -> None:
    """The note of an outcome follows the last entry that the head has seen; a backup made at that moment must not count as fully
    spent."""
    ledger = sqlite_home.new()
    ledger.reserve(charge(1)).commit()
    back_up(ledger, tmp_path / "backup")
    ledger.close()
    restored = restore(tmp_path / "backup", sqlite_home.url, "clinic", state=sqlite_home.state)
    assert restored.charged == {} and spent(sqlite_home) == EPSILON


def test_on_a_machine_that_never_saw_it_nobody_knows_what_was_lost(lost: Home, tmp_path: Path) -> None:
    state = tmp_path / "new machine"
    restored = restore(tmp_path / "backup", lost.url, "clinic", state=state)
    assert restored.last_seen is None and spent(lost, state) == 10 * EPSILON


def test_a_ledger_that_knows_more_than_the_backup_is_not_replaced(sqlite_home: Home, tmp_path: Path) -> None:
    ledger = sqlite_home.new()
    back_up(ledger, tmp_path / "backup")
    ledger.reserve(charge(1))
    ledger.close()
    assert (
        slug(lambda: restore(tmp_path / "backup", sqlite_home.url, "clinic", state=sqlite_home.state)) == "backup_older"
    )
    assert spent(sqlite_home) == EPSILON


def test_a_changed_backup_is_not_put_in_use(lost: Home, tmp_path: Path) -> None:
    import sqlite3

    copy = sqlite3.connect(tmp_path / "backup" / "ledger.db")
    for name in [row[0] for row in copy.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:
        copy.execute(f"DROP TRIGGER {name}")
    copy.execute("UPDATE dpsql_entries SET body = replace(body, '1000000000000000000', '1') WHERE kind = 'charge'")
    copy.commit()
    copy.close()
    assert slug(lambda: restore(tmp_path / "backup", lost.url, "clinic", state=lost.state)) == "ledger_tampered"
    assert slug(lost.open) in ("ledger_tampered", "ledger_older")
    assert slug(lambda: restore(tmp_path, lost.url, "clinic", state=lost.state)) == "backup_folder"
    assert slug(lambda: restore(tmp_path / "backup", lost.url, "other", state=lost.state)) == "ledger_foreign"


KILLED = """
import os, signal, sys
from pathlib import Path
from dpsql.ledger import backup
from dpsql.ledger.witness import Witness
place, name = {"put": (backup, "_put"), "key": (backup, "_put_key"), "charge": (backup, "_charge_lost"),
               "head": (Witness, "start")}[sys.argv[1]]
whole = getattr(place, name)
def killed(*arguments, **named):
    if sys.argv[2] == "after":
        whole(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(place, name, killed)
backup.restore(Path(sys.argv[3]), sys.argv[4], "clinic", state=Path(sys.argv[5]))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["key", "put", "charge", "head"])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_killed_restore_leaves_no_ledger_that_forgets(
    lost: Home, tmp_path: Path, step: str, when: str, fresh: bool
) -> None:
    """Wherever it ends, the ledger is unusable or has been charged; repeating the command completes the work."""
    state = tmp_path / "fresh" if fresh else lost.state
    killed = Forked(["-c", KILLED, step, when, str(tmp_path / "backup"), lost.url, str(state)])
    assert killed.wait(timeout=240) == -signal.SIGKILL
    try:
        with open_ledger(lost.url, "clinic", state=state) as ledger:
            assert ledger.spent()["epsilon"] == 10 * EPSILON
    except Error as error:
        assert error.slug in (
            "ledger_tampered", "ledger_older", "ledger_known", "ledger_missing", "ledger_key_missing",
            "ledger_head_missing",
        )  # fmt: skip
    if (step, when) == ("head", "after"):
        assert slug(lambda: restore(tmp_path / "backup", lost.url, "clinic", state=state)) == "backup_older"
    else:
        restore(tmp_path / "backup", lost.url, "clinic", state=state)
    assert spent(lost, state) == 10 * EPSILON


def test_a_head_kept_elsewhere_shows_that_ledger_and_state_were_turned_back_together(
    sqlite_home: Home, tmp_path: Path
) -> None:
    """Nothing on the machine itself can detect that."""
    ledger = sqlite_home.new()
    ledger.reserve(charge(1))
    ledger.close()
    assert sqlite_home.file is not None
    shutil.copytree(sqlite_home.state, tmp_path / "old state")
    shutil.copyfile(sqlite_home.file, tmp_path / "old.db")
    ledger = sqlite_home.open()
    ledger.reserve(charge(2))
    head = head_text(ledger)
    compared(ledger, head)
    ledger.close()
    shutil.rmtree(sqlite_home.state)
    shutil.copytree(tmp_path / "old state", sqlite_home.state)
    for path in sqlite_home.file.parent.glob(f"{sqlite_home.file.name}-*"):
        path.unlink()
    shutil.copyfile(tmp_path / "old.db", sqlite_home.file)
    ledger = sqlite_home.open()
    assert ledger.verify().sound
    assert slug(lambda: compared(ledger, head)) == "ledger_older"
    number = head.split()[0]
    assert slug(lambda: compared(ledger, f"2 {'0' * 64}")) == "ledger_tampered"
    assert slug(lambda: compared(ledger, number)) == "head_text"


def test_another_budget_for_a_known_data_set_needs_the_owners_reason(sqlite_home: Home, tmp_path: Path) -> None:
    sqlite_home.new(source="s1")
    other = f"sqlite:///{tmp_path}/other.db"
    for dataset, source in (("clinic", None), ("clinic", "s2"), ("renamed", "s1")):
        assert (
            slug(
                lambda dataset=dataset, source=source: open_ledger(  # type: ignore[misc]
                    other, dataset, create=True, first=True, source=source, state=sqlite_home.state
                )
            )
            == "ledger_second"
        )
        assert not (tmp_path / "other.db").exists()
    with open_ledger(other, "stranger", create=True, first=True, source="s9", state=sqlite_home.state) as ledger:
        assert "other_ledgers" not in next(ledger.history()).facts
    third = f"sqlite:///{tmp_path}/third.db"
    with open_ledger(
        third, "clinic", create=True, first=True, second_budget="a new wave of people", state=sqlite_home.state
    ) as ledger:
        facts = next(ledger.history()).facts
        assert (facts["second_budget"], facts["other_ledgers"]) == ("a new wave of people", 1)


def test_the_witness_takes_a_key_once(tmp_path: Path) -> None:
    witness = Witness(tmp_path, "0" * 32)
    witness.install(b"k" * 32, "clinic", "there")
    assert witness.key == b"k" * 32
    assert slug(lambda: witness.install(b"l" * 32, "clinic", "there")) == "ledger_state"
