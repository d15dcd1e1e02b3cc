"""Opening a ledger: it is created only on request, never in place of a missing one, and a crash during creation is repaired."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ledger_formats import FORMATS, SQL, opened_copy
from support.ledger_homes import Home

from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.ledger.database import parse_location
from dpsql.ledger.opening import FORMAT
from dpsql.ledger.records import key_mark
from dpsql.ledger.store import Store
from dpsql.policy import load_policy
from dpsql.reuse.store import FORMAT as STORE_FORMAT
from dpsql.session.session import open_session


class Stopped(Exception):
    """A process that ends at a step."""


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(Error) as error:
        work()
    return error.value.slug


def stopping_at(name: str) -> Callable[[str], None]:
    def step(reached: str) -> None:
        if reached == name:
            raise Stopped

    return step


def kinds(home: Home, **options: Any) -> list[str]:
    return [entry.kind for entry in home.open(**options).history()]


def test_a_ledger_is_not_made_without_request(sqlite_home: Home) -> None:
    assert sqlite_home.file is not None
    assert refusal(sqlite_home.open) == "ledger_missing"
    assert not sqlite_home.file.exists() and not sqlite_home.state.exists()


@pytest.mark.parametrize("dataset", ["", "x" * 201])
def test_a_dataset_has_a_name_of_1_to_200_characters(sqlite_home: Home, dataset: str) -> None:
    assert refusal(lambda: sqlite_home.open(dataset, create=True)) == "ledger_request"
    assert not sqlite_home.state.exists()


def test_a_new_ledger_is_private_and_says_whose_it_is(sqlite_home: Home) -> None:
    ledger = sqlite_home.open("x" * 200, create=True)
    assert sqlite_home.file is not None and stat.S_IMODE(sqlite_home.file.stat().st_mode) == 0o600
    (first,) = ledger.history()
    facts = {name: first.facts[name] for name in ("dataset", "ledger", "format", "key")}
    mark = key_mark(ledger.witness.key, ledger.witness.ledger_id)
    assert facts == {"dataset": "x" * 200, "ledger": ledger.witness.ledger_id, "format": FORMAT, "key": mark}
    assert {"other_ledgers", "second_budget"}.isdisjoint(first.facts)
    assert ledger.witness.head().seq == 1 and ledger.second_witness is None


@pytest.mark.parametrize("options", [{}, {"create": True}, {"create": True, "adopt": True}], ids=str)
def test_a_known_ledger_that_is_gone_is_not_made_anew(sqlite_home: Home, options: dict[str, Any]) -> None:
    sqlite_home.new().close()
    assert sqlite_home.file is not None
    sqlite_home.file.unlink()
    assert refusal(lambda: sqlite_home.open(**options)) == "ledger_known"
    assert not sqlite_home.file.exists()


@pytest.mark.parametrize("step", ["key made", "before commit", "created", "head made"])
def test_a_creation_that_was_cut_short_is_completed_by_the_next(sqlite_home: Home, step: str) -> None:
    with pytest.raises(Stopped):
        sqlite_home.open(create=True, step=stopping_at(step))
    assert kinds(sqlite_home, create=True) == ["created"]
    assert kinds(sqlite_home) == ["created"]


def test_a_ledger_of_one_entry_without_a_head_is_completed_by_its_owner_alone(sqlite_home: Home) -> None:
    with pytest.raises(Stopped):
        sqlite_home.open(create=True, step=stopping_at("created"))
    assert refusal(sqlite_home.open) == "ledger_head_missing"


def test_a_ledger_of_more_entries_without_a_head_is_adopted_on_request_alone(sqlite_home: Home) -> None:
    ledger = sqlite_home.new()
    (ledger.witness.directory / "head").unlink()
    ledger.close()
    for options in ({}, {"create": True}):
        assert refusal(lambda options=options: sqlite_home.open(**options)) == "ledger_head_missing"  # type: ignore[misc]
    assert kinds(sqlite_home, adopt=True) == ["created", "account", "adopted"]
    assert kinds(sqlite_home, adopt=True) == ["created", "account", "adopted"]  # it has a head now


def test_of_two_that_make_a_ledger_at_once_the_first_stands(sqlite_home: Home) -> None:
    def other(step: str) -> None:
        if step == "key made":
            sqlite_home.new()

    assert kinds(sqlite_home, create=True, step=other) == ["created", "account"]
    assert len(list(sqlite_home.state.glob("*/key"))) == 1  # the key that authenticated nothing is gone


# --- other ledgers ----------------------------------------------------------------------------------------------------


def second(home: Home, dataset: str = "clinic", **options: Any) -> Any:
    """Create another ledger next to the first one, with the same state."""
    assert home.file is not None
    url = f"sqlite:///{home.file.with_name('second.db')}"
    ledger = open_ledger(url, dataset, create=True, state=home.state, **options)
    home.opened.append(ledger)
    return next(iter(ledger.history())).facts


def test_a_second_ledger_of_a_data_set_needs_a_reason_which_is_recorded(sqlite_home: Home) -> None:
    sqlite_home.new()
    assert refusal(lambda: second(sqlite_home, first=True)) == "ledger_second"
    facts = second(sqlite_home, first=True, second_budget="a new year")
    assert (facts["other_ledgers"], facts["second_budget"]) == (1, "a new year")


def test_a_second_ledger_over_the_same_source_has_another_name(sqlite_home: Home) -> None:
    sqlite_home.new(source="s1")
    assert refusal(lambda: second(sqlite_home, "other", first=True, source="s1")) == "ledger_second"
    assert "other_ledgers" not in second(sqlite_home, "other", first=True, source="s2")


def test_without_the_check_a_second_ledger_is_noted_alone(sqlite_home: Home) -> None:
    sqlite_home.new()
    assert second(sqlite_home)["other_ledgers"] == 1


def test_an_empty_database_becomes_a_ledger_on_request(sqlite_home: Home) -> None:
    assert sqlite_home.file is not None
    sqlite_home.file.touch(0o600)
    assert refusal(sqlite_home.open) == "ledger_missing"
    assert kinds(sqlite_home, create=True) == ["created"]


# --- invalid ledgers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["no JSON", "[]", "{}", '{"ledger": "x", "dataset": "clinic"}'])
def test_a_first_entry_that_does_not_say_whose_ledger_it_is_is_an_edited_one(sqlite_home: Home, body: str) -> None:
    sqlite_home.new().close()
    sqlite_home.unguard()
    sqlite_home.sql(f"UPDATE dpsql_entries SET body = '{body}' WHERE seq = 1")
    assert refusal(sqlite_home.open) == "ledger_tampered"


# --- a head on another machine ----------------------------------------------------------------------------------------


def test_a_new_ledger_writes_its_first_head_elsewhere_and_an_older_one_needs_it_there(
    sqlite_home: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir(mode=0o700)
    witness = f"file://{folder}"
    second_witness = sqlite_home.open(create=True, witness=witness).second_witness
    assert second_witness is not None and second_witness.required().seq == 1
    assert kinds(sqlite_home, witness=witness) == ["created"]
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()
    assert refusal(lambda: sqlite_home.open(witness=witness)) == "witness_missing"
    assert sqlite_home.open(witness=witness, read_only=True).second_witness is None


# --- Ledgers and stores of every format are read by this version ------------------------------------------------------


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
