"""Commands for the life cycle of a ledger: backup, restore, adopt, head, a second budget."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsql.frontends.cli import status_of
from dpsql.frontends.pgwire.connection import SELF_SIGNED
from dpsql.frontends.pgwire.logins import Logins, open_logins
from dpsql.ledger import database, open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session

POLICY = """
dataset: files
source: ./a.parquet
ledger: sqlite:///ledger.db
budget: {epsilon: 2, delta: 1e-6}
privacy_unit: row
tables:
  a: {columns: {v: {type: integer, lower: 0, upper: 100}}}
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"v": [1, 2, 3]}), folder / "a.parquet")
    (folder / "p.yaml").write_text(POLICY)
    return folder / "p.yaml"


@pytest.fixture
def dpsql(capsys: pytest.CaptureFixture[str], place: Path) -> Run:
    def run(*words: str, policy: Path = place) -> tuple[int, str, str]:
        capsys.readouterr()
        status = status_of([*words, "-p", str(policy)])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def charge(place: Path, bound: int) -> None:
    with open_session(place) as session:
        session.execute(f"SELECT COUNT(*) AS n FROM a WHERE v > {bound}")


def test_a_ledger_is_backed_up_lost_and_put_back(dpsql: Run, place: Path, tmp_path: Path) -> None:
    assert dpsql("check", "--create-ledger")[0] == 0
    charge(place, 1)
    status, said, _ = dpsql("budget", "backup", str(tmp_path / "backup"))
    assert status == 0 and "entries are in" in said
    assert dpsql("budget", "backup", str(tmp_path / "backup"))[0] == 4, "a backup is not written over another"
    charge(place, 2)
    for file in place.parent.glob("ledger.db*"):
        file.unlink()
    assert "ledger_known" in dpsql("budget", "show")[2]
    status, said, _ = dpsql("budget", "restore", "--lost", "0.5", str(tmp_path / "backup"))
    assert status == 0 and "charged to dataset for what may have been lost: " in said and "rho " in said
    assert dpsql("budget", "verify")[0] == 0
    charge(place, 3)
    exact = dpsql("budget", "forecast", "-v")[1]  # all of delta is charged as lost, and no question costs it
    (end,) = re.findall(r"they last (.*)", dpsql("budget", "forecast")[1])
    assert "delta 0.0000005" in exact and exact.endswith(f" the budget lasts {end}\n")
    for lost in ("x", "0", "1e999"):
        status, _, told = dpsql("budget", "restore", "--lost", lost, str(tmp_path / "backup"))
        assert status == 2 and "--lost" in told
    assert dpsql("budget", "show", "--delta", "0.1")[0] == 2
    status, _, told = dpsql("budget", "restore", str(tmp_path / "backup"))
    assert status == 4 and "backup_older" in told


def test_a_lost_machine_is_replaced_and_lets_nobody_in_who_was_disabled(
    dpsql: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drill of docs/incidents.md."""
    place.write_text(place.read_text() + "analysts: {ann: {epsilon: 1}, bob: {epsilon: 1}}\n")
    dpsql("check", "--create-ledger")
    charge(place, 1)
    folder = str(tmp_path / "backup")

    def logins() -> Logins:
        policy = load_policy(place)
        with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
            return open_logins(ledger, policy)

    for name in ("ann", "bob"):
        logins().add(name, "a long password")
    (home,) = (file.parent for file in (tmp_path / "state").glob("*/key"))
    for name in SELF_SIGNED:
        (home / name).write_text(name)
    assert "2 logins" in dpsql("budget", "backup", folder)[1]
    logins().disable("bob")
    charge(place, 2)
    shutil.rmtree(tmp_path / "state")
    for file in place.parent.glob("ledger.db*"):
        file.unlink()
    status, said, _ = dpsql("budget", "restore", "--lost", "0.25 1e-9", folder)
    first, *rest = said.splitlines()
    assert status == 0 and first.endswith("each account is charged epsilon 0.25 and delta 1e-9")
    assert rest[-1].startswith("logins of ann, bob are restored, all disabled") and "dpsql user enable NAME" in rest[-1]
    assert {logins().states()[name] for name in ("ann", "bob")} == {"disabled"}
    home = next(file.parent for file in (tmp_path / "state").glob("*/key"))
    assert not any((home / name).exists() for name in SELF_SIGNED)
    assert dpsql("budget", "verify")[0] == dpsql("check")[0] == 0
    logins().enable("ann")
    assert logins().verifier("ann")[1] and not logins().verifier("bob")[1]


def test_a_restore_keeps_the_logins_of_the_machine_and_takes_the_key_by_a_flag(
    dpsql: Run, place: Path, tmp_path: Path
) -> None:
    place.write_text(place.read_text() + "analysts: {ann: {epsilon: 1}}\n")
    dpsql("check", "--create-ledger")
    policy, folder = load_policy(place), str(tmp_path / "backup")
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        logins, home = open_logins(ledger, policy), ledger.witness.directory
    logins.add("ann", "a long password")
    for name in SELF_SIGNED:
        (home / name).write_text(name)
    dpsql("budget", "backup", folder)
    logins.disable("ann")
    for file in (*place.parent.glob("ledger.db*"), *(home / name for name in SELF_SIGNED)):
        file.unlink()
    status, said, _ = dpsql("budget", "restore", "--tls-key", folder)
    assert status == 0 and "logins of" not in said and "its key are restored" in said
    assert "everything that it has left" in said.splitlines()[0]
    assert logins.states()["ann"] == "disabled" and [(home / name).read_text() for name in SELF_SIGNED] == list(
        SELF_SIGNED
    )
    assert {(home / name).stat().st_mode & 0o777 for name in SELF_SIGNED} == {0o600}


EDITS = {
    "nothing": "{epsilon: 2, delta: 1e-6}", "more": "{epsilon: 9, delta: 1e-6}", "less": "{epsilon: 1, delta: 1e-6}",
    "less than is spent": "{epsilon: 0.07, delta: 1e-6}", "less delta": "{epsilon: 2, delta: 1e-9}", "more delta": "{epsilon: 2, delta: 1e-5}",
    "another accountant": "{epsilon: 2, delta: 1e-6, accountant: pure}", "windows": "{epsilon: 2, delta: 1e-6, every: month}",
    "windows and less": "{epsilon: 0.07, delta: 1e-6, every: month, lifetime: {epsilon: 2}}",
    "less in all": "{epsilon: 0.06, delta: 1e-6, every: month, lifetime: {epsilon: 0.07}}",
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_left_after_an_edit_of_the_budget_is_what_can_be_asked(
    dpsql: Run, place: Path, tmp_path: Path, edit: str
) -> None:
    """By `check`, `budget show` and `budget forecast`, also where a part of the budget was charged as lost."""
    columns = "w: {type: integer, from: v}, v:"
    place.write_text(POLICY.replace("v:", columns) + "per_query: {epsilon: 0.05}\n")
    assert dpsql("check", "--create-ledger")[0] == 0
    with open_session(place) as session:  # a part of delta is spent, too
        session.execute("SELECT w, COUNT(*) AS n FROM a GROUP BY w")
    charge(place, 1)
    place.write_text(place.read_text().replace("{epsilon: 2, delta: 1e-6}", EDITS[edit]))
    reports = [dpsql(*words) for words in (("check",), ("budget", "show"), ("budget", "forecast"))]
    status, _, told = dpsql("query", "SELECT COUNT(*) AS n FROM a WHERE v > 2")
    assert not [said for _, *texts in reports for said in texts if "XX000" in said]
    if status == 4:
        assert {report[0] for report in reports} == {4} and all(
            "ledger_accountant" in told for _, _, told in reports[1:]
        )
        return
    assert status in (0, 3), told
    counts = (r" (\d+)(?: questions?)?(?=, |$)", r"^\S.*? (\d+) +\d+ *$", r"(\d+) questions? (?:is|are) left")
    texts = (reports[0][1].rpartition("left: ")[2].partition(", each of")[0], reports[1][1], reports[2][1])
    lefts = [min(map(int, re.findall(words, text, re.M))) for words, text in zip(counts, texts, strict=True)]
    assert {left > 0 for left in lefts} == {status == 0}, (lefts, texts)
    assert ("nothing is left" in dpsql("budget", "forecast", "-v")[1]) == (status == 3)


@pytest.mark.parametrize("lost", ["0.5 x", "0.5 1", "0.5 -1", "-1 0", "1 2 3"])
def test_a_lost_amount_that_is_none_is_refused_before_anything_is_restored(
    dpsql: Run, place: Path, tmp_path: Path, lost: str
) -> None:
    dpsql("check", "--create-ledger")
    dpsql("budget", "backup", str(tmp_path / "backup"))
    status, said, told = dpsql("budget", "restore", "--lost", lost, str(tmp_path / "backup"))
    assert status == 2 and "--lost" in told and not said


def test_a_ledger_is_adopted_only_with_the_owners_word(
    dpsql: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dpsql("check", "--create-ledger")
    charge(place, 1)
    state = tmp_path / "new"
    shutil.copytree(tmp_path / "state", state)
    for head in state.glob("*/head"):
        head.unlink()
    monkeypatch.setenv("DPSQL_STATE", str(state))
    assert "ledger_head_missing" in dpsql("budget", "show")[2]
    assert dpsql("budget", "adopt")[0] == 2
    assert dpsql("budget", "adopt", "--newest-copy")[0] == 0
    assert dpsql("budget", "verify")[0] == 0
    assert '"act": "adopt"' in (state / "audit.log").read_text()


@pytest.mark.parametrize("change", ["ledger", "folder", "name"])
def test_a_second_full_budget_needs_a_reason(dpsql: Run, place: Path, tmp_path: Path, change: str) -> None:
    """The path of another ledger, a copied folder, or another name for the same files, each with --create-ledger."""
    assert dpsql("check", "--create-ledger")[0] == 0
    charge(place, 1)
    other = place.with_name("other.yaml")
    text = POLICY.replace("ledger.db", "second.db")
    if change == "folder":
        folder = tmp_path / "copied"
        folder.mkdir()
        shutil.copy(place.parent / "a.parquet", folder)
        other, text = folder / "p.yaml", POLICY
    other.write_text(text.replace("dataset: files", "dataset: renamed") if change == "name" else text)
    status, _, told = dpsql("check", "--create-ledger", policy=other)
    assert status == 4 and "second full budget over the same people" in told
    assert not list(other.parent.glob("second.db")) and (
        change != "folder" or not (tmp_path / "copied/ledger.db").exists()
    )
    assert dpsql("check", "--create-ledger", "--second-budget", "other people by now", policy=other)[0] == 0
    assert "other people by now" in dpsql("budget", "export", policy=other)[1]


def full(*_: object) -> None:
    """Raise SQLite's error when its log files have no space."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorname = "SQLITE_FULL"
    raise error


def test_a_ledger_on_a_full_disk_can_be_looked_at(dpsql: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dpsql("check", "--create-ledger")[0] == 0
    charge(place, 1)
    shown = dpsql("budget", "show")
    monkeypatch.setattr(database, "_journal_mode", full)
    assert dpsql("budget", "show") == shown and shown[0] == 0
    assert dpsql("budget", "verify")[0] == 0
    status, _, words = dpsql("query", "SELECT COUNT(*) AS n FROM a")
    assert status == 4 and "disk of the ledger is full" in words and "nothing was charged" in words
