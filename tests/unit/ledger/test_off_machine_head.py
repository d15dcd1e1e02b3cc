"""A head on another machine reveals that ledger and state directory were both reset to an earlier state."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.clinic import build
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import Error, Fault, IntegrityError
from dpsql.frontends.cli import status_of
from dpsql.ledger import open_ledger
from dpsql.ledger.opening import start_second_witness
from dpsql.ledger.witness import FileHead
from dpsql.session.session import open_session


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """Return a folder that represents a share on another machine."""
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


@pytest.fixture(params=["file", "postgresql"])
def witness(request: pytest.FixtureRequest, share: Path) -> str:
    if request.param == "file":
        return f"file://{share}"
    return str(request.getfixturevalue("postgres_home").url)


@pytest.fixture
def setting_back(sqlite_home: Home, tmp_path: Path) -> Callable[[], Callable[[], None]]:
    """Return a function that copies this machine's files and returns a function that restores the copies."""

    def copied() -> Callable[[], None]:
        assert sqlite_home.file is not None
        folder = tmp_path / "snapshot"
        shutil.copytree(sqlite_home.file.parent, folder / "ledger")
        shutil.copytree(sqlite_home.state, folder / "state", dirs_exist_ok=True)

        def put_back() -> None:
            assert sqlite_home.file is not None
            for suffix in ("", "-wal", "-shm"):
                name = sqlite_home.file.name + suffix
                sqlite_home.file.with_name(name).unlink(missing_ok=True)
                if (folder / "ledger" / name).exists():
                    shutil.copy2(folder / "ledger" / name, sqlite_home.file.with_name(name))
            shutil.rmtree(sqlite_home.state)
            shutil.copytree(folder / "state", sqlite_home.state)

        return put_back

    return copied


def test_a_machine_that_is_set_back_charges_nothing_more(
    sqlite_home: Home, witness: str, setting_back: Callable[[], Callable[[], None]]
) -> None:
    with sqlite_home.new(limit=3 * EPSILON, witness=witness) as ledger:
        ledger.reserve(charge("a"))
    put_back = setting_back()
    with sqlite_home.open(witness=witness) as ledger:
        ledger.reserve(charge("b"))
    put_back()
    with sqlite_home.open() as unnoticed:
        assert unnoticed.spent()["epsilon"] == EPSILON, "on this machine alone nothing tells"
    with pytest.raises(IntegrityError) as caught:
        sqlite_home.open(witness=witness)
    assert caught.value.slug == "ledger_older" and not caught.value.charged


def test_a_machine_that_is_set_back_under_an_open_ledger_is_noticed_at_the_next_charge(
    sqlite_home: Home, witness: str
) -> None:
    ledger = sqlite_home.new(witness=witness)
    ledger.reserve(charge("a"))
    assert ledger.second_witness is not None
    other = sqlite_home.open(witness=witness)
    head = other.witness.head()
    later = type(head)(head.seq + 5, "0" * 64)
    other.second_witness.advance(later)  # type: ignore[union-attr]
    with pytest.raises(IntegrityError) as caught:
        ledger.reserve(charge("b"))
    assert caught.value.slug == "ledger_older" and ledger.spent()["epsilon"] == EPSILON


def test_every_answered_charge_is_in_the_head_elsewhere(sqlite_home: Home, witness: str) -> None:
    with sqlite_home.new(witness=witness) as ledger:
        for number in range(3):
            reservation = ledger.reserve(charge(number))
            assert ledger.second_witness.required() == ledger.witness.head()  # type: ignore[union-attr]
            assert ledger.witness.head().seq >= reservation.seq
            reservation.commit()


def test_a_witness_that_is_missing_or_cannot_be_used_costs_nothing(
    sqlite_home: Home, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = sqlite_home.new(witness=f"file://{share}")
    (file,) = share.iterdir()
    content = file.read_text()
    for break_it, slug in (
        (file.unlink, "witness_missing"),
        (lambda: file.write_text(""), "ledger_tampered"),
        (lambda: file.write_text(content.replace(content[-8], "x")), "ledger_tampered"),
        (lambda: shutil.rmtree(share), "witness_unreachable"),
    ):
        break_it()
        with pytest.raises(Error) as caught:
            ledger.reserve(charge(slug))
        assert caught.value.slug == slug and not caught.value.charged
        assert str(share) not in caught.value.text(), "analysts learn no path"
        with pytest.raises(Error):
            sqlite_home.open(witness=f"file://{share}")
        share.mkdir(exist_ok=True)
        file.write_text(content)
    ledger.reserve(charge("last"))
    assert ledger.spent()["epsilon"] == EPSILON


def test_a_witness_that_fails_after_the_charge_says_that_the_charge_stays(
    sqlite_home: Home, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = sqlite_home.new(witness=f"file://{share}")
    replace_ = os.replace

    def full(source: object, target: object) -> None:
        if str(target).startswith(str(share)):
            raise OSError(28, "No space left on device")
        replace_(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Fault) as caught:
        ledger.reserve(charge("a"))
    assert caught.value.slug == "witness_not_written" and caught.value.charged
    monkeypatch.undo()
    assert ledger.spent()["epsilon"] == EPSILON and len(list(share.iterdir())) == 1
    ledger.reserve(charge("b"))
    assert ledger.second_witness.required() == ledger.witness.head()  # type: ignore[union-attr]


def test_an_existing_ledger_gets_a_witness_by_an_act_that_is_recorded(sqlite_home: Home, witness: str) -> None:
    sqlite_home.new().close()
    with pytest.raises(Fault) as caught:
        sqlite_home.open(witness=witness)
    assert caught.value.slug == "witness_missing"
    with sqlite_home.open() as ledger:
        start_second_witness(ledger, witness, None)
    with sqlite_home.open(witness=witness) as ledger:
        ledger.reserve(charge("a"))
        assert [entry.facts["seen"] for entry in ledger.history() if entry.kind == "witness"] == [None]
        assert ledger.verify().sound


def test_a_head_of_charges_that_are_gone_is_replaced_for_a_recorded_reason_alone(
    sqlite_home: Home, witness: str, setting_back: Callable[[], Callable[[], None]]
) -> None:
    sqlite_home.new(witness=witness).close()
    put_back = setting_back()
    with sqlite_home.open(witness=witness) as ledger:
        ledger.reserve(charge("a"))
    put_back()
    with sqlite_home.open() as ledger:
        with pytest.raises(IntegrityError):
            start_second_witness(ledger, witness, None)
        start_second_witness(ledger, witness, "the disk failed; restored, everything charged")
    with sqlite_home.open(witness=witness) as ledger:
        (entry,) = (entry for entry in ledger.history() if entry.kind == "witness")
        assert "the disk failed" in entry.facts["reason"]


def test_an_older_head_of_another_writer_does_not_replace_a_newer_one_on_a_server(
    sqlite_home: Home, postgres_home: Home
) -> None:
    ledger = sqlite_home.new(witness=postgres_home.url)
    old = ledger.witness.head()
    ledger.reserve(charge("a"))
    ledger.second_witness.advance(old)  # type: ignore[union-attr]
    assert ledger.second_witness.required() == ledger.witness.head()  # type: ignore[union-attr]


def test_the_command_and_the_session_use_the_policys_witness(
    tmp_path: Path, share: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    place = build(tmp_path)
    open_session(place, create_ledger=True).close()
    assert status_of(["budget", "witness", "-p", str(place)]) == 2
    place.write_text(f"witness: file://{share}\n{place.read_text()}")
    count = ["query", "-p", str(place), "SELECT COUNT(*) FROM patients"]
    assert status_of(count) == 4 and "witness_missing" in capsys.readouterr().err
    assert status_of(["budget", "witness", "-p", str(place)]) == 0
    assert status_of(count) == 0
    (head,) = share.iterdir()
    text = head.read_text()
    assert status_of([*count[:-1], "SELECT COUNT(*) FROM visits"]) == 0 and head.read_text() != text
    for command in (["budget", "show"], ["budget", "verify"], ["check"]):
        assert status_of([*command, "-p", str(place)]) == 0
    assert isinstance(FileHead(share, head.stem).read(), str)
    with open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", "clinic", witness=f"file://{share}") as ledger:
        assert ledger.verify().sound


@pytest.mark.parametrize("kind", ["pipe", "huge", "link", "folder"])
def test_a_hostile_share_neither_blocks_nor_fills_the_process(tmp_path: Path, kind: str) -> None:
    head, elsewhere = FileHead(tmp_path, "ab"), tmp_path / "elsewhere"
    place = tmp_path / "ab.head"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "huge":
        with place.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "link":
        elsewhere.write_text("a file of this machine")
        place.symlink_to(elsewhere)
    else:
        place.mkdir()
    with pytest.raises(Error) as error:
        head.read()
    assert error.value.slug == "witness_unreachable"
