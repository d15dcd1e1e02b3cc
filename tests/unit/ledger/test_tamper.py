"""Edited, reordered, truncated, outdated and foreign ledgers are detected by verify and refused when opened."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import Error, Fault, IntegrityError
from dpsql.ledger.check import CHECKPOINT
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import linked


def filled(home: Home) -> Ledger:
    """Return a ledger with entries 1 created, 2 and 3 accounts, 4 charge, 5 committed, 6 charge, 7 charge."""
    ledger = home.new()
    ledger.open_account("analyst:ann", "pure", {"epsilon": 5 * EPSILON, "delta": 0})
    ledger.reserve(charge("a", 1, scopes=("dataset", "analyst:ann"))).commit()
    ledger.reserve(charge("b", 2))
    ledger.reserve(charge("c", 3, scopes=("dataset", "analyst:ann")))
    return ledger


def edit_charge(home: Home) -> None:
    home.sql('UPDATE dpsql_entries SET body = replace(body, \'"epsilon":"2"\', \'"epsilon":"1"\') WHERE seq = 6')


def swap_two(home: Home) -> None:
    home.sql(
        "UPDATE dpsql_entries SET seq = 99 WHERE seq = 6",
        "UPDATE dpsql_entries SET seq = 6 WHERE seq = 7",
        "UPDATE dpsql_entries SET seq = 7 WHERE seq = 99",
    )


def rechain_without_key(home: Home) -> None:
    """Write a new chain over an edited entry, as someone could who knows the format but not the key."""
    rows = home.sql("SELECT seq, body, digest FROM dpsql_entries ORDER BY seq")
    previous = "0" * 64
    for seq, body, _ in rows:
        changed = body.replace('"epsilon":"2"', '"epsilon":"0"')
        previous = linked(b"guess", previous, changed)
        home.sql(f"UPDATE dpsql_entries SET body = '{changed}', digest = '{previous}' WHERE seq = {seq}")


TAMPERINGS: dict[str, tuple[Callable[[Home], object], int]] = {
    "a charge edited": (edit_charge, 6),
    "two entries swapped": (swap_two, 6),
    "an entry removed": (lambda home: home.sql("DELETE FROM dpsql_entries WHERE seq = 5"), 5),
    "the first entry removed": (lambda home: home.sql("DELETE FROM dpsql_entries WHERE seq = 1"), 1),
    "the end cut off": (lambda home: home.sql("DELETE FROM dpsql_entries WHERE seq >= 7"), 7),
    "all but the first cut off": (
        lambda home: home.sql("DELETE FROM dpsql_entries WHERE seq > 1", "DELETE FROM dpsql_accounts"),
        2,
    ),
    "rewritten without the key": (rechain_without_key, 1),
    "a digest edited": (lambda home: home.sql("UPDATE dpsql_entries SET digest = '00' WHERE seq = 5"), 5),
    "the last digest edited": (lambda home: home.sql("UPDATE dpsql_entries SET digest = '00' WHERE seq = 7"), 7),
    "an id freed": (lambda home: home.sql("UPDATE dpsql_entries SET id = NULL WHERE seq = 4"), 4),
    "a kind edited": (lambda home: home.sql("UPDATE dpsql_entries SET kind = 'committed' WHERE seq = 7"), 7),
    "totals edited": (lambda home: home.sql('UPDATE dpsql_accounts SET spent = \'{"delta":"0","epsilon":"0"}\''), 7),
    "limits edited": (lambda home: home.sql("UPDATE dpsql_accounts SET limits = replace(limits, '0000', '9000')"), 7),
    "an account removed": (lambda home: home.sql("DELETE FROM dpsql_accounts WHERE scope = 'analyst:ann'"), 7),
}


@pytest.mark.parametrize("checkpoint", [False, True], ids=["", "checkpoint"])
@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_named_by_verify_and_refused_on_open(
    home: Home, name: str, checkpoint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper, first_bad = TAMPERINGS[name]
    ledger = filled(home)
    assert ledger.verify().sound
    if checkpoint:
        monkeypatch.setattr("dpsql.ledger.check.REPLAYED", 0)
        home.open().close()
        assert (ledger.witness.directory / CHECKPOINT).exists()
    home.unguard()
    tamper(home)
    verdict = ledger.verify()
    assert not verdict.sound
    assert verdict.first_bad == first_bad
    with pytest.raises(Error) as error:
        home.open()
    assert error.value.slug in {"ledger_tampered", "ledger_older"}
    assert error.value.sqlstate == "XX001"
    with pytest.raises(Error):
        home.open(create=True)


@pytest.mark.parametrize("name", ["totals edited", "limits edited", "the end cut off", "the last digest edited"])
def test_an_open_ledger_notices_before_it_charges(home: Home, name: str) -> None:
    ledger = filled(home)
    home.unguard()
    TAMPERINGS[name][0](home)
    with pytest.raises(IntegrityError):
        ledger.reserve(charge("d", 1))


def test_an_older_row_of_totals_is_noticed(home: Home) -> None:
    """The older row has a valid MAC, but the entries contradict it."""
    ledger = filled(home)
    columns = "accountant, limits, spent, seq, mac"
    ((_, limits, spent, seq, mac),) = home.sql(f"SELECT {columns} FROM dpsql_accounts WHERE scope = 'dataset'")
    ledger.reserve(charge("d", 5))
    changes = f"limits = '{limits}', spent = '{spent}', seq = {seq}, mac = '{mac}'"
    home.sql(f"UPDATE dpsql_accounts SET {changes} WHERE scope = 'dataset'")
    assert ledger.verify().problem == "the running totals disagree with the entries"
    with pytest.raises(IntegrityError):
        home.open()


@pytest.mark.parametrize(
    "statement", ["UPDATE dpsql_entries SET body = ''", "DELETE FROM dpsql_entries", "DELETE FROM dpsql_accounts"]
)
def test_the_database_itself_refuses_edits(home: Home, statement: str) -> None:
    ledger = filled(home)
    with pytest.raises(Exception, match="append-only"):
        home.sql(statement)
    assert ledger.verify().sound


def copied(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def test_an_older_copy_is_refused_on_open_and_under_a_running_process(sqlite_home: Home, tmp_path: Path) -> None:
    home = sqlite_home
    assert home.file is not None
    ledger = filled(home)
    ledger.close()
    copied(home.file.parent, tmp_path / "copy")
    ledger.reserve(charge("d", 1))
    ledger.close()
    copied(tmp_path / "copy", home.file.parent)
    with pytest.raises(IntegrityError) as error:
        ledger.reserve(charge("e", 1))
    assert error.value.slug == "ledger_older"
    assert ledger.verify().first_bad == 8
    every: tuple[dict[str, Any], ...] = ({}, {"create": True}, {"adopt": True})
    for options in every:
        with pytest.raises(IntegrityError) as error:
            home.open(**options)
        assert error.value.slug == "ledger_older"


def test_a_copy_used_beside_the_ledger_is_refused(sqlite_home: Home, tmp_path: Path) -> None:
    """Two copies would each spend the whole budget; the head that they share permits only one of them."""
    home = sqlite_home
    assert home.file is not None
    filled(home).close()
    copied(home.file.parent, tmp_path / "copy")
    twin = Home(f"sqlite:///{tmp_path}/copy/ledger.db", home.state)
    moved = twin.open()
    moved.reserve(charge("d", 1))
    moved.close()
    with pytest.raises(IntegrityError) as error:
        home.open()
    assert error.value.slug == "ledger_older"


def test_a_missing_ledger_is_never_made_again(sqlite_home: Home) -> None:
    home = sqlite_home
    assert home.file is not None
    with pytest.raises(Fault) as error:
        home.open()
    assert error.value.slug == "ledger_missing"
    assert not home.file.exists()
    filled(home).close()
    for path in home.file.parent.iterdir():
        path.unlink()
    every: tuple[dict[str, Any], ...] = ({}, {"create": True}, {"adopt": True, "create": True})
    for options in every:
        with pytest.raises(Fault) as error:
            home.open(**options)
        assert error.value.slug == "ledger_known"
        assert not home.file.exists()
    home.file.touch()
    with pytest.raises(Fault) as error:
        home.open(create=True)
    assert error.value.slug == "ledger_known"


def test_emptied_postgres_tables_are_never_made_again(postgres_home: Home) -> None:
    filled(postgres_home).close()
    postgres_home.sql("DROP TABLE dpsql_entries, dpsql_accounts, dpsql_format", "DROP FUNCTION dpsql_append_only")
    with pytest.raises(Fault) as error:
        postgres_home.open(create=True)
    assert error.value.slug == "ledger_known"


def test_the_ledger_of_another_data_set_is_refused(home: Home) -> None:
    filled(home)
    every: tuple[dict[str, Any], ...] = ({}, {"create": True}, {"adopt": True})
    for options in every:
        with pytest.raises(Fault) as error:
            home.open("flights", **options)
        assert error.value.slug == "ledger_foreign"


def test_another_database_is_not_turned_into_a_ledger(sqlite_home: Home) -> None:
    sqlite_home.sql("CREATE TABLE patients (id INTEGER)")
    with pytest.raises(Fault) as error:
        sqlite_home.open(create=True)
    assert error.value.slug == "ledger_foreign"


@pytest.mark.parametrize("left", [0, 100, 5000])
def test_a_truncated_file_is_refused(sqlite_home: Home, left: int) -> None:
    assert sqlite_home.file is not None
    filled(sqlite_home).close()
    os.truncate(sqlite_home.file, left)
    for create in (False, True):
        with pytest.raises(Error) as error:
            sqlite_home.open(create=create)
        assert error.value.slug in {"ledger_known", "ledger_damaged"}


def test_the_key_is_needed_and_is_the_owners_alone(home: Home) -> None:
    ledger = filled(home)
    key = home.state / ledger.ledger_id / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    content = key.read_bytes()
    for mode in (0o640, 0o604, 0o620):
        key.chmod(mode)
        with pytest.raises(Fault) as error:
            home.open()
        assert error.value.slug == "ledger_key_open"
    key.chmod(0o600)
    key.write_text("00" * 32)
    with pytest.raises(Fault) as error:
        home.open()
    assert error.value.slug == "ledger_key_wrong"
    key.unlink()
    every: tuple[dict[str, Any], ...] = ({}, {"create": True}, {"adopt": True})
    for options in every:
        with pytest.raises(Fault) as error:
            home.open(**options)
        assert error.value.slug == "ledger_key_missing"
    assert not key.exists()
    key.write_bytes(content)
    key.chmod(0o600)
    home.open()


def test_a_new_machine_adopts_only_when_told(home: Home) -> None:
    ledger = filled(home)
    head = home.state / ledger.ledger_id / "head"
    head.unlink()
    for create in (False, True):
        with pytest.raises(Fault) as error:
            home.open(create=create)
        assert error.value.slug == "ledger_head_missing"
    adopted = home.open(adopt=True)
    assert list(adopted.history())[-1].kind == "adopted"
    assert adopted.verify().sound
    adopted.reserve(charge("d", 1))
    home.open()


def test_a_torn_head_is_repaired_and_a_forged_one_refused(home: Home) -> None:
    ledger = filled(home)
    head = home.state / ledger.ledger_id / "head"
    whole = head.read_bytes()
    newest = max((0, 512), key=lambda at: int(whole[at : at + 512].split()[0]))
    head.write_bytes(whole[:newest] + b"\0" * 512 + whole[newest + 512 :])
    home.open().reserve(charge("d", 1))
    slots = [head.read_bytes()[at : at + 512].split() for at in (0, 512)]
    head.write_bytes(b"".join(b" ".join((b"4", digest, mac)).ljust(512) for _, digest, mac in slots))
    with pytest.raises(IntegrityError) as error:
        home.open()
    assert error.value.slug == "ledger_tampered"


def test_a_newer_format_is_left_alone(home: Home) -> None:
    filled(home)
    home.sql("UPDATE dpsql_format SET version = 2")
    with pytest.raises(Fault) as error:
        home.open(create=True)
    assert error.value.slug == "ledger_format"
    assert "2" in error.value.message


def test_what_the_second_place_says(home: Home) -> None:
    ledger = filled(home)
    place = json.loads((home.state / ledger.ledger_id / "place").read_text())
    assert place["dataset"] == "clinic"
    assert place["address"].startswith(("sqlite:///", "postgresql://"))


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d", "clinic.db", "sqlite:///x?mode=ro"])
def test_addresses_that_are_no_ledger(url: str, tmp_path: Path) -> None:
    with pytest.raises(Fault) as error:
        Home(url, tmp_path).open(create=True)
    assert error.value.slug == "ledger_url"
