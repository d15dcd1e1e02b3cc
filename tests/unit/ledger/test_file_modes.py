"""Files and folders that others may change are refused; where nothing can be written, the owner can still inspect the ledger."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.custodian_log import CustodianLog
from dpsql.errors.exceptions import Error
from dpsql.frontends.files import read_text
from dpsql.ledger import open_ledger
from dpsql.reuse.store import open_releases

NOBODY = 65534


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Run as another user meanwhile, because file modes do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for parent in folder.parents:
        if parent.stat().st_uid == 0 and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def slug(home: Home) -> str:
    with pytest.raises(Error) as caught:
        home.open()
    return caught.value.slug


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_a_ledger_that_others_may_write_to_is_refused(sqlite_home: Home, mode: int) -> None:
    sqlite_home.new().close()
    assert sqlite_home.file is not None
    sqlite_home.file.chmod(mode)
    assert slug(sqlite_home) == "ledger_open"
    sqlite_home.file.chmod(0o640)
    assert sqlite_home.open().verify().sound


def test_a_state_directory_that_others_may_write_to_is_refused(sqlite_home: Home) -> None:
    ledger = sqlite_home.new()
    ledger.close()
    for folder in (sqlite_home.state, ledger.witness.directory):
        folder.chmod(0o777)
        assert slug(sqlite_home) == "ledger_open"
        folder.chmod(0o700)
    assert sqlite_home.open().verify().sound


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_link_in_place_of_a_log_file_is_named_and_not_written_through(
    sqlite_home: Home, tmp_path: Path, ending: str
) -> None:
    sqlite_home.new().close()
    assert sqlite_home.file is not None
    victim, link = tmp_path / "victim", Path(f"{sqlite_home.file}{ending}")
    victim.write_text("whole")
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    with pytest.raises(Error, match=f"{link.name} is a symbolic link") as caught:
        sqlite_home.open()
    assert caught.value.slug == "ledger_linked" and victim.read_text() == "whole"
    link.unlink()
    assert sqlite_home.open().verify().sound


def test_a_link_in_place_of_a_log_file_of_the_stored_releases_is_named(sqlite_home: Home, tmp_path: Path) -> None:
    ledger = sqlite_home.new()
    open_releases(ledger).close()
    assert sqlite_home.file is not None
    link = Path(f"{sqlite_home.file}.releases-wal")
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "victim")
    with pytest.raises(Error, match="is a symbolic link"):
        open_releases(ledger)
    ledger.close()


@pytest.mark.parametrize("left", [("-wal", "-shm"), ("-wal",), ()])
def test_a_ledger_on_a_read_only_mount_can_be_looked_at(
    sqlite_home: Home, tmp_path: Path, left: tuple[str, ...]
) -> None:
    """The last charges are in the log next to it, with and without a read-only -shm file, or the ledger was closed normally."""
    ledger = sqlite_home.new()
    for number in range(3):
        ledger.reserve(charge(number)).commit()
    ledger.settle()
    assert sqlite_home.file is not None
    folder = sqlite_home.file.parent
    kept = {path.name: path.read_bytes() for path in folder.glob(f"{sqlite_home.file.name}*")}
    assert any(name.endswith("-wal") and content for name, content in kept.items())
    ledger.close()
    if left:
        kept = {name: content for name, content in kept.items() if name.endswith((".db", *left))}
    else:
        kept = {sqlite_home.file.name: sqlite_home.file.read_bytes()}
    for name, content in kept.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o400)
    with unprivileged(tmp_path):
        folder.chmod(0o500)
        try:
            if "-shm" not in left:
                assert slug(sqlite_home) == "ledger_read_only"
            with open_ledger(sqlite_home.url, "clinic", state=sqlite_home.state, read_only=True) as seen:
                assert seen.verify().sound
                assert seen.spent()["epsilon"] == 3 * EPSILON
                assert len([entry for entry in seen.history() if entry.kind == "charge"]) == 3
        finally:
            folder.chmod(0o700)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_a_file_without_an_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.frontends.files._MOST_CHARACTERS", 1000)
    with pytest.raises(Error, match="has no end"):
        read_text(Path("/dev/zero"))
    (tmp_path / "short.sql").write_text("SELECT 1" + " " * 992)
    assert len(read_text(tmp_path / "short.sql")) == 1000


def test_a_log_is_not_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    monkeypatch.setenv("DPSQL_STATE", str(tmp_path))
    (tmp_path / "victim").write_text("whole")
    (tmp_path / "custodian.log").symlink_to(tmp_path / "victim")
    CustodianLog().emit(logging.LogRecord("dpsql", logging.ERROR, "", 1, "a line", (), None))
    assert (tmp_path / "victim").read_text() == "whole"
